//! Mails while there is no server that takes them.

use std::time::{Duration, Instant};

use ::mail::MailSettings;
use anyhow::{Result, ensure};
use serde_json::Value;
use tests::{db::Engine, json::text};

use super::{ADA, HOUR_MS, Mode, PASSWORD, Program, closed_port, code_of, server, site::Site};
use crate::{on_both_engines, store::redirections::execute};

/// A server that accepts and answers nothing, then none at all, then one that works.
async fn mail_waits_for_its_server(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = silent.local_addr()?.port();
    let url = format!("smtps://{}@127.0.0.1:{port}", server::LOGIN);
    let settings = MailSettings::parse(&url, "noreply@example.com")?;
    let settings = settings.with_ca(std::fs::read(program.certificate())?)?;
    let site = Site::new(engine, Some(settings)).await?;
    let begun = Instant::now();
    let new = site.register(ADA, PASSWORD).await?.done(201)?;
    let (held, _) = silent.accept().await?;
    for n in 0..20 {
        site.register(&format!("{n}@example.com"), PASSWORD).await?.done(201)?;
    }
    site.register("nobody@example.com", PASSWORD).await?.done(201)?;
    ensure!(begun.elapsed() < Duration::from_secs(20), "a silent server holds up requests");
    let metrics = &site.made.app.users.outbox.metrics;
    ensure!(metrics.sent.get() == 0);
    drop((held, silent));
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(metrics.failed.get() > 0, "there is no server");
    let server = program.start(Mode::Tls, port)?;
    server.mail(20).await?;
    let begun = Instant::now();
    while metrics.refused.get() == 0 && begun.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(metrics.refused.get() == 1 && metrics.given_up.get() == 0, "the server refuses one for good");
    let mails = server.mails();
    let mut to: Vec<String> = mails.iter().map(|mail| mail["to"].to_string()).collect();
    to.sort();
    to.dedup();
    ensure!(mails.len() == 21 && to.len() == 21, "each once: {mails:?}");
    let mine = mails.iter().find(|mail| mail["to"].to_string().contains("da@"));
    let code = code_of(mine.unwrap_or(&Value::Null))?;
    site.activate(&text(&new, "evrythngUser")?, &code).await?.done(201)?;
    Ok(())
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        ensure!(begun.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Without a server a mail is retried for a day, or until the code in it expires.
async fn mail_without_a_server_is_given_up(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let port = closed_port()?;
    let settings = MailSettings::parse(&format!("smtp://127.0.0.1:{port}?tls=off"), "noreply@example.com")?;
    let site = Site::new(engine, Some(settings)).await?;
    let metrics = &site.made.app.users.outbox.metrics;
    // Makes the waiting mails older.
    let age = async |hours: i64| {
        let sql = format!("UPDATE mails SET due_at = 0, created_at = created_at - {}", hours * HOUR_MS);
        execute(&site.made, &sql).await
    };
    site.register(ADA, PASSWORD).await?.done(201)?;
    until("a first try", || metrics.failed.get() > 0).await?;
    ensure!(metrics.given_up.get() == 0);
    age(24).await?;
    until("the end of the tries", || metrics.given_up.get() == 1).await?;
    site.request_reset(ADA).await?.done(200)?;
    let failed = metrics.failed.get();
    until("a try of the reset", || metrics.failed.get() > failed).await?;
    // The server is there again, but the code has expired.
    let server = program.start(Mode::Plain, port)?;
    age(1).await?;
    until("the end of the reset", || metrics.given_up.get() == 2).await?;
    ensure!(server.mails().is_empty() && metrics.sent.get() == 0, "{:?}", server.mails());
    Ok(())
}

on_both_engines!(mail_waits_for_its_server, mail_without_a_server_is_given_up);
