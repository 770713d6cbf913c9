//! The HTTP API: extract, call one service function, respond.
//!
//! Every route is in `router`; every error leaves through `api_error`; what all requests share (ids, the `/v2` prefix,
//! limits, panics) is in `middleware`.

mod access;
mod accesses;
mod action_types;
mod actions;
mod admin;
mod api_error;
mod applications;
mod authentication;
mod authentication_result;
mod batches;
mod bulk;
mod cases;
mod client;
mod collection_members;
mod collections;
mod commissioning;
mod cors;
mod docs;
mod events;
mod extract;
mod file_content;
mod files;
mod followers;
mod guides;
pub mod internal;
mod jobs;
mod keys;
mod known;
mod listing;
mod location;
mod logins;
mod middleware;
mod new_actions;
mod once;
mod openapi;
mod permits;
mod places;
mod products;
mod projects;
mod properties;
mod rate_limit;
mod reactions;
mod redirection_answers;
mod redirections;
mod router;
mod rules;
mod serve;
mod service_info;
mod sockets;
mod status;
mod tasks;
mod tenants;
mod thng_keys;
mod thng_locations;
mod thngs;
mod time;
mod users;
mod webhooks;
mod wire;

pub(crate) use known::remove_unknown;

pub use admin::{Admin, AdminAnswer, Readiness, WorkerAdmin, run_admin};
pub use router::{document, router};
pub use serve::{ApiListeners, Connection, run};
