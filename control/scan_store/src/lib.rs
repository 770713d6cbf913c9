//! Scans by edges, in a store of their own beside the database.
//!
//! A scan is an action of the type `implicitScans` that an edge recorded. It is most of what an account stores, nobody
//! changes it, and it goes when its time is over; so it is kept in typed columns, in a table for each month that is
//! dropped as a whole. The seam is the trait [`ScanStore`]. On Postgres the tables are in the same database; on SQLite
//! they are in a file of their own beside it (`<database>.scans`), so that scans never hold up the writer of links.
//!
//! # Each scan once
//!
//! A batch of an edge is taken in two transactions, because two files cannot share one. Each has a cursor of its own:
//! the sequence number that it expects next of a boot of an edge.
//!
//! 1. Here: the scans that are not below the cursor are stored, and the cursor moves. One transaction.
//! 2. In the database: what follows from the scans (events, profiles, hits) is written for those that are not below the
//!    other cursor, which moves in the same transaction.
//!
//! The edge hears of a batch when both are committed, and until then keeps it and sends it again. So after a kill
//! between the two, the batch comes again: the first transaction finds its cursor ahead and stores nothing, the second
//! one finds its own behind and writes what is missing. No step is done twice, because its cursor moves with it; and
//! none is lost, because the edge forgets a scan only after the second. A batch may come again in other pieces: each
//! transaction looks at every scan by its number. What the second writes of a scan that was stored before is read
//! from the store, not from the repeat: the link may have changed in between.
//!
//! A cursor that is missing here begins at the one of the database: older releases stored scans there.
//!
//! # Invariants
//!
//! The document of an action is the same before and after ([`domain::columns`]); one that is not is never taken. Places in lists of
//! scans that were moved here stay; those of new ones are above [`FIRST_SEQ`], so that no two actions have one place.

pub mod domain;
mod seam;
pub mod store;

pub use self::seam::{Appended, Batch, Boot, Count, Description, FIRST_SEQ, NewScan, ScanStore, Scans};
