//! HTTP: redirections, rules, and tasks that make many of them.
//!
//! Each handler extracts, calls one service function and answers.

pub mod bodies;
mod conditions;
mod preview;
mod redirection_answers;
mod redirections;
mod rules;
mod tasks;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Idempotency, Routes},
};

pub use self::redirection_answers::{RedirectionDocument, Wait, written};
use crate::service::Redirects;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Redirects: FromRef<S>,
{
    Routes::new()
        .routes(routes!(redirections::list, redirections::replace_many, redirections::delete_many).by_edges())
        .routes(routes!(redirections::create).by_edges().idempotency(Idempotency::InTransaction).draws())
        .routes(routes!(redirections::read).by_edges().answers_tag().draws())
        .routes(routes!(redirections::replace).by_edges().answers_tag().takes_tag())
        .routes(routes!(redirections::delete).by_edges().takes_tag())
        .routes(routes!(preview::preview).by_edges())
        .routes(routes!(redirections::of_thng::read).by_edges().answers_tag())
        .routes(
            routes!(redirections::of_thng::create).by_edges().idempotency(Idempotency::InTransaction).draws(),
        )
        .routes(routes!(redirections::of_thng::replace).by_edges().answers_tag().takes_tag())
        .routes(routes!(redirections::of_thng::delete).by_edges().takes_tag())
        .routes(routes!(redirections::of_thng::read_qr).by_edges().draws())
        .routes(routes!(redirections::of_product::read).by_edges().answers_tag())
        .routes(
            routes!(redirections::of_product::create)
                .by_edges()
                .idempotency(Idempotency::InTransaction)
                .draws(),
        )
        .routes(routes!(redirections::of_product::replace).by_edges().answers_tag().takes_tag())
        .routes(routes!(redirections::of_product::delete).by_edges().takes_tag())
        .routes(routes!(redirections::of_product::read_qr).by_edges().draws())
        .routes(routes!(rules::of_account::read, rules::of_account::replace, rules::of_account::delete))
        .routes(routes!(
            rules::of_application::read,
            rules::of_application::replace,
            rules::of_application::delete
        ))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::create).idempotent())
        .routes(routes!(tasks::read))
        .routes(routes!(tasks::list_logs))
}
