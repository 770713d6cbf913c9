//! Redirections as control holds them, and the rules about their members (decisions 5).

use serde::{Deserialize, Serialize};
use shared::{
    id::AccountId,
    redirect::Redirect,
    short_url::ShortDomain,
    target::{InvalidTarget, Target},
    wire::stream::Rev,
};

/// Who may see and change a resource beside operators; `users` holds ids or the word `all`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes {
    /// Application users.
    #[serde(default)]
    pub users: Vec<String>,
    /// Projects.
    #[serde(default)]
    pub projects: Vec<String>,
}

/// Most short URLs that may lead to each other before a real target (decisions 5, loops).
pub const MAX_CHAIN: usize = 5;

/// A redirection with what only control holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The account it belongs to.
    pub account: AccountId,
    /// Its short domain.
    pub domain: ShortDomain,
    /// What edges hold too.
    pub redirect: Redirect,
    /// Access beside operators.
    pub scopes: Scopes,
    /// Redirects counted, without bots.
    pub hits: i64,
    /// The revision that wrote it last.
    pub rev: Rev,
    /// Order of insertion, for paging.
    pub seq: i64,
}

impl Redirection {
    /// The short URL.
    #[must_use]
    pub fn short_url(&self) -> String {
        self.domain.short_url(&self.redirect.short_id)
    }
}

/// Parses `defaultRedirectUrl`; the fault names the member.
///
/// # Errors
/// What is wrong, as a sentence for the caller.
pub fn parse_target(text: Option<&str>) -> Result<Target, String> {
    let Some(text) = text else { return Err("defaultRedirectUrl is required.".to_owned()) };
    Target::parse(text).map_err(|fault: InvalidTarget| format!("defaultRedirectUrl {fault}."))
}
