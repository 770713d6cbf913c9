//! Pages of all links of a short domain, for edges with a full replica.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stream::{Epoch, Rev};
use crate::redirect::Redirect;

/// Most links of a page: some 350 KiB with targets of 60 characters, at most 5 MiB. Typed links end it before.
pub const MAX_LINKS: u32 = 1_000;

/// The links of a domain that follow a short id, as of one moment; without `more` it is the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinksPage {
    /// The history.
    pub epoch: Epoch,
    /// Everything up to this revision is in the page, and nothing after.
    pub at_rev: Rev,
    /// Whether others follow.
    pub more: bool,
    /// Folded short id, the revision that wrote the link, and the link.
    pub links: Vec<(Arc<str>, Rev, Arc<Redirect>)>,
}
