//! `waymark keys` beside a running service: the next request sees what it did.

use std::process::Command;

use crate::harness::{Waymark, key, texts, waymark};

async fn access(service: &Waymark, key: &str) -> u16 {
    let url = format!("{}/access", service.running.api_url);
    service.http.get(url).header("authorization", key).send().await.unwrap().status().as_u16()
}

async fn output(mut command: Command) -> (i32, String, String) {
    tokio::task::spawn_blocking(move || texts(&command.output().unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_and_revoked_while_the_service_runs() {
    let service = Waymark::start().await;
    let keys = |args: &[&str]| {
        let mut command = waymark();
        command.arg("keys").args(args).env("WAYMARK_DATA_DIR", service.folder.path().join("data"));
        output(command)
    };
    assert_eq!(access(&service, &key()).await, 200, "the seeded key");
    let (code, made, error) = keys(&["create"]).await;
    let made = made.trim();
    assert_eq!((code, made.len()), (0, 80), "{error}");
    assert_eq!(access(&service, made).await, 200, "the new key works at once");
    let (code, _, _) = keys(&["revoke", made]).await;
    assert_eq!((code, access(&service, made).await), (0, 401), "a revoked key is unknown");
    assert_eq!(access(&service, &key()).await, 200, "the other keys stay");
    assert_eq!(keys(&["revoke", made]).await.0, 1, "it was valid no more");
    let (code, listed, error) = keys(&["list"]).await;
    let states: Vec<&str> = listed.lines().map(|line| line.rsplit('\t').next().unwrap()).collect();
    assert!(code == 0 && states.len() == 2, "{listed}{error}");
    assert!(states[0] == "valid" && states[1].starts_with("revoked 20"), "{listed}");
    assert!(!listed.contains(made) && !listed.contains(&key()), "no key is shown");
    let (code, _, error) = keys(&["revoke", "short"]).await;
    assert_eq!((code, error.lines().count()), (64, 1), "{error}");
    assert_eq!(keys(&["revoke", "--all"]).await.0, 0);
    assert_eq!(access(&service, &key()).await, 401, "all keys are revoked");
    service.stop().await;
}

#[test]
fn keys_of_no_database_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = waymark();
    command.args(["keys", "create"]).env("WAYMARK_DATA_DIR", folder.path());
    let (code, _, error) = texts(&command.output().unwrap());
    assert_eq!(code, 64, "{error}");
    assert!(error.contains("WAYMARK_DATA_DIR") && error.contains("waymark up"), "{error}");
    assert!(!folder.path().join("waymark.db").exists(), "nothing was made");
}
