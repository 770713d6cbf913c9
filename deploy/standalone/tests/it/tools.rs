//! `waymark qr` and `waymark status` against a running service.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{DOMAIN, Waymark, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_fetched_as_the_edge_serves_them() {
    let service = Waymark::start().await;
    let thng = service.thng().await;
    for id in ["Q1", "Q2"] {
        let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": id});
        assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    }
    let edge = format!("http://{}", service.running.addresses.edge);
    let list = service.folder.path().join("ids.txt");
    fs::write(&list, "Q2\n\nnone\n").unwrap();
    let list = list.to_str().unwrap();
    let from_edge = ["--edge", &edge, "--domain", DOMAIN, "--out", "codes"];
    for (format, query, magic) in [
        ("png", &["--w", "300", "--ecl", "H"][..], &b"\x89PNG"[..]),
        ("svg", &["--tpl", "default-shortid"], b"<"),
        ("pdf", &["--x", "0.5"], b"%PDF"),
        ("eps", &[], b"%!PS"),
    ] {
        let args = [&["qr", "Q1", "--ids-file", list, "--format", format], query, &from_edge].concat();
        let (code, out, error) = service.run_tool(&args).await;
        assert_eq!(code, 1, "one id is unknown: {out}{error}");
        assert!(out.starts_with("2 files") && error.starts_with("qr: none: 404"), "{out}{error}");
        let pairs: Vec<String> =
            query.chunks(2).map(|pair| format!("{}={}", pair[0].trim_start_matches("--"), pair[1])).collect();
        let served = service.http.get(format!("{edge}/Q1.{format}?{}", pairs.join("&")));
        let served = served.header("host", DOMAIN).send().await.unwrap().bytes().await.unwrap();
        let file = fs::read(service.folder.path().join(format!("codes/Q1.{format}"))).unwrap();
        assert!(file.starts_with(magic) && file == served, "{format}");
    }
    let mut args = vec!["qr", "../Q1", "Q1", "--w", "94"];
    args.extend(from_edge);
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 1 && out.starts_with("0 files"), "{out}");
    assert!(error.contains("qr: ../Q1: a short id has") && error.contains("qr: Q1: 400"), "{error}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_found_by_the_short_url_of_the_record() {
    let folder = tempfile::tempdir().unwrap();
    // The edge's own address is the short domain: its short URLs can be fetched as they are.
    let config = standalone::Config {
        short_domains: Vec::new(),
        ..crate::harness::config(&folder.path().join("data"))
    };
    let service = Waymark::start_with(folder, config).await;
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "Q1"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    let (code, out, error) = service.run_tool(&["qr", "Q1"]).await;
    assert_eq!(code, 0, "{out}{error}");
    assert!(fs::read(service.folder.path().join("Q1.png")).unwrap().starts_with(b"\x89PNG"));
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_revision_edges_and_scans() {
    let service = Waymark::start().await;
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "S1"});
    assert_eq!(service.call("POST", "/redirections?wait=edges", Some(body)).await.0, 201);
    assert_eq!(service.scan(DOMAIN, "S1").await.0, 307);
    let status = eventually("the scan is taken in", async || {
        let (code, out, error) = service.run_tool(&["status", "--json", "--interval", "0.05"]).await;
        assert_eq!(code, 0, "{error}");
        let status: Value = serde_json::from_str(&out).unwrap();
        (status["scans"]["recorded"] == 1).then_some(status)
    })
    .await;
    let revision = status["revision"].as_u64().unwrap();
    assert_eq!(status["edges"][0]["applied"], revision, "{status}");
    assert_eq!(status["edges"][0]["lag"], 0, "{status}");
    assert!(status["rates"]["scansPerSecond"].is_number(), "{status}");
    let (code, out, _) = service.run_tool(&["status", "--interval", "0"]).await;
    assert!(code == 0 && out.contains(&format!("revision  {revision} ")), "{out}");
    assert!(out.contains("1 recorded") && out.contains("lag 0"), "{out}");
    service.stop().await;
}
