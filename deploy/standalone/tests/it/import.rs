//! `waymark import` and `waymark export` against a running service.

use std::{collections::HashMap, fmt::Write as _, fs, path::Path, process::Stdio};

use serde_json::Value;
use standalone::Config;

use crate::harness::{DOMAIN, Waymark, config, eventually, key, texts};

fn write(path: &Path, text: &str) -> String {
    fs::write(path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Targets of an export with how often each is there.
async fn targets(service: &Waymark) -> HashMap<String, usize> {
    let (code, text, error) = service.run_tool(&["export", "--format", "ndjson"]).await;
    assert_eq!(code, 0, "{error}");
    let mut found = HashMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        *found.entry(record["defaultRedirectUrl"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn good_lines_are_in_and_bad_ones_have_their_reason() {
    let (service, thng) = Waymark::with_thng().await;
    let file = write(
        &service.folder.path().join("links.csv"),
        &format!(
            "\u{feff}shortId,evrythngId,defaultRedirectUrl,forwardQuery\r\n\
             A1,{thng},https://example.com/1,true\r\n\
             \r\n\
             A2,{thng},javascript:alert(1),\r\n\
             \"A3\",{thng},\"https://example.com/a,b\",\r\n\
             A4,{thng}\r\n\
             ,{thng},https://example.com/made,0\r\n\
             a1,{thng},https://example.com/twin,\r\n\
             A5,{thng},\"https://example.com/open,\r\n\
             A6,{thng},https://example.com/6,perhaps\r\n"
        ),
    );
    let (code, out, error) = service.run_tool(&["import", &file]).await;
    assert_eq!(code, 1, "{out}{error}");
    assert!(out.starts_with("3 created, 5 rejected"), "{out}");
    let rejects = fs::read_to_string(format!("{file}.rejects.csv")).unwrap();
    let found: Vec<(&str, &str)> =
        rejects.lines().skip(1).map(|line| line.split_once(',').unwrap()).collect();
    for (at, (line, reason)) in [
        ("4", "defaultRedirectUrl"),
        ("6", "2 fields"),
        ("8", "taken"),
        ("9", "not closed"),
        ("10", "forwardQuery"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(found[at].0, line, "{rejects}");
        assert!(found[at].1.contains(reason), "line {line} says {reason}: {rejects}");
    }
    assert_eq!(
        rejects.lines().next(),
        Some("line,reason,shortId,evrythngId,defaultRedirectUrl,forwardQuery")
    );
    assert_eq!(service.scan(DOMAIN, "a3").await, (307, "https://example.com/a,b".to_owned()));
    assert_eq!(service.scan(DOMAIN, "A1?x=1").await, (307, "https://example.com/1?x=1".to_owned()));

    // Put right, the file of rejects is imported as it stands.
    let fixed = rejects.replace("javascript:alert(1)", "https://example.com/2").replace("perhaps", "no");
    let fixed = write(&service.folder.path().join("fixed.csv"), &fixed);
    let (code, out, _) = service.run_tool(&["import", &fixed]).await;
    assert!(code == 1 && out.starts_with("2 created, 3 rejected"), "{out}");
    let again = fs::read_to_string(format!("{fixed}.rejects.csv")).unwrap();
    assert!(again.starts_with("line,reason,shortId,evrythngId"), "{again}");

    let (code, out, _) = service.run_tool(&["import", &file]).await;
    assert!(code == 1 && out.starts_with("0 created, 3 already there, 5 rejected"), "{out}");
    assert_eq!(targets(&service).await.len(), 5);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_an_import() {
    let (service, thng) = Waymark::with_thng().await;
    let mut text = String::new();
    let closed = r#","validFrom":5,"validUntil":1577836800000,"status":"paused","endedUrl":"https://example.com/over","statusCode":308,"maxScans":7"#;
    for at in 0..250 {
        let more = if at == 7 { closed } else { "" };
        writeln!(text, r#"{{"shortId":"N{at}","defaultRedirectUrl":"https://example.com/{at}"{more}}}"#)
            .unwrap();
    }
    text.push_str("[1]\n{\"shortId\":\n");
    let file = write(&service.folder.path().join("links.ndjson"), &text);
    let (code, out, error) = service.run_tool(&["import", &file, "--platform-id", &thng]).await;
    assert!(code == 1 && out.starts_with("250 created, 2 rejected"), "{out}{error}");
    let rejects = fs::read_to_string(format!("{file}.rejects.ndjson")).unwrap();
    let lines: Vec<Value> = rejects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["line"], &lines[0]["record"][0]), (&251.into(), &1.into()), "{rejects}");
    assert_eq!((&lines[1]["line"], lines[1]["record"].as_str()), (&252.into(), Some("{\"shortId\":")));

    // 250 records are three pages.
    let exported = service.folder.path().join("all.csv");
    let exported = exported.to_str().unwrap();
    let (code, out, error) = service.run_tool(&["export", "-o", exported]).await;
    assert!(code == 0 && out.starts_with("250 redirections"), "{out}{error}");
    let csv = fs::read_to_string(exported).unwrap();
    assert_eq!(csv.lines().count(), 251);
    let line = csv.lines().nth(1).unwrap();
    assert!(
        line.starts_with("tn.test,N0,thng,") && line.ends_with(",,,active,,307,"),
        "oldest first: {line}"
    );
    let line = csv.lines().nth(8).unwrap();
    assert!(line.ends_with(",5,1577836800000,paused,https://example.com/over,308,7"), "{line}");
    let moved = csv.replace(",N", ",M");
    let moved = write(&service.folder.path().join("moved.csv"), &moved);
    let (code, out, error) = service.run_tool(&["import", &moved, "--domain", DOMAIN]).await;
    assert!(code == 0 && out.starts_with("250 created, 0 rejected"), "{out}{error}");
    assert!(!Path::new(&format!("{moved}.rejects.csv")).exists(), "no file without rejects");
    let (_, found) = service.call("GET", "/redirections/M7", None).await;
    let times = [&found["validFrom"], &found["validUntil"]].map(|at| at.as_i64().unwrap());
    assert_eq!((times, found["status"].as_str()), ([5, 1_577_836_800_000], Some("paused")));
    assert_eq!((&found["statusCode"], &found["maxScans"]), (&308.into(), &7.into()));
    assert_eq!(service.scan(DOMAIN, "M7").await, (307, "https://example.com/over".to_owned()));

    let (code, out, error) = service.run_tool(&["import", exported]).await;
    assert!(code == 0 && out.starts_with("0 created, 250 already there"), "{out}{error}");
    // With another end or status code it is another link; its short id is taken.
    let changed =
        format!("{}\n{line}\n", csv.lines().next().unwrap()).replace("1577836800000", "1577836900000");
    for (name, text, expected) in [
        ("taken.csv", changed.clone(), "0 created, 1 rejected"),
        ("changed.csv", changed.replace(",N7,", ",,"), "1 created, 0 rejected"),
        ("found.csv", changed.replace(",N7,", ",,").replace(",308", ",302"), "1 created, 0 rejected"),
    ] {
        let file = write(&service.folder.path().join(name), &text);
        let (_, out, error) = service.run_tool(&["import", &file]).await;
        assert!(out.starts_with(expected), "{name}: {out}{error}");
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_goes_on_and_creates_each_line_once() {
    const ROWS: usize = 3_000;
    let (service, thng) = Waymark::with_thng().await;
    let mut text = "platformId,defaultRedirectUrl\n".to_owned();
    for at in 0..ROWS {
        // Every hundredth line is refused: rejects are exact after a kill too.
        let target = if at % 100 == 99 { "ftp" } else { "https" };
        writeln!(text, "{thng},{target}://example.com/{at}").unwrap();
    }
    let file = write(&service.folder.path().join("links.csv"), &text);
    let state = || -> Option<Value> {
        serde_json::from_slice(&fs::read(format!("{file}.waymark-import.json")).ok()?).ok()
    };
    let args = ["import", &file, "--chunk", "20"];
    let mut kills = 0;
    for target in [10, 60, 110] {
        let mut child =
            service.tool().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let reached = eventually("the import comes so far, or ends", async || {
            let chunks = state().map_or(0, |state| state["chunks"].as_u64().unwrap());
            if chunks >= target { Some(true) } else { child.try_wait().unwrap().map(|_| false) }
        })
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
        kills += usize::from(reached);
    }
    assert!(kills >= 1, "at least one kill came before the end");
    let (code, out, error) = service.run_tool(&args).await;
    assert_eq!(code, 1, "{out}{error}");
    let state = state().unwrap();
    assert_eq!(
        (&state["done"], &state["created"], &state["rejected"]),
        (&true.into(), &2970.into(), &30.into())
    );
    let found = targets(&service).await;
    assert_eq!(found.len(), 2970);
    assert!(found.values().all(|times| *times == 1), "each line once");
    let rejects = fs::read_to_string(format!("{file}.rejects.csv")).unwrap();
    let lines: Vec<usize> =
        rejects.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(lines, (0..30).map(|at| at * 100 + 101).collect::<Vec<_>>(), "each reject once, in order");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_outlasts_a_restart_of_the_service() {
    const ROWS: usize = 2_000;
    let (service, thng) = Waymark::with_thng().await;
    let mut text = "platformId,defaultRedirectUrl\n".to_owned();
    for at in 0..ROWS {
        writeln!(text, "{thng},https://example.com/{at}").unwrap();
    }
    let file = write(&service.folder.path().join("links.csv"), &text);
    let mut import = service.tool();
    import.args(["import", &file, "--chunk", "20"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = import.spawn().unwrap();
    eventually("the import has begun", async || {
        let (_, page) = service.call("GET", "/redirections?perPage=1", None).await;
        (page.as_array()?.len() == 1).then_some(())
    })
    .await;
    // The same port: the import only knows that one.
    let again =
        Config { api_listen: service.running.addresses.api, ..config(&service.folder.path().join("data")) };
    let folder = service.stop().await;
    let service = Waymark::start_with(folder, again).await;
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    let (code, out, error) = texts(&output);
    assert!(code == 0 && out.starts_with("2000 created, 0 rejected"), "{out}{error}");
    let found = targets(&service).await;
    assert!(found.len() == ROWS && found.values().all(|times| *times == 1), "each line once");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_cannot_be_says_why() {
    let service = Waymark::start().await;
    let folder = service.folder.path().to_owned();
    let good = write(&folder.join("good.csv"), "platformId,defaultRedirectUrl\nU,https://x.test/\n");
    let bad = write(&folder.join("bad.csv"), "platformId,url\n");
    let wrong_key = "w".repeat(80);
    for (args, code, says) in [
        (&["import", "missing.csv"][..], 64, "missing.csv"),
        (&["import", &bad], 64, "defaultRedirectUrl"),
        (&["import", &good, "--key", "short"], 64, "WAYMARK_OPERATOR_KEY"),
        (&["import", &good, "--api", "nonsense"], 64, "WAYMARK_API_URL"),
        (&["import", &good, "--key", &wrong_key], 2, "401"),
        (&["import", &good, "--domain", "other.test"], 2, "400"),
    ] {
        let found = service.run_tool(args).await;
        assert_eq!(found.0, code, "{args:?}: {found:?}");
        assert_eq!(found.2.lines().count(), 1, "one line: {args:?}: {found:?}");
        assert!(found.2.contains(says) && !found.2.contains(&key()), "{args:?}: {found:?}");
        for file in [&good, &bad] {
            let state = format!("{file}.waymark-import.json");
            assert!(!Path::new(&state).exists(), "a refused file leaves no state: {args:?}");
        }
    }
    // An id that is nobody's is the line's fault, not the import's.
    let (code, out, _) = service.run_tool(&["import", &good]).await;
    assert!(code == 1 && out.starts_with("0 created, 1 rejected"), "{out}");
    service.stop().await;
}
