//! Scans by edges, in a store of their own beside the database.
//!
//! A scan is an action of the type `implicitScans` that an edge recorded. It is most of what an account stores, nobody
//! changes it, and it goes when its time is over; so it is kept in typed columns, in a table for each month that is
//! dropped as a whole. The seam is the trait [`ScanStore`]. On Postgres the tables are in the same database; on SQLite
//! they are in a file of their own beside it (`<database>.scans`), so that scans never hold up the writer of links. With
//! [`domain::scan_server`] they are in ClickHouse.
//!
//! # Each scan once
//!
//! A batch of an edge is taken in three transactions, because two files cannot share one. Each has a cursor of its own:
//! the sequence number that it expects next of a boot of an edge.
//!
//! 1. In the database, only where an account has a quota of scans: the scans that are not below the cursor are charged.
//!    Those that are above the quota, and those of unknown short ids, are noted as not to be stored (`scan_charges`).
//! 2. Here: the scans that are not below the cursor, and are to be stored, are stored, and the cursor moves
//!    (`scan_intake`).
//! 3. In the database: what follows from the scans (events, profiles, hits, roll-ups) is written for those that are not
//!    below the third cursor, which moves in the same transaction (`scan_cursors`). On Postgres one such transaction may be of
//!    several batches: the cursors of all move, or none.
//!
//! In ClickHouse, which has no transactions, the second step is several; the module `store::clickhouse` says how it stays one
//! to everybody else. Its cursors are the same tables in the database, on SQLite in the file beside it.
//!
//! The edge hears of a batch when all are committed, and until then keeps it and sends it again. So after a kill between
//! two of them, the batch comes again: each transaction whose cursor is ahead does nothing, and each one whose cursor is
//! behind does what is missing. No step is done twice, because its cursor moves with it; and none is lost, because the
//! edge forgets a scan only after the third. A batch may come again in other pieces: each transaction looks at every scan
//! by its number. What was decided in the first one holds, also where a quota has changed since; only two tries of one batch at
//! the same moment, of which one began before its account had a quota, may store scans that the other one counts as above
//! it. What the third writes of
//! a scan that was stored before is read from the store, not from the repeat: the link may have changed in between.
//!
//! A cursor that is missing here begins at the one of the database: older releases stored scans there.
//!
//! # Roll-ups
//!
//! The roll-ups of statistics stay in the database, also on SQLite, where the scans are in another file. The third
//! transaction adds to them, so its cursor decides which scans are counted: each once. After a kill between the second
//! and the third one, scans are listed that are not counted yet, until the edge has sent the batch again. An edge whose
//! disk is lost in that moment is the one exception: its last batch stays listed without being counted, as it stays
//! without hits and events. So do scans that come while `waymark backup` runs, once the copy is restored: it copies the
//! database first, and the scans second.
//!
//! With roll-ups in the file of scans the counts would agree with the lists at that moment, too, but not with `hits`;
//! their backfill, which reads `actions` and notes its progress beside them, would need a second cursor; and
//! `GET /scans/stats` would read two databases. So they stay where `hits` are.
//!
//! # Erasure
//!
//! A scan that is found for an erasure is written again in its position ([`ScanStore::rewrite`]), with other texts. The texts
//! that it had stay as long as a scan has them. Those that none has are not removed before their day is over, because a
//! batch under way may name them; what tells of a person is taken out of them instead ([`ScanStore::erase_texts`]), and
//! they are no longer found by their hash.
//!
//! # Connections
//!
//! On Postgres callers that hold no connection use the pool of the database ([`Scans::pool`]); two connections more are
//! for those that hold one ([`Scans::reserved`]), which could otherwise wait for each other.
//!
//! # Invariants
//!
//! The document of an action is the same before and after ([`domain::columns`]); one that is not is never taken. Positions in
//! lists of scans that were moved here stay; those of new ones are above [`FIRST_SEQ`], so that no two actions have one
//! position.

pub mod domain;
mod seam;
pub mod store;

pub use self::seam::{
    Appended, Batch, Boot, Count, Description, FIRST_SEQ, NewScan, ScanPosition, ScanStore, Scans, Seen,
    Sighted, Sought,
};
