//! Invitations that are accepted with a password.

use ::mail::MailSettings;
use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use super::{
    HOUR_MS, PASSWORD,
    site::{HOME, KEY, Site},
};
use crate::mail::{Mode, Program, code_of};

async fn a_password_is_set_with_the_invitation(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let accesses = format!("/accounts/{}/operatorAccess", site.made.account);
    let invite = async |email: &str| -> Result<(String, String)> {
        let body = json!({"email": email, "role": "editor"});
        let made = site.by_key(KEY, Method::POST, &accesses, body).await?.done(201)?;
        Ok((text(&made, "id")?, text(&made, "invitationCode")?))
    };
    let accept = async |body: Value| site.by_key("", Method::POST, "/invitations", body).await;
    let sign_in =
        async |email: &str| site.try_sign_in(json!({"email": email, "password": PASSWORD}), HOME).await;
    let (_, code) = invite("Ada@Example.com").await?;
    ensure!(sign_in("ada@example.com").await?.code() == (401, 40103), "nobody has accepted");
    // What is refused leaves the invitation as it is.
    for (password, fault) in
        [("short", "12 to 256"), ("ada@example.com", "common"), ("password1234", "common")]
    {
        let refused = accept(json!({"code": code, "password": password})).await?;
        ensure!(refused.code() == (400, 40001) && refused.body.to_string().contains(fault), "{refused:?}");
    }
    let refused = accept(json!({"code": "x", "password": PASSWORD})).await?;
    ensure!(refused.code() == (401, 40103), "{refused:?}");
    let accepted =
        accept(json!({"code": code, "password": PASSWORD, "firstName": "Ada"})).await?.done(200)?;
    ensure!(accepted["firstName"] == "Ada" && accepted["apiKey"].is_string(), "{accepted}");
    ensure!(accept(json!({"code": code, "password": PASSWORD})).await?.status == 401, "once");
    let answer = sign_in("ADA@example.com").await?;
    ensure!(answer.status == 200 && answer.body["operator"]["email"] == "Ada@Example.com", "{answer:?}");

    // Without a password all is as it was, and nobody signs in.
    let (_, code) = invite("bob@example.com").await?;
    let accepted = accept(json!({"code": code})).await?.done(200)?;
    ensure!(accepted["apiKey"].is_string(), "{accepted}");
    ensure!(sign_in("bob@example.com").await?.code() == (401, 40103));

    // An invitation that has ended.
    let (_, code) = invite("eve@example.com").await?;
    site.pass(7 * 24 * HOUR_MS);
    let refused = accept(json!({"code": code, "password": PASSWORD})).await?;
    ensure!(refused.code() == (401, 40103), "{refused:?}");
    ensure!(sign_in("eve@example.com").await?.code() == (401, 40103));
    Ok(())
}

/// The code goes to the mailbox where mail is sent: whoever accepts reads the mail of the address.
async fn an_invitation_goes_to_the_mailbox(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let server = program.start(Mode::Plain, 0)?;
    let settings = MailSettings::parse(&server.url(), "Waymark <noreply@example.com>")?;
    let site = Site::new(engine, Some(settings)).await?;
    let accesses = format!("/accounts/{}/operatorAccess", site.made.account);
    let invite = async |email: &str| {
        let body = json!({"email": email, "role": "editor"});
        site.by_key(KEY, Method::POST, &accesses, body).await
    };
    let made = invite("ada@example.com").await?.done(201)?;
    ensure!(made.get("invitationCode").is_none() && made["status"] == "invited", "{made}");
    let mail = server.mail(0).await?;
    ensure!(
        mail["to"] == json!(["ada@example.com"]) && mail["subject"] == "Your invitation to Test",
        "{mail}"
    );
    let old = code_of(&mail)?;
    let uri = format!("{accesses}/{}/invitation", text(&made, "id")?);
    let again = site.by_key(KEY, Method::POST, &uri, Value::Null).await?.done(201)?;
    ensure!(again.get("invitationCode").is_none(), "{again}");
    let code = code_of(&server.mail(1).await?)?;
    let accept = async |code: &str| {
        site.by_key("", Method::POST, "/invitations", json!({"code": code, "password": PASSWORD})).await
    };
    ensure!(accept(&old).await?.code() == (401, 40103), "the other code counts");
    accept(&code).await?.done(200)?;

    // Nobody is invited to an address that takes no mail, nor more often than three times an hour.
    let refused = invite("ops@localhost").await?;
    ensure!(refused.code() == (400, 40001) && refused.body.to_string().contains("email"), "{refused:?}");
    let bob = invite("bob@example.com").await?.done(201)?;
    let uri = format!("{accesses}/{}/invitation", text(&bob, "id")?);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(site.by_key(KEY, Method::POST, &uri, Value::Null).await?.status);
    }
    ensure!(statuses == [201, 201, 429], "{statuses:?}");
    server.mail(4).await?;
    ensure!(server.mails().len() == 5, "{:?}", server.mails());
    Ok(())
}

crate::on_both_engines!(a_password_is_set_with_the_invitation, an_invitation_goes_to_the_mailbox);
