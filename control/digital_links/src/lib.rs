//! GS1 Digital Links: the redirections that follow from the links of products and Things.
//!
//! A Digital Link is a redirection whose short id is its canonical path without the first slash, such as
//! `01/09528765123457/10/L1`. The members of products and Things say where it leads (`catalog::domain::digital_links`); this
//! crate makes the rows of them, and removes them.
//!
//! # Invariants
//!
//! - What rows a resource has follows from the resource, its product and the short domains of the account alone
//!   ([`domain::plan`]). So rows are made by comparing, and doing it again changes nothing.
//! - Rows are written in the transaction of the change of their resource. Those of other resources that follow from it (all
//!   products, when a domain begins to resolve Digital Links; the Things of a product) are written in steps by [`worker`].
//! - Whatever writes rows holds the lock of the change log, and has read the domains behind it: so a step and a change never miss
//!   each other. A list of Things takes the lock for them at its end, when all are written. (One that renames, moves or
//!   removes Things has taken it behind the first of them, for other redirections of Things.) A Thing that gets no rows is written
//!   without the lock, and a step waits for it before it begins.
//! - Nobody changes a row by `/redirections`, and lists leave rows out.
//! - A row that was removed is used again when its GTIN comes back, unlike short ids: GS1 gives a GTIN to one owner. An account
//!   that got the domain of another one takes such rows over, without their hits.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
pub mod worker;
