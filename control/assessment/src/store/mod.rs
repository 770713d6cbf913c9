//! Statements and rows, for SQLite and Postgres.

pub use ::commissioning::store::*;
pub use ::redirects::store::{redirections, withheld};

pub mod assessment_contexts;
pub mod assessments;
pub mod cases;
pub mod display_places;
pub mod item_standings;
pub mod report_photos;
pub mod reports;
pub mod scan_profiles;
