//! Claims and their proofs.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use domains::{
    domain::claim::{Claim, State},
    service::prove::{NoFile, read_file},
    store::claims,
};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{short_url::Host, time::UnixMillis};
use tests::{db::Engine, dns::DnsServer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{PAUSE_MS, Setting};

crate::on_both_engines!(
    a_txt_record_proves_a_host,
    the_first_proof_wins,
    hosts_that_nobody_can_own_are_refused,
    checks_and_claims_are_bounded,
    claims_are_bounded_without_a_quota,
);

async fn a_txt_record_proves_a_host(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let body = json!({"host": "Go.Exämple.", "scheme": "http"});
    let made = all.api.post(&all.path(), body).await?;
    ensure!(made.status == 201 && made.header("x-ignored") == Some("scheme"), "{made:?}");
    let claim = made.json();
    let host = "go.xn--exmple-cua";
    ensure!(claim["host"] == host && claim["domain"] == host && claim["state"] == "pending", "{claim}");
    ensure!(claim["source"] == "account" && claim["record"]["type"] == "TXT", "{claim}");
    ensure!(claim["record"]["name"] == format!("_waymark.{host}"), "{claim}");
    ensure!(claim["file"]["content"] == claim["record"]["value"], "{claim}");
    ensure!(claim["file"]["url"] == format!("https://{host}/.well-known/waymark-domain.txt"), "{claim}");
    let location = made.header("location").context("location")?;
    ensure!(location.ends_with(&format!("{}/{host}", all.path())), "{location}");

    // Nothing may be on it, and it is in no list but the one of claims.
    let domains = format!("/accounts/{}/domains", all.api.made.account);
    let hosts = async |path: &str| -> Result<Vec<Value>> {
        let listed = all.api.get(path).await?.json();
        Ok(listed.as_array().context("list")?.iter().map(|one| one["host"].clone()).collect())
    };
    ensure!(all.api.get(&all.path()).await?.json() == json!(["tn.gg"]));
    ensure!(hosts(&domains).await? == ["tn.gg"]);
    ensure!(hosts(&format!("{domains}?state=pending")).await? == [host]);
    ensure!(hosts(&format!("{domains}?state=all")).await? == ["tn.gg", host]);
    all.api.get(&format!("{domains}?state=lost")).await?.problem(400, 40003);
    let refused = all.link(host, "A").await?.problem(400, 40001);
    ensure!(refused[0].contains("is not a short domain of this account"), "{refused:?}");
    let settings = all.api.put(&format!("{}/{host}", all.path()), json!({})).await?;
    settings.problem(404, 40401);

    // The record is not there, then it is another one's.
    let missing = all.verify(host).await?.json();
    ensure!(missing["state"] == "pending", "{missing}");
    let fault = missing["fault"].as_str().context("fault")?;
    ensure!(fault.contains("there is no TXT record") && fault.contains("over HTTPS"), "{fault}");
    all.dns.set(&format!("_waymark.{host}"), &["waymark-domain=00"]);
    let missing = all.verify(host).await?.json();
    ensure!(
        missing["fault"].as_str().is_some_and(|why| why.contains("no TXT record has this text")),
        "{missing}"
    );
    ensure!(all.events().await?.is_empty());

    all.publish(&claim)?;
    let proven = all.verify(host).await?.json();
    ensure!(
        proven["state"] == "verified" && proven["proof"] == "txt" && proven.get("fault").is_none(),
        "{proven}"
    );
    ensure!(all.events().await? == [(host.to_owned(), true)]);
    ensure!(all.api.get(&all.path()).await?.json() == json!(["tn.gg", host]));
    ensure!(all.link(host, "A").await?.status == 200);
    // Checked once more, it stays as it is.
    ensure!(all.verify(host).await?.json()["state"] == "verified");
    ensure!(all.events().await?.len() == 1);
    let trail = all.api.get("/audit?filter=resource=shortDomain&perPage=100").await?.json();
    let states: Vec<&Value> =
        trail.as_array().context("trail")?.iter().map(|entry| &entry["after"]["state"]).collect();
    ensure!(states == ["verified", "pending"], "{trail}");
    Ok(())
}

async fn the_first_proof_wins(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let (api, host) = (&all.api, "go.example");
    let ours = all.claim(host).await?;
    let body = Some(json!({"host": host}));
    let theirs = api.call_as(&api.other_key, Method::POST, &all.others_path(), body.clone()).await?.json();
    ensure!(theirs["state"] == "pending" && theirs["record"]["value"] != ours["record"]["value"], "{theirs}");
    // Their record proves nothing of ours.
    all.publish(&theirs)?;
    ensure!(all.verify(host).await?.json()["state"] == "pending");
    let verify = format!("{}/{host}/verify", all.others_path());
    // Our check does not keep them from theirs.
    let proven = api.call_as(&api.other_key, Method::POST, &verify, None).await?.json();
    ensure!(proven["state"] == "verified", "{proven}");

    // Both records are there: the first proof counts.
    all.dns.set(
        &format!("_waymark.{host}"),
        &[
            ours["record"]["value"].as_str().context("ours")?,
            theirs["record"]["value"].as_str().context("theirs")?,
        ],
    );
    let refused = all.verify(host).await?.problem(409, 40901);
    ensure!(refused[0].contains("has proven go.example first"), "{refused:?}");
    ensure!(all.read(host).await?["state"] == "refused");
    api.delete(&format!("{}/{host}", all.path())).await?.must_be(200)?;
    let again = api.call(Method::POST, &all.path(), body.clone()).await?.problem(409, 40901);
    ensure!(again[0].contains("has proven go.example first"), "{again:?}");
    // What the account has, it need not claim.
    for host in ["tn.gg", "TN.GG."] {
        let known = api.post(&all.path(), json!({"host": host})).await?.problem(409, 40901);
        ensure!(known[0].contains("has tn.gg already"), "{known:?}");
    }
    // When they give it up, it can be ours.
    let theirs = format!("{}/{host}", all.others_path());
    ensure!(api.call_as(&api.other_key, Method::DELETE, &theirs, None).await?.status == 200);
    all.prove(host).await?;
    api.call(Method::POST, &all.path(), body).await?.problem(409, 40901);
    ensure!(all.events().await? == [(host.to_owned(), true), (host.to_owned(), true)]);
    Ok(())
}

async fn hosts_that_nobody_can_own_are_refused(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let before = all.api.fingerprint().await?;
    for (host, says) in [
        (json!("go.example:8443"), "no port"),
        (json!("192.0.2.1"), "no address"),
        (json!("*.example.com"), "without a wildcard"),
        (json!("co.uk"), "public suffix"),
        (json!("example"), "public ending"),
        (json!("shop.localhost"), "public name"),
        (json!("https://go.example/"), "a host alone"),
        (json!(7), "must be a string"),
        (json!(null), "host is required"),
        // The host of the API itself.
        (json!("API.example"), "a name of this service"),
    ] {
        let body = Some(json!({"host": host}));
        let faults = all.api.call(Method::POST, &all.path(), body).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(says), "{host}: {faults:?}");
    }
    for uri in ["go.example", "%00", "tn.gg%2F"] {
        let path = format!("{}/{uri}", all.path());
        all.api.get(&path).await?.problem(404, 40401);
        all.api.delete(&path).await?.problem(404, 40401);
        all.api.call(Method::POST, &format!("{path}/verify"), None).await?.problem(404, 40401);
    }
    // What the platform gave needs no proof.
    let given = all.api.call(Method::POST, &format!("{}/tn.gg/verify", all.path()), None).await?;
    ensure!(given.problem(409, 40901)[0].contains("needs no proof"));
    assert_eq!(before, all.api.fingerprint().await?);
    Ok(())
}

