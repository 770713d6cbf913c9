//! Takes what a scan records from a request.

use std::{borrow::Cow, net::IpAddr};

use shared::{
    access_token::{url_without_access_token, without_access_token},
    short_url::ShortDomain,
    time::UnixMillis,
    wire::scan::{MAX_ENTRY_URL, MAX_REFERER, MAX_USER_AGENT, cut, preferred_language},
};

use super::{Fired, Scan};

/// A request that was answered with a redirect.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The client's address.
    pub ip: IpAddr,
    /// The path of the request.
    pub path: &'a str,
    /// Its query, of which `access_token` is left out of the scan.
    pub query: Option<&'a str>,
    /// The domain of the link.
    pub domain: &'a ShortDomain,
    /// The folded short id of the link.
    pub folded: &'a str,
    /// `User-Agent`.
    pub agent: Option<&'a [u8]>,
    /// `Referer`.
    pub referer: Option<&'a [u8]>,
    /// `Accept-Language`.
    pub language: Option<&'a [u8]>,
}

impl Asked<'_> {
    /// The scan of it, answered at `at`; texts are cut to the maxima of `shared::wire::scan`.
    #[must_use]
    pub fn scan(self, at: UnixMillis, fired: Option<Box<Fired>>) -> Scan {
        let Self { ip, path, query, domain, folded, agent, referer, language } = self;
        let host = domain.host.as_str();
        let query = query.map(without_access_token).filter(|query| !query.is_empty());
        let (agent, referer) = (text(agent), text(referer));
        let referer = url_without_access_token(&referer);
        let (agent, referer) = (cut(&agent, MAX_USER_AGENT), cut(&referer, MAX_REFERER));
        // Other bytes than those of ASCII are no language tag.
        let accepted = language.and_then(|value| str::from_utf8(value).ok());
        let language = accepted.and_then(preferred_language).unwrap_or_default();
        let parts = [domain.scheme.as_str(), "://", host, path];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let query_length = query.as_ref().map_or(0, |query| query.len() + 1);
        let url_length = (length + query_length).min(MAX_ENTRY_URL);
        let key_length = host.len() + folded.len();
        let mut texts =
            String::with_capacity(key_length + url_length + agent.len() + referer.len() + language.len());
        // Texts of at most 976 bytes in all.
        let end = |texts: &String| u16::try_from(texts.len()).unwrap_or_default();
        texts.push_str(host);
        let folded_at = end(&texts);
        texts.push_str(folded);
        let url_at = end(&texts);
        for part in parts.into_iter().chain(query.as_deref().into_iter().flat_map(|query| ["?", query])) {
            texts.push_str(cut(part, (key_length + MAX_ENTRY_URL).saturating_sub(texts.len())));
        }
        let agent_at = end(&texts);
        texts.push_str(agent);
        let referer_at = end(&texts);
        texts.push_str(referer);
        let cuts = [folded_at, url_at, agent_at, referer_at, end(&texts)];
        texts.push_str(language);
        Scan { at, ip, texts: texts.into_boxed_str(), cuts, fired }
    }
}

/// A header as text; invalid bytes are replaced.
fn text(value: Option<&[u8]>) -> Cow<'_, str> {
    let bytes = value.unwrap_or_default();
    // Several times as fast as the lossy conversion for valid text.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
