//! What every surface (window, terminal, local socket) sends to the host and gets back.
//!
//! These types are the whole contract between the host and its surfaces. The web UI's TypeScript
//! is generated from them, and the local socket speaks them as JSON, one object a line.

mod approval;
mod capability;
mod checkpoint;
mod command;
mod event;
mod image;
mod journal;
mod machine;
mod object;
mod policy;
mod problem;
mod process;
mod run;
mod scheduling;

pub use approval::{
    Answer, ApprovalView, Decide, DiffKind, DiffLine, EffectView, QuestionView, RiskView, ScopeView,
};
pub use capability::{CapabilityStatus, CapabilityView, Explanation, LookedAt, StanceView};
pub use checkpoint::{CheckpointDetail, CheckpointDiff, CheckpointReplay, CheckpointView};
pub use command::{Command, Reply};
pub use event::Event;
pub use image::{ImageDetail, ImageSource, ImageView};
pub use journal::{
    Ancestor, ApprovalTold, Authority, Chain, ExportForm, LogQuery, LogRow, Verified,
};
pub use machine::{
    Check, CheckState, Fit, FitnessView, FoundModel, ModelView, Settings, SettingsChange,
};
pub use object::ObjectView;
pub use policy::{GrantView, PolicyChange, PolicyRule, PolicyScope, PolicyView};
pub use problem::Problem;
pub use process::{
    BudgetView, Limits, ProcessDetail, ProcessView, StateView, StepState, StepView, Used,
};
pub use run::{Access, Run, ShellAccess, SignalView, Submit};
pub use scheduling::{ContextView, ModuleView, PolicyKind, SchedulingChange, SchedulingView};
