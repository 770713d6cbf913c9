//! What the database holds of secrets, and what the audit trail holds of writes.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use shared::time::Clock as _;
use signin::domain::token::Token;
use tests::{db::Engine, fingerprint::fingerprint, json::text};

use super::{
    ANOTHER, OWNER, PASSWORD,
    authenticator::Authenticator,
    links,
    site::{HOME, KEY, Site},
};

/// A text in each form in which a database could show it: plain, and as hexadecimal digits of both cases.
fn forms(secret: &[u8]) -> Vec<String> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![String::from_utf8_lossy(secret).into_owned(), hex.to_uppercase(), hex]
}

async fn a_dump_of_the_database_holds_no_secret(engine: Engine) -> Result<()> {
    let (site, mut app) = (Site::with_password(engine).await?, Authenticator::install()?);
    let cookie = site.sign_in().await?;
    let begun = site.with(&cookie, Method::POST, "/totp", json!({"password": PASSWORD})).await?.done(200)?;
    let url = text(&begun, "otpauthUrl")?;
    let code = json!({"code": app.code(&url, site.clock.now().0)?});
    let codes = site.with(&cookie, Method::PUT, "/totp", code).await?.done(200)?;
    let dump = format!("{:?}", fingerprint(&site.made.db.location).await?);
    let value = cookie.split_once('=').context("pair")?.1;
    let key = Token::find([&*cookie].into_iter()).context("token")?.key(&site.made.app.core.secrets.sign_in);
    let secret = text(&begun, "secret")?;
    let mut secrets = vec![
        value.as_bytes().to_vec(),
        URL_SAFE_NO_PAD.decode(value)?,
        key.context("key")?.into_bytes(),
        secret.clone().into_bytes(),
        base32(&secret),
        PASSWORD.as_bytes().to_vec(),
    ];
    for code in codes["recoveryCodes"].as_array().context("codes")? {
        let code = code.as_str().context("code")?;
        secrets.extend([code.as_bytes().to_vec(), code.replace('-', "").into_bytes()]);
    }
    ensure!(secrets.len() == 26 && dump.contains("$argon2id$"), "{dump}");
    for secret in &secrets {
        for form in forms(secret) {
            ensure!(!dump.contains(&form), "the database holds {form}");
        }
    }
    Ok(())
}

fn base32(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<usize> = text
        .bytes()
        .filter_map(|c| digits.iter().position(|digit| *digit == c))
        .flat_map(|value| (0..5).rev().map(move |bit| value >> bit & 1))
        .collect();
    let byte = |bits: &[usize]| u8::try_from(bits.iter().fold(0, |value, bit| value << 1 | bit)).unwrap();
    bits.chunks_exact(8).map(byte).collect()
}

/// Each write of the console's routes leaves an entry, with who did it and no secret.
async fn every_write_of_the_console_is_noted(engine: Engine) -> Result<()> {
    let (site, mut app) = (Site::with_password(engine).await?, Authenticator::install()?);
    let cookie = site.sign_in().await?;
    let other = site.sign_in().await?;
    let listed = site.with(&cookie, Method::GET, "/sessions", Value::Null).await?.body;
    let other_id = listed
        .as_array()
        .into_iter()
        .flatten()
        .find_map(|session| (session["current"] == false).then(|| text(session, "id")))
        .context("another session")??;
    ensure!(site.status(&other).await? == 200);
    let delete = format!("/sessions/{other_id}");
    site.with(&cookie, Method::DELETE, &delete, Value::Null).await?.done(200)?;
    let begun = site.with(&cookie, Method::POST, "/totp", json!({"password": PASSWORD})).await?.done(200)?;
    let url = text(&begun, "otpauthUrl")?;
    let code = json!({"code": app.code(&url, site.clock.now().0)?});
    let codes = site.with(&cookie, Method::PUT, "/totp", code).await?.done(200)?;
    let both = |at: usize| json!({"password": PASSWORD, "recoveryCode": codes["recoveryCodes"][at]});
    let fresh = site.with(&cookie, Method::POST, "/recoveryCodes", both(0)).await?.done(200)?;
    let both = json!({"password": PASSWORD, "recoveryCode": fresh["recoveryCodes"][0]});
    site.with(&cookie, Method::POST, "/totp/disable", both).await?.done(200)?;
    site.with(&cookie, Method::DELETE, "/session", Value::Null).await?.done(200)?;
    let change = json!({"password": PASSWORD, "newPassword": ANOTHER});
    site.by_key(KEY, Method::PUT, "/me/password", change).await?.done(200)?;
    let link = links::made(&site).await?.context("a link")?;
    links::follow(&site, &link).await?.done(200)?;
    // The mail waits: the server is not there. Its code is made after the answer.
    let app_with_mail = Site::new(engine, Some(unreachable_mail()?)).await?;
    app_with_mail.set_password().await?;
    let request = (Method::POST, "/passwordReset");
    app_with_mail.ask(None, request, json!({"email": OWNER}), HOME).await?.done(200)?;
    let begun = Instant::now();
    while app_with_mail.count("operator_password_resets").await? == 0 {
        ensure!(begun.elapsed() < Duration::from_secs(10), "no code is made");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let hash: [u8; 32] = sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix("C")).into();
    let core = &app_with_mail.made.app.core;
    let mut tx = core.db.begin(&kernel::store::Ctx::default()).await?;
    let until = shared::time::UnixMillis(i64::MAX);
    let made = &app_with_mail.made;
    signin::store::operator_codes::RESETS.insert(&mut tx, &hash, made.account, made.operator, until).await?;
    tx.commit().await?;
    let body = json!({"code": "C", "password": ANOTHER});
    app_with_mail.ask(None, (Method::PUT, "/passwordReset"), body, HOME).await?.done(200)?;

    let mut noted = BTreeSet::new();
    for site in [&site, &app_with_mail] {
        let entries = site.by_key(KEY, Method::GET, "/audit?perPage=100", Value::Null).await?.done(200)?;
        for entry in entries.as_array().context("entries")? {
            if entry["actorType"] == "commandLine" {
                continue;
            }
            let is_reset_request = entry["operation"] == "POST /console/api/passwordReset";
            ensure!(is_reset_request || entry["actor"] == site.made.operator.as_str(), "{entry}");
            ensure!(entry["requestId"].as_str().is_some_and(|id| !id.is_empty()), "{entry}");
            noted.insert(text(entry, "operation")?);
            let shown = entry.to_string();
            ensure!(!shown.contains(PASSWORD) && !shown.contains("argon2"), "{shown}");
        }
    }
    let document = control::http::document();
    let mut writes = BTreeSet::from(["PUT /me/password".to_owned()]);
    for (path, item) in document["paths"].as_object().context("paths")? {
        for method in item.as_object().into_iter().flatten().map(|(method, _)| method.to_uppercase()) {
            // `oidc` looks at these: they need a provider.
            let is_of_provider = path.starts_with("/console/api/identities");
            if path.starts_with("/console/") && method != "GET" && !is_of_provider {
                writes.insert(format!("{method} {path}"));
            }
        }
    }
    let missing: Vec<_> = writes.difference(&noted).collect();
    ensure!(missing.is_empty(), "without an entry: {missing:?}");
    Ok(())
}

fn unreachable_mail() -> Result<::mail::MailSettings> {
    Ok(::mail::MailSettings::parse("smtps://mail.invalid", "noreply@example.com")?)
}

crate::on_both_engines!(a_dump_of_the_database_holds_no_secret, every_write_of_the_console_is_noted);
