//! `waymark import` of files that were imported before, corrected, cut off, or written by spreadsheets.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{DOMAIN, Waymark, eventually, texts};

/// Lines as the results file has them: result, short id, short URL by line.
fn results(path: &str) -> HashMap<u64, (String, String, String)> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let cells = |row: csv::StringRecord| {
        let cell = |at: usize| row[at].to_owned();
        (row[0].parse().unwrap(), (cell(1), cell(2), cell(3)))
    };
    reader.records().map(|row| cells(row.unwrap())).collect()
}

/// Short ids by target.
async fn codes(service: &Waymark) -> HashMap<String, Vec<String>> {
    let (code, text, error) = service.run_tool(&["export", "--format", "ndjson"]).await;
    assert_eq!(code, 0, "{error}");
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        found.entry(text("defaultRedirectUrl")).or_default().push(text("shortId"));
    }
    found
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> String {
    fs::write(path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_file_makes_no_second_codes() {
    let service = Waymark::start().await;
    let (folder, thng) = (service.folder.path().to_owned(), service.thng().await);
    let lines = |third: &str| {
        format!(
            "shortId,platformId,defaultRedirectUrl\n,{thng},https://example.com/1\nA1,{thng},https://example.com/2\n\
             ,{thng},{third}\n,{thng},https://example.com/same\n,{thng},https://example.com/same\n"
        )
    };
    let file = write(&folder.join("links.csv"), lines("htps://example.com/3"));
    let first = folder.join("first.csv").to_str().unwrap().to_owned();
    let (code, out, error) = service.run_tool(&["import", &file, "--results", &first]).await;
    assert!(code == 1 && out.contains("1 rejected"), "{out}{error}");
    let before = codes(&service).await;
    assert_eq!(before["https://example.com/same"].len(), 2, "equal rows of one file are two codes");
    let first = results(&first);
    assert!(first[&3].0 == "created" && first[&3].1 == "A1", "{first:?}");
    assert!(first[&3].2.ends_with(&format!("://{DOMAIN}/A1")), "{first:?}");
    assert_eq!(first[&4].0, "rejected");

    // In place, and once more under another name.
    write(Path::new(&file), lines("https://example.com/3"));
    let copy = write(&folder.join("links (2).csv"), lines("https://example.com/3"));
    let created = out.split(' ').next().unwrap().parse::<usize>().unwrap();
    for (file, expected) in [
        (&file, format!("1 created, {created} already there, ")),
        (&copy, format!("0 created, {} already there, 0 rejected", created + 1)),
        (&file, format!("0 created, {} already there, 0 rejected", created + 1)),
    ] {
        let second = folder.join("second.csv").to_str().unwrap().to_owned();
        let (_, out, error) = service.run_tool(&["import", file, "--results", &second]).await;
        assert!(out.starts_with(&expected), "{out}{error}, not {expected}");
        let second = results(&second);
        for (line, (result, id, url)) in first.iter().filter(|(_, (result, ..))| result == "created") {
            assert_eq!(second[line], ("already there".to_owned(), id.clone(), url.clone()), "{result}");
        }
    }
    let after = codes(&service).await;
    assert_eq!(after["https://example.com/3"].len(), 1);
    for (target, ids) in &before {
        assert_eq!(&after[target], ids, "{target}");
    }

    // A third equal row is one that is not there.
    let more = format!("{}\n,{thng},https://example.com/same\n", lines("https://example.com/3"));
    let more = write(Path::new(&file), more);
    let (_, out, _) = service.run_tool(&["import", &more]).await;
    assert!(out.starts_with("1 created"), "{out}");
    assert_eq!(codes(&service).await["https://example.com/same"].len(), 3);

    let (_, out, _) = service.run_tool(&["import", &more, "--again"]).await;
    assert!(out.contains(" created, 1 already there, 0 rejected"), "the short id alone is taken: {out}");
    assert_eq!(codes(&service).await["https://example.com/same"].len(), 6);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing_and_says_what_an_import_would_do() {
    let service = Waymark::start().await;
    let (folder, thng) = (service.folder.path().to_owned(), service.thng().await);
    let nobody = "U".repeat(24);
    let there = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/there"});
    assert_eq!(service.call("POST", "/redirections", Some(there)).await.0, 201);
    let text = format!(
        "platformId;gs1:21;target\n{thng};;https://example.com/there\n{thng};;https://example.com/new\n\
         {thng};;javascript:x\n{nobody};;https://example.com/\n;S1;https://example.com/thing\n"
    );
    let file = write(&folder.join("links.csv"), text);
    let (code, out, error) = service.run_tool(&["import", &file, "--dry-run"]).await;
    assert_eq!(code, 1, "{out}{error}");
    assert!(out.starts_with("2 would be created, 1 are there, 2 would be rejected"), "{out}{error}");
    assert!(error.contains("line 4: defaultRedirectUrl") && error.contains("line 5: platformId"), "{error}");
    assert_eq!(codes(&service).await.len(), 1);
    let (_, thngs) = service.call("GET", "/thngs", None).await;
    assert_eq!(thngs.as_array().unwrap().len(), 1, "no Thing is made");
    for suffix in ["waymark-import.json", "rejects.csv"] {
        assert!(!Path::new(&format!("{file}.{suffix}")).exists(), "{suffix}");
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_spreadsheets_are_read_whatever_separates_and_encodes_them() {
    let (service, thng) = Waymark::with_thng().await;
    let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let text = |sign: char, name: &str| {
        format!(
            "platformId{sign}defaultRedirectUrl{sign}note\r\n{thng}{sign}https://example.com/{name}?a=1,2{sign}\"x{sign}\n y\"\r\n"
        )
        .replace("?a=1,2", if sign == ',' { "" } else { "?a=1,2" })
    };
    for (name, content) in [
        ("comma", text(',', "comma").into_bytes()),
        ("semicolon", text(';', "semicolon").into_bytes()),
        ("tab", text('\t', "tab").into_bytes()),
        ("little", utf16(&text('\t', "little"), u16::to_le_bytes)),
        ("big", utf16(&text(';', "big"), u16::to_be_bytes)),
    ] {
        let file = write(&service.folder.path().join(format!("{name}.csv")), content);
        let (code, out, error) = service.run_tool(&["import", &file]).await;
        assert!(code == 0 && out.starts_with("1 created, 0 rejected"), "{name}: {out}{error}");
        let query = if name == "comma" { "" } else { "?a=1,2" };
        let found = codes(&service).await;
        assert!(found.contains_key(&format!("https://example.com/{name}{query}")), "{found:?}");
    }
    let rejected = "platformId;defaultRedirectUrl\nU;https://example.com/\n";
    let file = write(&service.folder.path().join("rejected.csv"), rejected);
    assert_eq!(service.run_tool(&["import", &file]).await.0, 1);
    let rejects = fs::read_to_string(format!("{file}.rejects.csv")).unwrap();
    assert!(rejects.starts_with("line;reason;platformId;defaultRedirectUrl\n2;"), "{rejects}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn things_and_codes_are_made_in_one_run_and_not_twice() {
    let service = Waymark::start().await;
    let gtin = "09501101020917";
    let product = json!({"name": "Bag", "identifiers": {"gs1:01": gtin}});
    let (status, product) = service.call("POST", "/products", Some(product)).await;
    assert_eq!(status, 201, "{product}");
    let id = product["id"].as_str().unwrap();
    let mut text = "name,product,gs1:21,target\n".to_owned();
    for at in 0..60 {
        writeln!(text, "Bag {at},gs1:01:{gtin},S|{at},https://example.com/{at}").unwrap();
    }
    writeln!(text, ",{id},S|0,https://example.com/other").unwrap();
    writeln!(text, "Bag,gs1:01:00000000000017,S1,https://example.com/unknown").unwrap();
    let file = write(&service.folder.path().join("things.csv"), text);
    for expected in [
        "61 created, 1 rejected, 60 Things made",
        "0 created, 61 already there, 1 rejected",
        "61 created, 1 rejected",
    ] {
        let again: &[&str] = if expected == "61 created, 1 rejected" { &["--again"] } else { &[] };
        let (code, out, error) =
            service.run_tool(&[&["import", &file, "--chunk", "25"], again].concat()).await;
        assert!(code == 1 && out.starts_with(expected), "{out}{error}, not {expected}");
        let rejects = fs::read_to_string(format!("{file}.rejects.csv")).unwrap();
        assert!(rejects.lines().count() == 2 && rejects.contains("product gs1:01:0000"), "{rejects}");
    }
    let (_, page) = service.call("GET", "/thngs?perPage=100", None).await;
    let things = page.as_array().unwrap();
    assert_eq!(things.len(), 60, "each once");
    assert!(
        things
            .iter()
            .all(|thing| thing["product"] == id && thing["name"].as_str().unwrap().starts_with("Bag "))
    );
    let serial = things.iter().find(|thing| thing["identifiers"]["gs1:21"] == "S|0").unwrap();
    let path = format!("/redirections?platformId={}", serial["id"].as_str().unwrap());
    let (_, links) = service.call("GET", &path, None).await;
    assert_eq!(links.as_array().unwrap().len(), 4, "two targets, made twice with --again");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_corrected_after_a_kill_creates_each_line_once() {
    const ROWS: usize = 1_000;
    let (service, thng) = Waymark::with_thng().await;
    let text = |bad: &str| {
        let mut text = "platformId,defaultRedirectUrl\n".to_owned();
        for at in 0..ROWS {
            let scheme = if at == 7 { bad } else { "https" };
            writeln!(text, "{thng},{scheme}://example.com/{at}").unwrap();
        }
        text
    };
    let file = write(&service.folder.path().join("links.csv"), text("ftp"));
    let mut child = start(&service, &["import", &file, "--chunk", "20"]);
    let state = format!("{file}.waymark-import.json");
    eventually("the import comes so far, or ends", async || {
        let state: Value = serde_json::from_slice(&fs::read(&state).ok()?).ok()?;
        (state["chunks"].as_u64()? >= 5).then_some(())
    })
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    write(Path::new(&file), text("https"));
    let (code, out, error) = service.run_tool(&["import", &file]).await;
    assert!(code == 0 && out.contains(" already there, 0 rejected"), "{out}{error}");
    let found = codes(&service).await;
    assert_eq!(found.len(), ROWS);
    assert!(found.values().all(|ids| ids.len() == 1), "each line once");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_at_the_same_time_create_each_line_once() {
    const ROWS: usize = 500;
    let (service, thng) = Waymark::with_thng().await;
    let mut text = "shortId,platformId,defaultRedirectUrl\n".to_owned();
    for at in 0..ROWS {
        let id = if at % 2 == 0 { String::new() } else { format!("C{at}") };
        writeln!(text, "{id},{thng},https://example.com/{at}").unwrap();
    }
    let file = write(&service.folder.path().join("links.csv"), &text);
    let children: Vec<Child> = (0..3).map(|_| start(&service, &["import", &file, "--chunk", "10"])).collect();
    let mut ends = Vec::new();
    for child in children {
        ends.push(tokio::task::spawn_blocking(|| texts(&child.wait_with_output().unwrap())).await.unwrap());
    }
    assert!(ends.iter().any(|(code, ..)| *code == 0), "{ends:?}");
    for (code, _, error) in &ends {
        assert!(*code == 0 || (*code == 2 && error.contains("another import")), "{ends:?}");
    }
    let found = codes(&service).await;
    assert!(found.len() == ROWS && found.values().all(|ids| ids.len() == 1), "each line once");

    // Copies of one file whose rows name their short ids: what the other one made is already there.
    let named: String =
        text.lines().filter(|line| !line.starts_with(',')).fold(String::new(), |mut all, line| {
            writeln!(all, "{}", line.replacen('C', "D", 1)).unwrap();
            all
        });
    let copies = ["a.csv", "b.csv"].map(|name| write(&service.folder.path().join(name), &named));
    let children = copies.map(|file| start(&service, &["import", &file, "--chunk", "10", "--again"]));
    let mut created = 0;
    for child in children {
        let (code, out, error) =
            tokio::task::spawn_blocking(|| texts(&child.wait_with_output().unwrap())).await.unwrap();
        assert!(code == 0 && out.contains(" 0 rejected"), "{out}{error}");
        created += out.split(' ').next().unwrap().parse::<usize>().unwrap();
    }
    assert_eq!(created, ROWS / 2, "each short id was made by one of them");
    service.stop().await;
}

fn start(service: &Waymark, args: &[&str]) -> Child {
    let mut command = service.tool();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}
