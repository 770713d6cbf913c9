//! Topics and payloads: a publish writes the same as HTTP, and subscribers receive what HTTP returns.

use anyhow::{Context, Result};
use mqtt5::{QoS, packet::suback::SubAckReasonCode};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    mqtt::{Client, Hello},
};

use super::Broker;

async fn writes_over_http_are_delivered(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    for (version, qos) in [(5, QoS::AtLeastOnce), (4, QoS::AtLeastOnce), (4, QoS::AtMostOnce)] {
        let id = format!("c{version}{}", qos as u8);
        let hello = Hello { version, ..Hello::new(&id, &broker.key) };
        let mut client = Client::enter(&broker.mqtt, &hello).await?;
        let all = format!("/thngs/{thng}/properties");
        let granted = if qos == QoS::AtMostOnce {
            SubAckReasonCode::GrantedQoS0
        } else {
            SubAckReasonCode::GrantedQoS1
        };
        assert_eq!(client.subscribe(&all, qos).await?, granted);
        let written = broker
            .put(
                &all,
                json!([{"key": "Temp", "value": 1.5, "timestamp": 5}, {"key": "on", "value": {"a": [true]}}]),
            )
            .await?;
        let heard = client.hear().await?;
        assert_eq!((heard.topic.as_str(), &heard.body), (all.as_str(), &written));
        client.unsubscribe(&all).await?;
        // Of one property, by whatever name the client gave the topic.
        let one = "/v2/thngs/gs1%3A21%3ASA/properties/TEMP";
        client.subscribe(one, qos).await?;
        broker.put(&format!("{all}/other"), json!(1)).await?;
        let written =
            broker.put(&format!("{all}/temp"), json!([{"value": 2}, {"value": 3, "timestamp": 9}])).await?;
        let heard = client.hear().await?;
        assert_eq!((heard.topic.as_str(), &heard.body), (one, &written));
        // Of each property by itself.
        let each = format!("/thngs/{thng}/properties/+");
        client.unsubscribe(one).await?;
        client.subscribe(&each, qos).await?;
        broker.put(&all, json!([{"key": "b/c", "value": 1}, {"key": "a", "value": 2}])).await?;
        let (first, second) = (client.hear().await?, client.hear().await?);
        assert_eq!(first.topic, format!("/thngs/{thng}/properties/a"));
        assert_eq!(second.topic, format!("/thngs/{thng}/properties/b%2Fc"));
        assert_eq!((&first.body[0]["value"], &second.body[0]["value"]), (&json!(2), &json!(1)));
        client.leave().await?;
    }
    Ok(())
}

async fn actions_are_delivered_by_type_and_by_resource(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let mut client = broker.operator("c").await?;
    for filter in ["/actions/scans".to_owned(), format!("/thngs/{thng}/actions/all")] {
        assert_eq!(client.subscribe(&filter, QoS::AtLeastOnce).await?, SubAckReasonCode::GrantedQoS1);
    }
    broker.ok(Method::POST, "/actions/checkins", Some(json!({}))).await?;
    let body = json!({"thng": thng, "customFields": {"a": 1}, "timestamp": 7});
    let made = broker.ok(Method::POST, "/actions/scans", Some(body)).await?;
    let id = made["id"].as_str().unwrap_or_default();
    let read = broker.ok(Method::GET, &format!("/actions/scans/{id}"), None).await?;
    let mut topics = Vec::new();
    for _ in 0..2 {
        let heard = client.hear().await?;
        assert_eq!(heard.body, read, "{}", heard.topic);
        topics.push(heard.topic);
    }
    topics.sort();
    assert_eq!(topics, ["/actions/scans".to_owned(), format!("/thngs/{thng}/actions/all")]);
    client.unsubscribe("/actions/scans").await?;
    client.unsubscribe(&format!("/thngs/{thng}/actions/all")).await?;
    client.subscribe("/actions/+", QoS::AtMostOnce).await?;
    broker.ok(Method::POST, "/actions/checkins", Some(json!({"thng": thng}))).await?;
    assert_eq!(client.hear().await?.topic, "/actions/checkins");
    Ok(())
}

