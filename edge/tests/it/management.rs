//! Management paths reach control as they are; without control they are 503.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use shared::{
    domain_paths::DomainPaths,
    pages::Pages,
    short_url::{Scheme, ShortDomain},
    wire::stream::Change,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::{DEADLINE, HOST, account, build, edge, edge_with, eventually, exchange, request};

/// More than the sockets on the way hold.
const LARGE: usize = 32 << 20;

/// What the API was asked.
#[derive(Debug, Clone)]
struct Asked {
    line: String,
    headers: HeaderMap,
    body: Bytes,
}

/// An API that writes down what it is asked and answers 201; of `/redirections/SILENT` nothing.
async fn api() -> (SocketAddr, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let log = asked.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let log = log.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let log = log.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let line = format!("{} {}", parts.method, parts.uri);
                    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                    log.lock().unwrap().push(Asked { line, headers: parts.headers, body });
                    let response = Response::builder().status(201).header("location", "/redirections/NEW");
                    if parts.uri.path() == "/redirections/SILENT" {
                        std::future::pending::<()>().await;
                    }
                    if parts.uri.path() == "/redirections/LARGE" {
                        return Ok(response.body(Full::from(vec![b'x'; LARGE])).unwrap());
                    }
                    Ok::<_, Infallible>(response.body(Full::<Bytes>::from("{\"shortId\":\"NEW\"}")).unwrap())
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (at, asked)
}

#[tokio::test]
async fn a_record_with_a_key_is_asked_for_by_its_short_id_alone() {
    let (at, asked) = api().await;
    let (control, edge, _folder) = edge_with(|config| config.api_urls = vec![format!("http://{at}")]).await;
    control.acked(control.put_paths()).await;
    for (path, line) in [
        ("/shop/go/ABC", "GET /redirections/ABC"),
        ("/sale/2026?access_token=K", "GET /redirections/sale%2F2026?access_token=K"),
    ] {
        let headers = [("host", "tn.gg"), ("authorization", "KEY"), ("accept", "application/json")];
        assert_eq!(exchange(edge.plain, build("GET", path, &headers, "")).await.status, 201, "{path}");
        assert_eq!(asked.lock().unwrap().pop().unwrap().line, line);
    }
    edge.stop().await;
}

