//! Files: records, signed URLs, content over real sockets, limits.

use std::net::TcpListener;

use anyhow::{Context, Result};
use axum::http::Method;
use catalog::{
    domain::file::{Purport, sign},
    service::files::purge,
};
use control::http::{ApiListeners, run};
use futures_util::stream;
use kernel::store::Ctx;
use reqwest::{Body, Client, Response, header};
use serde_json::{Value, json};
use shared::{id::FileId, time::UnixMillis};
use tests::db::{Engine, MAX_TEST_FILE_BYTES};
use tokio_util::sync::CancellationToken;

use super::Api;

/// An API on a socket.
struct Server {
    api: Api,
    base: String,
    http: Client,
    _stop: tokio_util::sync::DropGuard,
}

impl Server {
    async fn start(engine: Engine) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let api = Api::new(engine).await?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let base = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let listeners = ApiListeners { plain: vec![listener], tls: None };
        tokio::spawn(run(listeners, api.made.app.clone(), stop.clone()));
        Ok(Self { api, base, http: Client::builder().build()?, _stop: stop.drop_guard() })
    }

    async fn json(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> Result<Value> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        request = request.header(header::AUTHORIZATION, &self.api.key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        anyhow::ensure!(response.status().is_success(), "{path}: {}", response.text().await?);
        Ok(response.json().await?)
    }

    async fn create(&self, body: Value) -> Result<Value> {
        self.json(reqwest::Method::POST, "/files", Some(body)).await
    }

    /// Puts bytes as the vendor's client does, without a key.
    async fn upload(&self, file: &Value, media_type: &str, body: impl Into<Body>) -> Result<Response> {
        let url = file["uploadUrl"].as_str().context("uploadUrl")?;
        let request = self.http.put(url).header(header::CONTENT_TYPE, media_type);
        Ok(request.header("x-amz-acl", "public-read").body(body).send().await?)
    }

    async fn get(&self, url: &Value) -> Result<Response> {
        Ok(self.http.get(url.as_str().context("url")?).send().await?)
    }

    /// How many blobs, whole or half, are on the disk.
    fn blobs(&self) -> Result<usize> {
        let folder = self.api.made.db.files().join(self.api.made.account.as_str());
        if !folder.exists() {
            return Ok(0);
        }
        Ok(std::fs::read_dir(folder)?.count())
    }
}

fn bytes(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|n| (n % 251) as u8 ^ seed).collect()
}

fn header_of<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

