//! What of a view stays and what goes where a budget is too small for all of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ObjectKind;

/// The order in which kinds are dropped where a policy names none: what can be looked at again goes
/// first, the goal last.
pub const DEFAULT_DROP_ORDER: [ObjectKind; 11] = [
    ObjectKind::Observation,
    ObjectKind::ToolResult,
    ObjectKind::ExternalRef,
    ObjectKind::Text,
    ObjectKind::ErrorTrace,
    ObjectKind::Patch,
    ObjectKind::Message,
    ObjectKind::Skill,
    ObjectKind::Summary,
    ObjectKind::Plan,
    ObjectKind::Goal,
];

/// How a bounded context is made of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// Tokens of the context at most, by the core's own tokenizer.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tokens: u32,
    /// Kinds in the order in which they are dropped, first to go first; within a kind the oldest
    /// goes first. A kind that is not named goes after all that are, in the usual order.
    #[schemars(length(max = 11))]
    pub drop: Vec<ObjectKind>,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            tokens: 1_400,
            drop: Vec::new(),
        }
    }
}

impl ContextPolicy {
    /// Every kind once, in the order in which kinds are dropped.
    pub fn order(&self) -> Vec<ObjectKind> {
        let mut order = Vec::with_capacity(ObjectKind::ALL.len());
        for kind in self.drop.iter().chain(&DEFAULT_DROP_ORDER) {
            if !order.contains(kind) {
                order.push(*kind);
            }
        }
        order
    }

    /// The order in words, as it is told to whoever asks.
    pub fn in_words(&self) -> String {
        let order = self.order();
        let kinds: Vec<&str> = order.iter().map(|kind| kind.counted(2)).collect();
        format!(
            "dropped first to last, the oldest of a kind first: {}; the last object that stays is \
             cut at its end where it does not fit alone",
            kinds.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_once() {
        let policy = ContextPolicy {
            drop: vec![ObjectKind::Goal, ObjectKind::Plan, ObjectKind::Goal],
            ..ContextPolicy::default()
        };
        let order = policy.order();
        assert_eq!(
            order[..3],
            [ObjectKind::Goal, ObjectKind::Plan, ObjectKind::Observation]
        );
        for order in [order, ContextPolicy::default().order()] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            let mut all = ObjectKind::ALL;
            all.sort_unstable();
            assert_eq!(sorted, all);
        }
    }
}
