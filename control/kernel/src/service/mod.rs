//! Operations of every subject: who may do what, places that all share, resources by name, many at once.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod access;
pub mod backfill;
pub mod batcher;
pub mod bulk;
pub mod capacity;
pub mod edges;
pub mod idempotency;
pub mod key_uses;
pub mod named;
pub mod open_quotas;
pub mod references;
pub mod state;

pub use self::state::{
    ChangedProduct, ChangedThng, Core, Dependents, Random, RandomUnavailable, Readers, Secrets, name_required,
};
