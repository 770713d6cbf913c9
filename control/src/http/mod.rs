//! The HTTP API as a whole: listeners, layers, and the pages about it.
//!
//! `router` merges the routes of the subjects; what all requests share (ids, the `/v2` prefix, errors) is in `middleware`, what
//! the row of each says (limits, times, the gate of the console) in `admission`; what edges ask for is in `internal`.

mod admin;
mod admission;
mod busy;
mod client;
mod cors;
mod docs;
mod guides;
pub mod internal;
mod known;
mod middleware;
mod openapi;
mod router;
mod serve;
mod service_info;
mod state;
mod status;
mod time;

pub(crate) use known::remove_unknown;

pub use admin::{Admin, AdminAnswer, Readiness, WorkerAdmin, run_admin};
pub use router::{behind_layers, document, policies, router};
pub use serve::{ApiListeners, Connection, run};