/// A job tells of each of its actions, however many more there are than wait for one connection, unless its
/// options keep them from subscribers.
async fn actions_of_jobs_are_delivered(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let app = broker.made.app.clone();
    let stop = broker.shutdown.clone();
    tokio::spawn(async move { control::worker::run_jobs::run(app.jobs.clone(), stop).await });
    let thng = broker.thng().await?;
    let mut client = broker.operator("c").await?;
    client.subscribe("/actions/all", QoS::AtLeastOnce).await?;
    let submit = |kind: &str, count: usize, options: Value| {
        json!({"payload": {"type": kind}, "target": "THNGS", "options": options,
            "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": vec![thng.as_str(); count]}})
    };
    let quiet = json!([{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]);
    broker.ok(Method::POST, "/jobs/actions", Some(submit("checkins", 10, quiet))).await?;
    broker.ok(Method::POST, "/jobs/actions", Some(submit("scans", 2_500, json!([])))).await?;
    let mut heard = std::collections::BTreeSet::new();
    for _ in 0..2_500 {
        let message = client.hear().await?;
        assert_eq!((&message.body["type"], &message.body["thng"]), (&json!("scans"), &json!(thng)));
        heard.insert(message.body["id"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(heard.len(), 2_500, "each once");
    // What comes next is what was written next: nothing else of the jobs.
    broker.ok(Method::POST, "/actions/shares", Some(json!({}))).await?;
    assert_eq!(client.hear().await?.body["type"], "shares");
    Ok(())
}

/// Each change of a redirection, of one or of all, and each end of a job; nobody writes to these topics.
async fn events_of_redirections_and_jobs_are_delivered(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let (app, stop) = (broker.made.app.clone(), broker.shutdown.clone());
    tokio::spawn(async move { control::worker::run_jobs::run(app.jobs.clone(), stop).await });
    let thng = broker.thng().await?;
    let mut client = broker.operator("c").await?;
    for filter in ["/redirections", "/redirections/one-1", "/jobs/actions/+"] {
        assert_eq!(
            client.subscribe(filter, QoS::AtLeastOnce).await?,
            SubAckReasonCode::GrantedQoS1,
            "{filter}"
        );
    }
    let target = |n: u32| format!("https://example.com/{n}");
    let create = |short_id: &str| {
        let body = json!({"platformId": thng, "defaultRedirectUrl": target(1), "shortId": short_id});
        let request = broker.http.post(format!("{}/redirections", broker.api));
        request.header("authorization", &broker.key).header("accept", "application/json").json(&body).send()
    };
    assert_eq!(create("OTHER").await?.status(), 201);
    let heard = client.hear().await?;
    assert_eq!((heard.topic.as_str(), &heard.body["shortId"]), ("/redirections", &json!("OTHER")));
    assert_eq!(create("ONE-1").await?.status(), 201);
    broker
        .put(
            "/redirections/ONE-1",
            json!({"defaultRedirectUrl": target(2), "validUntil": 5, "statusCode": 301}),
        )
        .await?;
    broker.ok(Method::DELETE, "/redirections/ONE-1", None).await?;
    let (mut of_all, mut of_one) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let heard = client.hear().await?;
        assert_eq!(heard.body["platformId"], json!(thng), "{}", heard.body);
        assert!(
            heard.body.get("validFrom").is_none() && heard.body.get("status").is_none(),
            "{}",
            heard.body
        );
        let said =
            ["change", "defaultRedirectUrl", "validUntil", "statusCode"].map(|name| heard.body[name].clone());
        if heard.topic == "/redirections" { of_all.push(said) } else { of_one.push(said) }
    }
    let expected = [
        [json!("created"), json!(target(1)), json!(null), json!(null)],
        [json!("updated"), json!(target(2)), json!(5), json!(301)],
        // What is gone says where it led.
        [json!("deleted"), json!(target(2)), json!(5), json!(301)],
    ];
    assert_eq!((of_all.as_slice(), of_one.as_slice()), (expected.as_slice(), expected.as_slice()));

    let job = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [thng]}});
    broker.ok(Method::POST, "/jobs/actions", Some(job)).await?;
    let heard = client.hear().await?;
    let id = heard.body["id"].as_str().unwrap_or_default();
    assert_eq!((heard.topic, &heard.body["status"]), (format!("/jobs/actions/{id}"), &json!("COMPLETED")));
    for topic in ["/redirections", "/redirections/ONE-1", "/jobs/actions"] {
        assert_ne!(client.publish(topic, "{}", QoS::AtLeastOnce).await?, 0, "{topic}");
    }
    // Who may not read them hears none of them; another account has its own.
    let key = broker.key_of(&thng).await?;
    let mut itself = Client::enter(&broker.mqtt, &Hello::new("t", &key)).await?;
    for filter in ["/redirections", "/jobs/actions"] {
        assert_eq!(
            itself.subscribe(filter, QoS::AtLeastOnce).await?,
            SubAckReasonCode::NotAuthorized,
            "{filter}"
        );
    }
    let mut other = Client::enter(&broker.mqtt, &Hello::new("o", &broker.other_key)).await?;
    for filter in ["/redirections", "/redirections/THIRD", "/errors"] {
        other.subscribe(filter, QoS::AtLeastOnce).await?;
    }
    assert_eq!(create("THIRD").await?.status(), 201);
    assert_eq!(client.hear().await?.body["shortId"], "THIRD");
    other.publish("/none", "1", QoS::AtLeastOnce).await?;
    assert_eq!(other.hear().await?.topic, "/errors");
    Ok(())
}

