//! HTTP: redirections, rules, and tasks that make many of them.
//!
//! Each handler extracts, calls one service function and answers.

pub mod bodies;
mod redirection_answers;
mod redirections;
mod rules;
mod tasks;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

pub use self::redirection_answers::{Wait, written};
use crate::service::Redirects;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Redirects: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(
            redirections::list,
            redirections::create,
            redirections::replace_many,
            redirections::delete_many
        ))
        .routes(routes!(redirections::read, redirections::replace, redirections::delete))
        .routes(routes!(
            redirections::of_thng::read,
            redirections::of_thng::create,
            redirections::of_thng::replace,
            redirections::of_thng::delete
        ))
        .routes(routes!(redirections::of_thng::read_qr))
        .routes(routes!(
            redirections::of_product::read,
            redirections::of_product::create,
            redirections::of_product::replace,
            redirections::of_product::delete
        ))
        .routes(routes!(redirections::of_product::read_qr))
        .routes(routes!(rules::of_account::read, rules::of_account::replace, rules::of_account::delete))
        .routes(routes!(
            rules::of_application::read,
            rules::of_application::replace,
            rules::of_application::delete
        ))
        .routes(routes!(tasks::list, tasks::create))
        .routes(routes!(tasks::read))
        .routes(routes!(tasks::list_logs))
}
