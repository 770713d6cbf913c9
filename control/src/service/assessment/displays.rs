//! What tagged display pieces teach: where such items are, so that others that look like them there are named.

use shared::id::{AccountId, ThngId};

use super::history;
use crate::{
    domain::{
        assessment::{
            explain::{Displays, MANY_SESSIONS},
            profile::Profile,
            rules::is_display,
            spread::Home,
        },
        resource::Thng,
    },
    error::ServiceError,
    store::{Conn, Tx, display_places},
};

/// Fewest sessions that say where a display piece is: its tag says already what it is.
const FEWEST: usize = 3;

/// Most display pieces of a region that are counted.
const MOST: u32 = 100;

/// Keeps where a Thng is mostly seen while it is tagged as a display piece, and forgets it otherwise.
///
/// # Errors
/// The database failed.
pub(crate) async fn learn(tx: &mut Tx, account: AccountId, thng: &Thng) -> Result<(), ServiceError> {
    let tags = thng.details.common.tags.as_deref().unwrap_or_default();
    let home =
        if is_display(tags) { Home::of_profile(&history::load(tx, account, thng.id).await?) } else { None };
    match home.filter(|home| home.sessions >= FEWEST && home.share() > 0.5) {
        Some(home) => display_places::put(tx, account, thng.id, &home.region).await?,
        None => display_places::delete(tx, account, thng.id).await?,
    }
    Ok(())
}

/// Display pieces that are mostly seen where a Thng is; nothing of one with few sessions, which cannot look like one.
///
/// # Errors
/// The database failed.
pub(super) async fn nearby(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
    profile: &Profile,
) -> Result<Option<Displays>, ServiceError> {
    let Some(home) = Home::of_profile(profile).filter(|_| profile.len() >= MANY_SESSIONS) else {
        return Ok(None);
    };
    let count = display_places::count(conn, account, &home.region, thng, MOST).await?;
    Ok((count > 0).then_some(Displays { region: home.region, count }))
}
