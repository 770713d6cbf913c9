//! Shared pools: connections, uploads, streams, queued work. Each owner is bounded, so that no stranger, application or
//! tenant shuts out the others.

use std::{net::IpAddr, sync::Arc, time::Duration};

use platform::{Bounds, Full, Permits, Refused, Share, Shares, TimeLimits};
use shared::{
    client_address::network,
    id::{AccountId, FileId},
};

use crate::{
    domain::access::{Actor, ActorKind},
    error::{CommonError, ServiceError},
    service::batcher,
};

/// Most connections of the API: those of browsers, programs and WebSockets.
const API_CONNECTIONS: usize = 1_024;

/// Most connections of the listeners of MQTT, and of those of edges: streams and requests of 5,000 edges.
const MANY_CONNECTIONS: usize = 16_384;

/// Most connections without a key: with more, the search for one to close would take long.
const MOST_NEWCOMERS: usize = 1_024;

/// Most streams and exports of a process: each holds a task and a connection.
const STREAMS: usize = 1_000;

/// Most streams and exports of an account.
const STREAMS_PER_ACCOUNT: usize = 50;

/// Most of them that applications of an account may have together: operators keep the rest.
const STREAMS_PER_APPLICATIONS: usize = 25;

/// Most of them of one actor.
const STREAMS_PER_ACTOR: usize = 20;

/// Most of them of one address.
const STREAMS_PER_ADDRESS: usize = 40;

/// Passwords that are hashed or wait for it: at some 20 ms each, a second's work for two threads.
const PASSWORDS: usize = 100;

/// Concurrent forms with a photo: each takes some 20 MiB while it is read.
const PHOTOS: usize = 16;

/// Concurrent test events of webhooks; each takes 15 s at most.
const PINGS: usize = 16;

/// Concurrent single reads of edges: half of the database connections, so that misses of a fleet leave room.
const LOOKUPS: usize = 8;

/// Most changes of redirections and rules that wait for the writer, and most long lists of them, each of which may be
/// a megabyte; beyond it callers get 503.
pub const WAITING_CHANGES: (usize, usize) = (1_024, 64);

/// Property writes that may wait.
const PROPERTY_WRITES: usize = batcher::MAX_WAITING;

/// How many connections and uploads there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityLimits {
    /// Connections of the API's listeners; `None`: a quarter of the descriptors, at most 1,024.
    pub api_connections: Option<usize>,
    /// Connections of MQTT's listeners; `None`: a quarter of the descriptors, at most 16,384.
    pub mqtt_connections: Option<usize>,
    /// Connections of one address (IPv6: one /64) that showed no secret key.
    ///
    /// A page takes six of a browser; loopback and trusted proxies are exempt, as they bring those of others.
    pub connections_per_address: usize,
    /// Connections of one key; `None`: a quarter of the listener's.
    pub connections_per_key: Option<usize>,
    /// Connections of one account; `None`: three quarters of the listener's.
    pub connections_per_account: Option<usize>,
    /// Time limits of a connection.
    pub times: TimeLimits,
    /// Concurrent uploads: with two parts of 5 MiB each, 32 take 320 MiB of memory.
    pub uploads: usize,
    /// Writes of requests that may wait for the database: one or two seconds of work.
    pub writes: usize,
    /// Bytes a second that an upload brings at least, over [`Self::upload_window`].
    pub upload_rate: u64,
    /// The time over which the rate of an upload is taken.
    pub upload_window: Duration,
}

impl Default for CapacityLimits {
    fn default() -> Self {
        Self {
            api_connections: None,
            mqtt_connections: None,
            connections_per_address: 100,
            connections_per_key: None,
            connections_per_account: None,
            times: TimeLimits::default(),
            uploads: 32,
            writes: 1_024,
            upload_rate: 8 << 10,
            upload_window: Duration::from_secs(30),
        }
    }
}

/// An owner of slots of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account.
    Account(AccountId),
    /// The applications of an account, their users and Things: everybody but its operators.
    Applications(AccountId),
    /// One actor of an account.
    Actor(AccountId, ActorKind, String),
    /// An address (IPv6: one /64).
    Address(IpAddr),
    /// A file, whose signed URL replaces a key.
    File(FileId),
    /// An edge.
    Edge(Arc<str>),
}

/// A place of a pool.
pub type Place = Share<Owner>;