pub(super) async fn content_is_uploaded_and_downloaded(engine: Engine) -> Result<()> {
    let server = Server::start(engine).await?;
    let sent = json!({"name": "Test ü.txt", "type": "text/plain", "privateAccess": false, "tags": ["a"],
        "customFields": {"A": 1}});
    let file = server.create(sent.clone()).await?;
    for name in ["name", "type", "privateAccess", "tags", "customFields"] {
        assert_eq!(file[name], sent[name], "{name}");
    }
    assert_eq!((file.get("size"), server.get(&file["contentUrl"]).await?.status().as_u16()), (None, 404));
    let path = format!("/files/{}", file["id"].as_str().context("id")?);
    let read = server.json(reqwest::Method::GET, &path, None).await?;
    let uploaded = server.upload(&read, "text/plain", "This is example text file content").await?;
    assert_eq!((uploaded.status().as_u16(), uploaded.text().await?.as_str()), (200, ""));
    let read = server.json(reqwest::Method::GET, &path, None).await?;
    assert_eq!((&read["size"], &read["contentUrl"]), (&json!(33), &file["contentUrl"]));
    assert!(read["updatedAt"].as_i64() > read["createdAt"].as_i64());
    let answer = server.get(&read["contentUrl"]).await?;
    for (name, expected) in [
        ("content-type", "text/plain"),
        ("content-length", "33"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("content-disposition", "inline; filename*=UTF-8''Test%20%C3%BC.txt"),
    ] {
        assert_eq!(header_of(&answer, name), expected, "{name}");
    }
    let etag = header_of(&answer, "etag").to_owned();
    assert_eq!(answer.text().await?, "This is example text file content");
    let url = read["contentUrl"].as_str().context("url")?;
    for (tag, status) in [(etag.clone(), 304), (format!("W/{etag}, \"x\""), 304), ("\"x\"".to_owned(), 200)] {
        let answer = server.http.get(url).header(header::IF_NONE_MATCH, &tag).send().await?;
        assert_eq!((answer.status().as_u16(), header_of(&answer, "etag")), (status, etag.as_str()), "{tag}");
    }
    let head = server.http.head(url).send().await?;
    assert_eq!((head.status().as_u16(), header_of(&head, "content-length")), (200, "33"));

    // Several MiB in parts, again, and nothing: each replaces the one before, and one blob is left.
    let mut etags = vec![etag];
    for (count, seed) in [(11 << 20, 1), (6 << 20, 2), (0, 3)] {
        let content = bytes(count, seed);
        assert_eq!(server.upload(&read, "text/csv", content.clone()).await?.status(), 200);
        let answer = server.get(&read["contentUrl"]).await?;
        assert_eq!(header_of(&answer, "content-length"), count.to_string());
        assert_eq!(header_of(&answer, "content-type"), "text/plain", "the record's type stands");
        etags.push(header_of(&answer, "etag").to_owned());
        assert!(answer.bytes().await? == content, "{count} bytes came out otherwise");
        assert_eq!(server.blobs()?, 1, "{count}");
    }
    etags.dedup();
    assert_eq!(etags.len(), 4);
    // The record goes, and the bytes with it.
    assert_eq!(server.api.delete(&path).await?.status, 200);
    server.api.get(&path).await?.problem(404, 40401);
    assert_eq!(server.get(&read["contentUrl"]).await?.status(), 401);
    assert_eq!(server.upload(&read, "text/plain", "x").await?.status(), 404);
    assert_eq!((server.blobs()?, server.api.fingerprint().await?["blob_garbage"].len()), (0, 0));
    Ok(())
}

pub(super) async fn content_requires_a_signature_or_a_key(engine: Engine) -> Result<()> {
    let server = Server::start(engine).await?;
    let file = server.create(json!({"name": "a.html", "type": "text/html", "privateAccess": true})).await?;
    let other = server.create(json!({"name": "b", "privateAccess": true})).await?;
    assert_eq!(server.upload(&file, "text/html", "<script>").await?.status(), 200);
    let id: FileId = file["id"].as_str().context("id")?.parse()?;
    let (secret, now) = (server.api.made.app.core.secrets.file_url, server.api.made.app.core.clock.now().0);
    let signed =
        |purport, at: i64| format!("expires={at}&signature={}", sign(&secret, id, purport, UnixMillis(at)));
    let content = format!("{}/files/{id}/content", server.base);
    let cut =
        |url: &Value| url.as_str().unwrap_or_default().split_once('?').map(|(_, query)| query.to_owned());
    let good = cut(&file["contentUrl"]).context("signed")?;
    let (upload, others) =
        (cut(&file["uploadUrl"]).context("signed")?, cut(&other["contentUrl"]).context("signed")?);
    let later = now + 10_000_000;
    for (query, get, put, why) in [
        (good.clone(), 200, 403, "as given"),
        (upload, 403, 200, "to upload only"),
        (others, 403, 403, "of another file"),
        (signed(Purport::Download, now - 1), 403, 403, "too late"),
        (signed(Purport::Upload, now - 1), 403, 403, "too late"),
        (signed(Purport::Download, later), 200, 403, "our own"),
        (good.replace("expires=", "expires=9"), 403, 403, "prolonged"),
        (format!("expires={later}&signature={}", "A".repeat(43)), 403, 403, "forged"),
        (format!("expires={later}&signature="), 403, 403, "empty"),
        (format!("signature={}", "A".repeat(43)), 403, 403, "without a time"),
        ("expires=x&signature=%00".to_owned(), 403, 403, "no text"),
        (String::new(), 401, 401, "nothing"),
        (format!("access_token={}", server.api.key), 200, 200, "a key"),
        (format!("access_token={}", server.api.other_key), 404, 404, "another account's key"),
        (format!("access_token={}", "C".repeat(80)), 401, 401, "an unknown key"),
    ] {
        let url = format!("{content}?{query}");
        let read = server.http.get(&url).send().await?;
        assert_eq!(read.status().as_u16(), get, "GET {why}: {}", read.text().await?);
        let written = server.http.put(&url).body("<script>").send().await?;
        assert_eq!(written.status().as_u16(), put, "PUT {why}: {}", written.text().await?);
    }
    let answer = server.http.get(format!("{content}?{good}")).send().await?;
    assert!(header_of(&answer, "content-disposition").starts_with("attachment"), "{answer:?}");
    assert!(header_of(&answer, "cache-control").contains("private"), "{answer:?}");
    // A file that was private may become public, and back.
    for (private, status) in [(false, 200), (true, 401)] {
        let path = format!("/files/{id}");
        server.json(reqwest::Method::PUT, &path, Some(json!({"privateAccess": private}))).await?;
        assert_eq!(server.http.get(&content).send().await?.status().as_u16(), status);
    }
    let absent = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    for id in [absent, "x", "%00"] {
        let url = format!("{}/files/{id}/content", server.base);
        assert_eq!(server.http.get(&url).send().await?.status(), 401, "{id} is told from a private file");
    }
    Ok(())
}

pub(super) async fn oversized_and_truncated_uploads_store_nothing(engine: Engine) -> Result<()> {
    let server = Server::start(engine).await?;
    let file = server.create(json!({"name": "a", "type": "text/plain"})).await?;
    assert_eq!(server.upload(&file, "text/plain", "before").await?.status(), 200);
    let before = server.api.fingerprint().await?;
    let max = usize::try_from(MAX_TEST_FILE_BYTES)?;
    // Said beforehand, and found out on the way.
    let large = server.upload(&file, "text/plain", vec![b'x'; max + 1]).await?;
    assert_eq!(large.status(), 413);
    assert_eq!(large.json::<Value>().await?["code"], 41301);
    let chunks = stream::iter((0..13).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1 << 20])));
    let large = server.upload(&file, "text/plain", Body::wrap_stream(chunks)).await?;
    assert_eq!(large.status(), 413);
    // A client that goes away in the middle, in the first part and in a later one.
    for megabytes in [0, 3, 8] {
        let chunks = (0..megabytes).map(|_| Ok(vec![b'y'; 1 << 20]));
        let broken = chunks.chain([Err(std::io::Error::other("the client goes away"))]);
        assert!(server.upload(&file, "text/plain", Body::wrap_stream(stream::iter(broken))).await.is_err());
    }
    let settled = async {
        while server.blobs()? != 1 || server.api.fingerprint().await? != before {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), settled)
        .await
        .context("something is left")??;
    assert_eq!(server.get(&file["contentUrl"]).await?.text().await?, "before");
    // As much as is allowed is allowed.
    assert_eq!(server.upload(&file, "text/plain", vec![b'x'; max]).await?.status(), 200);
    Ok(())
}

