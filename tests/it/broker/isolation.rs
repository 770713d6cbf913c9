//! Isolation between accounts: no client receives, writes or ends anything of another account.

use anyhow::{Context, Result};
use mqtt5::{QoS, packet::suback::SubAckReasonCode};
use reqwest::Method;
use serde_json::json;
use signin::domain::token::Token;
use tests::{
    db::Engine,
    mqtt::{Client, Hello},
};

use super::Broker;
use crate::http::begin_session;

async fn subscriptions_are_isolated_between_accounts(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let (mine, theirs) = (broker.thng().await?, broker.thng_of(&broker.other_key).await?);
    let mut one = broker.operator("same").await?;
    // The same client id in another account ends nobody.
    let mut other = Client::enter(&broker.mqtt, &Hello::new("same", &broker.other_key)).await?;
    one.ping().await?;
    for (client, foreign) in [(&mut one, &theirs), (&mut other, &mine)] {
        for path in ["properties", "properties/a", "properties/+", "actions/scans", "actions/all"] {
            let filter = format!("/thngs/{foreign}/{path}");
            assert_eq!(client.subscribe(&filter, QoS::AtLeastOnce).await?, SubAckReasonCode::NotAuthorized);
        }
        assert_eq!(
            client.subscribe("/actions/scans", QoS::AtLeastOnce).await?,
            SubAckReasonCode::GrantedQoS1
        );
        let topic = format!("/thngs/{foreign}/properties/a");
        assert_eq!(client.publish(&topic, "1", QoS::AtLeastOnce).await?, 0x87);
        let topic = format!("/thngs/{foreign}/actions/scans");
        assert_eq!(client.publish(&topic, "{}", QoS::AtLeastOnce).await?, 0x87);
    }
    // The same topic in two accounts: each hears its own.
    for (key, thng) in [(&broker.key, &mine), (&broker.other_key, &theirs)] {
        let body = Some(json!({"thng": thng}));
        let (status, _) = broker.call_as(key, Method::POST, "/actions/scans", body).await?;
        assert_eq!(status, 201);
    }
    for (client, own) in [(&mut one, &mine), (&mut other, &theirs)] {
        assert_eq!(client.hear().await?.body["thng"], json!(own));
        // Whatever else came is before this.
        client.subscribe("/errors", QoS::AtLeastOnce).await?;
        client.publish("/none", "1", QoS::AtLeastOnce).await?;
        assert_eq!(client.hear().await?.topic, "/errors");
    }
    Ok(())
}

async fn a_thng_is_confined_to_itself(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let body = json!({"name": "other"});
    let other =
        broker.ok(Method::POST, "/thngs", Some(body)).await?["id"].as_str().unwrap_or_default().to_owned();
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    let mut client = Client::enter(&broker.mqtt, &Hello::new("t", &key)).await?;
    for (path, expected) in [
        (format!("/thngs/{other}/properties"), SubAckReasonCode::NotAuthorized),
        (format!("/thngs/{other}/actions/all"), SubAckReasonCode::NotAuthorized),
        (format!("/thngs/{thng}/properties"), SubAckReasonCode::GrantedQoS0),
        ("/actions/scans".to_owned(), SubAckReasonCode::GrantedQoS0),
    ] {
        assert_eq!(client.subscribe(&path, QoS::AtMostOnce).await?, expected, "{path}");
    }
    assert_eq!(client.publish(&format!("/thngs/{other}/properties/a"), "1", QoS::AtLeastOnce).await?, 0x87);
    // Of the actions of a type it hears its own.
    for about in [&other, &thng] {
        broker.ok(Method::POST, "/actions/scans", Some(json!({"thng": about}))).await?;
    }
    // That it is connected may come first: the feed may not have read it yet when the Thng subscribed.
    let properties = format!("/thngs/{thng}/properties");
    let mut heard = client.hear().await?;
    if heard.topic == properties {
        assert_eq!(heard.body[0]["key"], json!("~connected"), "{heard:?}");
        heard = client.hear().await?;
    }
    assert_eq!(heard.body["thng"], json!(thng), "{heard:?}");
    Ok(())
}

async fn a_revoked_key_receives_nothing_more(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    for (key, reason) in [("", 0x86), ("short", 0x86), (&*"C".repeat(80), 0x86)] {
        let (_, answer) = Client::connect(&broker.mqtt, &Hello::new("c", key)).await?;
        assert_eq!(u8::from(answer.reason_code), reason, "{key}");
    }
    // Nor is the key behind a session of the console one.
    let cookie = begin_session(&broker.made.app, broker.made.account, broker.made.operator).await?;
    let token = Token::find([cookie.as_str()].into_iter()).context("token")?;
    let key = token.key(&broker.made.app.core.secrets.sign_in).context("key")?;
    let (_, answer) = Client::connect(&broker.mqtt, &Hello::new("c", &key)).await?;
    assert_eq!(u8::from(answer.reason_code), 0x86, "the key of a session");
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    let client = Client::enter(&broker.mqtt, &Hello::new("t", &key)).await?;
    broker.until_connected(&thng, &[true]).await?;
    broker.ok(Method::DELETE, &format!("/thngs/{thng}"), None).await?;
    assert_eq!(client.ended().await?, Some(0x87));
    Ok(())
}

crate::on_both_engines!(
    subscriptions_are_isolated_between_accounts,
    a_thng_is_confined_to_itself,
    a_revoked_key_receives_nothing_more,
);
