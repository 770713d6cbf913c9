//! The URL of a region's Redis, parsed alike by control and edges.
//!
//! ```text
//! redis://[USER:PASSWORD@]HOST[:PORT][/DB]                      one server
//! redis+sentinel://[USER:PASSWORD@]HOST[:PORT],…/SERVICE        the primary that sentinels name
//! redis+cluster://[USER:PASSWORD@]HOST[:PORT],…                 a cluster, from any of its nodes
//! ```
//!
//! With `rediss` instead of `redis` all connections use TLS. User and password are percent-encoded and belong to the
//! servers; sentinels are asked without them.

use std::{fmt, str::FromStr};

use percent_encoding::percent_decode_str;

/// Port of a server that names none.
const PORT: u16 = 6379;
/// Port of a sentinel that names none.
const SENTINEL_PORT: u16 = 26379;

/// How the servers stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// One server.
    Single,
    /// A primary with replicas; the nodes are sentinels, which name it by this service.
    Sentinel(String),
    /// A cluster; the nodes are some of it.
    Cluster,
}

/// The Redis of a region.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    /// How the servers stand together.
    pub form: Form,
    /// Whether connections are TLS.
    pub is_tls: bool,
    /// User of the servers' access list.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<String>,
    /// Host and port of each node; at least one, and exactly one of a single server.
    pub nodes: Vec<(String, u16)>,
    /// Number of the database; 0 in a cluster.
    pub db: u16,
}

/// Why a text is no [`RedisUrl`]; the text is not repeated, as it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not one of redis://user:password@host:6379/0, redis+sentinel://host:26379,host:26379/service, \
     redis+cluster://host:6379,host:6379, each with rediss for TLS"
)]
pub struct InvalidRedisUrl;

impl FromStr for RedisUrl {
    type Err = InvalidRedisUrl;

    fn from_str(text: &str) -> Result<Self, InvalidRedisUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidRedisUrl)?;
        let (protocol, form) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_tls = match protocol {
            "redis" => false,
            "rediss" => true,
            _ => return Err(InvalidRedisUrl),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, authority),
        };
        let (form, db, port) = match (form, path) {
            ("", "") => (Form::Single, 0, PORT),
            ("", db) => (Form::Single, db.parse().map_err(|_| InvalidRedisUrl)?, PORT),
            ("cluster", "") => (Form::Cluster, 0, PORT),
            ("sentinel", service) if !service.is_empty() && !service.contains(['/', '?', '#']) => {
                (Form::Sentinel(service.to_owned()), 0, SENTINEL_PORT)
            }
            _ => return Err(InvalidRedisUrl),
        };
        let nodes: Vec<_> = hosts.split(',').map(|host| node(host, port)).collect::<Result<_, _>>()?;
        if form == Form::Single && nodes.len() != 1 {
            return Err(InvalidRedisUrl);
        }
        let (user, password) = match credentials.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            None => (None, None),
            Some((user, password)) => (plain(user)?, plain(password)?),
        };
        Ok(Self { form, is_tls, user, password, nodes, db })
    }
}

impl fmt::Debug for RedisUrl {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, is_tls, user, password: _, nodes, db } = self;
        f.debug_struct("RedisUrl")
            .field("form", form)
            .field("is_tls", is_tls)
            .field("user", user)
            .field("nodes", nodes)
            .field("db", db)
            .finish_non_exhaustive()
    }
}

fn node(text: &str, default: u16) -> Result<(String, u16), InvalidRedisUrl> {
    // An IPv6 address is in brackets.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| InvalidRedisUrl)?),
        Some(_) | None => (text, default),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
    if host.is_empty() || port == 0 || !host.bytes().all(is_host) {
        return Err(InvalidRedisUrl);
    }
    Ok((host.to_owned(), port))
}

fn plain(text: &str) -> Result<Option<String>, InvalidRedisUrl> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| InvalidRedisUrl)?;
    Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_url_is_parsed() {
        let owned = |nodes: &[(&str, u16)]| -> Vec<_> {
            nodes.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
        };
        for (text, form, is_tls, expected, db) in [
            ("redis://127.0.0.1", Form::Single, false, &[("127.0.0.1", 6379_u16)][..], 0),
            ("rediss://cache.example:7000/3", Form::Single, true, &[("cache.example", 7000)], 3),
            ("redis://[::1]:6380/", Form::Single, false, &[("::1", 6380)], 0),
            ("redis://[::1]", Form::Single, false, &[("::1", 6379)], 0),
            ("redis+cluster://a,b:7001", Form::Cluster, false, &[("a", 6379), ("b", 7001)], 0),
            (
                "rediss+sentinel://s1,s2/main",
                Form::Sentinel("main".into()),
                true,
                &[("s1", 26379), ("s2", 26379)],
                0,
            ),
        ] {
            let url: RedisUrl = text.parse().unwrap();
            assert_eq!(
                (url.form, url.is_tls, url.nodes, url.db),
                (form, is_tls, owned(expected), db),
                "{text}"
            );
            assert_eq!((url.user, url.password), (None, None), "{text}");
        }
        let url: RedisUrl = "redis://edge:p%40ss%3A@h".parse().unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("edge"), Some("p@ss:")));
        assert!(!format!("{url:?}").contains("p@ss"), "{url:?}");
        let url: RedisUrl = "redis://:secret@h".parse().unwrap();
        assert_eq!((url.user, url.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn other_urls_are_refused() {
        for text in [
            "",
            "127.0.0.1:6379",
            "http://h",
            "redis://",
            "redis://a,b",
            "redis://h/x",
            "redis://h:0",
            "redis://h:70000",
            "redis+cluster://h/1",
            "redis+sentinel://h",
            "redis+sentinel://h/",
            "redis+other://h",
            "redis://h?db=1",
            "redis://h h",
        ] {
            assert_eq!(text.parse::<RedisUrl>(), Err(InvalidRedisUrl), "{text}");
        }
    }
}
