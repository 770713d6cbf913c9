//! Quotas over MQTT and WebSockets: what is refused, and how it is told.

use anyhow::{Context, Result, ensure};
use hosting::{
    domain::quota::{Quota, Setting},
    service::{By, quotas},
};
use mqtt5::{QoS::AtLeastOnce, protocol::v5::reason_codes::ReasonCode};
use reqwest::{Method, header};
use serde_json::json;
use tests::{
    db::Engine,
    mqtt::{Client, Hello},
};

use super::Broker;

async fn set(broker: &Broker, quota: Quota, most: u64) -> Result<()> {
    let (core, account) = (&broker.made.app.core, broker.made.account);
    let by = By::command("platform quotas set", core.clock.now());
    quotas::set(&core.db, &by, account.as_str(), &[(quota, Setting::Most(most))]).await?;
    Ok(())
}

async fn connections_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    set(&broker, Quota::Streams, 2).await?;
    let first = Client::enter(&broker.mqtt, &Hello::new("a", &broker.key)).await?;
    let stream =
        broker.http.get(format!("{}/events", broker.api)).header(header::ACCEPT, "text/event-stream");
    let stream = stream.header(header::AUTHORIZATION, &broker.key).send().await?;
    ensure!(stream.status() == 200, "{stream:?}");
    let (_, answer) = Client::connect(&broker.mqtt, &Hello::new("b", &broker.key)).await?;
    ensure!(answer.reason_code == ReasonCode::QuotaExceeded, "{answer:?}");
    let reason = format!("{:?}", answer.properties);
    ensure!(reason.contains("quota streams ") && reason.contains("2 of 2"), "{reason}");
    // A WebSocket is refused before it is one, and a second stream.
    for upgrade in [true, false] {
        let mut request =
            broker.http.get(format!("{}/{}", broker.api, if upgrade { "actions/scans" } else { "events" }));
        request = request.header(header::AUTHORIZATION, &broker.key);
        if upgrade {
            let headers = [
                ("connection", "Upgrade"),
                ("upgrade", "websocket"),
                ("sec-websocket-version", "13"),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ];
            request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        }
        let refused = request.send().await?;
        ensure!(refused.status() == 429 && refused.headers().contains_key("retry-after"), "{refused:?}");
        let body: serde_json::Value = refused.json().await?;
        ensure!(body["code"] == 42903 && body["errors"][0].to_string().contains("quota streams "), "{body}");
    }
    Client::enter(&broker.mqtt, &Hello::new("o", &broker.other_key)).await?.leave().await?;
    // The same client comes back in the place that it had.
    let back = Client::enter(&broker.mqtt, &Hello::new("a", &broker.key)).await?;
    ensure!(first.ended().await?.is_some());
    back.leave().await?;
    drop(stream);
    set(&broker, Quota::Streams, 3).await?;
    Client::enter(&broker.mqtt, &Hello::new("b", &broker.key)).await?.leave().await
}

async fn publishes_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let made = broker.ok(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let topic = format!("/thngs/{}/properties/a", made["id"].as_str().context("id")?);
    set(&broker, Quota::EventsPerDay, 2).await?;
    let mut client = Client::enter(&broker.mqtt, &Hello::new("a", &broker.key)).await?;
    for n in 0..2 {
        ensure!(client.publish(&topic, &n.to_string(), AtLeastOnce).await? == 0);
    }
    for (topic, body) in [(topic.as_str(), "3"), ("/actions/checkins", "{}")] {
        let code = client.publish(topic, body, AtLeastOnce).await?;
        ensure!(code == u8::from(ReasonCode::QuotaExceeded), "{topic}: {code}");
    }
    client.leave().await
}

crate::on_both_engines!(connections_beyond_the_quota_are_refused, publishes_beyond_the_quota_are_refused);
