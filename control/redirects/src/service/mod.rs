//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::catalog::service::*;

pub mod redirections;
pub mod rules;
pub mod tasks;
mod user_links;

use std::{ops::Deref, sync::Arc};

use crate::writer::Writer;

/// What the operations on redirections and rules need beside the core.
#[derive(Debug, Clone)]
pub struct Redirects {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// Writes redirections.
    pub writer: Writer,
}

impl Deref for Redirects {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}
