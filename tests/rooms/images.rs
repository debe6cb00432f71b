//! The registry of images: who may register, what is refused, and which version a process keeps.

use serde_json::{Value, json};
use steward_kernel::Code;
use steward_kernel::capability::{Grant, Resource, Right};

use crate::bed::{Bed, Person, approve, codes, life, read, results, script};

fn yaml(version: u32) -> String {
    format!("name: helper\nversion: {version}\nabout: helps\nsystem_prompt: ''\ntools: [look]\n")
}

fn register(yaml: &str) -> Value {
    json!(["image.register", { "yaml": yaml }])
}

fn may(right: Right) -> Grant {
    Grant::allow(Resource::Images, [right])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registering_takes_the_right_and_a_sound_image() {
    let bed = Bed::with(&[]);
    let kernel = bed.kernel();
    let with = |grants: Vec<Grant>| [bed.defaults(), grants].concat();
    let pid = bed
        .start_with(&kernel, &[register(&yaml(1))], with(vec![may(Right::Read)]))
        .await;
    assert_eq!(codes(&results(&kernel, pid).await), [Err(Code::Denied)]);

    let unknown_tool = yaml(1).replace("[look]", "[look, fly]");
    let rows = [
        (yaml(2), None),
        (yaml(2), Some((Code::Exists, "has version `2` already"))),
        (yaml(1), Some((Code::Exists, "has version `2` already"))),
        (yaml(3), None),
        (
            "name: [".to_owned(),
            Some((Code::Invalid, "the image cannot be read: line 1")),
        ),
        (
            unknown_tool,
            Some((
                Code::Invalid,
                "line 5, column 15: `tools[1]`: there is no tool `fly`",
            )),
        ),
        (
            yaml(1).replace("helper", "script"),
            Some((Code::Exists, "`script` is built in")),
        ),
    ];
    let mut calls: Vec<Value> = rows.iter().map(|(yaml, _)| register(yaml)).collect();
    calls.push(json!(["image.list", {}]));
    calls.push(json!(["image.inspect", { "name": "helper" }]));
    calls.push(json!(["image.inspect", { "name": "helper", "version": 2 }]));
    calls.push(json!(["image.inspect", { "name": "nobody" }]));
    let pid = bed
        .start_with(&kernel, &calls, with(vec![may(Right::Admin)]))
        .await;
    let got = results(&kernel, pid).await;
    for ((yaml, expected), got) in rows.iter().zip(&got) {
        match (expected, got) {
            (None, got) => assert!(got.is_ok(), "{yaml}: {got:?}"),
            (Some((code, words)), Err(error)) => {
                assert!(
                    error.code == *code && error.message.contains(words),
                    "{error}"
                );
                assert!(error.hint.is_some(), "{error}");
            }
            (Some(_), Ok(_)) => panic!("{yaml} was registered"),
        }
    }
    let told = |at: usize| got[rows.len() + at].clone();
    let list = told(0).unwrap();
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (&i["name"], &i["version"]))
        .collect();
    assert_eq!(
        names,
        [(&json!("script"), &json!(1)), (&json!("helper"), &json!(3))]
    );
    assert_eq!(told(1).unwrap()["yaml"], yaml(3));
    assert_eq!(told(2).unwrap()["info"]["by"], format!("pid {pid}"));
    assert_eq!(told(3).unwrap_err().code, Code::NotFound);
    assert_eq!(kernel.images().await.unwrap().len(), 2);
}

