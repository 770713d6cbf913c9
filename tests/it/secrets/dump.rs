//! What somebody can do who reads the whole database, but not the key file.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use catalog::domain::file::{Purport, sign};
use events::domain::webhook;
use kernel::domain::{
    access::{ActorKind, Generation, derive_key},
    page::{Binding, read_token},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use shared::time::UnixMillis;
use tests::{
    db::{Engine, Location},
    fingerprint::fingerprint,
    product::{Options, Product},
};

use super::{Holdings, keys_of, next_page, rows, set_back, text};
use crate::on_both_engines;

on_both_engines!(a_dump_gives_no_key_without_the_key_file);

/// Every run of 32 bytes in a dump, as they stand, or written in hexadecimal digits or Base64.
fn candidates(dump: &[String]) -> HashSet<[u8; 32]> {
    let mut found = HashSet::new();
    let mut add =
        |bytes: &[u8]| found.extend(bytes.windows(32).filter_map(|window| <[u8; 32]>::try_from(window).ok()));
    for row in dump {
        add(row.as_bytes());
        for run in row.split(|c: char| !c.is_ascii_hexdigit()).filter(|run| run.len() >= 64) {
            for run in [run, &run[1..]] {
                let digits: Vec<u8> =
                    run.chars().filter_map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
                add(&digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<_>>());
            }
        }
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
        for run in row.split(|c| !is_base64(c)).filter(|run| run.len() >= 43) {
            for run in (0..4).map(|skip| &run[skip..]) {
                let whole = &run[..run.len() / 4 * 4];
                for text in [whole, run] {
                    add(&BASE64_STANDARD_NO_PAD.decode(text).unwrap_or_default());
                    add(&BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default());
                }
            }
        }
    }
    found
}

/// What of a client's holdings can be made of these bytes.
fn yields(held: &Holdings, account: &str, secret: &[u8; 32]) -> Result<Vec<&'static str>> {
    let mut made = Vec::new();
    let keys = [
        ("application", ActorKind::App, &held.app, &held.app_key),
        ("Thng", ActorKind::Thng, &held.thng, &held.thng_key),
    ];
    for (what, kind, id, key) in keys {
        let mut generations = (0..3).flat_map(|n| [Generation::WithoutPrefix(n), Generation::WithPrefix(n)]);
        if generations.any(|generation| derive_key(secret, kind, id, generation).as_ref() == Some(key)) {
            made.push(what);
        }
    }
    let signed = |url: &str, purport| {
        let (_, query) = url.split_once("?expires=").context("expires")?;
        let (expires, signature) = query.split_once("&signature=").context("signature")?;
        anyhow::Ok(sign(secret, held.file.parse()?, purport, UnixMillis(expires.parse()?)) == signature)
    };
    if signed(&held.content_url, Purport::Download)? || signed(&held.upload_url, Purport::Upload)? {
        made.push("file");
    }
    let webhook = held.webhook.parse()?;
    // The secret itself counts, too.
    let is_secret = |found: &[u8; 32]| webhook::shown(found) == held.webhook_secret;
    if is_secret(secret) || (0..3).any(|version| is_secret(&webhook::secret(secret, webhook, version))) {
        made.push("webhook");
    }
    let (_, token) = held.next.split_once("nextPageToken=").context("token")?;
    let query = [("perPage".to_owned(), "1".to_owned())];
    if read_token(secret, Binding { account, path: "/thngs", query: &query }, token).is_some() {
        made.push("page");
    }
    Ok(made)
}

async fn dump(location: &Location) -> Result<Vec<String>> {
    let tables = fingerprint(location).await?;
    ensure!(tables.contains_key("secrets") && tables.contains_key("idempotency"));
    Ok(tables.into_values().flatten().collect())
}

/// What the candidates of a dump yield, each once. `useless`: those that yielded nothing in an earlier dump, and in this one.
fn loot(
    held: &Holdings,
    account: &str,
    dump: &[String],
    useless: &mut HashSet<[u8; 32]>,
) -> Result<Vec<&'static str>> {
    let mut made = Vec::new();
    for secret in candidates(dump) {
        if useless.contains(&secret) {
            continue;
        }
        let yielded = yields(held, account, &secret)?;
        if yielded.is_empty() {
            useless.insert(secret);
        }
        made.extend(yielded);
    }
    made.sort_unstable();
    made.dedup();
    Ok(made)
}

