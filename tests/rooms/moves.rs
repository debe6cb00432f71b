//! What is kept from a process stays so when a folder with it is moved.

use steward_kernel::Code;
use steward_kernel::capability::{Right, Stance};
use steward_kernel::human::{NewPolicy, Place, Policy, Scope};

use crate::bed::{Bed, codes, read, rename, results};
use crate::rights::{ALL, files};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_does_not_get_away_by_moving_a_folder() {
    let tree = [
        ("secret/key", "1"),
        ("docs/secret/key", "2"),
        ("docs/note", "3"),
        ("open/a/b", "4"),
    ];
    let moves = [
        rename("secret", "x"),
        rename("secret/key", "x"),
        rename("docs", "y"),
        rename("docs/note", "note"),
        rename("open", "z"),
        read("z/a/b"),
    ];
    let no = Err(Code::Denied);
    let expected = [no, no, no, Ok(()), Ok(()), Ok(())];

    // By a capability that denies no more than reading.
    let bed = Bed::with(&tree);
    let kernel = bed.kernel();
    let kept = files(
        &bed,
        &[Right::Read],
        Stance::Deny,
        r#"{"paths":["secret/**","docs/secret/**"]}"#,
    );
    let grants = vec![files(&bed, &ALL, Stance::Allow, "{}"), kept];
    let pid = bed.start_with(&kernel, &moves, grants).await;
    assert_eq!(codes(&results(&kernel, pid).await), expected);
    assert_eq!(bed.text("secret/key"), "1");
    assert_eq!(bed.text("docs/secret/key"), "2");

    // By a policy on reading.
    let bed = Bed::with(&tree);
    let kernel = bed.kernel();
    for folder in ["secret", "docs/secret"] {
        let scope = Scope {
            workspace: Some(bed.root.clone()),
            place: Some(Place::Folder(folder.to_owned())),
            ..Scope::default()
        };
        let new = NewPolicy {
            action: "fs.read".to_owned(),
            scope,
            policy: Policy::AlwaysDeny,
        };
        kernel.set_action_policy(new, "test").await.unwrap();
    }
    let all = vec![files(&bed, &ALL, Stance::Allow, "{}")];
    let pid = bed.start_with(&kernel, &moves, all).await;
    assert_eq!(codes(&results(&kernel, pid).await), expected);

    // An allow for some files beneath a folder is none for the folder with all that is in it.
    let bed = Bed::with(&tree);
    let kernel = bed.kernel();
    let some = r#"{"paths":["docs","docs/note","y","y/**"]}"#;
    let grants = vec![files(&bed, &ALL, Stance::Allow, some)];
    let pid = bed
        .start_with(&kernel, &[rename("docs", "y")], grants)
        .await;
    assert_eq!(codes(&results(&kernel, pid).await), [no]);
}
