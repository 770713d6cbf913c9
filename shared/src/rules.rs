//! Redirect rules: choose the target of a scan from facts about the request and the item.
//!
//! Spec gap: the platform API shows neither fields nor order of rules. The lists of the applications of the projects in
//! the redirection's scopes come first, in order of creation, then the account's own list. The first rule that matches
//! wins; one without a target keeps the redirection's own. An unknown value meets no condition, so `country!=DE`
//! matches where the country is unknown.
//!
//! Rules can only test what travels with a redirection: not tags, identifiers or custom fields, but also the
//! commissioning state of the Thng and its last assessment. Whatever is new stands in the text of a condition, never in a new
//! member of a rule: an older edge ignores a member that it does not know, but refuses a set with such a condition.

mod compile;
mod explain;
mod field;
mod headers;
mod program;
mod reading;
mod request;
mod share;
mod zone;

use serde::{Deserialize, Serialize};

pub use self::{
    compile::{Compiled, Hit, InvalidRule, Matcher},
    explain::Explained,
    field::{Facts, Field, Text},
    headers::{
        MAX_LANGUAGES, MAX_PARAMETERS, accepted_languages, query_parameters, referer_host, split_at_byte,
    },
    program::{hour, weekday},
    request::{first_language, text_of_link},
    share::{PLACES, Visitor},
};
use crate::id::{AccountId, ApplicationId, ProjectId};

/// Most rules in one list: as many as fit a page that somebody still reads.
pub const MAX_RULES: usize = 100;
/// Most conditions in one list: at some 10 ns each, 4 µs of a redirect that meets none of them.
pub const MAX_CONDITIONS: usize = 400;
/// Longest name of a rule in bytes: it is written down with each scan.
pub const MAX_NAME: usize = 128;
/// Most bytes of all rules of an account as JSON: one message of the stream is at most 256 KiB.
pub const MAX_ACCOUNT_BYTES: usize = 128 << 10;

/// One rule as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// When it holds, in the filter language.
    #[serde(rename = "match")]
    pub condition: Box<str>,
    /// Where it leads, tags not expanded; without it the redirection's own target holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<Box<str>>,
}

/// The application that a list of rules belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The application.
    pub application: ApplicationId,
    /// Its project: the list holds for redirections whose scopes name it.
    pub project: ProjectId,
}

impl Owner {
    /// Whether its list holds for a redirection whose scopes name these projects.
    #[must_use]
    #[inline]
    pub fn is_of(&self, projects: &[ProjectId]) -> bool {
        projects.contains(&self.project)
    }
}

/// Rules in their order, with their owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleList {
    /// The application; `None` for the account's own list, which holds for all its redirections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// Every rule of an account, in the order in which the lists are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRules {
    /// The account.
    pub account: AccountId,
    /// Its lists; those without a rule are left out.
    pub lists: Vec<RuleList>,
}

impl AccountRules {
    /// The rules of an account: applications in order of creation, then the account's own list.
    #[must_use]
    pub fn new(account: AccountId, mut lists: Vec<RuleList>) -> Self {
        lists.retain(|list| !list.rules.is_empty());
        // The characters of ids in front follow time.
        lists.sort_by_key(|list| (list.owner.is_none(), list.owner.map(|owner| owner.application)));
        Self { account, lists }
    }

    /// Bytes of the whole as JSON.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Texts and numbers always serialise.
        serde_json::to_string(self).map_or(0, |text| text.len())
    }
}

#[cfg(test)]
mod tests;
