//! How many mails an account sends in an hour, and how many a mailbox gets.

use ::mail::MailSettings;
use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::json;
use tests::db::Engine;

use super::{ADA, HOUR_MS, PASSWORD, closed_port, site::Site};
use crate::on_both_engines;

async fn an_account_sends_so_many_mails_an_hour(engine: Engine) -> Result<()> {
    let url = format!("smtp://127.0.0.1:{}?tls=off", closed_port()?);
    let settings = MailSettings { per_account: 3, ..MailSettings::parse(&url, "noreply@example.com")? };
    let site = Site::new(engine, Some(settings)).await?;
    for email in [ADA, "bob@example.com", "cy@example.com"] {
        site.register(email, PASSWORD).await?.done(201)?;
    }
    // Resets are counted apart.
    for email in [ADA, "bob@example.com", "cy@example.com"] {
        site.request_reset(email).await?.done(200)?;
    }
    // The limit applies to known and unknown addresses alike.
    let (known, unknown) = (site.request_reset(ADA).await?, site.request_reset("eve@example.com").await?);
    let seconds = known.retry_after;
    ensure!(known.status == 429 && seconds.is_some_and(|seconds| seconds <= 3_600), "{known:?}");
    ensure!(known == unknown, "{known:?} {unknown:?}");
    let refused = site.register("eve@example.com", PASSWORD).await?;
    ensure!(refused.status == 429 && refused.retry_after == seconds, "{refused:?}");
    // Users without a name need no mail.
    site.ask(Method::POST, "/auth/evrythng/users?anonymous=true", json!({})).await?.done(201)?;
    site.pass(HOUR_MS);
    site.register("eve@example.com", PASSWORD).await?.done(201)?;
    Ok(())
}

/// Three mails of a kind per hour and mailbox, `+` suffixes included; more are 429.
async fn a_mailbox_gets_so_many_mails_an_hour(engine: Engine) -> Result<()> {
    let url = format!("smtp://127.0.0.1:{}?tls=off", closed_port()?);
    let site = Site::new(engine, Some(MailSettings::parse(&url, "noreply@example.com")?)).await?;
    for email in ["ada@example.com", "ada+1@example.com", "ADA+2@example.com"] {
        site.register(email, PASSWORD).await?.done(201)?;
    }
    for email in ["ada@example.com", "ada+3@example.com"] {
        let refused = site.register(email, PASSWORD).await?;
        ensure!(refused.status == 429 && refused.retry_after.is_some(), "{refused:?}");
    }
    site.request_reset("ada@example.com").await?.done(200)?;
    site.register("bob@example.com", PASSWORD).await?.done(201)?;
    Ok(())
}

on_both_engines!(an_account_sends_so_many_mails_an_hour, a_mailbox_gets_so_many_mails_an_hour);
