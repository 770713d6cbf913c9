//! Addresses that proxies name: any bytes give the peer or an address, and never one that is trusted but for the
//! last resort.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use shared::client_address::TrustedProxies;

libfuzzer_sys::fuzz_target!(|lines: (Vec<u8>, Vec<u8>)| {
    let proxies: TrustedProxies = "10.0.0.0/8,fd00::/8".parse().unwrap();
    let (one, other) = (&lines.0[..], &lines.1[..]);
    let stranger = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
    // Whoever is not a proxy is itself, whatever it sends.
    assert_eq!(proxies.client(stranger, [one].into_iter(), [other].into_iter()), stranger);
    let proxy = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let _ = proxies.client(proxy, [one].into_iter(), [other].into_iter());
    // What stands left of the hop that the proxy wrote does not matter.
    let mut spoofed = one.to_vec();
    spoofed.extend_from_slice(b", 198.51.100.9");
    let named = proxies.client(proxy, [].into_iter(), [&spoofed[..]].into_iter());
    assert_eq!(named, IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)));
});
