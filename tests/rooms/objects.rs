//! Objects: names and rights, versions and where they came from, what stays and what goes, and files
//! that pass through them unseen.

use serde_json::{Value, json};
use steward_kernel::capability::{Grant, Resource, Right};
use steward_kernel::object::{Namespace, ObjectId};
use steward_kernel::{Code, Kernel, Pid, ProcessState};

use crate::bed::{Bed, Person, approve, codes, life, results, rows, sleep, spawn, until, wait_for};

fn note(name: &str, text: &str) -> Value {
    json!(["object.create", { "kind": "text", "name": name, "text": text }])
}

fn note_in(namespace: &str, name: &str, text: &str) -> Value {
    json!(["object.create", { "namespace": namespace, "kind": "text", "name": name, "text": text }])
}

fn named(name: &str) -> Value {
    json!({ "name": name })
}

fn recall(object: Value) -> Value {
    json!(["object.read", { "object": object }])
}

fn keep(name: &str) -> Value {
    json!(["object.keep", { "object": named(name) }])
}

fn objects_of(namespace: &str, rights: &[Right]) -> Grant {
    let namespace = namespace.to_owned();
    Grant::allow(Resource::Objects { namespace }, rights)
}

/// The results of a process that makes these calls with these grants beside the usual.
async fn run(
    bed: &Bed,
    kernel: &Kernel,
    calls: &[Value],
    more: &[Grant],
) -> Vec<Result<Value, Code>> {
    let pid = bed
        .start_with(kernel, calls, [bed.defaults(), more.to_vec()].concat())
        .await;
    let results = results(kernel, pid).await;
    results.into_iter().map(|r| r.map_err(|e| e.code)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_known_is_no_right_and_what_is_denied_looks_like_what_is_not_there() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let first = bed
        .start(&kernel, &[note("plan", "secret"), keep("plan")])
        .await;
    results(&kernel, first).await;
    let there = json!({ "namespace": format!("proc/{first}"), "name": "plan" });
    let not_there = json!({ "namespace": format!("proc/{first}"), "name": "other" });
    let on = |object: &Value| {
        vec![
            recall(object.clone()),
            json!(["object.inspect", { "object": object }]),
            json!(["object.update", { "object": object, "text": "mine" }]),
            json!(["object.delete", { "object": object }]),
            json!(["object.diff", { "object": object }]),
            json!(["object.keep", { "object": object }]),
            json!(["object.export", { "object": object, "path": "f" }]),
            json!(["object.materialize", { "objects": [object] }]),
            json!(["object.view", { "name": "v", "objects": [object] }]),
            json!(["object.link", { "from": object, "to": 1, "relation": "about" }]),
        ]
    };
    let told = async |object: &Value| {
        let pid = bed.start(&kernel, &on(object)).await;
        let results = results(&kernel, pid).await;
        let errors = results.into_iter().map(|r| r.unwrap_err());
        let plain = |text: String| text.replace("99", "1").replace("other", "plan");
        errors
            .map(|e| (e.code, plain(e.message)))
            .collect::<Vec<_>>()
    };
    let pairs = [(there, not_there), (json!(1), json!(99))];
    for (there, not_there) in pairs {
        let (there, not_there) = (told(&there).await, told(&not_there).await);
        assert!(
            there.iter().all(|(code, _)| *code == Code::Denied),
            "{there:?}"
        );
        assert_eq!(there, not_there);
    }
    let list = json!(["object.list", { "namespace": format!("proc/{first}") }]);
    assert_eq!(run(&bed, &kernel, &[list], &[]).await, [Err(Code::Denied)]);
    assert_eq!(
        bed.count("SELECT COUNT(*) FROM object_payload WHERE body = x'736563726574'"),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_covers_its_namespace_and_what_lies_below_and_a_deny_hides() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let all = [Right::Read, Right::Write];
    let calls = [
        note_in("shared/notes", "a", "1"),
        note_in("shared/notes/deep", "b", "2"),
        note_in("shared/other", "c", "3"),
    ];
    let made = run(&bed, &kernel, &calls, &[objects_of("shared", &all)]).await;
    assert!(made.iter().all(Result::is_ok));

    let list = |namespace: &str| json!(["object.list", { "namespace": namespace, "limit": 1 }]);
    let calls = [
        list("shared"),
        list("shared/notes"),
        list("shared/notes/deep"),
    ];
    let names = |result: &Result<Value, Code>| {
        result.clone().map(|found| {
            let name = found["objects"][0]["name"].as_str().map(str::to_owned);
            (name, found["left_out"].as_u64().unwrap())
        })
    };
    let a = Ok((Some("a".to_owned()), 0));
    let (a_and_more, b) = (Ok((Some("a".to_owned()), 1)), Ok((Some("b".to_owned()), 0)));
    let read = objects_of("shared/notes", &[Right::Read]);
    let got = run(&bed, &kernel, &calls, std::slice::from_ref(&read)).await;
    let got: Vec<_> = got.iter().map(names).collect();
    assert_eq!(got, [Err(Code::Denied), a_and_more, b]);

    let namespace = "shared/notes/deep".to_owned();
    let deny = Grant::deny(Resource::Objects { namespace }, [Right::Read]);
    let got = run(&bed, &kernel, &calls, &[read, deny]).await;
    let got: Vec<_> = got.iter().map(names).collect();
    assert_eq!(got, [Err(Code::Denied), a, Err(Code::Denied)]);

    let calls = [
        note_in("shared/notes", "d", "4"),
        json!(["object.update", { "object": { "namespace": "shared/notes", "name": "a" }, "text": "x" }]),
        recall(json!({ "namespace": "shared/notes", "name": "a" })),
    ];
    let got = run(
        &bed,
        &kernel,
        &calls,
        &[objects_of("shared/notes", &[Right::Read])],
    )
    .await;
    assert_eq!(got[..2], [Err(Code::Denied), Err(Code::Denied)]);
    assert_eq!(got[2].as_ref().unwrap()["text"], "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_follow_each_other_and_tell_where_they_came_from() {
    let bed = Bed::with(&[("f", "from a file")]);
    let kernel = bed.kernel();
    let update = |name: &str, text: &str, base: u32| json!(["object.update", { "object": named(name), "text": text, "base": base }]);
    let calls = [
        note("a", "one\n"),
        update("a", "two\n", 1),
        update("a", "three\n", 1),
        json!(["object.diff", { "object": named("a") }]),
        json!(["object.read", { "object": named("a"), "version": 1 }]),
        json!(["object.read", { "object": named("a"), "version": 9 }]),
        note("a", "again"),
        json!(["object.create", { "kind": "plan", "name": "b", "text": "x", "immutable": true, "made_from": [1] }]),
        update("b", "y", 1),
        json!(["object.import", { "path": "f", "name": "c", "kind": "observation" }]),
        json!(["object.link", { "from": named("c"), "to": named("a"), "relation": "about" }]),
        json!(["object.inspect", { "object": named("a") }]),
        json!(["object.inspect", { "object": named("c") }]),
        json!(["object.link", { "from": named("a"), "to": 1, "relation": "about" }]),
    ];
    let got = run(&bed, &kernel, &calls, &[]).await;
    let codes: Vec<_> = got
        .iter()
        .map(|r| r.as_ref().map(drop).map_err(|c| *c))
        .collect();
    let (ok, no) = (Ok(()), |code| Err(code));
    let expected = [
        ok,
        ok,
        no(Code::Conflict),
        ok,
        ok,
        no(Code::NotFound),
        no(Code::Exists),
        ok,
        no(Code::Invalid),
        ok,
        ok,
        ok,
        ok,
        no(Code::Invalid),
    ];
    assert_eq!(codes, expected);
    let told = |at: usize| got[at].clone().unwrap();
    assert_eq!(told(3)["text"], "@@ -1 +1 @@\n-one\n+two\n");
    assert_eq!(told(4)["text"], "one\n");
    let history = told(11);
    let versions: Vec<_> = history["versions"].as_array().unwrap().iter().collect();
    let told_of = |v: &Value| {
        (
            v["version"].as_u64(),
            v["call"].as_u64(),
            v["readable"].as_bool(),
        )
    };
    let expected = [
        (Some(2), Some(2), Some(true)),
        (Some(1), Some(1), Some(true)),
    ];
    assert_eq!(
        versions.iter().map(|v| told_of(v)).collect::<Vec<_>>(),
        expected
    );
    let links = history["links"].as_array().unwrap();
    let link = |from: u64, relation: &str| json!({ "from": from, "to": 1, "relation": relation });
    assert_eq!(*links, [link(2, "made_from"), link(3, "about")]);
    let origin = told(12)["versions"][0]["origin"].clone();
    assert_eq!(
        (&origin["from"], &origin["path"]),
        (&json!("file"), &json!("f"))
    );
}

/// Names of the objects that are there, with the number of their payloads.
fn there(bed: &Bed) -> (Vec<String>, u64) {
    let db = bed.database();
    let sql = "SELECT name FROM object WHERE gone_ms IS NULL ORDER BY id";
    let mut found = db.prepare(sql).unwrap();
    let names = found.query_map((), |r| r.get(0)).unwrap();
    let names = names.collect::<Result<_, _>>().unwrap();
    (names, bed.count("SELECT COUNT(*) FROM object_payload"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_kept_goes_with_its_process_and_contents_are_never_in_the_journal() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let child = [
        note("scratch", "the word is plover"),
        note("result", "xyzzy"),
        keep("result"),
    ];
    let calls = [
        note("mine", "the word is plover"),
        spawn(&child, false),
        wait_for(1),
        json!(["process.merge", { "child": "$1" }]),
        json!(["object.list", {}]),
        keep("result"),
    ];
    let pid = bed.start(&kernel, &calls).await;
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()); 6]);
    let names = |value: &Value| -> Vec<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|object| object["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(got[3].as_ref().unwrap()), ["result"]);
    assert_eq!(
        names(&got[4].as_ref().unwrap()["objects"]),
        ["mine", "result"]
    );
    assert_eq!(
        there(&bed),
        (vec!["result".to_owned(), "result".to_owned()], 2)
    );

    let (kept, _) = kernel.objects(Namespace::of_process(pid)).await.unwrap();
    let (object, body) = kernel.object(kept[0].id).await.unwrap();
    assert!(object.kept && body == b"xyzzy");
    assert_eq!(
        kernel.object(ObjectId(1)).await.unwrap_err().code,
        Code::NotFound
    );
    let rows = rows(&kernel, None).await;
    let tells = |word: &str| rows.iter().any(|row| row.detail.contains(word));
    assert!(!tells("plover") && !tells("xyzzy") && tells("sha256"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_the_run_stays_until_its_first_process_ends() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let calls = [note_in("run/1", "shared by the run", "x"), sleep(60_000)];
    let pid = bed.start(&kernel, &calls).await;
    assert_eq!(pid, Pid(1));
    until("it sleeps", async || {
        kernel.process(pid).await.unwrap().state == ProcessState::WaitingEvent
    })
    .await;
    let other = run(&bed, &kernel, &[note_in("run/1", "y", "y")], &[]).await;
    assert_eq!(other, [Err(Code::Denied)]);
    assert_eq!(there(&bed).1, 1);
    kernel.kill(pid, "test").await.unwrap();
    kernel.wait(pid).await.unwrap();
    assert_eq!(there(&bed), (vec![], 0));
}

#[test]
fn an_object_is_made_once_however_often_its_process_is_run_again() {
    let bed = Bed::with(&[]);
    let calls = [note("a", "1"), approve("go on?"), recall(named("a"))];
    let (pid, asked) = life(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let pid = bed.start(&kernel, &calls).await;
        (pid, person.is_asked().await)
    });
    life(async {
        let kernel = bed.kernel();
        kernel.resume(None).await.unwrap();
        Person::of(&kernel).says(&asked, true).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(()); 3]);
    });
    assert_eq!(bed.count("SELECT COUNT(*) FROM object"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_passes_through_an_object_exactly_and_unseen() {
    let bed = Bed::with(&[("letter", "Dear plover"), ("there", "old")]);
    std::fs::write(bed.root.join("picture"), [0, 159, 146, 150]).unwrap();
    let big = std::fs::File::create(bed.root.join("big")).unwrap();
    big.set_len(16 * 1024 * 1024 + 1).unwrap();
    let import = |path: &str| {
        let name = path.replace('/', " ");
        json!(["object.import", { "path": path, "name": name }])
    };
    let export =
        |name: &str, path: &str| json!(["object.export", { "object": named(name), "path": path }]);
    let calls = [
        import("letter"),
        import("picture"),
        import("big"),
        import("../outside/secret"),
        export("letter", "copy"),
        export("picture", "copy of picture"),
        recall(named("picture")),
        export("letter", "there"),
        export("letter", "../outside/copy"),
    ];
    let kernel = bed.kernel();
    let mut person = Person::of(&kernel);
    let pid = bed.start(&kernel, &calls).await;
    for (path, yes) in [("copy", true), ("copy of picture", true), ("there", false)] {
        let asked = person.is_asked().await;
        assert_eq!(
            (asked.action.as_str(), asked.relative.as_str()),
            ("object.export", path)
        );
        person.says(&asked, yes).await;
    }
    let got = results(&kernel, pid).await;
    let (ok, no) = (Ok(()), |code| Err(code));
    let expected = [
        ok,
        ok,
        no(Code::Limit),
        no(Code::Confined),
        ok,
        ok,
        no(Code::Invalid),
        no(Code::Refused),
        no(Code::Confined),
    ];
    assert_eq!(codes(&got), expected);
    assert!(!format!("{got:?}").contains("plover"));
    assert_eq!(
        (bed.text("copy"), bed.text("there")),
        ("Dear plover".into(), "old".into())
    );
    let picture = std::fs::read(bed.root.join("copy of picture")).unwrap();
    assert_eq!(picture, [0, 159, 146, 150]);
    let acted = "SELECT COUNT(*) FROM journal WHERE kind = 'executing'";
    assert_eq!(bed.count(acted), 2);
    let undo = bed
        .start(&kernel, &[json!(["fs.undo", { "run": pid }])])
        .await;
    let asked = person.is_asked().await;
    person.says(&asked, true).await;
    assert_eq!(codes(&results(&kernel, undo).await), [Ok(())]);
    assert!(!bed.root.join("copy").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_is_bounded_by_the_cores_own_count_and_tells_what_it_leaves_out() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let made = |kind: &str, name: &str, text: String| json!(["object.create", { "kind": kind, "name": name, "text": text }]);
    let show = |tokens: u32| {
        let view = named("all");
        json!(["object.materialize", { "view": view, "tokens": tokens }])
    };
    let order = ["goal", "first", "second"].map(named);
    let calls = [
        made("goal", "goal", "make it green".to_owned()),
        made("observation", "first", "a".repeat(200)),
        made("observation", "second", "b".repeat(50)),
        json!(["object.view", { "name": "all", "objects": order, "policy": { "drop": ["observation"] } }]),
        show(1_000),
        show(200),
        show(8),
        json!(["object.delete", { "object": named("second") }]),
        show(1_000),
        json!(["object.materialize", { "objects": [named("first"), named("first")], "tokens": 1_000 }]),
        json!(["object.materialize", { "view": named("none") }]),
        json!(["object.materialize", {}]),
        show(0),
        json!(["object.materialize", { "objects": [named("goal"), named("first")] }]),
        json!(["object.materialize", { "objects": [named("goal"), named("first")], "tokens": 240 }]),
    ];
    let got = run(&bed, &kernel, &calls, &[]).await;
    let (a, b) = ("a".repeat(200), "b".repeat(50));
    let text = |at: usize| {
        got[at].as_ref().unwrap()["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let goal = "### goal 1 “goal”\nmake it green";
    let second = format!("### observation 3 “second”\n{b}");
    assert_eq!(
        text(4),
        format!("{goal}\n### observation 2 “first”\n{a}\n{second}")
    );
    // The stand-in counts bytes.
    let left_out = "### 1 older observation left out: 200 tokens";
    assert_eq!(text(5), format!("{left_out}\n{goal}\n{second}"));
    assert_eq!(text(6), "");
    assert_eq!(text(8), format!("{goal}\n### observation 2 “first”\n{a}"));
    assert_eq!(text(9), format!("### observation 2 “first”\n{a}"));
    for (at, most) in [(4, 1_000), (5, 200), (6, 8), (8, 1_000), (9, 1_000)] {
        let tokens = got[at].as_ref().unwrap()["tokens"].as_u64().unwrap();
        assert!(tokens <= most && tokens == text(at).len() as u64);
    }
    let failed = [Err(Code::NotFound), Err(Code::Invalid), Err(Code::Invalid)];
    assert_eq!(got[10..13], failed);
    // The image says how many tokens, and that goals go first.
    assert_eq!(text(13), format!("{goal}\n### observation 2 “first”\n{a}"));
    assert_eq!(got[13].as_ref().unwrap()["budget"], 300);
    assert_eq!(got[14].as_ref().unwrap()["left_out"][0]["kind"], "goal");
    assert!(text(4).len() <= 1_000 && got[3].as_ref().unwrap()["order"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_right_asks_the_person_is_asked_once_for_a_call() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let ask = Grant::ask(
        Resource::Objects {
            namespace: "shared".to_owned(),
        },
        [Right::Read, Right::Write],
    );
    let calls = [
        note_in("shared/notes", "a", "1"),
        note_in("shared/notes", "b", "2"),
        json!(["object.list", { "namespace": "shared/notes" }]),
    ];
    let mut person = Person::of(&kernel);
    let grants = [bed.defaults(), vec![ask]].concat();
    let pid = bed.start_with(&kernel, &calls, grants).await;
    for (action, yes) in [
        ("object.create", true),
        ("object.create", false),
        ("object.list", true),
    ] {
        let asked = person.is_asked().await;
        assert_eq!(asked.action, action);
        person.says(&asked, yes).await;
    }
    let got = results(&kernel, pid).await;
    assert_eq!(codes(&got), [Ok(()), Err(Code::Refused), Ok(())]);
    assert_eq!(got[2].as_ref().unwrap()["objects"][0]["name"], "a");
    assert_eq!(bed.count("SELECT COUNT(*) FROM approval"), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_copies_a_file_and_its_content_never_comes_back_to_the_model() {
    let told = crate::copy_through_object::story().await;
    assert_eq!(told, include_str!("examples/copy_through_object.txt"));
}
