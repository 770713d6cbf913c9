//! Passwords of operators: the first one, and changes.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use shared::id::AccountId;
use tests::{db::Engine, json::text};

use super::{
    ANOTHER, HOUR_MS, OWNER, PASSWORD,
    site::{HOME, KEY, Site},
};

const URI: &str = "/me/password";

async fn an_operator_changes_its_password(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let put = async |key: &str, body: Value| site.by_key(key, Method::PUT, URI, body).await;
    let change = json!({"password": PASSWORD, "newPassword": ANOTHER});
    // No key sets the first one.
    ensure!(put(KEY, change.clone()).await?.code() == (409, 40901));
    ensure!(site.count("operator_passwords").await? == 0);
    // Nor does a program sign in.
    let program = site.by_key(KEY, Method::POST, "/accessTokens", json!({"name": "m", "role": "viewer"}));
    let program = text(&program.await?.done(201)?, "apiKey")?;
    ensure!(put(&program, change.clone()).await?.code() == (409, 40901));

    site.set_password().await?;
    for (body, fault) in [
        (json!({"newPassword": ANOTHER}), "password is required"),
        (json!({"password": PASSWORD}), "newPassword is required"),
        (json!({"password": PASSWORD, "newPassword": "short"}), "12 to 256"),
        (json!({"password": PASSWORD, "newPassword": "o@example.com"}), "common"),
        (json!({"password": ANOTHER, "newPassword": ANOTHER}), "password is wrong"),
    ] {
        let refused = put(KEY, body.clone()).await?;
        ensure!(refused.code() == (400, 40001) && refused.body.to_string().contains(fault), "{refused:?}");
    }

    // A change by a session ends the others; by a key it ends all.
    let (one, two) = (site.sign_in().await?, site.sign_in().await?);
    let change = json!({"password": PASSWORD, "newPassword": ANOTHER});
    site.with(&one, Method::PUT, URI, change).await?.done(200)?;
    ensure!((site.status(&one).await?, site.status(&two).await?) == (200, 401));
    let old = json!({"email": OWNER, "password": PASSWORD});
    ensure!(site.try_sign_in(old, HOME).await?.code() == (401, 40103));
    put(KEY, json!({"password": ANOTHER, "newPassword": PASSWORD})).await?.done(200)?;
    ensure!(site.status(&one).await? == 401);
    ensure!(site.by_key(KEY, Method::GET, "/access", Value::Null).await?.status == 200, "keys stay");
    // Guesses of the old password are slowed down, and the sign-in is not.
    site.sign_in().await?;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(put(KEY, json!({"password": ANOTHER, "newPassword": ANOTHER})).await?.status);
    }
    ensure!(statuses == [400, 400, 400, 400, 400, 429], "{statuses:?}");
    site.sign_in().await?;
    Ok(())
}

/// A key that leaked: whatever its holder did with it ends with the key.
async fn a_key_that_leaked_leaves_no_password(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let stolen = site.by_key(KEY, Method::POST, "/keys", json!({"label": "unbounded"})).await?.done(201)?;
    for body in [json!({"newPassword": ANOTHER}), json!({"password": ANOTHER, "newPassword": ANOTHER})] {
        let tried = site.by_key(&text(&stolen, "apiKey")?, Method::PUT, URI, body).await?;
        ensure!((400..500).contains(&tried.status), "{tried:?}");
    }
    let id = text(&stolen, "id")?;
    site.by_key(KEY, Method::DELETE, &format!("/keys/{id}"), Value::Null).await?.done(200)?;
    let answer = site.try_sign_in(json!({"email": OWNER, "password": ANOTHER}), HOME).await?;
    ensure!(answer.code() == (401, 40103), "{answer:?}");

    // The platform operator gives the code for the first password, without a mail server.
    let code = site.password_code(site.made.account, OWNER).await?;
    let rows = tests::fingerprint::fingerprint(&site.made.db.location).await?;
    ensure!(!format!("{rows:?}").contains(&code), "it is stored as a hash");
    let set = async |code: &str| {
        let body = json!({"code": code, "password": PASSWORD});
        site.ask(None, (Method::PUT, "/passwordReset"), body, HOME).await
    };
    site.pass(HOUR_MS);
    ensure!(set(&code).await?.code() == (400, 40001), "it has expired");
    let code = site.password_code(site.made.account, OWNER).await?;
    set(&code).await?.done(200)?;
    ensure!(set(&code).await?.code() == (400, 40001), "once");
    let cookie = site.sign_in().await?;
    // It also replaces one that somebody else knows, and ends the sessions.
    site.set_password_in(site.made.account, OWNER, ANOTHER).await?;
    ensure!(site.status(&cookie).await? == 401);
    let trail = site
        .by_key(KEY, Method::GET, "/audit?filter=operation=operators%20reset-password", Value::Null)
        .await?;
    let noted = trail
        .body
        .as_array()
        .is_some_and(|all| all.iter().all(|entry| entry["actorType"] == "commandLine") && all.len() == 3);
    ensure!(noted, "{trail:?}");

    // Not before an invitation was accepted, for nobody, and in no account that is not there.
    let accesses = format!("/accounts/{}/operatorAccess", site.made.account);
    let body = json!({"email": "bob@example.com", "role": "editor"});
    site.by_key(KEY, Method::POST, &accesses, body).await?.done(201)?;
    for (account, email, fault) in [
        (site.made.account, "bob@example.com", "not accepted"),
        (site.made.account, "nobody@example.com", "not found"),
        (AccountId::new(9, [9; 16]), OWNER, "account"),
    ] {
        let refused = site.password_code(account, email).await;
        ensure!(refused.as_ref().is_err_and(|error| error.to_string().contains(fault)), "{refused:?}");
    }
    Ok(())
}

