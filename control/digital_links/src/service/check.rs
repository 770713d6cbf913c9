//! Looks at the pages that the links of a product lead to.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use catalog::domain::resource::Product;
use egress::{EgressClient, Page};
use futures_util::{StreamExt, stream};
use kernel::{
    domain::permission::{Subject::Products, Verb},
    error::{CommonError, ServiceError},
    service::{
        Core,
        access::{Caller, require},
        named,
    },
};
use platform::{Full, Share, Shares};
use shared::{id::AccountId, time::UnixMillis};
use tokio::time::timeout;
use tracing::instrument;

use crate::{
    domain::pages::{self, LinkedPage},
    error::DigitalLinksError,
};

/// Pages of a product that are looked at at once.
const AT_ONCE: usize = 4;
/// Checks that a process makes at once: each name that is looked up takes a thread of those that webhooks need, too.
const CHECKS_AT_ONCE: usize = 8;
/// Those of one account.
const CHECKS_OF_ACCOUNT: usize = 2;
/// How long a page may take, with its redirects.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long all of them may take: less than a request may.
const TOTAL: Duration = Duration::from_secs(25);
/// Checks of an account within a minute, in a process.
const MAX_CHECKS: u32 = 10;
const MINUTE_MS: i64 = 60_000;

/// What checks of links need; one for each process.
pub struct LinkChecks {
    core: Arc<Core>,
    egress: EgressClient,
    running: Shares<AccountId>,
    /// Since when the checks of an account are counted, and how many there were.
    counts: Mutex<HashMap<AccountId, (UnixMillis, u32)>>,
}

impl LinkChecks {
    /// The state of a process.
    #[must_use]
    pub fn new(core: Arc<Core>, egress: EgressClient) -> Arc<Self> {
        Arc::new(Self { core, egress, running: Shares::new(CHECKS_AT_ONCE), counts: Mutex::default() })
    }

    /// A place for a check, held until it is over.
    fn begin(&self, account: AccountId) -> Result<Share<AccountId>, ServiceError> {
        let what = "checks of links";
        let place = self.running.take([(account, CHECKS_OF_ACCOUNT)]).map_err(|full| match full {
            Full::Pool => ServiceError::Full(what),
            Full::Owner(_) => CommonError::TooManyAtOnce { what, whose: "this account" }.into(),
        })?;
        self.count(account)?;
        Ok(place)
    }

    fn count(&self, account: AccountId) -> Result<(), DigitalLinksError> {
        let now = self.core.clock.now();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|_, (since, _)| now.0.saturating_sub(since.0) < MINUTE_MS);
        let (_, count) = counts.entry(account).or_insert((now, 0));
        if *count >= MAX_CHECKS {
            return Err(DigitalLinksError::TooManyChecks { most: MAX_CHECKS });
        }
        *count += 1;
        Ok(())
    }

    async fn look(&self, page: LinkedPage) -> CheckedPage {
        let looked = timeout(TIMEOUT, self.egress.look(&page.url)).await;
        let found = looked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        CheckedPage { page, found }
    }
}

impl fmt::Debug for LinkChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkChecks")
    }
}

/// A page that was looked at.
#[derive(Debug)]
pub struct CheckedPage {
    /// The page.
    pub page: LinkedPage,
    /// What answered, or why nothing did.
    pub found: Result<Page, String>,
}

/// Looks at the pages that the links of a product lead to, `{21}` in them being a serial; gives them in the order of the product,
/// and how many are left out.
///
/// # Errors
/// The key lacks the permission or is a public one, there is no such product, the account has asked too often, or too many checks
/// are under way.
#[instrument(skip_all)]
pub async fn check(
    state: &LinkChecks,
    caller: &Caller,
    reference: &str,
    serial: Option<&str>,
) -> Result<(Vec<CheckedPage>, usize), ServiceError> {
    let _ = require(caller, Verb::Read, Products)?;
    let grant = require(caller, Verb::Update, Products)?;
    if caller.kind.is_public() {
        return Err(CommonError::KeyKind(caller.kind).into());
    }
    let product: Product = {
        // Given back before other hosts are asked.
        let mut conn = state.core.db.read().await?;
        named::find(&mut conn, caller, &grant, reference).await?
    };
    let (listed, left_out) = pages::of_product(&product, serial);
    if listed.is_empty() {
        return Ok((Vec::new(), left_out));
    }
    let _place = state.begin(caller.account)?;
    let mut checked: Vec<CheckedPage> = Vec::with_capacity(listed.len());
    let mut looks = stream::iter(listed.clone()).map(|page| state.look(page)).buffered(AT_ONCE);
    let all = async {
        while let Some(one) = looks.next().await {
            checked.push(one);
        }
    };
    let is_done = timeout(TOTAL, all).await.is_ok();
    if !is_done {
        let late = |page| CheckedPage { page, found: Err("there was no time left for it".to_owned()) };
        let done = checked.len();
        checked.extend(listed.into_iter().skip(done).map(late));
    }
    Ok((checked, left_out))
}