/// The places of a process.
#[derive(Debug)]
pub struct Capacity {
    /// The limits.
    pub limits: CapacityLimits,
    /// Connections of the API.
    pub api: Arc<Permits>,
    /// Connections of MQTT.
    pub mqtt: Arc<Permits>,
    /// Connections of edges.
    pub internal: Arc<Permits>,
    /// Uploads of files.
    pub uploads: Shares<Owner>,
    /// Forms with a photo, which strangers send.
    pub photos: Shares<Owner>,
    /// Streams of events and exports.
    pub streams: Shares<Owner>,
    /// Passwords that are hashed or wait for it.
    pub passwords: Shares<Owner>,
    /// Test events of webhooks.
    pub pings: Shares<Owner>,
    /// Single reads of edges.
    pub lookups: Shares<Owner>,
    /// Changes of redirections and rules that wait for the writer, or are being written.
    changes: Shares<Owner>,
    /// Imports of redirections and other long lists of changes.
    imports: Shares<Owner>,
    property_writes: Shares<Owner>,
    writes: Shares<Owner>,
}

impl Default for Capacity {
    fn default() -> Self {
        Self::new(CapacityLimits::default())
    }
}

impl Capacity {
    /// Places within limits.
    #[must_use]
    pub fn new(limits: CapacityLimits) -> Self {
        let quarter = (platform::descriptors() / 4).max(64);
        let permits = |most: usize, newcomers: usize| {
            let share = |set: Option<usize>, default: usize| set.unwrap_or(default).max(1);
            let (public, per_account) =
                ((most / 2).max(1), share(limits.connections_per_account, most - most / 4));
            Permits::new(Bounds {
                most,
                newcomers: Some(newcomers.max(1)),
                public,
                per_address: limits.connections_per_address,
                per_key: share(limits.connections_per_key, most / 4),
                per_account,
                // Of three quarters, operators always find one.
                per_applications: (per_account - per_account / 3).max(1),
                per_account_public: (public / 2).max(1),
            })
        };
        let api = limits.api_connections.unwrap_or_else(|| quarter.min(API_CONNECTIONS));
        let mqtt = limits.mqtt_connections.unwrap_or_else(|| quarter.min(MANY_CONNECTIONS));
        let edges = quarter.min(MANY_CONNECTIONS);
        let internal = Bounds { newcomers: Some(edges / 2), ..Bounds::plain(edges, edges) };
        Self {
            api: permits(api, (api / 4).min(MOST_NEWCOMERS)),
            mqtt: permits(mqtt, (mqtt / 4).min(MOST_NEWCOMERS)),
            internal: Permits::new(internal),
            uploads: Shares::new(limits.uploads),
            photos: Shares::new(PHOTOS),
            streams: Shares::new(STREAMS),
            passwords: Shares::new(PASSWORDS),
            pings: Shares::new(PINGS),
            lookups: Shares::new(LOOKUPS),
            changes: Shares::new(WAITING_CHANGES.0),
            imports: Shares::new(WAITING_CHANGES.1),
            property_writes: Shares::new(PROPERTY_WRITES),
            writes: Shares::new(limits.writes),
            limits,
        }
    }

    /// A slot for an upload of an account's file; `actor` is absent if a signed URL replaces the key.
    ///
    /// An account may use half of all slots; an actor, a file or an address a quarter.
    pub fn upload(
        &self,
        account: AccountId,
        actor: Option<&Actor>,
        file: FileId,
        client: Option<IpAddr>,
    ) -> Result<Place, ServiceError> {
        let part = |of: usize| (self.uploads.most() / of).max(1);
        let owner = actor.map_or(Owner::File(file), actor_of);
        let owners = [(Owner::Account(account), part(2)), (owner, part(4))];
        take(&self.uploads, owners.into_iter().chain(address(client, part(4))), "uploads")
    }

    /// A place for a form with a photo about an item of an account. Strangers send it, so it takes none of the uploads: an
    /// account has half of all, an address a quarter.
    pub fn photo(&self, account: AccountId, client: Option<IpAddr>) -> Result<Place, ServiceError> {
        let owners = [(Owner::Account(account), PHOTOS / 2)];
        take(&self.photos, owners.into_iter().chain(address(client, PHOTOS / 4)), "photos")
    }

    /// A place for a stream of events or an export.
    pub fn stream(&self, actor: &Actor, client: Option<IpAddr>) -> Result<Place, ServiceError> {
        let applications = (!actor.kind.is_operator())
            .then_some((Owner::Applications(actor.account), STREAMS_PER_APPLICATIONS));
        let owners =
            [(Owner::Account(actor.account), STREAMS_PER_ACCOUNT), (actor_of(actor), STREAMS_PER_ACTOR)];
        let owners = owners.into_iter().chain(applications).chain(address(client, STREAMS_PER_ADDRESS));
        take(&self.streams, owners, "streams and exports")
    }