/// An address in two accounts: each has its own password, and a sign-in names the account.
async fn an_address_of_several_accounts_names_one(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let (account, _) = site.other_account("O@EXAMPLE.com").await?;
    // As long as one of them has a password, its address is enough.
    let elsewhere = json!({"email": OWNER, "password": PASSWORD});
    site.try_sign_in(elsewhere, "192.0.2.1").await?.done(200)?;
    site.set_password_in(account, OWNER, ANOTHER).await?;
    let sign_in = async |account: Option<AccountId>, password: &str| {
        let body = json!({"email": OWNER, "password": password, "account": account.map(|id| id.to_string())});
        site.try_sign_in(body, HOME).await
    };
    for (named, password, expected) in [
        (None, PASSWORD, None),
        (None, ANOTHER, None),
        (Some(site.made.account), PASSWORD, Some(site.made.account)),
        (Some(account), ANOTHER, Some(account)),
        (Some(site.made.account), ANOTHER, None),
        (Some(account), PASSWORD, None),
        (Some(AccountId::new(2, [7; 16])), PASSWORD, None),
    ] {
        let answer = sign_in(named, password).await?;
        match expected {
            Some(account) => ensure!(answer.body["operator"]["account"] == account.as_str(), "{answer:?}"),
            None => ensure!(answer.code() == (401, 40103), "{answer:?}"),
        }
    }
    Ok(())
}

/// Somebody invites an address that is not its own into an account of its own, and accepts: the owner of the address
/// still signs in from where it did before, without a name of the account.
async fn an_address_that_somebody_else_claims_still_signs_in_at_home(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    site.sign_in().await?;
    let (account, _) = site.other_account(OWNER).await?;
    site.set_password_in(account, OWNER, ANOTHER).await?;
    let named = json!({"email": OWNER, "password": ANOTHER, "account": account.as_str()});
    site.try_sign_in(named, "203.0.113.9").await?.done(200)?;
    let bare = |password: &str| json!({"email": OWNER, "password": password});
    for (password, from, expected) in [
        (PASSWORD, HOME, Some(site.made.account)),
        (ANOTHER, HOME, None),
        (ANOTHER, "203.0.113.9", Some(account)),
        (PASSWORD, "203.0.113.9", None),
        (PASSWORD, "192.0.2.1", None),
        (ANOTHER, "192.0.2.1", None),
    ] {
        let answer = site.try_sign_in(bare(password), from).await?;
        match expected {
            Some(account) => ensure!(answer.body["operator"]["account"] == account.as_str(), "{answer:?}"),
            None => ensure!(answer.code() == (401, 40103), "{from} {answer:?}"),
        }
    }
    Ok(())
}

crate::on_both_engines!(
    an_operator_changes_its_password,
    a_key_that_leaked_leaves_no_password,
    an_address_of_several_accounts_names_one,
    an_address_that_somebody_else_claims_still_signs_in_at_home,
);
