//! Statistics of scans: roll-ups by the hour and the day, questions to them, a live view, and requests for unknown short ids.
//!
//! # What is counted
//!
//! A scan is a redirect that an edge recorded. `scans` are those of people, as in `hits`, without those above the quota
//! `scansPerDay`; `robots` are counted apart.
//! `newDevices` are scans by a device that had not scanned in the account on that day of UTC. A device is a keyed hash of
//! the client's address and user agent, which is another one the next day, so it says nothing of two days. Scans of which
//! only a sum came, because the disk of an edge was full, count as scans of people whose country, system, device,
//! language and verdict are unknown.
//!
//! # Which groupings there are
//!
//! A row for each combination of all dimensions would be as large as the scans themselves. So there is a row for each
//! hour, another one for each day of UTC, and value of one set of dimensions: nothing; the country; country and region; country and city; the system; the
//! kind of device; the language; the verdict; the project; the product; product and country; product and kind of device;
//! product and verdict; the link, by the day only. Each exists for the account, and again for each project that the link is
//! scoped to, up to eight.
//! Every one of them is exact. Any other combination, such as country and language, is refused: it cannot be had from
//! the others. Cities of one name in one country are one.
//!
//! # Invariants
//!
//! - Roll-ups change in the transaction that writes `hits` and moves the cursor of their edge, after the scans are stored: a
//!   scan that comes again is skipped. The crate `scan_store` says why they are not in its file.
//! - A row by the day is the sum of those by the hour of that day, as long as these are kept: what changes one changes the
//!   other in the same transaction. Answers add days and hours, and take hours away, so they rely on it.
//! - Rows are written in the order of their keys, so that two replicas do not lock each other out.
//! - Rows are written by the last statement before a commit, behind the lock of their account ([`service::roll_ups::Sums`]):
//!   all batches add to the same few rows, and hold them no longer than that.
//! - No row names a person or a client; rows stay when scans, links or products are removed. Hours, and days of links, are
//!   removed after 400 days, when no question can ask for them any more.
//! - The backfill counts each scan once that was stored by a release without statistics, also by a replica that runs beside
//!   this release for up to an hour after the last start of this one. It counts
//!   where they stand, among actions: only then are they moved into the store of scans.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
pub mod worker;
