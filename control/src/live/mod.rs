//! Connections that stay: MQTT 3.1.1 and 5 over TCP, TLS and WebSockets, and plain WebSockets (issue 5).
//!
//! Topics mirror the paths of the API; what is published is written by the functions that HTTP calls, and what
//! is heard comes from the feed, whoever wrote it on whichever replica.
//!
//! Packets are read and written by the codec of `mqtt5`; its broker is not used. It has one space of topics and
//! of client ids for everybody: `/actions/scans` would be the same topic in every account, and a client id of
//! one account would end a session of another; its hooks can rewrite neither filters nor ids, and answer no
//! publish with an error. Here a subscription is of an account from the start (`publish::channels`).

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
