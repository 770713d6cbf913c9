//! The preview of a link says what an edge answers: over the real product, for a table of requests.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::merged,
    product::{Options, PHONE, Product},
};

use crate::availability::now;

crate::on_both_engines!(a_preview_says_what_an_edge_answers);

pub(crate) const FIREFOX: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
const LINKS: [&str; 6] = ["SHOE", "BAG", "PAUSED", "OVER", "ENDED", "LATER"];

pub(crate) async fn put(product: &Product, path: &str, body: Value) -> Result<()> {
    let (status, body) =
        product.call(Method::PUT, &format!("{path}?wait=edges&timeout=20s"), Some(body)).await?;
    ensure!(status == StatusCode::OK && body["acked"] == 1, "{status}: {body}");
    Ok(())
}

pub(crate) async fn create(product: &Product, path: &str, body: Value) -> Result<String> {
    let body = product.must_answer(201, Method::POST, path, Some(body)).await?;
    Ok(body["id"].as_str().unwrap_or_default().to_owned())
}

/// Links of every kind, and rules over everything that a request tells.
async fn prepare(product: &Product) -> Result<()> {
    let project = create(product, "/projects", json!({"name": "p"})).await?;
    let applications = format!("/projects/{project}/applications");
    let application = create(product, &applications, json!({"name": "a"})).await?;
    let thng = create(product, "/thngs", json!({"name": "Left shoe"})).await?;
    let bag = product.create_product().await?;
    let over = "https://example.com/over?id={shortId}";
    let at = now()?;
    for (short_id, more) in [
        (
            "SHOE",
            json!({"platformId": thng, "forwardQuery": true, "statusCode": 308,
            "scopes": {"projects": [project]}}),
        ),
        ("BAG", json!({"validFrom": at - 1, "validUntil": at + 86_400_000, "statusCode": 301})),
        ("PAUSED", json!({"status": "paused"})),
        ("OVER", json!({"validUntil": at - 1, "endedUrl": over, "forwardQuery": true, "statusCode": 302})),
        ("ENDED", json!({"validUntil": at - 1})),
        ("LATER", json!({"validFrom": at + 86_400_000})),
    ] {
        let target = "https://example.com/own/{platformId}?x=y#top";
        let body =
            merged(json!({"platformId": bag, "defaultRedirectUrl": target, "shortId": short_id}), &more);
        let made = create(product, "/redirections?wait=edges&timeout=20s", body).await;
        made.with_context(|| short_id.to_owned())?;
    }
    let of_application = json!([
        {"match": "city=Köln&language=de", "redirectUrl": "https://example.com/koeln/{shortId}?t={thngId}"},
        {"match": "country=FR&language!=fr"},
    ]);
    let path = format!("{applications}/{application}/redirector");
    put(product, &path, json!({"rules": of_application})).await?;
    let rules = json!([
        {"match": "timestamp<1000", "redirectUrl": "https://example.com/never"},
        {"match": "country!=DE&operatingSystemName=iPhone", "redirectUrl": "https://example.com/phone?p={productId}"},
        {"match": "!(language=de|language=fr)|userAgentName=Firefox", "redirectUrl": "https://example.com/firefox"},
        {"match": "commissionState=not_commissioned&thng.name~Left&hour<24", "redirectUrl": "https://example.com/left"},
    ]);
    put(product, "/redirector", json!({"rules": rules})).await
}

/// Status, `Location` and code of the error that an edge answers to a scan.
pub(crate) async fn scan(
    product: &Product,
    short_id: &str,
    sent: &[(&str, &str)],
    query: &str,
) -> Result<[Value; 3]> {
    let mut request = product.http.get(format!("{}/{short_id}{query}", product.edge));
    for (name, value) in sent {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    let location = response.headers().get(header::LOCATION);
    let location = location.map(|value| value.to_str().map(str::to_owned)).transpose()?;
    let body: Value = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
    Ok([json!(status), json!(location), body["code"].clone()])
}

async fn a_preview_says_what_an_edge_answers(engine: Engine) -> Result<()> {
    let options = Options { engine, unlimited: true, cities: true, ..Options::default() };
    let product = Product::start(options).await?;
    prepare(&product).await?;
    let (mut count, mut locations) = (0, std::collections::BTreeSet::new());
    let mut statuses = std::collections::BTreeSet::new();
    for (address, place) in [
        ("203.0.113.7", json!({"country": "DE", "city": "Köln"})),
        ("198.51.100.7", json!({"country": "FR"})),
        ("192.0.2.7", json!({})),
    ] {
        for agent in [PHONE, FIREFOX, ""] {
            for language in ["de-AT,en;q=0.5", "fr;q=0.9,de", "*", ""] {
                for query in ["", "?a=1&access_token=k&b=%20x"] {
                    let mut asked = place.clone();
                    let mut sent = vec![("x-forwarded-for", address)];
                    for (name, member, value) in
                        [("user-agent", "userAgent", agent), ("accept-language", "acceptLanguage", language)]
                    {
                        if !value.is_empty() {
                            sent.push((name, value));
                            asked[member] = json!(value);
                        }
                    }
                    if let Some(query) = query.strip_prefix('?') {
                        asked["query"] = json!(query);
                    }
                    for short_id in LINKS {
                        let answered = scan(&product, short_id, &sent, query).await?;
                        let path = format!("/redirections/{short_id}/preview");
                        let (status, said) = product.call(Method::POST, &path, Some(asked.clone())).await?;
                        ensure!(status == StatusCode::OK, "{status}: {said}");
                        let said_answer = ["status", "location", "code"].map(|name| said[name].clone());
                        ensure!(said_answer == answered, "{short_id} {asked}: {answered:?}, not {said}");
                        count += 1;
                        locations.extend(answered[1].as_str().map(str::to_owned));
                        statuses.extend(answered[0].as_u64());
                    }
                }
            }
        }
    }
    ensure!(count == 3 * 3 * 4 * 2 * LINKS.len(), "{count} requests");
    // For SHOE a rule decides each time, whatever its own status code.
    ensure!(statuses == [301, 307, 404, 410].into(), "{statuses:?}");
    // Every rule but the first one decided, and the target of a link and an ended page.
    for part in ["/own/", "/koeln/SHOE", "/phone?p=", "/firefox", "/left", "/over?id=OVER"] {
        ensure!(locations.iter().any(|location| location.contains(part)), "{part} in {locations:?}");
    }
    Ok(())
}
