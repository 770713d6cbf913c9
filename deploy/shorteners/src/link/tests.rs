use serde_json::json;

use super::*;
use crate::lines;

type Links = Vec<Result<Link, Vec<String>>>;

fn csv(source: Source, text: &str) -> Links {
    let rows = text.lines().map(|line| line.split(';').map(str::to_owned).collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    let columns = Columns::new(source, &rows[0]).unwrap();
    rows.into_iter().skip(1).map(|cells| columns.read(cells)).collect()
}

fn json(source: Source, text: &str) -> (Vec<String>, Links) {
    let found = lines(source, text.as_bytes()).unwrap();
    let rows = found.text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let links = rows.map(|line| read(source, serde_json::from_slice(line).unwrap())).collect();
    (found.unknown, links)
}

#[test]
fn each_column_has_its_member() {
    let items = csv(
        Source::Dub,
        "Short link;Destination URL;Clicks;Created at;Tags;Archived;Revenue;mine\n\
         https://dub.sh/a;https://e.com/;7;2024-01-02T00:00:00.000Z;x, y;Yes;$5;z",
    );
    assert!(!Source::Dub.knows("mine") && Source::Dub.knows("short LINK"));
    let item = items[0].as_ref().unwrap();
    let fields = json!({"importedFrom": "dub", "importedLink": "dub.sh/a", "importedClicks": 7,
        "importedCreatedAt": 1_704_153_600_000_i64, "importedArchived": "Yes"});
    let body = json!({"shortId": "a", "defaultRedirectUrl": "https://e.com/", "tags": ["x", "y"],
        "customFields": fields});
    assert_eq!(Value::Object(item.body.clone()), body);
    assert_eq!(item.dropped, ["Revenue"]);
}

#[test]
fn all_faults_of_a_link_are_named() {
    let text = "address;target;password;expire_in\na b;ftp://e.com;true;soon\n;https://e.com;;\na";
    let items = csv(Source::Kutt, text);
    let fault = items[0].as_ref().unwrap_err().join(" ");
    for part in
        ["shortId a b", "defaultRedirectUrl must be an absolute", "password", "expire_in is not a time: soon"]
    {
        assert!(fault.contains(part), "{part}: {fault}");
    }
    assert_eq!(items[1].as_ref().unwrap_err(), &["the short link is missing."]);
    assert_eq!(items[2].as_ref().unwrap_err(), &["the line has 1 fields, the header 4"]);
    assert!(matches!(Columns::new(Source::Kutt, &["link".to_owned()]), Err(Error::NoColumns(Source::Kutt))));
}

#[test]
fn answers_of_apis_are_lists_of_links() {
    let link = r#"{"link":"https://bit.ly/1","long_url":"https://e.com"}"#;
    for (text, count) in [
        (format!(r#"{{"pagination":{{}},"links":[{link}]}} {{"links":[{link},{link}]}}"#), 3),
        (format!("[{link}]"), 1),
        (format!("{link}\n{link}\n"), 2),
        (format!(r#"[{{"links":[{link}]}},{{"links":[]}}]"#), 1),
        (format!(r#"{{"line":1,"reason":"x","record":{link}}}"#), 1),
    ] {
        let (unknown, items) = json(Source::Bitly, &text);
        assert!(items.len() == count && items.iter().all(Result::is_ok), "{text}: {items:?}");
        assert!(unknown.is_empty(), "{text}");
    }
    let links: String = (1..=10)
        .rev()
        .map(|n| format!(r#""link_{n}":{{"shorturl":"s.e/{n}","url":"https://e.com","x":1}},"#))
        .collect();
    let (unknown, items) =
        json(Source::Yourls, &format!(r#"{{"links":{{{}}},"stats":{{}}}}"#, links.trim_end_matches(',')));
    assert_eq!(unknown, ["x"]);
    assert_eq!(items[9].as_ref().unwrap().body["shortId"], "10", "in the order of their numbers");
    for text in ["[".repeat(1_000_000), "[1,2".to_owned(), "[".repeat(50) + &"]".repeat(50)] {
        assert!(lines(Source::Dub, text.as_bytes()).is_err());
    }
}

#[test]
fn a_bitlink_is_imported_under_each_of_its_links() {
    let text = r#"[{"link":"https://bit.ly/1","id":"bit.ly/1","long_url":"https://e.com",
        "custom_bitlinks":["https://bit.ly/1","https://go.example.com/sale"],"tags":[],"deeplinks":[{"os":"ios"}]}]"#;
    let (_, items) = json(Source::Bitly, text);
    let found: Vec<_> = items
        .iter()
        .map(|item| item.as_ref().unwrap())
        .map(|item| (&item.body["shortId"], &item.dropped[..]))
        .collect();
    assert_eq!(found, [(&json!("1"), &["deeplinks"][..]), (&json!("sale"), &["deeplinks"][..])]);
}
