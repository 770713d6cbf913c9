//! `waymark qr` and `waymark status` against a running service.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{DOMAIN, Waymark, eventually, key, texts, waymark};

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_fetched_as_the_edge_serves_them() {
    let (service, thng) = Waymark::with_thng().await;
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
    let (service, thng) = Waymark::with_thng().await;
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

#[tokio::test(flavor = "multi_thread")]
async fn codes_have_sizes_with_units_and_a_second_run_fetches_what_is_missing() {
    let (service, thng) = Waymark::with_thng().await;
    for id in ["Q1", "Q2", "Q3"] {
        let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": id});
        assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    }
    let edge = format!("http://{}", service.running.addresses.edge);
    let run = async |args: &[&str]| {
        let fixed = ["qr", "--edge", &edge, "--domain", DOMAIN, "--out", "codes", "--format", "pdf"];
        service.run_tool(&[&fixed[..], args].concat()).await
    };
    let (code, out, error) = run(&["Q1", "Q2", "none", "--size", "20mm"]).await;
    assert!(code == 1 && out.starts_with("2 files in codes, 1 missing; X-dimension 0."), "{out}{error}");
    let list = fs::read_to_string(service.folder.path().join("codes/waymark-qr.csv")).unwrap();
    let header = "shortId,file,bytes,version,modules,ecl,xDimensionMm,development,request";
    assert!(list.starts_with(header) && list.contains("\nQ1,Q1.pdf,"), "{list}");

    // As a stop in the middle leaves it: one file is gone, the list ends in the middle of a line.
    fs::remove_file(service.folder.path().join("codes/Q2.pdf")).unwrap();
    fs::write(service.folder.path().join("codes/waymark-qr.csv"), format!("{list}Q3,Q3.p")).unwrap();
    let before = fs::metadata(service.folder.path().join("codes/Q1.pdf")).unwrap().modified().unwrap();
    let (code, out, error) = run(&["Q1", "Q2", "Q3", "--size", "2cm"]).await;
    assert!(code == 0 && out.starts_with("3 files in codes (1 from before), 0 missing"), "{out}{error}");
    let after = fs::metadata(service.folder.path().join("codes/Q1.pdf")).unwrap().modified().unwrap();
    assert_eq!(before, after, "it was not fetched again");
    let (_, out, _) = run(&["Q1", "Q2", "Q3", "--size", "20"]).await;
    assert!(out.contains("(3 from before)"), "{out}");
    for args in [&["Q1", "--size", "30mm"][..], &["Q1", "--size", "30mm", "--again"]] {
        let (_, out, _) = run(args).await;
        assert!(out.starts_with("1 files in codes, 0 missing"), "another size is fetched: {out}");
    }
    let (code, _, error) = run(&["Q1", "--size", "20px"]).await;
    assert!(code == 64 && error.contains("20mm"), "{error}");
    service.stop().await;
}

/// Nobody listens, and one that takes connections and never answers.
#[test]
fn a_dead_service_is_told_at_once_and_given_up_soon() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let check = |address: SocketAddr, at_once: bool, says: &str| {
        let begun = Instant::now();
        let mut command = waymark();
        command.arg("status").env("WAYMARK_API_URL", format!("http://{address}"));
        command.env("WAYMARK_OPERATOR_KEY", key()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains(says), "{first}");
        if at_once {
            assert!(first.contains("retrying: ") && begun.elapsed() < Duration::from_secs(5), "{first}");
        }
        let last = lines.last().map_or(first, Result::unwrap);
        assert!(last.contains(says), "{last}");
        assert_eq!(child.wait().unwrap().code(), Some(2));
        assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check(closed, true, "connection refused"));
        check(silent.local_addr().unwrap(), false, "no answer within 10 s");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_enough_is_no_error() {
    let (service, thng) = Waymark::with_thng().await;
    let mut text = "platformId,defaultRedirectUrl\n".to_owned();
    for at in 0..3_000 {
        text.push_str(&format!("{thng},https://example.com/{at}\n"));
    }
    let file = service.folder.path().join("links.csv");
    fs::write(&file, text).unwrap();
    assert_eq!(service.run_tool(&["import", file.to_str().unwrap()]).await.0, 0);
    for format in ["csv", "ndjson"] {
        let mut command = service.tool();
        command.args(["export", "--format", format]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            // More than a pipe holds is to come.
            child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
            child.wait_with_output().unwrap()
        });
        let (code, _, error) = texts(&output.await.unwrap());
        assert_eq!((code, error.as_str()), (0, ""), "{format}");
    }
    service.stop().await;
}

/// Every command that prints, into a pipe that nobody reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_is_no_error_of_any_command() {
    let service = Waymark::start().await;
    for args in [
        &["status", "--interval", "0"][..],
        &["status", "--json"],
        &["keys", "list"],
        &["jobs", "list"],
        &["man"],
        &["completion", "bash"],
        &["help"],
        &["import", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = service.tool();
        command.args(args).stdout(writer).stderr(Stdio::piped());
        command.env("WAYMARK_DATA_DIR", service.folder.path().join("data"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (code, _, error) = texts(&output);
        assert_eq!((code, error.as_str()), (0, ""), "{args:?}");
    }
    service.stop().await;
}

#[test]
fn completion_and_manual_pages_come_from_the_command_line() {
    let run = |args: &[&str]| texts(&waymark().args(args).output().unwrap());
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef waymark"), ("fish", "complete -c waymark")]
    {
        let (code, out, error) = run(&["completion", shell]);
        assert!(code == 0 && out.contains(part) && out.contains("import"), "{shell}: {error}");
    }
    let (code, out, _) = run(&["man"]);
    assert!(code == 0 && out.contains(".TH waymark 1"), "{out}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    assert_eq!(run(&["man", "--out", path.to_str().unwrap()]).0, 0);
    for page in ["waymark.1", "waymark-import.1", "waymark-jobs-cancel.1"] {
        assert!(fs::read_to_string(path.join(page)).unwrap().contains(".SH OPTIONS"), "{page}");
    }
    assert_eq!(run(&["completion", "tcsh"]).0, 64);
}
