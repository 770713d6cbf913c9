//! The product as a process: where codes are, and who may guess passwords.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::{Engine, Location, TestDb},
    fingerprint::fingerprint,
    json::text,
    killed::Killed,
    product::{DEADLINE, binary, client, free_ports, metrics_of, random_key, spawn_up, value_of},
};

use super::{
    ADA, ANOTHER, PASSWORD,
    server::{Mode, Program, code_of},
};

/// Sends something as from an address, and keeps what was answered.
struct Caller {
    http: reqwest::Client,
    api: String,
    answers: String,
}

impl Caller {
    async fn call(
        &mut self,
        key: &str,
        method: Method,
        path: &str,
        body: Value,
        from: &str,
    ) -> Result<(u16, Value)> {
        let request = self.http.request(method, format!("{}{path}", self.api)).header("authorization", key);
        let response = request.header("x-forwarded-for", from).json(&body).send().await?;
        let status = response.status().as_u16();
        self.answers.push_str(&format!("{:?}", response.headers()));
        let text = response.text().await?;
        self.answers.push_str(&text);
        Ok((status, serde_json::from_str(&text).unwrap_or_default()))
    }
}

async fn codes_are_in_the_mailbox_alone(engine: Engine) -> Result<()> {
    let program = Program::install()?;
    let server = program.start(Mode::Tls, 0)?;
    let db = match engine {
        Engine::Sqlite => None,
        Engine::Postgres | Engine::ClickHouse => Some(TestDb::new(engine).await?),
    };
    let (key, data) = (random_key()?, program.folder().join("data"));
    let log = program.folder().join("log");
    let mut command = Command::new(binary()?);
    command
        .arg("up")
        .env("WAYMARK_DATA_DIR", &data)
        .env("WAYMARK_OPERATOR_KEY", &key)
        .env("RUST_LOG", "debug")
        .env("WAYMARK_SMTP_URL", server.url())
        .env("WAYMARK_SMTP_CA", program.certificate())
        .env("WAYMARK_MAIL_FROM", "Waymark <noreply@example.com>")
        .env("WAYMARK_TRUSTED_PROXIES", "127.0.0.1")
        .stderr(Stdio::from(std::fs::File::create(&log)?));
    command.envs(free_ports(["API", "EDGE", "MQTT", "ADMIN"]));
    let location = match db.as_ref().map(|db| db.location.clone()) {
        None => Location::Sqlite(data.join("waymark.db")),
        Some(location) => location,
    };
    if let Location::Postgres(url) = &location {
        command.env("DATABASE_URL", url);
    }
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    let _running = Killed(child);
    let (api, admin) = (value_of(&said, "API ")?, value_of(&said, "Admin ")?);
    let mut caller = Caller { http: client()?, api, answers: String::new() };
    let (_, project) = caller.call(&key, Method::POST, "/projects", json!({"name": "p"}), "10.0.0.1").await?;
    let uri = format!("/projects/{}/applications", text(&project, "id")?);
    let (_, app) = caller
        .call(
            &key,
            Method::POST,
            &uri,
            json!({"name": "a", "userPage": "https://shop.example.com/account"}),
            "10.0.0.1",
        )
        .await?;
    let app = text(&app, "appApiKey")?;

    let body = json!({"email": ADA, "password": PASSWORD, "firstName": "Ada"});
    let (status, new) = caller.call(&app, Method::POST, "/auth/evrythng/users", body, "10.0.0.1").await?;
    ensure!(status == 201 && new.get("activationCode").is_none(), "{new}");
    let mail = server.mail(0).await?;
    let activation = code_of(&mail)?;
    let id = text(&new, "evrythngUser")?;
    let link = format!("https://shop.example.com/account#user={id}&activationCode={activation}");
    ensure!(text(&mail, "text")?.contains(&link) && mail["to"][0] == ADA, "{mail}");
    let uri = format!("/auth/evrythng/users/{id}/validate");
    let body = json!({"activationCode": activation});
    let (status, _) = caller.call(&app, Method::POST, &uri, body, "10.0.0.1").await?;
    ensure!(status == 201);

    // Five guesses from each of 200 networks, 1,000 in all: five are compared.
    let login = |password: &str| json!({"email": ADA, "password": password});
    let (mut compared, mut unknown_compared) = (0, 0);
    for network in 0..200 {
        let from = format!("10.1.{network}.7");
        for _ in 0..5 {
            let guess = login("a wrong password");
            let (status, told) = caller.call(&app, Method::POST, "/users/login", guess, &from).await?;
            ensure!(status == 401 || status == 429, "{told}");
            compared += usize::from(status == 401);
        }
        // An address that nobody has looks the same.
        let body = json!({"email": "eve@example.com", "password": PASSWORD});
        let (status, _) = caller.call(&app, Method::POST, "/users/login", body, &from).await?;
        unknown_compared += usize::from(status == 401);
    }
    ensure!((compared, unknown_compared) == (5, 5), "{compared} {unknown_compared}");
    let (status, told) = caller.call(&app, Method::POST, "/users/login", login(PASSWORD), "10.2.0.1").await?;
    ensure!(status == 429, "the right password waits, too: {told}");
    // Its owner gets in by a mail, however often others asked for one.
    for network in 0..20 {
        let from = format!("10.3.{network}.7");
        let (status, _) =
            caller.call(&app, Method::POST, "/users/passwordReset", json!({"email": ADA}), &from).await?;
        ensure!(status == if network < 3 { 200 } else { 429 }, "{network}");
    }
    let reset = code_of(&server.mail(3).await?)?;
    let body = json!({"code": reset, "password": ANOTHER});
    let (status, told) = caller.call(&app, Method::PUT, "/users/passwordReset", body, "10.2.0.1").await?;
    ensure!(status == 200 && told["id"] == id, "{told}");
    let (status, told) = caller.call(&app, Method::POST, "/users/login", login(ANOTHER), "10.2.0.1").await?;
    ensure!(status == 200, "{told}");
    ensure!(server.mails().len() == 4, "three resets an hour: {:?}", server.mails());

    let stored = fingerprint(&location).await?;
    ensure!(stored["mails"].is_empty(), "{:?}", stored["mails"]);
    let log = std::fs::read_to_string(&log)?;
    ensure!(log.contains("answered"), "nothing is logged");
    let mut files = format!("{stored:?}{log}{}", caller.answers).into_bytes();
    for file in ["waymark.db", "waymark.db-wal"] {
        // On Postgres there is none.
        files.extend(std::fs::read(data.join(file)).unwrap_or_default());
    }
    let codes = server.mails().iter().map(code_of).collect::<Result<Vec<_>>>()?;
    for secret in codes.iter().map(String::as_str).chain([PASSWORD, ANOTHER, "p@ssword", "p%40ssword"]) {
        let is_there = files.windows(secret.len()).any(|part| part == secret.as_bytes());
        ensure!(!is_there, "{secret} is stored, logged or answered");
    }
    let metrics = metrics_of(&caller.http, &admin).await?;
    ensure!(metrics["waymark_control_mails_sent_total"] == 4.0, "{metrics:?}");
    Ok(())
}

crate::on_both_engines!(codes_are_in_the_mailbox_alone);
