//! Which hosts the targets of an account's redirections may have.

use std::net::IpAddr;

use shared::target::Target;
use url::{Host, Url};

use super::{egress::is_open, members::Members};

/// Most hosts that an account may list.
pub const MAX_HOSTS: usize = 100;

/// What an account allows as hosts of targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetHosts {
    /// Loopback, link-local and private addresses too, and names of local networks.
    pub private: bool,
    /// Only these; empty means any. `*.example.com` means every host below `example.com`.
    pub only: Vec<String>,
}

impl TargetHosts {
    /// The fault of a target's host, as a sentence without the name of the member.
    #[must_use]
    pub fn fault(&self, target: &Target) -> Option<String> {
        // A target was validated when it was created, and has no tag in its host.
        let url = Url::parse(target.as_str()).ok()?;
        let host = url.host()?;
        if !self.private && is_private(&host) {
            return Some(
                "must not lead to a loopback, link-local or private address, unless the account has privateTargets"
                    .to_owned(),
            );
        }
        let name = host.to_string();
        let name = name.trim_end_matches('.');
        let is_listed = self.only.is_empty() || self.only.iter().any(|listed| matches(listed, name));
        (!is_listed).then(|| format!("must lead to one of the account's targetHosts, not to {name}"))
    }
}

/// Whether a host is of this machine or of a local network; the parser reads every spelling of an address.
fn is_private(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => !is_open(IpAddr::V4(*address), false),
        Host::Ipv6(address) => !is_open(IpAddr::V6(*address), false),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_below = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
            name.is_empty()
                || name == "localhost"
                || ["localhost", "local", "localdomain", "internal", "home.arpa"].into_iter().any(is_below)
        }
    }
}

fn matches(listed: &str, name: &str) -> bool {
    match listed.strip_prefix("*.") {
        Some(parent) => name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => listed == name,
    }
}

/// A host as [`TargetHosts::only`] holds it: lower case, without a port.
///
/// # Errors
/// The text is not a host.
pub fn parse_host(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no host such as example.com or *.example.com");
    let (prefix, name) = match text.strip_prefix("*.") {
        Some(parent) => ("*.", parent),
        None => ("", text),
    };
    let host = Host::parse(name).map_err(|_| wrong())?;
    if !prefix.is_empty() && !matches!(host, Host::Domain(_)) {
        return Err(wrong());
    }
    let host = host.to_string();
    let host = host.trim_end_matches('.');
    if host.is_empty() || host.len() > 253 || host.contains('*') {
        Err(wrong())
    } else {
        Ok(format!("{prefix}{host}"))
    }
}

/// Parses a list of hosts.
///
/// # Errors
/// Every invalid entry, or that there are too many.
pub fn parse_hosts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, Vec<String>> {
    let (mut hosts, mut faults) = (Vec::new(), Vec::new());
    for text in texts {
        match parse_host(text) {
            Ok(host) if hosts.contains(&host) => {}
            Ok(host) => hosts.push(host),
            Err(fault) => faults.push(fault),
        }
    }
    if hosts.len() > MAX_HOSTS {
        faults.push(format!("at most {MAX_HOSTS} hosts, not {}", hosts.len()));
    }
    if faults.is_empty() { Ok(hosts) } else { Err(faults) }
}

/// Reads the member `targetHosts`.
pub fn read(members: &mut Members<'_>) -> Option<Vec<String>> {
    let texts = members.texts("targetHosts")?;
    match parse_hosts(texts) {
        Ok(hosts) => Some(hosts),
        Err(faults) => {
            faults.into_iter().for_each(|fault| members.fault(format!("targetHosts: {fault}.")));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(hosts: &TargetHosts, target: &str) -> bool {
        hosts.fault(&Target::parse(target).unwrap()).is_some()
    }

    #[test]
    fn private_targets_are_refused_however_they_are_written() {
        let default = TargetHosts::default();
        for (target, is_refused) in [
            ("https://example.com/{shortId}?t={thngId}", false),
            ("https://93.184.216.34/", false),
            ("https://[2606:2800:220:1::1]/", false),
            ("https://local.example/", false),
            ("https://notlocalhost/", false),
            ("http://127.0.0.1/", true),
            ("http://127.1:8080/", true),
            ("http://2130706433/", true),
            ("http://0x7f000001/", true),
            ("http://0177.0.0.1/", true),
            ("http://0/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://[::ffff:7f00:1]/", true),
            ("http://[64:ff9b::a00:1]/", true),
            ("http://10.0.0.1/", true),
            ("http://172.16.0.1/", true),
            ("http://192.168.1.1/", true),
            ("http://169.254.169.254/latest/", true),
            ("http://100.64.0.1/", true),
            ("http://[fe80::1]/", true),
            ("http://[fd00::1]/", true),
            ("http://LOCALHOST:8080/", true),
            ("http://localhost./", true),
            ("http://a.localhost/", true),
            ("http://printer.local/", true),
            ("http://printer.LOCAL./", true),
            ("http://metadata.google.internal/", true),
            ("http://%31%32%37.0.0.1/", true),
        ] {
            assert_eq!(fault(&default, target), is_refused, "{target}");
            assert!(!fault(&TargetHosts { private: true, ..TargetHosts::default() }, target), "{target}");
        }
    }

    #[test]
    fn an_account_may_list_the_hosts_of_targets() {
        let only = parse_hosts(["Example.com", "*.brand.example", "example.com"]).unwrap();
        assert_eq!(only, ["example.com", "*.brand.example"]);
        let hosts = TargetHosts { private: false, only };
        for (target, is_refused) in [
            ("https://example.com:8443/a", false),
            ("https://EXAMPLE.com./a", false),
            ("https://www.example.com/", true),
            ("https://shop.brand.example/", false),
            ("https://a.b.brand.example/", false),
            ("https://brand.example/", true),
            ("https://evilbrand.example/", true),
            ("https://example.com.evil.example/", true),
        ] {
            assert_eq!(fault(&hosts, target), is_refused, "{target}");
        }
        for wrong in ["", "*.", "a b", "https://a.b", "a.b/c", "a.b:80", "*.10.0.0.1", "*"] {
            assert!(parse_hosts([wrong]).is_err(), "{wrong:?}");
        }
        let many: Vec<String> = (0..=MAX_HOSTS).map(|n| format!("h{n}.example")).collect();
        assert!(parse_hosts(many.iter().map(String::as_str)).is_err());
    }
}
