//! Policies and standing grants: what a person says once for many calls.

use serde_json::Value;
use steward_kernel::human::{Answer, EffectKind, NewPolicy, Place, Policy, Scope, Standing};
use steward_kernel::{Code, Kernel, Pid, Taken};

use crate::bed::{
    Bed, NOON, Person, approve, chat, codes, delete, read, rename, results, rows, sleep, spawn,
    write,
};

/// A scope in a workspace.
fn here(bed: &Bed) -> Scope {
    Scope {
        workspace: Some(bed.root.clone()),
        ..Scope::default()
    }
}

async fn set(kernel: &Kernel, action: &str, scope: Scope, policy: Policy) -> u64 {
    let action = action.to_owned();
    let new = NewPolicy {
        action,
        scope,
        policy,
    };
    kernel.set_action_policy(new, "test").await.unwrap()
}

async fn standing(kernel: &Kernel, id: u64) -> Standing {
    let all = kernel.grants().await.unwrap();
    all.into_iter().find(|standing| standing.id == id).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_policy_says_to_each_action_in_its_scope_what_it_says() {
    use Policy::{AllowOnce, AlwaysAllow, AlwaysDeny, AskEachTime};
    let (yes, denied, refused) = (Ok(()), Err(Code::Denied), Err(Code::Refused));
    let everywhere = |_: &Bed| Scope::default();
    let elsewhere = |bed: &Bed| Scope {
        workspace: Some(bed.outside.clone()),
        ..Scope::default()
    };
    let docs = |bed: &Bed| Scope {
        place: Some(Place::Folder("docs".to_owned())),
        ..here(bed)
    };
    let one = |bed: &Bed| Scope {
        place: Some(Place::Path("docs/a".to_owned())),
        ..here(bed)
    };
    let new_files = |bed: &Bed| Scope {
        kind: Some(EffectKind::Create),
        ..here(bed)
    };
    let image = |_: &Bed| Scope {
        image: Some("script".to_owned()),
        ..Scope::default()
    };
    let other_image = |_: &Bed| Scope {
        image: Some("other".to_owned()),
        ..Scope::default()
    };
    // The first process of a journal.
    let run = |_: &Bed| Scope {
        run: Some(1),
        pid: Some(Pid(1)),
        ..Scope::default()
    };
    let other_run = |_: &Bed| Scope {
        run: Some(2),
        ..Scope::default()
    };
    type Where<'a> = &'a dyn Fn(&Bed) -> Scope;
    type Ends = Vec<Result<(), Code>>;
    type Row<'a> = (&'static str, Policy, Where<'a>, Vec<Value>, Ends);
    let (a, twice) = (
        write("docs/a", "x"),
        vec![write("docs/a", "x"), write("docs/a", "y")],
    );
    // An action, a policy, its scope, calls, how they end where the person says no to all questions.
    let rows: Vec<Row<'_>> = vec![
        (
            "fs.write",
            AlwaysAllow,
            &everywhere,
            twice.clone(),
            vec![yes, yes],
        ),
        (
            "fs.write",
            AlwaysAllow,
            &here,
            twice.clone(),
            vec![yes, yes],
        ),
        (
            "fs.write",
            AlwaysAllow,
            &elsewhere,
            vec![a.clone()],
            vec![refused],
        ),
        (
            "fs.delete",
            AlwaysAllow,
            &here,
            vec![a.clone()],
            vec![refused],
        ),
        (
            "fs.write",
            AlwaysAllow,
            &docs,
            vec![a.clone(), write("src/a", "x")],
            vec![yes, refused],
        ),
        (
            "fs.write",
            AlwaysAllow,
            &one,
            vec![a.clone(), write("docs/b", "x")],
            vec![yes, refused],
        ),
        (
            "fs.write",
            AlwaysAllow,
            &new_files,
            vec![write("new", "x"), a.clone()],
            vec![yes, refused],
        ),
        ("fs.write", AlwaysAllow, &image, vec![a.clone()], vec![yes]),
        (
            "fs.write",
            AlwaysAllow,
            &other_image,
            vec![a.clone()],
            vec![refused],
        ),
        ("fs.write", AlwaysAllow, &run, vec![a.clone()], vec![yes]),
        (
            "fs.write",
            AlwaysAllow,
            &other_run,
            vec![a.clone()],
            vec![refused],
        ),
        (
            "fs.write",
            AllowOnce,
            &here,
            twice.clone(),
            vec![yes, refused],
        ),
        (
            "fs.write",
            AskEachTime,
            &here,
            vec![a.clone()],
            vec![refused],
        ),
        (
            "fs.write",
            AlwaysDeny,
            &here,
            vec![a.clone(), delete("docs/a")],
            vec![denied, refused],
        ),
        (
            "fs.read",
            AlwaysDeny,
            &docs,
            vec![read("docs/a"), read("src/a")],
            vec![denied, yes],
        ),
        // What a capability allows is asked about all the same.
        (
            "fs.read",
            AskEachTime,
            &docs,
            vec![read("docs/a"), read("src/a")],
            vec![refused, yes],
        ),
        ("llm.chat", AskEachTime, &here, vec![chat()], vec![refused]),
        ("llm.chat", AlwaysDeny, &here, vec![chat()], vec![denied]),
        (
            "clock.sleep",
            AlwaysDeny,
            &here,
            vec![sleep(0)],
            vec![denied],
        ),
        (
            "process.spawn",
            AlwaysDeny,
            &here,
            vec![spawn(&[], false)],
            vec![denied],
        ),
        (
            "fs.move",
            AlwaysAllow,
            &docs,
            vec![rename("docs/a", "docs/z"), rename("docs/b", "b")],
            vec![yes, refused],
        ),
    ];
    for (action, policy, scope, calls, expected) in rows {
        let bed = Bed::with(&[("docs/a", "a"), ("docs/b", "b"), ("src/a", "a")]);
        let kernel = bed.kernel();
        Person::of(&kernel).always_says(false);
        let id = set(&kernel, action, scope(&bed), policy).await;
        let pid = bed.start(&kernel, &calls).await;
        let words = standing(&kernel, id).await.words;
        let got = codes(&results(&kernel, pid).await);
        assert_eq!(got, expected, "{words}: {calls:?}");
        // Each use is counted, and the journal names it.
        let done = expected
            .iter()
            .filter(|code| code.is_ok() && policy == AlwaysAllow)
            .count();
        if policy == AlwaysAllow {
            assert_eq!(standing(&kernel, id).await.used, done as u64, "{words}");
            let all = rows_with(&kernel, pid, &format!("standing grant {id}")).await;
            assert_eq!(all > 0, done > 0, "{words}");
        }
    }
}

