//! A redirection as statements give it.

use shared::{
    availability::Availability,
    digital_link::LinkSet,
    domain_paths::DomainPaths,
    redirect::Redirect,
    short_url::{Host, ShortDomain},
    time::UnixMillis,
};
use sqlx::types::Json;

use crate::{
    domain::{link_details::LinkDetails, redirection::Redirection, scopes::Scopes},
    store::{StoreError, dialect::unsigned, parse, redirect_status, standing::standing},
};

/// A redirection as statements give it.
#[derive(sqlx::FromRow)]
pub(in crate::store) struct Row {
    seq: i64,
    pub(super) domain: String,
    scheme: String,
    case_sensitive: bool,
    digital_links: bool,
    paths: Option<Json<DomainPaths>>,
    pub(super) folded: String,
    short_id: String,
    account_id: String,
    r#type: String,
    platform_id: String,
    thng_id: Option<String>,
    thng_name: Option<String>,
    commission_state: Option<String>,
    verdict: Option<String>,
    product_id: Option<String>,
    target: String,
    forward_query: bool,
    status_code: Option<i64>,
    availability: Option<Json<Box<Availability>>>,
    scopes: Json<Scopes>,
    hits: i64,
    created_at: i64,
    updated_at: i64,
    rev: i64,
    #[sqlx(default)]
    doc: Option<Json<LinkDetails>>,
    #[sqlx(default)]
    link_set: Option<Json<Box<LinkSet>>>,
}

impl TryFrom<Row> for Redirection {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let host: Host = parse("domain", &row.domain)?;
        Ok(Self {
            account: parse("account_id", &row.account_id)?,
            domain: ShortDomain {
                host: host.clone(),
                scheme: parse("scheme", &row.scheme)?,
                case_sensitive: row.case_sensitive,
                account: Some(parse("account_id", &row.account_id)?),
                // Edges hear of these with the domain, not with each link.
                personal_data: None,
                redirect_max_age: None,
                digital_links: row.digital_links,
                files: None,
                removed: false,
                pages: None,
                paths: row.paths.map(|paths| paths.0).unwrap_or_default(),
            },
            redirect: Redirect {
                domain: host,
                short_id: parse("short_id", &row.short_id)?,
                resource_type: parse("type", &row.r#type)?,
                platform_id: parse("platform_id", &row.platform_id)?,
                thng_id: row.thng_id.as_deref().map(|id| parse("thng_id", id)).transpose()?,
                product_id: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
                thng_name: row.thng_name.map(Into::into),
                standing: standing(row.commission_state.as_deref(), row.verdict.as_deref())?,
                projects: row.scopes.0.project_ids(),
                target: row.target.into(),
                forward_query: row.forward_query,
                status_code: redirect_status::read(row.status_code)?,
                availability: row.availability.map(|availability| availability.0),
                digital_link: row.link_set.map(|set| set.0),
                created_at: UnixMillis(row.created_at),
                updated_at: UnixMillis(row.updated_at),
            },
            scopes: row.scopes.0,
            hits: row.hits,
            rev: unsigned(row.rev),
            seq: row.seq,
            details: row.doc.map(|doc| doc.0).unwrap_or_default(),
            taken_down: None,
        })
    }
}
