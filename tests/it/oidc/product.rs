//! The product as a process: its settings, a provider that comes later, and what is stored and logged.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use reqwest::{Response, header};
use serde_json::{Value, json};
use tests::{
    db::Location,
    fingerprint::fingerprint,
    killed::Killed,
    product::{DEADLINE, binary, client, free_ports, random_key, spawn_up, value_of},
};
use url::Url;

use super::provider::{Running, parameter};

const SECRET: &str = "a secret of the client: 100 %";
const PASSWORD: &str = "a long sentence is best";

fn cookie(answer: &Response, name: &str) -> Option<String> {
    let sets = answer.headers().get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = sets.filter_map(|set| set.split(';').next());
    pairs.find(|pair| pair.starts_with(&format!("{name}="))).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_product_signs_in_by_a_provider_that_comes_later() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (data, log, secret) =
        (folder.path().join("data"), folder.path().join("log"), folder.path().join("secret"));
    fs::write(&secret, format!("{SECRET}\n"))?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let key = random_key()?;
    let mut command = Command::new(binary()?);
    command
        .arg("up")
        .env("WAYMARK_DATA_DIR", &data)
        .env("WAYMARK_OPERATOR_KEY", &key)
        .env("RUST_LOG", "debug")
        .env("WAYMARK_OIDC_ISSUER", format!("http://127.0.0.1:{port}"))
        .env("WAYMARK_OIDC_CLIENT_ID", "waymark")
        .env("WAYMARK_OIDC_CLIENT_SECRET_FILE", &secret)
        .stderr(Stdio::from(fs::File::create(&log)?));
    command.envs(free_ports(["API", "EDGE", "MQTT", "ADMIN"]));
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    let _up = Killed(child);
    let api = value_of(&said, "API ")?;
    let http = client()?;

    // Nobody answers there yet: the start did not mind, and a sign-in says so.
    let begin = format!("{api}/console/api/oidc/begin");
    let answer = http.get(&begin).send().await?;
    ensure!(answer.status() == 503, "{answer:?}");
    let told: Value = answer.json().await?;
    ensure!(told["errors"][0].as_str().is_some_and(|error| error.contains("does not answer")), "{told}");

    let provider = Running::start(port, None)?;
    let back = format!("{api}/console/api/oidc/callback");
    provider.set(json!({"redirect": back})).await?;
    let account: Value =
        http.get(format!("{api}/access")).header("authorization", &key).send().await?.json().await?;
    let account = account["account"].as_str().context("account")?;
    let invite = json!({"email": "ada@example.com", "role": "editor"});
    let uri = format!("{api}/accounts/{account}/operatorAccess");
    let invited = http.post(uri).header("authorization", &key).json(&invite).send().await?;
    let invited: Value = invited.error_for_status()?.json().await?;
    let accept = json!({"code": invited["invitationCode"], "password": PASSWORD});
    http.post(format!("{api}/invitations")).json(&accept).send().await?.error_for_status()?;

    let answer = http.get(&begin).header("sec-fetch-site", "none").send().await?;
    ensure!(answer.status() == 303, "{answer:?}");
    let pending = cookie(&answer, oidc::COOKIE).context("the cookie of the sign-in")?;
    let to: Url = answer.headers()[header::LOCATION].to_str()?.parse()?;
    ensure!(parameter(&to, "redirect_uri").as_deref() == Some(&back), "{to}");
    let returned = provider.sign_in(&to, "ada", &back).await?;
    let open = async || {
        let request = http.get(returned.clone()).header("sec-fetch-site", "cross-site");
        request.header("cookie", &pending).header("accept", "text/html").send().await
    };
    let answer = open().await?;
    ensure!(answer.status() == 200, "{answer:?}");
    let session = cookie(&answer, "__Host-waymark").context("a session")?;
    let answer = open().await?;
    ensure!(answer.status() == 403 && cookie(&answer, "__Host-waymark").is_none(), "{answer:?}");
    let who = http.get(format!("{api}/console/api/session"));
    let who = who.header("sec-fetch-site", "same-origin").header("cookie", &session).send().await?;
    let who: Value = who.error_for_status()?.json().await?;
    ensure!(who["operator"]["email"] == "ada@example.com", "{who}");

    // Nothing of the flow is kept or logged.
    let stored = fingerprint(&Location::Sqlite(data.join("waymark.db"))).await?;
    ensure!(stored["operator_identities"].len() == 1 && stored["oidc_used_states"].len() == 1, "{stored:?}");
    let log = fs::read_to_string(&log)?;
    ensure!(log.contains("answered"), "nothing is logged");
    let mut files = format!("{stored:?}{log}").into_bytes();
    for file in ["waymark.db", "waymark.db-wal"] {
        files.extend(fs::read(data.join(file)).unwrap_or_default());
    }
    let [code, state, nonce] =
        [parameter(&returned, "code"), parameter(&to, "state"), parameter(&to, "nonce")];
    let values = [&pending, &session].map(|pair| pair.split_once('=').map(|(_, value)| value.to_owned()));
    for text in [code, state, nonce, Some(SECRET.to_owned())].into_iter().chain(values) {
        let text = text.context("a secret")?;
        ensure!(!files.windows(text.len()).any(|part| part == text.as_bytes()), "{text} is stored or logged");
    }
    Ok(())
}