async fn checks_and_claims_are_bounded(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let quotas = format!("/platform/accounts/{}/quotas", all.api.made.account);
    let limit = Some(json!({"shortDomains": 11}));
    let set = all.api.call_as(&all.api.platform_key, Method::PUT, &quotas, limit).await?;
    ensure!(set.status == 200 && set.json()["shortDomains"]["limit"] == 11, "{set:?}");
    for n in 0..11 {
        all.claim(&format!("h{n}.example")).await?;
    }
    let full = all.api.post(&all.path(), json!({"host": "h11.example"})).await?;
    let faults = full.problem(403, 40304);
    ensure!(faults[0].contains("shortDomains") && faults[0].contains("11 of 11"), "{faults:?}");
    all.api.delete(&format!("{}/h10.example", all.path())).await?.must_be(200)?;
    all.claim("h11.example").await?;

    // Ten hosts within a minute.
    let ask =
        async |n: u32| all.api.call(Method::POST, &format!("{}/h{n}.example/verify", all.path()), None).await;
    let is_too_many = async |n: u32, says: &str| -> Result<()> {
        let faults = ask(n).await?.problem(429, 42901);
        ensure!(faults[0].contains(says), "{faults:?}");
        Ok(())
    };
    // The claims count, too.
    is_too_many(11, "h11.example was claimed or checked").await?;
    all.pass(PAUSE_MS).await?;
    is_too_many(0, "claimed or checked 10 hosts within a minute").await?;
    all.pass(60_001).await?;
    for n in 0..10 {
        ensure!(ask(n).await?.status == 200, "{n}");
    }
    is_too_many(11, "claimed or checked 10 hosts within a minute").await?;
    is_too_many(9, "h9.example was claimed or checked").await?;
    // A new claim on the same host is no way around.
    all.api.delete(&format!("{}/h0.example", all.path())).await?.must_be(200)?;
    all.claim("h0.example").await?;
    is_too_many(0, "h0.example was claimed or checked").await?;
    all.pass(60_001).await?;
    ensure!(ask(11).await?.status == 200);
    Ok(())
}

