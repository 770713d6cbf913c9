//! Short domains of accounts: claims and their proofs, settings, and what a domain serves beside its links.
//!
//! # The way of a domain
//!
//! 1. An account claims a host ([`domain::claim::State::Pending`]). Several accounts may.
//! 2. A check finds the token of the claim in a TXT record or a file ([`service::prove`]). The first one that is proven makes
//!    the row of the short domain; claims of other accounts are refused from then on.
//! 3. It is checked every day. One whose proof is gone for some checks is [`domain::claim::State::Unproven`]: its links go on,
//!    and no new ones are made on it until it is proven again. After 30 days another account can prove it, if no link is on it.
//! 4. A claim that is not proven ends after 7 days.
//!
//! # Invariants
//!
//! - Links are on rows of `short_domains` alone, so a host that nobody has proven has none. Rows without a claim were given by
//!   the platform, as all were before there were claims.
//! - No link ever changes its account: a domain goes to another one only while no link is on it. Deleted short ids stay with the
//!   account that had them.
//! - A domain with short ids, deleted ones among them, is not removed: codes that are printed stay valid.
//! - Whatever changes a claim or a domain holds the lock of the change log, so two proofs never both win.
//! - The clock of the database decides when a claim is due, how long its pauses are, when its proof is lost and when it ends; no
//!   clock of a control does.
//! - Network requests of a check run outside of transactions; what they found counts only if the claim is still the same.

pub mod domain;
pub mod error;
pub mod http;
pub mod resolver;
pub mod service;
pub mod store;
pub mod worker;
