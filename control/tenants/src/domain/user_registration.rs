//! How users of applications register.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

shared::words! {
    /// Who gets the code that activates a user, and which passwords are taken.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum UserRegistration {
        /// The mailbox: whoever activates a user reads its mail. Passwords have the length of today.
        #[default]
        Mail = "mail",
        /// The caller, as in the first contract: an address proves nothing. Passwords may be as short as they were then.
        Caller = "caller",
    }
}

impl UserRegistration {
    /// Whether it is the default, which is not stored.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for UserRegistration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or("must be mail or caller")
    }
}
