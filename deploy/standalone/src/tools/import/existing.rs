//! What was there before an import began: rows whose redirection exists are not created a second time.
//!
//! A row is there when its resource has a redirection to the same target, under the same short id where the
//! row names one, and with the status code, the times and the ended page that the row names. Each such
//! redirection stands for one row: a file with three equal rows makes three codes,
//! and makes the third one where two are there. Only what is older than the import counts, so that an
//! import that goes on after a stop decides as it did before. Memory: some 16 bytes for each resource, and
//! the redirections that are there.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use redirects::domain::redirection::Draft;
use reqwest::StatusCode;
use serde::Deserialize;
use shared::{
    availability::{Availability, PAUSED},
    redirect_status::RedirectStatus,
    time::UnixMillis,
};

use crate::tools::client::{Client, RequestError};

/// Look-ups under way at once.
const PARALLEL: usize = 8;

/// A short id that exists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Code {
    /// Its short id.
    pub(super) short_id: String,
    /// Its short URL.
    pub(super) short_url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    created_at: i64,
    #[serde(default)]
    default_redirect_url: String,
    #[serde(default)]
    platform_id: String,
    #[serde(default)]
    status_code: RedirectStatus,
    valid_from: Option<UnixMillis>,
    valid_until: Option<UnixMillis>,
    max_scans: Option<u32>,
    #[serde(default)]
    status: String,
    ended_url: Option<Box<str>>,
    #[serde(flatten)]
    code: Code,
}

impl Found {
    /// When it leads to its target; `None` if always.
    fn availability(&self) -> Option<Box<Availability>> {
        let availability = Availability {
            valid_from: self.valid_from,
            valid_until: self.valid_until,
            max_scans: self.max_scans,
            is_paused: self.status == PAUSED,
            ended_url: self.ended_url.clone(),
            ..Availability::default()
        };
        (!availability.is_empty()).then(|| Box::new(availability))
    }
}

/// Whether the status code, the times and the ended page that a row names are those of a redirection. What it leaves out may be
/// anything.
fn is_met(draft: &Draft, status_code: RedirectStatus, availability: Option<&Availability>) -> bool {
    let writable = &draft.writable;
    writable.status_code.or_default(status_code) == status_code
        && writable.availability.apply(availability).is_ok_and(|after| after.as_deref() == availability)
}

/// A redirection of a resource.
#[derive(Debug)]
struct There {
    code: Code,
    status_code: RedirectStatus,
    availability: Option<Box<Availability>>,
}

/// The redirections of a resource by target.
type ByTarget = HashMap<String, VecDeque<There>>;

/// Redirections from before the import, read as its rows need them.
pub(super) struct Existing {
    client: Client,
    domain: Option<String>,
    /// Creation time of the newest redirection from before the import; `None` when there is nothing to look for.
    until: Option<i64>,
    /// Of each resource that has redirections, these by target.
    found: HashMap<String, ByTarget>,
    /// Hashes of the resources that have none.
    empty: HashSet<u64>,
    hasher: RandomState,
}

impl Existing {
    /// Nothing is read yet.
    pub(super) fn new(client: Client, domain: Option<String>, until: Option<i64>) -> Self {
        let (found, empty, hasher) = (HashMap::new(), HashSet::new(), RandomState::new());
        Self { client, domain, until, found, empty, hasher }
    }

    /// Reads the redirections of the resources of some rows.
    pub(super) async fn load(&mut self, drafts: &[Option<Draft>]) -> Result<(), RequestError> {
        let Some(until) = self.until else { return Ok(()) };
        let mut wanted: HashMap<String, (Option<String>, String)> = HashMap::new();
        for draft in drafts.iter().flatten() {
            let (domain, platform_id) = (self.domain_of(draft), draft.platform_id.to_string());
            let key = key(domain, &platform_id);
            if !self.found.contains_key(&key) && !self.empty.contains(&self.hasher.hash_one(&key)) {
                wanted.insert(key, (domain.map(str::to_owned), platform_id));
            }
        }
        let client = &self.client;
        let reads: Vec<_> = stream::iter(wanted)
            .map(async |(key, (domain, platform_id))| {
                Ok::<_, RequestError>((key, read(client, domain.as_deref(), &platform_id, until).await?))
            })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        for (key, codes) in reads {
            if codes.is_empty() {
                self.empty.insert(self.hasher.hash_one(&key));
            } else {
                self.found.insert(key, codes);
            }
        }
        Ok(())
    }

    /// Notes that a resource was made just now.
    pub(super) fn is_new(&mut self, domain: Option<&str>, platform_id: &str) {
        let key = key(domain.or(self.domain.as_deref()), platform_id);
        self.empty.insert(self.hasher.hash_one(&key));
    }

