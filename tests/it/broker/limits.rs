//! Requests over MQTT are limited like those over HTTP.

use std::{pin::pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use mqtt5::{
    QoS::{AtLeastOnce, AtMostOnce},
    packet::suback::SubAckReasonCode::GrantedQoS0,
};
use reqwest::Method;
use serde_json::json;
use shared::time::{Clock, ManualClock, UnixMillis};
use tests::{
    db::Engine,
    mqtt::{Client, Hello},
};
use tokio::time::timeout;
use web::limiter::{Limits, Ticks};

use super::{Broker, DEADLINE};

/// How long a message must not be acknowledged.
const QUIET: Duration = Duration::from_millis(300);

/// A broker whose limits fill by a clock of the test: a key has 6 requests, public keys of an account have 12.
async fn limited(engine: Engine) -> Result<(Broker, Arc<ManualClock>)> {
    let clock = Arc::new(ManualClock::new(UnixMillis(0)));
    let ticks = clock.clone();
    let broker = Broker::with(engine, |parts| {
        parts.ticks = Ticks::new(move || Duration::from_millis(ticks.now().0.unsigned_abs()));
        parts.limits = Limits { requests_per_key: 3, ..Limits::default() };
    })
    .await?;
    Ok((broker, clock))
}

/// A connected Thng, and the topic of a property of it.
async fn thng(broker: &Broker, name: &str) -> Result<(Client, String)> {
    let made = broker.ok(Method::POST, "/thngs", Some(json!({"name": name}))).await?;
    let id = made["id"].as_str().context("no id")?;
    let key = broker.key_of(id).await?;
    let client = Client::enter(&broker.mqtt, &Hello::new(name, &key)).await?;
    Ok((client, format!("/thngs/{id}/properties/a")))
}

async fn public_keys_of_an_account_share_a_limit(engine: Engine) -> Result<()> {
    let (broker, clock) = limited(engine).await?;
    let mut clients = Vec::new();
    for (seconds, name) in [(10, "one"), (20, "two"), (30, "three")] {
        // The requests of the operator come back.
        clock.set(UnixMillis(seconds * 1_000));
        clients.push(thng(&broker, name).await?);
    }
    clock.set(UnixMillis(60_000));
    let [one, two, (third, topic)] = &mut clients[..] else { bail!("three clients") };
    for (client, topic) in [one, two] {
        for n in 0..6 {
            ensure!(timeout(DEADLINE, client.publish(topic, &n.to_string(), AtLeastOnce)).await?? == 0);
        }
    }
    // Its own key has made no request.
    let mut sent = pin!(third.publish(topic, "1", AtLeastOnce));
    ensure!(timeout(QUIET, &mut sent).await.is_err(), "the account has no more");
    clock.set(UnixMillis(61_000));
    ensure!(timeout(DEADLINE, sent).await?? == 0);
    Ok(())
}

async fn subscriptions_count_as_requests(engine: Engine) -> Result<()> {
    let (broker, clock) = limited(engine).await?;
    let (mut client, topic) = thng(&broker, "one").await?;
    clock.set(UnixMillis(60_000));
    for _ in 0..6 {
        ensure!(timeout(DEADLINE, client.subscribe(&topic, AtMostOnce)).await?? == GrantedQoS0);
    }
    let mut sent = pin!(client.subscribe(&topic, AtMostOnce));
    ensure!(timeout(QUIET, &mut sent).await.is_err(), "the key has no more");
    clock.set(UnixMillis(61_000));
    ensure!(timeout(DEADLINE, sent).await?? == GrantedQoS0);
    Ok(())
}

crate::on_both_engines!(public_keys_of_an_account_share_a_limit, subscriptions_count_as_requests);
