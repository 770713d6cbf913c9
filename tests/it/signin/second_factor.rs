//! The second factor, with `pyotp` as the app.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use shared::time::Clock as _;
use signin::service::commands;
use tenants::domain::email::Email;
use tests::{db::Engine, json::text};

use super::{
    ANOTHER, HOUR_MS, OWNER, PASSWORD,
    authenticator::Authenticator,
    site::{Answer, HOME, KEY, Site},
};

const STEP_MS: i64 = 30_000;

/// An owner with a second factor: its site, app, session, the URL of the enrolment and the recovery codes.
struct Enrolled {
    site: Site,
    app: Authenticator,
    cookie: String,
    url: String,
    codes: Vec<String>,
}

impl Enrolled {
    async fn new(engine: Engine) -> Result<Self> {
        let (site, mut app) = (Site::with_password(engine).await?, Authenticator::install()?);
        let cookie = site.sign_in().await?;
        let totp = async |method: Method, body: Value| site.with(&cookie, method, "/totp", body).await;
        ensure!(totp(Method::PUT, json!({"code": "123456"})).await?.code() == (409, 40901), "none was begun");
        ensure!(totp(Method::POST, json!({"password": ANOTHER})).await?.code() == (400, 40001));
        let begun = totp(Method::POST, json!({"password": PASSWORD})).await?.done(200)?;
        let url = text(&begun, "otpauthUrl")?;
        ensure!(url.contains(&text(&begun, "secret")?), "{begun}");
        // Until it is confirmed nothing is asked for.
        site.sign_in().await?;
        let now = site.clock.now().0;
        ensure!(totp(Method::PUT, json!({"code": "000000"})).await?.code() == (400, 40001));
        let late = app.code(&url, now - 2 * STEP_MS)?;
        ensure!(totp(Method::PUT, json!({"code": late})).await?.code() == (400, 40001));
        let code = app.code(&url, now)?;
        let confirmed = totp(Method::PUT, json!({"code": code})).await?.done(200)?;
        let codes: Vec<String> = serde_json::from_value(confirmed["recoveryCodes"].clone())?;
        ensure!(codes.len() == 10 && codes.iter().all(|code| code.len() == 19), "{codes:?}");
        ensure!(totp(Method::POST, json!({"password": PASSWORD})).await?.code() == (409, 40901), "one is on");
        let enrolled = Self { site, app, cookie, url, codes };
        // The code that confirmed it was used.
        let replayed = enrolled.sign_in(json!({"code": code})).await?;
        ensure!(replayed.code() == (401, 40105), "{replayed:?}");
        Ok(enrolled)
    }

    async fn sign_in(&self, more: Value) -> Result<Answer> {
        let mut body = json!({"email": OWNER, "password": PASSWORD});
        body.as_object_mut().context("object")?.extend(more.as_object().cloned().unwrap_or_default());
        self.site.try_sign_in(body, HOME).await
    }

    /// The code of now.
    fn code(&mut self) -> Result<String> {
        self.app.code(&self.url, self.site.clock.now().0)
    }
}

async fn a_code_is_asked_for_and_works_once(engine: Engine) -> Result<()> {
    let mut owner = Enrolled::new(engine).await?;
    // It is said only to whoever knows the password that a second factor is on.
    ensure!(owner.sign_in(json!({})).await?.code() == (401, 40105));
    ensure!(owner.sign_in(json!({"password": ANOTHER})).await?.code() == (401, 40103));
    ensure!(owner.sign_in(json!({"password": ANOTHER, "code": "123456"})).await?.code() == (401, 40103));
    owner.site.pass(STEP_MS);
    let code = owner.code()?;
    ensure!(owner.sign_in(json!({"code": code})).await?.status == 200);
    ensure!(owner.sign_in(json!({"code": code})).await?.code() == (401, 40105), "replayed");
    let who = owner.site.with(&owner.cookie, Method::GET, "/session", Value::Null).await?.body;
    ensure!(who["secondFactor"] == true && who["recoveryCodes"] == 10, "{who}");
    // A clock that is one step behind or ahead does; two are too many.
    for (step, expected) in [(-2, 401), (2, 401), (1, 200), (-1, 401), (0, 401)] {
        if step == 1 {
            owner.site.pass(STEP_MS);
        }
        let code = owner.app.code(&owner.url, owner.site.clock.now().0 + step * STEP_MS)?;
        let answer = owner.sign_in(json!({"code": code})).await?;
        ensure!(answer.status == expected, "{step}: {answer:?}");
    }
    // Two requests with one code: one of them gets in.
    owner.site.pass(3 * STEP_MS);
    let code = owner.code()?;
    let (one, two) = tokio::join!(owner.sign_in(json!({"code": code})), owner.sign_in(json!({"code": code})));
    let mut statuses = [one?.status, two?.status];
    statuses.sort_unstable();
    ensure!(statuses == [200, 401], "{statuses:?}");
    Ok(())
}

