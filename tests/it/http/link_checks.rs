//! Checks of the links of a product, against a real server.

use std::{io, net::SocketAddr, sync::Arc};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use events::egress::{EgressClient, Lookup};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tests::{
    db::{Engine, TestApp},
    json::text,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::Api;

/// One host is this machine; every other one is within a private network.
struct Hosts;

impl Lookup for Hosts {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let address = if host == "shop.example" { [127, 0, 0, 1] } else { [10, 0, 0, 1] };
        Box::pin(async move { Ok(vec![SocketAddr::from((address, 0))]) })
    }
}

/// Answers by the path; gives the port.
async fn shop() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that hangs up ends it.
            tokio::spawn(answer(stream));
        }
    });
    Ok(port)
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut read = vec![0; 4_096];
    let count = stream.read(&mut read).await?;
    let text = String::from_utf8_lossy(&read[..count]).into_owned();
    let mut words = text.split(' ');
    let head = match (words.next().unwrap(), words.next().unwrap()) {
        (_, "/gone") => "404 Not Found",
        ("HEAD", "/get") => "405 Method Not Allowed",
        (_, "/moved") => "302 Found\r\nlocation: /shoe/new",
        (_, "/inside") => "302 Found\r\nlocation: http://10.0.0.1/",
        (_, "/round") => "302 Found\r\nlocation: /round",
        (_, "/silent") => std::future::pending().await,
        (_, _) => "200 OK",
    };
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_link_says_what_its_page_answers() -> Result<()> {
    let _ = tests::db::egress()?;
    let egress = EgressClient::new(true, Arc::new(Hosts)).map_err(anyhow::Error::msg)?;
    let made = TestApp::with(Engine::Sqlite, |parts| parts.egress = egress).await?;
    let api = Api::over(made).await?;
    let port = shop().await?;
    let nobody = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
    let at = |path: &str| format!("http://shop.example:{port}{path}");
    let link = |href: &str| json!({"linkType": "gs1:pip", "href": href, "title": "Page"});
    let default = |href: &str| json!({"linkType": "gs1:pip", "href": href, "title": "Page", "default": true});
    let refused = format!("http://shop.example:{nobody}/");
    let others = ["/gone", "/get", "/moved", "/inside", "/round", "/silent"].map(|path| link(&at(path)));
    let mut links = vec![default(&at("/shoe/{01}/{21}"))];
    links.extend(others);
    links.extend([link(&refused), link("https://inner.example/")]);
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "09521234543213"}, "links": links,
        "levels": [{"lot": "L1", "links": [default(&at("/lot/{10}"))]}]});
    let shoe = text(&api.create("/products", body).await?, "id")?;

    let check = |id: &str, query: &str| format!("/products/{id}/links/check{query}");
    // Two at once; the silent page keeps them.
    let path = check(&shoe, "?serial=S%2F1");
    let asked = (0..3).map(|_| api.call(Method::POST, &path, None));
    let mut answers = futures_util::future::try_join_all(asked).await?;
    answers.sort_by_key(|answer| answer.status.as_u16());
    let third = answers.pop().context("three")?.problem(429, 42901);
    ensure!(third[0].contains("checks of links"), "{third:?}");
    let checked = answers.pop().context("two")?;
    ensure!(answers[0].status == 200, "{answers:?}");
    ensure!(checked.status == 200 && checked.json()["leftOut"] == 0, "{checked:?}");
    let found = |path: &str, status: u16, url: &str| (path.to_owned(), json!(status), json!(at(url)));
    let fault = |path: &str, why: &str| (path.to_owned(), Value::Null, json!(why));
    let expected = [
        found("links[0]", 200, "/shoe/09521234543213/S%2F1"),
        found("links[1]", 404, "/gone"),
        found("links[2]", 200, "/get"),
        found("links[3]", 200, "/shoe/new"),
        fault("links[4]", "the URL that it redirects to must not lead to a private or local address"),
        fault("links[5]", "it redirects more than 5 times"),
        fault("links[6]", "no answer in time"),
        fault("links[7]", "no connection could be made"),
        fault("links[8]", "the host has no public address"),
        found("levels[0].links[0]", 200, "/lot/L1"),
    ];
    let body = checked.json();
    let rows = body["links"].as_array().context("links")?;
    let rows = rows.iter().map(|row| {
        let answer = if row["fault"].is_null() { &row["finalUrl"] } else { &row["fault"] };
        (row["path"].as_str().unwrap().to_owned(), row["status"].clone(), answer.clone())
    });
    assert_eq!(rows.collect::<Vec<_>>(), expected);

    let wrong = api.call(Method::POST, &check(&shoe, "?serial=%20"), None).await?.problem(400, 40003);
    ensure!(wrong[0].starts_with("serial: "), "{wrong:?}");
    let other = api.call_as(&api.other_key, Method::POST, &check(&shoe, ""), None).await?;
    other.problem(404, 40401);

    // The account has eight more within a minute.
    let body = json!({"name": "Sock", "identifiers": {"gs1:01": "09528765123457"}, "links": [default(&at("/sock"))]});
    let sock = text(&api.create("/products", body).await?, "id")?;
    for turn in 3..=11 {
        let checked = api.call(Method::POST, &check(&sock, ""), None).await?;
        let expected: u16 = if turn <= 10 { 200 } else { 429 };
        ensure!(checked.status == expected, "{turn}: {checked:?}");
    }
    api.made.clock.advance(60_000);
    ensure!(api.call(Method::POST, &check(&sock, ""), None).await?.status == 200);
    Ok(())
}
