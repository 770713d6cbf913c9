//! Suspensions and take-downs over the real product: by a command beside it and by the API, on the edge and over MQTT.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::{Engine, Location},
    mqtt::{Client, Hello},
    product::{DEADLINE, Options, Product, binary},
};

/// `waymark platform …` on the database of a product; what it says.
async fn platform(product: &Product, args: &[&str]) -> Result<String> {
    let mut command = Command::new(binary()?);
    command.arg("platform").args(args).env("WAYMARK_DATA_DIR", &product.data);
    if let Location::Postgres(url) = product.location() {
        command.env("DATABASE_URL", url);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let (said, error) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success(), "{args:?}: {error}");
    Ok(said.trim().to_owned())
}

async fn with_key(
    product: &Product,
    key: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<(StatusCode, Value)> {
    let request =
        product.http.request(method, format!("{}{path}", product.api)).header(header::AUTHORIZATION, key);
    tests::json::send(request, body).await
}

/// Waits until the edge answers a short id with a status.
async fn until_status(product: &Product, short_id: &str, expected: u16) -> Result<()> {
    let waits = async {
        loop {
            let (status, location) = product.scan(short_id).await?;
            if status == expected {
                ensure!(location.is_some() == (expected == 307), "{status} to {location:?}");
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waits).await.with_context(|| format!("{short_id} is never {expected}"))?
}

async fn a_command_suspends_an_account(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let thing = product.create_product().await?;
    for short_id in ["ABC", "DEF"] {
        product.create_redirection(&thing, "https://example.com/", Some(short_id)).await?;
    }
    assert_eq!(product.scan("ABC").await?.0, 307);
    let listed = platform(&product, &["accounts"]).await?;
    let account = listed.split('\t').next().context("an id")?.to_owned();
    assert!(account.len() == 24 && listed.ends_with("\tactive"), "{listed}");
    let stream =
        product.http.get(format!("{}/events", product.api)).header(header::AUTHORIZATION, &product.key);
    let mut stream = stream.header(header::ACCEPT, "text/event-stream").send().await?;
    ensure!(stream.status() == 200 && stream.chunk().await?.is_some(), "an open stream");
    let client = Client::enter(&product.mqtt, &Hello::new("operator", &product.key)).await?;

    let said = platform(&product, &["suspend", &account, "--reason", "unpaid bills"]).await?;
    assert!(said.ends_with("is suspended."), "{said}");
    // The command waited for the longest time that a process knows a key.
    let (status, body) = product.call(Method::GET, "/access", None).await?;
    assert_eq!((status.as_u16(), &body["code"]), (403, &json!(40303)), "{body}");
    assert!(body["errors"][0].as_str().is_some_and(|text| text.contains("abuse@example.com")), "{body}");
    for short_id in ["ABC", "DEF", "NONE"] {
        until_status(&product, short_id, 403).await?;
    }
    assert_eq!(client.ended().await?, Some(0x87), "the connection of MQTT ends");
    let ended = async { while matches!(stream.chunk().await, Ok(Some(_))) {} };
    tokio::time::timeout(DEADLINE, ended).await.context("the stream does not end")?;
    let (_, answer) = Client::connect(&product.mqtt, &Hello::new("operator", &product.key)).await?;
    assert_eq!(u8::from(answer.reason_code), 0x86, "and no other is let in");
    let listed = platform(&product, &["accounts"]).await?;
    assert!(
        listed.contains("\tsuspended 20") && listed.ends_with("\tcommand line\tunpaid bills"),
        "{listed}"
    );

    // It stays so over a restart of everything.
    product.stop()?;
    product.start_again()?;
    until_status(&product, "ABC", 403).await?;
    platform(&product, &["resume", &account]).await?;
    until_status(&product, "ABC", 307).await?;
    let resumed = async {
        while product.call(Method::GET, "/access", None).await?.0 != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, anyhow::Error>(())
    };
    tokio::time::timeout(DEADLINE, resumed).await??;
    Client::enter(&product.mqtt, &Hello::new("operator", &product.key)).await?;
    Ok(())
}

async fn the_api_takes_links_and_hosts_down(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let thing = product.create_product().await?;
    let record = product.create_redirection(&thing, "https://example.com/", Some("ABC")).await?;
    product.create_redirection(&thing, "https://www.evil.example/", Some("EVIL")).await?;
    let key = platform(&product, &["keys", "create", "--label", "trust and safety"]).await?;
    let domain = record["shortDomain"].as_str().context("domain")?;
    let link = format!("/platform/takedowns/links/{domain}/abc");
    // The answer comes when the edge has it: no scan after it is led anywhere.
    let put = async |path: &str| {
        let path = format!("{path}?wait=edges&timeout=20s");
        let (status, body) =
            with_key(&product, &key, Method::PUT, &path, Some(json!({"reason": "phishing"}))).await?;
        ensure!(status == 200 && body["acked"] == 1 && body["members"] == 1, "{status}: {body}");
        Ok(())
    };
    put(&link).await?;
    assert_eq!(product.scan("ABC").await?, (StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, None));
    put("/platform/takedowns/hosts/evil.example").await?;
    assert_eq!(product.scan("EVIL").await?.0, 451);
    let listed = platform(&product, &["takedowns"]).await?;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with(&format!("{domain}/ABC\tsince 20")), "{listed}");
    assert!(
        lines[1].starts_with("host evil.example\t") && lines[1].ends_with("\tkey trust and safety\tphishing")
    );
    let path = format!("{link}?wait=edges&timeout=20s");
    let (status, body) = with_key(&product, &key, Method::DELETE, &path, None).await?;
    ensure!(status == 200 && body["acked"] == 1, "{status}: {body}");
    assert_eq!(product.scan("ABC").await?.0, 307);
    assert_eq!(platform(&product, &["release", "--host", "evil.example"]).await?, "It is released.");
    until_status(&product, "EVIL", 307).await?;
    // The command takes down, too, for a time.
    let url = record["shortUrl"].as_str().context("shortUrl")?;
    let said = platform(&product, &["take-down", url, "--reason", "spam", "--lasts", "30d"]).await?;
    assert!(said.contains("\tuntil 20") && said.ends_with("\tcommand line\tspam"), "{said}");
    until_status(&product, "ABC", 451).await?;
    let listed = platform(&product, &["keys", "list"]).await?;
    let id = listed.split('\t').next().context("an id")?.to_owned();
    assert!(listed.contains("\ttrust and safety\t") && listed.ends_with("\tvalid"), "{listed}");
    assert_eq!(platform(&product, &["keys", "revoke", &id]).await?, "The key was revoked.");
    let (status, _) = with_key(&product, &key, Method::GET, "/platform/accounts", None).await?;
    assert_eq!(status, 401);
    for wrong in [
        vec!["suspend", "none", "--reason", "x"],
        vec!["take-down", "tn.gg", "--reason", "x"],
        vec!["take-down", "--reason", "x"],
        vec!["release", "--host", "evil.example"],
        // It has links.
        vec!["release-domain", domain],
        vec!["release-domain", "nowhere.example"],
        vec!["keys", "revoke", "none"],
    ] {
        assert!(platform(&product, &wrong).await.is_err(), "{wrong:?}");
    }
    Ok(())
}

crate::on_both_engines!(a_command_suspends_an_account, the_api_takes_links_and_hosts_down);
