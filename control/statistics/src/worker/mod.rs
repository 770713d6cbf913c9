//! Background work.

pub mod backfill;
