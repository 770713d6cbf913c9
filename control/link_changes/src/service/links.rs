//! The links that a change is about.

use kernel::{
    domain::{
        access::Actor,
        filter::Filter,
        listing::ListRequest,
        page::{Page, PageRequest, Position, SortOrder},
    },
    store::Conn,
};
use redirects::{
    domain::redirection::Redirection,
    service::redirections::{self, Listing},
};
use shared::time::UnixMillis;

use crate::{
    domain::{change::LinkChange, selection::Selection},
    error::{LinkChangeError, ServiceError},
};

/// Which part of the links to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Only links that were there at this time.
    pub asked: UnixMillis,
    /// The last link before.
    pub after: Option<Position>,
    /// How many.
    pub count: u32,
    /// Whether to count all.
    pub counted: bool,
}

/// Links that meet conditions and that the actor may change, oldest first.
///
/// # Errors
/// 400 for a domain that is not the account's.
pub(super) async fn read(
    conn: &mut Conn,
    actor: &Actor,
    selection: &Selection,
    part: Part,
) -> Result<Page<Redirection>, ServiceError> {
    let page = PageRequest { per_page: part.count, sort: SortOrder::Ascending, after: part.after, number: 1 };
    // Links that came later are not those that were counted and shown.
    let bound = Filter::between("createdAt", None, Some(part.asked));
    let filter = selection.filter.clone().into_iter().chain(bound).reduce(Filter::and);
    let request = ListRequest { page, ids: None, filter, project: selection.project, counted: part.counted };
    let listing = Listing {
        platform_id: selection.platform_id,
        domain: selection.domain.clone(),
        product: selection.product,
        words: selection.words.clone(),
        request,
    };
    redirections::matching(conn, actor, &listing).await
}

/// How many links a stored change finds now, of those that were there when it was asked for.
///
/// # Errors
/// Its conditions cannot be read any more.
pub(super) async fn count(conn: &mut Conn, change: &LinkChange) -> Result<u64, ServiceError> {
    let selection = stored(change)?;
    let actor = change.details.maker.actor(change.account);
    let part = Part { asked: change.stamp.created_at, after: None, count: 1, counted: true };
    Ok(read(conn, &actor, &selection, part).await?.total.unwrap_or_default())
}

/// The conditions of a stored change.
///
/// # Errors
/// This release cannot read them.
pub(super) fn stored(change: &LinkChange) -> Result<Selection, LinkChangeError> {
    Selection::stored(&change.details.selection).map_err(|_| LinkChangeError::Unreadable)
}
