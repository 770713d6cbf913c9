//! The store: SQLite or Postgres, one SQL text for both.
//!
//! Statements are constants that run on both engines; the few that cannot stand side by side in
//! [`dialect`]. Every function takes a [`Conn`], be it a pooled connection or the inside of a [`Tx`].

pub use ::kernel::store::*;

pub mod accounts;
pub mod action_lists;
pub mod action_types;
pub mod actions;
pub mod app_users;
pub mod applications;
pub mod assessment_contexts;
pub mod assessments;
pub mod batches;
pub mod blobs;
pub mod cases;
pub mod collection_members;
pub mod collections;
pub mod commissions;
pub mod connections;
pub mod edge_keys;
pub mod edge_leases;
pub mod files;
pub mod followers;
pub mod item_standings;
pub mod job_chunks;
pub mod job_leases;
pub mod job_logs;
pub mod jobs;
pub mod log;
pub mod places;
pub mod products;
pub mod projects;
pub mod properties;
pub mod property_groups;
pub mod property_owners;
pub mod property_writes;
pub mod publishers;
pub mod reaction_tasks;
pub mod reactions;
pub mod redirection_writes;
pub mod redirections;
pub mod resources;
pub mod rules;
pub mod scan_profiles;
pub mod scans;
pub mod scopes;
pub mod series;
pub mod snapshot;
pub mod tasks;
pub mod tenants;
pub mod thng_locations;
pub mod thngs;
pub mod webhook_messages;
pub mod webhooks;
