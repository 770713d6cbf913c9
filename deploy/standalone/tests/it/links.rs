//! `waymark links` against a running service.

use serde_json::json;

use crate::harness::{DOMAIN, Waymark};

#[tokio::test(flavor = "multi_thread")]
async fn links_are_changed_and_given_back() {
    let (service, thng) = Waymark::with_thng().await;
    for id in ["L1", "L2"] {
        let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/summer", "shortId": id,
            "tags": ["summer"]});
        assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    }
    let autumn = ["--filter", "tags=summer", "--set", "target=https://example.com/autumn"];
    let run = async |command: &str, args: &[&str]| {
        let args = [&["links", command][..], args].concat();
        service.run_tool(&args).await
    };
    let (code, out, error) = run("change", &[&autumn[..], &["--dry-run"]].concat()).await;
    let line = format!("{DOMAIN}/L1\thttps://example.com/summer\thttps://example.com/autumn");
    assert!(code == 0 && out.starts_with("2 links\n") && out.contains(&line), "{out}{error}");
    for (args, code, part) in [
        (vec!["--set", "target=https://example.com/"], 1, "is required"),
        (vec!["--q", "x", "--set", "target"], 64, "is not MEMBER=VALUE"),
        (vec!["--q", "x", "--set", "tags=a"], 1, "patch.tags"),
        (vec!["--q", "x", "--set", "targt=https://example.com/"], 1, "targt"),
        (vec!["--q", "x", "--set", "target=a", "--set", "defaultRedirectUrl=b"], 64, "is set twice"),
        (vec!["--q", "x"], 64, "--set"),
        ([&autumn[..], &["--expect", "3"]].concat(), 1, "3 links were expected"),
    ] {
        let (found, out, error) = run("change", &args).await;
        assert!(found == code && error.contains(part), "{args:?}: {found} {out}{error}");
    }
    let more = ["--set", "title=2026", "--set", "validUntil=null", "--expect", "2", "--wait"];
    let (code, out, error) = run("change", &[&autumn[..], &more].concat()).await;
    assert!(code == 0 && out.starts_with("complete: 2 changed, 0 unchanged, 0 left as"), "{out}{error}");
    let id = out.trim().rsplit(' ').next().unwrap();
    let mine = json!({"defaultRedirectUrl": "https://example.com/mine"});
    let (_, link) = service.call("GET", "/redirections/L2", None).await;
    assert_eq!(
        (&link["title"], &link["defaultRedirectUrl"]),
        (&json!("2026"), &json!("https://example.com/autumn"))
    );
    assert_eq!(service.call("PUT", "/redirections/L1", Some(mine)).await.0, 200);
    let (code, _, error) = run("undo", &[id, "--strict"]).await;
    assert!(code == 1 && error.contains("409"), "{error}");
    let (code, out, error) = run("undo", &[id, "--wait"]).await;
    let left = format!("{DOMAIN}/L1\tIt was changed since.\ncomplete: 1 changed, 0 unchanged, 1 left as");
    assert!(code == 1 && out.starts_with(&left), "{code}: {out}{error}");
    let (_, link) = service.call("GET", "/redirections/L2", None).await;
    assert_eq!(link["defaultRedirectUrl"], "https://example.com/summer");
    assert_eq!(run("undo", &["short"]).await.0, 64);
    // Without --wait there is the id alone.
    let (code, out, error) = run("change", &autumn).await;
    assert!(code == 0 && shared::id::is_valid(out.trim()), "{out}{error}");
    service.stop().await;
}
