//! Hosts that an account may claim.

use shared::short_url::Host;

/// Longest host: the name of its TXT record must have at most 253 characters, too.
pub const MAX_HOST: usize = 253 - "_waymark.".len();

/// Endings of names that no public DNS has, or that belong to nobody.
const NOT_PUBLIC: [&str; 8] =
    ["localhost", "local", "localdomain", "internal", "intranet", "arpa", "onion", "invalid"];

/// Names below which anybody can register: the common ones with a dot. Only whoever runs such a name could prove it anyway.
const SUFFIXES: [&str; 40] = [
    "ac.uk", "co.at", "co.id", "co.il", "co.in", "co.jp", "co.ke", "co.kr", "co.nz", "co.th", "co.uk",
    "co.za", "com.ar", "com.au", "com.br", "com.cn", "com.co", "com.eg", "com.hk", "com.mx", "com.my",
    "com.ng", "com.pe", "com.ph", "com.pk", "com.sa", "com.sg", "com.tr", "com.tw", "com.ua", "com.vn",
    "gov.uk", "ne.jp", "net.au", "net.br", "or.at", "or.jp", "org.au", "org.br", "org.uk",
];

/// Reads a host that an account claims: in lower case, in ASCII as IDNA writes it, without a dot at the end.
///
/// # Errors
/// The fault, as a sentence without the name of the member.
pub fn parse(text: &str) -> Result<Host, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.contains('*') {
        return Err("must be one host, without a wildcard".to_owned());
    }
    if text.contains(['/', '@', '?', '#', '%', '\\']) || text.contains(char::is_whitespace) {
        return Err("must be a host alone, such as go.example.com".to_owned());
    }
    let name = match url::Host::parse(text.strip_suffix('.').unwrap_or(text)) {
        Ok(url::Host::Domain(name)) => name,
        Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => {
            return Err("must be a name, and no address".to_owned());
        }
        Err(_) if text.contains(':') => return Err("must have no port, and be no address".to_owned()),
        Err(_) => return Err("must be a name in DNS, such as go.example.com".to_owned()),
    };
    if name.len() > MAX_HOST {
        return Err(format!("must have at most {MAX_HOST} characters"));
    }
    let host: Host = name.parse().map_err(|_| "must be a name in DNS, such as go.example.com".to_owned())?;
    let name = host.as_str();
    let Some((_, ending)) = name.rsplit_once('.') else {
        return Err("must be below a public ending, such as go.example.com".to_owned());
    };
    if NOT_PUBLIC.contains(&ending) || ending.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("must be a public name".to_owned());
    }
    if SUFFIXES.contains(&name) {
        return Err("must not be a public suffix, below which anybody can register".to_owned());
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_normalised_or_refused() {
        let long = format!("{}.example", ["a".repeat(60).as_str(); 4].join("."));
        for (text, expected, why) in [
            ("go.example.com", Some("go.example.com"), "as it is"),
            ("GO.Example.COM", Some("go.example.com"), "lower case"),
            ("go.example.com.", Some("go.example.com"), "without the dot of the root"),
            ("bücher.example", Some("xn--bcher-kva.example"), "IDNA"),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example"), "IDNA already"),
            ("example.co.uk", Some("example.co.uk"), "below a suffix"),
            ("go.example.com..", None, "two dots at the end"),
            ("go。example。com", Some("go.example.com"), "dots as IDNA maps them"),
            ("go.example.com。", None, "one of them at the end"),
            ("", None, "empty"),
            (".", None, "the root"),
            ("example", None, "an ending alone"),
            ("co.uk", None, "a public suffix"),
            ("CO.UK.", None, "a public suffix, however it is written"),
            ("*.example.com", None, "a wildcard"),
            ("go.example.com:443", None, "a port"),
            ("https://go.example.com", None, "a URL"),
            ("go.example.com/a", None, "a path"),
            ("a@example.com", None, "an address of mail"),
            ("go example.com", None, "a blank"),
            ("go.ex%61mple.com", None, "an escape"),
            ("192.0.2.7", None, "an address"),
            ("0x7f.1", None, "an address in another form"),
            ("[2001:db8::1]", None, "an address in brackets"),
            ("2001:db8::1", None, "an address without"),
            ("a..example", None, "an empty label"),
            ("-a.example", None, "a hyphen at the beginning"),
            ("a_b.example", None, "an underscore"),
            ("shop.localhost", None, "this machine"),
            ("printer.local", None, "a local network"),
            ("a.home.arpa", None, "a local network"),
            ("metadata.google.internal", None, "a cloud"),
            (long.as_str(), None, "no room for the name of its record"),
        ] {
            assert_eq!(parse(text).ok().as_ref().map(Host::as_str), expected, "{why}: {text:?}");
        }
    }
}
