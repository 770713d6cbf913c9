//! Statements and rows, for SQLite and Postgres.

pub use ::actions::store::*;

pub mod connections;
pub mod deferred_events;
pub mod followers;
pub mod reaction_tasks;
pub mod reactions;
pub mod webhook_messages;
pub mod webhooks;