#[tokio::test]
async fn management_paths_are_proxied() {
    let (at, asked) = api().await;
    let (control, edge, _folder) = edge_with(|config| {
        config.api_urls = vec![format!("http://{at}")];
        config.control_token = Some("the token".into());
    })
    .await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    let headers = [
        ("host", "TN.gg"),
        ("authorization", "KEY"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-waymark-edge", "forged"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ];
    let body = r#"{"defaultRedirectUrl":"https://example.com/"}"#;
    let answer = exchange(edge.plain, build("POST", "/redirections?access_token=K", &headers, body)).await;
    assert_eq!((answer.status, answer.header("location")), (201, "/redirections/NEW"));
    assert_eq!(answer.json()["shortId"], "NEW");
    assert_eq!(answer.header("x-request-id").len(), 16);
    let seen = asked.lock().unwrap().pop().unwrap();
    assert_eq!(seen.line, "POST /redirections?access_token=K");
    assert_eq!(seen.body, body);
    for (name, value) in [
        ("host", "TN.gg"),
        ("authorization", "KEY"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-waymark-edge", "the token"),
        ("x-request-id", answer.header("x-request-id")),
    ] {
        assert_eq!(seen.headers.get_all(name).iter().collect::<Vec<_>>(), [value], "{name}");
    }
    assert!(!seen.headers.contains_key("x-hop"));

    // JSON at the short URL with a key is control's record.
    let headers = [("accept", "application/json"), ("authorization", "KEY")];
    edge.get("/abc?withScopes=true", &headers).await;
    assert_eq!(asked.lock().unwrap().pop().unwrap().line, "GET /redirections/abc?withScopes=true");
    for path in ["/v2/redirections?platformId=U", "/redirections/ABC.qr", "/thngs/U/redirector"] {
        edge.get(path, &[]).await;
        assert_eq!(asked.lock().unwrap().pop().unwrap().line, format!("GET {path}"));
    }
    assert_eq!(request(edge.plain, "GET", "other.gg", "/redirections", &[]).await.status, 421);
    edge.stop().await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let (at, _asked) = api().await;
    let (_control, edge, _folder) = edge_with(|config| {
        config.api_urls = vec![format!("http://{at}")];
        config.limits.proxy_body_bytes = 1_000;
    })
    .await;
    let post = |body: &str| build("POST", "/redirections", &[("host", "tn.gg")], body);
    assert_eq!(exchange(edge.plain, post(&"x".repeat(1_000))).await.status, 201);
    exchange(edge.plain, post(&"x".repeat(1_001))).await.problem(41301);
    // Without a length the limit shows only while the body comes.
    let chunk = "x".repeat(600);
    let chunked = format!(
        "POST /redirections HTTP/1.1\r\nHost: tn.gg\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n{chunk}\r\n258\r\n{chunk}\r\n0\r\n\r\n"
    );
    let answer = crate::support::raw(edge.plain, chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    edge.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_too_much_can_read_the_reason() {
    let (at, _asked) = api().await;
    let (_control, edge, _folder) = edge_with(|config| {
        config.api_urls = vec![format!("http://{at}")];
        config.limits.proxy_body_bytes = 1 << 20;
    })
    .await;
    // More than the sockets' buffers hold: this client writes all of it before it reads anything.
    let body = "x".repeat(8 << 20);
    let head = "POST /redirections HTTP/1.1\r\nHost: tn.gg\r\nConnection: close\r\nContent-Length";
    let sent = format!("{head}: {}\r\n\r\n{body}", body.len());
    let answer = crate::support::raw(edge.plain, sent.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("41301"), "{answer}");
    edge.stop().await;
}

/// Pages ask for reports: then a form at a short URL is one, and control gets it as JSON. What is no form does not come so far.
#[tokio::test]
async fn a_form_of_a_finder_comes_to_control() {
    let (at, asked) = api().await;
    let (control, edge, _folder) = edge_with(|config| config.api_urls = vec![format!("http://{at}")]).await;
    let post = async |accept: &str, body: &str| {
        exchange(edge.plain, build("POST", "/a/abc?x=1", &[("host", HOST), ("accept", accept)], body)).await
    };
    assert_eq!(post("*/*", "").await.status, 405, "nobody asks for reports");
    let pages = Some(Arc::new(Pages { reports: true, ..Pages::default() }));
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let paths = DomainPaths { multi_segment: true, ..DomainPaths::default() };
    let domain = ShortDomain { account: Some(account()), pages, paths, ..domain };
    control.acked(control.commit([Change::Domain(domain)])).await;
    let of_segments = build("POST", "/sale/2026", &[("host", HOST)], "");
    assert_eq!(exchange(edge.plain, of_segments).await.status, 201);
    assert_eq!(asked.lock().unwrap().pop().unwrap().line, "POST /redirections/sale%2F2026/reports");
    for (body, expected) in [("", json!({})), ("text=In+a%20shop&mail=", json!({"text": "In a shop"}))] {
        // A program gets what control says.
        let answer = post("*/*", body).await;
        assert_eq!((answer.status, &answer.json()["shortId"]), (201, &json!("NEW")));
        let seen = asked.lock().unwrap().pop().unwrap();
        assert_eq!(seen.line, "POST /redirections/a%2Fabc/reports");
        assert_eq!(seen.headers["host"], HOST);
        assert_eq!(seen.headers["x-forwarded-for"], "127.0.0.1");
        assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), expected);
    }
    // One with a photo is passed on as it is, unless it is too large.
    let kind = "multipart/form-data; boundary=x";
    let form = "--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\na\r\n--x--\r\n";
    let sent = build("POST", "/a/abc", &[("host", HOST), ("content-type", kind)], form);
    assert_eq!(exchange(edge.plain, sent).await.status, 201);
    let seen = asked.lock().unwrap().pop().unwrap();
    assert_eq!((seen.line.as_str(), &seen.body[..]), ("POST /redirections/a%2Fabc/reports", form.as_bytes()));
    assert_eq!(seen.headers["content-type"], kind);
    let head = format!("POST /a/abc HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Type: {kind}");
    let sent = format!("{head}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n", (5 << 20) + 1);
    let answer = crate::support::raw(edge.plain, sent.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    // People get a page, also where control says something else than the edge knows.
    let answer = post("text/html", "").await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, "no-store"));
    assert!(String::from_utf8_lossy(&answer.body).contains("Your report was not received"));
    asked.lock().unwrap().clear();
    for (body, status) in [("name=x", 400), (&*format!("text={}", "x".repeat(33 << 10)), 413)] {
        assert_eq!(post("text/html", body).await.status, status);
    }
    assert!(asked.lock().unwrap().is_empty());
    edge.stop().await;
}

#[tokio::test]
async fn without_control_management_is_503() {
    let (_control, edge, _folder) = edge().await;
    let answer = edge.get("/redirections", &[("authorization", "KEY")]).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));
    answer.problem(50303);
    edge.stop().await;
}

