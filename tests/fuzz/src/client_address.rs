//! Addresses that proxies name: any bytes give the peer or an address, and never one that is trusted but for the
//! last resort.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use shared::client_address::{ForwardedHeader, TrustedProxies};

libfuzzer_sys::fuzz_target!(|lines: (Vec<u8>, Vec<u8>)| {
    let (one, other) = (&lines.0[..], &lines.1[..]);
    let stranger = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
    let proxy = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let client = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9));
    for (header, hop) in [
        (ForwardedHeader::XForwardedFor, &b"198.51.100.9"[..]),
        (ForwardedHeader::Forwarded, &b"proto=https;for=\"198.51.100.9:4711\""[..]),
    ] {
        let proxies = "10.0.0.0/8,fd00::/8".parse::<TrustedProxies>().unwrap().reading(header);
        // Whoever is not a proxy is itself, whatever it sends.
        let found = proxies.client(stranger, [one, other].into_iter());
        assert_eq!((found.ip, found.is_direct), (stranger, true));
        assert!(!proxies.client(proxy, [one, other].into_iter()).is_local());
        // What stands left of the hop that the proxy wrote does not matter.
        let joined = [one, b", ", hop].concat();
        for lines in [vec![&joined[..]], vec![one, other, hop], vec![other, &joined[..]]] {
            let found = proxies.client(proxy, lines.into_iter());
            assert_eq!((found.ip, found.is_direct), (client, false), "{header:?}");
        }
    }
});
