//! What an edge's miss reads: one key, with the head of the log.

use std::sync::Arc;

use shared::{
    availability::Availability,
    digital_link::LinkSet,
    redirect::{Redirect, RedirectKey},
    time::UnixMillis,
    wire::stream::Fill,
};
use sqlx::types::Json;

use crate::{
    domain::scopes::Scopes,
    store::{Conn, StoreError, dialect::unsigned, fetch_one, parse, redirect_status, standing::standing},
};

const FILL: &str = "SELECT h.epoch, h.head, r.rev, r.short_id, r.type, r.platform_id, r.thng_id, r.product_id, \
    r.target, r.forward_query, r.status_code, r.availability, r.scopes, r.created_at, r.updated_at, t.name AS thng_name, \
    t.commission_state, t.verdict, g.doc AS link_set FROM log_head h \
    LEFT JOIN redirections r ON r.domain = $1 AND r.folded = $2 AND r.deleted_rev IS NULL \
    LEFT JOIN thngs t ON t.id = r.thng_id LEFT JOIN link_sets g ON g.seq = r.seq WHERE h.id = 1";

#[derive(sqlx::FromRow)]
struct FillRow {
    epoch: String,
    head: i64,
    rev: Option<i64>,
    short_id: Option<String>,
    r#type: Option<String>,
    platform_id: Option<String>,
    thng_id: Option<String>,
    product_id: Option<String>,
    target: Option<String>,
    forward_query: Option<bool>,
    status_code: Option<i64>,
    availability: Option<Json<Box<Availability>>>,
    scopes: Option<Json<Scopes>>,
    thng_name: Option<String>,
    commission_state: Option<String>,
    verdict: Option<String>,
    link_set: Option<Json<Box<LinkSet>>>,
    created_at: Option<i64>,
    updated_at: Option<i64>,
}

/// One key with the head of the log, in one statement: what an edge's miss reads.
pub async fn load_fill(conn: &mut Conn, key: &RedirectKey) -> Result<Fill, StoreError> {
    let row: FillRow = fetch_one!(conn, FILL, &*key.domain, &*key.folded)?;
    let value = match row.rev {
        None => None,
        Some(rev) => {
            let missing = || StoreError::Row(format!("redirection {key:?} has an empty column"));
            let redirect = Redirect {
                domain: parse("domain", &key.domain)?,
                short_id: parse("short_id", &row.short_id.ok_or_else(missing)?)?,
                resource_type: parse("type", &row.r#type.ok_or_else(missing)?)?,
                platform_id: parse("platform_id", &row.platform_id.ok_or_else(missing)?)?,
                thng_id: row.thng_id.as_deref().map(|id| parse("thng_id", id)).transpose()?,
                product_id: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
                thng_name: row.thng_name.map(Into::into),
                standing: standing(row.commission_state.as_deref(), row.verdict.as_deref())?,
                projects: row.scopes.ok_or_else(missing)?.0.project_ids(),
                target: row.target.ok_or_else(missing)?.into(),
                forward_query: row.forward_query.ok_or_else(missing)?,
                status_code: redirect_status::read(row.status_code)?,
                availability: row.availability.map(|availability| availability.0),
                digital_link: row.link_set.map(|set| set.0),
                created_at: UnixMillis(row.created_at.ok_or_else(missing)?),
                updated_at: UnixMillis(row.updated_at.ok_or_else(missing)?),
            };
            Some((unsigned(rev), Arc::new(redirect)))
        }
    };
    Ok(Fill { epoch: row.epoch.into(), complete: true, watermark: unsigned(row.head), value })
}
