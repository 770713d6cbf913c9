//! The `edge` process: settings, readiness, the stop under load, a start with nobody around.

use std::{
    collections::HashMap,
    fs::Permissions,
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
};

use crate::support::{Control, DEADLINE, Files, HOST, Internal, Redis, eventually, request};

/// A running process; killed when dropped.
struct Process {
    child: Child,
    plain: SocketAddr,
    admin: SocketAddr,
}

impl Process {
    /// Starts an edge and waits until it serves.
    fn start(folder: &Path, files: &Files, redis: &str, control: &str) -> Self {
        let mut child = command()
            .env("WAYMARK_EDGE_ID", "edge-1")
            .env("WAYMARK_DATA_DIR", folder)
            .env("WAYMARK_CONTROL_URLS", control)
            .env("WAYMARK_API_URLS", "http://127.0.0.1:9")
            .env("WAYMARK_CONTROL_CA", &files.ca)
            .env("WAYMARK_EDGE_KEY_FILE", &files.key)
            .env("REDIS_URL", redis)
            .env("WAYMARK_EDGE_LISTEN", "127.0.0.1:0")
            .env("WAYMARK_ADMIN_LISTEN", "127.0.0.1:0")
            // A TLS listener without any certificate so far.
            .env("WAYMARK_EDGE_ACME", "on")
            .env("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0")
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (lines, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = lines.send(line);
            }
        });
        let mut heard = HashMap::new();
        loop {
            let line = said.recv_timeout(DEADLINE).expect("the edge comes up");
            if line.starts_with("Ready") {
                break;
            }
            let (label, url) = line.rsplit_once(' ').unwrap();
            heard.insert(label.to_owned(), url.rsplit('/').next().unwrap().parse().unwrap());
        }
        assert!(heard.contains_key("Edge, TLS"), "{heard:?}");
        Self { child, plain: heard["Edge"], admin: heard["Admin"] }
    }

    fn terminate(&self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edge"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAYMARK_")) {
        command.env_remove(name);
    }
    command.env_remove("REDIS_URL").stderr(Stdio::piped());
    command
}

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn unusable_settings_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "KEY").unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let open = folder.path().join("open");
    std::fs::write(&open, "KEY").unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let fine = [
        ("WAYMARK_EDGE_ID", "edge-1"),
        ("WAYMARK_DATA_DIR", folder.path().to_str().unwrap()),
        ("WAYMARK_CONTROL_URLS", "http://127.0.0.1:9"),
        ("WAYMARK_API_URLS", "http://127.0.0.1:9"),
        ("WAYMARK_EDGE_KEY_FILE", key.to_str().unwrap()),
        ("REDIS_URL", "redis://127.0.0.1:9"),
        ("WAYMARK_EDGE_LISTEN", "127.0.0.1:0"),
        ("WAYMARK_ADMIN_LISTEN", "127.0.0.1:0"),
    ];
    for (name, value, said) in [
        ("WAYMARK_EDGE_ID", "", "it must be set"),
        ("WAYMARK_EDGE_ID", "a b", "no name"),
        ("WAYMARK_CONTROL_URLS", "http://control.example", "in the clear"),
        ("WAYMARK_API_URLS", "https://control.example/path", "has a path"),
        ("WAYMARK_EDGE_KEY_FILE", "/nowhere/key", "/nowhere/key"),
        ("WAYMARK_EDGE_KEY_FILE", open.to_str().unwrap(), "chmod 600"),
        ("REDIS_URL", "http://127.0.0.1", "redis://"),
        ("WAYMARK_REDIS_SHARDS", "0", "from 1 to 256"),
        ("WAYMARK_EDGE_LISTEN", "0.0.0.0:0", "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_ADMIN_LISTEN", "somewhere", "is not an address"),
        ("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0", "WAYMARK_EDGE_ACME=on"),
        ("WAYMARK_EDGE_ACME", "maybe", "1 (true) nor 0 (false)"),
        ("WAYMARK_TLS_DIR", "/nowhere", "/nowhere"),
        ("WAYMARK_CONTROL_CA", "/nowhere/ca", "is not a file"),
        ("WAYMARK_GEOIP_DB", "/nowhere/db", ".mmdb"),
        ("WAYMARK_TRUSTED_PROXIES", "everybody", "networks"),
        ("WAYMARK_FORWARDED_HEADER", "X-Forwarded-For,Forwarded", "neither X-Forwarded-For nor Forwarded"),
        ("WAYMARK_PUBLIC_URL", "https://api.example/base", "https://api.example"),
        ("WAYMARK_CACHE_MIB", "many", "whole number"),
        ("WAYMARK_LOG_FORMAT", "xml", "text nor json"),
        ("RUST_LOG", "edge=loud", "level"),
    ] {
        let output = command().envs(fine).env(name, value).output().unwrap();
        let (code, text) = ended(&output);
        assert_eq!(code, Some(64), "{name}={value}: {text}");
        assert!(text.contains(name) && text.contains(said), "{name}={value}: {text}");
        assert!(output.stdout.is_empty(), "{name}={value}: a port was bound");
    }
    let file = folder.path().join("edge.toml");
    std::fs::write(&file, "edge_listn = \"127.0.0.1:0\"").unwrap();
    let (code, text) = ended(&command().envs(fine).env("WAYMARK_CONFIG", &file).output().unwrap());
    assert!(code == Some(64) && text.contains("edge_listn"), "{text}");
    let (code, _) = ended(&command().arg("--no-such-flag").output().unwrap());
    assert_eq!(code, Some(64));
}

