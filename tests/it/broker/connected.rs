//! `~connected` matches reality.

use anyhow::{Context, Result, ensure};
use hosting::service::{By, accounts};
use mqtt5::QoS;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    fleet::Fleet,
    mqtt::{Client, Hello},
    product::{Options, Product},
    wait::read_until,
};

use super::Broker;

async fn the_connected_property_follows_connections(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    assert!(broker.connected(&thng).await?.is_empty(), "it is made at the first connection");
    // Somebody else's connection is none of the Thng's.
    let mut watcher = broker.operator("w").await?;
    watcher.subscribe(&format!("/thngs/{thng}/properties/~connected"), QoS::AtLeastOnce).await?;
    assert!(broker.connected(&thng).await?.is_empty());

    let first = Client::enter(&broker.mqtt, &Hello::new("one", &key)).await?;
    assert_eq!(watcher.hear().await?.body[0]["value"], json!(true));
    // Twice is once.
    let second = Client::enter(&broker.mqtt, &Hello::new("two", &key)).await?;
    first.leave().await?;
    broker.until_connected(&thng, &[true]).await?;
    second.leave().await?;
    assert_eq!(watcher.hear().await?.body[0]["value"], json!(false));
    broker.until_connected(&thng, &[true, false]).await?;

    // The same client id takes over, and the one before is told so.
    let first = Client::enter(&broker.mqtt, &Hello::new("one", &key)).await?;
    let second = Client::enter(&broker.mqtt, &Hello::new("one", &key)).await?;
    assert_eq!(first.ended().await?, Some(0x8e));
    broker.until_connected(&thng, &[true, false, true]).await?;
    // Cut without a word.
    drop(second);
    broker.until_connected(&thng, &[true, false, true, false]).await?;

    // Dead without a word: the keep-alive tells.
    let silent = Client::enter(&broker.mqtt, &Hello { keep_alive: 1, ..Hello::new("s", &key) }).await?;
    assert_eq!(silent.ended().await?, Some(0x8d));
    broker.until_connected(&thng, &[true, false, true, false, true, false]).await?;

    // Nobody writes it but the platform.
    let (status, _) = broker
        .call_as(&key, Method::PUT, &format!("/thngs/{thng}/properties/~connected"), Some(json!(true)))
        .await?;
    assert_eq!(status, 403);
    Ok(())
}

async fn a_will_is_published_only_after_an_abnormal_disconnect(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    let topic = format!("/thngs/{thng}/properties/state");
    for (good_bye, expected) in [(true, 0), (false, 1)] {
        let hello = Hello { will: Some((&topic, "\"lost\"")), ..Hello::new("w", &key) };
        let client = Client::enter(&broker.mqtt, &hello).await?;
        if good_bye {
            client.leave().await?
        } else {
            drop(client)
        }
        let expected_changes: &[bool] = if good_bye { &[true, false] } else { &[true, false, true, false] };
        broker.until_connected(&thng, expected_changes).await?;
        let all = broker.ok(Method::GET, &topic, None).await?;
        ensure!(all.as_array().map(Vec::len) == Some(expected), "{all}");
    }
    Ok(())
}

/// The end of its key is what ends the connection, so it writes nothing more.
async fn a_client_whose_key_is_refused_leaves_no_will(engine: Engine) -> Result<()> {
    for is_suspended in [true, false] {
        let broker = Broker::new(engine).await?;
        let core = &broker.made.app.core;
        let thng = broker.thng().await?;
        let key = broker.key_of(&thng).await?;
        let topic = format!("/thngs/{thng}/properties/state");
        let hello = Hello { will: Some((&topic, "\"lost\"")), ..Hello::new("w", &key) };
        let client = Client::enter(&broker.mqtt, &hello).await?;
        let by = By::command("platform", core.clock.now());
        if is_suspended {
            accounts::suspend(&core.db, &by, broker.made.account.as_str(), "unpaid").await?;
        } else {
            broker.ok(Method::DELETE, &format!("/auth/evrythng/thngs/{thng}"), None).await?;
        }
        assert_eq!(client.ended().await?, Some(0x87));
        if is_suspended {
            accounts::resume(&core.db, &by, broker.made.account.as_str()).await?;
            core.key_lookups.revoked();
        }
        // The will would have been written before this.
        broker.until_connected(&thng, &[true, false]).await?;
        let all = broker.ok(Method::GET, &topic, None).await?;
        ensure!(all == json!([]), "{all}");
    }
    Ok(())
}

