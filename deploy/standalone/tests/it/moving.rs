//! `waymark import --from`: links of other shorteners. The files have the forms that are named beside them; none is copied.

use std::{
    fs::{self, File},
    io::Write as _,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};

use crate::harness::{DOMAIN, Waymark};

/// Bitly's API reference, "Retrieve Bitlinks by Group".
const BITLY: &str = r#"{"links": [{"created_at": "2024-01-02T03:04:05+0000", "id": "bit.ly/2Ab", "link": "https://bit.ly/2Ab",
    "custom_bitlinks": ["https://go.example.com/Sale"], "long_url": "https://example.com/sale", "title": "Sale",
    "archived": false, "tags": ["spring"], "deeplinks": [], "references": {"group": "x"}}], "pagination": {"total": 1}}"#;

/// Shlink's API specification, "List short URLs".
const SHLINK: &str = r#"{"shortUrls": {"data": [{"shortCode": "s1", "shortUrl": "https://s.example/s1",
    "longUrl": "https://example.com/q?a={b}", "dateCreated": "2024-01-02T04:04:05+01:00", "tags": [], "title": null,
    "visitsSummary": {"total": 5, "nonBots": 4, "bots": 1}, "domain": null, "crawlable": false, "forwardQuery": true,
    "meta": {"validSince": "2020-01-01T00:00:00+00:00", "validUntil": "2100-01-01T00:00:00+00:00", "maxVisits": 9},
    "hasRedirectRules": false}], "pagination": {"totalItems": 1}}}"#;

/// The columns of the table `yourls_url` in YOURLS' installer, and one that somebody added.
const YOURLS: &str = "\u{feff}keyword,url,title,timestamp,ip,clicks,team\r\n\
    y1,https://example.com/y1,\"Two\r\nlines\",2024-01-02 03:04:05,192.0.2.1,3,red\r\n\
    y2,https://example.com/y2,NULL,2024-01-02 03:04:05,192.0.2.1,0,red\r\n";

/// `Link` in Kutt's API documentation.
const KUTT: &str = r#"{"total": 1, "limit": 10, "skip": 0, "data": [{"id": "u", "address": "k1", "link": "https://kutt.example/k1",
    "target": "https://example.com/k1", "description": "A note", "banned": true, "password": false, "visit_count": 2,
    "created_at": "2024-01-02T03:04:05.000Z", "updated_at": "2024-01-02T03:04:05.000Z", "expire_in": null}]}"#;

/// Dub's API reference, "Retrieve a list of links".
const DUB: &str = r#"[{"id": "link_1", "domain": "dub.sh", "key": "d1", "shortLink": "https://dub.sh/d1", "rewrite": true,
    "url": "https://example.com/d1", "expiresAt": "2021-01-01T00:00:00.000Z", "expiredUrl": "https://example.com/over",
    "password": null, "ios": "https://example.com/ios", "geo": null, "comments": "Poster", "clicks": 8,
    "tags": [{"id": "t", "name": "print", "color": "red"}], "createdAt": "2024-01-02T03:04:05.000Z"}]"#;

