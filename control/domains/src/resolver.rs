//! Look-ups of TXT records. The crate of the resolver is used here alone.

use std::{fmt, net::SocketAddr, time::Duration};

use hickory_resolver::{
    Resolver, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::RData,
};
use tokio::{sync::OnceCell, time::timeout};

/// Longest wait for one answer of one server, and tries.
const ANSWER: Duration = Duration::from_secs(3);
const TRIES: usize = 2;

/// Longest look-up as a whole.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of a record that are looked at; ours has less than a hundred.
const MAX_TEXT: usize = 1_024;

/// Why a look-up found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name has no TXT record.
    #[error("there is no TXT record")]
    NoRecord,
    /// No server answered, or one with an error.
    #[error("DNS gave no answer")]
    NoAnswer,
}

/// Asks DNS for TXT records, and keeps no answers: a record that was just added is seen as soon as servers have it.
pub struct TxtResolver {
    server: Option<SocketAddr>,
    resolver: OnceCell<TokioResolver>,
}

impl fmt::Debug for TxtResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxtResolver").field("server", &self.server).finish_non_exhaustive()
    }
}

impl TxtResolver {
    /// A resolver that asks this server; without one those of the system. Nothing is read or sent before the first look-up.
    #[must_use]
    pub fn new(server: Option<SocketAddr>) -> Self {
        Self { server, resolver: OnceCell::new() }
    }

    /// The texts of a name, which is relative to the root. A text in several parts is one.
    ///
    /// # Errors
    /// There are none, or nobody says so.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        let resolver =
            self.resolver.get_or_try_init(|| async { build(self.server) }).await.map_err(|error| {
                tracing::warn!(%error, "the settings of the resolver cannot be read");
                LookupError::NoAnswer
            })?;
        let found = timeout(TIMEOUT, resolver.txt_lookup(format!("{name}."))).await;
        let found = found.map_err(|_| LookupError::NoAnswer)?.map_err(|error| {
            tracing::debug!(%error, name, "no TXT record");
            if error.is_no_records_found() { LookupError::NoRecord } else { LookupError::NoAnswer }
        })?;
        let texts: Vec<String> = found
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::TXT(text) => {
                    let bytes: Vec<u8> =
                        text.txt_data.iter().flat_map(|part| part.iter().copied()).take(MAX_TEXT).collect();
                    Some(String::from_utf8_lossy(&bytes).into_owned())
                }
                // Of a name that is an alias, the record of the alias comes, too.
                _ => None,
            })
            .collect();
        if texts.is_empty() { Err(LookupError::NoRecord) } else { Ok(texts) }
    }
}

fn build(server: Option<SocketAddr>) -> Result<TokioResolver, NetError> {
    let mut builder = match server {
        Some(address) => {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            for connection in &mut connections {
                connection.port = address.port();
            }
            let server = NameServerConfig::new(address.ip(), true, connections);
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
            Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        }
        None => TokioResolver::builder_tokio()?,
    };
    let options = builder.options_mut();
    options.cache_size = 0;
    options.positive_max_ttl = Some(Duration::ZERO);
    options.negative_max_ttl = Some(Duration::ZERO);
    options.timeout = ANSWER;
    options.attempts = TRIES;
    options.use_hosts_file = ResolveHosts::Never;
    builder.build()
}
