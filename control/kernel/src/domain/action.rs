//! Actions as the API returns them, and the built-in action types.

use serde_json::{Map, Value};
use shared::{
    id::{ActionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{
    action_names::{BUILT_IN, is_custom},
    page::Position,
    scopes::Scopes,
};

/// Which actions of an account a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionType<'a> {
    /// Actions of every type: the path says `all`.
    All,
    /// Those of one type.
    Of(&'a str),
}

impl<'a> ActionType<'a> {
    /// Reads the part of a path that names a type; `None` when there can be no such type.
    ///
    /// Whether an account has a type of its own is for the store to say.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            name if BUILT_IN.contains(&name) || is_custom(name) => Some(Self::Of(name)),
            _ => None,
        }
    }

    /// The type's name; `None` for all.
    #[must_use]
    pub const fn name(self) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Of(name) => Some(name),
        }
    }
}

/// What happened to a Thng or product.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its id.
    pub id: ActionId,
    /// Order of insertion.
    pub seq: i64,
    /// When it was recorded.
    pub created_at: UnixMillis,
    /// When it happened.
    pub timestamp: UnixMillis,
    /// Its type.
    pub kind: String,
    /// The Thng it is about.
    pub thng: Option<ThngId>,
    /// The product it is about.
    pub product: Option<ProductId>,
    /// Its other members by name: `customFields`, `tags`, `context`, `location`…
    pub members: Map<String, Value>,
}

impl Action {
    /// Who may see it besides operators.
    #[must_use]
    pub fn scopes(&self) -> Option<Scopes> {
        self.members.get("scopes").and_then(|scopes| serde_json::from_value(scopes.clone()).ok())
    }

    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { at: self.created_at, seq: self.seq }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_types() {
        assert_eq!(ActionType::parse("all"), Some(ActionType::All));
        assert_eq!(ActionType::parse("scans").and_then(ActionType::name), Some("scans"));
        assert_eq!(ActionType::parse("_own.1"), Some(ActionType::Of("_own.1")));
        for text in ["", "Scans", "own", "scans ", "_", "_a b", "_ä", "_a/b"] {
            assert_eq!(ActionType::parse(text), None, "{text:?}");
        }
    }
}
