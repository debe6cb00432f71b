//! Programs, the network and chance: under the same rules as files, and once.

use std::sync::Arc;

use serde_json::{Value, json};
use steward_kernel::capability::{Constraints, Grant, Resource, Right};
use steward_kernel::outside::Random;
use steward_kernel::simulation::{ScriptedOutside, SeededRandom};
use steward_kernel::{Code, Kernel};

use crate::bed::{Bed, Person, codes, results};

fn outside() -> ScriptedOutside {
    ScriptedOutside::default()
        .program(&["cargo", "test"], 1, "one test failed")
        .program(&["git", "status", "a file"], 0, "clean")
        .page("https://example.org/page", "some text")
}

fn kernel(bed: &Bed, outside: &ScriptedOutside) -> Kernel {
    let mut opening = bed.opening();
    opening.providers.shell = Some(Arc::new(outside.clone()));
    opening.providers.network = Some(Arc::new(outside.clone()));
    opening.providers.random = Arc::new(SeededRandom::new(7));
    opening.open()
}

fn run(argv: &[&str]) -> Value {
    json!(["shell.run", { "argv": argv }])
}

fn get(url: &str) -> Value {
    json!(["net.fetch", { "method": "get", "url": url }])
}

/// A name, what is granted, the call, what the person says, and how it ends.
type Row = (&'static str, Vec<Grant>, Value, bool, Result<(), Code>);

fn only(json: &str) -> Constraints {
    Constraints::parse(json).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_allowed_is_done_what_is_asked_waits_and_the_rest_is_denied() {
    let shell = |json: &str| Grant::allow(Resource::Shell, [Right::Execute]).under(only(json));
    let asked = Grant::ask(Resource::Shell, [Right::Execute]);
    let network = |json: &str| Grant::allow(Resource::Network, [Right::Use]).under(only(json));
    let (test, page) = (run(&["cargo", "test"]), get("https://example.org/page"));
    let rows: Vec<Row> = vec![
        ("no right", vec![], test.clone(), true, Err(Code::Denied)),
        ("allowed", vec![shell("{}")], test.clone(), false, Ok(())),
        (
            "this program",
            vec![shell(r#"{"argv":[["cargo","test"]]}"#)],
            test.clone(),
            false,
            Ok(()),
        ),
        (
            "another program",
            vec![shell(r#"{"argv":[["git","*"]]}"#)],
            test.clone(),
            true,
            Err(Code::Denied),
        ),
        (
            "asked, yes",
            vec![asked.clone()],
            test.clone(),
            true,
            Ok(()),
        ),
        ("asked, no", vec![asked], test, false, Err(Code::Refused)),
        ("no way out", vec![], page.clone(), true, Err(Code::Denied)),
        (
            "this host",
            vec![network(r#"{"hosts":["example.org"]}"#)],
            page.clone(),
            false,
            Ok(()),
        ),
        (
            "another host",
            vec![network(r#"{"hosts":["example.com"]}"#)],
            page.clone(),
            true,
            Err(Code::Denied),
        ),
        (
            "another method",
            vec![network(r#"{"methods":["POST"]}"#)],
            page,
            true,
            Err(Code::Denied),
        ),
    ];
    for (name, grants, call, yes, expected) in rows {
        let (bed, world) = (Bed::with(&[]), outside());
        let kernel = kernel(&bed, &world);
        Person::of(&kernel).always_says(yes);
        let pid = bed.start_with(&kernel, &[call], grants).await;
        assert_eq!(codes(&results(&kernel, pid).await), [expected], "{name}");
        let done = world.ran().len() + world.fetched().len();
        assert_eq!(done, usize::from(expected.is_ok()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_every_argument_and_the_program_gets_nothing_else() {
    let (bed, world) = (Bed::with(&[("d/", "")]), outside());
    let kernel = kernel(&bed, &world);
    let mut person = Person::of(&kernel);
    let call = json!(["shell.run", { "argv": ["git", "status", "a file"], "folder": "d" }]);
    let grants = vec![Grant::ask(Resource::Shell, [Right::Execute])];
    let pid = bed.start_with(&kernel, &[call], grants).await;
    let asked = person.is_asked().await;
    assert_eq!(asked.path, "git status 'a file'");
    let shown: Vec<_> = asked.preview.lines.iter().map(|l| l.text.clone()).collect();
    let folder = bed.root.join("d").to_string_lossy().into_owned();
    assert!(shown.iter().any(|line| line.contains(&folder)), "{shown:?}");
    assert_eq!(world.ran(), [], "nothing before the yes");
    person.says(&asked, true).await;
    let said = results(&kernel, pid).await;
    assert_eq!(said[0].as_ref().unwrap()["output"], "clean");
    let ran = world.ran();
    assert_eq!(
        (ran.len(), ran[0].env.len(), ran[0].folder.as_str()),
        (1, 0, "d")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_program_no_address_and_no_folder_is_a_clear_error() {
    let (bed, world) = (Bed::with(&[]), outside());
    let kernel = kernel(&bed, &world);
    let all = vec![
        Grant::allow(Resource::Shell, [Right::Execute]),
        Grant::allow(Resource::Network, [Right::Use]),
        Grant::allow(Resource::Clock, [Right::Use]),
    ];
    let out = |folder: &str| json!(["shell.run", { "argv": ["true"], "folder": folder }]);
    let rows = [
        (run(&[]), Code::Invalid),
        (run(&["a\0b"]), Code::Invalid),
        (out("../out"), Code::Confined),
        (out("/etc"), Code::Confined),
        (run(&["unknown"]), Code::NotFound),
        (get("nonsense"), Code::Invalid),
        (get("file:///etc/passwd"), Code::Invalid),
        (get("https://name:word@example.org"), Code::Invalid),
        (
            json!(["net.fetch", { "method": "TRACE", "url": "https://example.org" }]),
            Code::Invalid,
        ),
        (json!(["random.bytes", { "count": 0 }]), Code::Invalid),
    ];
    let calls: Vec<Value> = rows.iter().map(|(call, _)| call.clone()).collect();
    let pid = bed.start_with(&kernel, &calls, all).await;
    for (result, (call, code)) in results(&kernel, pid).await.iter().zip(&rows) {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.code, *code, "{call}: {error}");
        assert!(error.hint.is_some(), "{call}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_way_to_run_programs_nothing_is_run_and_it_says_so() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let grants = vec![
        Grant::allow(Resource::Shell, [Right::Execute]),
        Grant::allow(Resource::Network, [Right::Use]),
    ];
    let calls = [run(&["true"]), get("https://example.org")];
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let none = Err(Code::Unavailable);
    assert_eq!(codes(&results(&kernel, pid).await), [none, none]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chance_comes_from_its_provider() {
    let bed = Bed::with(&[]);
    let calls = [json!(["random.bytes", { "count": 16 }])];
    let grants = vec![Grant::allow(Resource::Clock, [Right::Use])];
    let kernel = kernel(&bed, &outside());
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let said = results(&kernel, pid).await;
    let text = said[0].as_ref().unwrap().as_str().unwrap();
    let mut bytes = [0; 16];
    SeededRandom::new(7).fill(&mut bytes).unwrap();
    assert_eq!(text, hex::encode(bytes));
}
