//! Changes of many links at once, and their exact undoing, as jobs in the background.
//!
//! # The way of a change
//!
//! 1. It is accepted with the number of links that it finds. Where the account wants that, a second operator approves it.
//! 2. A worker reads the next links that meet its conditions, oldest first, and changes those that are still as they were read
//!    ([`service::steps`]). What they were is kept.
//! 3. An undo gives links back what was kept, but for those that somebody changed since.
//! 4. After 30 days what was kept is removed ([`service::purge`]).
//!
//! # Invariants
//!
//! - A step is one transaction of the writer of redirections: links, log, events, audit trail, former values and the new place of
//!   the job. A worker that is killed leaves the whole step or nothing.
//! - A link is changed in the state in which it met the conditions, and restored only from the revision that the change wrote.
//! - A former value goes with the step that restores it: an undo that was cancelled is continued by another one.
//! - A worker holds a job by a lease on the clock of the database, with a fence that grows with each holder.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
pub mod worker;
