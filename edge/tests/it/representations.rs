//! What a short URL answers with.

use crate::support::{build, edge, h2_prior_knowledge, redirect, request};

#[tokio::test]
async fn a_redirect_has_minimal_headers() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/{shortId}?p={productId}&t={thngId}")).await;
    let answer = edge.get("/aBc", &[("accept", "text/html,*/*;q=0.8")]).await;
    assert_eq!(answer.status, 307);
    assert_eq!(answer.header("location"), "https://example.com/ABC?p=U5Gq8sKVBfgRtKRaagBefgwk&t=");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("vary"), "Accept");
    assert_eq!(answer.header("content-length"), "0");
    assert_eq!(answer.header("x-request-id").len(), 16);
    assert_ne!(answer.header("x-request-id"), edge.get("/abc", &[]).await.header("x-request-id"));
    edge.stop().await;
}

#[tokio::test]
async fn head_has_the_headers_and_no_body() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    for (path, accept, status) in [
        ("/ABC", "*/*", 307),
        ("/ABC", "application/json", 200),
        ("/ABC.png", "*/*", 200),
        ("/NONE", "*/*", 404),
        ("/", "*/*", 404),
    ] {
        let get = request(edge.plain, "GET", "tn.gg", path, &[("accept", accept)]).await;
        let head = request(edge.plain, "HEAD", "tn.gg", path, &[("accept", accept)]).await;
        assert_eq!((head.status, get.status), (status, status), "{path}");
        assert!(head.body.is_empty());
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        for name in ["location", "content-type", "etag", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
    let uri = "http://tn.gg/ABC.png";
    let answers =
        h2_prior_knowledge(edge.plain, vec![build("HEAD", uri, &[], ""), build("GET", uri, &[], "")]).await;
    assert!(answers[0].body.is_empty() && !answers[1].body.is_empty());
    assert_eq!(answers[0].header("content-length"), answers[1].body.len().to_string());
    edge.stop().await;
}

#[tokio::test]
async fn wrong_methods_and_hosts_get_the_common_error_body() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = request(edge.plain, method, "tn.gg", "/ABC", &[]).await;
        assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"), "{method}");
        answer.problem(40501);
    }
    for (host, status) in [("TN.GG", 307), ("tn.gg:443", 307), ("tn.gg:80", 421), ("evil.example", 421)] {
        assert_eq!(request(edge.plain, "GET", host, "/ABC", &[]).await.status, status, "{host}");
    }
    let page = edge.get("/NONE", &[("accept", "text/html,application/xhtml+xml,*/*;q=0.8")]).await;
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    for (path, status) in [("/robots.txt", 200), ("/favicon.ico", 404), ("/", 404), ("/a/b", 404)] {
        assert_eq!(edge.get(path, &[]).await.status, status, "{path}");
    }
    assert_eq!(edge.get("/robots.txt", &[]).await.body, "User-agent: *\nDisallow: /\n");
    edge.stop().await;
}

#[tokio::test]
async fn json_omits_members_that_only_control_knows() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("K7Q2M4XA9R", "https://example.com/{shortId}")).await;
    let answer = edge.get("/k7q2m4xa9r", &[("accept", "application/json, text/plain, */*")]).await;
    assert_eq!((answer.status, answer.header("vary")), (200, "Accept"));
    let expected = serde_json::json!({
        "createdAt": 1_700_000_000_000_i64,
        "updatedAt": 1_700_000_000_001_i64,
        "shortDomain": "tn.gg",
        "shortId": "K7Q2M4XA9R",
        "type": "product",
        "platformId": "U5Gq8sKVBfgRtKRaagBefgwk",
        "evrythngId": "U5Gq8sKVBfgRtKRaagBefgwk",
        "defaultRedirectUrl": "https://example.com/{shortId}",
        "forwardQuery": false,
        "statusCode": 307,
        "status": "active",
        "shortUrl": "https://tn.gg/K7Q2M4XA9R",
        "qr": {"payload": "HTTPS://TN.GG/K7Q2M4XA9R", "version": 2, "modules": 25, "ecl": "Q"},
    });
    assert_eq!(answer.json(), expected);
    edge.stop().await;
}

