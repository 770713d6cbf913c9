//! Nobody gets into a suspended account, whichever way in.

use ::mail::MailSettings;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use hosting::service::{By, accounts};
use kernel::store::Ctx;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::time::{Clock, UnixMillis};
use signin::store::operator_codes::RESETS;
use tenants::{
    domain::operator::{Invitation, Operator},
    store::operators,
};
use tests::{db::Engine, fingerprint::fingerprint, json::text};

use super::{
    ANOTHER, HOUR_MS, OWNER, PASSWORD,
    site::{HOME, KEY, Site},
};

async fn no_way_in_works_while_an_account_is_suspended(engine: Engine) -> Result<()> {
    // Nobody is there to take mails, so they stay in the outbox.
    let settings = MailSettings::parse("smtps://mail.invalid", "Waymark <noreply@example.com>")?;
    let site = Site::new(engine, Some(settings)).await?;
    site.set_password().await?;
    let core = &site.made.app.core;
    let account = site.made.account;
    let accesses = format!("/accounts/{account}/operatorAccess");
    let body = json!({"email": "ada@example.com", "role": "editor"});
    let invited = site.by_key(KEY, Method::POST, &accesses, body).await?.done(201)?;
    // Codes go to mailboxes: these are known here because their hashes are put into the tables.
    let (invitation, code) = ("i".repeat(80), "c".repeat(80));
    let until = UnixMillis(site.clock.now().0 + HOUR_MS);
    let hash = |code: &str| -> [u8; 32] { Sha256::digest(code.as_bytes()).into() };
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let ada = operators::find_locked(&mut tx, account, text(&invited, "id")?.parse()?).await?;
    let invited = Some(Invitation { code: hash(&invitation), until });
    operators::update(&mut tx, &Operator { invitation: invited, ..ada.context("the invited")? }).await?;
    RESETS.insert(&mut tx, &hash(&code), account, site.made.operator, until).await?;
    tx.commit().await?;

    let sign_in =
        async |password: &str| site.try_sign_in(json!({"email": OWNER, "password": password}), HOME).await;
    let accept = async |code: &str| {
        let body = json!({"code": code, "password": PASSWORD});
        site.by_key("", Method::POST, "/invitations", body).await
    };
    let reset =
        async |method: Method, body: Value| site.ask(None, (method, "/passwordReset"), body, HOME).await;
    let by = By::command("tests", site.clock.now());
    accounts::suspend(&core.db, &by, account.as_str(), "unpaid").await?;
    core.key_lookups.revoked();
    let ways_in = async || {
        let mut tables = fingerprint(&site.made.db.location).await?;
        // Tries are counted whatever comes of them, and the invitation is tried to be sent.
        tables.retain(|table, _| !table.contains("attempts"));
        let mails = tables.remove("mails").map(|rows| rows.len());
        Ok::<_, anyhow::Error>((tables, mails))
    };
    let before = ways_in().await?;
    // Whoever does not know the secret does not learn that the account is suspended.
    for answer in [sign_in(ANOTHER).await?, accept("x").await?] {
        ensure!(answer.code() == (401, 40103), "{answer:?}");
    }
    let wrong = reset(Method::PUT, json!({"code": "x", "password": ANOTHER})).await?;
    ensure!(wrong.code() == (400, 40001), "{wrong:?}");
    let asked = reset(Method::POST, json!({"email": OWNER})).await?;
    let nobody = reset(Method::POST, json!({"email": "nobody@example.com"})).await?;
    ensure!(asked.status == 200 && asked.body == nobody.body, "{asked:?}");
    for answer in [
        sign_in(PASSWORD).await?,
        accept(&invitation).await?,
        reset(Method::PUT, json!({"code": code, "password": ANOTHER})).await?,
    ] {
        ensure!(answer.code() == (403, 40303), "{answer:?}");
        ensure!(answer.headers.get("set-cookie").is_none(), "{answer:?}");
        ensure!(answer.body.to_string().contains("abuse@example.com"), "{answer:?}");
    }
    ensure!(ways_in().await? == before, "no session, no mail, no password");

    accounts::resume(&core.db, &by, account.as_str()).await?;
    core.key_lookups.revoked();
    ensure!(sign_in(PASSWORD).await?.status == 200);
    accept(&invitation).await?.done(200)?;
    reset(Method::PUT, json!({"code": code, "password": ANOTHER})).await?.done(200)?;
    Ok(())
}

crate::on_both_engines!(no_way_in_works_while_an_account_is_suspended);
