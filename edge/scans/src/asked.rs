//! Takes what a scan records from a request.

use std::{borrow::Cow, net::IpAddr};

use shared::{
    access_token::{url_without_access_token, without_access_token},
    short_url::ShortDomain,
    time::UnixMillis,
    wire::{
        scan::{MAX_ENTRY_URL, MAX_REFERER, MAX_USER_AGENT, cut, preferred_language},
        spooled::{NewLink, NewRecord, NewRule},
    },
};

use super::Fired;

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
    /// What the Digital Link said, if it is one.
    pub link: Option<NewLink<'a>>,
}

impl Asked<'_> {
    /// Appends the record of it, answered at `at` by this rule; texts are cut to the maxima of `shared::wire::scan`.
    pub(super) fn write(&self, at: UnixMillis, fired: Option<&Fired>, url: &mut String, out: &mut Vec<u8>) {
        let &Self { ip, path, query, domain, folded, agent, referer, language, link } = self;
        let host = domain.host.as_str();
        let query = query.map(without_access_token).filter(|query| !query.is_empty());
        let (agent, referer) = (text(agent), text(referer));
        let referer = url_without_access_token(&referer);
        // Other bytes than those of ASCII are no language tag.
        let accepted = language.and_then(|value| str::from_utf8(value).ok());
        let language = accepted.and_then(preferred_language).unwrap_or_default();
        url.clear();
        let parts = [domain.scheme.as_str(), "://", host, path];
        for part in parts.into_iter().chain(query.as_deref().into_iter().flat_map(|query| ["?", query])) {
            url.push_str(cut(part, MAX_ENTRY_URL.saturating_sub(url.len())));
        }
        let rule = fired.map(|fired| NewRule {
            application: fired.rule.application.as_ref().map_or("", |id| id.as_str()),
            index: fired.rule.index,
            name: fired.rule.name.as_deref().unwrap_or_default(),
            // Printable ASCII: a target, and a query that was encoded.
            location: fired.location.to_str().unwrap_or_default(),
        });
        let texts = [host, folded, url, cut(&agent, MAX_USER_AGENT), cut(&referer, MAX_REFERER)];
        NewRecord { at, ip, texts, language, rule, link, in_memory: domain.omits_personal_data() }.write(out);
    }
}

/// A header as text; invalid bytes are replaced.
fn text(value: Option<&[u8]>) -> Cow<'_, str> {
    let bytes = value.unwrap_or_default();
    // Several times as fast as the lossy conversion for valid text.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use shared::{rules::MAX_NAME, short_url::Scheme};

    use super::{
        super::{RuleName, record::tests::read},
        *,
    };

    const APPLICATION: &str = "U5Gq8sKVBfgRtKRaagBefgwk";
    const AT: UnixMillis = UnixMillis(1_790_000_000_000);

    fn domain() -> ShortDomain {
        ShortDomain::new(Scheme::Https, "tn.gg").unwrap()
    }

    /// A request for one short id.
    fn asked(domain: &ShortDomain) -> Asked<'_> {
        let ip = [10, 0, 0, 1].into();
        Asked {
            ip,
            path: "/abc",
            query: None,
            domain,
            folded: "ABC",
            agent: None,
            referer: None,
            language: None,
            link: None,
        }
    }

    fn record(asked: &Asked<'_>, fired: Option<&Fired>) -> Vec<u8> {
        let (mut url, mut out) = ("of another".to_owned(), Vec::new());
        asked.write(AT, fired, &mut url, &mut out);
        out
    }

    proptest! {
        #[test]
        fn records_round_trip(v6: u128, path in "/[A-Za-z0-9._-]{0,80}", query in "[a-z=&]{0,80}", agent in ".{0,80}",
            referer in ".{0,40}", language in "(de|en-GB|)") {
            let domain = domain();
            for ip in [IpAddr::V4([10, 0, 0, 1].into()), IpAddr::V6(v6.into())] {
                let asked = Asked {
                    ip,
                    path: &path,
                    query: Some(&query),
                    agent: Some(agent.as_bytes()),
                    referer: Some(referer.as_bytes()),
                    language: Some(language.as_bytes()),
                    ..asked(&domain)
                };
                let bytes = record(&asked, None);
                // A release that knows no languages reads records without one.
                prop_assert_eq!(bytes[8], if language.is_empty() { 1 } else { 4 });
                let read = read(&bytes);
                prop_assert_eq!(read.at, AT);
                prop_assert_eq!(read.ip, ip);
                prop_assert_eq!((&*read.domain, &*read.folded), ("tn.gg", "ABC"));
                let mark = if query.is_empty() { "" } else { "?" };
                prop_assert_eq!(&*read.entry_url, format!("https://tn.gg{path}{mark}{query}"));
                prop_assert_eq!(read.user_agent.as_deref().unwrap_or_default(), &*agent);
                prop_assert_eq!(read.referer.as_deref().unwrap_or_default(), &*referer);
                prop_assert_eq!(read.language.as_deref().unwrap_or_default(), &*language);
            }
        }

        #[test]
        fn records_with_a_rule_round_trip(named: bool, own: bool, index: u16, name in ".{1,40}",
            path in "[a-z]{0,2000}", language in prop::sample::select(vec!["", "de-CH"])) {
            let location = format!("https://example.com/{path}");
            let rule = RuleName {
                application: (!own).then(|| APPLICATION.parse().unwrap()),
                index,
                name: named.then(|| cut(&name, MAX_NAME).into()),
            };
            let fired = Fired { rule: Arc::new(rule), location: location.as_str().try_into().unwrap() };
            let domain = domain();
            let asked = Asked { language: Some(language.as_bytes()), ..asked(&domain) };
            let read = read(&record(&asked, Some(&fired)));
            prop_assert_eq!(read.language.as_deref().unwrap_or_default(), language);
            let fired = read.rule.unwrap();
            prop_assert_eq!(fired.application, (!own).then(|| APPLICATION.parse().unwrap()));
            prop_assert_eq!((fired.index, &*fired.redirect_url), (index, &*location));
            prop_assert_eq!(fired.name, named.then(|| cut(&name, MAX_NAME).into()));
        }
    }

    #[test]
    fn long_texts_are_cut_and_keys_left_out() {
        let (long, domain) = ("x".repeat(3_000), domain());
        let (path, from) = (format!("/{long}"), format!("https://a.example/?access_token=k&b={long}"));
        let asked = Asked {
            path: &path,
            query: Some("access_token=k"),
            agent: Some(long.as_bytes()),
            referer: Some(from.as_bytes()),
            ..asked(&domain)
        };
        let read = read(&record(&asked, None));
        assert_eq!(read.entry_url.len(), MAX_ENTRY_URL);
        assert_eq!(read.user_agent.unwrap().len(), MAX_USER_AGENT);
        let referer = read.referer.unwrap();
        assert!(referer.len() == MAX_REFERER && referer.starts_with("https://a.example/?b=x"), "{referer}");
        let asked = Asked { path: "/ABC", query: Some("a=1&access_token=k"), agent: Some(b"\xff"), ..asked };
        let read = super::super::record::tests::read(&record(&asked, None));
        assert_eq!(&*read.entry_url, "https://tn.gg/ABC?a=1");
        assert_eq!(read.user_agent.as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn a_typical_record_is_under_200_bytes() {
        let agent =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        let domain = domain();
        let asked = Asked { path: "/K7Q2M4XA9R", agent: Some(agent.as_bytes()), ..asked(&domain) };
        let bytes = record(&asked, None);
        assert!(bytes.len() < 200, "{}", bytes.len());
    }
}
