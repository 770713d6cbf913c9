//! Names of types of actions: those of accounts start with `_`, and some of the built-in ones ask for an assessment.

use serde::{Deserialize, Serialize};

/// The built-in types, which every account has.
pub const BUILT_IN: [&str; 12] = [
    "scans",
    "implicitScans",
    "checkins",
    "shares",
    "encodings",
    "commissions",
    "decommissions",
    "invalidScans",
    "inspectorScans",
    "supplyChainScans",
    "authenticationConfirmations",
    "authenticationResults",
];

/// Types that only their own operations write: commissioning and the assessment of items.
pub const WRITTEN_BY_OPERATIONS: [&str; 3] = ["commissions", "decommissions", "authenticationResults"];

/// Types that holders of public keys never write: they are written by edges, factories, inspectors and the
/// assessment, and verdicts depend on them.
pub const RESERVED: [&str; 8] = [
    "implicitScans",
    "encodings",
    "commissions",
    "decommissions",
    "inspectorScans",
    "supplyChainScans",
    "authenticationConfirmations",
    "authenticationResults",
];

/// The built-in types that users of an application create when it lists none.
pub const CREATED_BY_USERS: [&str; 3] = ["scans", "checkins", "shares"];

/// Type of the action that holds a result.
pub const RESULTS: &str = "authenticationResults";

/// Longest name of a type, in characters.
pub const MAX_TYPE_NAME: usize = 128;

// Spec gap: which names a type may have beside the first character is not shown.
/// Whether a text can be the name of a custom type: `_`, then letters, digits, `_`, `.` and `-`.
#[must_use]
pub fn is_custom(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"_.-".contains(&c);
    name.len() <= MAX_TYPE_NAME
        && name.strip_prefix('_').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(fits))
}

shared::words! {
    /// Types of actions that may ask for an assessment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum TriggerType {
        /// By an inspector's app.
        InspectorScans = "inspectorScans",
        /// By a redirect.
        ImplicitScans = "implicitScans",
        /// By a partner of the supply chain.
        SupplyChainScans = "supplyChainScans",
        /// By an application.
        Scans = "scans",
        /// What an inspector says after the scan.
        AuthenticationConfirmations = "authenticationConfirmations",
    } else InvalidType
}

impl TriggerType {
    /// Who is behind it, as the tag `eventGroup` says.
    #[must_use]
    pub const fn event_group(self) -> &'static str {
        match self {
            Self::InspectorScans | Self::AuthenticationConfirmations => "inspector",
            Self::SupplyChainScans => "supplyChain",
            Self::ImplicitScans | Self::Scans => "consumer",
        }
    }

    /// Whether its scans make up the profile: those of inspectors and of the supply chain do not.
    #[must_use]
    pub const fn is_profiled(self) -> bool {
        matches!(self, Self::ImplicitScans | Self::Scans)
    }
}

/// A text that is none of the types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be inspectorScans, implicitScans, supplyChainScans, scans or authenticationConfirmations")]
pub struct InvalidType;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_types_have_names() {
        for (name, expected) in [
            ("_own", true),
            ("_actionType123.45", true),
            ("_a-b_c", true),
            ("_", false),
            ("own", false),
            ("_a b", false),
            ("_ö", false),
            ("_a/b", false),
            ("", false),
        ] {
            assert_eq!(is_custom(name), expected, "{name}");
        }
        assert!(is_custom(&format!("_{}", "a".repeat(127))));
        assert!(!is_custom(&format!("_{}", "a".repeat(128))));
    }
}