async fn publishes_write_the_same_as_http(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let base = format!("/thngs/{thng}/properties");
    for (version, qos) in
        [(5, QoS::AtLeastOnce), (4, QoS::AtLeastOnce), (5, QoS::ExactlyOnce), (4, QoS::ExactlyOnce)]
    {
        let id = format!("p{version}{}", qos as u8);
        let hello = Hello { version, ..Hello::new(&id, &broker.key) };
        let mut client = Client::enter(&broker.mqtt, &hello).await?;
        assert_eq!(client.publish(&base, r#"[{"key": "Temp", "value": 1, "timestamp": 3}]"#, qos).await?, 0);
        assert_eq!(client.publish(&format!("{base}/one"), "21.5", qos).await?, 0);
        let read = broker.ok(Method::GET, &format!("{base}/temp"), None).await?;
        assert_eq!((&read[0]["value"], &read[0]["timestamp"]), (&json!(1), &json!(3)));
        assert_eq!(broker.ok(Method::GET, &format!("{base}/one"), None).await?[0]["value"], json!(21.5));
        assert_eq!(client.publish(&format!("/thngs/{thng}/actions/scans"), "{}", qos).await?, 0);
        let actions = broker.ok(Method::GET, &format!("/thngs/{thng}/actions/scans"), None).await?;
        let last = &actions[0];
        assert_eq!((&last["thng"], &last["type"]), (&json!(thng), &json!("scans")));
        client.leave().await?;
    }
    let all = broker.ok(Method::GET, &format!("/thngs/{thng}/actions/scans"), None).await?;
    assert_eq!(all.as_array().map(Vec::len), Some(4), "each message is written once");
    Ok(())
}

async fn invalid_publishes_get_the_errors_of_http(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let base = format!("/thngs/{thng}/properties");
    for version in [5, 4] {
        let id = format!("e{version}");
        let hello = Hello { version, ..Hello::new(&id, &broker.key) };
        let mut client = Client::enter(&broker.mqtt, &hello).await?;
        assert_eq!(client.subscribe("/errors", QoS::AtLeastOnce).await?, SubAckReasonCode::GrantedQoS1);
        for (topic, payload, status, reason) in [
            (base.clone(), "{", 400, 0x99),
            (base.clone(), r#"[{"key": "a"}]"#, 400, 0x99),
            (format!("{base}/~connected"), "true", 403, 0x87),
            ("/thngs/UKXAGyEf8SQ5eTDmVgGpHqAa/properties/a".to_owned(), "1", 404, 0x87),
            ("/actions/none".to_owned(), "{}", 404, 0x87),
            ("/other".to_owned(), "{}", 404, 0x90),
        ] {
            let said = client.publish(&topic, payload, QoS::AtLeastOnce).await?;
            assert_eq!(said, if version == 5 { reason } else { 0 }, "{topic} {payload}");
            let told = client.hear().await?;
            assert_eq!(told.topic, "/errors");
            assert_eq!(
                (&told.body["status"], &told.body["topic"]),
                (&json!(status), &json!(topic)),
                "{told:?}"
            );
            // The words are those of HTTP.
            if payload == r#"[{"key": "a"}]"# {
                let body = Some(serde_json::from_str::<Value>(payload)?);
                let (_, same) = broker.call_as(&broker.key, Method::PUT, &base, body).await?;
                assert_eq!(same["errors"], told.body["errors"]);
                assert_eq!(same["code"], told.body["code"]);
            }
        }
        client.leave().await?;
    }
    assert_eq!(broker.ok(Method::GET, &base, None).await?, json!([]));
    Ok(())
}

async fn only_permitted_topics_can_be_subscribed_to(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let mut client = broker.operator("c").await?;
    for (filter, expected) in [
        ("#".to_owned(), SubAckReasonCode::WildcardSubscriptionsNotSupported),
        ("+/+".to_owned(), SubAckReasonCode::WildcardSubscriptionsNotSupported),
        ("/thngs/+/properties".to_owned(), SubAckReasonCode::WildcardSubscriptionsNotSupported),
        (format!("/thngs/{thng}/#"), SubAckReasonCode::WildcardSubscriptionsNotSupported),
        ("$share/g/actions/scans".to_owned(), SubAckReasonCode::SharedSubscriptionsNotSupported),
        ("$SYS/broker".to_owned(), SubAckReasonCode::TopicFilterInvalid),
        ("/actions/none".to_owned(), SubAckReasonCode::NotAuthorized),
        ("/thngs/UKXAGyEf8SQ5eTDmVgGpHqAa/properties".to_owned(), SubAckReasonCode::NotAuthorized),
        (format!("/thngs/{thng}/properties/~connected"), SubAckReasonCode::GrantedQoS1),
        (format!("/thngs/{thng}/properties"), SubAckReasonCode::GrantedQoS1),
    ] {
        assert_eq!(client.subscribe(&filter, QoS::ExactlyOnce).await?, expected, "{filter}");
    }
    client.ping().await?;
    client.leave().await
}

async fn unknown_members_of_a_message_are_reported_on_the_errors_topic(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    for version in [4, 5] {
        let id = format!("i{version}");
        let hello = Hello { version, ..Hello::new(&id, &broker.key) };
        let mut client = Client::enter(&broker.mqtt, &hello).await?;
        client.subscribe("/errors", QoS::AtLeastOnce).await?;
        let topic = format!("/thngs/{thng}/properties");
        let message = json!([{"key": "temp", "value": 1}, {"key": "on", "value": {"own": 1}, "unit": "C"}]);
        client.publish(&topic, &message.to_string(), QoS::AtLeastOnce).await?;
        let told = client.hear().await?;
        assert_eq!(told.topic, "/errors");
        assert_eq!(told.body, json!({"topic": topic, "ignored": ["[1].unit"]}), "{told:?}");
        let written = broker.ok(Method::GET, &format!("{topic}/on"), None).await?;
        assert_eq!(written[0]["value"], json!({"own": 1}));
        client.leave().await?;
    }
    Ok(())
}

/// What an operator publishes is in the audit trail, as its requests are; what a Thng publishes is data.
async fn publishes_of_operators_are_in_the_audit_trail(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    let mut itself = Client::enter(&broker.mqtt, &Hello::new("t", &key)).await?;
    let mut operator = broker.operator("o").await?;
    for client in [&mut itself, &mut operator] {
        for (path, payload) in [("properties/temp", "1"), ("actions/scans", "{}")] {
            let topic = format!("/thngs/{thng}/{path}");
            assert_eq!(client.publish(&topic, payload, QoS::AtLeastOnce).await?, 0, "{topic}");
        }
    }
    let entries = broker.ok(Method::GET, "/audit?filter=operation%3DPUBLISH", None).await?;
    let entries = entries.as_array().context("a list")?;
    assert_eq!(entries.len(), 2, "{entries:?}");
    for entry in entries {
        assert_eq!(entry["actor"], json!(broker.made.operator.to_string()), "{entry}");
        assert!(entry["key"].as_str().is_some_and(|id| id.len() == 24), "{entry}");
        assert!(entry.get("after").is_some(), "{entry}");
    }
    Ok(())
}

crate::on_both_engines!(
    publishes_of_operators_are_in_the_audit_trail,
    unknown_members_of_a_message_are_reported_on_the_errors_topic,
    writes_over_http_are_delivered,
    actions_are_delivered_by_type_and_by_resource,
    actions_of_jobs_are_delivered,
    events_of_redirections_and_jobs_are_delivered,
    publishes_write_the_same_as_http,
    invalid_publishes_get_the_errors_of_http,
    only_permitted_topics_can_be_subscribed_to,
);