pub(super) async fn leftovers_of_killed_processes_are_deleted(engine: Engine) -> Result<()> {
    let server = Server::start(engine).await?;
    let app = &server.api.made.app;
    let file = server.create(json!({"name": "a"})).await?;
    assert_eq!(server.upload(&file, "text/plain", "kept").await?.status(), 200);
    // The blob was written and noted, and then the process was gone.
    let left = format!("{}/left", server.api.made.account);
    app.catalog.blobs.write(&left, &mut stream::iter([Ok::<_, ()>("x".into())])).await?;
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    catalog::store::files::note_garbage(&mut tx, &left, UnixMillis(app.core.clock.now().0)).await?;
    catalog::store::files::note_garbage(&mut tx, "a/underway", UnixMillis(i64::MAX)).await?;
    tx.commit().await?;
    assert_eq!(server.blobs()?, 2);
    assert_eq!((purge(&app.catalog).await?, server.blobs()?), (1, 1));
    assert_eq!(purge(&app.catalog).await?, 0);
    assert_eq!(server.get(&file["contentUrl"]).await?.text().await?, "kept");
    Ok(())
}

pub(super) async fn records_are_listed_and_checked(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (name, tags) in [("a", json!(["x"])), ("b", json!(["x", "y"])), ("b", json!([]))] {
        api.create("/files", json!({"name": name, "tags": tags})).await?;
    }
    let theirs =
        api.call_as(&api.other_key, Method::POST, "/files", Some(json!({"name": "t"}))).await?.json();
    for (query, names) in [
        ("", vec!["b", "b", "a"]),
        ("?filter=name%3Db", vec!["b", "b"]),
        ("?filter=tags%3Dx", vec!["b", "a"]),
        ("?perPage=2&page=2", vec!["a"]),
    ] {
        let answer = api.get(&format!("/files{query}")).await?;
        let list = answer.json();
        let found: Vec<&str> =
            list.as_array().context("array")?.iter().filter_map(|f| f["name"].as_str()).collect();
        assert_eq!(found, names, "{query}");
        assert!(answer.header("x-result-count").is_some());
    }
    let before = api.fingerprint().await?;
    api.post("/files", json!({"type": "x", "privateAccess": 1})).await?.problem(400, 40001);
    for id in ["UKXAGyEf8SQ5eTDmVgGpHqAa", theirs["id"].as_str().context("id")?, "x", "%00"] {
        for (method, body) in
            [(Method::GET, None), (Method::PUT, Some(json!({"name": "x"}))), (Method::DELETE, None)]
        {
            api.call(method, &format!("/files/{id}"), body).await?.problem(404, 40401);
        }
        api.put(&format!("/files/{id}/content"), json!("x")).await?.problem(404, 40401);
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    content_is_uploaded_and_downloaded,
    content_requires_a_signature_or_a_key,
    oversized_and_truncated_uploads_store_nothing,
    leftovers_of_killed_processes_are_deleted,
    records_are_listed_and_checked,
);
