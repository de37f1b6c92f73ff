//! What answers of the user and commands of the host have added to the rules of this session.

use pith_permissions::{Bases, Mode, Origin, Policy};
use pith_store::EntryTree;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::held::HeldCall;
use super::parsed;
use crate::log::log_line;

/// The `customType` of the entries that record it. The last one in the file counts, whichever branch it is on: what the
/// user has allowed in a session does not depend on where in its tree the conversation is.
pub(super) const OWN_RULES: &str = "pith.permissions";

/// The whole of it, as each entry has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OwnRules {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Answers of the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that were allowed as they are, because no rule can say what they do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<GrantedCall>,
}

/// A call that may be made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GrantedCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

impl OwnRules {
    /// Reads what a session file says last.
    pub fn last_in(tree: &EntryTree) -> OwnRules {
        #[derive(Deserialize)]
        struct Recorded {
            data: OwnRules,
        }
        // Without `since` there is no entry that could be missing.
        let entries = tree.custom_entries_json(OWN_RULES, None).unwrap_or_default();
        let entries: Vec<Value> = serde_json::from_str(&entries).unwrap_or_default();
        let Some(last) = entries.into_iter().last() else { return OwnRules::default() };
        serde_json::from_value::<Recorded>(last).map_or_else(
            |error| {
                log_line(&format!("Warning: the permissions in the session file are not understood: {error}"));
                OwnRules { mode: Some(Mode::Ask), ..OwnRules::default() }
            },
            |recorded| recorded.data,
        )
    }

    /// Adds the rules to those of files and flags.
    pub fn add_to(&self, policy: &mut Policy, bases: &Bases) {
        let rules = |texts: &[String], origin: Origin| {
            texts.iter().filter_map(|text| parsed(text, origin.clone(), bases)).collect::<Vec<_>>()
        };
        policy.deny.extend(rules(&self.deny, Origin::Host));
        policy.granted.extend(rules(&self.granted, Origin::Session));
        policy.ask.extend(rules(&self.ask, Origin::Host));
        policy.allow.extend(rules(&self.allow, Origin::Host));
    }

    /// Adds rules that an answer of the user has made.
    pub fn grant(&mut self, rules: &[String]) {
        add(&mut self.granted, rules);
    }

    /// Allows a call as it is.
    pub fn grant_call(&mut self, call: &HeldCall) {
        self.calls.push(GrantedCall { tool: call.tool.clone(), arguments: call.arguments.clone() });
    }

    /// Whether the user has allowed exactly this call.
    pub fn has_call(&self, call: &HeldCall) -> bool {
        self.calls.iter().any(|granted| granted.tool == call.tool && granted.arguments == call.arguments)
    }

    /// Takes a rule back, and calls of that tool that were allowed as they are; `false` if there is no such thing.
    pub fn forget(&mut self, rule: &str) -> bool {
        let n_before = self.len();
        for list in [&mut self.deny, &mut self.granted, &mut self.ask, &mut self.allow] {
            list.retain(|own| own != rule);
        }
        self.calls.retain(|call| call.tool != rule);
        self.len() < n_before
    }

    fn len(&self) -> usize {
        self.deny.len() + self.granted.len() + self.ask.len() + self.allow.len() + self.calls.len()
    }
}

/// Adds rules that are not in a list yet.
pub(super) fn add(list: &mut Vec<String>, rules: &[String]) {
    for rule in rules {
        if !list.contains(rule) {
            list.push(rule.clone());
        }
    }
}
