//! HTTP: which rules decided the scans of a link.
//!
//! Spec gap: the platform API shows no statistics.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
};
use redirects::service::{Redirects, redirections::DomainChoice};
use serde::Serialize;
use shared::{problem::Code, time::Clock};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{Path, Query},
};

use crate::{
    domain::{
        roll_ups::HOUR_MS,
        rule_query::{self, RuleCount, Scans},
    },
    service::{StatisticsState, rule_statistics},
};

/// Scans that one rule decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleCountDocument {
    /// The application in whose list it is; absent for the list of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    application: Option<String>,
    /// Its place in the list when it decided the newest of these scans, from 0.
    #[schema(example = 0)]
    index: u64,
    /// What people call it. A rule without a name is known by its place alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Germany")]
    name: Option<String>,
    /// Scans of people.
    #[schema(example = 42)]
    scans: u64,
    /// Scans of robots, which are not among `scans`.
    #[schema(example = 3)]
    robots: u64,
}

/// Scans that no rule decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WithoutRuleDocument {
    /// Scans of people.
    #[schema(example = 17)]
    scans: u64,
    /// Scans of robots.
    #[schema(example = 1)]
    robots: u64,
}

/// The scans of a link by the rule that decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleStatisticsDocument {
    /// When the range begins, in milliseconds since 1970: a whole hour of UTC.
    #[schema(example = 1_767_222_000_000_i64)]
    from: i64,
    /// When it ends; this moment is not in it.
    #[schema(example = 1_767_826_800_000_i64)]
    to: i64,
    /// Rules that decided a scan, most scans first.
    rules: Vec<RuleCountDocument>,
    /// Scans that no rule decided: the link led to its own target, or was closed.
    without_rule: WithoutRuleDocument,
}

impl From<RuleCount> for RuleCountDocument {
    fn from(count: RuleCount) -> Self {
        let RuleCount { application, index, name, scans: Scans { people, robots } } = count;
        Self { application, index, name, scans: people, robots }
    }
}

/// Counts the scans of a link by the rule that decided, such as those of a division by `percentage`.
///
/// The scans that are stored are read one by one: at most 20,000, in a range of at most 31 days.
#[utoipa::path(get, path = "/redirections/{shortId}/ruleStatistics", tag = "Scans", operation_id = "readRuleStatistics",
    params(("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("from" = Option<String>, Query, description = "Begin: milliseconds since 1970, a date, or a date and time with an offset. It is rounded down to a whole hour. Default: seven days before `to`"),
        ("to" = Option<String>, Query, description = "End, which is not in the range, in the same forms; rounded up. Default: now")),
    responses((status = 200, description = "The counts", body = RuleStatisticsDocument)))]
pub(super) async fn read(
    State(state): State<StatisticsState>,
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Json<RuleStatisticsDocument>, ApiError> {
    let range = rule_query::range(query.find("from"), query.find("to"), state.clock.now())
        .map_err(|faults| ApiError::faults(Code::InvalidParameter, faults))?;
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let choice = DomainChoice {
        named: query.find("domain").map(str::to_owned),
        host: host.map(str::to_ascii_lowercase),
    };
    let (_, counts) = rule_statistics::read(&state, &redirects, &caller, (choice, &short_id), range).await?;
    let Scans { people, robots } = counts.without;
    Ok(Json(RuleStatisticsDocument {
        from: i64::from(range.from) * HOUR_MS,
        to: i64::from(range.to) * HOUR_MS,
        rules: counts.rules.into_iter().map(RuleCountDocument::from).collect(),
        without_rule: WithoutRuleDocument { scans: people, robots },
    }))
}
