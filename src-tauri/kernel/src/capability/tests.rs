//! Rows for the judge, and the proof that what is passed on is never looser.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::error::Code;

const NOW_MS: u64 = 19_000 * 24 * 60 * 60_000;

fn now() -> Now {
    Now {
        wall_ms: NOW_MS,
        steady: Steady {
            boot: "a".into(),
            ms: 1_000,
        },
    }
}

fn held(id: CapabilityId, grant: Grant) -> Capability {
    Capability {
        id,
        subject: Pid(1),
        lease: grant.lease_ms.map(|ms| Lease::of(ms, &now().steady)),
        grant,
        parent: None,
        issuer: "person".to_owned(),
        issued_ms: NOW_MS,
        status: Status::Active,
    }
}

fn workspace() -> Resource {
    Resource::Workspace {
        root: PathBuf::from("/w"),
    }
}

fn writes(stance: Stance, constraints: &str) -> Grant {
    let grant = Grant::new(workspace(), [Right::Write], stance);
    grant.under(Constraints::parse(constraints).unwrap())
}

/// What is said to writing a path, and by which of the capabilities, numbered from 0.
fn says(grants: &[Grant], path: &str) -> Option<(Stance, CapabilityId)> {
    let all: Vec<Capability> = (0..)
        .zip(grants)
        .map(|(id, g)| held(id, g.clone()))
        .collect();
    let need = Need::new(workspace(), Right::Write).at(path);
    let verdict = decide(&all, &need, &now());
    let told = explain(&all, &need, &now());
    let decided = verdict.as_ref().map(|v| (v.stance, v.by)).ok();
    match decided {
        Some((stance, by)) => assert_eq!((told.stance, told.by), (stance, Some(by))),
        None => assert_eq!(told.stance, Stance::Deny),
    }
    decided
}