    /// The redirection that a row asks for, if it is there; it then stands for no other row.
    pub(super) fn take(&mut self, draft: &Draft) -> Option<Code> {
        let key = key(self.domain_of(draft), draft.platform_id.as_str());
        let found = self.found.get_mut(&key)?.get_mut(draft.writable.target.as_str())?;
        let is_named = |code: &Code| {
            draft.short_id.as_ref().is_none_or(|id| code.short_id.eq_ignore_ascii_case(id.as_str()))
        };
        let at = found.iter().position(|there| {
            is_named(&there.code) && is_met(draft, there.status_code, there.availability.as_deref())
        })?;
        found.remove(at).map(|there| there.code)
    }

    /// Notes that a code stands for a row of its resource.
    pub(super) fn remove(&mut self, draft: &Draft, code: &Code) {
        let key = key(self.domain_of(draft), draft.platform_id.as_str());
        for codes in self.found.get_mut(&key).into_iter().flat_map(HashMap::values_mut) {
            codes.retain(|found| found.code != *code);
        }
    }

    /// The short domain that a row means.
    pub(super) fn domain_of<'a>(&'a self, draft: &'a Draft) -> Option<&'a str> {
        draft.short_domain.as_deref().or(self.domain.as_deref())
    }
}

/// The redirection under the short id that a row names, if it has the row's resource, target, status code, times and ended page.
///
/// For rows that are refused because the short id is taken: by another import at the same time, maybe.
pub(super) async fn same(
    client: &Client,
    domain: Option<&str>,
    draft: &Draft,
) -> Result<Option<Code>, RequestError> {
    let Some(id) = &draft.short_id else { return Ok(None) };
    let domain = draft.short_domain.as_deref().or(domain).map(|domain| ("domain", domain));
    let is_same = |found: &Found| {
        found.platform_id == draft.platform_id.as_str()
            && found.default_redirect_url == draft.writable.target.as_str()
            && is_met(draft, found.status_code, found.availability().as_deref())
    };
    match client.read::<Found>(&client.url(&["redirections", id.as_str()], domain)).await {
        Ok(found) => Ok(Some(found).filter(is_same).map(|found| found.code)),
        Err(RequestError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn key(domain: Option<&str>, platform_id: &str) -> String {
    format!("{platform_id} {}", domain.unwrap_or_default())
}

/// The creation time of the newest redirection of the account; `None` when there is none.
pub(super) async fn newest(client: &Client) -> Result<Option<i64>, RequestError> {
    let page: Vec<Found> = client.read(&client.url(&["redirections"], [("perPage", "1")])).await?;
    Ok(page.first().map(|found| found.created_at))
}

/// The account of the key.
pub(super) async fn account(client: &Client) -> Result<Option<String>, RequestError> {
    #[derive(Deserialize)]
    struct Account {
        id: String,
    }
    let accounts: Vec<Account> = client.read(&client.url(&["accounts"], [])).await?;
    Ok(accounts.into_iter().next().map(|account| account.id))
}

/// The short domain of rows that name none: the account's first, where the key may read it.
pub(super) async fn first_domain(client: &Client) -> Result<Option<String>, RequestError> {
    let Some(account) = account(client).await? else { return Ok(None) };
    match client.read::<Vec<String>>(&client.url(&["accounts", &account, "shortDomains"], [])).await {
        Ok(hosts) => Ok(hosts.into_iter().next()),
        Err(RequestError::Refused { status: StatusCode::FORBIDDEN, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The redirections of a resource up to a time, oldest first, by target.
async fn read(
    client: &Client,
    domain: Option<&str>,
    platform_id: &str,
    until: i64,
) -> Result<ByTarget, RequestError> {
    let fixed = [("platformId", platform_id), ("perPage", "100"), ("sortOrder", "ASCENDING")];
    let query = fixed.into_iter().chain(domain.map(|domain| ("domain", domain)));
    let mut next = Some(client.url(&["redirections"], query));
    let mut codes = ByTarget::new();
    while let Some(url) = next {
        let (page, following) = match client.read_page::<Vec<Found>>(&url).await {
            Ok(page) => page,
            // A domain or resource that is not the account's has nothing; the create says what is wrong.
            Err(RequestError::Refused {
                status: StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND, ..
            }) => break,
            Err(error) => return Err(error),
        };
        next = following;
        for found in page {
            if found.created_at > until {
                return Ok(codes);
            }
            let (availability, status_code) = (found.availability(), found.status_code);
            let there = There { code: found.code, status_code, availability };
            codes.entry(found.default_redirect_url).or_default().push_back(there);
        }
    }
    Ok(codes)
}

/// Which of some ids are those of no resource that a redirection can belong to.
pub(super) async fn missing(client: &Client, ids: HashSet<String>) -> Result<HashSet<String>, RequestError> {
    #[derive(Deserialize)]
    struct Resource {
        id: String,
    }
    let mut left = ids;
    for kind in ["thngs", "products", "collections", "places"] {
        let all: Vec<String> = left.iter().cloned().collect();
        for part in all.chunks(100) {
            let ids = part.join(",");
            let url = client.url(&[kind], [("ids", ids.as_str()), ("perPage", "100")]);
            for resource in client.read::<Vec<Resource>>(&url).await? {
                left.remove(&resource.id);
            }
        }
    }
    Ok(left)
}
