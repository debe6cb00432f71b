//! What waits for the person, and the answers.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Decide {
    /// The approval's id.
    pub id: u64,
    /// The answer.
    pub answer: Answer,
    /// The digest that was shown; an answer to something else does not count.
    pub digest: String,
}

/// What the person says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Answer {
    /// Do it.
    Yes,
    /// Leave it.
    No,
    /// Do it, and whatever else lies in a scope that was offered, without asking again.
    Always {
        /// The [`ScopeView::id`] of the scope.
        scope: String,
    },
}

/// How far an "always" would reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ScopeView {
    /// Its name in an answer.
    pub id: String,
    /// What would be done without asking, in a sentence (escaped).
    pub words: String,
}

/// Something an agent may do only after a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ApprovalView {
    /// The approval's id; the same after a restart.
    pub id: u64,
    /// Who asks.
    pub pid: u64,
    /// The run it belongs to.
    pub run: u64,
    /// The image of who asks.
    pub image: String,
    /// The request it is done for.
    pub goal: String,
    /// The system call, such as `fs.write`.
    pub action: String,
    /// What it would do to the path.
    pub effect: EffectView,
    /// The absolute path (escaped for display).
    pub path: String,
    /// The path within the workspace (escaped for display).
    pub relative: String,
    /// For a move: the absolute path it goes to (escaped for display).
    pub target: Option<String>,
    /// Bytes there now; absent where nothing is there.
    pub bytes_before: Option<u64>,
    /// Bytes there afterwards; absent where nothing will be there.
    pub bytes_after: Option<u64>,
    /// SHA-256 (hex) of the bytes that would be written; absent where none are.
    pub sha256: Option<String>,
    /// What would change, line by line (escaped), or what is in the file to be deleted.
    pub diff: Vec<DiffLine>,
    /// True where the diff was cut to a bounded length.
    pub diff_cut: bool,
    /// Lines that change, and lines in all.
    pub lines_changed: u32,
    /// Lines in all.
    pub lines_total: u32,
    /// Risks worth a sentence each.
    pub risks: Vec<RiskView>,
    /// Whether undo can put it back.
    pub undoable: bool,
    /// For an undo: every file it would put back (escaped), with what happens to it.
    pub items: Vec<String>,
    /// Digest of all of the above that the answer is bound to.
    pub digest: String,
    /// Unix time in milliseconds when it was asked.
    pub asked_ms: u64,
    /// Unix time in milliseconds when it stops waiting; that is never a yes.
    pub expires_ms: Option<u64>,
    /// Approvals with the same number belong together and can be shown as one list.
    pub group: Option<u64>,
    /// How far an "always" may reach, the narrowest first; empty where only yes and no are offered.
    pub scopes: Vec<ScopeView>,
}

/// What an approval would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum EffectView {
    /// Writes a file where none is.
    Create,
    /// Replaces a file's bytes.
    Overwrite,
    /// Deletes a file or an empty folder.
    Delete,
    /// Moves or renames, with nothing at the target.
    Move,
    /// Moves onto an existing file.
    Replace,
    /// Makes a folder.
    MakeFolder,
    /// Puts back what a run changed.
    Undo,
    /// A step a process asks about in its own words.
    Other,
}

/// A risk worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum RiskView {
    /// The same effect may have happened already, before a crash; a yes does it again.
    Repeat,
    /// The file there now can be run as a program.
    Executable,
    /// The file is hidden, or in a hidden folder.
    Hidden,
    /// The text or the path holds characters that cannot be seen; they are shown escaped.
    Invisible,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DiffLine {
    /// `same`, `removed`, `added`, or `gap` (lines left out between).
    pub kind: DiffKind,
    /// The line without its end, escaped.
    pub text: String,
}

/// Kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DiffKind {
    /// Stands before and after.
    Same,
    /// Goes.
    Removed,
    /// Comes.
    Added,
    /// Unchanged lines left out; the text says how many.
    Gap,
}

/// A question a process asks the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct QuestionView {
    /// The question's id.
    pub id: u64,
    /// Who asks.
    pub pid: u64,
    /// Its run.
    pub run: u64,
    /// The question (escaped).
    pub text: String,
    /// Answers offered; free text where empty.
    pub choices: Vec<String>,
    /// Unix time in milliseconds when it was asked.
    pub asked_ms: u64,
}
