//! kill -9 in the middle of an erasure: it goes on where it was, and counts each action once. So does the removal of the
//! users of a deleted application.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    fingerprint::fingerprint,
    kills::{expire_leases, until},
    product::{Options, Product},
    wait,
};

use crate::store::schema::run;

crate::on_both_engines!(an_erasure_that_is_killed_goes_on);

/// Actions of a user: five steps of an erasure.
const ACTIONS: usize = 1_000;
/// Requests at once.
const AT_ONCE: usize = 20;
/// Users, one after the other, until a kill came in the middle.
const USERS: usize = 5;
/// What each of their actions has, and nothing else.
const AGENT: &str = "Marked4711Agent/9";

async fn send(product: &Product, key: &str, path: &str, body: &Value) -> Result<Value> {
    let request = product.http.post(format!("{}{path}", product.api)).header(header::AUTHORIZATION, key);
    let answer = request.header(header::USER_AGENT, AGENT).json(body).send().await?;
    let status = answer.status();
    let said: Value = answer.json().await?;
    ensure!(status.is_success(), "{path}: {status}: {said}");
    Ok(said)
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().context("a text")?.to_owned())
}

/// A Thng, and the public key of an application.
async fn prepare(product: &Product) -> Result<(String, String)> {
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let account = format!("/accounts/{}", text(&access["account"])?);
    product.must_answer(200, Method::PUT, &account, Some(json!({"personalData": "full"}))).await?;
    let key = &product.key;
    let project = text(&send(product, key, "/projects", &json!({"name": "p"})).await?["id"])?;
    let thng = json!({"name": "t", "scopes": {"users": [], "projects": [project]}});
    let thng = text(&send(product, key, "/thngs", &thng).await?["id"])?;
    let app = json!({"name": "a", "reportsContext": true});
    let app = send(product, key, &format!("/projects/{project}/applications"), &app).await?;
    Ok((thng, text(&app["appApiKey"])?))
}

/// A user with its actions.
async fn user(product: &Product, app: &str, thng: &str, actions: usize) -> Result<String> {
    let made = send(product, app, "/auth/evrythng/users?anonymous=true", &json!({"anonymous": true})).await?;
    let key = text(&made["evrythngApiKey"])?;
    let body = json!({"thng": thng});
    let mut left = actions;
    while left > 0 {
        let some = left.min(AT_ONCE);
        let sent = (0..some).map(|_| send(product, &key, "/actions/checkins", &body));
        futures_util::future::try_join_all(sent).await?;
        left -= some;
    }
    text(&made["evrythngUser"])
}

/// Waits until an erasure has changed something, and kills the process; `false` when it had ended before.
async fn kill_in_the_middle(product: &mut Product, path: &str) -> Result<bool> {
    until(product, path, |receipt| receipt["rows"]["actions"].as_u64() > Some(0)).await?;
    product.kill()?;
    expire_leases(product).await?;
    // Its status says what the process had committed.
    let rows = fingerprint(&product.location()).await?;
    let ended = rows["erasures"].iter().all(|row| row.contains("COMPLETED"));
    product.start_again().context("the product does not come up after a kill")?;
    Ok(!ended)
}

async fn an_erasure_that_is_killed_goes_on(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let (thng, app) = prepare(&product).await?;
    let other = user(&product, &app, &thng, 3).await?;
    let mut was_killed = false;
    for number in 1..=USERS {
        let user = user(&product, &app, &thng, ACTIONS).await?;
        let (_, asked) = product.call(Method::POST, "/privacy/erasures", Some(json!({"user": user}))).await?;
        let path = format!("/privacy/erasures/{}", text(&asked["id"])?);
        was_killed = kill_in_the_middle(&mut product, &path).await?;
        let receipt = until(&product, &path, |receipt| receipt["status"] == "COMPLETED").await?;
        ensure!(receipt["rows"]["actions"] == ACTIONS, "each action is counted once: {receipt}");
        let tables = fingerprint(&product.location()).await?;
        let of_user = tables["actions"].iter().filter(|row| row.contains(&user)).count();
        ensure!(of_user == 0, "{of_user} actions name the user");
        // The audit trail is about operators.
        for (table, rows) in tables.iter().filter(|(table, _)| !table.starts_with("audit")) {
            let marked = rows.iter().filter(|row| row.contains(AGENT)).count();
            // Those of the other user stay.
            let expected = if table == "actions" { 3 } else { 0 };
            ensure!(marked == expected, "{marked} rows of {table} have the user agent");
        }
        ensure!(tables["actions"].len() == number * ACTIONS + 3, "an action is gone");
        if was_killed {
            break;
        }
    }
    ensure!(was_killed, "each erasure ended before the kill");
    let kept = product.list(&format!("/actions/checkins?filter=user={other}&context=true")).await?;
    ensure!(kept.len() == 3 && kept[0]["context"]["userAgent"] == AGENT, "{kept:?}");
    the_removal_of_users_goes_on(&mut product).await
}

/// A deletion removes a thousand users of an application. The others go after the kill.
async fn the_removal_of_users_goes_on(product: &mut Product) -> Result<()> {
    let key = product.key.clone();
    let project = text(&send(product, &key, "/projects", &json!({"name": "q"})).await?["id"])?;
    let uri = format!("/projects/{project}/applications");
    let app = text(&send(product, &key, &uri, &json!({"name": "b"})).await?["id"])?;
    let users = format!(
        "INSERT INTO app_users (id, account_id, project_id, app_id, status, doc, created_at, updated_at) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
         SELECT 'AAAAAAAAAAAAAAAAAAAA' || (1000 + i), a.account_id, a.project_id, a.id, 'anonymous', '{{}}', \
         a.created_at, a.updated_at \
         FROM n, applications a WHERE a.id = '{app}'"
    );
    run(&product.location(), &[users]).await?;
    let (status, said) = product.call(Method::DELETE, &format!("{uri}/{app}"), None).await?;
    ensure!(status.is_success(), "{status}: {said}");
    product.kill()?;
    expire_leases(product).await?;
    product.start_again()?;
    wait::until("the end of all users", async || {
        let tables = fingerprint(&product.location()).await?;
        let is_left = tables["app_users"].iter().any(|row| row.contains(&app));
        Ok(!is_left && tables["removed_applications"].is_empty())
    })
    .await
}
