use super::*;

#[test]
fn behind_a_tls_proxy_loopback_is_not_local() {
    let [loopback, mapped, stranger] =
        ["127.0.0.1", "::ffff:127.0.0.1", "192.0.2.1"].map(|ip| ip.parse().unwrap());
    for (list, behind, expected) in
        [("", false, true), ("", true, false), ("10.0.0.0/8", true, false), ("127.0.0.1", true, true)]
    {
        let proxies = list.parse::<TrustedProxies>().unwrap().behind_tls_proxy(behind);
        for ip in [loopback, mapped] {
            assert_eq!(proxies.is_exempt(ip), expected, "{list:?} {behind}");
            let is_local = proxies.client(ip, std::iter::empty()).is_local();
            assert_eq!(is_local, !behind, "{list:?} {behind}");
        }
        assert!(!proxies.is_exempt(stranger));
    }
}

#[test]
fn lists_of_proxies() {
    for (text, expected) in [
        ("", Some(0)),
        (" , ", Some(0)),
        ("10.0.0.0/8", Some(1)),
        ("127.0.0.1, ::1 ,fd00::/8", Some(3)),
        ("10.0.0.0/33", None),
        ("proxy.example", None),
        ("10.0.0.1:80", None),
        ("*", None),
    ] {
        let read = text.parse::<TrustedProxies>().ok().map(|proxies| proxies.networks.texts().count());
        assert_eq!(read, expected, "{text:?}");
    }
    let proxies: TrustedProxies = "10.0.0.0/8,::1,::ffff:192.0.2.1".parse().unwrap();
    for (ip, expected) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("11.0.0.1", false),
        ("::1", true),
        ("127.0.0.1", false),
        ("192.0.2.1", true),
    ] {
        assert_eq!(proxies.trust(ip.parse().unwrap()), expected, "{ip}");
    }
}

fn client(proxies: &TrustedProxies, peer: &str, lines: &[&[u8]]) -> ClientAddress {
    proxies.client(peer.parse().unwrap(), lines.iter().copied())
}

#[test]
fn the_header_is_one_of_two() {
    for (text, expected) in [
        ("X-Forwarded-For", Some(ForwardedHeader::XForwardedFor)),
        ("forwarded", Some(ForwardedHeader::Forwarded)),
        ("X-Real-IP", None),
        ("", None),
        ("X-Forwarded-For, Forwarded", None),
    ] {
        assert_eq!(text.parse::<ForwardedHeader>().ok(), expected, "{text:?}");
    }
}