async fn a_kill_of_the_process_is_noticed_by_the_next(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let (_, made) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let thng = made["id"].as_str().context("no id")?.to_owned();
    let (_, made) = product.call(Method::POST, "/auth/evrythng/thngs", Some(json!({"thngId": thng}))).await?;
    let key = made["thngApiKey"].as_str().context("no key")?.to_owned();
    let path = format!("/thngs/{thng}/properties/~connected");
    let _client = Client::enter(&product.mqtt, &Hello::new("t", &key)).await?;
    let (_, before) = product.call(Method::GET, &path, None).await?;
    assert_eq!(before[0]["value"], json!(true));
    product.kill()?;
    product.start_again()?;
    let is_noticed = |(_, after): &(StatusCode, Value)| {
        after[0]["value"] == json!(false) && after.as_array().map(Vec::len) == Some(2)
    };
    read_until(async || product.call(Method::GET, &path, None).await, is_noticed).await?;
    Ok(())
}

/// Two replicas: what is written on one is heard on the other, and the connections of one that is killed are
/// closed by the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_topics_and_connections() {
    let mut fleet = Fleet::start(2).await.unwrap();
    let (_, made) = fleet.call(0, Method::POST, "/thngs", Some(json!({"name": "t"}))).await.unwrap();
    let thng = made["id"].as_str().unwrap().to_owned();
    let body = Some(json!({"thngId": thng}));
    let (_, made) = fleet.call(0, Method::POST, "/auth/evrythng/thngs", body).await.unwrap();
    let key = made["thngApiKey"].as_str().unwrap().to_owned();
    let mut watcher = Client::enter(&fleet.controls[0].mqtt, &Hello::new("w", &fleet.key)).await.unwrap();
    watcher.subscribe(&format!("/thngs/{thng}/properties"), QoS::AtLeastOnce).await.unwrap();
    let path = format!("/thngs/{thng}/properties/a");
    fleet.call(1, Method::PUT, &path, Some(json!(1))).await.unwrap();
    assert_eq!(watcher.hear().await.unwrap().body[0]["value"], json!(1));
    // One connection on each replica: it is connected until the last has gone.
    let here = Client::enter(&fleet.controls[0].mqtt, &Hello::new("t", &key)).await.unwrap();
    assert_eq!(watcher.hear().await.unwrap().body[0]["value"], json!(true));
    let _there = Client::enter(&fleet.controls[1].mqtt, &Hello::new("t", &key)).await.unwrap();
    here.leave().await.unwrap();
    fleet.controls[1].kill().unwrap();
    // Nothing but the end of the lease says so.
    assert_eq!(watcher.hear().await.unwrap().body[0]["value"], json!(false));
    let (_, all) = fleet
        .call(0, Method::GET, &format!("/thngs/{thng}/properties/~connected?sortOrder=ASCENDING"), None)
        .await
        .unwrap();
    let values: Vec<bool> =
        all.as_array().unwrap().iter().filter_map(|point| point["value"].as_bool()).collect();
    assert_eq!(values, [true, false]);
}

crate::on_both_engines!(
    the_connected_property_follows_connections,
    a_will_is_published_only_after_an_abnormal_disconnect,
    a_client_whose_key_is_refused_leaves_no_will,
    a_kill_of_the_process_is_noticed_by_the_next,
);
