//! This machine's address in its network, for codes that a phone shall scan.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use shared::short_url::is_local_network;

use super::ConfigError;

/// The address that is given, or with `auto` the one from which the machine reaches others.
///
/// # Errors
/// It is none, one that the whole world reaches, or the machine has none.
pub(super) fn address(text: Option<&str>) -> Result<Option<IpAddr>, ConfigError> {
    address_or(text, own)
}

fn address_or(
    text: Option<&str>,
    own: impl FnOnce() -> Option<IpAddr>,
) -> Result<Option<IpAddr>, ConfigError> {
    let wrong = |reason: String| Err(ConfigError::new("WAYMARK_LAN", reason));
    let ip = match text {
        None | Some("off" | "false" | "0") => return Ok(None),
        Some("auto" | "true" | "1") => match own() {
            Some(ip) => ip,
            None => {
                return wrong("this machine has no address in a network: give it, as 192.168.1.5".to_owned());
            }
        },
        Some(text) => match text.parse::<IpAddr>() {
            Ok(ip) => ip,
            Err(_) => {
                return wrong(format!("{text:?} is not an address: give one such as 192.168.1.5, or auto"));
            }
        },
    };
    if is_local_network(ip) || ip.is_loopback() {
        return Ok(Some(ip));
    }
    wrong(format!(
        "{ip} is no address of a local network: use certificates of its own there (WAYMARK_TLS_DIR)"
    ))
}

/// The address from which the machine would send to others; nothing is sent.
fn own() -> Option<IpAddr> {
    // An address of documentation networks, so that the default route is looked up.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    socket.local_addr().ok().map(|local| local.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_a_local_network_are_taken() {
        for (text, expected) in [
            (None, Some(None)),
            (Some("off"), Some(None)),
            (Some("192.168.1.5"), Some(Some("192.168.1.5"))),
            (Some("127.0.0.2"), Some(Some("127.0.0.2"))),
            (Some("fd00::5"), Some(Some("fd00::5"))),
            (Some("203.0.113.7"), None),
            (Some("0.0.0.0"), None),
            (Some("phone"), None),
        ] {
            let expected = expected.map(|ip| ip.map(|ip| ip.parse::<IpAddr>().unwrap()));
            assert_eq!(address(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn auto_takes_the_address_of_this_machine() {
        let own = |text: &str| text.parse::<IpAddr>().ok();
        for text in ["auto", "true", "1"] {
            assert_eq!(address_or(Some(text), || own("10.0.0.9")).ok(), Some(own("10.0.0.9")), "{text}");
            let refused = address_or(Some(text), || None).unwrap_err();
            assert!(refused.reason.contains("has no address in a network"), "{refused}");
            let refused = address_or(Some(text), || own("203.0.113.7")).unwrap_err();
            assert!(refused.reason.starts_with("203.0.113.7 is no address of a local network"), "{refused}");
        }
    }
}