#[tokio::test(flavor = "multi_thread")]
async fn links_of_each_service_move_with_what_they_say() {
    let service = Waymark::start().await;
    let at = 1_704_164_645_000_i64;
    for (from, text, counts, said, code, expected) in [
        (
            "bitly",
            BITLY,
            2,
            &[][..],
            "SALE",
            json!({"shortId": "Sale", "title": "Sale", "tags": ["spring"], "defaultRedirectUrl": "https://example.com/sale",
                "customFields": {"importedFrom": "bitly", "importedLink": "go.example.com/Sale", "importedCreatedAt": at}}),
        ),
        (
            "shlink",
            SHLINK,
            1,
            &[][..],
            "s1",
            json!({"defaultRedirectUrl": "https://example.com/q?a=%7Bb%7D", "forwardQuery": true,
                "validFrom": 1_577_836_800_000_i64, "validUntil": 4_102_444_800_000_i64, "maxScans": 9, "customFields":
                {"importedFrom": "shlink", "importedLink": "s.example/s1", "importedCreatedAt": at, "importedClicks": 5}}),
        ),
        (
            "yourls",
            YOURLS,
            2,
            &["not read: team", "of 2 links: ip"][..],
            "y1",
            json!({"title": "Two\nlines", "hits": 0, "customFields":
                {"importedFrom": "yourls", "importedLink": "y1", "importedCreatedAt": at, "importedClicks": 3}}),
        ),
        (
            "kutt",
            KUTT,
            1,
            &[][..],
            "k1",
            json!({"notes": "A note", "status": "paused", "customFields":
                {"importedFrom": "kutt", "importedLink": "kutt.example/k1", "importedCreatedAt": at, "importedClicks": 2}}),
        ),
        (
            "dub",
            DUB,
            1,
            &["of 1 links: ios", "of 1 links: rewrite"][..],
            "d1",
            json!({"notes": "Poster", "tags": ["print"], "endedUrl": "https://example.com/over",
                "validUntil": 1_609_459_200_000_i64, "customFields": {"importedFrom": "dub", "importedLink": "dub.sh/d1",
                "importedCreatedAt": at, "importedClicks": 8, "importedIos": "https://example.com/ios"}}),
        ),
    ] {
        let file = service.folder.path().join(from);
        // One of them is packed.
        if from == "dub" {
            let mut packed = GzEncoder::new(File::create(&file).unwrap(), Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap();
        } else {
            fs::write(&file, text).unwrap();
        }
        let (exit, out, error) = service.run_tool(&["import", "--from", from, from]).await;
        assert!(
            exit == 0 && out.starts_with(&format!("{counts} created, 0 rejected")),
            "{from}: {out}{error}"
        );
        for part in said {
            assert!(error.contains(part), "{from}: {part}: {error}");
        }
        let (_, found) = service.call("GET", &format!("/redirections/{code}"), None).await;
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{from}: {name}: {found}");
        }
        let (_, out, error) = service.run_tool(&["import", "--from", from, from]).await;
        let expected = format!("0 created, {counts} already there, 0 rejected");
        assert!(out.starts_with(&expected), "{from}: {out}{error}");
    }
    assert_eq!(service.scan(DOMAIN, "2ab").await, (307, "https://example.com/sale".to_owned()));

    // A line that was corrected is the one that changes, in a dry run too.
    fs::write(service.folder.path().join("yourls"), YOURLS.replace("com/y2", "com/new")).unwrap();
    let run = async |args: &[&str]| {
        service.run_tool(&[&["import", "--from", "yourls", "yourls"], args].concat()).await.1
    };
    let out = run(&["--dry-run"]).await;
    assert!(
        out.starts_with("0 would be created, 1 would be changed, 1 are there, 0 would be rejected"),
        "{out}"
    );
    let out = run(&[]).await;
    assert!(out.starts_with("0 created, 1 changed, 1 already there, 0 rejected"), "{out}");
    assert_eq!(service.scan(DOMAIN, "y2").await, (307, "https://example.com/new".to_owned()));

    // Somebody changes it after the import has read it.
    fs::write(service.folder.path().join("yourls"), YOURLS.replace("com/y2", "com/newer")).unwrap();
    let (api, mut puts) = before_puts(service.running.api_url.clone()).await;
    let arguments = ["import", "--api", &api, "--from", "yourls", "yourls"];
    let import = service.run_tool(&arguments);
    let meanwhile = async {
        let go_on: oneshot::Sender<()> = puts.recv().await.unwrap();
        let change = json!({"defaultRedirectUrl": "https://example.com/theirs"});
        assert_eq!(service.call("PUT", "/redirections/y2", Some(change)).await.0, 200);
        go_on.send(()).unwrap();
    };
    let ((exit, out, error), ()) = tokio::join!(import, meanwhile);
    assert!(exit == 1 && out.starts_with("0 created, 1 already there, 1 rejected"), "{exit}: {out}{error}");
    let rejects = fs::read_to_string(service.folder.path().join("yourls.rejects.csv")).unwrap();
    assert!(rejects.contains("changed since it was read"), "{rejects}");
    assert_eq!(service.scan(DOMAIN, "y2").await, (307, "https://example.com/theirs".to_owned()));
    service.stop().await;
}

