//! The client behind trusted proxies, and behind others.

use std::time::Instant;

use edge::EdgeConfig;
use shared::client_address::ForwardedHeader;

use crate::support::{edge_with, eventually};

fn trust(list: &str) -> impl FnOnce(&mut EdgeConfig) {
    let proxies = list.parse().unwrap();
    |config| config.trusted_proxies = proxies
}

#[tokio::test]
async fn scans_carry_the_client_address_from_a_trusted_proxy() {
    for (trusted, read_forwarded, header, value, expected) in [
        ("", false, "x-forwarded-for", "203.0.113.7", "127.0.0.1"),
        ("10.0.0.0/8", true, "forwarded", "for=203.0.113.7", "127.0.0.1"),
        ("127.0.0.1", false, "x-forwarded-for", "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", false, "x-forwarded-for", "unknown, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.0/8, 10.0.0.0/8", false, "x-forwarded-for", "203.0.113.7, 10.1.1.1", "203.0.113.7"),
        ("127.0.0.1", true, "forwarded", "for=\"[2001:db8::7]:4711\";proto=https", "2001:db8::7"),
        // Only the header that the settings name is looked at.
        ("127.0.0.1", false, "forwarded", "for=203.0.113.7", "127.0.0.1"),
        ("127.0.0.1", true, "x-forwarded-for", "203.0.113.7", "127.0.0.1"),
        ("127.0.0.1", false, "x-forwarded-for", "nonsense", "127.0.0.1"),
        ("127.0.0.1", false, "x-other", "203.0.113.7", "127.0.0.1"),
    ] {
        let (control, edge, _folder) = edge_with(|config| {
            trust(trusted)(config);
            if read_forwarded {
                let proxies = std::mem::take(&mut config.trusted_proxies);
                config.trusted_proxies = proxies.reading(ForwardedHeader::Forwarded);
            }
        })
        .await;
        control.acked(control.put("ABC", "https://example.com/")).await;
        assert_eq!(edge.get("/ABC", &[(header, value)]).await.status, 307);
        eventually("the scan arrives", || control.scans().len() == 1).await;
        assert_eq!(control.scans()[0].2.ip.to_string(), expected, "{trusted:?} {header}: {value}");
        edge.stop().await;
    }
}

#[tokio::test]
async fn misses_are_counted_per_client_and_not_per_proxy() {
    // A burst of four, and one more miss for each second that passes.
    let (_control, edge, _folder) = edge_with(|config| {
        trust("127.0.0.1")(config);
        config.limits.misses_per_address = 1;
    })
    .await;
    let (begun, mut counts) = (Instant::now(), [0, 0]);
    for n in 0..40 {
        let client = n % 2;
        let headers = [("x-forwarded-for", ["203.0.113.7", "203.0.113.8"][client])];
        match edge.get(&format!("/NONE{n}"), &headers).await.status {
            404 => counts[client] += 1,
            status => assert_eq!(status, 429),
        }
    }
    let most = 5 + begun.elapsed().as_secs();
    for count in counts {
        assert!((4..=most).contains(&count), "{counts:?}: each client has a limit of its own");
    }
    // Whatever a trusted proxy says, or does not say, nobody behind it is a program of this machine.
    for headers in [&[][..], &[("x-forwarded-for", "127.0.0.1")], &[("x-forwarded-for", "unknown, ::1")]] {
        let mut refused = 0;
        for n in 0..40 {
            refused += u32::from(edge.get(&format!("/OWN{n}"), headers).await.status == 429);
        }
        assert!(refused > 0, "{headers:?}");
    }
    edge.stop().await;
}

/// A proxy on this machine that the settings do not name: nobody knows who is behind it, and all share its limit.
#[tokio::test]
async fn the_limit_holds_behind_an_unconfigured_local_proxy() {
    let (_control, edge, _folder) = edge_with(|config| config.limits.misses_per_address = 1).await;
    let refused = async |headers: &[(&str, &str)], name: &str| {
        let mut refused = 0;
        for n in 0..20 {
            refused += u32::from(edge.get(&format!("/{name}{n}"), headers).await.status == 429);
        }
        refused
    };
    assert_eq!(refused(&[], "DIRECT").await, 0, "a program of this machine");
    for header in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
        assert!(refused(&[(header, "203.0.113.7")], header.trim_matches('-')).await > 0, "{header}");
    }
    edge.stop().await;
}
