//! Mail to users of applications: activation and password reset, over a real server of mail (`aiosmtpd` from PyPI).

mod limits;
mod product;
mod server;
mod site;
mod waiting;

use std::time::{Duration, Instant};

use ::mail::MailSettings;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::text, product::root};

use crate::store::redirections::execute;

pub(crate) use self::server::{Mode, Program, code_of};
use self::{server::Server, site::Site};

const ADA: &str = "Ada@Example.com";
const PASSWORD: &str = "a long sentence is best";
const ANOTHER: &str = "a longer sentence is better";
const HOUR_MS: i64 = 3_600_000;

fn settings(program: &Program, server: &Server) -> Result<MailSettings> {
    let settings = MailSettings::parse(&server.url(), "Waymark <noreply@example.com>")?;
    Ok(settings.with_ca(std::fs::read(program.certificate())?)?)
}

/// A server, and an API that sends by it.
async fn with_server(engine: Engine, mode: Mode) -> Result<(Program, Server, Site)> {
    let program = Program::install()?;
    let server = program.start(mode, 0)?;
    let site = Site::new(engine, Some(settings(&program, &server)?)).await?;
    Ok((program, server, site))
}

/// A port on which nobody listens.
fn closed_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A user that was activated by the first mail of a server.
async fn active(site: &Site, server: &Server) -> Result<Value> {
    let new = site.register(ADA, PASSWORD).await?.done(201)?;
    let code = code_of(&server.mail(0).await?)?;
    site.activate(&text(&new, "evrythngUser")?, &code).await?.done(201)
}

async fn codes_work_once_and_expire(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::StartTls).await?;
    let new = site.register(ADA, PASSWORD).await?.done(201)?;
    let id = text(&new, "evrythngUser")?;
    ensure!(new == json!({"evrythngUser": id, "status": "inactive", "email": ADA}), "{new}");
    let code = code_of(&server.mail(0).await?)?;
    site.pass(7 * 24 * HOUR_MS);
    ensure!(site.activate(&id, &code).await?.status == 404, "it has expired");
    ensure!(site.log_in(ADA, PASSWORD).await?.status == 401);

    // Whoever registers again gets another code, and the first registration is gone.
    let new = site.register("ada@example.com", PASSWORD).await?.done(201)?;
    let (old, id) = (id, text(&new, "evrythngUser")?);
    let code = code_of(&server.mail(1).await?)?;
    for (id, code) in [(&old, &code), (&id, &"x".repeat(80))] {
        ensure!(site.activate(id, code).await?.status == 404, "{id}");
    }
    site.activate_with(&id, &code, PASSWORD).await?.done(201)?;
    ensure!(site.activate(&id, &code).await?.status == 404, "it was used");
    let first = text(&site.log_in(ADA, PASSWORD).await?.done(200)?, "evrythngApiKey")?;

    // A reset: once, within an hour, of a good password.
    site.request_reset(ADA).await?.done(200)?;
    let late = code_of(&server.mail(2).await?)?;
    site.pass(HOUR_MS);
    ensure!(site.reset(&late, ANOTHER).await?.status == 400, "it has expired");
    site.request_reset(ADA).await?.done(200)?;
    let code = code_of(&server.mail(3).await?)?;
    for bad in ["short", "password1234", "ada@example.com"] {
        ensure!(site.reset(&code, bad).await?.status == 400, "{bad}");
    }
    let second = text(&site.reset(&code, ANOTHER).await?.done(200)?, "evrythngApiKey")?;
    ensure!(site.reset(&code, ANOTHER).await?.status == 400, "it was used");
    ensure!(site.log_in(ADA, PASSWORD).await?.status == 401);
    ensure!(site.call(&first, Method::GET, "/access", json!({})).await?.status == 401, "the login ended");

    // A change asks for the old password, and ends the other logins.
    let third = text(&site.log_in(ADA, ANOTHER).await?.done(200)?, "evrythngApiKey")?;
    let uri = format!("/users/{id}/password");
    let change = async |old: &str, new: &str| {
        site.call(&third, Method::PUT, &uri, json!({"password": old, "newPassword": new})).await
    };
    ensure!(change(PASSWORD, PASSWORD).await?.status == 400, "the old password is wrong");
    ensure!(change(ANOTHER, "qwertyuiop123").await?.status == 400, "it is common");
    change(ANOTHER, PASSWORD).await?.done(200)?;
    ensure!(site.call(&second, Method::GET, "/access", json!({})).await?.status == 401);
    ensure!(site.call(&third, Method::GET, "/access", json!({})).await?.status == 200);
    site.log_in(ADA, PASSWORD).await?.done(200)?;
    let other =
        site.operate(Method::PUT, &uri, json!({"password": PASSWORD, "newPassword": ANOTHER})).await?;
    ensure!(other.status == 403, "{other:?}");
    ensure!(server.mails().len() == 4, "{:?}", server.mails());
    Ok(())
}

