#![allow(clippy::unwrap_used)]

use super::*;

const CODER: &str = "\
name: coder
version: 3
about: changes code until its tests pass
system_prompt: |
  You write code.
  Small steps.
tools: [find, read, write]
context:
  tokens: 900
  drop: [observation, message]
needs:
  - { on: workspace, rights: [read] }
  - on: workspace
    rights: [write, delete]
    stance: ask
budget: { tokens: 20000, children: 2 }
loop:
  max_steps: 40
";

#[test]
fn an_image_reads_as_written() {
    let image = read(CODER).unwrap();
    assert_eq!((image.name.as_str(), image.version), ("coder", 3));
    assert_eq!(image.system_prompt, "You write code.\nSmall steps.\n");
    assert_eq!(image.tools, ["find", "read", "write"]);
    assert_eq!((image.context.tokens, image.context.drop.len()), (900, 2));
    assert_eq!(image.needs.len(), 2);
    assert_eq!(
        (image.budget.tokens, image.budget.calls),
        (Some(20_000), None)
    );
    assert_eq!((image.bounds.max_steps, image.bounds.max_retries), (40, 2));
}

#[test]
fn the_digest_is_of_what_it_says_and_not_of_its_layout() {
    let image = read(CODER).unwrap();
    let spread = CODER.replace("[find, read, write]", "\n  - find\n  - \"read\"\n  - write");
    assert_eq!(read(&spread).unwrap().digest(), image.digest());
    assert_eq!(read(&image.to_yaml()).unwrap(), image);
    let changed = CODER.replace("Small steps", "Large steps");
    assert_ne!(read(&changed).unwrap().digest(), image.digest());
}

#[test]
fn an_error_names_line_column_and_field_and_what_to_do() {
    let with = |from: &str, to: &str| CODER.replacen(from, to, 1);
    let rows = [
        (
            with("version: 3", "version: 0"),
            (2, 10),
            "version",
            "`0` is not between 1 and 1000000",
        ),
        (
            with("version: 3", "version: x"),
            (2, 10),
            "version",
            "the value is no",
        ),
        (
            with("version: 3", "versoin: 3"),
            (2, 1),
            "versoin",
            "there is no field",
        ),
        (
            with("name: coder", "name: The Coder"),
            (1, 7),
            "name",
            "`The Coder` is no name",
        ),
        (
            with("name: coder", "name:"),
            (1, 5),
            "name",
            "the value is empty",
        ),
        (
            with("[find, read", "[find, re ad"),
            (7, 15),
            "tools[1]",
            "`re ad` is no name of a tool",
        ),
        (
            with("[find, read", "[find, find"),
            (7, 8),
            "tools",
            "tool `find` is named twice",
        ),
        (
            with("rights: [read]", "rights: [fly]"),
            (12, 31),
            "needs[0].rights[0]",
            "`fly` is no word",
        ),
        (
            with("rights: [read]", "rights: []"),
            (12, 30),
            "needs[0].rights",
            "it names no right",
        ),
        (
            with("stance: ask", "stance: deny"),
            (15, 13),
            "needs[1].stance",
            "`deny` is no need",
        ),
        (
            with("on: workspace", "on: heaven"),
            (12, 11),
            "needs[0].on",
            "`heaven` is no word",
        ),
        (
            with("on: workspace", "on: [heaven]"),
            (12, 11),
            "needs[0].on",
            "where a word belongs",
        ),
        (
            with("max_steps: 40", "max_steps: -1"),
            (18, 14),
            "loop.max_steps",
            "the value is no",
        ),
        (
            with("version: 3", "name: b"),
            (2, 1),
            "",
            "the field `name` is there twice",
        ),
        (
            with("[find, read, write]", "[find, read"),
            (8, 8),
            "tools",
            "no YAML",
        ),
        (
            with("about: changes code until its tests pass\n", ""),
            (1, 1),
            "",
            "`about` is missing",
        ),
        (
            format!("{CODER}---\nname: x\n"),
            (20, 1),
            "",
            "more than one document",
        ),
        ("- a\n- b\n".to_owned(), (1, 1), "", ""),
    ];
    let mut wrong = Vec::new();
    for (yaml, place, field, message) in rows {
        let error = read(&yaml).unwrap_err();
        let as_told = error.message.contains(message) && error.field == field;
        if !as_told || (error.line, error.column) != place || error.hint.is_empty() {
            wrong.push(format!(
                "{place:?} {field} {message}: {error} / {}",
                error.hint
            ));
        }
        let told = error.into_sys().message;
        assert!(
            told.starts_with("the image cannot be read: line "),
            "{told}"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_tool_that_is_not_there_is_told_with_its_place() {
    let known = ["find".to_owned(), "write".to_owned()];
    let error = read(CODER).unwrap().check_tools(CODER, &known).unwrap_err();
    assert_eq!(
        (error.line, error.column, error.field.as_str()),
        (7, 15, "tools[1]")
    );
    assert_eq!(error.hint, "use one of: find, write");
}

#[test]
fn a_text_made_to_exhaust_is_refused() {
    let laughs: String = (1..40)
        .map(|n| format!("a{n}: &a{n} [*a{}, *a{}, *a{}]\n", n - 1, n - 1, n - 1))
        .collect();
    let long = format!("{CODER}# {}", "x".repeat(YAML_MOST));
    let rows = [
        format!("a0: &a0 [lol]\n{laughs}"),
        format!("name: {}", "[".repeat(10_000)),
        format!("name: {}", "{a: ".repeat(5_000)),
        format!("tools: [{}]", "a,".repeat(20_000)),
        "name: &a [*a]".to_owned(),
        format!("{CODER}extra: !!python/object:os.system x"),
        format!("{CODER}<<: {{version: 4}}"),
        long,
    ];
    for yaml in rows {
        let error = read(&yaml).unwrap_err();
        assert!(error.to_string().len() < 600, "{error}");
    }
    assert!(
        read_bytes(b"name: \xff")
            .unwrap_err()
            .message
            .contains("byte `6`")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(
        cut in 0..CODER.len(),
        noise in "[\\x00-\\x7f]{0,8}",
        anything in "\\PC{0,64}",
    ) {
        let mut yaml = CODER.to_owned();
        yaml.insert_str(cut, &noise);
        for text in [&yaml, &CODER[..cut].to_owned(), &anything] {
            if let Ok(image) = read(text) {
                proptest::prop_assert_eq!(read(&image.to_yaml()), Ok(image));
            }
        }
    }
}

#[test]
fn the_published_schema_is_that_of_the_type() {
    let published = include_str!("../../../../docs/image.schema.json");
    let published: serde_json::Value = serde_json::from_str(published).unwrap();
    assert_eq!(
        published,
        Image::schema(),
        "run: cargo run -p steward-kernel --example image_schema > docs/image.schema.json"
    );
}

#[test]
fn the_documented_example_is_an_image() {
    let page = include_str!("../../../../docs/images.md");
    let yaml = page.split("```yaml\n").nth(1).unwrap();
    let image = read(yaml.split("```").next().unwrap()).unwrap();
    assert_eq!((image.name.as_str(), image.needs.len()), ("archivist", 3));
}