#[test]
fn a_process_keeps_the_version_that_it_was_started_from() {
    let bed = Bed::with(&[("f", "text")]);
    let calls = script(&[approve("go on?"), read("f")]);
    let (pid, asked) = life(async {
        let kernel = bed.kernel();
        kernel.register_image(&yaml(1)).await.unwrap();
        let mut person = Person::of(&kernel);
        let pid = bed
            .start_image(&kernel, "helper", &calls, bed.defaults())
            .await;
        let asked = person.is_asked().await;
        kernel.register_image(&yaml(2)).await.unwrap();
        (pid, asked)
    });
    life(async {
        let kernel = bed.kernel();
        kernel.resume(None).await.unwrap();
        Person::of(&kernel).says(&asked, true).await;
        assert_eq!(codes(&results(&kernel, pid).await), [Ok(()), Ok(())]);
        assert_eq!(kernel.process(pid).await.unwrap().image, "helper@1");
        let spawn = json!(["process.spawn", { "image": "helper", "goal": "[]" }]);
        let spawn_old = json!(["process.spawn", { "image": "helper@1", "goal": "[]" }]);
        let spawn_none = json!(["process.spawn", { "image": "helper@9", "goal": "[]" }]);
        let parent = bed.start(&kernel, &[spawn, spawn_old, spawn_none]).await;
        let got = results(&kernel, parent).await;
        assert_eq!(codes(&got), [Ok(()), Ok(()), Err(Code::NotFound)]);
        let images = kernel.processes().await.unwrap();
        let mut images: Vec<_> = images
            .into_iter()
            .filter(|p| p.parent == Some(parent))
            .collect();
        images.sort_by_key(|p| p.pid);
        let images: Vec<&str> = images.iter().map(|p| p.image.as_str()).collect();
        assert_eq!(images, ["helper@2", "helper@1"]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_made_of_a_checkpoint_remembers_what_its_process_did() {
    let bed = Bed::with(&[]);
    std::fs::write(bed.root.join("picture"), [0, 159]).unwrap();
    let kernel = bed.kernel();
    let note = |kind: &str, name: Option<&str>, text: &str| json!(["object.create", { "kind": kind, "name": name, "text": text }]);
    let commit = |checkpoint: u64, name: &str| json!(["image.commit", { "checkpoint": checkpoint, "name": name }]);
    let recall = |name: &str| json!(["object.read", { "object": { "name": name } }]);
    let inspect = json!(["object.inspect", { "object": { "name": "how" } }]);
    let child = script(&[recall("how"), recall("summary 2"), recall("goal"), inspect]);
    let calls = [
        note("skill", Some("how"), "carefully"),
        note("summary", None, "so far, so good"),
        note("goal", Some("goal"), "this run's own"),
        json!(["object.import", { "path": "picture", "name": "picture" }]),
        json!(["checkpoint.create", { "label": "trained" }]),
        json!(["object.update", { "object": { "name": "how" }, "text": "carelessly" }]),
        commit(1, "trained"),
        commit(1, "trained"),
        commit(1, "script"),
        commit(9, "other"),
        json!(["process.spawn", { "image": "trained@1", "goal": child }]),
        crate::bed::wait_for(10),
    ];
    let grants = [bed.defaults(), vec![may(Right::Admin)]].concat();
    let pid = bed.start_with(&kernel, &calls, grants).await;
    let got = results(&kernel, pid).await;
    let mut expected = vec![Ok(()); 12];
    expected[8] = Err(Code::Exists);
    expected[9] = Err(Code::Denied);
    assert_eq!(codes(&got), expected, "{got:?}");
    assert_eq!(got[7].as_ref().unwrap()["version"], 2);
    let exit: steward_kernel::Exit = serde_json::from_value(got[11].clone().unwrap()).unwrap();
    let of_child: crate::stand_ins::Results = serde_json::from_str(&exit.answer).unwrap();
    assert_eq!(of_child[0].as_ref().unwrap()["text"], "carefully");
    assert_eq!(of_child[1].as_ref().unwrap()["text"], "so far, so good");
    assert_eq!(of_child[2].as_ref().unwrap_err().code, Code::NotFound);
    let version = &of_child[3].as_ref().unwrap()["versions"][0];
    assert_eq!(
        (&version["origin"]["from"], &version["call"]),
        (&json!("image"), &Value::Null)
    );
    let image = kernel.image("trained", Some(1)).await.unwrap();
    assert_eq!(
        image.info.digest.0,
        version["origin"]["digest"].as_str().unwrap()
    );
    assert_eq!(image.image.memory.len(), 2);
}
