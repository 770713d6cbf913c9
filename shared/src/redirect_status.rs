//! The status codes that the redirect of a link may have.

use serde::{Deserialize, Serialize};

/// The status code with which a link leads to its target; a number in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub enum RedirectStatus {
    /// 307: the target may change.
    #[default]
    TemporaryRedirect,
    /// 301: the target is final.
    MovedPermanently,
    /// 302: as 307, for old programs.
    Found,
    /// 308: as 301, for programs that keep the method.
    PermanentRedirect,
}

/// A number that is no such status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 301, 302, 307 or 308")]
pub struct InvalidRedirectStatus;

impl RedirectStatus {
    /// Every code; the default is the first.
    pub const ALL: [Self; 4] =
        [Self::TemporaryRedirect, Self::MovedPermanently, Self::Found, Self::PermanentRedirect];

    /// The code as a number.
    #[must_use]
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::TemporaryRedirect => 307,
            Self::MovedPermanently => 301,
            Self::Found => 302,
            Self::PermanentRedirect => 308,
        }
    }

    /// Whether it is the one of links that name none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The member of events and of the audit trail; none for the default.
    #[must_use]
    pub fn member(self) -> Option<(&'static str, u16)> {
        (!self.is_default()).then(|| ("statusCode", self.as_u16()))
    }
}

impl TryFrom<u16> for RedirectStatus {
    type Error = InvalidRedirectStatus;

    fn try_from(code: u16) -> Result<Self, InvalidRedirectStatus> {
        Self::ALL.into_iter().find(|status| status.as_u16() == code).ok_or(InvalidRedirectStatus)
    }
}

impl From<RedirectStatus> for u16 {
    fn from(status: RedirectStatus) -> Self {
        status.as_u16()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_number_in_json() {
        for (status, code) in RedirectStatus::ALL.into_iter().zip([307, 301, 302, 308]) {
            assert_eq!(serde_json::to_string(&status).unwrap(), code.to_string());
            assert_eq!(serde_json::from_str::<RedirectStatus>(&code.to_string()).unwrap(), status);
            assert_eq!(status.member(), (code != 307).then_some(("statusCode", code)));
        }
        for text in ["300", "303", "200", "\"301\"", "301.5", "65837", "null"] {
            assert!(serde_json::from_str::<RedirectStatus>(text).is_err(), "{text}");
        }
    }
}
