//! The file that a job names as its input.

use shared::id::FileId;

use super::{file::id_of_content_url, limits::shorten};

/// The file whose `contentUrl` a location is, as a service gives it out that is reached at `base`.
///
/// Scheme, port and signature may differ: one service has several listeners, and signatures run out.
///
/// # Errors
/// It is no `contentUrl`, or of another host; a sentence without its subject.
pub fn file_of(location: &str, base: &str) -> Result<FileId, String> {
    let rest = location.strip_prefix("https://").or_else(|| location.strip_prefix("http://"));
    let found = rest.and_then(|rest| {
        let (authority, path) = rest.split_once('/')?;
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = path.strip_prefix("v2/").unwrap_or(path);
        let is_content = path.starts_with("files/") && path.matches('/').count() == 2;
        Some((host(authority), id_of_content_url(location).filter(|_| is_content)?))
    });
    let Some((named, id)) = found else {
        return Err("must be the contentUrl of a file of this service".to_owned());
    };
    let own = base.split_once("://").map_or(base, |(_, authority)| authority);
    if host(own).eq_ignore_ascii_case(named) {
        return Ok(id);
    }
    Err(format!("must be the contentUrl of a file of this service, not of {:?}", shorten(named)))
}

/// The name in an authority, without user and port.
fn host(authority: &str) -> &str {
    let authority = authority.rsplit_once('@').map_or(authority, |_| "");
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        Some(_) | None => authority,
    }
}
