//! Invitations that are accepted with a password.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    HOUR_MS, PASSWORD,
    site::{HOME, KEY, Site, text},
};

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

crate::on_both_engines!(a_password_is_set_with_the_invitation);