/// Where connections to an API can be made: they are passed on, and before each `PUT` whoever receives is asked to let it pass.
async fn before_puts(api: String) -> (String, mpsc::Receiver<oneshot::Sender<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, puts) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(api.trim_start_matches("http://")).await.unwrap();
            let ((mut requests, mut back), (mut answers, mut there)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = requests.read(&mut bytes).await {
                    if bytes.starts_with(b"PUT ") {
                        let (go_on, wait) = oneshot::channel();
                        asked.send(go_on).await.unwrap();
                        wait.await.unwrap();
                    }
                    if there.write_all(&bytes[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (url, puts)
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_cannot_be_kept_are_named() {
    let (service, thng) = Waymark::with_thng().await;
    let body =
        json!({"platformId": thng, "shortId": "taken", "defaultRedirectUrl": "https://example.com/mine"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    let text = "keyword,url,title,timestamp,ip,clicks\n\
        sale,https://example.com/1,,,,\napi,https://example.com/2,,,,\nb,javascript:alert(1),,,,\n\
        SALE,https://example.com/3,,,,\nTaken,https://example.com/4,,,,\nsale,https://example.com/5,,,,\n";
    fs::write(service.folder.path().join("links.csv"), text).unwrap();
    let run = async |args: &[&str]| {
        let (exit, out, error) =
            service.run_tool(&[&["import", "links.csv", "--from", "yourls"], args].concat()).await;
        assert_eq!(exit, 1, "{args:?}: {out}{error}");
        (out, error)
    };
    let faults = [
        ("3", "reserved"),
        ("4", "defaultRedirectUrl"),
        ("5", "is that of line 2"),
        ("6", "https://example.com/mine"),
        ("7", "line 2 has the same short link"),
    ];
    let (out, error) = run(&["--dry-run"]).await;
    assert!(
        out.starts_with("1 would be created, 0 are there, 5 would be rejected; nothing was changed"),
        "{out}"
    );
    for (line, reason) in faults {
        let said = error.lines().find(|text| text.contains(&format!("line {line}: ")));
        assert!(said.is_some_and(|text| text.contains(reason)), "{line}: {error}");
    }
    assert_eq!(service.call("GET", "/products/importedFrom:yourls", None).await.0, 404);
    let nobody = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    let args = ["import", "links.csv", "--from", "yourls", "--dry-run", "--platform-id", nobody];
    let (exit, _, error) = service.run_tool(&args).await;
    assert!(exit == 2 && error.contains("names nothing"), "{exit}: {error}");

    let (out, error) = run(&[]).await;
    assert!(out.starts_with("1 created, 5 rejected"), "{out}{error}");
    let rejects = fs::read_to_string(service.folder.path().join("links.csv.rejects.csv")).unwrap();
    let lines: Vec<&str> = rejects.lines().skip(1).map(|line| line.split_once(',').unwrap().0).collect();
    assert_eq!(lines, faults.map(|(line, _)| line), "{rejects}");
    let (out, _) = run(&["--on-conflict", "skip"]).await;
    assert!(out.starts_with("0 created, 1 already there, 2 skipped, 3 rejected"), "{out}");
    // What got a new short id is known by its short link at the other service.
    let (out, error) = run(&["--on-conflict", "rename"]).await;
    assert!(out.starts_with("2 created, 1 already there, 3 rejected"), "{out}{error}");
    let (out, error) = run(&["--on-conflict", "rename"]).await;
    assert!(out.starts_with("0 created, 3 already there, 3 rejected"), "{out}{error}");
    assert_eq!(service.scan(DOMAIN, "taken").await, (307, "https://example.com/mine".to_owned()));
    let (_, links) =
        service.call("GET", "/redirections?filter=customFields.importedLink%3DTaken", None).await;
    let links = links.as_array().map(Vec::as_slice).unwrap_or_default();
    let targets: Vec<&Value> = links.iter().map(|link| &link["defaultRedirectUrl"]).collect();
    assert_eq!(targets, ["https://example.com/4"]);

    // What stands behind the prefix of the domain is the code. So the second row has the code of the first, and does not change it.
    let (_, access) = service.call("GET", "/access", None).await;
    let path = format!("/accounts/{}/domains/{DOMAIN}", access["account"].as_str().unwrap());
    assert_eq!(service.call("PUT", &path, Some(json!({"pathPrefix": "shop/go"}))).await.0, 200);
    let below = "keyword,url\nShop/go/x1,https://example.com/x\nx1,https://example.com/y\n";
    fs::write(service.folder.path().join("below.csv"), below).unwrap();
    let (exit, out, error) = service.run_tool(&["import", "below.csv", "--from", "yourls"]).await;
    assert!(exit == 1 && out.starts_with("1 created"), "{out}{error}");
    let (status, link) = service.call("GET", "/redirections/X1", None).await;
    assert_eq!((status, &link["defaultRedirectUrl"]), (200, &json!("https://example.com/x")), "{out}{error}");

    fs::write(service.folder.path().join("broken"), "[{\"key\":").unwrap();
    let (exit, _, error) = service.run_tool(&["import", "broken", "--from", "dub"]).await;
    assert!(exit == 64 && error.contains("it is not JSON"), "{exit}: {error}");
    let (exit, _, error) = service.run_tool(&["import", "links.csv", "--from", "dub", "--again"]).await;
    assert!(exit == 64 && error.contains("--again"), "{exit}: {error}");
    service.stop().await;
}
