//! Sessions: how long they last, and what their owner sees of them.

use shared::time::UnixMillis;
use woothee::parser::Parser;

/// A session ends after so long without a request: 12 hours.
pub const IDLE_MS: i64 = 12 * 3_600 * 1_000;

/// A session ends so long after the sign-in, however it is used: 30 days.
pub const LONGEST_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// Its use is written at most so often: 5 minutes.
pub const TOUCH_MS: i64 = 5 * 60 * 1_000;

/// Most sessions of an operator; with another one the oldest ends.
pub const MAX_SESSIONS: usize = 20;

/// Most networks that are kept of those from which an operator signed in.
pub const MAX_NETWORKS: i64 = 20;

/// A session of an operator, without its token and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of its key.
    pub hash: [u8; 32],
    /// When it began.
    pub created_at: UnixMillis,
    /// When it was last used, to five minutes.
    pub last_used_at: UnixMillis,
    /// When it ends unless it is used.
    pub expires_at: UnixMillis,
    /// The network from which it began.
    pub network: Option<String>,
    /// The family of the browser, and the system that it runs on.
    pub agent: Option<String>,
    /// Who said who it is.
    pub proof: Proof,
}

/// By what an operator signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// By a password, and the second factor if there is one.
    Password,
    /// By the provider of identities.
    Provider,
}

/// The family of a user agent and its system, such as `Firefox, Linux`. What a client writes is not kept.
#[must_use]
pub fn agent_family(user_agent: &str) -> Option<String> {
    let found = Parser::new().parse(user_agent)?;
    let known = [found.name, found.os].into_iter().filter(|part| !part.is_empty() && *part != "UNKNOWN");
    Some(known.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_user_agent_the_family_is_kept() {
        let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
        assert_eq!(agent_family(firefox).as_deref(), Some("Firefox, Linux"));
        assert_eq!(agent_family("<script>"), None);
    }
}