/// A stranger registers the address; its owner activates the user with a password of its own.
async fn whoever_activates_may_choose_the_password(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    let new = site.register(ADA, PASSWORD).await?.done(201)?;
    let id = text(&new, "evrythngUser")?;
    let code = code_of(&server.mail(0).await?)?;
    for (code, password, status) in
        [("x".repeat(80), ANOTHER, 404), (code.clone(), "short", 400), (code.clone(), "qwertyuiop123", 400)]
    {
        ensure!(site.activate_with(&id, &code, password).await?.status == status, "{password}");
    }
    site.activate_with(&id, &code, ANOTHER).await?.done(201)?;
    ensure!(site.log_in(ADA, PASSWORD).await?.status == 401, "the password of the registration");
    site.log_in(ADA, ANOTHER).await?.done(200)?;
    ensure!(site.activate_with(&id, &code, PASSWORD).await?.status == 404, "the code was used");
    Ok(())
}

/// A stranger registers an address again before its owner has activated it: neither password counts.
async fn a_repeated_registration_has_no_password(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    site.register(ADA, PASSWORD).await?.done(201)?;
    ensure!(!text(&server.mail(0).await?, "text")?.contains("registered before"), "once only");
    let stranger = site.register(ADA, ANOTHER).await?.done(201)?;
    let mail = server.mail(1).await?;
    ensure!(text(&mail, "text")?.contains("registered before"), "{mail}");
    // As a client does that knows the code alone.
    let user = site.activate(&text(&stranger, "evrythngUser")?, &code_of(&mail)?).await?.done(201)?;
    for password in [ANOTHER, PASSWORD] {
        ensure!(site.log_in(ADA, password).await?.status == 401, "{password}");
    }
    let key = text(&user, "evrythngApiKey")?;
    let uri = format!("/users/{}/password", text(&user, "evrythngUser")?);
    let change = json!({"password": ANOTHER, "newPassword": PASSWORD});
    ensure!(site.call(&key, Method::PUT, &uri, change).await?.status == 400);
    // The owner of the mailbox sets one.
    site.request_reset(ADA).await?.done(200)?;
    site.reset(&code_of(&server.mail(2).await?)?, PASSWORD).await?.done(200)?;
    site.log_in(ADA, PASSWORD).await?.done(200)?;
    Ok(())
}

/// Strangers who ask for other forms of an address keep nobody from a reset, and its mailbox gets three mails an hour.
async fn strangers_keep_nobody_from_a_reset(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    active(&site, &server).await?;
    for n in 0..5 {
        site.request_reset(&format!("ada+{n}@example.com")).await?.done(200)?;
    }
    site.request_reset(ADA).await?.done(200)?;
    site.reset(&code_of(&server.mail(1).await?)?, ANOTHER).await?.done(200)?;
    // Users of one mailbox: their mails are counted together, and nobody is told.
    for n in 0..3 {
        let new = site.register(&format!("bob+{n}@example.com"), PASSWORD).await?.done(201)?;
        let code = code_of(&server.mail(2 + n).await?)?;
        site.activate(&text(&new, "evrythngUser")?, &code).await?.done(201)?;
    }
    site.pass(HOUR_MS);
    for n in [0, 0, 1, 1, 2] {
        site.request_reset(&format!("bob+{n}@example.com")).await?.done(200)?;
    }
    site.request_reset(ADA).await?.done(200)?;
    server.mail(8).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let to_bob = |mail: &Value| {
        mail["to"].to_string().contains("bob+") && mail["subject"].to_string().contains("Reset")
    };
    let mails = server.mails();
    ensure!(mails.iter().filter(|mail| to_bob(mail)).count() == 3 && mails.len() == 9, "{mails:?}");
    Ok(())
}

