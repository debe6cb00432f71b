//! What the journal tells of real calls, by columns; that it is whole; and the same as spans.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use steward_kernel::audit::chain::{Head, Sealed};
use steward_kernel::audit::{Format, Span, export_journal, verify, verify_journal};
use steward_kernel::provider::{Judgement, Witness};
use steward_kernel::{JournalQuery, JournalRow, Kernel, SysError};

use crate::bed::{Bed, Person, chat, life, read, results, write};

/// Signs in a way that anybody could; it remembers what it signed.
#[derive(Default)]
struct StandInWitness(Mutex<Option<Sealed>>);

impl StandInWitness {
    fn sign(head: Head) -> Sealed {
        Sealed {
            head,
            key: "stand-in".to_owned(),
            signature: String::from_utf8(head.statement()).unwrap(),
        }
    }
}

impl Witness for StandInWitness {
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError> {
        let sealed = Self::sign(*head);
        *self.0.lock().unwrap() = Some(sealed.clone());
        Ok(Some(sealed))
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn judge(&self, sealed: &Sealed) -> Judgement {
        match sealed == &Self::sign(sealed.head) {
            true => Judgement::Genuine,
            false => Judgement::Forged,
        }
    }
}

fn open(bed: &Bed, witness: &Arc<StandInWitness>) -> Kernel {
    let mut opening = bed.opening();
    opening.providers.witness = witness.clone();
    opening.open()
}

async fn told(kernel: &Kernel, ask: impl FnOnce(&mut JournalQuery)) -> Vec<JournalRow> {
    let mut query = JournalQuery::default();
    ask(&mut query);
    kernel.journal(query).await.unwrap()
}

fn one(rows: Vec<JournalRow>) -> JournalRow {
    let [row] = <[JournalRow; 1]>::try_from(rows).unwrap_or_else(|all| panic!("{all:#?}"));
    row
}

#[test]
fn every_row_of_a_call_tells_on_what_by_which_right_and_whose_yes() {
    let bed = Bed::with(&[("f", "old"), ("g", "old")]);
    life(async {
        let kernel = bed.kernel();
        let mut person = Person::of(&kernel);
        let calls = [
            read("f"),
            write("f", "new"),
            write("g", "new"),
            read("../out/f"),
        ];
        let pid = bed.start(&kernel, &calls).await;
        let asked = person.is_asked().await;
        person.says(&asked, true).await;
        let asked = person.is_asked().await;
        person.says(&asked, false).await;
        results(&kernel, pid).await;
        let whole = |name: &str| format!("{}/workspace/{name}", bed.path().display());

        let seen = one(told(&kernel, |q| q.name = Some("fs.read".into()))
            .await
            .into_iter()
            .filter(|row| row.seq == Some(1))
            .collect());
        assert_eq!(seen.resource, Some(whole("f")));
        assert_eq!(seen.decision.as_deref(), Some("allow"));
        let by = format!("capability {}", seen.capability.unwrap());
        assert_eq!(seen.by, Some(by));
        assert!(seen.wait_ms.is_some() && seen.run_ms.is_some());

        let of_f = told(&kernel, |q| {
            (q.name, q.resource) = (Some("fs.write".into()), Some(whole("f")));
        })
        .await;
        let story: Vec<_> = of_f
            .iter()
            .rev()
            .map(|row| (row.kind.as_str(), row.decision.as_deref()))
            .collect();
        assert_eq!(
            story,
            [
                ("intent", None),
                ("approval", Some("ask")),
                ("decision", Some("yes")),
                ("executing", Some("yes")),
                ("outcome", Some("yes")),
            ]
        );
        let once = of_f[0].capability;
        assert!(once.is_some() && once == of_f[1].capability && once == of_f[2].capability);
        let by_test = told(&kernel, |q| q.by = Some("test".into())).await;
        assert_eq!(by_test.len(), 2, "{by_test:#?}");
        let no = one(told(&kernel, |q| {
            (q.decision, q.kind) = (Some("no".into()), Some("outcome".into()));
        })
        .await);
        assert_eq!(no.resource, Some(whole("g")));
        let denied = one(told(&kernel, |q| q.decision = Some("deny".into())).await);
        assert_eq!((denied.name.as_str(), denied.seq), ("fs.read", Some(4)));
    });
}

#[test]
fn the_journal_of_real_runs_is_whole_over_restarts_and_a_removed_end_is_seen() {
    let bed = Bed::with(&[("f", "old")]);
    let witness = Arc::new(StandInWitness::default());
    for _ in 0..2 {
        life(async {
            let kernel = open(&bed, &witness);
            Person::of(&kernel).always_says(true);
            let pid = bed.start(&kernel, &[read("f"), write("f", "new")]).await;
            results(&kernel, pid).await;
            let told = kernel.verify().await.unwrap();
            assert!(told.whole && told.rows >= 8, "{told:?}");
        });
    }
    let told = verify_journal(&bed.journal(), witness.as_ref()).unwrap();
    assert!(told.whole, "{told:?}");
    bed.database()
        .execute_batch(
            "DROP TRIGGER journal_is_append_only_delete;
             DELETE FROM journal WHERE id = (SELECT MAX(id) FROM journal)",
        )
        .unwrap();
    let told = verify_journal(&bed.journal(), witness.as_ref()).unwrap();
    let found: Vec<_> = told.findings.iter().map(|finding| finding.what).collect();
    assert!(found.contains(&verify::What::TailRemoved), "{told:?}");
}

#[test]
fn a_run_is_exported_as_spans_with_the_model_and_its_tokens() {
    let bed = Bed::with(&[("f", "old")]);
    life(async {
        let kernel = bed.kernel();
        let pid = bed.start(&kernel, &[chat(), read("f")]).await;
        results(&kernel, pid).await;
    });
    let mut out = Vec::new();
    export_journal(&bed.journal(), Format::Otel, Span::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let trace: Value = serde_json::from_str(text.trim()).unwrap();
    let spans = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let named = |start: &str| -> Value {
        let mut all = spans.as_array().unwrap().iter();
        let found = all.find(|span| span["name"].as_str().unwrap().starts_with(start));
        found
            .unwrap_or_else(|| panic!("no {start} in {spans:#}"))
            .clone()
    };
    let attribute = |of: &Value, key: &str| -> Value {
        let mut all = of["attributes"].as_array().unwrap().iter();
        let found = all.find(|attribute| attribute["key"] == key);
        found.unwrap_or_else(|| panic!("no {key} in {of:#}"))["value"].clone()
    };
    let agent = named("invoke_agent script");
    let chat = named("chat ");
    assert_eq!(chat["parentSpanId"], agent["spanId"]);
    assert!(attribute(&chat, "gen_ai.request.model")["stringValue"].is_string());
    assert!(attribute(&chat, "gen_ai.usage.input_tokens")["intValue"].is_string());
    assert_eq!(
        attribute(&named("execute_tool fs.read"), "steward.decision")["stringValue"],
        "allow"
    );
}
