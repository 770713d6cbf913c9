//! What every kind of answer says to browsers.

use crate::support::{Answer, HOST, edge_with, request};

/// Asserts the headers of an answer; over plain HTTP nothing binds a browser to https.
fn check(answer: &Answer, what: &str) {
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}: {answer:?}");
    assert_eq!(answer.header("referrer-policy"), "strict-origin-when-cross-origin", "{what}: {answer:?}");
    assert_eq!(answer.header("strict-transport-security"), "", "{what}: {answer:?}");
}

#[tokio::test]
async fn every_kind_of_answer_protects_browsers() {
    let (control, edge, _folder) = edge_with(|config| config.limits.uri_bytes = 100).await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    let long = format!("/ABC?{}", "a".repeat(200));
    let html = ("accept", "text/html");
    for (method, host, path, accept, status) in [
        ("GET", HOST, "/ABC", html, 307),
        ("HEAD", HOST, "/ABC", html, 307),
        ("GET", HOST, "/ABC", ("accept", "application/json"), 200),
        ("GET", HOST, "/ABC.png", html, 200),
        ("GET", HOST, "/ABC.svg", html, 200),
        ("GET", HOST, "/ABC.pdf", html, 200),
        ("GET", HOST, "/ABC.png?w=1", html, 400),
        ("GET", HOST, "/NONE", html, 404),
        ("GET", HOST, "/NONE", ("accept", "application/json"), 404),
        ("GET", HOST, "/", html, 404),
        ("GET", HOST, "/a/b", html, 404),
        ("GET", HOST, "/robots.txt", html, 200),
        ("GET", HOST, "/favicon.ico", html, 404),
        ("POST", HOST, "/ABC", html, 405),
        ("GET", "evil.example", "/ABC", html, 421),
        ("GET", HOST, &long, html, 400),
        // Nobody listens at control's address.
        ("POST", HOST, "/redirections", html, 503),
    ] {
        let answer = request(edge.plain, method, host, path, &[accept]).await;
        assert_eq!(answer.status, status, "{method} {host} {path}: {answer:?}");
        check(&answer, &format!("{method} {host} {path}"));
    }
    let not_changed = edge.get("/ABC.png", &[]).await.header("etag").to_owned();
    let answer = edge.get("/ABC.png", &[("if-none-match", &not_changed)]).await;
    assert_eq!(answer.status, 304);
    check(&answer, "not changed");
    // Operators see them too, and nothing there is kept.
    for path in ["/live", "/ready", "/metrics", "/none"] {
        let answer = request(edge.admin, "GET", HOST, path, &[]).await;
        check(&answer, path);
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    }
    edge.stop().await;
}
