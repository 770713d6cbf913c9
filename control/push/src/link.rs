//! The connection to the Redis of a region: one server, the primary behind sentinels, or a cluster.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind,
    Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo},
};
use region_redis::{Patience, RedisClient, RedisUrl};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for an answer: a script of a megabyte takes milliseconds, a server that forks longer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Time between two tries to reach a server that is away, and how long one of them may take.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(125), Duration::from_secs(1));

/// The eviction policy of a server, if it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Policy {
    /// It refuses writes, so that nothing is lost.
    NoEviction,
    /// It throws keys away: an absent key would mean nothing.
    Evicts(String),
    /// The user may not ask.
    Unknown,
}

/// A connection; clones share it, and requests of clones are pipelined.
#[derive(Clone)]
pub(super) enum Link {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects; behind sentinels, to the server that is the primary now.
    ///
    /// # Errors
    /// Nothing answers, or refuses the user.
    pub(super) async fn connect(url: &RedisUrl, ca: Option<&[u8]>) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let patience = Patience { connect: CONNECT_TIMEOUT, response: RESPONSE_TIMEOUT, retries: 3 };
        let client = RedisClient::new(url, ca, patience)?;
        let connect = async {
            Ok(match client {
                RedisClient::Single(client) => {
                    Self::One(client.get_multiplexed_async_connection_with_config(&config).await?)
                }
                RedisClient::Sentinel(mut client) => {
                    Self::One(client.get_async_connection_with_config(&config).await?)
                }
                RedisClient::Cluster(client) => Self::Cluster(client.get_async_connection().await?),
            })
        };
        // Sentinels and the nodes of a cluster are asked without a limit of their own.
        tokio::time::timeout(CONNECT_TIMEOUT * 2, connect).await.unwrap_or_else(|_| Err(late()))
    }

    /// Runs a command at the server that has its first key.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        match self.clone() {
            Self::One(mut connection) => command.query_async(&mut connection).await,
            Self::Cluster(mut connection) => command.query_async(&mut connection).await,
        }
    }

    /// Runs a script at the server that has `keys`, which are all of one shard.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        code: &str,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> RedisResult<T> {
        let command = |name: &str, script: &str| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        match self.query(&command("EVALSHA", script.get_hash())).await {
            // A server that is new to it learns it in passing.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.query(&command("EVAL", code)).await
            }
            result => result,
        }
    }

    /// What every server does when it is out of memory.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) async fn eviction_policy(&self) -> RedisResult<Policy> {
        let mut asked = redis::cmd("CONFIG");
        asked.arg("GET").arg("maxmemory-policy");
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        for command in [asked, info] {
            let answer = match self.clone() {
                Self::One(mut connection) => connection.req_packed_command(&command).await,
                Self::Cluster(mut connection) => {
                    let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                    connection.route_command(command, all).await
                }
            };
            match answer {
                Ok(value) => {
                    let mut texts = Vec::new();
                    collect_texts(&value, &mut texts);
                    if let Some(policy) = find_policy(&texts) {
                        return Ok(policy);
                    }
                }
                Err(error) if error.is_connection_dropped() || error.is_io_error() => return Err(error),
                // Managed services forbid the one or the other.
                Err(_) => {}
            }
        }
        Ok(Policy::Unknown)
    }
}

/// Tries again and again until Redis takes a connection and answers.
pub(super) async fn until_answers(url: &RedisUrl, ca: Option<&[u8]>) {
    loop {
        tokio::time::sleep(RETRY_BACKOFF.0).await;
        let probe = async { Link::connect(url, ca).await?.eviction_policy().await };
        if let Ok(Ok(_)) = tokio::time::timeout(RETRY_BACKOFF.1, probe).await {
            return;
        }
    }
}

fn late() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// Collects every text of a reply, whatever its structure on one server or several.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::BulkString(bytes) => texts.push(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => texts.push(text.clone()),
        Value::Array(values) | Value::Set(values) => {
            values.iter().for_each(|value| collect_texts(value, texts));
        }
        Value::Map(pairs) => pairs.iter().for_each(|(name, value)| {
            collect_texts(name, texts);
            collect_texts(value, texts);
        }),
        // Nothing that is asked here answers by numbers.
        _ => {}
    }
}

/// The worst policy that is named by the answers of all servers.
fn find_policy(texts: &[String]) -> Option<Policy> {
    let named = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let name = line.strip_prefix("maxmemory_policy:").unwrap_or(line).trim();
        let is_policy = name == "noeviction" || name.starts_with("allkeys-") || name.starts_with("volatile-");
        is_policy.then(|| name.to_owned())
    });
    // No key has an expiry, so `volatile` policies never evict anything; but that is not guaranteed.
    let mut found = None;
    for name in named {
        if name != "noeviction" {
            return Some(Policy::Evicts(name));
        }
        found = Some(Policy::NoEviction);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_policy_of_all_servers_counts() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pair = |policy: &str| Value::Map(vec![(bulk("maxmemory-policy"), bulk(policy))]);
        for (value, expected, why) in [
            (pair("noeviction"), Some(Policy::NoEviction), "one server"),
            (
                Value::Array(vec![bulk("maxmemory-policy"), bulk("allkeys-lru")]),
                Some(Policy::Evicts("allkeys-lru".to_owned())),
                "the older protocol",
            ),
            (
                Value::Map(vec![(bulk("a:1"), pair("noeviction")), (bulk("b:1"), pair("volatile-ttl"))]),
                Some(Policy::Evicts("volatile-ttl".to_owned())),
                "a cluster",
            ),
            (
                bulk("# Memory\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\n"),
                Some(Policy::NoEviction),
                "INFO",
            ),
            (Value::Array(Vec::new()), None, "a server that hides its settings"),
        ] {
            let mut texts = Vec::new();
            collect_texts(&value, &mut texts);
            assert_eq!(find_policy(&texts), expected, "{why}");
        }
    }
}
