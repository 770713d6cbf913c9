//! Pages that an edge shows to people where a code leads nowhere: in their language, with what the account has chosen.
//!
//! A page has no script and loads nothing; every text in it is escaped. It is rendered once and kept in a bounded cache. Pages
//! of what the platform withholds show nothing of the account.

mod answered;
mod page;
mod texts;

pub use self::page::{Brand, Kind, POLICY, PageCache, escape};