async fn recovery_codes_work_once_and_are_renewed(engine: Engine) -> Result<()> {
    let mut owner = Enrolled::new(engine).await?;
    let code = owner.codes[0].to_uppercase().replace('-', " ");
    ensure!(owner.sign_in(json!({"recoveryCode": code})).await?.status == 200, "as people write it");
    ensure!(
        owner.sign_in(json!({"recoveryCode": owner.codes[0]})).await?.code() == (401, 40105),
        "it was used"
    );
    ensure!(
        owner.sign_in(json!({"code": owner.codes[1]})).await?.code() == (401, 40105),
        "it is no other code"
    );
    let who = owner.site.with(&owner.cookie, Method::GET, "/session", Value::Null).await?.body;
    ensure!(who["recoveryCodes"] == 9, "{who}");

    // New ones need both factors, and end the others.
    let renew = async |site: &Site, cookie: &str, body: Value| {
        site.with(cookie, Method::POST, "/recoveryCodes", body).await
    };
    let (site, cookie) = (&owner.site, &owner.cookie);
    ensure!(renew(site, cookie, json!({"password": PASSWORD})).await?.code() == (400, 40001));
    let wrong = json!({"password": ANOTHER, "recoveryCode": owner.codes[1]});
    ensure!(renew(site, cookie, wrong).await?.code() == (400, 40001));
    let wrong = json!({"password": PASSWORD, "code": "000000"});
    ensure!(renew(site, cookie, wrong).await?.code() == (401, 40105));
    let right = json!({"password": PASSWORD, "recoveryCode": owner.codes[1]});
    let fresh = renew(site, cookie, right).await?.done(200)?;
    ensure!(owner.sign_in(json!({"recoveryCode": owner.codes[2]})).await?.status == 401);
    let fresh = fresh["recoveryCodes"][0].as_str().context("code")?.to_owned();
    ensure!(owner.sign_in(json!({"recoveryCode": fresh})).await?.status == 200);

    // Off, by both factors; then the password is enough, and old codes are worth nothing.
    owner.site.pass(STEP_MS);
    let code = owner.code()?;
    let off = async |body: Value| owner.site.with(&owner.cookie, Method::POST, "/totp/disable", body).await;
    ensure!(off(json!({"password": PASSWORD, "code": "000000"})).await?.code() == (401, 40105));
    ensure!(off(json!({"password": ANOTHER, "code": code})).await?.code() == (400, 40001));
    off(json!({"password": PASSWORD, "code": code})).await?.done(200)?;
    ensure!(off(json!({"password": PASSWORD, "code": code})).await?.code() == (409, 40901));
    ensure!(owner.sign_in(json!({})).await?.status == 200);
    Ok(())
}

/// By the command line, for somebody who lost the phone and the recovery codes.
async fn whoever_runs_the_server_turns_it_off(engine: Engine) -> Result<()> {
    let mut owner = Enrolled::new(engine).await?;
    let email = Email::parse(OWNER).map_err(anyhow::Error::msg)?;
    let reset = async |site: &Site| {
        let db = &site.made.app.core.db;
        commands::reset_second_factor(db, &*site.clock, Some(site.made.account), &email).await
    };
    ensure!(reset(&owner.site).await?);
    ensure!(owner.site.status(&owner.cookie).await? == 401, "its sessions have ended");
    let signed_in = owner.sign_in(json!({})).await?;
    ensure!(signed_in.status == 200, "{signed_in:?}");
    owner.cookie = signed_in.cookie()?;
    // One that was begun is not on: nothing ends, and it can still be confirmed.
    let (site, cookie) = (&owner.site, &owner.cookie);
    let begun = site.with(cookie, Method::POST, "/totp", json!({"password": PASSWORD})).await?.done(200)?;
    ensure!(!reset(site).await?);
    ensure!(site.status(cookie).await? == 200);
    // Confirming it ends the other sessions.
    let other = site.sign_in().await?;
    let code = owner.app.code(&text(&begun, "otpauthUrl")?, site.clock.now().0)?;
    site.with(cookie, Method::PUT, "/totp", json!({"code": code})).await?.done(200)?;
    ensure!((site.status(cookie).await?, site.status(&other).await?) == (200, 401));
    Ok(())
}