#[test]
fn only_trusted_proxies_name_the_client() {
    use ForwardedHeader::{Forwarded as F, XForwardedFor as X};
    let proxies: TrustedProxies = "10.0.0.0/8, fd00::/8".parse().unwrap();
    let (proxy, client_) = ("10.0.0.1", "203.0.113.7");
    for (header, peer, lines, expected, why) in [
        (X, "203.0.113.9", &["1.1.1.1"][..], "203.0.113.9", "a client does not name itself"),
        (F, "203.0.113.9", &["for=1.1.1.1"], "203.0.113.9", "in neither form"),
        (X, "::ffff:203.0.113.9", &[], "203.0.113.9", "an address in one form"),
        (X, proxy, &[], proxy, "a proxy that says nothing"),
        (X, proxy, &[""], proxy, "an empty list says nothing"),
        (X, proxy, &["203.0.113.7"], client_, "a proxy's word"),
        (X, "::ffff:10.0.0.1", &["203.0.113.7"], client_, "by a socket of both families"),
        (X, proxy, &["6.6.6.6, 203.0.113.7"], client_, "what the client wrote is left of it"),
        (X, proxy, &["6.6.6.6,10.3.3.3, 203.0.113.7"], client_, "a trusted name left of it"),
        (X, proxy, &["203.0.113.7, 10.9.9.9 ,, fd00::2"], client_, "past several proxies"),
        (X, proxy, &["6.6.6.6", "203.0.113.7", "10.9.9.9"], client_, "lines are one list"),
        (X, proxy, &["10.2.2.2, 10.3.3.3"], "10.2.2.2", "a client among the proxies"),
        (X, proxy, &["203.0.113.7:4711"], client_, "with a port"),
        (X, proxy, &["2001:db8::7"], "2001:db8::7", "IPv6"),
        (X, proxy, &["[2001:db8::7]:4711"], "2001:db8::7", "IPv6 with a port"),
        (X, proxy, &["[2001:db8::7]"], "2001:db8::7", "IPv6 in brackets"),
        (X, proxy, &["::ffff:203.0.113.7"], client_, "mapped"),
        (X, proxy, &["unknown"], proxy, "no address"),
        (X, proxy, &["unknown, 203.0.113.7"], client_, "an unreadable hop hides nobody"),
        (X, proxy, &["x, 203.0.113.7"], client_, "nor does a broken one"),
        (X, proxy, &["203.0.113.7, unknown, 10.9.9.9"], client_, "unreadable hops are passed over"),
        (X, proxy, &["\"6.6.6.6, 203.0.113.7"], client_, "an open quote on the left"),
        (X, proxy, &["203.0.113.7 6.6.6.6"], proxy, "no comma"),
        (X, proxy, &["127.0.0.1"], "127.0.0.1", "a proxy may name loopback"),
        (F, proxy, &["for=203.0.113.7"], client_, "the standard's header"),
        (F, proxy, &["For=\"[2001:db8::7]:4711\";proto=https;by=10.0.0.1"], "2001:db8::7", "quoted"),
        (F, proxy, &["for=6.6.6.6, for=203.0.113.7;host=\"a,b;c\""], client_, "commas in quotes"),
        (F, proxy, &["for=6.6.6.6, for=203.0.113.7;host=\"a\\\",b\""], client_, "escaped quotes"),
        (F, proxy, &["for=203.0.113.7, for=10.9.9.9"], client_, "past proxies"),
        (F, proxy, &["for=\"6.6.6.6, for=203.0.113.7"], client_, "an open quote on the left"),
        (F, proxy, &["junk\\, for=203.0.113.7"], client_, "a backslash on the left"),
        (F, proxy, &["for=203.0.113.7, proto=https"], client_, "an element without a client is passed over"),
        (F, proxy, &["for=_hidden"], proxy, "a name that hides"),
        (F, proxy, &["for=unknown"], proxy, "unknown"),
        (F, proxy, &["for=6.6.6.6;for=203.0.113.7"], proxy, "two clients in one element"),
        (F, proxy, &["for=\"203.0.113.7"], proxy, "an open quote"),
        (F, proxy, &["203.0.113.7"], proxy, "no pair"),
    ] {
        let proxies = proxies.clone().reading(header);
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let found = client(&proxies, peer, &lines);
        assert_eq!(found.ip, expected.parse::<IpAddr>().unwrap(), "{why}");
        assert_eq!(found.is_direct, peer.contains("203.0.113.9"), "{why}");
    }
    let found = client(&proxies, proxy, &[b"6.6.6.6\xff, 203.0.113.7"]);
    assert_eq!(found.ip.to_string(), client_, "bytes that are no text");
}

#[test]
fn through_a_trusted_proxy_nobody_is_local() {
    let proxies: TrustedProxies = "127.0.0.1".parse().unwrap();
    for (trusted, lines, expected) in [
        (false, &[][..], true),
        (false, &[&b"203.0.113.7"[..]], true),
        (true, &[], false),
        (true, &[b"127.0.0.1"], false),
        (true, &[b"::1, unknown"], false),
        (true, &[b"203.0.113.7"], false),
    ] {
        let proxies = if trusted { proxies.clone() } else { TrustedProxies::default() };
        let found = client(&proxies, "127.0.0.1", lines);
        assert_eq!((found.is_local(), found.limited().is_none()), (expected, expected), "{lines:?}");
    }
}

proptest::proptest! {
    /// Whatever a client writes, the hop that its proxy appends counts: on the same line or on its own.
    #[test]
    fn headers_written_by_clients_do_not_change_the_address(
        junk: Vec<u8>,
        text in "[a-zA-Z=\",;\\\\\\[\\]:0-9. ]{0,60}",
        is_one_line: bool,
        is_standard: bool,
    ) {
        let (header, hop) = if is_standard {
            (ForwardedHeader::Forwarded, "for=\"[2001:db8::7]:4711\";proto=https")
        } else {
            (ForwardedHeader::XForwardedFor, "[2001:db8::7]:4711")
        };
        let proxies = "10.0.0.0/8".parse::<TrustedProxies>().unwrap().reading(header);
        for left in [&junk[..], text.as_bytes()] {
            let joined = [left, b", ", hop.as_bytes()].concat();
            let lines = if is_one_line { vec![&joined[..]] } else { vec![left, hop.as_bytes()] };
            let found = client(&proxies, "10.0.0.1", &lines);
            proptest::prop_assert_eq!(found.ip.to_string(), "2001:db8::7");
            let alone = client(&proxies, "10.0.0.1", &[left]);
            proptest::prop_assert!(!alone.is_local());
        }
    }
}
