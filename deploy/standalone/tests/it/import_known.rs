//! `waymark import` of rows whose redirections were changed or deleted since: each row is created once.

use std::{collections::HashMap, fs};

use serde_json::json;

use crate::harness::Waymark;

/// What the results file says of each line: result and short id.
fn results(path: &str) -> HashMap<u64, (String, String)> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader
        .records()
        .map(Result::unwrap)
        .map(|row| (row[0].parse().unwrap(), (row[1].to_owned(), row[2].to_owned())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_earlier_import_are_there_whatever_became_of_their_codes() {
    let service = Waymark::start().await;
    let (folder, thng) = (service.folder.path().to_owned(), service.thng().await);
    let text = format!(
        "platformId,defaultRedirectUrl\n{thng},https://example.com/moved\n{thng},https://example.com/deleted\n\
         {thng},https://example.com/same\n{thng},https://example.com/same\n"
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (file, copy, found) = (path("links.csv"), path("copy of links.csv"), path("results.csv"));
    fs::write(&file, &text).unwrap();
    let run = async |args: &[&str]| {
        let (code, out, error) =
            service.run_tool(&[&["import", "--results", &found, "--chunk", "2"], args].concat()).await;
        assert_eq!(code, 0, "{args:?}: {out}{error}");
        (out, results(&found))
    };
    let (out, first) = run(&[&file]).await;
    assert!(out.starts_with("4 created, 0 rejected"), "{out}");
    let ids: Vec<String> = (2..=5).map(|line| first[&line].1.clone()).collect();

    // One of two equal rows leads elsewhere, too.
    for id in [&ids[0], &ids[2]] {
        let change = json!({"defaultRedirectUrl": format!("https://example.com/changed/{id}")});
        assert_eq!(service.call("PUT", &format!("/redirections/{id}"), Some(change)).await.0, 200);
    }
    assert_eq!(service.call("DELETE", &format!("/redirections/{}", ids[1]), None).await.0, 200);
    fs::write(&copy, &text).unwrap();
    let there: HashMap<u64, (String, String)> =
        (2..=5).map(|line| (line, ("already there".to_owned(), ids[line as usize - 2].clone()))).collect();
    for args in [&[file.as_str()][..], &[&copy], &[&file, "--restart"]] {
        let (out, again) = run(args).await;
        assert!(out.starts_with("0 created, 4 already there, 0 rejected"), "{args:?}: {out}");
        assert_eq!(again, there, "{args:?}");
    }
    let (out, _) = run(&[&file, "--dry-run"]).await;
    assert!(out.starts_with("0 would be created, 4 are there"), "{out}");

    // A line that was corrected to what was changed meanwhile means that redirection; a third equal row is new.
    let corrected =
        text.replace("/moved", &format!("/changed/{}", ids[0])) + text.lines().last().unwrap() + "\n";
    fs::write(&file, corrected).unwrap();
    let (out, found) = run(&[&file]).await;
    assert!(out.starts_with("1 created, 4 already there, 0 rejected"), "{out}");
    assert_eq!(found[&2], there[&2]);
    assert_eq!(found[&6].0, "created");

    let (out, _) = run(&[&copy, "--again"]).await;
    assert!(out.starts_with("4 created, 0 rejected"), "{out}");
    service.stop().await;
}

/// Without the file of known rows, a row is there whose resource has a redirection to the same target.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_found_are_noted_too() {
    let (service, thng) = Waymark::with_thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/a", "shortId": "HERE"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    let file = service.folder.path().join("links.csv");
    fs::write(&file, format!("platformId,defaultRedirectUrl\n{thng},https://example.com/a\n")).unwrap();
    for _ in 0..2 {
        let (code, out, error) = service.run_tool(&["import", "links.csv"]).await;
        assert!(code == 0 && out.starts_with("0 created, 1 already there"), "{out}{error}");
        let change = json!({"defaultRedirectUrl": "https://example.com/b"});
        assert_eq!(service.call("PUT", "/redirections/HERE", Some(change)).await.0, 200);
    }
    service.stop().await;
}
