//! Actions and scans by edges as one list, by creation and place.
//!
//! The table of actions is read first. A scan that is moved out of it is in the other store before it is gone here, so it is
//! found in one of them or in both, and in both it has the same place.

use scan_store::ScanStore;
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::{Conn, Db, StoreError, action_lists, listing::Selection};
use crate::domain::{action::Action, page::Page, scan::IMPLICIT_SCANS};

/// An action of an account.
pub async fn find(
    scans: &dyn ScanStore,
    conn: &mut Conn,
    account: AccountId,
    id: ActionId,
) -> Result<Option<Action>, StoreError> {
    match action_lists::find(conn, account, id).await? {
        Some(action) => Ok(Some(action)),
        None => Ok(scans.find_many(account, &[id]).await?.pop()),
    }
}

/// Creation time of the first action of an account at or after a time.
pub async fn find_first_since(
    scans: &dyn ScanStore,
    conn: &mut Conn,
    account: AccountId,
    since: UnixMillis,
) -> Result<Option<UnixMillis>, StoreError> {
    let action = action_lists::find_first_since(conn, account, since).await?;
    let scan = scans.find_first_since(account, since).await?;
    Ok(action.into_iter().chain(scan).min())
}

/// The existing ones of some actions of an account, in order of creation.
pub async fn find_many(
    scans: &dyn ScanStore,
    conn: &mut Conn,
    account: AccountId,
    ids: &[ActionId],
) -> Result<Vec<Action>, StoreError> {
    let mut found = action_lists::find_many(conn, account, ids).await?;
    if found.len() < ids.len() {
        let missing = |id: &&ActionId| !found.iter().any(|action| action.id == **id);
        let missing: Vec<ActionId> = ids.iter().filter(missing).copied().collect();
        found.extend(scans.find_many(account, &missing).await?);
        found.sort_unstable_by_key(Action::position);
    }
    Ok(found)
}

/// A page of actions.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be looked at.
pub async fn list(
    scans: &dyn ScanStore,
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Action>, StoreError> {
    let page = action_lists::list(conn, selection).await?;
    add_scans(page, scans, selection).await
}

/// A page of actions, for a caller that holds no connection: none is held while scans are read.
///
/// # Errors
/// As [`list`].
pub async fn list_alone(
    scans: &dyn ScanStore,
    db: &Db,
    selection: &Selection<'_>,
) -> Result<Page<Action>, StoreError> {
    let page = action_lists::list(&mut db.read().await?, selection).await?;
    add_scans(page, scans, selection).await
}

async fn add_scans(
    page: Page<Action>,
    scans: &dyn ScanStore,
    selection: &Selection<'_>,
) -> Result<Page<Action>, StoreError> {
    let is_of_another_type =
        selection.within.iter().any(|(field, value)| *field == "type" && *value != IMPLICIT_SCANS);
    if is_of_another_type {
        return Ok(page);
    }
    let scans = scans.page(selection).await?;
    if scans.is_empty() {
        return Ok(page);
    }
    Ok(merge(page, scans, selection))
}

/// A page, with one more scan than it may have.
fn merge(page: Page<Action>, scans: Vec<Action>, selection: &Selection<'_>) -> Page<Action> {
    let request = selection.request.page;
    let mut all = page.items;
    let is_full = scans.len() > request.per_page as usize;
    // The row after the page was cut off, and is not needed: there is a scan or another row in its place.
    let is_more = page.next.is_some() || is_full;
    if let Some(last) = scans.last().filter(|_| is_full).map(Action::position) {
        // If some are double, there may be scans before the rows that follow the last one.
        let is_up_to = |row: &Action| {
            if request.is_ascending() { row.position() <= last } else { row.position() >= last }
        };
        all.retain(is_up_to);
    }
    all.extend(scans);
    all.sort_by_key(Action::position);
    // A scan that is in both.
    all.dedup_by_key(|action| action.position());
    if !request.is_ascending() {
        all.reverse();
    }
    let mut merged = Page::cut(all, request, Action::position);
    if is_more && merged.next.is_none() {
        // Some were in both, or twice in one.
        merged.next = merged.items.last().map(Action::position);
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::domain::{
        grant::Limit,
        listing::ListRequest,
        page::{PageRequest, SortOrder},
    };

    fn action((at, seq): (i64, i64)) -> Action {
        Action {
            id: ActionId::new(at, [0; 16]),
            seq,
            created_at: UnixMillis(at),
            timestamp: UnixMillis(at),
            kind: IMPLICIT_SCANS.to_owned(),
            thng: None,
            product: None,
            members: Map::new(),
        }
    }

    /// The rows of a store behind a place, one more than a page.
    fn rows(all: &[(i64, i64)], request: PageRequest) -> Vec<Action> {
        let mut all = all.to_vec();
        all.sort_unstable();
        if !request.is_ascending() {
            all.reverse();
        }
        let start = request.start();
        all.retain(|place| if request.is_ascending() { *place > start } else { *place < start });
        all.into_iter().take(request.limit() as usize).map(action).collect()
    }

    proptest! {
        #[test]
        fn pages_of_two_stores_hold_each_action_once(
            actions in proptest::collection::btree_set((0..4_i64, 0..12_i64), 0..20),
            scans in proptest::collection::btree_set((0..4_i64, 0..12_i64), 0..20),
            twice in proptest::collection::vec(0..20_usize, 0..4),
            per_page in 1_u32..7,
            ascending: bool,
        ) {
            let sort = if ascending { SortOrder::Ascending } else { SortOrder::Descending };
            let mut page = PageRequest { per_page, sort, ..PageRequest::default() };
            let (here, there): (Vec<_>, Vec<_>) = (actions.iter().copied().collect(), scans.iter().copied().collect());
            // A scan may be stored twice, by two movers at once.
            let doubles: Vec<(i64, i64)> = twice.iter().filter_map(|at| there.get(*at).copied()).collect();
            let there: Vec<(i64, i64)> = there.into_iter().chain(doubles).collect();
            let mut seen = Vec::new();
            loop {
                let request = ListRequest { page, ..ListRequest::default() };
                let account = AccountId::new(1, [1; 16]);
                let selection = Selection { account, limit: &Limit::Account, request: &request, within: &[] };
                let found = Page::cut(rows(&here, page), page, Action::position);
                let merged = merge(found, rows(&there, page), &selection);
                prop_assert!(merged.items.len() <= per_page as usize);
                seen.extend(merged.items.iter().map(|action| (action.created_at.0, action.seq)));
                let Some(next) = merged.next else { break };
                page.after = Some(next);
            }
            let mut expected: Vec<(i64, i64)> = actions.union(&scans).copied().collect();
            if !ascending {
                expected.reverse();
            }
            prop_assert_eq!(seen, expected);
        }
    }
}
