//! The table of mails.

pub use ::kernel::store::*;

pub mod mails;
