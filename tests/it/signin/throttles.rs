//! Guesses of passwords: they are slowed down, and shut nobody out.

use anyhow::{Result, ensure};
use axum::http::{HeaderMap, Method};
use serde_json::{Value, json};
use tests::db::Engine;
use web::limiter::Limits;

use super::{
    ANOTHER, OWNER, PASSWORD,
    site::{Answer, HOME, Site},
};

fn guess(email: &str) -> Value {
    json!({"email": email, "password": ANOTHER})
}

async fn a_thousand_guesses_from_200_networks_get_nowhere(engine: Engine) -> Result<()> {
    let site = Site::with_limits(engine, None, Limits::default()).await?;
    site.set_password().await?;
    // The owner signed in from home before.
    let cookie = site.sign_in().await?;
    let (mut tried, mut paused) = (0, 0);
    for n in 0..1_000 {
        let from = format!("203.{}.{}.1", n / 100, n % 200);
        // The last one has the right password, and is paused as the others.
        let body = if n == 999 { json!({"email": OWNER, "password": PASSWORD}) } else { guess(OWNER) };
        let answer = site.try_sign_in(body, &from).await?;
        match answer.code() {
            (401, 40103) => tried += 1,
            (429, 42901) => {
                ensure!(answer.retry_after().is_some_and(|s| (1..=3_600).contains(&s)), "{answer:?}");
                paused += 1;
            }
            other => anyhow::bail!("{n}: {other:?}"),
        }
        // A thousand of them in an hour.
        site.pass(3_600);
    }
    ensure!((5..=12).contains(&tried) && tried + paused == 1_000, "{tried} compared, {paused} paused");
    // The owner gets in from home at once, and its session was never in question.
    site.sign_in().await?;
    ensure!(site.status(&cookie).await? == 200);
    // From home a few mistakes are free, and slow down nobody elsewhere.
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(site.try_sign_in(guess(OWNER), HOME).await?.status);
    }
    ensure!(statuses == [401, 401, 401, 401, 401, 429, 429], "{statuses:?}");
    // At home, too, the counts with and without the account differ: they do not tell in which account the address is.
    let mut named = json!({"email": OWNER, "password": PASSWORD});
    named["account"] = json!(site.made.account.as_str());
    site.try_sign_in(named, HOME).await?.done(200)?;
    Ok(())
}

/// One with a password, and four without one that could be meant.
const EMAILS: [&str; 5] =
    [OWNER, "nobody@example.com", "invited@example.com", "bare@example.com", "twice@example.com"];

/// What an answer says, but for the id and the time of the request.
fn told(answer: Answer) -> (u16, HeaderMap, Value) {
    let Answer { status, mut headers, body } = answer;
    headers.remove("x-request-id");
    (status, headers, body)
}

async fn unknown_addresses_are_answered_as_known_ones(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    // One who was invited, and one who accepted without a password.
    let accesses = format!("/accounts/{}/operatorAccess", site.made.account);
    let mut codes = Vec::new();
    for email in ["invited@example.com", "bare@example.com"] {
        let body = json!({"email": email, "role": "viewer"});
        let invited = site.by_key(super::site::KEY, Method::POST, &accesses, body).await?.done(201)?;
        codes.push(invited["invitationCode"].clone());
    }
    site.by_key("", Method::POST, "/invitations", json!({"code": codes[1]})).await?.done(200)?;
    // Of two operators with one address nobody is meant, if nobody says which account.
    for account in [site.made.account, site.other_account("twice@example.com").await?.0] {
        if account == site.made.account {
            site.colleague("twice@example.com", "viewer").await?;
        } else {
            site.set_password_in(account, "twice@example.com", PASSWORD).await?;
        }
    }
    let account = site.made.account.to_string();
    for named in [None, Some(&account)] {
        let mut by_address = Vec::new();
        for email in EMAILS {
            let mut answers = Vec::new();
            for n in 0..7 {
                let mut body = guess(email);
                body["account"] = json!(named);
                answers.push(told(site.try_sign_in(body, &format!("203.0.{n}.1")).await?));
            }
            by_address.push(answers);
        }
        ensure!(by_address.iter().all(|answers| *answers == by_address[0]), "{by_address:#?}");
        let statuses: Vec<u16> = by_address[0].iter().map(|(status, ..)| *status).collect();
        ensure!(statuses == [401, 401, 401, 401, 401, 429, 429], "{statuses:?}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_thousand_guesses_from_200_networks_get_nowhere,
    unknown_addresses_are_answered_as_known_ones,
);