#[tokio::test]
async fn a_link_is_below_the_prefix_of_its_domain_too() {
    let (control, edge, _folder) = edge().await;
    control.put_paths();
    control.put("Sale/2026", "https://example.com/{shortId}");
    control.acked(control.put("ABC", "https://example.com/")).await;
    for path in ["ABC", "shop/go/abc", "SHOP/GO/ABC", "shop/go/ABC?a=1"] {
        edge.assert_leads(path, "https://example.com/").await;
    }
    for path in ["sale/2026", "shop/go/SALE/2026"] {
        edge.assert_leads(path, "https://example.com/Sale%2F2026").await;
    }
    let json = [("accept", "application/json")];
    let found = edge.get("/ABC", &json).await.json();
    assert_eq!(found["shortUrl"], "https://tn.gg/shop/go/ABC");
    assert_eq!(found["qr"]["payload"], "HTTPS://TN.GG/SHOP/GO/ABC");
    let found = edge.get("/shop/go/sale/2026", &json).await.json();
    assert_eq!(found["shortUrl"], "https://tn.gg/shop/go/Sale/2026");
    // The same code, whichever way it is asked for; its text has a slash.
    let [one, other] = ["/sale/2026.png?tpl=default-shortid", "/shop/go/sale/2026.png?tpl=default-shortid"];
    let (one, other) = (edge.get(one, &[]).await, edge.get(other, &[]).await);
    assert_eq!((one.status, one.header("etag")), (200, other.header("etag")));
    for path in ["/shop/go", "/shop/go/", "/shop/go/NONE", "/shop/ABC"] {
        assert_eq!(edge.get(path, &[]).await.status, 404, "{path}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn images_are_selected_by_suffix_and_accept_and_cached() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("K7Q2M4XA9R", "https://example.com/")).await;
    for (path, accept, kind, magic) in [
        ("/K7Q2M4XA9R.png", "*/*", "image/png", b"\x89PNG".as_slice()),
        ("/k7q2m4xa9r.SVG", "text/html", "image/svg+xml", b"<"),
        ("/K7Q2M4XA9R.pdf", "*/*", "application/pdf", b"%PDF"),
        ("/K7Q2M4XA9R.eps", "*/*", "application/postscript", b"%!PS"),
        ("/K7Q2M4XA9R?w=300", "image/avif,image/webp,image/*,*/*;q=0.8", "image/png", b"\x89PNG"),
    ] {
        let answer = edge.get(path, &[("accept", accept)]).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{path}");
        assert!(answer.body.starts_with(magic), "{path}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(answer.header("vary"), "Accept");
        for (name, value) in [("x-qr-version", "2"), ("x-qr-modules", "25"), ("x-qr-ecl", "Q")] {
            assert_eq!(answer.header(name), value, "{path}");
        }
        let etag = answer.header("etag");
        assert!(etag.starts_with('"') && etag.len() > 10, "{etag}");
        let known = edge.get(path, &[("accept", accept), ("if-none-match", etag)]).await;
        assert_eq!((known.status, known.header("etag"), known.body.len()), (304, etag, 0), "{path}");
        let other = edge.get(path, &[("accept", accept), ("if-none-match", "\"x\"")]).await;
        assert_eq!((other.status, &other.body), (200, &answer.body), "the same bytes again");
    }
    let print = edge.get("/K7Q2M4XA9R.svg?x=0.4&dpi=300", &[]).await;
    assert_eq!(print.header("x-qr-x-dimension-mm"), "0.4233");
    edge.stop().await;
}

#[tokio::test]
async fn impossible_images_are_refused() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    for (path, status, code, words) in [
        ("/ABC.png?w=94", 400, 40003, "w"),
        ("/ABC.png?w=801&ecl=Z&tpl=x", 400, 40003, "ecl"),
        ("/ABC.png?h=abc", 400, 40003, "h"),
        ("/ABC.png?version=40&w=100", 422, 42201, "version 40"),
        ("/ABC.png?color=ffff00", 422, 42201, "contrast"),
        ("/ABC.svg?logo=1", 422, 42201, "no logo"),
        ("/ABC.pdf?color=112233", 400, 40003, "stays black"),
        ("/ABC.png?x=0.4&shape=dots", 400, 40003, "stays black"),
        ("/ABC.png?background=white", 400, 40003, "six hexadecimal digits"),
        ("/NONE.png?w=94", 404, 40403, "short id"),
    ] {
        let answer = edge.get(path, &[]).await;
        assert_eq!(answer.status, status, "{path}: {:?}", answer.body);
        let faults = answer.problem(code);
        assert!(faults.iter().any(|fault| fault.contains(words)), "{path}: {faults:?}");
    }
    assert_eq!(edge.get("/ABC.png?w=801&ecl=Z&tpl=x", &[]).await.problem(40003).len(), 3);
    edge.stop().await;
}

#[tokio::test]
async fn a_query_is_forwarded_only_where_asked_and_never_the_key() {
    let (control, edge, _folder) = edge().await;
    let forward = |short_id: &str, target: &str| {
        control.put_record(shared::redirect::Redirect { forward_query: true, ..redirect(short_id, target) })
    };
    control.put("PLAIN", "https://example.com/?own=1");
    forward("ABC", "https://example.com/?own=1#top");
    control.acked(forward("DEF", "https://example.com/x")).await;
    for (path, location) in [
        ("/PLAIN?a=1", "https://example.com/?own=1"),
        ("/ABC?a=1&b=%20", "https://example.com/?own=1&a=1&b=%20#top"),
        ("/ABC", "https://example.com/?own=1#top"),
        ("/DEF?access_token=KEY&a=1", "https://example.com/x?a=1"),
        ("/DEF?access_token=KEY", "https://example.com/x"),
        ("/DEF?Access%5FToken=KEY", "https://example.com/x"),
    ] {
        let answer = edge.get(path, &[]).await;
        assert_eq!((answer.status, answer.header("location")), (307, location), "{path}");
    }
    edge.stop().await;
}
