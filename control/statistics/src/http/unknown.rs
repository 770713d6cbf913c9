//! HTTP: where requests for unknown short ids come from.
//!
//! Spec gap: the platform API shows no operations on them.

use axum::{Json, extract::State};
use serde::Serialize;
use shared::{problem::Code, time::Clock, wire::unknown::anywhere};
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError, extract::Query, listing::number};

use crate::{
    domain::{roll_ups::HOUR_MS, stats_query::TOP, unknown_query::UnknownQuery},
    service::{StatisticsState, unknown_scans},
    store::unknown_scans::Requests,
};

/// Requests for unknown ids from one network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UnknownRequestsDocument {
    /// The short domain.
    #[schema(example = "tn.gg")]
    domain: String,
    /// The first 24 bits of an IPv4 address, the first 48 of IPv6; `null` for networks that are not told apart. It is
    /// shown to whoever may see personal data; for others a row is all of a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "192.0.2.0/24")]
    network: Option<Option<String>>,
    /// How many requests.
    #[schema(example = 4711)]
    requests: i64,
    /// The first hour with some, in milliseconds since 1970.
    #[schema(example = 1_767_222_000_000_i64)]
    first_at: i64,
    /// The end of the last hour with some.
    #[schema(example = 1_767_225_600_000_i64)]
    last_at: i64,
}

/// Where requests for unknown ids come from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnknownScansDocument {
    /// When the range begins, in milliseconds since 1970.
    #[schema(example = 1_767_222_000_000_i64)]
    from: i64,
    /// When it ends; this moment is not in it.
    #[schema(example = 1_767_826_800_000_i64)]
    to: i64,
    /// Those with most requests, most first.
    rows: Vec<UnknownRequestsDocument>,
    /// How many more rows there are.
    #[schema(example = 12)]
    other_rows: i64,
    /// All requests of the range, those of other rows too.
    #[schema(example = 5123)]
    requests: i64,
}

impl UnknownRequestsDocument {
    fn new(requests: Requests) -> Self {
        let Requests { domain, network, count, hours: (first, last) } = requests;
        let network = Some(network).filter(|network| !network.is_empty());
        let is_one = |network: &String| *network != anywhere().to_string();
        Self {
            domain,
            network: network.map(|network| Some(network).filter(is_one)),
            requests: count,
            first_at: i64::from(first) * HOUR_MS,
            last_at: (i64::from(last) + 1) * HOUR_MS,
        }
    }
}

/// Lists from where most requests for short ids came that do not exist: a sign that somebody guesses or forges codes.
///
/// Edges report them every few seconds, added up by domain, network and hour; counts are kept for 30 days. What a rate
/// limit refused is not among them.
#[utoipa::path(get, path = "/scans/unknown", tag = "Scans", operation_id = "readUnknownScans",
    params(("from" = Option<String>, Query, description = "Begin: milliseconds since 1970, a date, or a date and time with an offset. It is rounded down to a whole hour. Default: seven days before `to`"),
        ("to" = Option<String>, Query, description = "End, which is not in the range, in the same forms; rounded up. Default: now"),
        ("domain" = Option<String>, Query, description = "Only this short domain"),
        ("top" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most rows. Default: 20")),
    responses((status = 200, description = "The counts", body = UnknownScansDocument)))]
pub(super) async fn read(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    query: Query,
) -> Result<Json<UnknownScansDocument>, ApiError> {
    let mut faults = Vec::new();
    let top = number(&query, "top", TOP.1, TOP.0, &mut faults);
    let asked = UnknownQuery::parse(
        query.find("from"),
        query.find("to"),
        query.find("domain"),
        top,
        state.clock.now(),
    );
    let asked = match asked {
        Ok(asked) if faults.is_empty() => asked,
        Ok(_) => return Err(ApiError::faults(Code::InvalidParameter, faults)),
        Err(more) => {
            faults.extend(more);
            return Err(ApiError::faults(Code::InvalidParameter, faults));
        }
    };
    let found = unknown_scans::list_top(&state, &caller, &asked).await?;
    let other_rows = found.count - found.rows.len() as i64;
    Ok(Json(UnknownScansDocument {
        from: i64::from(asked.range.from) * HOUR_MS,
        to: i64::from(asked.range.to) * HOUR_MS,
        rows: found.rows.into_iter().map(UnknownRequestsDocument::new).collect(),
        other_rows,
        requests: found.total,
    }))
}
