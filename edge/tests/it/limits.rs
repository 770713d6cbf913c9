//! Bad clients, HTTP/2, and the end of an edge.

use std::time::Duration;

use shared::redirect::Redirect;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{DEADLINE, build, edge, edge_with, h2_prior_knowledge, raw, redirect};

#[tokio::test]
async fn a_smuggled_request_gets_no_answer() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    let inner = "GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n\r\n";
    for framing in [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}", 5 + inner.len()),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{inner}", 5 + inner.len()),
        format!("Content-Length: 0\r\nContent-Length: {}\r\n\r\n{inner}", inner.len()),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n{inner}"),
    ] {
        let answers =
            raw(edge.plain, format!("GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n{framing}").as_bytes()).await;
        let count = answers.matches("HTTP/1.1 ").count();
        assert_eq!(count, 1, "{framing}\n{answers}");
        assert!(answers.contains("connection: close") || answers.starts_with("HTTP/1.1 400"), "{answers}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn requests_beyond_the_limits_are_refused() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    let many: String = (0..70).map(|n| format!("X-{n}: y\r\n")).collect();
    for (what, request, status) in [
        (
            "a large header",
            format!("GET /ABC HTTP/1.1\r\nHost: tn.gg\r\nX: {}\r\n\r\n", "y".repeat(17_000)),
            "431",
        ),
        ("many headers", format!("GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n{many}\r\n"), "431"),
        (
            "two hosts",
            "GET /ABC HTTP/1.1\r\nHost: tn.gg\r\nHost: x\r\nConnection: close\r\n\r\n".into(),
            "400",
        ),
        ("no host", "GET /ABC HTTP/1.1\r\nConnection: close\r\n\r\n".into(), "400"),
        ("no host in HTTP/1.0", "GET /ABC HTTP/1.0\r\n\r\n".into(), "421"),
        (
            "a long target",
            format!("GET /ABC?{} HTTP/1.1\r\nHost: tn.gg\r\nConnection: close\r\n\r\n", "a".repeat(2_048)),
            "400",
        ),
        (
            "the longest target",
            format!("GET /ABC?{} HTTP/1.1\r\nHost: tn.gg\r\nConnection: close\r\n\r\n", "a".repeat(2_043)),
            "307",
        ),
        (
            "an absolute target",
            "GET http://TN.gg/ABC HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".into(),
            "307",
        ),
        ("no HTTP", "hello\r\n\r\n".into(), "400"),
    ] {
        let answer = raw(edge.plain, request.as_bytes()).await;
        let line = answer.strip_prefix("HTTP/1.1 ").or(answer.strip_prefix("HTTP/1.0 ")).unwrap_or_default();
        assert!(line.starts_with(&format!("{status} ")), "{what}: {answer}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_silent_client_is_disconnected() {
    let (_control, edge, _folder) = edge_with(|config| {
        config.limits.header_timeout = Duration::from_millis(100);
        config.limits.idle_timeout = Duration::from_millis(200);
    })
    .await;
    for begin in ["", "P", "PR", "GET /ABC HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        raw(edge.plain, begin.as_bytes()).await;
    }
    // A connection that was used is left when it is idle.
    let answer = raw(edge.plain, b"GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    edge.stop().await;
}

#[tokio::test]
async fn http2_works_with_prior_knowledge() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", "https://example.com/");
    let forward = Redirect { forward_query: true, ..redirect("DEF", "https://example.com/") };
    control.acked(control.put_record(forward)).await;
    let ask = |method: &str, uri: &str| build(method, uri, &[], "");
    let requests = vec![
        ask("GET", "http://tn.gg/abc"),
        ask("GET", "http://tn.gg/DEF?a=1"),
        ask("GET", "http://tn.gg/NONE"),
        ask("POST", "http://tn.gg/ABC"),
        ask("GET", "http://other.gg/ABC"),
        ask("GET", "http://tn.gg/ABC.png"),
    ];
    let answers = h2_prior_knowledge(edge.plain, requests).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [307, 307, 404, 405, 421, 200]);
    assert_eq!(answers[1].header("location"), "https://example.com/?a=1");
    edge.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", "https://example.com/a");
    control.acked(control.put("DEF", "https://example.com/d")).await;
    let requests = "GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n\r\nGET /DEF HTTP/1.1\r\nHost: tn.gg\r\nConnection: close\r\n\r\n";
    let answers = raw(edge.plain, requests.as_bytes()).await;
    let (first, second) = answers.split_at(answers.rfind("HTTP/1.1 307").unwrap());
    assert!(
        first.contains("location: https://example.com/a\r\n")
            && second.contains("location: https://example.com/d\r\n")
    );
    edge.stop().await;
}

#[tokio::test]
async fn a_stopping_edge_answers_requests_in_flight() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    control.faults(|faults| faults.slow_reads = Duration::from_millis(300));
    let mut stream = TcpStream::connect(edge.plain).await.unwrap();
    stream.write_all(b"GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n\r\n").await.unwrap();
    crate::support::eventually("the read is under way", || control.reads() == 1).await;
    edge.begin_stop();
    let mut answer = String::new();
    tokio::time::timeout(DEADLINE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 307"), "{answer}");
    edge.stop().await;
    assert_eq!(control.scans().len(), 1, "its scan was shipped before the end");
}

#[tokio::test]
async fn a_silent_client_does_not_delay_shutdown() {
    let (_control, edge, _folder) = edge_with(|config| {
        config.limits.header_timeout = 10 * DEADLINE;
        config.limits.drain_timeout = 10 * DEADLINE;
    })
    .await;
    // One is still sniffed, and one has begun a request that never ends.
    let _silent = TcpStream::connect(edge.plain).await.unwrap();
    let mut begun = TcpStream::connect(edge.plain).await.unwrap();
    begun.write_all(b"GET /ABC HT").await.unwrap();
    let both = || edge.handle.metrics_text().lines().any(|line| line == "waymark_edge_connections 2");
    crate::support::eventually("both are accepted", both).await;
    tokio::time::timeout(DEADLINE, edge.stop()).await.unwrap();
}

#[tokio::test]
async fn a_drain_ends_in_time_with_requests_in_flight() {
    // A preface, settings, and headers of stream 1 by static indices and literals; then not a word.
    let mut h2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    h2.extend_from_slice(b"\0\0\x0f\x01\x05\0\0\0\x01\x82\x86\x04\x04/ABC\x01\x05tn.gg");
    for (what, request) in
        [("HTTP/1.1", b"GET /ABC HTTP/1.1\r\nHost: tn.gg\r\n\r\n".to_vec()), ("HTTP/2", h2)]
    {
        let (control, edge, _folder) =
            edge_with(|config| config.limits.drain_timeout = Duration::from_millis(200)).await;
        control.acked(control.put("ABC", "https://example.com/")).await;
        control.faults(|faults| faults.slow_reads = 10 * DEADLINE);
        let mut stream = TcpStream::connect(edge.plain).await.unwrap();
        stream.write_all(&request).await.unwrap();
        crate::support::eventually(what, || control.reads() == 1).await;
        // It panics when it takes too long.
        edge.stop().await;
    }
}

#[tokio::test]
async fn total_connections_are_bounded() {
    let (_control, edge, _folder) = edge_with(|config| config.limits.connections = Some(2)).await;
    let ask = b"GET /robots.txt HTTP/1.1\r\nHost: tn.gg\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(edge.plain).await.unwrap();
        stream.write_all(ask).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        held.push(stream);
    }
    let mut third = TcpStream::connect(edge.plain).await.unwrap();
    // It may be closed before this is written.
    let _ = third.write_all(ask).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(DEADLINE, third.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty());
    let metric = |line: &str| edge.handle.metrics_text().lines().any(|is| is == line);
    assert!(metric("waymark_edge_connections_refused_total{reason=\"full\"} 1"));
    drop(held.pop());
    crate::support::eventually("one has ended", || metric("waymark_edge_connections 1")).await;
    let answer =
        raw(edge.plain, b"GET /robots.txt HTTP/1.1\r\nHost: tn.gg\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    edge.stop().await;
}
