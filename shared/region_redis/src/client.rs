//! Builds clients for the Redis that a [`RedisUrl`] names, the same for control and edges.
//!
//! Building a client opens no connection; the caller does that on its own runtime.

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates, TlsMode,
    cluster::ClusterClient,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};

use crate::url::{Form, RedisUrl};

/// Timeouts of a cluster client; other clients get them when they connect.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest wait for an answer.
    pub response: Duration,
    /// How often a command is tried again, at another server if need be.
    pub retries: u32,
}

/// A client, by the form in which the servers stand together.
pub enum RedisClient {
    /// Of one server.
    Single(Client),
    /// Of the primary that sentinels name.
    Sentinel(SentinelClient),
    /// Of a cluster.
    Cluster(ClusterClient),
}

impl RedisClient {
    /// Creates a client; `ca` is the authority of the servers' certificates, as PEM, else the system's count.
    ///
    /// # Errors
    /// The settings do not go together, or `ca` is no PEM.
    pub fn new(url: &RedisUrl, ca: Option<&[u8]>, patience: Patience) -> RedisResult<Self> {
        let certificates = TlsCertificates { client_tls: None, root_cert: ca.map(<[u8]>::to_vec) };
        let mut nodes = url.nodes.iter().map(|(host, port)| address(host, *port, url.is_tls));
        Ok(match &url.form {
            Form::Single => {
                let node = nodes.next().ok_or_else(|| {
                    RedisError::from((ErrorKind::InvalidClientConfig, "no server is named"))
                })?;
                let info = node.into_connection_info()?.set_redis_settings(settings(url));
                Self::Single(if url.is_tls {
                    Client::build_with_tls(info, certificates)?
                } else {
                    Client::open(info)?
                })
            }
            Form::Sentinel(service) => {
                let mut builder = SentinelClientBuilder::new(nodes, service, SentinelServerType::Master)?;
                if let Some(user) = &url.user {
                    builder = builder.set_client_to_redis_username(user);
                }
                if let Some(password) = &url.password {
                    builder = builder.set_client_to_redis_password(password);
                }
                if url.is_tls {
                    builder = builder
                        .set_client_to_redis_tls_mode(TlsMode::Secure)
                        .set_client_to_redis_certificates(certificates.clone())
                        .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                        .set_client_to_sentinel_certificates(certificates);
                }
                Self::Sentinel(builder.build()?)
            }
            Form::Cluster => {
                let nodes = nodes.map(ConnectionAddr::into_connection_info);
                let mut builder =
                    ClusterClient::builder(nodes.collect::<RedisResult<Vec<ConnectionInfo>>>()?)
                        .connection_timeout(patience.connect)
                        .response_timeout(patience.response)
                        .retries(patience.retries);
                if let Some(user) = &url.user {
                    builder = builder.username(user);
                }
                if let Some(password) = &url.password {
                    builder = builder.password(password);
                }
                if url.is_tls {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                Self::Cluster(builder.build()?)
            }
        })
    }
}

fn address(host: &str, port: u16, is_tls: bool) -> ConnectionAddr {
    let host = host.to_owned();
    if is_tls {
        ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host, port)
    }
}

/// Without the library's name: the user of an edge may not say it.
fn settings(url: &RedisUrl) -> RedisConnectionInfo {
    let mut settings = RedisConnectionInfo::default().set_db(url.db.into()).set_skip_set_lib_name();
    if let Some(user) = &url.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &url.password {
        settings = settings.set_password(password);
    }
    settings
}