/// Codes that callers got end when the account switches to codes by mail.
async fn codes_of_callers_end_with_the_switch_to_mail(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let account = format!("/accounts/{}", site.made.account);
    let switch = async |kind: &str| {
        site.operate(Method::PUT, &account, json!({"userRegistration": kind})).await?.done(200)
    };
    switch("caller").await?;
    let new = site.register(ADA, PASSWORD).await?.done(201)?;
    let (id, code) = (text(&new, "evrythngUser")?, text(&new, "activationCode")?);
    switch("caller").await?;
    let other = site.register("bob@example.com", PASSWORD).await?.done(201)?;
    let (bob, of_bob) = (text(&other, "evrythngUser")?, text(&other, "activationCode")?);
    site.activate(&bob, &of_bob).await?.done(201)?;
    switch("mail").await?;
    ensure!(site.activate(&id, &code).await?.status == 404);
    site.log_in("bob@example.com", PASSWORD).await?.done(200)?;
    // It is removed as others are that nobody confirmed.
    site.pass(38 * 24 * HOUR_MS);
    applications::service::users::purge(&site.made.app.core).await?;
    ensure!(site.operate(Method::GET, &format!("/users/{id}"), json!({})).await?.status == 404);
    Ok(())
}

/// Neither answers nor their order of time tell whether an address has a user; its mailbox does.
async fn answers_do_not_tell_whether_an_address_is_known(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    active(&site, &server).await?;
    let same = |id: Value, mut body: Value| {
        ensure!(body["evrythngUser"].as_str().is_some_and(|id| id.len() == 24), "{body}");
        body["evrythngUser"] = id;
        Ok(body)
    };
    let known = site.register(ADA, PASSWORD).await?.done(201)?;
    let id = text(&known, "evrythngUser")?;
    let unknown = site.register("Bob@Example.com", PASSWORD).await?.done(201)?;
    let told = same(json!(""), known)?.to_string().replace("Ada", "Bob");
    let of_unknown = same(json!(""), unknown.clone())?.to_string();
    ensure!(told == of_unknown, "{told} {of_unknown}");
    // Nobody has the id of the one, and the other's code is not known.
    let mut told = Vec::new();
    for id in [id, text(&unknown, "evrythngUser")?] {
        let answer = site.activate(&id, "x").await?;
        told.push((answer.status, answer.body["errors"].to_string().replace(&id, "")));
    }
    ensure!(told[0].0 == 404 && told[0] == told[1], "{told:?}");
    let (known, unknown) = (site.request_reset(ADA).await?, site.request_reset("eve@example.com").await?);
    ensure!(known == unknown && known.status == 200, "{known:?} {unknown:?}");
    for mail in [1, 2, 3] {
        server.mail(mail).await?;
    }
    let mut subjects: Vec<_> =
        server.mails().into_iter().skip(1).map(|mail| mail["subject"].to_string()).collect();
    subjects.sort();
    ensure!(
        subjects
            == [
                "\"Activate your user of Test\"",
                "\"Reset your password of Test\"",
                "\"You are a user of Test already\""
            ],
        "{subjects:?}"
    );
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..9 {
        for (times, email) in times.iter_mut().zip([ADA.to_owned(), format!("{n}@example.com")]) {
            let begun = Instant::now();
            site.request_reset(&email).await?;
            times.push(begun.elapsed());
        }
        site.pass(HOUR_MS);
    }
    let [known, unknown] = times.map(|mut times| {
        times.sort();
        times[4]
    });
    ensure!(known < unknown * 8 + Duration::from_millis(20), "{known:?} {unknown:?}");
    Ok(())
}

async fn without_mail_users_are_anonymous(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let refused = site.register(ADA, PASSWORD).await?;
    ensure!(refused.status == 409 && refused.body["code"] == 40_904, "{refused:?}");
    ensure!(site.request_reset(ADA).await?.status == 409);
    site.ask(Method::POST, "/auth/evrythng/users?anonymous=true", json!({})).await?.done(201)?;
    // An operator opens the first contract: the caller gets the code, and old passwords are taken.
    let account = format!("/accounts/{}", site.made.account);
    let opened =
        site.operate(Method::PUT, &account, json!({"userRegistration": "caller"})).await?.done(200)?;
    ensure!(opened["userRegistration"] == "caller", "{opened}");
    let new = site.register(ADA, "password").await?.done(201)?;
    let code = text(&new, "activationCode")?;
    let id = text(&new, "evrythngUser")?;
    ensure!(site.activate(&id, "x").await?.status == 400);
    site.activate(&id, &code).await?.done(201)?;
    ensure!(site.register(ADA, "password").await?.status == 409);
    site.log_in(ADA, "password").await?.done(200)?;
    Ok(())
}

