//! Real MQTT clients: mosquitto, paho from PyPI, and `mqtt` from npm over WebSockets and TLS.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    killed::Killed,
    product::{Options, Product, root},
    python,
};

/// A product over TLS with a Thng.
struct Subject {
    product: Product,
    thng: String,
}

impl Subject {
    async fn new(engine: Engine) -> Result<Self> {
        let product =
            Product::start(Options { engine, dev_tls: true, domains: "tn.gg", ..Options::default() }).await?;
        let (_, made) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
        let thng = made["id"].as_str().context("no id")?.to_owned();
        Ok(Self { product, thng })
    }

    fn ca(&self) -> PathBuf {
        self.product.data.join("dev-tls/ca.pem")
    }

    fn tls_port(&self) -> Result<String> {
        let address = self.product.mqtt_tls.as_deref().context("no TLS")?;
        Ok(address.rsplit(':').next().context("no port")?.to_owned())
    }

    fn port(&self) -> Result<String> {
        Ok(self.product.mqtt.rsplit(':').next().context("no port")?.to_owned())
    }

    fn topic(&self, key: &str) -> String {
        format!("/thngs/{}/properties/{key}", self.thng)
    }
}

async fn mosquitto(engine: Engine) -> Result<()> {
    let subject = Subject::new(engine).await?;
    let ca = subject.ca();
    for (version, tls) in [("311", false), ("311", true), ("5", true)] {
        let port = if tls { subject.tls_port()? } else { subject.port()? };
        let common = |program: &str| {
            // Into a pipe it would say nothing before its end.
            let mut command = Command::new("stdbuf");
            command.args(["-oL", program]);
            command.args(["-h", "localhost", "-p", &port, "-V", version, "-q", "1"]);
            command.args(["-u", "authorization", "-P", &subject.product.key]);
            if tls {
                command.arg("--cafile").arg(&ca);
            }
            command
        };
        let topic = subject.topic("m");
        // `-d` says when the subscription is there.
        let mut listening = common("mosquitto_sub");
        listening.args(["-t", &topic, "-C", "2", "-d", "-W", "30"]).stdout(Stdio::piped());
        let mut listening = Killed(listening.spawn().context("mosquitto_sub: run deploy/setup test")?);
        let mut lines = BufReader::new(listening.stdout.take().context("no output")?).lines();
        let subscribed = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("Subscribed"));
        ensure!(subscribed, "{version}: no subscription");
        let (_, written) = subject.product.call(Method::PUT, &topic, Some(json!(1))).await?;
        let output = common("mosquitto_pub").args(["-t", &topic, "-m", "{\"value\": [2]}"]).output()?;
        ensure!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stderr));
        let heard: Vec<Value> =
            lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect();
        ensure!(heard.len() == 2, "{version}: {heard:?}");
        assert_eq!(heard[0], written);
        assert_eq!(heard[1][0]["value"], json!([2]));
        let (_, read) = subject.product.call(Method::GET, &topic, None).await?;
        assert_eq!(read[0], heard[1][0]);
    }
    Ok(())
}

async fn paho(engine: Engine) -> Result<()> {
    let python = python::programs("paho")?.join("python");
    let subject = Subject::new(engine).await?;
    let mut command = Command::new(python);
    command.arg("paho_client.py");
    drive(command, &subject).await
}

async fn npm(engine: Engine) -> Result<()> {
    let subject = Subject::new(engine).await?;
    let mut command = Command::new("node");
    command.arg("mqtt.mjs").env("NODE_EXTRA_CA_CERTS", subject.ca());
    drive(command, &subject).await
}

/// Runs a script that says `done` at its end.
async fn drive(mut command: Command, subject: &Subject) -> Result<()> {
    let api = subject.product.api_tls.as_deref().context("no TLS at the API")?;
    command
        .current_dir(root().join("tests/clients"))
        .env("WAYMARK_API_URL", &subject.product.api)
        .env("WAYMARK_WSS_URL", format!("{}/mqtt", api.replacen("https", "wss", 1)))
        .env("WAYMARK_MQTT_PORT", subject.port()?)
        .env("WAYMARK_MQTT_TLS_PORT", subject.tls_port()?)
        .env("WAYMARK_CA", subject.ca())
        .env("WAYMARK_OPERATOR_KEY", &subject.product.key)
        .env("WAYMARK_THNG", &subject.thng);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && said.trim_end().ends_with("done"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

crate::on_both_engines!(mosquitto, paho, npm);
