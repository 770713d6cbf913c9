//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::applications::service::*;

pub mod batches;
pub mod collections;
pub mod files;
pub mod locations;
mod operations;
pub mod places;
pub mod products;
pub mod properties;
pub mod property_group;
pub mod thng_keys;
pub mod thngs;
pub mod user_rules;
mod with_properties;

use std::sync::Arc;

use self::property_group::PropertyGroups;
use crate::store::blobs::Blobs;

/// What the operations of the catalog need beside the core.
#[derive(Clone)]
pub struct Catalog {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// The bytes of files.
    pub blobs: Blobs,
    /// Small writes of properties.
    pub property_groups: PropertyGroups,
}

kernel::has_core!(Catalog, core);