    /// A place for a password that is hashed, for users of an application.
    pub fn password(&self, actor: &Actor) -> Result<Place, ServiceError> {
        let owners = [(Owner::Account(actor.account), PASSWORDS / 2), (actor_of(actor), PASSWORDS / 4)];
        take(&self.passwords, owners, "logins")
    }

    /// A place for a test event of a webhook.
    pub fn ping(&self, actor: &Actor) -> Result<Place, ServiceError> {
        let owners = [(Owner::Account(actor.account), PINGS / 2), (actor_of(actor), PINGS / 4)];
        take(&self.pings, owners, "test events")
    }

    /// A slot for a single read of an edge; refused at once if there is none.
    pub fn lookup(&self, edge: &Arc<str>) -> Result<Place, ServiceError> {
        self.lookups
            .take([(Owner::Edge(edge.clone()), LOOKUPS * 3 / 4)])
            .map_err(|_| ServiceError::Full("look-ups of edges"))
    }

    /// A place for a change of redirections or rules, held until it is written.
    pub fn change(&self, actor: &Actor) -> Result<Place, ServiceError> {
        take_write(&self.changes, actor, "changes of redirections")
    }

    /// A place for a long list of such changes.
    pub fn import(&self, actor: &Actor) -> Result<Place, ServiceError> {
        take_write(&self.imports, actor, "imports")
    }

    /// A place for a write of properties, held until it is written.
    pub fn property_write(&self, actor: &Actor) -> Result<Place, ServiceError> {
        take_write(&self.property_writes, actor, "property writes")
    }

    /// A place for any other write of a request, held until it is committed.
    pub fn write(&self, actor: &Actor) -> Result<Place, ServiceError> {
        take_write(&self.writes, actor, "writes")
    }
}

/// A place for a write: an account has three quarters at most, its applications, their users and Things a half.
fn take_write(pool: &Shares<Owner>, actor: &Actor, what: &'static str) -> Result<Place, ServiceError> {
    let most = pool.most();
    let applications = (!actor.kind.is_operator()).then_some((Owner::Applications(actor.account), most / 2));
    let owners = [(Owner::Account(actor.account), most / 4 * 3)];
    take(pool, owners.into_iter().chain(applications), what)
}

fn actor_of(actor: &Actor) -> Owner {
    Owner::Actor(actor.account, actor.kind, actor.id.clone())
}

fn address(client: Option<IpAddr>, most: usize) -> Option<(Owner, usize)> {
    client.map(|ip| (Owner::Address(network(ip.to_canonical())), most))
}

fn take(
    pool: &Shares<Owner>,
    owners: impl IntoIterator<Item = (Owner, usize)>,
    what: &'static str,
) -> Result<Place, ServiceError> {
    pool.take(owners).map_err(|full| match full {
        Full::Pool => ServiceError::Full(what),
        Full::Owner(owner) => {
            let whose = match owner {
                Owner::Account(_) => "this account",
                Owner::Applications(_) => "the applications of this account",
                Owner::Actor(..) => "this key's owner",
                Owner::Address(_) => "this address",
                Owner::File(_) => "this file",
                Owner::Edge(_) => "this edge",
            };
            CommonError::TooManyAtOnce { what, whose }.into()
        }
    })
}

/// The error for the holder of a connection when its share is used up.
pub fn refusal(reason: Refused) -> ServiceError {
    let whose = match reason {
        Refused::Key => "with this key",
        Refused::Account => "of this account",
        Refused::Address => "from this address",
        Refused::Public => "with keys of applications, their users and Things",
        Refused::Full | Refused::Displaced | Refused::HeadersLate | Refused::Idle | Refused::SlowReader => {
            "without a known key"
        }
    };
    CommonError::TooManyConnections(whose).into()
}

/// How a connection is held by who showed a key.
pub fn holder(actor: &Actor, key: [u8; 32]) -> platform::Holder {
    let rank = if actor.kind.is_public() { platform::Rank::Public } else { platform::Rank::Trusted };
    let is_operator = actor.kind == ActorKind::Operator;
    platform::Holder { rank, key, account: actor.account.to_string(), is_operator }
}

#[cfg(test)]
mod tests;
