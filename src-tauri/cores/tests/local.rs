//! The local core, without a model and with the default one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a test's own files")]

#[path = "house/model.rs"]
mod model;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steward_cores::{KvFormat, LoadState, LocalCore, Source};
use steward_kernel::provider::{
    Cancel, ChatReply, ChatRequest, Constraint, Finish, LlmCore, Message, Progress, Resumption,
    Role, Sampling, TokenSink,
};
use steward_kernel::{Code, SysError};

use model::default_model;

type States = Arc<Mutex<Vec<LoadState>>>;

fn core(file: Result<PathBuf, SysError>) -> (LocalCore, States) {
    let states = States::default();
    let told = Arc::clone(&states);
    let source = Source {
        model: "test".to_owned(),
        file,
        context: 8_192,
        threads: None,
        kv_format: KvFormat::default(),
    };
    let core = LocalCore::new(source, move |state| told.lock().unwrap().push(state));
    (core, states)
}

fn said(content: impl Into<String>) -> Vec<Message> {
    let content = content.into();
    vec![Message {
        role: Role::User,
        content,
    }]
}

fn request(content: impl Into<String>, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        messages: said(content),
        prefix: String::new(),
        max_tokens,
        sampling: Sampling::default(),
        stop: Vec::new(),
        constraint: None,
        beams: 1,
    }
}

fn no_sink() -> TokenSink {
    Box::new(|_| {})
}

#[tokio::test]
async fn what_cannot_be_loaded_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.gguf");
    std::fs::write(&broken, b"GGUF\x03\0\0\0").unwrap();
    let none = SysError::new(Code::Unavailable, "no model").hint("run `steward models get`");
    for (file, code, hint) in [
        (Err(none), Code::Unavailable, "steward models get"),
        (
            Ok(folder.path().join("none.gguf")),
            Code::Unavailable,
            "steward models get",
        ),
        (Ok(broken), Code::Unavailable, "steward models verify"),
    ] {
        let (core, states) = core(file.clone());
        for _ in 0..2 {
            let error = core
                .chat(request("hi", 4), no_sink(), Cancel::default())
                .await
                .unwrap_err();
            assert_eq!(error.code, code, "{file:?}");
            assert!(error.hint.as_deref().unwrap().contains(hint), "{error:?}");
        }
        // A load that failed is tried again.
        let states = states.lock().unwrap();
        let failed = |s: &LoadState| matches!(s, LoadState::Failed(_));
        assert_eq!(states.len(), 4);
        assert!(
            states[0] == LoadState::Loading && failed(&states[1]),
            "{states:?}"
        );
        assert!(
            states[2] == LoadState::Loading && failed(&states[3]),
            "{states:?}"
        );
    }
}

#[tokio::test]
async fn it_answers_weighs_and_counts_and_loads_once() {
    let (core, states) = core(Ok(default_model()));
    let pieces = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&pieces);
    let sink = Box::new(move |text: &str| heard.lock().unwrap().push_str(text));
    let reply = core
        .chat(request("Say hello.", 12), sink, Cancel::default())
        .await
        .unwrap();
    assert!(!reply.text.is_empty() && reply.tokens > 0 && reply.prompt_tokens > 0);
    assert_eq!(*pieces.lock().unwrap(), reply.text);

    let formed = ChatRequest {
        constraint: Some(Constraint::Regex {
            pattern: "yes|no".to_owned(),
        }),
        ..request("Is water wet?", 8)
    };
    let formed = core
        .chat(formed, no_sink(), Cancel::default())
        .await
        .unwrap();
    assert!(
        ["yes", "no"].contains(&formed.text.as_str()),
        "{}",
        formed.text
    );

    let choices = vec!["Paris".to_owned(), "Bicycle".to_owned()];
    let prefix = "The capital of France is ".to_owned();
    let asked = said("What is the capital of France?");
    let scores = core
        .score(asked, prefix, choices, Cancel::default())
        .await
        .unwrap();
    assert!(scores[0] > scores[1], "{scores:?}");

    assert!(core.count_tokens("hello there".to_owned()).await.unwrap() >= 2);
    assert_eq!(
        *states.lock().unwrap(),
        [LoadState::Loading, LoadState::Ready]
    );
}

#[tokio::test]
async fn a_prompt_beyond_the_context_is_refused_with_the_figures() {
    let (core, _) = core(Ok(default_model()));
    let long = "word ".repeat(9_000);
    let error = core
        .chat(request(long, 4), no_sink(), Cancel::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Limit);
    assert!(error.message.contains("8192"), "{}", error.message);
}