/// A write is not sent again, as it may have been done; who left it unanswered is asked last from then on.
#[tokio::test]
async fn a_control_that_does_not_answer_a_write_is_tried_last() {
    let ((one, of_one), (two, of_two)) = (api().await, api().await);
    let (_control, edge, _folder) = edge_with(|config| {
        config.api_urls = vec![format!("http://{one}"), format!("http://{two}")];
        config.limits.proxy_timeout = Duration::from_secs(1);
    })
    .await;
    let write = async |path: &str| exchange(edge.plain, build("POST", path, &[("host", HOST)], "{}")).await;
    let counts = || [&of_one, &of_two].map(|asked| asked.lock().unwrap().len());
    // Either may be the first.
    write("/redirections/SILENT").await.problem(50302);
    let [first, second] = counts();
    assert_eq!(first + second, 1, "it was sent once");
    for _ in 0..4 {
        assert_eq!(write("/redirections").await.status, 201);
    }
    assert_eq!(counts(), [first.max(second * 4), second.max(first * 4)], "the other one is asked");
    edge.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let (at, _asked) = api().await;
    let (_control, edge, _folder) = edge_with(|config| {
        config.api_urls = vec![format!("http://{at}")];
        config.limits.idle_timeout = Duration::from_millis(200);
    })
    .await;
    assert_eq!(edge.get("/redirections/LARGE", &[]).await.body.len(), LARGE);
    let mut stream = TcpStream::connect(edge.plain).await.unwrap();
    stream.write_all(b"GET /redirections/LARGE HTTP/1.1\r\nHost: tn.gg\r\n\r\n").await.unwrap();
    let open =
        |count: u32| edge.handle.metrics_text().contains(&format!("waymark_edge_connections {count}\n"));
    eventually("the connection is open", || open(1)).await;
    eventually("the connection is cut", || open(0)).await;
    drop(stream);
    edge.stop().await;
}

#[tokio::test]
async fn streams_reset_at_once_cause_no_request_to_control() {
    let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", api.local_addr().unwrap());
    let (_control, edge, _folder) = edge_with(|config| config.api_urls = vec![url]).await;
    let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // POST by static indices and literals; each stream but the last is reset behind it.
    let ask = b"\x83\x86\x04\x0d/redirections\x01\x05tn.gg";
    for stream in (1..=31).step_by(2) {
        frames.extend_from_slice(&[0, 0, u8::try_from(ask.len()).unwrap(), 1, 5, 0, 0, 0, stream]);
        frames.extend_from_slice(ask);
        if stream < 31 {
            frames.extend_from_slice(&[0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 8]);
        }
    }
    let mut client = TcpStream::connect(edge.plain).await.unwrap();
    client.write_all(&frames).await.unwrap();
    let (mut way, _) = tokio::time::timeout(DEADLINE, api.accept()).await.unwrap().unwrap();
    let mut head = [0; 20];
    way.read_exact(&mut head).await.unwrap();
    assert_eq!(head, *b"POST /redirections H");
    let another = tokio::time::timeout(Duration::from_millis(200), api.accept()).await;
    assert!(another.is_err(), "a request whose stream was reset was sent on");
    drop((way, client));
    edge.stop().await;
}
