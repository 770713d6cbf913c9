//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::catalog::service::*;

pub mod pages;
pub mod redirections;
pub mod rules;
pub mod tasks;
mod user_links;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{edges::Edges, writer::Writer};

/// What the operations on redirections and rules need beside the core.
#[derive(Clone)]
pub struct Redirects {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// Writes redirections.
    pub writer: Writer,
    /// Who knows how far the edges are.
    pub edges: Arc<dyn Edges>,
    /// Codes with a style that are drawn at a time.
    pub drawings: Arc<Semaphore>,
}

/// Most codes with a style that a process draws at a time: each takes a core for milliseconds, at worst some 200.
pub const DRAWINGS: usize = 2;

kernel::has_core!(Redirects, core);
