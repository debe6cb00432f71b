//! A core of letters: what its slices make, told in one go and apart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Mutex;

use super::*;
use crate::provider::{Constraint, CoreInfo, Sampling};

const TEXT: &str = "one two three four five";

/// Says `TEXT` letter by letter, a letter a token, from where the prefix or the assistant's
/// last message stopped.
struct Letters {
    resumption: Resumption,
    asked: Mutex<Vec<ChatRequest>>,
}

impl Letters {
    fn new(resumption: Resumption) -> Arc<Self> {
        Arc::new(Self {
            resumption,
            asked: Mutex::default(),
        })
    }
}

#[async_trait]
impl LlmCore for Letters {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "letters".to_owned(),
            context: 100,
            local: false,
        }
    }

    fn resumption(&self) -> Resumption {
        self.resumption
    }

    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError> {
        let told = request.messages.iter().rfind(|m| m.role == Role::Assistant);
        let said = told.map_or(&request.prefix, |m| &m.content).clone();
        self.asked.lock().unwrap().push(request.clone());
        let mut reply = ChatReply {
            text: String::new(),
            finish: Finish::Stop,
            prompt_tokens: 10,
            cached_tokens: 0,
            tokens: 0,
        };
        for letter in TEXT.strip_prefix(said.as_str()).unwrap().chars() {
            if cancel.is_cancelled() {
                reply.finish = Finish::Cancelled;
                break;
            }
            if reply.tokens == request.max_tokens {
                reply.finish = Finish::Length;
                break;
            }
            sink(letter.encode_utf8(&mut [0; 4]));
            reply.text.push(letter);
            reply.tokens += 1;
            tokio::task::yield_now().await;
        }
        Ok(reply)
    }

    async fn score(
        &self,
        _: Vec<Message>,
        _: String,
        _: Vec<String>,
        _: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        Ok(Vec::new())
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.len()).unwrap())
    }
}

fn request(stop: &[&str]) -> ChatRequest {
    ChatRequest {
        messages: vec![Message {
            role: Role::User,
            content: "count".to_owned(),
        }],
        prefix: String::new(),
        max_tokens: 50,
        sampling: Sampling::default(),
        stop: stop.iter().map(|stop| (*stop).to_owned()).collect(),
        constraint: None,
        beams: 1,
    }
}

/// Runs to the end in slices, each on a generation restored from the last one's snapshot.
async fn sliced(
    core: &Arc<Letters>,
    request: &ChatRequest,
    quantum: u32,
) -> (ChatReply, String, u32) {
    let core: Arc<dyn LlmCore> = Arc::<Letters>::clone(core);
    let streamed = Arc::new(Mutex::new(String::new()));
    let hear = Arc::clone(&streamed);
    let sink: TokenSink = Box::new(move |text| hear.lock().unwrap().push_str(text));
    let (on, off) = (Cancel::default(), Cancel::default());
    let mut slices = 0;
    let mut generation = Arc::clone(&core).begin(request.clone()).await.unwrap();
    loop {
        slices += 1;
        let progress = generation.run(Some(quantum), &sink, &on, &off).await;
        if let Progress::Done(reply) = progress.unwrap() {
            let streamed = streamed.lock().unwrap().clone();
            return (reply, streamed, slices);
        }
        let snapshot = generation.snapshot().await.unwrap();
        generation = Arc::clone(&core)
            .restore(request.clone(), snapshot)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn slices_make_the_text_of_one_call() {
    for resumption in [Resumption::Prefix, Resumption::Retold] {
        for quantum in [1, 4, 16, 100] {
            for (stop, said, tokens) in [
                (&[][..], TEXT, 23),
                (&["ree f"], "one two th", 15),
                (&["xyz", "five!"], TEXT, 23),
            ] {
                let core = Letters::new(resumption);
                let (reply, streamed, slices) = sliced(&core, &request(stop), quantum).await;
                assert_eq!((reply.text.as_str(), streamed.as_str()), (said, said));
                assert_eq!(
                    (reply.finish, slices),
                    (Finish::Stop, u32::div_ceil(tokens, quantum))
                );
                let asked = core.asked.lock().unwrap();
                let seeds: Vec<u64> = asked.iter().map(|r| r.sampling.seed).collect();
                assert_eq!(seeds, (0..u64::from(slices)).collect::<Vec<_>>());
                let retold = asked.iter().skip(1).all(|r| r.messages.len() == 3);
                assert!(retold == (resumption == Resumption::Retold) || slices == 1);
            }
        }
    }
}

#[tokio::test]
async fn limits_and_wholes() {
    let core = Letters::new(Resumption::Prefix);
    let mut short = request(&[]);
    short.max_tokens = 10;
    let (reply, _, slices) = sliced(&core, &short, 4).await;
    assert_eq!(
        (reply.text.as_str(), reply.finish),
        ("one two th", Finish::Length)
    );
    assert_eq!((reply.tokens, reply.prompt_tokens, slices), (10, 30, 3));
    let mut formed = request(&[]);
    formed.constraint = Some(Constraint::Regex {
        pattern: ".*".to_owned(),
    });
    assert_eq!(sliced(&core, &formed, 4).await.2, 1);
}

#[tokio::test]
async fn it_yields_after_some_text_and_stops_when_cancelled() {
    let core = Letters::new(Resumption::Prefix);
    let (yield_now, cancel) = (Cancel::default(), Cancel::default());
    let heard = yield_now.clone();
    let sink: TokenSink = Box::new(move |_| heard.cancel());
    let mut generation = core.begin(request(&[])).await.unwrap();
    let progress = generation.run(None, &sink, &yield_now, &cancel).await;
    assert_eq!(progress.unwrap(), Progress::Paused);
    cancel.cancel();
    let progress = generation
        .run(None, &sink, &Cancel::default(), &cancel)
        .await;
    let Progress::Done(reply) = progress.unwrap() else {
        panic!("it goes on");
    };
    assert_eq!(reply.finish, Finish::Cancelled);
    assert!((1..5).contains(&reply.text.len()), "{}", reply.text);
    let again = generation
        .run(None, &sink, &Cancel::default(), &cancel)
        .await;
    assert_eq!(again.unwrap_err().code, Code::Invalid);
}

#[tokio::test]
async fn a_snapshot_that_does_not_fit_is_refused() {
    let core = Letters::new(Resumption::Prefix);
    let mut generation = Arc::clone(&core).begin(request(&[])).await.unwrap();
    let snapshot = generation.snapshot().await.unwrap();
    let restore = |request, snapshot: &[u8]| Arc::clone(&core).restore(request, snapshot.to_vec());
    for cut in 0..snapshot.len() {
        let error = restore(request(&[]), &snapshot[..cut]).await.err().unwrap();
        assert_eq!(error.code, Code::Invalid);
        assert!(
            error.message.contains("cannot be read"),
            "{}",
            error.message
        );
    }
    let other = restore(request(&["x"]), &snapshot).await.err().unwrap();
    assert!(
        other.message.contains("of another request"),
        "{}",
        other.message
    );
    let later = String::from_utf8(snapshot)
        .unwrap()
        .replace("\"version\":1", "\"version\":2");
    let later = restore(request(&[]), later.as_bytes()).await.err().unwrap();
    assert!(later.message.contains("version `2`"), "{}", later.message);
}
