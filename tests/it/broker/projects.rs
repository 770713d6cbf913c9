//! An operator whose role is confined to a project hears of its project alone.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use mqtt5::{QoS, packet::suback::SubAckReasonCode};
use reqwest::Method;
use serde_json::json;
use tests::{
    db::Engine,
    json::id,
    mqtt::{Client, Hello},
};

use super::Broker;

const GRANTED: SubAckReasonCode = SubAckReasonCode::GrantedQoS1;
const REFUSED: SubAckReasonCode = SubAckReasonCode::NotAuthorized;

/// What a key confined to a project works with.
struct Confined {
    broker: Broker,
    key: String,
    /// `?project=` with its id.
    query: String,
    /// A Thng of the project, and one of none.
    inside: String,
    outside: String,
}

impl Confined {
    async fn new(engine: Engine) -> Result<Self> {
        let broker = Broker::new(engine).await?;
        let named = || Some(json!({"name": "x"}));
        let project = id(&broker.ok(Method::POST, "/projects", named()).await?)?;
        let body = json!({"name": "m", "role": "editor", "conditions": [format!("project={project}")]});
        let made = broker.ok(Method::POST, "/accessTokens", Some(body)).await?;
        let key = made["apiKey"].as_str().context("key")?.to_owned();
        let query = format!("?project={project}");
        let inside = id(&broker.ok(Method::POST, &format!("/thngs{query}"), named()).await?)?;
        let outside = id(&broker.ok(Method::POST, "/thngs", named()).await?)?;
        Ok(Self { broker, key, query, inside, outside })
    }

    async fn write(&self, thng: &str, query: &str) -> Result<()> {
        let broker = &self.broker;
        broker.put(&format!("/thngs/{thng}/properties"), json!([{"key": "temp", "value": 1}])).await?;
        broker.ok(Method::POST, &format!("/actions/scans{query}"), Some(json!({"thng": thng}))).await?;
        let link = json!([{"platformId": thng, "defaultRedirectUrl": "https://example.com/"}]);
        broker.ok(Method::POST, &format!("/redirections{query}"), Some(link)).await?;
        Ok(())
    }
}

async fn an_operator_of_a_project_hears_its_project_alone(engine: Engine) -> Result<()> {
    let confined = Confined::new(engine).await?;
    let Confined { broker, key, query, inside, outside } = &confined;
    let mut others = Vec::new();
    for kind in ["products", "collections"] {
        let made = broker.ok(Method::POST, &format!("/{kind}"), Some(json!({"name": "x"}))).await?;
        others.push(format!("/{kind}/{}", id(&made)?));
    }
    let mut client = Client::enter(&broker.mqtt, &Hello::new("m", key)).await?;
    for (topic, expected) in [
        (format!("/thngs/{outside}/properties"), REFUSED),
        (format!("/thngs/{outside}/properties/+"), REFUSED),
        (format!("/thngs/{outside}/actions/all"), REFUSED),
        (format!("{}/properties", others[0]), REFUSED),
        (format!("{}/actions/all", others[0]), REFUSED),
        (format!("{}/actions/all", others[1]), REFUSED),
        ("/jobs/actions".to_owned(), REFUSED),
        (format!("/thngs/{inside}/properties"), GRANTED),
        ("/actions/all".to_owned(), GRANTED),
        ("/redirections".to_owned(), GRANTED),
    ] {
        assert_eq!(client.subscribe(&topic, QoS::AtLeastOnce).await?, expected, "{topic}");
    }
    // Nor does it write there.
    for (path, payload) in [("properties/temp", "1"), ("actions/scans", "{}")] {
        let topic = format!("/thngs/{outside}/{path}");
        assert_eq!(client.publish(&topic, payload, QoS::AtLeastOnce).await?, 0x87, "{topic}");
    }
    // What comes first is of no project.
    confined.write(outside, "").await?;
    confined.write(inside, query).await?;
    let mut topics = BTreeSet::new();
    for _ in 0..3 {
        let heard = client.hear().await?;
        ensure!(!heard.body.to_string().contains(outside.as_str()), "{heard:?}");
        topics.insert(heard.topic);
    }
    let properties = format!("/thngs/{inside}/properties");
    let expected = ["/actions/all", "/redirections", properties.as_str()];
    assert_eq!(topics, expected.map(str::to_owned).into());
    Ok(())
}

/// A subscription to a Thng's properties does not outlive its place in the project.
async fn a_thng_that_leaves_its_project_is_not_heard_any_more(engine: Engine) -> Result<()> {
    let confined = Confined::new(engine).await?;
    let Confined { broker, key, query, inside, .. } = &confined;
    let mut client = Client::enter(&broker.mqtt, &Hello::new("m", key)).await?;
    let path = format!("/thngs/{inside}/properties");
    for topic in [path.as_str(), &format!("{path}/temp"), &format!("{path}/+"), "/actions/all"] {
        assert_eq!(client.subscribe(topic, QoS::AtLeastOnce).await?, GRANTED, "{topic}");
    }
    broker.put(&path, json!([{"key": "temp", "value": 1}])).await?;
    for _ in 0..3 {
        assert_eq!(client.hear().await?.body[0]["value"], 1);
    }
    broker.put(&format!("/thngs/{inside}"), json!({"scopes": {"users": [], "projects": []}})).await?;
    broker.put(&path, json!([{"key": "temp", "value": 2}])).await?;
    broker.ok(Method::POST, &format!("/actions/scans{query}"), Some(json!({}))).await?;
    let heard = client.hear().await?;
    assert_eq!(heard.topic, "/actions/all", "{heard:?}");
    Ok(())
}

crate::on_both_engines!(
    an_operator_of_a_project_hears_its_project_alone,
    a_thng_that_leaves_its_project_is_not_heard_any_more,
);
