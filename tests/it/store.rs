//! The store and the operations on it, on both engines.

mod dropped_begin;
mod event_log;
mod filters;
mod full_disk;
mod imports;
mod job_turns;
mod keys;
mod link_pages;
pub(crate) mod links;
mod loose_texts;
mod mail_turns;
mod paging;
mod personal_data;
mod races;
pub(crate) mod redirections;
mod scan_clickhouse;
mod scan_lists;
mod scan_moves;
mod scan_plans;
mod scan_retention;
mod scan_seek;
pub(crate) mod scan_steps;
pub(crate) mod scans;
pub(crate) mod schema;
mod stream;
mod trail_pages;
mod welcomes;
