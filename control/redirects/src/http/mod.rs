//! HTTP: redirections, rules, and tasks that make many of them.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod conditions;
mod history;
mod pages;
mod preview;
mod redirection_answers;
mod redirection_codes;
mod redirections;
mod rules;
mod tasks;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Idempotency, Queries, Routes},
};

pub use self::{
    bodies::assumed_scan,
    preview::{PreviewTakeDownDocument, TriedRuleDocument},
    redirection_answers::{RedirectionDocument, Wait, written},
};
use crate::service::Redirects;

/// Query parameters of `/redirections` under the names that older clients send.
const OLD_NAMES: Queries = &[("evrythngId", "The same as `platformId`, under its older name")];

// Those of the first generation of redirections, which are below a Thng or a product: what `/redirections` takes, too.
const DOMAIN: (&str, &str) = ("domain", "Short domain");
const WAIT: (&str, &str) = ("wait", "`edges`: answer when every edge has the change");
const READS: Queries = &[DOMAIN];
const CHANGES: Queries = &[DOMAIN, WAIT];
const CREATES: Queries = &[DOMAIN, WAIT, ("project", "Scope what is made to this project")];

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Redirects: FromRef<S>,
{
    Routes::new()
        .routes(routes!(redirections::list).by_edges().queries(OLD_NAMES))
        .routes(
            routes!(redirections::replace_many, redirections::delete_many)
                .by_edges()
                .body(bodies::replacement),
        )
        .routes(
            routes!(redirections::create)
                .by_edges()
                .idempotency(Idempotency::InTransaction)
                .draws()
                .body(bodies::redirections),
        )
        .routes(routes!(redirections::read).by_edges().answers_tag().draws())
        .routes(routes!(redirections::replace).by_edges().answers_tag().takes_tag().body(bodies::replacement))
        .routes(routes!(redirections::delete).by_edges().takes_tag())
        .routes(routes!(preview::preview).by_edges().body(bodies::assumed_scan))
        .routes(routes!(history::list).by_edges())
        .routes(routes!(history::restore).by_edges().answers_tag().takes_tag().body(bodies::version))
        .routes(routes!(redirections::of_thng::read).by_edges().queries(READS).answers_tag())
        .routes(
            routes!(redirections::of_thng::create)
                .by_edges()
                .queries(CREATES)
                .idempotency(Idempotency::InTransaction)
                .draws()
                .body(bodies::redirection_of_path),
        )
        .routes(
            routes!(redirections::of_thng::replace)
                .by_edges()
                .queries(CHANGES)
                .answers_tag()
                .takes_tag()
                .body(bodies::replacement),
        )
        .routes(routes!(redirections::of_thng::delete).by_edges().takes_tag())
        .routes(routes!(redirections::of_thng::read_qr).by_edges().queries(READS).draws())
        .routes(routes!(redirections::of_product::read).by_edges().queries(READS).answers_tag())
        .routes(
            routes!(redirections::of_product::create)
                .by_edges()
                .queries(CREATES)
                .idempotency(Idempotency::InTransaction)
                .draws()
                .body(bodies::redirection_of_path),
        )
        .routes(
            routes!(redirections::of_product::replace)
                .by_edges()
                .queries(CHANGES)
                .answers_tag()
                .takes_tag()
                .body(bodies::replacement),
        )
        .routes(routes!(redirections::of_product::delete).by_edges().takes_tag())
        .routes(routes!(redirections::of_product::read_qr).by_edges().queries(READS).draws())
        .routes(routes!(rules::of_account::read).answers_tag())
        .routes(
            routes!(rules::of_account::replace, rules::of_account::delete).takes_tag().body(bodies::rules),
        )
        .routes(routes!(rules::of_application::read).answers_tag())
        .routes(
            routes!(rules::of_application::replace, rules::of_application::delete)
                .takes_tag()
                .body(bodies::rules),
        )
        .routes(routes!(pages::read).answers_tag())
        .routes(routes!(pages::replace).takes_tag().body(bodies::pages))
        .routes(routes!(pages::read_of_domain).answers_tag())
        .routes(routes!(pages::replace_of_domain).takes_tag().body(bodies::pages))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::create).idempotent().body(bodies::task))
        .routes(routes!(tasks::read))
        .routes(routes!(tasks::list_logs))
}
