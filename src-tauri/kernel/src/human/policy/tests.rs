#![allow(clippy::unwrap_used)]
use super::*;
use crate::capability::{Grant, Resource, Right, Status, Steady};

fn act(kind: Option<EffectKind>) -> Act {
    Act {
        action: "fs.write",
        kind,
        workspace: "/w".into(),
        image: "base".to_owned(),
        run: 7,
        pid: Pid(8),
    }
}

fn standing(id: u64, policy: Policy, scope: Scope) -> Standing {
    Standing {
        id,
        action: "fs.write".to_owned(),
        scope,
        policy,
        words: String::new(),
        by: "test".to_owned(),
        issued_ms: 0,
        uses_left: None,
        used: 0,
        revoked_ms: None,
        revoked_by: None,
    }
}

fn below(folder: &str) -> Scope {
    Scope {
        workspace: Some("/w".into()),
        place: Some(Place::Folder(folder.to_owned())),
        ..Scope::default()
    }
}

/// What is said to a write at `docs/a`, and by which policy, where the capability says `stance`.
fn ruled(stance: Stance, all: &[Standing]) -> Option<(Stance, Option<u64>)> {
    let resource = Resource::Workspace { root: "/w".into() };
    let held = Capability {
        id: 1,
        subject: Pid(8),
        grant: Grant::new(resource.clone(), [Right::Write], stance),
        parent: None,
        issuer: "person".to_owned(),
        issued_ms: 0,
        lease: None,
        status: Status::Active,
    };
    let now = Now {
        wall_ms: 0,
        steady: Steady {
            boot: "a".to_owned(),
            ms: 0,
        },
    };
    let needs = [Need::new(resource, Right::Write).at("docs/a")];
    let kind = Some(EffectKind::Create);
    let ruling = rule(&[held], all, &needs, &act(kind), &now).ok()?;
    Some((ruling.verdict.stance, ruling.verdict.standing))
}

#[test]
fn a_policy_turns_what_the_capabilities_say() {
    use Policy::{AllowOnce, AlwaysAllow, AlwaysDeny, AskEachTime};
    use Stance::{Allow, Ask, Deny};
    let one = |policy, scope| vec![standing(3, policy, scope)];
    let everywhere = Scope::default;
    let spent = Standing {
        uses_left: Some(0),
        ..standing(3, AllowOnce, everywhere())
    };
    let revoked = Standing {
        revoked_ms: Some(1),
        ..standing(3, AlwaysAllow, everywhere())
    };
    let other = Standing {
        action: "fs.delete".to_owned(),
        ..standing(3, AlwaysAllow, everywhere())
    };
    let of = |kind| Scope {
        kind: Some(kind),
        ..everywhere()
    };
    let in_run = |run| Scope {
        run: Some(run),
        ..everywhere()
    };
    let rows = [
        (Ask, vec![], Some((Ask, None))),
        (Ask, one(AlwaysAllow, everywhere()), Some((Allow, Some(3)))),
        (Ask, one(AllowOnce, everywhere()), Some((Allow, Some(3)))),
        (Ask, one(AlwaysDeny, everywhere()), None),
        (Ask, one(AskEachTime, everywhere()), Some((Ask, Some(3)))),
        (Allow, one(AskEachTime, everywhere()), Some((Ask, Some(3)))),
        (Allow, one(AlwaysAllow, everywhere()), Some((Allow, None))),
        // It gives no right that is not held.
        (Deny, one(AlwaysAllow, everywhere()), None),
        (Ask, vec![spent], Some((Ask, None))),
        (Ask, vec![revoked], Some((Ask, None))),
        (Ask, vec![other], Some((Ask, None))),
        (Ask, one(AlwaysAllow, below("docs")), Some((Allow, Some(3)))),
        (Ask, one(AlwaysAllow, below("doc")), Some((Ask, None))),
        (
            Ask,
            one(AlwaysAllow, of(EffectKind::Create)),
            Some((Allow, Some(3))),
        ),
        (
            Ask,
            one(AlwaysAllow, of(EffectKind::Overwrite)),
            Some((Ask, None)),
        ),
        (Ask, one(AlwaysAllow, in_run(7)), Some((Allow, Some(3)))),
        (Ask, one(AlwaysAllow, in_run(6)), Some((Ask, None))),
        // The latest word counts, but a deny wins.
        (
            Ask,
            vec![
                standing(3, AskEachTime, everywhere()),
                standing(4, AlwaysAllow, below("docs")),
            ],
            Some((Allow, Some(4))),
        ),
        (
            Ask,
            vec![
                standing(3, AlwaysAllow, everywhere()),
                standing(4, AskEachTime, everywhere()),
            ],
            Some((Ask, Some(4))),
        ),
        (
            Ask,
            vec![
                standing(3, AlwaysDeny, everywhere()),
                standing(4, AlwaysAllow, everywhere()),
            ],
            None,
        ),
    ];
    for (stance, all, expected) in rows {
        assert_eq!(ruled(stance, &all), expected, "{stance:?} {all:?}");
    }
}

#[test]
fn a_move_is_allowed_where_both_its_ends_are_and_denied_where_one_is() {
    let (docs, paths) = (below("docs"), ["docs/a", "src/b"]);
    let rows = [
        (Policy::AlwaysAllow, false),
        (Policy::AllowOnce, false),
        (Policy::AlwaysDeny, true),
        (Policy::AskEachTime, true),
    ];
    for (policy, covers) in rows {
        let policy = standing(1, policy, docs.clone());
        assert_eq!(policy.covers(&act(None), &paths), covers, "{policy:?}");
        assert!(policy.covers(&act(None), &["docs/a", "docs/b"]));
    }
}

#[test]
fn the_folder_that_paths_share() {
    let rows: [(&[&str], &str); 6] = [
        (&["a/b/c"], "a/b"),
        (&["a"], ""),
        (&["a/b/c", "a/b/d"], "a/b"),
        (&["a/b/c", "a/bb/d"], "a"),
        (&["a/b", "c/d"], ""),
        (&["a/b/c/d", "a/x"], "a"),
    ];
    for (paths, folder) in rows {
        let paths: Vec<String> = paths.iter().map(|p| (*p).to_owned()).collect();
        assert_eq!(common_folder(&paths), folder, "{paths:?}");
    }
}
