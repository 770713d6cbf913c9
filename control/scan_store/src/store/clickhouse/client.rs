//! ClickHouse over HTTP: a statement with bound parameters, and rows in both directions in RowBinary.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kernel::store::StoreError;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::params::{Params, encode};
use crate::domain::scan_server::{ScanServer, roots};

/// Longest time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How much longer than a statement may run its answer is waited for: a server that accepts and says nothing is given up.
const GRACE: Duration = Duration::from_secs(2);

/// Shorter than the server keeps a connection without requests (3 s in older releases), so that none is used that ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Most bytes of an answer: pages hold 101 scans, and other reads at most 1,000 of 64 KiB.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Header of an error: its number.
const EXCEPTION_CODE: &str = "x-clickhouse-exception-code";

/// Numbers of errors that may pass: too many statements or parts, no memory, no quorum, no keeper, network.
const PASSING: [u32; 12] = [202, 203, 209, 210, 225, 241, 242, 243, 252, 285, 319, 999];
/// A statement ran longer than allowed.
const TIMEOUT_EXCEEDED: u32 = 159;

/// Settings of every request. An answer is held back until it is whole, so that its status is right. Inserts are not
/// gathered on the server: their identity is checked here. Conditions are on the last version of a scan, never on one before.
/// Indexes are used all the same, which older releases do not: they are on columns that all versions have in common.
const SETTINGS: &str = "&default_format=RowBinary&wait_end_of_query=1&async_insert=0&lightweight_deletes_sync=2\
    &do_not_merge_across_partitions_select_final=1&optimize_move_to_prewhere_if_final=0\
    &use_skip_indexes_if_final=1&max_partition_size_to_drop=0";

/// A ClickHouse server.
pub(super) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: ScanServer,
}

impl Client {
    /// Builds the client without connecting.
    ///
    /// # Errors
    /// The system has no certificate authorities.
    pub(super) fn new(server: ScanServer) -> Result<Self, StoreError> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = tls_config(server.ca.as_deref(), server.is_tls).map_err(failed)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Ok(Self { http, server })
    }

    /// Name of the cluster; `None` of one node.
    pub(super) fn cluster(&self) -> Option<&str> {
        self.server.cluster.as_deref()
    }

    /// The rows of a statement, in RowBinary.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &Params,
        limit: Duration,
    ) -> Result<Bytes, StoreError> {
        let query = params.query();
        let body = Bytes::copy_from_slice(sql.as_bytes());
        match self.send(&query, body.clone(), limit).await {
            // A server that was started again has closed the connection. Reading twice changes nothing, and neither does
            // a second deletion.
            Err(StoreError::Unavailable(_)) => self.send(&query, body, limit).await,
            answer => answer,
        }
    }

    /// Stores rows in RowBinary. With a token they are stored once, as long as the server remembers it.
    pub(super) async fn insert(
        &self,
        sql: &str,
        token: Option<&str>,
        rows: Vec<u8>,
        limit: Duration,
    ) -> Result<(), StoreError> {
        let mut query = format!("&query={}", encode(sql));
        if let Some(token) = token {
            query.push_str("&insert_deduplication_token=");
            query.push_str(&encode(token));
        }
        self.send(&query, rows.into(), limit).await.map(drop)
    }

    async fn send(&self, query: &str, body: Bytes, limit: Duration) -> Result<Bytes, StoreError> {
        let database = encode(&self.server.database);
        let most = limit.as_secs_f64();
        let uri =
            format!("{}?database={database}&max_execution_time={most}{SETTINGS}{query}", self.server.origin);
        let request = Request::post(uri)
            .header("x-clickhouse-user", self.server.user.clone())
            .header("x-clickhouse-key", self.server.password.clone())
            .body(Full::new(body))
            .map_err(failed)?;
        let answer = async {
            let response = self.http.request(request).await.map_err(away)?;
            let status = response.status();
            let code =
                response.headers().get(EXCEPTION_CODE).and_then(|code| code.to_str().ok()?.parse().ok());
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
            Ok::<_, StoreError>((status, code, body.map_err(away)?.to_bytes()))
        };
        let (status, code, body) = match tokio::time::timeout(limit + GRACE, answer).await {
            Ok(answer) => answer?,
            Err(_) => return Err(StoreError::Timeout),
        };
        if status == StatusCode::OK && code.is_none() {
            return Ok(body);
        }
        Err(refusal(status, code, &body))
    }
}

/// The error of an answer. The text names values, so only the name of the error is taken from it.
fn refusal(status: StatusCode, code: Option<u32>, body: &[u8]) -> StoreError {
    let text = String::from_utf8_lossy(body);
    let name = text.rsplit('(').find_map(|part| {
        let name = part.split(')').next()?;
        let is_name = name.len() > 3 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        is_name.then(|| name.to_owned())
    });
    let name = name.unwrap_or_default();
    let error = format!("ClickHouse answered {status}, error {} {name}", code.unwrap_or_default());
    match code {
        Some(TIMEOUT_EXCEEDED) => StoreError::Timeout,
        Some(code) if PASSING.contains(&code) => away(error),
        None if status.is_server_error() => away(error),
        Some(_) | None => failed(error),
    }
}

/// The same may work a moment later.
pub(super) fn away(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(sqlx::Error::Io(std::io::Error::other(error)))
}

pub(super) fn failed(error: impl ToString) -> StoreError {
    StoreError::Sql(sqlx::Error::Protocol(error.to_string()))
}

/// TLS with one authority, or with those of the system; without TLS it trusts none.
fn tls_config(ca: Option<&[u8]>, is_tls: bool) -> Result<ClientConfig, String> {
    let roots = match ca {
        Some(pem) => roots(pem)?,
        None if !is_tls => RootCertStore::empty(),
        None => {
            let mut roots = RootCertStore::empty();
            // Some of a system's roots may be damaged: those that are not will do.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("the system has no certificate authorities: set WAYMARK_SCANS_CA".to_owned());
            }
            roots
        }
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_kind_and_no_values() {
        let of = |status: u16, code, text: &str| {
            refusal(StatusCode::from_u16(status).unwrap(), code, text.as_bytes())
        };
        let text = "Code: 457. DB::Exception: Value secret cannot be parsed (as said). (BAD_QUERY_PARAMETER) (version 26)";
        let error = of(400, Some(457), text);
        assert!(matches!(error, StoreError::Sql(_)), "{error}");
        let shown = error.to_string();
        assert!(shown.contains("BAD_QUERY_PARAMETER") && !shown.contains("secret"), "{shown}");
        assert!(matches!(of(500, Some(159), ""), StoreError::Timeout));
        assert!(matches!(of(500, Some(252), "TOO_MANY_PARTS"), StoreError::Unavailable(_)));
        assert!(matches!(of(502, None, "<html>"), StoreError::Unavailable(_)));
        assert!(matches!(of(403, None, ""), StoreError::Sql(_)));
        assert!(matches!(of(200, Some(47), ""), StoreError::Sql(_)));
    }
}