/// Stores so many claims of a state.
async fn store_claims(all: &Setting, name: &str, state: State, count: usize) -> Result<()> {
    let mut tx = all.api.made.app.core.db.begin(&Ctx::default()).await?;
    for n in 0..count {
        let host: Host = format!("{name}{n}.example").parse()?;
        let claim = Claim::new(all.api.made.account, host, [7; 16], UnixMillis(0));
        claims::insert(&mut tx, &Claim { state, ..claim }).await?;
    }
    Ok(tx.commit().await?)
}

async fn claims_are_bounded_without_a_quota(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let claim = async || all.api.post(&all.path(), json!({"host": "go.example"})).await;
    store_claims(&all, "pending", State::Pending, 99).await?;
    store_claims(&all, "refused", State::Refused, 1).await?;
    let faults = claim().await?.problem(409, 40901);
    ensure!(faults[0].contains("has 100 short domains that are not proven"), "{faults:?}");
    let remove = async |host: &str| -> Result<()> {
        let mut tx = all.api.made.app.core.db.begin(&Ctx::default()).await?;
        ensure!(claims::delete(&mut tx, all.api.made.account, &host.parse::<Host>()?).await?);
        Ok(tx.commit().await?)
    };
    remove("refused0.example").await?;
    store_claims(&all, "proven", State::Verified, 901).await?;
    let faults = claim().await?.problem(409, 40901);
    ensure!(faults[0].contains("has claimed 1000 short domains"), "{faults:?}");
    remove("proven0.example").await?;
    ensure!(claim().await?.status == 201);
    Ok(())
}

#[tokio::test]
async fn records_come_from_the_server_that_is_named() {
    let dns = DnsServer::start().await.unwrap();
    let resolver = domains::resolver::TxtResolver::new(Some(dns.address));
    let none = resolver.texts("_waymark.a.example").await.unwrap_err();
    assert_eq!(none, domains::resolver::LookupError::NoRecord);
    let long = "x".repeat(400);
    dns.set("_waymark.a.example", &["one", &long]);
    let mut texts = resolver.texts("_waymark.A.example").await.unwrap();
    texts.sort();
    assert_eq!(texts, ["one", long.as_str()], "a text in two parts is one");
    // What was removed is not remembered.
    dns.set("_waymark.a.example", &[]);
    assert_eq!(resolver.texts("_waymark.a.example").await.unwrap_err(), none);
}

/// Answers every connection with these bytes; gives the URL.
async fn answering(answer: Vec<u8>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://localhost:{}/.well-known/waymark-domain.txt", listener.local_addr()?.port());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = vec![0; 4_096];
            // One segment holds the whole request.
            let _ = stream.read(&mut read).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    Ok(url)
}

#[tokio::test]
async fn a_file_says_its_text_without_a_redirect() {
    let egress = tests::db::egress().unwrap();
    let with = |head: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
    };
    let large = format!("token{}", " ".repeat(4_096));
    for (answer, says) in [
        (with("200 OK", "token"), None),
        (with("200 OK", " token\r\n"), None),
        (with("200 OK", "tokens"), Some("another text")),
        (with("200 OK", ""), Some("another text")),
        (with("200 OK", &large), Some("more than 4096 bytes")),
        (with("404 Not Found", "token"), Some("status is 404")),
        (with("302 Found\r\nlocation: https://example.com/", "token"), Some("status is 302")),
        (b"nothing".to_vec(), Some("no answer")),
    ] {
        let url = answering(answer).await.unwrap();
        let read = read_file(&egress, &url, "token").await;
        match says {
            None => assert_eq!(read, Ok(())),
            Some(says) => {
                assert!(read.as_ref().is_err_and(|why| why.to_string().contains(says)), "{says}: {read:?}");
            }
        }
    }
    // A failing server may have the file: it is no answer.
    for (answer, is_answer) in [
        (with("404 Not Found", "token"), true),
        (with("200 OK", "tokens"), true),
        (with("503 Service Unavailable", "token"), false),
        (b"nothing".to_vec(), false),
    ] {
        let url = answering(answer).await.unwrap();
        let no_file = read_file(&egress, &url, "token").await.unwrap_err();
        assert_eq!(matches!(no_file, NoFile::Missing(_)), is_answer, "{no_file:?}");
    }
    // The guard: nothing within the network of the service.
    for url in ["https://10.0.0.1/", "http://go.example/"] {
        assert!(
            read_file(&egress, url, "token")
                .await
                .is_err_and(|why| why.to_string().starts_with("the URL must")),
            "{url}"
        );
    }
}
