//! HTTP: print orders and their files.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod documents;
mod files;
mod orders;
mod ranges;
mod reprints;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::PrintState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<PrintState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(orders::list))
        .routes(routes!(orders::create).idempotent().body(bodies::order))
        .routes(routes!(orders::read, orders::delete))
        .routes(routes!(orders::cancel).idempotent())
        .routes(routes!(reprints::create).idempotent().body(bodies::reprint))
        .routes(routes!(files::list))
        // The store of files may be a server that answers late.
        .routes(routes!(files::download).takes_range().takes_no_place())
}