pub(crate) async fn rows_with(kernel: &Kernel, pid: Pid, words: &str) -> usize {
    let all = rows(kernel, Some(pid)).await;
    all.iter().filter(|row| row.detail.contains(words)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_gives_no_right_that_is_not_held() {
    let bed = Bed::with(&[("f", "old")]);
    let kernel = bed.kernel();
    set(&kernel, "fs.write", Scope::default(), Policy::AlwaysAllow).await;
    let mut grants = bed.defaults();
    grants.remove(1);
    let pid = bed.start_with(&kernel, &[write("f", "new")], grants).await;
    assert_eq!(codes(&results(&kernel, pid).await), [Err(Code::Denied)]);
    assert_eq!(bed.text("f"), "old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_counts_in_the_scope_that_was_shown_and_can_be_taken_back() {
    let bed = Bed::with(&[("docs/a", "old"), ("docs/b", "old"), ("c", "old")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let calls = [
        write("docs/a", "1"),
        write("docs/b", "2"),
        write("docs/new", "3"),
        write("c", "4"),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let asked = person.is_asked().await;
    let root = bed.root.display();
    let words: Vec<&str> = asked
        .scopes
        .iter()
        .map(|offer| offer.words.as_str())
        .collect();
    let overwriting = |rest: String| format!("always allow overwriting files{rest}");
    let (run, image) = (format!(", until run {pid} ends"), ", by any `script` agent");
    assert_eq!(
        words,
        [
            overwriting(format!(" at `docs/a` in `{root}`{run}")),
            overwriting(format!(" below `docs/` in `{root}`{run}")),
            overwriting(format!(" in `{root}`{run}")),
            overwriting(format!(" at `docs/a` in `{root}`{image}")),
            overwriting(format!(" below `docs/` in `{root}`{image}")),
            overwriting(format!(" in `{root}`{image}")),
        ]
    );
    // A scope that was not offered, and one of something else that was shown.
    let always = |scope: &str| Answer::Always {
        scope: scope.to_owned(),
    };
    let odd = kernel
        .decide(asked.id, always("7"), &asked.digest.0, "test")
        .await;
    assert_eq!(odd.unwrap_err().code, Code::Invalid);
    let other = "0".repeat(64);
    let odd = kernel.decide(asked.id, always("2"), &other, "test").await;
    assert_eq!(odd.unwrap_err().code, Code::Conflict);
    assert!(kernel.grants().await.unwrap().is_empty());
    let taken = kernel
        .decide(asked.id, always("2"), &asked.digest.0, "window")
        .await;
    assert_eq!(taken.unwrap(), Taken::Counted);
    // `docs/b` is not asked about, a new file is, and so is another folder.
    for (relative, kind) in [
        ("docs/new", EffectKind::Create),
        ("c", EffectKind::Overwrite),
    ] {
        let asked = person.is_asked().await;
        assert_eq!((asked.relative.as_str(), asked.kind), (relative, kind));
        person.says(&asked, true).await;
    }
    assert_eq!(codes(&results(&kernel, pid).await), vec![Ok(()); 4]);
    assert_eq!(bed.text("docs/b"), "2");
    let [given] = &kernel.grants().await.unwrap()[..] else {
        panic!("one stands");
    };
    assert_eq!(
        (
            given.words.as_str(),
            given.by.as_str(),
            given.issued_ms,
            given.used,
            given.policy
        ),
        (words[1], "window", NOON, 1, Policy::AlwaysAllow)
    );
    // Its run has ended, so it covers no other; taken back, it is told as such.
    let other = bed.start(&kernel, &[write("docs/a", "5")]).await;
    let asked = person.is_asked().await;
    person.says(&asked, false).await;
    assert_eq!(codes(&results(&kernel, other).await), [Err(Code::Refused)]);
    assert!(kernel.revoke_grant(given.id, "test").await.unwrap());
    assert!(!kernel.revoke_grant(given.id, "test").await.unwrap());
    let unknown = kernel.revoke_grant(given.id + 1, "test").await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    assert_eq!(standing(&kernel, given.id).await.revoked_ms, Some(NOON));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_always_is_a_yes_to_all_that_waits_in_its_scope() {
    let bed = Bed::with(&[("docs/a", "1"), ("docs/b", "2"), ("c", "3")]);
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let mut waiting = Vec::new();
    for path in ["docs/a", "docs/b", "c"] {
        let pid = bed.start(&kernel, &[write(path, "new")]).await;
        waiting.push((pid, person.is_asked().await));
    }
    let asked = &waiting[0].1;
    let scope = asked.scopes.iter().find(|offer| {
        offer.words.contains("below `docs/`") && offer.words.contains("any `script` agent")
    });
    let always = Answer::Always {
        scope: scope.unwrap().id.clone(),
    };
    let taken = kernel
        .decide(asked.id, always, &asked.digest.0, "window")
        .await;
    assert_eq!(taken.unwrap(), Taken::Counted);
    for (pid, _) in &waiting[..2] {
        assert_eq!(codes(&results(&kernel, *pid).await), [Ok(())]);
    }
    assert_eq!(
        (bed.text("docs/a"), bed.text("docs/b")),
        ("new".into(), "new".into())
    );
    let left = kernel.approvals().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].relative, "c", "it lies outside the scope");
    let (_, answered) = &waiting[1];
    let late = kernel.decide(answered.id, false, &answered.digest.0, "test");
    assert!(matches!(late.await.unwrap(), Taken::TooLate(_)));
    person.says(&left[0], false).await;
    assert_eq!(
        codes(&results(&kernel, waiting[2].0).await),
        [Err(Code::Refused)]
    );
    assert_eq!(bed.text("c"), "3");
}

#[test]
fn a_standing_grant_is_there_after_a_restart_until_it_is_taken_back() {
    let bed = Bed::with(&[("f", "old")]);
    let life = || tokio::runtime::Runtime::new().unwrap();
    let id = life()
        .block_on(async { set(&bed.kernel(), "fs.write", here(&bed), Policy::AlwaysAllow).await });
    life().block_on(async {
        let kernel = bed.kernel();
        let pid = bed
            .start(
                &kernel,
                &[write("f", "new"), approve("go on?"), write("f", "newer")],
            )
            .await;
        let asked = {
            let mut person = Person::of(&kernel);
            match kernel.approvals().await.unwrap().pop() {
                Some(asked) => asked,
                None => person.is_asked().await,
            }
        };
        assert_eq!(bed.text("f"), "new");
        // Taken back, it no longer counts for the next call.
        kernel.revoke_grant(id, "test").await.unwrap();
        let mut person = Person::of(&kernel);
        person.says(&asked, true).await;
        let asked = person.is_asked().await;
        person.says(&asked, false).await;
        let refused = Err(Code::Refused);
        assert_eq!(
            codes(&results(&kernel, pid).await),
            [Ok(()), Ok(()), refused]
        );
        assert_eq!(bed.text("f"), "new");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allow_once_is_used_once_by_many_at_once() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    Person::of(&kernel).always_says(false);
    let id = set(&kernel, "fs.write", here(&bed), Policy::AllowOnce).await;
    let mut all = Vec::new();
    for number in 0..6 {
        all.push(
            bed.start(&kernel, &[write(&format!("f{number}"), "x")])
                .await,
        );
    }
    let mut done = 0;
    for pid in all {
        match codes(&results(&kernel, pid).await)[..] {
            [Ok(())] => done += 1,
            [Err(Code::Refused)] => {}
            ref other => panic!("{other:?}"),
        }
    }
    assert_eq!(done, 1);
    assert_eq!(std::fs::read_dir(&bed.root).unwrap().count(), 1);
    assert_eq!(standing(&kernel, id).await.uses_left, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_no_call_could_meet_are_refused() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let place = |path: &str| Some(Place::Folder(path.to_owned()));
    let rows = [
        ("fs.burn", Scope::default(), Code::NotFound),
        (
            "fs.write",
            Scope {
                place: place("docs"),
                ..Scope::default()
            },
            Code::Invalid,
        ),
        (
            "fs.write",
            Scope {
                place: place("../x"),
                ..here(&bed)
            },
            Code::Invalid,
        ),
        (
            "fs.write",
            Scope {
                place: place("/x"),
                ..here(&bed)
            },
            Code::Invalid,
        ),
        (
            "fs.write",
            Scope {
                workspace: Some("w".into()),
                ..Scope::default()
            },
            Code::Invalid,
        ),
    ];
    for (action, scope, code) in rows {
        let new = NewPolicy {
            action: action.to_owned(),
            scope,
            policy: Policy::AlwaysAllow,
        };
        let error = kernel
            .set_action_policy(new.clone(), "test")
            .await
            .unwrap_err();
        assert!(
            error.code == code && error.hint.is_some(),
            "{new:?}: {error}"
        );
    }
}
