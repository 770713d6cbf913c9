//! Erasure of personal data: requests, the worker that carries them out, and their receipts.
//!
//! # What is erased
//!
//! An erasure names a user, a Thng, or a network and a time. Actions and scans stay, because counts, hits and verdicts rest
//! on them; what tells of a person is taken out of their documents ([`domain::cut`]). It works in the order of
//! [`domain::erasure::Stage`]: for a network first results of assessments, which are found by their actions; then actions,
//! then scans by edges, into which actions of older releases are moved meanwhile, then the copies that webhooks and reactions
//! have not finished with, then counts of requests for unknown ids, the texts that scans shared, and the profiles of
//! assessments. `deploy/guide/privacy.md` says what it does not reach.
//!
//! # Age
//!
//! `personalDataDays` of an account is an erasure that nobody asks for ([`service::ages`]): one row for each account, which
//! begins again each day where it ended. It takes out what an account with `personalData` `none` does not keep, and leaves
//! profiles and standings of assessments as they are.
//!
//! # Invariants
//!
//! - A step looks at a bounded number of rows, or renews its lease meanwhile: that on texts. Its effect and the new place
//!   of the erasure are one transaction, so a worker that is killed leaves the whole step or nothing, and counts each row
//!   once.
//! - On SQLite scans are in another file. So a step on scans is two: the first one writes down what is to be changed, the
//!   second one changes it and counts what the first one wrote. It may be done again, because what is cut stays as it is.
//! - A worker holds an erasure by a lease on the clock of the database, with a fence that grows with each holder. One that
//!   has lost it, or whose lease has expired or is about to, writes nothing more in the database.
//! - The erasure that has waited longest is claimed next, since it was asked for or its last turn ended. So an account that
//!   asks again and again holds up no other.
//! - While a worker holds an erasure, nobody holds another one of the account: a step that has read scans must not write back
//!   what another one cuts. One that waits after a failure holds up no other.
//! - An erasure never fails for good: it is tried again until it is done. A profile that fails does not hold up the others.
//! - What is found by an index is not found again once it is cut: actions of users are looked for by their user, of some users
//!   at a time.
//! - Statistics are never changed: they name nobody.

pub mod domain;
pub mod error;
pub mod http;
pub mod metrics;
pub mod service;
pub mod store;
pub mod worker;
