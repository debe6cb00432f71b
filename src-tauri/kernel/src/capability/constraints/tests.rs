#![allow(clippy::unwrap_used)]
use super::*;

/// Minutes of a day as a wall time.
fn at(clock: &str) -> u64 {
    let (hours, minutes) = clock.split_once(':').unwrap();
    let minutes = hours.parse::<u64>().unwrap() * 60 + minutes.parse::<u64>().unwrap();
    (19_000 * 24 * 60 + minutes) * 60_000
}

fn words(text: &str) -> Option<Vec<String>> {
    Some(text.split(' ').map(str::to_owned).collect())
}

#[test]
fn each_constraint_holds_or_tells_why_not() {
    let path = |path: &str| Facts {
        path: Some(path.to_owned()),
        ..Facts::default()
    };
    let argv = |argv| Facts {
        argv: words(argv),
        ..Facts::default()
    };
    let request = |method: &str, host: &str| Facts {
        host: Some(host.to_owned()),
        method: Some(method.to_owned()),
        ..Facts::default()
    };
    let sized = |bytes, count| Facts {
        bytes: Some(bytes),
        count: Some(count),
        ..Facts::default()
    };
    let no = |why: &str| Holds::No(why.to_owned());
    let noon = at("12:00");
    let office = r#"{"daily":{"from":"09:00","to":"17:00"}}"#;
    let night = r#"{"daily":{"from":"22:00","to":"06:00","utc_offset_minutes":60}}"#;
    let closed = no("it holds from 09:00 to 17:00 UTC only");
    let light = no("it holds from 22:00 to 06:00 UTC+01:00 only");
    let out = |path: &str| no(&format!("the path `{path}` is not in `docs/**`"));
    let docs = r#"{"paths":["docs/**"]}"#;
    let git = r#"{"argv":[["git","status","..."],["git","log"]]}"#;
    let web = r#"{"hosts":["*.example.org"],"methods":["GET"]}"#;
    let small = r#"{"max_bytes":10,"max_count":2}"#;
    let rows = [
        ("{}", Facts::default(), 0, Holds::Yes),
        (docs, path("docs/a"), 0, Holds::Yes),
        (docs, path("docs/./a"), 0, Holds::Yes),
        (docs, path("src/a"), 0, out("src/a")),
        (docs, path("docs/../src/a"), 0, out("docs/../src/a")),
        (docs, path("/docs/a"), 0, out("/docs/a")),
        (docs, Facts::default(), 0, Holds::Unknown("the path")),
        (git, argv("git status -s"), 0, Holds::Yes),
        (git, argv("git log"), 0, Holds::Yes),
        (
            git,
            argv("git log -p"),
            0,
            no("the command is not `git status ...` or `git log`"),
        ),
        (web, request("GET", "a.example.org"), 0, Holds::Yes),
        (
            web,
            request("POST", "a.example.org"),
            0,
            no("the method is not `GET`"),
        ),
        (
            web,
            request("GET", "example.com"),
            0,
            no("the host is not `*.example.org`"),
        ),
        (small, sized(10, 2), 0, Holds::Yes),
        (
            small,
            sized(11, 2),
            0,
            no("the number of bytes, 11, is over 10"),
        ),
        (
            small,
            sized(10, 3),
            0,
            no("the number of things, 3, is over 2"),
        ),
        (
            small,
            Facts::default(),
            0,
            Holds::Unknown("the number of bytes"),
        ),
        (office, Facts::default(), noon, Holds::Yes),
        (office, Facts::default(), at("09:00"), Holds::Yes),
        (office, Facts::default(), at("17:00"), closed),
        (night, Facts::default(), at("21:00"), Holds::Yes),
        (night, Facts::default(), at("04:59"), Holds::Yes),
        (night, Facts::default(), at("05:00"), light),
        (r#"{"not_after_ms":5}"#, Facts::default(), 4, Holds::Yes),
        (
            r#"{"not_after_ms":5}"#,
            Facts::default(),
            5,
            no("its time is over"),
        ),
        (
            r#"{"not_before_ms":5}"#,
            Facts::default(),
            4,
            no("its time has not come"),
        ),
    ];
    for (constraints, facts, wall_ms, holds) in rows {
        let read = Constraints::parse(constraints).unwrap();
        assert_eq!(read.hold(&facts, wall_ms), holds, "{constraints} {facts:?}");
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(Constraints::parse(&again).unwrap(), read);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let many = format!(r#"{{"paths":[{}]}}"#, vec![r#""a""#; 65].join(","));
    let rows = [
        ("", "line 1"),
        ("[", "line 1"),
        ("{}{}", "line 1 column 3"),
        (r#"{"path":["a"]}"#, "unknown field `path`"),
        (
            r#"{"paths":["a"],"paths":["**"]}"#,
            "duplicate field `paths`",
        ),
        (r#"{"paths":[]}"#, "`paths`"),
        (r#"{"paths":["ok","../up"]}"#, "`paths[1]`"),
        (r#"{"paths":["["]}"#, "`paths[0]`"),
        (r#"{"argv":[["git"],["*"]]}"#, "`argv[1]`"),
        (r#"{"hosts":["http://a"]}"#, "`hosts[0]`"),
        (r#"{"methods":["get"]}"#, "`methods[0]`"),
        (r#"{"max_bytes":-1}"#, "`max_bytes`"),
        (r#"{"daily":{"from":"9:00","to":"17:00"}}"#, "`daily`"),
        (r#"{"daily":{"from":"09:00","to":"09:00"}}"#, "`daily`"),
        (&many, "`65`"),
    ];
    for (text, place) in rows {
        let error = Constraints::parse(text).unwrap_err();
        assert_eq!(error.code, Code::Invalid, "{text}");
        assert!(
            error.message.contains(place) && error.hint.is_some(),
            "{text}: {error}"
        );
    }
    let long = format!(r#"{{"paths":["{}"]}}"#, "a".repeat(CONSTRAINTS_MOST));
    assert_eq!(Constraints::parse(&long).unwrap_err().code, Code::Limit);
}

#[test]
fn tighter_constraints_are_within_looser_ones() {
    let rows = [
        (
            r#"{"paths":["docs/a"]}"#,
            r#"{"paths":["src/**","docs/**"]}"#,
            true,
        ),
        (
            r#"{"paths":["docs/a","x"]}"#,
            r#"{"paths":["docs/**"]}"#,
            false,
        ),
        ("{}", r#"{"paths":["**"]}"#, false),
        (r#"{"paths":["a"]}"#, "{}", true),
        (r#"{"max_bytes":5}"#, r#"{"max_bytes":6}"#, true),
        (r#"{"max_bytes":7}"#, r#"{"max_bytes":6}"#, false),
        (
            r#"{"methods":["GET"]}"#,
            r#"{"methods":["GET","PUT"]}"#,
            true,
        ),
        (r#"{"not_after_ms":7}"#, r#"{"not_after_ms":6}"#, false),
        (r#"{"not_before_ms":7}"#, r#"{"not_before_ms":6}"#, true),
        (
            r#"{"daily":{"from":"23:00","to":"01:00"}}"#,
            r#"{"daily":{"from":"22:00","to":"06:00"}}"#,
            true,
        ),
        (
            r#"{"daily":{"from":"05:00","to":"07:00"}}"#,
            r#"{"daily":{"from":"22:00","to":"06:00"}}"#,
            false,
        ),
        (
            r#"{"daily":{"from":"10:00","to":"11:00","utc_offset_minutes":60}}"#,
            r#"{"daily":{"from":"09:00","to":"10:00"}}"#,
            true,
        ),
    ];
    for (mine, theirs, within) in rows {
        let (mine, theirs) = (
            Constraints::parse(mine).unwrap(),
            Constraints::parse(theirs).unwrap(),
        );
        assert_eq!(mine.within(&theirs), within, "{mine} in {theirs}");
    }
}
