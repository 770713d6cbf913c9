//! Passwords that operators set by themselves.

use anyhow::{Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::id::{AccountId, OperatorId};
use tenants::store::accounts;
use tests::db::{Engine, random16};

use super::{
    ANOTHER, OWNER, PASSWORD,
    site::{HOME, KEY, Site, text},
};

const URI: &str = "/me/password";

async fn an_operator_sets_and_changes_its_password(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let put = async |key: &str, body: Value| site.by_key(key, Method::PUT, URI, body).await;
    // A key that ends, works from some networks or in one project cannot make something without such bounds.
    let now = shared::time::Clock::now(&*site.clock).0;
    let project = site.by_key(KEY, Method::POST, "/projects", json!({"name": "p"})).await?.done(201)?;
    for bound in [
        json!({"label": "b", "expiresAt": now + 60_000}),
        json!({"label": "b", "networks": ["198.51.100.0/24"]}),
        json!({"label": "b", "project": project["id"]}),
    ] {
        let made = site.by_key(KEY, Method::POST, "/keys", bound.clone()).await?.done(201)?;
        let refused = put(&text(&made, "apiKey")?, json!({"newPassword": PASSWORD})).await?;
        ensure!(refused.code() == (403, 40301), "{bound}: {refused:?}");
    }
    // Nor does a program sign in.
    let program = site.by_key(KEY, Method::POST, "/accessTokens", json!({"name": "m", "role": "viewer"}));
    let program = text(&program.await?.done(201)?, "apiKey")?;
    ensure!(put(&program, json!({"newPassword": PASSWORD})).await?.code() == (409, 40901));

    for (body, fault) in [
        (json!({}), "newPassword is required"),
        (json!({"newPassword": "short"}), "12 to 256"),
        (json!({"newPassword": "o@example.com"}), "common"),
        (json!({"password": PASSWORD, "newPassword": PASSWORD}), "you have none"),
    ] {
        let refused = put(KEY, body.clone()).await?;
        ensure!(refused.code() == (400, 40001) && refused.body.to_string().contains(fault), "{refused:?}");
    }
    site.set_password().await?;
    ensure!(
        put(KEY, json!({"newPassword": ANOTHER})).await?.code() == (400, 40001),
        "the old one is asked for"
    );
    ensure!(put(KEY, json!({"password": ANOTHER, "newPassword": ANOTHER})).await?.code() == (400, 40001));

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

/// An address in two accounts: each has its own password, and a sign-in names the account.
async fn an_address_of_several_accounts_names_one(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let core = &site.made.app.core;
    let (account, operator) = (AccountId::new(1, random16()?), OperatorId::new(1, random16()?));
    let mut tx = core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "Other", true, 1).await?;
    accounts::insert_operator(&mut tx, operator, account, "O@EXAMPLE.com", ("X", "Y"), 1).await?;
    let key = "X".repeat(80);
    let hash: [u8; 32] = sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix(&key)).into();
    let kind = kernel::domain::access::ActorKind::Operator;
    kernel::store::keys::insert(&mut tx, &hash, account, kind, operator.as_str(), 1).await?;
    tx.commit().await?;
    // As long as one of them has a password, its address is enough.
    site.sign_in().await?;
    site.by_key(&key, Method::PUT, URI, json!({"newPassword": ANOTHER})).await?.done(200)?;
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

crate::on_both_engines!(an_operator_sets_and_changes_its_password, an_address_of_several_accounts_names_one,);
