//! Operations: one function each, called by HTTP handlers and commands alike.
//!
//! They take the database and not the state of a server, because commands work beside it. Functions fail when the database
//! does; their docs list other errors only.

pub use ::redirects::service::*;
pub use ::tenants::service::quotas as quotas_of_accounts;

pub mod accounts;
pub mod audit;
pub mod keys;
pub mod quotas;
pub mod take_downs;

use serde_json::Value;
use shared::{
    id::AccountId,
    time::UnixMillis,
    wire::stream::{Change, Event, Rev},
    withheld::Withheld,
};

use crate::store::{Ctx, StoreError, Tx, audit::platform_trail, log};

/// Who does something to the platform, and when.
#[derive(Debug, Clone)]
pub struct By {
    /// What the audit trail knows of it.
    pub ctx: Ctx,
    /// The author as lists show it.
    pub author: String,
    /// The time.
    pub now: UnixMillis,
}

impl By {
    /// A command, named as the audit trail has it.
    #[must_use]
    pub fn command(operation: &str, now: UnixMillis) -> Self {
        Self { ctx: Ctx::of_command(operation, now), author: "command line".to_owned(), now }
    }

    /// The platform by itself: nobody asked for it at this moment.
    #[must_use]
    pub fn platform(operation: &str, now: UnixMillis) -> Self {
        Self { ctx: Ctx::of_platform(operation, now), author: "platform".to_owned(), now }
    }
}

/// Tells every edge that something is withheld, or no longer; returns the revision.
async fn publish(
    tx: &mut Tx,
    what: &Withheld,
    is_withheld: bool,
    now: UnixMillis,
) -> Result<Rev, StoreError> {
    let rev = log::take_revs(tx, 1).await?;
    let change = Change::Withhold(what.clone(), is_withheld);
    log::append(tx, now.0, &[Event { rev, change }]).await?;
    Ok(rev)
}

/// Notes a change in the trail of an account; of what concerns none, in that of the platform.
fn note(
    tx: &mut Tx,
    account: Option<AccountId>,
    of: (&'static str, &str),
    states: (Option<Value>, Option<Value>),
) {
    tx.note(account.unwrap_or_else(platform_trail), of, || states);
}
