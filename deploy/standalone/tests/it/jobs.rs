//! `waymark jobs submit` against a running service.

use std::fs;

use serde_json::json;

use crate::harness::{DOMAIN, Waymark};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_submitted_and_its_failures_are_printed() {
    let (service, thng) = Waymark::with_thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "J1"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    let write = |name: &str, text: &str| fs::write(service.folder.path().join(name), text).unwrap();
    write("good.csv", &format!("thng\r\n{thng}\r\n{thng}\r\n"));
    write("some.csv", &format!("{thng}\nnone\n\"open\n"));
    write("short.csv", "j1\nJ1\nNONE\n");
    write("no.zip", "no archive");
    for (args, code, parts) in [
        (vec!["good.csv", "--type", "scans"], 0, vec!["COMPLETED: 2 actions created, 0 operations failed"]),
        (
            vec!["some.csv", "--type", "scans", "--payload", r#"{"tags":["batch 7"]}"#],
            1,
            vec![
                "none\tAn id has 24",
                "\"open\tThe file, line 3: has a quote that is not closed.",
                "COMPLETED_WITH_FAILURES: 1 actions created, 2 operations failed",
            ],
        ),
        (
            vec![
                "short.csv",
                "--type",
                "checkins",
                "--ids",
                "short",
                "--short-domain",
                DOMAIN,
                "--no-reactions",
            ],
            1,
            vec!["NONE\tThe short id NONE was not found", "2 actions created, 1 operations failed"],
        ),
        (
            vec!["no.zip", "--type", "scans"],
            2,
            vec!["FAILED: 0 actions created", "The archive is no ZIP archive"],
        ),
        (vec!["good.csv", "--type", "_unknown"], 1, vec!["400", "payload.type: there is no type _unknown"]),
        (vec!["good.csv", "--type", "scans", "--id-key", "sn"], 1, vec!["input.key is for the contentType"]),
        (vec!["absent.csv", "--type", "scans"], 64, vec!["absent.csv cannot be read"]),
        (vec!["good.csv", "--type", "scans", "--payload", "[]"], 64, vec!["--payload: it is no JSON object"]),
        (vec!["good.csv"], 64, vec!["--type"]),
    ] {
        let (found, out, error) = service.run_tool(&[vec!["jobs", "submit"], args.clone()].concat()).await;
        assert_eq!(found, code, "{args:?}: {out}{error}");
        for part in parts {
            assert!(format!("{out}{error}").contains(part), "{args:?}: no {part:?} in {out}{error}");
        }
    }
    let (code, out, error) =
        service.run_tool(&["jobs", "submit", "good.csv", "--type", "shares", "--no-wait"]).await;
    assert!(code == 0 && out.trim().len() == 24, "{out}{error}");
    let id = out.trim().to_owned();
    let (code, out, error) = service.run_tool(&["jobs", "status", &id, "--follow"]).await;
    assert!(code == 0 && out.contains("\tCOMPLETED\t2 of 2\t0 failed"), "{out}{error}");
    let (code, out, error) = service.run_tool(&["jobs", "list"]).await;
    assert!(code == 0 && out.starts_with(&id) && out.lines().count() == 5, "newest first: {out}{error}");
    let (code, out, _) = service.run_tool(&["jobs", "list", "--status", "failed", "--limit", "1"]).await;
    assert!(code == 0 && out.lines().count() == 1 && out.contains("\tFAILED\t"), "{out}");
    let (code, _, error) = service.run_tool(&["jobs", "cancel", &id]).await;
    assert!(code == 1 && error.contains("409"), "it has ended: {error}");
    assert_eq!(service.run_tool(&["jobs", "cancel", "short"]).await.0, 64);
    let (code, _, error) = service.run_tool(&["jobs", "status", &"U".repeat(24)]).await;
    assert!(code == 1 && error.contains("404"), "{error}");
    let (_, scans) = service.call("GET", &format!("/thngs/{thng}/actions/scans"), None).await;
    assert_eq!(scans.as_array().map(Vec::len), Some(3), "{scans}");
    assert_eq!(scans[0]["tags"], json!(["batch 7"]), "{scans}");
    service.stop().await;
}

/// On a terminal, as `script` gives one: a bar with rate and time left, which leaves the result alone behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_a_bar() {
    let (service, thng) = Waymark::with_thng().await;
    fs::write(service.folder.path().join("many.csv"), format!("{thng}\n").repeat(4_000)).unwrap();
    let tool = service.tool();
    let line = format!("{} jobs submit many.csv --type scans", tool.get_program().display());
    let mut command = std::process::Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(service.folder.path()).env_clear();
    command.envs(tool.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    command.env("PATH", std::env::var("PATH").unwrap());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (code, out, error) = crate::harness::texts(&output);
    assert_eq!(code, 0, "{out}{error}");
    for part in ["/4000 ", "/s, 0 failed", " left", "COMPLETED: 4000 actions created, 0 operations failed"] {
        assert!(out.contains(part), "no {part:?} in {out:?}");
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_cancelled_meanwhile_is_not_done() {
    let (service, thng) = Waymark::with_thng().await;
    fs::write(service.folder.path().join("many.csv"), format!("{thng}\n").repeat(200_000)).unwrap();
    let cancelled = async {
        let job = crate::harness::eventually("a job under way", async || {
            let (_, jobs) = service.call("GET", "/jobs/actions", None).await;
            let job = jobs.as_array()?.first()?.clone();
            (job["status"] == "EXECUTING").then(|| job["id"].as_str().map(str::to_owned)).flatten()
        });
        let (code, out, error) = service.run_tool(&["jobs", "cancel", &job.await]).await;
        assert!(code == 0 && out.contains("is being cancelled"), "{out}{error}");
    };
    let args = ["jobs", "submit", "many.csv", "--type", "scans"];
    let ((code, out, error), ()) = tokio::join!(service.run_tool(&args), cancelled);
    assert!(code == 2 && out.starts_with("CANCELLED: "), "{code}: {out}{error}");
    service.stop().await;
}
