//! The condition of a change: the state that its caller has seen.

use shared::wire::stream::Rev;

use crate::{domain::redirection::Redirection, error::RedirectsError};

/// The revisions of which a redirection must have one, so that nothing is written over what the caller has not seen; `None`
/// where any will do.
#[derive(Debug, Clone, Default)]
pub struct Expected(pub Option<Vec<Rev>>);

impl Expected {
    /// Checks what a change is about.
    ///
    /// # Errors
    /// 412 for a redirection of another revision.
    pub(super) fn check(&self, found: &[Redirection]) -> Result<(), RedirectsError> {
        match &self.0 {
            Some(revs) if found.iter().any(|item| !revs.contains(&item.rev)) => {
                Err(RedirectsError::ChangedMeanwhile)
            }
            Some(_) | None => Ok(()),
        }
    }
}
