//! Long-lived connections: MQTT 3.1.1 and 5 over TCP, TLS and WebSockets, and plain WebSockets.
//!
//! Topics are paths of the API. A publish calls the same service functions as HTTP, and what a subscriber receives
//! comes from the event feed, whichever replica wrote it.
//!
//! Packets are read and written by the codec of `mqtt5`; its broker is not used. It has one space of topics and client
//! ids for everybody: `/actions/scans` would be the same topic in every account, and a client id of one account would
//! end a session of another. Its hooks cannot rewrite filters or ids, nor answer a publish with an error. Here a
//! subscription belongs to an account from the start (`publish::channels`).

mod link;
mod listen;
mod outbox;
mod packets;
mod publishing;
mod session;
mod socket;
mod subscribing;

pub use self::{
    link::{FromWebSocket, Link},
    listen::{BrokerListeners, run},
    session::{Limits, serve},
    socket::serve as serve_socket,
};
