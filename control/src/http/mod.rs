//! The HTTP API: extract, call one service function, respond.
//!
//! Every route is in `router`; every error leaves through `web::api_error`; what all requests share (ids, the `/v2` prefix,
//! limits, panics) is in `middleware`.

mod action_types;
mod actions;
mod admin;
mod authentication;
mod authentication_result;
mod batches;
mod bulk;
mod busy;
mod cases;
mod client;
mod collection_members;
mod collections;
mod commissioning;
mod cors;
mod docs;
mod events;
mod file_content;
mod files;
mod followers;
mod guides;
pub mod internal;
mod jobs;
mod known;
mod middleware;
mod new_actions;
mod openapi;
mod places;
mod products;
mod properties;
mod reactions;
mod redirection_answers;
mod redirections;
mod router;
mod rules;
mod serve;
mod service_info;
mod sockets;
mod state;
mod status;
mod tasks;
mod thng_keys;
mod thng_locations;
mod thngs;
mod time;
mod webhooks;

pub(crate) use known::remove_unknown;

pub use admin::{Admin, AdminAnswer, Readiness, WorkerAdmin, run_admin};
pub use router::{document, router};
pub use serve::{ApiListeners, Connection, run};
