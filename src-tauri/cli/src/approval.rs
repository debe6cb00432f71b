//! An approval in words.

use steward_host::surface::{ApprovalView, DiffKind, EffectView, RiskView};

use crate::show::clock;

/// Characters of a request that are shown beside other things.
const GOAL_MOST: usize = 160;

/// The lines of an approval: the question, the facts, the change.
pub(crate) fn approval_lines(asked: &ApprovalView) -> Vec<String> {
    let name = if asked.relative.is_empty() {
        &asked.path
    } else {
        &asked.relative
    };
    let question = match asked.effect {
        EffectView::Create => format!("Create {name}?"),
        EffectView::Overwrite => format!("Overwrite {name}?"),
        EffectView::Delete => format!("Delete {name}?"),
        EffectView::Move => format!("Move {name}?"),
        EffectView::Replace => format!("Move {name} onto a file that is there?"),
        EffectView::MakeFolder => format!("Make the folder {name}?"),
        EffectView::Undo => format!("Undo run {}?", asked.relative),
        EffectView::Other => asked.path.clone(),
    };
    let mut lines = vec![
        String::new(),
        format!("Approval {}: {question}", asked.id),
        format!(
            "  for      {} (pid {}, {})",
            shortened(&asked.goal),
            asked.pid,
            asked.image
        ),
        format!("  path     {}", asked.path),
    ];
    if let Some(target) = &asked.target {
        lines.push(format!("  to       {target}"));
    }
    let size = |bytes: Option<u64>| bytes.map_or("nothing".to_owned(), |n| format!("{n} bytes"));
    if asked.bytes_before.is_some() || asked.bytes_after.is_some() {
        lines.push(format!(
            "  change   {} → {}",
            size(asked.bytes_before),
            size(asked.bytes_after)
        ));
    }
    if let Some(sha256) = &asked.sha256 {
        lines.push(format!("  sha256   {sha256}"));
    }
    lines.extend(
        asked
            .risks
            .iter()
            .map(|risk| format!("  note     {}", risk_words(*risk))),
    );
    lines.extend(asked.items.iter().map(|item| format!("  · {item}")));
    lines.extend(asked.diff.iter().map(|line| match line.kind {
        DiffKind::Same => format!("    {}", line.text),
        DiffKind::Removed => format!("  - {}", line.text),
        DiffKind::Added => format!("  + {}", line.text),
        DiffKind::Gap => format!("    … {} lines", line.text),
    }));
    if asked.diff_cut {
        lines.push("    … (more is not shown)".to_owned());
    }
    lines.push(format!("  undo     {}", undo_words(asked)));
    if let Some(ends) = asked.expires_ms {
        let ends = clock(ends);
        lines.push(format!("  until    {ends}; after that it is not done"));
    }
    if let Some(group) = asked.group.filter(|group| *group != asked.id) {
        lines.push(format!(
            "  beside   approval {group}, which asks for the like"
        ));
    }
    lines.extend(scope_lines(asked));
    lines
}

/// What an "always" could cover, the narrowest first.
pub(crate) fn scope_lines(asked: &ApprovalView) -> Vec<String> {
    let scopes = asked.scopes.iter();
    scopes
        .map(|scope| format!("  always   {}: {}", scope.id, scope.words))
        .collect()
}

fn undo_words(asked: &ApprovalView) -> &'static str {
    if !asked.undoable {
        return "this cannot be undone";
    }
    match asked.effect {
        EffectView::Create | EffectView::MakeFolder => "undo takes it away again",
        EffectView::Move => "undo moves it back",
        EffectView::Overwrite | EffectView::Delete | EffectView::Replace => {
            "the old version is kept; undo puts it back"
        }
        EffectView::Undo | EffectView::Other => "this can be undone itself",
    }
}

/// A request on one line, cut where it is long.
pub(crate) fn shortened(goal: &str) -> String {
    let line = steward_host::escape_line(goal);
    match line.char_indices().nth(GOAL_MOST) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn risk_words(risk: RiskView) -> &'static str {
    match risk {
        RiskView::Repeat => {
            "this may have happened already before Steward ended; a yes does it again"
        }
        RiskView::Executable => "this file can be run as a program",
        RiskView::Hidden => "this is a hidden file; programs read such files by themselves",
        RiskView::Invisible => {
            "there are characters in it that cannot be seen; they are shown escaped"
        }
    }
}