/// The owner of an account requires a second factor of everybody.
async fn an_account_requires_a_second_factor(engine: Engine) -> Result<()> {
    let (site, mut app) = (Site::with_password(engine).await?, Authenticator::install()?);
    let account = format!("/accounts/{}", site.made.account);
    let cookie = site.sign_in().await?;
    ensure!(site.with(&cookie, Method::GET, "/products", Value::Null).await?.status == 200);
    let require = json!({"secondFactorRequired": true});
    let set = site.by_key(KEY, Method::PUT, &account, require).await?.done(200)?;
    ensure!(set["secondFactorRequired"] == true, "{set}");
    ensure!(site.status(&cookie).await? == 401, "a session without one has ended");

    // Without one an operator turns one on, and does nothing else.
    let cookie = site.sign_in().await?;
    let who = site.with(&cookie, Method::GET, "/session", Value::Null).await?.done(200)?;
    ensure!(who["secondFactorRequired"] == true && who["secondFactor"] == false, "{who}");
    ensure!(site.with(&cookie, Method::GET, "/sessions", Value::Null).await?.status == 200);
    let password = json!({"password": PASSWORD, "newPassword": ANOTHER});
    for (method, path, body) in [
        (Method::GET, "/products", Value::Null),
        (Method::POST, "/products", json!({"name": "p"})),
        (Method::GET, "/me", Value::Null),
        (Method::PUT, "/me/password", password),
        (Method::POST, "/keys", json!({"label": "k"})),
        (Method::GET, "/identities", Value::Null),
        (Method::GET, "/sessionx", Value::Null),
        (Method::PUT, &*account, json!({"secondFactorRequired": false})),
    ] {
        let refused = site.with(&cookie, method.clone(), path, body).await?;
        ensure!(refused.code() == (403, 40301), "{method} {path}: {refused:?}");
        ensure!(refused.body.to_string().contains("requires a second factor"), "{refused:?}");
    }
    let begun = site.with(&cookie, Method::POST, "/totp", json!({"password": PASSWORD})).await?.done(200)?;
    ensure!(
        site.with(&cookie, Method::GET, "/products", Value::Null).await?.status == 403,
        "begun is not on"
    );
    let code = app.code(&text(&begun, "otpauthUrl")?, site.clock.now().0)?;
    site.with(&cookie, Method::PUT, "/totp", json!({"code": code})).await?.done(200)?;
    ensure!(site.with(&cookie, Method::GET, "/products", Value::Null).await?.status == 200);
    let who = site.with(&cookie, Method::GET, "/session", Value::Null).await?.done(200)?;
    ensure!(who["secondFactorRequired"] == false, "{who}");
    // Keys need none.
    ensure!(site.by_key(KEY, Method::GET, "/products", Value::Null).await?.status == 200);
    // Another account does not ask for it.
    let (other, _) = site.other_account("x@example.com").await?;
    site.set_password_in(other, "x@example.com", PASSWORD).await?;
    let body = json!({"email": "x@example.com", "password": PASSWORD});
    let elsewhere = site.try_sign_in(body, HOME).await?.cookie()?;
    ensure!(site.with(&elsewhere, Method::GET, "/products", Value::Null).await?.status == 200);
    // Switched off, a password is enough again.
    site.by_key(KEY, Method::PUT, &account, json!({"secondFactorRequired": false})).await?.done(200)?;
    site.colleague("ada@example.com", "editor").await?;
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let ada = site.try_sign_in(body, HOME).await?.cookie()?;
    ensure!(site.with(&ada, Method::GET, "/products", Value::Null).await?.status == 200);
    Ok(())
}

/// A recovery code that is sent twice at once lets one in.
async fn a_recovery_code_works_once_at_the_same_time(engine: Engine) -> Result<()> {
    let owner = Enrolled::new(engine).await?;
    let body = json!({"recoveryCode": owner.codes[0]});
    let (one, two) = tokio::join!(owner.sign_in(body.clone()), owner.sign_in(body));
    let mut statuses = [one?.status, two?.status];
    statuses.sort_unstable();
    ensure!(statuses == [200, 401], "{statuses:?}");
    Ok(())
}

async fn wrong_codes_are_slowed_down(engine: Engine) -> Result<()> {
    let mut owner = Enrolled::new(engine).await?;
    owner.site.pass(24 * HOUR_MS);
    // Somebody elsewhere who knows the password guesses codes, from another network each time.
    let mut answers = Vec::new();
    for n in 0..7 {
        let body = json!({"email": OWNER, "password": PASSWORD, "code": "000000"});
        let answer = owner.site.try_sign_in(body, &format!("203.0.{n}.1")).await?;
        answers.push(answer.status);
        owner.site.pass(1_000);
    }
    ensure!(answers == [401, 401, 401, 401, 401, 429, 429], "{answers:?}");
    // The owner still gets in from where it signed in before.
    let code = owner.code()?;
    ensure!(owner.sign_in(json!({"code": code})).await?.status == 200);
    Ok(())
}

crate::on_both_engines!(
    a_code_is_asked_for_and_works_once,
    recovery_codes_work_once_and_are_renewed,
    whoever_runs_the_server_turns_it_off,
    an_account_requires_a_second_factor,
    a_recovery_code_works_once_at_the_same_time,
    wrong_codes_are_slowed_down,
);
