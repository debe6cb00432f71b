//! What a person may say of the files when they start a run.

use std::path::Path;

use super::{Grant, Resource, Right, workspace_defaults};

/// What a run may do to the files of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Look.
    Read,
    /// Look, and change after a yes to each change.
    Edit,
    /// Look and change, without asking.
    Full,
}

/// The rights a run starts with: those of every run, with what the person says of the files.
pub fn workspace_grants(root: &Path, access: FileAccess) -> Vec<Grant> {
    let changes = |grant: &Grant| grant.rights.contains(&Right::Write);
    let mut grants = workspace_defaults(root);
    match access {
        FileAccess::Read => grants.retain(|grant| !changes(grant)),
        FileAccess::Edit => {}
        FileAccess::Full => {
            grants.retain(|grant| !changes(grant));
            let root = root.to_owned();
            let rights = [Right::Write, Right::Delete];
            grants.push(Grant::allow(Resource::Workspace { root }, rights));
        }
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::super::Stance;
    use super::*;

    #[test]
    fn what_a_run_may_do_to_files_is_what_the_person_said() {
        let root = Path::new("/w");
        let workspace = Resource::Workspace {
            root: root.to_owned(),
        };
        let told = |access, right| {
            let grants = workspace_grants(root, access);
            let about = grants
                .iter()
                .filter(|grant| grant.resource == workspace && grant.rights.contains(&right));
            about.map(|grant| grant.stance).collect::<Vec<_>>()
        };
        let table = [
            (FileAccess::Read, Right::Read, vec![Stance::Allow]),
            (FileAccess::Read, Right::Write, vec![]),
            (FileAccess::Read, Right::Delete, vec![]),
            (FileAccess::Edit, Right::Read, vec![Stance::Allow]),
            (FileAccess::Edit, Right::Write, vec![Stance::Ask]),
            (FileAccess::Edit, Right::Delete, vec![Stance::Ask]),
            (FileAccess::Full, Right::Read, vec![Stance::Allow]),
            (FileAccess::Full, Right::Write, vec![Stance::Allow]),
            (FileAccess::Full, Right::Delete, vec![Stance::Allow]),
        ];
        for (access, right, stances) in table {
            assert_eq!(told(access, right), stances, "{access:?} {right:?}");
        }
    }
}
