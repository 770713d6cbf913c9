//! The store: SQLite or Postgres, one SQL text for both.
//!
//! Statements are constants that run on both engines; the few that differ are side by side in [`dialect`]. Every
//! function takes a [`Conn`], which is a pooled connection or the inside of a [`Tx`]. Functions fail when the database
//! does; their docs list other errors only.

pub use ::actions::store::*;
pub use ::assessment::store::*;
pub use ::events::store::*;
pub use ::jobs::store::*;
pub use ::push::store::*;
