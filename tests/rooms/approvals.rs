//! Approvals: what a yes counts for, how often, and what happens without an answer.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use steward_kernel::escape::has_invisible;
use steward_kernel::human::Approval;
use steward_kernel::{Code, Kernel, KernelEvent, ProcessState, Taken};

use crate::bed::{
    Bed, NOON, Person, approve, codes, delete, outcomes, read, results, rows, sha256, sleep, until,
    write,
};
use crate::stand_ins::StandInClock;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_answers_at_once_one_counts_and_acts_once() {
    for round in 0..5 {
        let bed = Bed::with(&[("f", "old")]);
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &[write("f", "new")]).await;
        let asked = person.is_asked().await;
        let answers: Vec<_> = (0..8)
            .map(|number| {
                let (kernel, asked) = (kernel.clone(), asked.clone());
                let yes = number % 2 == round % 2;
                tokio::spawn(async move {
                    let by = format!("surface {number}");
                    let taken = kernel.decide(asked.id, yes, &asked.digest.0, &by).await;
                    (yes, taken.unwrap())
                })
            })
            .collect();
        let mut counted = Vec::new();
        for answer in answers {
            if let (yes, Taken::Counted) = answer.await.unwrap() {
                counted.push(yes);
            }
        }
        assert_eq!(counted.len(), 1, "one answer counts");
        let results = results(&kernel, pid).await;
        let (result, text) = match counted[0] {
            true => (Ok(()), "new"),
            false => (Err(Code::Refused), "old"),
        };
        assert_eq!(codes(&results), [result]);
        assert_eq!(bed.text("f"), text);
        let all = rows(&kernel, Some(pid)).await;
        let of_kind = |kind: &str| all.iter().filter(|row| row.kind == kind).count();
        assert_eq!(of_kind("decision"), 1);
        assert_eq!(of_kind("executing"), usize::from(counted[0]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_to_what_was_shown_and_to_nothing_else() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let pid = bed.start(&kernel, &[write("f", "new")]).await;
    let asked = person.is_asked().await;
    let other = sha256(b"what another dialog showed");
    let error = kernel
        .decide(asked.id, true, &other, "test")
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let error = kernel
        .decide(asked.id + 1, true, &asked.digest.0, "test")
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(
        kernel.approvals().await.unwrap(),
        std::slice::from_ref(&asked)
    );
    assert_eq!(bed.text("f"), "old");
    assert_eq!(person.says(&asked, true).await, Taken::Counted);
    assert_eq!(codes(&results(&kernel, pid).await), [Ok(())]);
    let late = person.says(&asked, false).await;
    assert_eq!(
        late,
        Taken::TooLate("it was approved already, by test".to_owned())
    );
}

/// All texts of an approval that a surface shows.
fn shown(approval: &Approval) -> Vec<String> {
    let texts = [&approval.path, &approval.relative, &approval.goal];
    let lines = approval.preview.lines.iter().map(|line| line.text.clone());
    let target = approval.target.clone();
    let all = texts.into_iter().cloned().chain(lines).chain(target);
    all.chain(approval.items.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_seen_is_shown_escaped_and_the_true_text_is_bound() {
    let odd = [
        "\u{1b}[2Jharmless",
        "rm -rf /\rls",
        "\u{202e}cod.exe",
        "a\u{2066}b\u{2069}",
        "in\u{200b}visible",
        "\u{e0041}\u{e0042}",
        "\u{feff}mark",
    ];
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    for text in odd {
        let calls: Vec<Value> = vec![
            json!(["human.approve", { "title": text, "text": text }]),
            write(&format!("n{text}").replace('/', "-"), text),
            write("plain", text),
        ];
        for call in calls {
            let mut person = Person::of(&kernel);
            let pid = bed.start(&kernel, std::slice::from_ref(&call)).await;
            let asked = person.is_asked().await;
            for line in shown(&asked) {
                let seen = !has_invisible(&line) && !line.contains(['\r', '\n', '\t']);
                assert!(seen, "{call}: {line:?}");
            }
            let all = shown(&asked).concat();
            assert!(all.contains("\\u{") || all.contains("\\r"), "{call}: {all}");
            if let Some(digest) = &asked.sha256 {
                assert_eq!(digest.0, sha256(text.as_bytes()), "{call}");
            }
            for row in rows(&kernel, Some(pid)).await {
                assert!(!has_invisible(&row.detail), "{row:?}");
            }
            for step in kernel.steps(pid).await.unwrap() {
                assert!(!has_invisible(&step.title), "{step:?}");
            }
            person.says(&asked, false).await;
            kernel.wait(pid).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_is_a_structured_refusal_and_the_process_goes_on() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(false);
    let pid = bed
        .start(
            &kernel,
            &[write("f", "new"), delete("f"), approve("sure?"), read("f")],
        )
        .await;
    let results = results(&kernel, pid).await;
    let refused = Err(Code::Refused);
    assert_eq!(codes(&results), [refused, refused, Ok(()), Ok(())]);
    let error = results[0].as_ref().unwrap_err();
    assert!(error.message.contains("`f`") && error.hint.is_some());
    assert_eq!(results[2], Ok(json!(false)), "not a yes");
    assert_eq!(bed.text("f"), "old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_one_process_are_limited_and_none_is_answered_by_default() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(false);
    let pid = bed.start(&kernel, &vec![approve("may I?"); 100]).await;
    let results = results(&kernel, pid).await;
    let asked = results.iter().filter(|r| r.is_ok()).count();
    assert_eq!(asked, 64);
    assert!(results[..asked].iter().all(|r| *r == Ok(json!(false))));
    for refused in &results[asked..] {
        let error = refused.as_ref().unwrap_err();
        assert!(error.code == Code::Limit && error.hint.is_some());
    }
}

#[test]
fn a_restart_gives_no_new_questions() {
    let bed = Bed::with(&[]);
    let mut calls = vec![approve("may I?"); 50];
    calls.push(sleep(1000));
    calls.extend(vec![approve("may I?"); 50]);
    let life = || tokio::runtime::Runtime::new().unwrap();
    let pid = life().block_on(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        Person::of(&kernel).always_says(false);
        let pid = bed.start(&kernel, &calls).await;
        person.sees(pid, ProcessState::WaitingEvent).await;
        pid
    });
    let results = life().block_on(async {
        let clock = StandInClock::at(NOON + 1000);
        let kernel = bed.opening().clock(clock).open();
        Person::of(&kernel).always_says(false);
        assert_eq!(kernel.resume(None).await.unwrap(), 1);
        results(&kernel, pid).await
    });
    let asked = results.iter().filter(|r| **r == Ok(json!(false))).count();
    assert_eq!(asked, 64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_nobody_there_it_waits_and_nothing_is_approved() {
    let bed = Bed::with(&[("f", "old")]);
    let clock = StandInClock::at(NOON);
    let kernel = bed.opening().clock(clock.clone()).open();
    let before = bed.print();
    let pid = bed.start(&kernel, &[write("f", "new")]).await;
    let waits = async || kernel.process(pid).await.unwrap().state == ProcessState::WaitingHuman;
    until("it waits for the person", &waits).await;
    clock.advance(365 * 24 * 60 * 60 * 1000);
    // What could happen by itself has happened once a later process is through.
    let other = bed.start(&kernel, &[read("f"), sleep(0)]).await;
    assert_eq!(codes(&results(&kernel, other).await), [Ok(()), Ok(())]);
    assert!(waits().await);
    assert_eq!(kernel.approvals().await.unwrap().len(), 1);
    let all = rows(&kernel, Some(pid)).await;
    let kinds: Vec<&str> = all.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, ["process", "intent", "approval"]);
    assert_eq!(bed.print(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_for_its_first_answer() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let ask = json!(["human.ask", { "text": "which?\u{1b}[2J", "choices": ["a", "b"] }]);
    let pid = bed.start(&kernel, &[ask]).await;
    let question = person
        .hears(|event| match event {
            KernelEvent::Question(question) => Some(question),
            _ => None,
        })
        .await;
    assert_eq!(question.text, "which?\\u{1b}[2J");
    assert_eq!(
        kernel.questions().await.unwrap(),
        std::slice::from_ref(&question)
    );
    let answered = kernel.answer(question.id, "b", "test").await.unwrap();
    assert_eq!(answered, Taken::Counted);
    assert_eq!(results(&kernel, pid).await, [Ok(json!("b"))]);
    let late = kernel.answer(question.id, "a", "test").await.unwrap();
    assert!(matches!(late, Taken::TooLate(_)));
    assert!(outcomes(&kernel, pid).await[0].starts_with("done: "));
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM question WHERE answer IS NOT NULL"),
        0
    );
}

const CHILD: &str = "STEWARD_TEST_WAITER";

/// Runs in a process of its own until it is killed.
fn wait_for_ever(path: &str) -> ! {
    let bed = Bed::at(path.as_ref());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &[write("f", "new"), read("f")]).await;
        person.sees(pid, ProcessState::WaitingHuman).await;
        let mut out = std::io::stdout();
        writeln!(out, "waiting").and_then(|()| out.flush()).unwrap();
        std::future::pending().await
    })
}

async fn the_one_that_waits(kernel: &Kernel) -> Approval {
    let [approval] = &kernel.approvals().await.unwrap()[..] else {
        panic!("one approval waits");
    };
    approval.clone()
}

#[test]
fn after_kill_9_an_approval_still_waits_with_its_process() {
    if let Ok(path) = std::env::var(CHILD) {
        wait_for_ever(&path);
    }
    let bed = Bed::with(&[("f", "old")]);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "approvals::after_kill_9_an_approval_still_waits_with_its_process",
        ])
        .env(CHILD, bed.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("waiting")));
    child.kill().unwrap();
    child.wait().unwrap();

    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let kernel = bed.kernel();
        let waits = the_one_that_waits(&kernel).await;
        let process = kernel.process(waits.pid).await.unwrap();
        assert_eq!(process.state, ProcessState::WaitingHuman);
        let mut person = Person::of(&kernel);
        assert_eq!(kernel.resume(None).await.unwrap(), 1);
        let asked = person.is_asked().await;
        assert_eq!((asked.id, &asked.digest), (waits.id, &waits.digest));
        person.sees(waits.pid, ProcessState::WaitingHuman).await;
        assert_eq!(the_one_that_waits(&kernel).await.id, waits.id);
        assert_eq!(bed.text("f"), "old");
        person.says(&waits, true).await;
        let results = results(&kernel, waits.pid).await;
        assert_eq!(codes(&results), [Ok(()), Ok(())]);
        assert_eq!(bed.text("f"), "new");
    });
}

#[test]
fn a_yes_given_while_the_process_did_not_run_counts_when_it_does() {
    let bed = Bed::with(&[("f", "old")]);
    let life = || tokio::runtime::Runtime::new().unwrap();
    life().block_on(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        bed.start(&kernel, &[write("f", "new")]).await;
        person.is_asked().await;
    });
    life().block_on(async {
        let kernel = bed.kernel();
        let waits = the_one_that_waits(&kernel).await;
        assert_eq!(Person::of(&kernel).says(&waits, true).await, Taken::Counted);
        assert_eq!(bed.text("f"), "old");
        kernel.resume(Some(waits.run)).await.unwrap();
        assert_eq!(codes(&results(&kernel, waits.pid).await), [Ok(())]);
        assert_eq!(bed.text("f"), "new");
        assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 1);
    });
}
