//! A session that ends on one replica, or by a command: refused by all within a second, and its open streams end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response, header};
use serde_json::{Value, json};
use tests::fleet::Fleet;
use tokio::time::timeout;

const PASSWORD: &str = "a long sentence is best";

/// As the guide says.
const SOON: Duration = Duration::from_secs(1);

async fn ask(
    fleet: &Fleet,
    at: usize,
    (method, path): (Method, &str),
    cookie: &str,
    body: Option<Value>,
) -> Result<Response> {
    let url = format!("{}/console/api{path}", fleet.controls[at].api);
    let mut request = fleet.http.request(method, url).header("sec-fetch-site", "same-origin");
    if !cookie.is_empty() {
        request = request.header(header::COOKIE, cookie);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    Ok(request.send().await?)
}

async fn sign_in(fleet: &Fleet) -> Result<String> {
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let answer = ask(fleet, 0, (Method::POST, "/session"), "", Some(body)).await?;
    ensure!(answer.status() == 200, "{answer:?}");
    let set = answer.headers().get(header::SET_COOKIE).context("cookie")?.to_str()?;
    Ok(set.split(';').next().context("pair")?.to_owned())
}

async fn status(fleet: &Fleet, at: usize, cookie: &str) -> Result<u16> {
    Ok(ask(fleet, at, (Method::GET, "/session"), cookie, None).await?.status().as_u16())
}

/// An open stream of events.
async fn events(fleet: &Fleet, at: usize, cookie: &str) -> Result<Response> {
    let url = format!("{}/console/api/events", fleet.controls[at].api);
    let request = fleet.http.get(url).header("sec-fetch-site", "same-origin").header("cookie", cookie);
    let mut response = request.header("accept", "text/event-stream").send().await?;
    ensure!(response.status() == 200, "{response:?}");
    response.chunk().await?.context("no first piece")?;
    Ok(response)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_everywhere_within_a_second() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let code = fleet.control_ok(&["operators", "invite", "ada@example.com", "--role", "editor"])?;
    let listed = fleet.control_ok(&["operators", "list"])?;
    let row = listed.lines().find(|line| line.contains("ada@example.com")).context(listed.clone())?;
    ensure!(row.contains("\teditor\t") && row.contains("\tinvited until 20"), "{row}");
    let body = json!({"code": code, "password": PASSWORD});
    let accepted =
        fleet.http.post(format!("{}/invitations", fleet.controls[0].api)).json(&body).send().await?;
    ensure!(accepted.status() == 200, "{accepted:?}");
    let listed = fleet.control_ok(&["operators", "list"])?;
    ensure!(listed.contains("with password\twithout second factor"), "{listed}");

    // Whoever runs the server prints a code for another password.
    let code = fleet.control_ok(&["operators", "reset-password", "ada@example.com"])?;
    let body = json!({"code": code, "password": "a longer sentence is better"});
    let set = ask(&fleet, 1, (Method::PUT, "/passwordReset"), "", Some(body)).await?;
    ensure!(set.status() == 200, "{set:?}");
    let code = fleet.control_ok(&["operators", "reset-password", "ada@example.com"])?;
    let body = json!({"code": code, "password": PASSWORD});
    let set = ask(&fleet, 0, (Method::PUT, "/passwordReset"), "", Some(body)).await?;
    ensure!(set.status() == 200, "{set:?}");

    // By a sign-out on the other replica.
    let cookie = sign_in(&fleet).await?;
    ensure!((status(&fleet, 0, &cookie).await?, status(&fleet, 1, &cookie).await?) == (200, 200));
    let mut told = events(&fleet, 1, &cookie).await?;
    ensure!(ask(&fleet, 0, (Method::DELETE, "/session"), &cookie, None).await?.status() == 200);
    let ended = Instant::now();
    ensure!(status(&fleet, 0, &cookie).await? == 401, "here at once");
    let refused = async {
        while status(&fleet, 1, &cookie).await? != 401 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(ended.elapsed())
    };
    let closed = async {
        while told.chunk().await?.is_some() {}
        anyhow::Ok(ended.elapsed())
    };
    let took = timeout(Duration::from_secs(20), async { tokio::try_join!(refused, closed) }).await??;
    ensure!(took.0 <= SOON && took.1 <= SOON, "{took:?}");

    // By a command that removes the operator: refused once it has ended.
    let cookie = sign_in(&fleet).await?;
    let mut told = events(&fleet, 1, &cookie).await?;
    ensure!(status(&fleet, 0, &cookie).await? == 200);
    fleet.control_ok(&["operators", "remove", "Ada@example.com"])?;
    let ended = Instant::now();
    ensure!((status(&fleet, 0, &cookie).await?, status(&fleet, 1, &cookie).await?) == (401, 401));
    timeout(Duration::from_secs(20), async {
        while told.chunk().await?.is_some() {}
        anyhow::Ok(())
    })
    .await??;
    ensure!(ended.elapsed() <= SOON, "{:?}", ended.elapsed());
    ensure!(!fleet.control_ok(&["operators", "list"])?.contains("ada@example.com"));

    for (args, code, said) in [
        (vec!["operators", "invite", "ada", "--role", "editor"], 64, "must be an e-mail address"),
        (vec!["operators", "invite", "a@example.com", "--role", "king"], 1, "There is no role"),
        (vec!["operators", "invite", "a@example.com"], 64, "--role"),
        (vec!["operators", "remove", "ada@example.com"], 1, "was not found"),
        (vec!["operators", "remove", "ada@example.com", "--account", "x"], 64, "--account"),
        (vec!["operators", "reset-second-factor", "ada@example.com"], 1, "was not found"),
        (vec!["operators", "reset-password", "ada@example.com"], 1, "was not found"),
        (vec!["operators", "list", "--account", "UKXAGyEf8SQ5eTDmVgGpHqAa"], 1, "was not found"),
    ] {
        let output = fleet.control(&args)?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code) && error.contains(said), "{args:?}: {output:?}");
    }
    // The trail names the command.
    let (code, entries) = fleet.call(0, Method::GET, "/audit?perPage=100", None).await?;
    ensure!(code == 200, "{entries}");
    for operation in ["operators invite", "operators remove"] {
        let is_noted = |entry: &Value| entry["operation"] == operation && entry["actorType"] == "commandLine";
        ensure!(entries.as_array().is_some_and(|all| all.iter().any(is_noted)), "{operation}: {entries}");
    }
    Ok(())
}
