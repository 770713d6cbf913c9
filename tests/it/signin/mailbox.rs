//! Another password by mail, over a real server of mail.

use ::mail::MailSettings;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    ANOTHER, HOUR_MS, OWNER, PASSWORD,
    site::{HOME, KEY, Site},
};
use crate::mail::{Mode, Program, code_of};

async fn a_reset_by_mail_works_once_and_ends_pauses(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let server = program.start(Mode::Plain, 0)?;
    let settings = MailSettings::parse(&server.url(), "Waymark <noreply@example.com>")?;
    let site = Site::new(engine, Some(settings)).await?;
    let request = async |email: &str, from: &str| {
        site.ask(None, (Method::POST, "/passwordReset"), json!({"email": email}), from).await
    };
    let reset = async |code: &str, password: &str| {
        let body = json!({"code": code, "password": password});
        site.ask(None, (Method::PUT, "/passwordReset"), body, HOME).await
    };
    // Whoever has no password gets none this way: nobody has shown that the address is right.
    request(OWNER, HOME).await?.done(200)?;
    site.set_password().await?;
    let cookie = site.sign_in().await?;

    // Strangers have slowed the address down; the owner is somewhere new.
    for n in 0..10 {
        let body = json!({"email": OWNER, "password": ANOTHER});
        site.try_sign_in(body, &format!("203.0.{n}.1")).await?;
    }
    let right = json!({"email": OWNER, "password": PASSWORD});
    ensure!(site.try_sign_in(right.clone(), "192.0.2.99").await?.status == 429);
    let known = request("O@example.com", "192.0.2.99").await?;
    let unknown = request("nobody@example.com", "192.0.2.99").await?;
    ensure!(known.status == 200 && known.body == unknown.body, "{known:?} {unknown:?}");
    let mail = server.mail(0).await?;
    ensure!(mail["text"].as_str().context("text")?.contains("operator of Test"), "{mail}");
    let code = code_of(&mail)?;
    for (code, password, fault) in
        [("x", ANOTHER, "code is wrong"), (&*code, "short", "12 to 256"), (&*code, "password1234", "common")]
    {
        let refused = reset(code, password).await?;
        ensure!(refused.code() == (400, 40001) && refused.body.to_string().contains(fault), "{refused:?}");
    }
    let done = reset(&code, ANOTHER).await?;
    ensure!(done.headers.get("set-cookie").is_none(), "it signs nobody in");
    done.done(200)?;
    ensure!(reset(&code, PASSWORD).await?.code() == (400, 40001), "once");
    ensure!(site.status(&cookie).await? == 401, "every session has ended");
    ensure!(site.try_sign_in(right, "192.0.2.99").await?.code() == (401, 40103));
    let new = json!({"email": OWNER, "password": ANOTHER});
    ensure!(site.try_sign_in(new.clone(), "192.0.2.99").await?.status == 200, "the pause has ended");

    // A code lasts an hour, and ends when the password changes.
    request(OWNER, HOME).await?.done(200)?;
    let code = code_of(&server.mail(1).await?)?;
    site.pass(HOUR_MS);
    ensure!(reset(&code, PASSWORD).await?.code() == (400, 40001), "it has expired");
    request(OWNER, HOME).await?.done(200)?;
    let code = code_of(&server.mail(2).await?)?;
    let change = json!({"password": ANOTHER, "newPassword": PASSWORD});
    site.by_key(KEY, Method::PUT, "/me/password", change).await?.done(200)?;
    ensure!(reset(&code, ANOTHER).await?.code() == (400, 40001), "the password was changed");

    // Three times an hour for an address, be it known or not.
    for email in ["nobody@example.org", OWNER] {
        site.pass(2 * HOUR_MS);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(request(email, HOME).await?.status);
        }
        ensure!(statuses == [200, 200, 200, 429], "{email}: {statuses:?}");
    }
    // A reset forgets the networks: whoever had the password before is a stranger again.
    let code = code_of(&server.mail(5).await?)?;
    ensure!(site.count("operator_networks").await? > 0);
    reset(&code, ANOTHER).await?.done(200)?;
    ensure!(site.count("operator_networks").await? == 0);
    Ok(())
}

/// What others ask for keeps nobody from a mail, and no mailbox gets more than three an hour.
async fn strangers_keep_nobody_from_a_reset(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let server = program.start(Mode::Plain, 0)?;
    let settings = MailSettings::parse(&server.url(), "Waymark <noreply@example.com>")?;
    let site = Site::new(engine, Some(settings)).await?;
    site.set_password().await?;
    let request = async |body: Value, from: &str| {
        site.ask(None, (Method::POST, "/passwordReset"), body, from).await?.done(200)
    };
    let (other, _) = site.other_account("somebody@example.com").await?;
    for n in 0..6 {
        let from = format!("203.0.{n}.1");
        request(json!({"email": format!("o+{n}@example.com")}), &from).await?;
        if n < 3 {
            request(json!({"email": OWNER, "account": other.as_str()}), &from).await?;
        }
    }
    let own = request(json!({"email": OWNER}), HOME).await?;
    let mail = server.mail(0).await?;
    ensure!(own["passwordReset"] == "requested" && code_of(&mail).is_ok(), "{mail}");

    // The address in five accounts: a request sends three mails, and the next one none.
    for _ in 0..4 {
        let (account, _) = site.other_account(OWNER).await?;
        site.set_password_in(account, OWNER, PASSWORD).await?;
    }
    site.pass(HOUR_MS);
    for _ in 0..2 {
        request(json!({"email": OWNER}), HOME).await?;
    }
    // They were worked on once another mailbox has its mail.
    site.set_password_in(other, "somebody@example.com", PASSWORD).await?;
    request(json!({"email": "somebody@example.com"}), HOME).await?;
    let last = server.mail(4).await?;
    let to_owner = server.mails().iter().filter(|mail| mail["to"] == json!([OWNER])).count();
    ensure!(to_owner == 4 && last["to"] == json!(["somebody@example.com"]), "{:?}", server.mails());
    Ok(())
}

async fn without_mail_nobody_resets_a_password(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    for email in [OWNER, "nobody@example.com"] {
        let body = json!({"email": email});
        let refused = site.ask(None, (Method::POST, "/passwordReset"), body, HOME).await?;
        ensure!(refused.code() == (409, 40904), "{refused:?}");
    }
    let malformed = site.ask(None, (Method::POST, "/passwordReset"), json!({"account": 1}), HOME).await?;
    ensure!(malformed.body["errors"].as_array().is_some_and(|all| all.len() == 2), "{malformed:?}");
    ensure!(malformed.body["status"] == Value::from(400));
    Ok(())
}

crate::on_both_engines!(
    a_reset_by_mail_works_once_and_ends_pauses,
    strangers_keep_nobody_from_a_reset,
    without_mail_nobody_resets_a_password,
);