/// Migration 0045 switches existing accounts that have users with an address to `userRegistration: caller`.
async fn an_account_with_users_keeps_codes_for_the_caller(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let folder = if engine == Engine::Sqlite { "sqlite" } else { "postgres" };
    let file = root().join(format!("control/kernel/migrations/{folder}/0045_mail.sql"));
    let text = std::fs::read_to_string(file)?;
    let sql = text.split(';').find_map(|sql| sql.find("UPDATE accounts").map(|at| &sql[at..]));
    let migrate = async || execute(&site.made, sql.context("no statement")?).await;
    let account = format!("/accounts/{}", site.made.account);
    let kind = async || -> Result<Value> {
        Ok(site.operate(Method::GET, &account, json!({})).await?.done(200)?["userRegistration"].clone())
    };
    site.ask(Method::POST, "/auth/evrythng/users?anonymous=true", json!({})).await?.done(201)?;
    migrate().await?;
    ensure!(kind().await? == "mail", "nobody there has an address");
    for name in ["caller", "mail"] {
        site.operate(Method::PUT, &account, json!({"userRegistration": name})).await?.done(200)?;
        if name == "caller" {
            site.register(ADA, PASSWORD).await?.done(201)?;
        }
    }
    ensure!(kind().await? == "mail");
    migrate().await?;
    ensure!(kind().await? == "caller");
    Ok(())
}

/// Unconfirmed registrations are removed 30 days after their code expired; confirmed users stay.
async fn unconfirmed_registrations_are_removed(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    let user = text(&active(&site, &server).await?, "evrythngUser")?;
    let other = text(&site.register("bob@example.com", PASSWORD).await?.done(201)?, "evrythngUser")?;
    let get = async |id: &str| site.operate(Method::GET, &format!("/users/{id}"), json!({})).await;
    for (hours, status) in [(37 * 24 - 1, 200), (1, 404)] {
        site.pass(hours * HOUR_MS);
        applications::service::users::purge(&site.made.app.core).await?;
        ensure!(get(&other).await?.status == status, "{hours}");
        get(&user).await?.done(200)?;
    }
    Ok(())
}

async fn nobody_adds_headers_or_recipients(engine: Engine) -> Result<()> {
    let (_program, server, site) = with_server(engine, Mode::Plain).await?;
    for email in [
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com\nx",
        "ada@example.com, eve@example.com",
        "ada@example.com>\r\nRCPT TO:<eve@example.com",
        "Ada <ada@example.com>",
    ] {
        let refused = site.register(email, PASSWORD).await?;
        ensure!(refused.status == 400, "{email:?}: {refused:?}");
        let asked = site.request_reset(email).await?.status;
        ensure!(asked == 400 || asked == 200, "{email:?}: {asked}");
    }
    let account = format!("/accounts/{}", site.made.account);
    let name = json!({"name": "Acme\r\nBcc: eve@example.com\r\n\r\nhello"});
    let named = site.operate(Method::PUT, &account, name).await?;
    site.register(ADA, PASSWORD).await?.done(201)?;
    let mail = server.mail(0).await?;
    ensure!(mail["to"] == json!([ADA]), "{mail}");
    let subject = text(&mail, "subject")?;
    ensure!(named.status == 400 || subject.starts_with("Activate your user of Acme  Bcc: eve"), "{mail}");
    ensure!(server.mails().len() == 1, "{:?}", server.mails());
    Ok(())
}

crate::on_both_engines!(
    whoever_activates_may_choose_the_password,
    a_repeated_registration_has_no_password,
    strangers_keep_nobody_from_a_reset,
    codes_of_callers_end_with_the_switch_to_mail,
    codes_work_once_and_expire,
    answers_do_not_tell_whether_an_address_is_known,
    without_mail_users_are_anonymous,
    an_account_with_users_keeps_codes_for_the_caller,
    unconfirmed_registrations_are_removed,
    nobody_adds_headers_or_recipients,
);
