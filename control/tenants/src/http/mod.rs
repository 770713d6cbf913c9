//! HTTP: accounts, quotas, operators, roles, keys and the audit trail.
//!
//! Each handler extracts, calls one service function and answers.

mod access;
mod accesses;
pub mod audit;
pub mod bodies;
mod keys;
pub mod operators;
mod policies;
pub mod quotas;
mod roles;
mod tenants;
mod throttled;

use std::sync::Arc;

use axum::extract::FromRef;
use mail::Outbox;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

pub use self::{keys::overlap, throttled::throttled};
use crate::service::Core;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<Core>: FromRef<S>,
    Arc<Outbox>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(access::read))
        .routes(routes!(tenants::list_accounts))
        .routes(routes!(tenants::read_account, tenants::update_account).body(bodies::account))
        .routes(routes!(tenants::list_short_domains))
        .routes(routes!(tenants::list_domains))
        .routes(routes!(tenants::update_domain).body(bodies::domain))
        .routes(routes!(quotas::read))
        .routes(routes!(operators::read, operators::update).body(bodies::operator))
        .routes(routes!(operators::read_me))
        .routes(routes!(accesses::by_older_name::list))
        .routes(
            routes!(accesses::by_older_name::read, accesses::by_older_name::update)
                .body(bodies::changed_access),
        )
        .routes(routes!(accesses::by_newer_name::list))
        .routes(routes!(accesses::invite).idempotent().body(bodies::invitation))
        .routes(
            routes!(accesses::by_newer_name::read, accesses::by_newer_name::update, accesses::remove)
                .body(bodies::changed_access),
        )
        .routes(routes!(accesses::invite_again).idempotent())
        .routes(routes!(accesses::list_tokens))
        .routes(routes!(accesses::create_token).idempotent().body(bodies::token))
        .routes(routes!(roles::list))
        .routes(routes!(roles::create).idempotent().body(|| bodies::role(true)))
        .routes(routes!(roles::read, roles::update, roles::delete).body(|| bodies::role(false)))
        .routes(routes!(roles::list_permissions, roles::update_permissions).body(bodies::paths))
        .routes(routes!(roles::read_permission, roles::update_permission).body(bodies::permission))
        .routes(routes!(policies::list))
        .routes(routes!(policies::create).idempotent().body(|| bodies::policy(true)))
        .routes(routes!(policies::read, policies::update, policies::delete).body(|| bodies::policy(false)))
        .routes(routes!(keys::list))
        .routes(routes!(keys::create).idempotent().body(|| bodies::key(true)))
        .routes(routes!(keys::read, keys::update, keys::revoke).body(|| bodies::key(false)))
        .routes(routes!(keys::rotate).idempotent().body(bodies::overlap))
        .routes(routes!(audit::list))
        .routes(routes!(audit::export))
}
