//! The program as a process: what it prints, its files, and how it ends.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
};

use crate::harness::waymark;

#[test]
fn files_are_private_whatever_the_umask() {
    fn check(folder: &std::path::Path) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(metadata.permissions().mode() & 0o777, expected, "{}", entry.path().display());
            if metadata.is_dir() {
                check(&entry.path());
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let binary = waymark().get_program().to_owned();
    let mut child = Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" up --dev-tls"])
        .arg(binary)
        .env("WAYMARK_DATA_DIR", &data)
        .envs(
            ["API", "EDGE", "ADMIN", "API_TLS", "EDGE_TLS"]
                .map(|name| (format!("WAYMARK_{name}_LISTEN"), "127.0.0.1:0")),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().map_while(Result::ok).any(|line| line.starts_with("Ctrl-C")));
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    check(&data);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn spawn(data: &std::path::Path) -> (Child, Vec<String>) {
    let mut command: Command = waymark();
    command.arg("up").env("WAYMARK_DATA_DIR", data).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["WAYMARK_API_LISTEN", "WAYMARK_EDGE_LISTEN", "WAYMARK_ADMIN_LISTEN"] {
        command.env(name, "127.0.0.1:0");
    }
    let mut child = command.spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        lines.push(line.unwrap());
        if lines.last().unwrap().starts_with("Ctrl-C") {
            break;
        }
    }
    (child, lines)
}

#[test]
fn the_binary_says_where_it_is_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (start, shows_key) in [(1, true), (2, false)] {
        let (mut child, lines) = spawn(&data);
        let label = |name: &str| lines.iter().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
        assert!(label("API").unwrap().starts_with("http://127.0.0.1:"), "{lines:?}");
        assert!(label("Docs").unwrap().ends_with("/docs"), "{lines:?}");
        assert!(label("Short URLs").unwrap().starts_with("http://127.0.0.1:"), "{lines:?}");
        assert_eq!(label("Operator key").map(str::len), shows_key.then_some(80), "start {start}: {lines:?}");
        assert!(lines.iter().any(|line| line.contains("waymark keys create")), "{lines:?}");
        assert!(!lines.concat().contains('\x1b'), "no colours on a pipe");
        let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "start {start} ends well");
    }
}