#[test]
fn help_lists_each_setting_with_its_default() {
    let help = String::from_utf8(command().arg("--help").output().unwrap().stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let settings = help.matches("[env: ").count();
    assert!(settings > 25, "{help}");
    let told = help.matches("[default: ").count() + help.matches("(required)").count();
    assert_eq!(settings, told, "{help}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_under_load_answers_accepted_requests() {
    let (control, redis) = (Control::new(), Redis::start().await);
    let (internal, files) = Internal::start(&control).await;
    control.put("ABC", "https://example.com/abc");
    redis.publish(&control, 1, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let control_url = format!("https://{}", internal.address);
    let mut edge = Process::start(folder.path(), &files, &redis.url(), &control_url);
    let (plain, stopping) = (edge.plain, Arc::new(AtomicBool::new(false)));
    let answered = Arc::new(AtomicU64::new(0));
    // A connection for each request: one that was accepted gets its answer, or is refused at once.
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (answered, stopping) = (answered.clone(), stopping.clone());
            tokio::spawn(async move {
                use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
                loop {
                    let Ok(mut tcp) = tokio::net::TcpStream::connect(plain).await else {
                        assert!(stopping.load(SeqCst), "refused before the stop");
                        return 0;
                    };
                    let ask = format!("GET /ABC HTTP/1.1\r\nhost: {HOST}\r\n\r\nGET /ABC HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n");
                    let mut got = Vec::new();
                    let sent = tcp.write_all(ask.as_bytes()).await;
                    let read = tcp.read_to_end(&mut got).await;
                    if !String::from_utf8_lossy(&got).starts_with("HTTP/1.1 307") {
                        assert!(stopping.load(SeqCst), "{sent:?} {read:?} {got:?}");
                        return 1;
                    }
                    answered.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    eventually("load runs", || answered.load(SeqCst) > 200).await;
    stopping.store(true, SeqCst);
    edge.terminate();
    let (mut lost, clients_in_all) = (0, clients.len());
    for client in clients {
        lost += client.await.unwrap();
    }
    let answered = answered.load(SeqCst);
    let status = tokio::task::spawn_blocking(move || edge.child.wait().unwrap()).await.unwrap();
    assert!(status.success(), "{status}");
    // A connection that the kernel took and the edge never saw is reset when the socket closes. Without a drain
    // every client would end so.
    println!("answered {answered}, lost {lost}");
    assert!(lost < clients_in_all, "{lost} beside {answered}");
    // Every redirect is a scan, the last ones too.
    assert!(control.scans().len() as u64 >= answered, "{} of {answered}", control.scans().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn static_stability_with_three_edges() {
    let (control, redis) = (Control::new(), Redis::start().await);
    let (internal, files) = Internal::start(&control).await;
    for n in 0..200 {
        control.put(&format!("K{n}"), &format!("https://example.com/{n}"));
    }
    redis.publish(&control, control.head(), 1).await;
    let url = format!("https://{}", internal.address);
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut edges: Vec<_> =
        folders.iter().map(|folder| Process::start(folder.path(), &files, &redis.url(), &url)).collect();
    for n in 0..200 {
        for edge in &edges {
            assert_eq!(request(edge.plain, "GET", HOST, &format!("/K{n}"), &[]).await.status, 307);
        }
    }
    // One is stopped in good order, to start from its disk later.
    let mut last = edges.pop().unwrap();
    last.terminate();
    assert!(tokio::task::spawn_blocking(move || last.child.wait().unwrap()).await.unwrap().success());
    // Redis is killed, control answers nobody any more.
    drop(redis);
    control.faults(|faults| faults.is_down = true);
    internal.allow(&[]);
    edges.push(Process::start(folders[2].path(), &files, "redis://127.0.0.1:9", "https://127.0.0.1:9"));
    let mut failed = 0;
    for n in 0..600 {
        for edge in &edges {
            let answer = request(edge.plain, "GET", HOST, &format!("/K{}", n * 7 % 200), &[]).await;
            failed += u32::from(answer.status != 307);
        }
    }
    println!("redirects 1800, failed {failed}");
    assert_eq!(failed, 0);
    for (edge, boot) in edges.iter().zip(["null", "null", "\"disk\""]) {
        let ready = request(edge.admin, "GET", "admin", "/ready", &[]).await;
        assert_eq!(ready.status, 200);
        let body = ready.json();
        assert_eq!((body["state"].as_str(), body["boot"].to_string()), (Some("STALE"), boot.to_owned()));
    }
}