async fn a_dump_gives_no_key_without_the_key_file(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let held = Holdings::new(&product).await?;
    let (_, access) = product.call(reqwest::Method::GET, "/access", None).await?;
    let account = text(&access, "account")?;
    ensure!(next_page(&product, "/thngs?perPage=1").await? == held.next, "tokens are the same each time");
    // An answer that holds a new key, kept for a caller whose own key is in a public page.
    let create = || {
        let url = format!("{}/auth/evrythng/users?anonymous=true", product.api);
        product
            .http
            .post(url)
            .header("authorization", &held.app_key)
            .header("idempotency-key", "once")
            .json(&json!({}))
    };
    let first = create().send().await?;
    ensure!(first.status() == StatusCode::CREATED, "{}", first.status());
    let user: Value = first.json().await?;
    ensure!(create().send().await?.json::<Value>().await? == user, "a repeat gets the first answer");
    let user_key = text(&user, "evrythngApiKey")?;

    let location = product.location();
    let stolen = dump(&location).await?;
    let mut useless = HashSet::new();
    let found = loot(&held, &account, &stolen, &mut useless)?;
    ensure!(found.is_empty(), "the dump yields {found:?}");
    for (what, key) in [
        ("operator", &product.key),
        ("application", &held.app_key),
        ("Thng", &held.thng_key),
        ("user", &user_key),
        ("webhook", &held.webhook_secret),
    ] {
        ensure!(!stolen.iter().any(|row| row.contains(key)), "the key of the {what} is in the dump");
    }
    let kept: Vec<_> = stolen.iter().filter(|row| row.contains("\"answer\"")).collect();
    ensure!(kept.len() == 1 && kept[0].contains("encrypted") && !kept[0].contains("sealed"), "{kept:?}");
    let public = opened_with_the_key_alone(kept[0], &held.app_key, &account)?;
    ensure!(!public.contains(&user_key), "the public key opens the answer");

    // The search finds all of it in the database of the release before, so it can fail.
    ensure!(product.stop()?.success());
    let keys = keys_of(&product.data.join("secret.key"))?;
    for (name, value) in rows(&location).await? {
        ensure!(keys.open(&name, &value).is_ok(), "{name}");
    }
    set_back(&location, &keys).await?;
    let found = loot(&held, &account, &dump(&location).await?, &mut useless)?;
    ensure!(found == ["Thng", "application", "file", "page", "webhook"], "{found:?}");
    // And that database is taken over as it is.
    product.start_again()?;
    held.work(&product).await?;
    let found = loot(&held, &account, &dump(&location).await?, &mut useless)?;
    ensure!(found.is_empty(), "the dump yields {found:?}");
    Ok(())
}

/// A kept answer as releases before schema 41 encrypted it, tried on every text in Base64 of a row.
fn opened_with_the_key_alone(row: &str, key: &str, account: &str) -> Result<String> {
    let (_, rest) = row.split_once("\"at\"").or_else(|| row.split_once("\\\"at\\\"")).context("no time")?;
    let at: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let mut hasher = blake3::Hasher::new_derive_key("waymark 2026-11 kept answers");
    hasher.update(json!([key, account, "once", at.parse::<i64>()?]).to_string().as_bytes());
    let mut opened = String::new();
    for run in
        row.split(|c: char| !c.is_ascii_alphanumeric() && !"+/".contains(c)).filter(|run| run.len() > 40)
    {
        for skip in [0, 12] {
            let bytes = BASE64_STANDARD_NO_PAD.decode(run).unwrap_or_default();
            let mut bytes = bytes.get(skip..).unwrap_or_default().to_vec();
            let mut stream = vec![0; bytes.len()];
            hasher.finalize_xof().fill(&mut stream);
            bytes.iter_mut().zip(stream).for_each(|(byte, pad)| *byte ^= pad);
            opened.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    ensure!(!opened.is_empty(), "nothing was tried: {row}");
    Ok(opened)
}
