//! Statements and rows, for SQLite and Postgres.

pub use ::applications::store::*;

pub mod batches;
pub mod blobs;
pub mod collection_members;
pub mod collections;
pub mod files;
pub mod gtin_aliases;
pub mod places;
pub mod products;
pub mod properties;
pub mod property_groups;
pub mod property_owners;
pub mod property_writes;
pub mod resources;
pub mod scopes;
pub mod series;
pub mod thng_locations;
pub mod thngs;