/// How long the core takes to end after a cancel: at the piece of text with this number, or where
/// it is 0 before the first.
async fn time_to_end(core: &LocalCore, request: ChatRequest, at: usize) -> Duration {
    let cancel = Cancel::default();
    let since = Arc::new(Mutex::new(None));
    let stop = {
        let (cancel, since) = (cancel.clone(), Arc::clone(&since));
        move || {
            since.lock().unwrap().get_or_insert_with(Instant::now);
            cancel.cancel();
        }
    };
    let pieces = Mutex::new(0);
    let in_time = stop.clone();
    let sink = Box::new(move |_: &str| {
        let mut pieces = pieces.lock().unwrap();
        *pieces += 1;
        if *pieces == at {
            in_time();
        }
    });
    let at_once = async {
        tokio::task::yield_now().await;
        if at == 0 {
            stop();
        }
    };
    let (ended, ()) = tokio::join!(core.chat(request, sink, cancel), at_once);
    match ended {
        Ok(reply) => assert_eq!(reply.finish, Finish::Cancelled),
        Err(error) => assert_eq!(error.code, Code::Interrupted),
    }
    since
        .lock()
        .unwrap()
        .expect("it was cancelled before it ended")
        .elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_heard_before_the_first_token_and_after() {
    let (core, _) = core(Ok(default_model()));
    core.count_tokens("the model is loaded now".to_owned())
        .await
        .unwrap();
    // 100 ms is the promise; the machine of a test is busy with other tests.
    let bound = Duration::from_secs(1);
    let decode = time_to_end(&core, request("Tell a long story.", 400), 5).await;
    assert!(decode < bound, "decode: {decode:?}");
    let prefill = time_to_end(&core, request("word ".repeat(6_000), 4), 0).await;
    assert!(prefill < bound, "prefill: {prefill:?}");
}

#[tokio::test]
async fn a_load_goes_on_when_whoever_asked_has_gone() {
    let (core, states) = core(Ok(default_model()));
    let cancel = Cancel::default();
    cancel.cancel();
    let error = core
        .chat(request("hi", 4), no_sink(), cancel)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Interrupted);
    core.count_tokens("hi".to_owned()).await.unwrap();
    assert_eq!(
        *states.lock().unwrap(),
        [LoadState::Loading, LoadState::Ready]
    );
}

/// Runs to the end in slices; with `stored`, each on a generation restored from its snapshot.
async fn in_slices(
    core: &Arc<LocalCore>,
    request: &ChatRequest,
    quantum: u32,
    stored: bool,
) -> (ChatReply, String, u32) {
    let heard = Arc::new(Mutex::new(String::new()));
    let hear = Arc::clone(&heard);
    let sink: TokenSink = Box::new(move |text| hear.lock().unwrap().push_str(text));
    let (go_on, never) = (Cancel::default(), Cancel::default());
    let mut generation = Arc::clone(core).begin(request.clone()).await.unwrap();
    let mut slices = 0;
    loop {
        slices += 1;
        let progress = generation.run(Some(quantum), &sink, &go_on, &never).await;
        if let Progress::Done(reply) = progress.unwrap() {
            return (reply, heard.lock().unwrap().clone(), slices);
        }
        if stored {
            let snapshot = generation.snapshot().await.unwrap();
            drop(generation);
            let restored = Arc::clone(core).restore(request.clone(), snapshot).await;
            generation = restored.unwrap();
        }
    }
}

#[tokio::test]
async fn a_generation_in_slices_says_what_one_call_says() {
    let (core, _) = core(Ok(default_model()));
    let core = Arc::new(core);
    assert_eq!(core.resumption(), Resumption::Exact);
    let mut seeded = request("Name a colour and say why.", 14);
    seeded.sampling.temperature = 0.9;
    seeded.sampling.seed = 4;
    let mut wide = request("Name a colour.", 6);
    wide.beams = 3;
    let mut formed = request("Is water wet?", 12);
    formed.constraint = Some(Constraint::Regex {
        pattern: "(yes|no), (because|since) [a-z ]{4,12}".to_owned(),
    });
    for request in [seeded, wide, formed] {
        let whole = core
            .chat(request.clone(), no_sink(), Cancel::default())
            .await
            .unwrap();
        for (quantum, stored) in [(1, false), (4, true)] {
            let (reply, heard, slices) = in_slices(&core, &request, quantum, stored).await;
            assert!(slices > 1, "{request:?}");
            assert_eq!(
                (&reply.text, reply.finish, reply.tokens),
                (&whole.text, whole.finish, whole.tokens)
            );
            assert_eq!(heard, reply.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generation_yields_and_stops_when_asked() {
    let (core, _) = core(Ok(default_model()));
    let core = Arc::new(core);
    let story = request("Tell a long story.", 400);
    let mut generation = Arc::clone(&core).begin(story.clone()).await.unwrap();
    let before = generation.resident_bytes();
    let (yield_now, cancel) = (Cancel::default(), Cancel::default());
    // The piece that asks for it is followed by those that were made before it was heard.
    let asks = yield_now.clone();
    let sink: TokenSink = Box::new(move |_| asks.cancel());
    let progress = generation.run(None, &sink, &yield_now, &cancel).await;
    assert_eq!(progress.unwrap(), Progress::Paused);
    assert!(generation.resident_bytes() > before + 1_000_000);
    let progress = generation.run(None, &sink, &yield_now, &cancel).await;
    assert_eq!(progress.unwrap(), Progress::Paused, "at once");

    let asks = cancel.clone();
    let sink: TokenSink = Box::new(move |_| asks.cancel());
    let progress = generation
        .run(None, &sink, &Cancel::default(), &cancel)
        .await;
    let Progress::Done(reply) = progress.unwrap() else {
        panic!("it goes on");
    };
    assert_eq!(reply.finish, Finish::Cancelled);
    assert!((2..400).contains(&reply.tokens), "{}", reply.tokens);
    let ended = generation.run(None, &sink, &yield_now, &cancel).await;
    assert_eq!(ended.unwrap_err().code, Code::Invalid);

    let broken = Arc::clone(&core).restore(story, vec![1, 2, 3]).await;
    let error = broken.err().unwrap();
    assert_eq!(error.code, Code::Invalid);
    assert!(error.message.contains("snapshot"), "{}", error.message);
}
