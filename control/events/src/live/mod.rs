//! Long-lived connections: MQTT 3.1.1 and 5 over TCP, TLS and WebSockets, and plain WebSockets.
//!
//! Topics are paths of the API. A publish calls the same service functions as HTTP, and what a subscriber receives
//! comes from the event feed, whichever replica wrote it.
//!
//! Packets are read and written by the codec of `mqtt5`; its broker is not used. It has one space of topics and client
//! ids for everybody: `/actions/scans` would be the same topic in every account, and a client id of one account would
//! end a session of another. Its hooks cannot rewrite filters or ids, nor answer a publish with an error. Here a
//! subscription belongs to an account from the start (`channels`).

mod link;
mod listen;
mod outbox;
mod packets;
mod publishing;
mod session;
mod socket;
mod subscribing;

use std::{ops::Deref, sync::Arc, time::Duration};

use serde_json::Value;
use shared::client_address::TrustedProxies;
use tokio::time::sleep;

use web::{
    known_members::Unknown,
    limiter::{Limiter, Verdict},
};

use crate::{
    domain::{access::Actor, topic::Topic},
    service::{EventState, connections::Connection},
};

pub use self::{
    link::{FromWebSocket, Link},
    listen::{BrokerListeners, run},
    session::{Limits, serve},
    socket::{Reception, serve as serve_socket},
};

/// What connections need; one for each process.
#[derive(Debug)]
pub struct Broker {
    /// What operations of events need.
    pub events: Arc<EventState>,
    /// How many requests keys and addresses may make.
    pub limiter: Arc<Limiter>,
    /// Proxies before the listeners that may name the client of a connection.
    pub trusted_proxies: TrustedProxies,
    /// Address of the docs page without a fragment, for `moreInfo`.
    pub docs_url: String,
    /// Removes members of a message that the request to the same path does not know: requests are declared with
    /// the routes.
    pub remove_unknown: fn(&Topic, &mut Value) -> Unknown,
}

/// Pause of a connection whose key, or whose account, has used up its requests.
const PAUSE: Duration = Duration::from_millis(20);

impl Broker {
    /// Waits until a key may make a request: a public one counts for its account, too, as over HTTP. Nothing is read
    /// meanwhile, and so nothing is lost. `false`: the connection must end.
    async fn admit(&self, actor: &Actor, key: &[u8; 32], connection: &Connection) -> bool {
        let is_refused = |verdict: Option<Verdict>| verdict.is_some_and(|verdict| !verdict.is_allowed);
        let wait = async {
            while is_refused(self.limiter.request(key)) {
                sleep(PAUSE).await;
            }
            while actor.kind.is_public() && is_refused(self.limiter.public_request(actor.account)) {
                sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = wait => true,
            () = connection.ends.cancelled() => false,
            () = self.connections.stopping.cancelled() => false,
        }
    }
}

impl Deref for Broker {
    type Target = EventState;

    fn deref(&self) -> &EventState {
        &self.events
    }
}
