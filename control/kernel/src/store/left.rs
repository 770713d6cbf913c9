//! What a transaction leaves to its end: it takes the order of changes, for which all accounts wait.

use shared::id::{AccountId, ThngId};

use super::Tx;

/// Things of one account.
#[derive(Debug)]
pub struct LeftThings {
    /// The account.
    pub account: AccountId,
    /// They, in the order in which they were written.
    pub things: Vec<ThngId>,
}

impl Tx {
    /// Leaves the Digital Links of Things to the end, from here on. Whoever calls this takes them before it commits.
    pub fn leave_links(&mut self, account: AccountId) {
        self.left = Some(LeftThings { account, things: Vec::new() });
    }

    /// Notes a Thing whose Digital Links are to follow from it; `false`: they do so now.
    pub fn leave(&mut self, account: AccountId, thng: ThngId) -> bool {
        let Some(left) = self.left.as_mut().filter(|left| left.account == account) else { return false };
        left.things.push(thng);
        true
    }

    /// What was left until now; what comes is done at once.
    pub fn take_left(&mut self) -> Option<LeftThings> {
        self.left.take().filter(|left| !left.things.is_empty())
    }
}