#[test]
fn deny_wins_and_of_ask_and_allow_the_tighter_counts() {
    use Stance::{Allow, Ask, Deny};
    const DOCS: &str = r#"{"paths":["docs/**"]}"#;
    const SMALL: &str = r#"{"max_bytes":10}"#;
    type Row = (&'static [(Stance, &'static str)], Option<(Stance, u64)>);
    let rows: [Row; 15] = [
        (&[], None),
        (&[(Allow, "{}")], Some((Allow, 0))),
        (&[(Ask, "{}")], Some((Ask, 0))),
        (&[(Allow, "{}"), (Ask, "{}")], Some((Ask, 1))),
        (&[(Allow, "{}"), (Deny, "{}")], None),
        (&[(Deny, DOCS), (Allow, "{}")], None),
        (
            &[(Deny, r#"{"paths":["src/**"]}"#), (Allow, "{}")],
            Some((Allow, 1)),
        ),
        // Asks in general, allows here.
        (&[(Ask, "{}"), (Allow, DOCS)], Some((Allow, 1))),
        // Allows in general, asks here.
        (&[(Allow, "{}"), (Ask, DOCS)], Some((Ask, 1))),
        (&[(Allow, DOCS), (Ask, DOCS)], Some((Ask, 1))),
        // Neither is the tighter one.
        (
            &[(Allow, r#"{"paths":["**/a"]}"#), (Ask, DOCS)],
            Some((Ask, 1)),
        ),
        // The size is not known: not enough to allow, enough to deny.
        (&[(Allow, SMALL)], None),
        (&[(Ask, SMALL), (Allow, "{}")], Some((Allow, 1))),
        (&[(Allow, "{}"), (Deny, SMALL)], None),
        (
            &[(Ask, "{}"), (Ask, DOCS), (Allow, r#"{"paths":["docs/a"]}"#)],
            Some((Allow, 2)),
        ),
    ];
    for (grants, expected) in rows {
        let made: Vec<Grant> = grants.iter().map(|(s, c)| writes(*s, c)).collect();
        assert_eq!(says(&made, "docs/a"), expected, "{grants:?}");
    }
}

#[test]
fn what_no_longer_counts_covers_nothing_and_says_why() {
    let need = Need::new(workspace(), Right::Write).at("f");
    let rows = [
        (Status::Active, Some(10), None),
        (Status::Active, Some(0), Some("capability 7 has expired")),
        (Status::Expired, None, Some("capability 7 has expired")),
        (Status::Revoked, None, Some("capability 7 was taken back")),
        (Status::Spent, None, Some("capability 7 is used up")),
        (
            Status::Ended,
            None,
            Some("capability 7 ended with its holder"),
        ),
    ];
    for (status, left, why) in rows {
        let mut capability = held(7, writes(Stance::Allow, "{}"));
        capability.status = status;
        capability.lease = left.map(|ms| Lease::of(ms, &now().steady));
        let decided = decide(&[capability], &need, &now());
        match why {
            None => assert!(decided.is_ok(), "{status:?}"),
            Some(why) => {
                let error = decided.unwrap_err();
                assert_eq!(error.code, Code::Denied);
                let message = format!("writing `f` in the workspace `/w` is not allowed: {why}");
                assert_eq!(error.message, message);
                assert!(error.hint.is_some());
            }
        }
    }
}

#[test]
fn a_decision_carries_its_reason() {
    let all = [
        held(1, Grant::allow(Resource::Clock, [Right::Use])),
        held(2, Grant::allow(workspace(), [Right::Read])),
        held(3, Grant::ask(workspace(), [Right::Write, Right::Delete])),
        held(
            4,
            writes(Stance::Allow, r#"{"paths":["docs/*.md"],"max_bytes":100}"#).times(3),
        ),
        held(
            5,
            writes(Stance::Deny, r#"{"paths":["secret/**"]}"#).lasting(600_000),
        ),
    ];
    let need = Need::new(workspace(), Right::Write)
        .at("docs/a.md")
        .of_bytes(50);
    let told = explain(&all, &need, &now());
    assert_eq!(
        told.to_string(),
        "writing `docs/a.md` in the workspace `/w`: allowed, by capability 4
  capability 1, allows using the clock: is about something else
  capability 2, allows reading the workspace `/w`: gives other rights
  capability 3, asks before writing and deleting the workspace `/w`: covers it
  capability 4, allows writing the workspace `/w`, paths `docs/*.md`, at most 100 bytes, 3 times: covers it
  capability 5, denies writing the workspace `/w`, paths `secret/**`, for 10 minutes: does not hold: the path `docs/a.md` is not in `secret/**`
"
    );
    let need = need.of_bytes(101);
    assert_eq!(explain(&all, &need, &now()).by, Some(3));
    let need = Need::new(Resource::Network, Right::Use);
    let told = explain(&all, &need, &now()).to_string();
    let first = told.lines().next();
    assert_eq!(
        first,
        Some("using the network: denied, because nothing that is held covers it")
    );
}

#[test]
fn namespaces_cover_what_lies_beneath_them() {
    let objects = |namespace: &str| Resource::Objects {
        namespace: namespace.to_owned(),
    };
    let rows = [
        ("proc/7", "proc/7", true),
        ("proc/7", "proc/7/notes", true),
        ("proc/7", "proc/70", false),
        ("proc/7/notes", "proc/7", false),
    ];
    for (all, part, covers) in rows {
        assert_eq!(objects(all).covers(&objects(part)), covers, "{all} {part}");
    }
}

#[test]
fn a_wish_is_cut_to_what_is_held() {
    let docs = r#"{"paths":["docs/**"]}"#;
    let allow = |constraints| writes(Stance::Allow, constraints);
    let once_more = |depth| Grant {
        depth: Some(depth),
        ..allow("{}")
    };
    /// What is held, what is wanted, and what is given or the code of the refusal.
    type Row = (Vec<Grant>, Grant, Result<Vec<Grant>, Code>);
    let rows: Vec<Row> = vec![
        (vec![], allow("{}"), Err(Code::Denied)),
        (vec![allow("{}")], allow("{}"), Ok(vec![allow("{}")])),
        (vec![allow("{}")], allow(docs), Ok(vec![allow(docs)])),
        (vec![allow(docs)], allow("{}"), Ok(vec![allow(docs)])),
        (
            vec![allow(docs)],
            allow(r#"{"paths":["src/**"]}"#),
            Err(Code::Denied),
        ),
        (
            vec![writes(Stance::Ask, "{}")],
            allow("{}"),
            Ok(vec![writes(Stance::Ask, "{}")]),
        ),
        (
            vec![allow("{}").times(2)],
            allow("{}").times(5),
            Ok(vec![allow("{}").times(2)]),
        ),
        (
            vec![allow("{}").lasting(50)],
            allow("{}"),
            Ok(vec![allow("{}").lasting(50)]),
        ),
        (vec![once_more(1)], allow("{}"), Ok(vec![once_more(0)])),
        (vec![once_more(0)], allow("{}"), Err(Code::Denied)),
        (
            vec![allow("{}")],
            Grant {
                rights: vec![],
                ..allow("{}")
            },
            Err(Code::Invalid),
        ),
        (vec![allow("{}")], allow("{}").times(0), Err(Code::Invalid)),
        // A deny that covers the wish refuses it; one that lies over a part goes with it.
        (
            vec![allow("{}"), writes(Stance::Deny, docs)],
            allow(docs),
            Err(Code::Denied),
        ),
        (
            vec![allow("{}"), writes(Stance::Deny, docs)],
            allow("{}"),
            Ok(vec![allow("{}"), writes(Stance::Deny, docs)]),
        ),
        // What is asked about in part is asked about.
        (
            vec![allow("{}"), writes(Stance::Ask, docs)],
            allow("{}"),
            Ok(vec![writes(Stance::Ask, "{}")]),
        ),
        (
            vec![writes(Stance::Ask, "{}"), allow(docs)],
            allow(docs),
            Ok(vec![allow(docs)]),
        ),
    ];
    for (mine, want, expected) in rows {
        let all: Vec<Capability> = (0..)
            .zip(&mine)
            .map(|(id, g)| held(id, g.clone()))
            .collect();
        let given = narrow(&all, std::slice::from_ref(&want), &now());
        let got = given.map(|all| all.into_iter().map(|(grant, _)| grant).collect::<Vec<_>>());
        assert_eq!(got.map_err(|e| e.code), expected, "{mine:?} → {want:?}");
    }
}

#[test]
fn each_right_hangs_on_the_capability_it_comes_from() {
    let clock = |rights: &[Right]| Grant::ask(Resource::Clock, rights);
    let all = [
        held(7, clock(&[Right::Write])),
        held(8, clock(&[Right::Delete])),
    ];
    let given = narrow(&all, &[clock(&[Right::Write, Right::Delete])], &now()).unwrap();
    assert_eq!(
        given,
        [(clock(&[Right::Write]), 7), (clock(&[Right::Delete]), 8)]
    );
    let all = [held(7, clock(&[Right::Write, Right::Delete]))];
    let given = narrow(&all, &[clock(&[Right::Write, Right::Delete])], &now()).unwrap();
    assert_eq!(given, [(clock(&[Right::Write, Right::Delete]), 7)]);
}

fn any_constraints() -> impl Strategy<Value = Constraints> {
    const GLOBS: &[&str] = &[
        "**", "a/**", "a/*", "a/b/**", "a/b", "b/**", "*/b", "**/b", "{a,b}/b", "b",
    ];
    let paths = proptest::option::weighted(0.6, proptest::collection::vec(select(GLOBS), 1..3));
    let bytes = proptest::option::weighted(0.3, 0..4_u64);
    let hours = proptest::option::weighted(0.2, (0..24_u32, 0..24_u32));
    (paths, bytes, hours).prop_map(|(paths, bytes, hours)| {
        let mut text = serde_json::Map::new();
        if let Some(paths) = paths {
            text.insert("paths".to_owned(), paths.into());
        }
        if let Some(bytes) = bytes {
            text.insert("max_bytes".to_owned(), bytes.into());
        }
        if let Some((from, to)) = hours.filter(|(from, to)| from != to) {
            let clock = |hour| format!("{hour:02}:00");
            let daily = serde_json::json!({ "from": clock(from), "to": clock(to) });
            text.insert("daily".to_owned(), daily);
        }
        Constraints::parse(&serde_json::Value::from(text).to_string()).unwrap()
    })
}

fn any_resource() -> impl Strategy<Value = Resource> {
    let objects = |namespace: &str| Resource::Objects {
        namespace: namespace.to_owned(),
    };
    select(vec![
        workspace(),
        workspace(),
        objects("x"),
        objects("x/y"),
        Resource::Clock,
    ])
}

fn any_right() -> impl Strategy<Value = Right> {
    select(&[Right::Read, Right::Write, Right::Admin][..])
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let rights = proptest::collection::vec(any_right(), 1..3);
    let stance = select(&[Stance::Allow, Stance::Allow, Stance::Ask, Stance::Deny][..]);
    let limits = (
        proptest::option::weighted(0.2, 1..3_u32),
        proptest::option::weighted(0.2, 1..50_u64),
        proptest::option::weighted(0.2, 0..3_u32),
    );
    (any_resource(), rights, stance, any_constraints(), limits).prop_map(
        |(resource, rights, stance, constraints, (uses, lease_ms, depth))| Grant {
            resource,
            rights,
            stance,
            uses,
            constraints,
            lease_ms,
            depth,
        },
    )
}

fn any_need() -> impl Strategy<Value = Need> {
    const PATHS: &[&str] = &["", "a", "b", "a/b", "a/c", "b/b", "a/b/c", "a/../b", "c"];
    let path = proptest::option::weighted(0.9, select(PATHS));
    let bytes = proptest::option::weighted(0.8, 0..4_u64);
    (any_resource(), any_right(), path, bytes).prop_map(|(resource, right, path, bytes)| {
        let facts = Facts {
            path: path.map(str::to_owned),
            bytes,
            ..Facts::default()
        };
        Need::new(resource, right).with(facts)
    })
}

/// How loose a decision is.
fn looseness(held: &[Capability], need: &Need, now: &Now) -> u8 {
    match decide(held, need, now).map(|verdict| verdict.stance) {
        Ok(Stance::Allow) => 2,
        Ok(Stance::Ask) => 1,
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_childs_decision_is_never_looser_than_its_parents(
        mine in proptest::collection::vec(any_grant(), 0..6),
        wanted in proptest::collection::vec(any_grant(), 1..4),
        needs in proptest::collection::vec(any_need(), 1..20),
        later in (0..60_u64, 0..24_u64),
    ) {
        let parent: Vec<Capability> = (1..).zip(mine).map(|(id, g)| held(id, g)).collect();
        // One wish at a time, so that a refusal of one leaves the others to be looked at.
        let mut child: Vec<Capability> = Vec::new();
        for want in wanted {
            for (grant, from) in narrow(&parent, &[want], &now()).unwrap_or_default() {
                let source = parent.iter().find(|c| c.id == from).unwrap();
                prop_assert!(grant.uses.unwrap_or(u32::MAX) <= source.grant.uses.unwrap_or(u32::MAX));
                let lease = Lease::granted(&grant, source.lease.as_ref(), &now().steady);
                let id = child.len() as u64 + 100;
                child.push(Capability { lease, parent: Some(from), ..held(id, grant) });
            }
        }
        let mut then = now();
        then.steady.ms += later.0;
        then.wall_ms += later.1 * 3_600_000;
        for need in needs {
            let (childs, parents) =
                (looseness(&child, &need, &then), looseness(&parent, &need, &then));
            prop_assert!(childs <= parents, "{need}: {child:#?}\nfrom {parent:#?}");
        }
    }

    #[test]
    fn constraints_within_others_hold_only_where_those_do(
        mine in any_constraints(),
        theirs in any_constraints(),
        need in any_need(),
        hour in 0..24_u64,
    ) {
        let at = NOW_MS + hour * 3_600_000;
        let tighter = mine.clone().or(&theirs);
        for these in [mine, tighter] {
            if these.within(&theirs) && these.hold(&need.facts, at) == Holds::Yes {
                prop_assert_eq!(theirs.hold(&need.facts, at), Holds::Yes);
            }
        }
    }
}
