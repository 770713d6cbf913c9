//! How long a write waits for the edges, and what its answer says of them.

use std::{fmt::Write, time::Duration};

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use kernel::service::edges::{Edges, WaitReport};
use serde_json::Value;
use shared::wire::stream::Rev;

use crate::{extract::Query, fair_share::Slot, request_error::RequestError};

/// Longest wait that `timeout` may ask for.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Wait without `timeout`.
const DEFAULT_WAIT: Duration = Duration::from_secs(2);

/// How long a write shall wait for the edges, if at all: `?wait=edges[&timeout=2s]`.
#[derive(Debug)]
pub struct Wait {
    /// The place of the request.
    pub slot: Slot,
    longest: Option<Duration>,
}

impl Wait {
    /// Reads `wait` and `timeout`.
    ///
    /// # Errors
    /// One of them is neither.
    pub fn parse(query: &Query) -> Result<Self, RequestError> {
        let is_asked = match query.find("wait") {
            None => false,
            Some("edges") => true,
            Some(_) => return Err(RequestError::Wait),
        };
        let parse = |text: &str| match text.strip_suffix("ms") {
            Some(number) => number.parse().ok().map(Duration::from_millis),
            None => text.strip_suffix('s').and_then(|number| number.parse().ok()).map(Duration::from_secs),
        };
        let longest = query.find("timeout").map_or(Some(DEFAULT_WAIT), parse);
        let longest = longest.filter(|wait| *wait <= MAX_WAIT).ok_or(RequestError::WaitTimeout)?;
        Ok(Self { slot: query.slot.clone(), longest: is_asked.then_some(longest) })
    }

    /// Whether it waits at all.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.longest.is_some()
    }

    /// Waits as asked, without the place of the request; `None` when nothing was asked.
    pub async fn run(self, edges: &dyn Edges, rev: Rev) -> Option<WaitReport> {
        let longest = self.longest?;
        self.slot.give_back();
        Some(edges.wait(rev, longest).await)
    }
}

/// Answers a write with a body and the edges' state merged into it; 202 when an edge lags at the deadline.
pub async fn written(
    edges: &dyn Edges,
    wait: Wait,
    rev: Rev,
    status: StatusCode,
    body: Option<Value>,
) -> Response {
    let Some(report) = wait.run(edges, rev).await else {
        return match body {
            Some(body) => (status, Json(body)).into_response(),
            None => status.into_response(),
        };
    };
    let status = match (report.is_done(), status) {
        (false, _) => StatusCode::ACCEPTED,
        (true, StatusCode::NO_CONTENT) => StatusCode::OK,
        (true, status) => status,
    };
    let header = edges_header(&report);
    let state = serde_json::to_value(report).unwrap_or_default();
    let body = match (body, state) {
        (Some(Value::Object(mut record)), Value::Object(state)) => {
            record.extend(state);
            Value::Object(record)
        }
        // An array has one result for each item, so the state is only in the header.
        (Some(body), _) => body,
        (None, state) => state,
    };
    let mut response = (status, Json(body)).into_response();
    if let Some(value) = header {
        response.headers_mut().insert(EDGES, value);
    }
    response
}

/// `X-Waymark-Edges: rev=812; acked=3; members=3; ms=4`.
pub const EDGES: HeaderName = HeaderName::from_static("x-waymark-edges");

/// The header for a report; `None` where an edge has a name that no header can hold.
#[must_use]
pub fn edges_header(report: &WaitReport) -> Option<HeaderValue> {
    let mut text =
        format!("rev={}; acked={}; members={}; ms={}", report.rev, report.acked, report.members, report.ms);
    if report.incomplete {
        text.push_str("; incomplete");
    }
    for edge in &report.lagging {
        // Writing to a string cannot fail.
        let _ = write!(text, "; lagging={edge}");
    }
    for edge in &report.unreachable {
        let _ = write!(text, "; unreachable={edge}");
    }
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_every_edge_that_the_body_names() {
        let report = WaitReport {
            rev: 812,
            acked: 1,
            members: 2,
            lagging: vec!["e2".into()],
            unreachable: vec!["e3".into(), "e4".into()],
            incomplete: true,
            ms: 4,
        };
        let header = edges_header(&report).unwrap();
        let expected =
            "rev=812; acked=1; members=2; ms=4; incomplete; lagging=e2; unreachable=e3; unreachable=e4";
        assert_eq!(header, expected);
    }
}
