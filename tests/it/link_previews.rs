//! The preview of the Digital Links of a product says what an edge answers: over the real product, for a table of requests.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::merged,
    product::{Options, PHONE, Product},
};

use crate::{
    availability::now,
    preview::{create, put},
};

crate::on_both_engines!(a_preview_of_digital_links_says_what_an_edge_answers);

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const DAY_MS: i64 = 86_400_000;
const PRODUCTS: &str = "/products?wait=edges&timeout=20s";

fn link(link_type: &str, page: &str, more: Value) -> Value {
    merged(
        json!({"linkType": link_type, "href": format!("https://example.com/{page}"), "title": page}),
        &more,
    )
}

fn default(link_type: &str, page: &str) -> Value {
    link(link_type, page, json!({"default": true}))
}

/// A product with links of every kind, on every level.
fn shoe(at: i64) -> Value {
    let pip = |page: &str, more: Value| link("gs1:pip", page, more);
    let manual = |page: &str, language: &str| link("gs1:instructions", page, json!({"hreflang": [language]}));
    let proof = |page: &str, kind: &str| link("gs1:certificationInfo", page, json!({"type": kind}));
    let sale = |page: &str, from: i64, to: i64| {
        link("gs1:promotion", page, json!({"from": at + from * DAY_MS, "to": at + to * DAY_MS}))
    };
    json!({"name": "Shoe", "identifiers": {"gs1:01": "09506000134352"}, "gtinAliases": ["09506000134369"],
    "serialMode": "overrides",
    "links": [
        default("gs1:pip", "{01}/{21}?a=1#top"),
        pip("de", json!({"hreflang": ["de"]})),
        pip("de-ch", json!({"hreflang": ["de"], "context": ["CH"]})),
        pip("br", json!({"hreflang": ["pt-BR"]})),
        pip("lk", json!({"context": ["LK"]})),
        pip("later", json!({"hreflang": ["fr"], "from": at + DAY_MS})),
        manual("manual-de", "de"),
        manual("manual-fr", "fr"),
        proof("proof-html", "text/html"),
        proof("proof-pdf", "application/pdf"),
        sale("old", -2, -1),
        sale("sale", -1, 1),
        sale("next", 1, 2),
    ],
    "levels": [
        {"lot": "L/1", "links": [default("gs1:recallStatus", "recall/{10}"), link("gs1:instructions", "lot/{22}{10}", json!({}))]},
        {"variant": "V", "links": [default("gs1:pip", "variant/{22}/{10}")]},
        {"variant": "V", "lot": "L/1", "links": [default("gs1:dpp", "both/{22}/{10}/{21}")]},
        {"tpx": "X", "links": [default("gs1:pip", "tpx/{01}")]},
    ]})
}

/// Products with every serial mode, items with and without links, and a rule; gives the ids of the products.
async fn prepare(product: &Product) -> Result<[String; 5]> {
    let of = |name: &str, gtin: &str, more: Value| {
        merged(json!({"name": name, "identifiers": {"gs1:01": gtin}}), &more)
    };
    let with_serial = json!([default("gs1:pip", "{01}/{21}/{thngId}")]);
    let mode = |mode: &str| json!({"serialMode": mode, "links": with_serial});
    let lots = json!({"levels": [{"lot": "L", "links": [default("gs1:pip", "only-lot")]}]});
    let shoe = create(product, PRODUCTS, shoe(now()?)).await?;
    let known = create(product, PRODUCTS, of("Known", "09521234543213", mode("known"))).await?;
    let ids = [
        shoe.clone(),
        known.clone(),
        create(product, PRODUCTS, of("Template", "09528765123457", mode("template"))).await?,
        create(product, PRODUCTS, of("None", "09506000164908", mode("none"))).await?,
        create(product, PRODUCTS, of("Lots", "09521234543220", lots)).await?,
    ];
    let own = json!([
        default("gs1:dpp", "item/{21}?t={thngId}"),
        link("gs1:instructions", "item-manual", json!({}))
    ]);
    for (of, serial, links) in [
        (&shoe, "OWN", own.clone()),
        (&shoe, "PLAIN", json!([])),
        (&known, "OWN", own),
        (&known, "PLAIN", json!([])),
    ] {
        let item = json!({"name": serial, "product": of, "identifiers": {"gs1:21": serial}, "links": links});
        create(product, "/thngs?wait=edges&timeout=20s", item).await?;
    }
    let rules = json!([{"match": "query.promo=1", "redirectUrl": "https://example.com/promo/{shortId}"}]);
    put(product, "/redirector", json!({"rules": rules})).await?;
    Ok(ids)
}

/// The targets of a linkset, in order; the default link is there under its type, too.
fn hrefs(linkset: &Value) -> Vec<String> {
    let levels = linkset["linkset"].as_array().into_iter().flatten();
    let types = levels.filter_map(Value::as_object).flatten();
    let types = types.filter(|(name, _)| name.starts_with("https://") && !name.ends_with("/defaultLink"));
    let links = types.flat_map(|(_, links)| links.as_array().into_iter().flatten());
    let mut hrefs: Vec<String> = links.filter_map(|link| link["href"].as_str()).map(str::to_owned).collect();
    hrefs.sort_unstable();
    hrefs
}

/// Asks for a preview, and an edge for the Digital Link in it; both answer alike. Gives what decides.
async fn compare(product: &Product, id: &str, body: &Value) -> Result<String> {
    let path = format!("/products/{id}/links/preview");
    let (status, shown) = product.call(Method::POST, &path, Some(body.clone())).await?;
    ensure!(status == StatusCode::OK, "{body}: {status}: {shown}");
    let behind = shown["url"].as_str().and_then(|url| url.splitn(4, '/').nth(3)).context("url")?;
    let accept = body["accept"].as_str().context("accept")?;
    let request = product.http.get(format!("{}/{behind}", product.edge));
    let mut request = request.header(header::USER_AGENT, PHONE).header(header::ACCEPT, accept);
    if let Some(language) = body["acceptLanguage"].as_str() {
        request = request.header(header::ACCEPT_LANGUAGE, language);
    }
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let location = answer.headers().get(header::LOCATION).map(|value| value.to_str().map(str::to_owned));
    let answered = (json!(status), json!(location.transpose()?));
    ensure!(
        (&shown["status"], &shown["location"]) == (&answered.0, &answered.1),
        "{behind} {body}: {answered:?}, not {shown}"
    );
    let text = answer.text().await?;
    let read: Option<Value> = serde_json::from_str(&text).ok();
    let links = || shown["links"].as_array().into_iter().flatten();
    match (status, read) {
        (200 | 300, Some(linkset)) => {
            let mut listed: Vec<String> =
                links().filter_map(|link| link["href"].as_str()).map(str::to_owned).collect();
            listed.sort_unstable();
            ensure!(
                !listed.is_empty() && listed == hrefs(&linkset),
                "{behind} {body}: {linkset}, not {shown}"
            );
        }
        // A page for people.
        (200 | 300, None) => {
            let has = |link: &Value| link["title"].as_str().is_some_and(|title| text.contains(title));
            ensure!(links().count() > 0 && links().all(has), "{behind} {body}: {text}, not {shown}");
        }
        (400.., Some(problem)) => {
            ensure!(shown["code"] == problem["code"], "{behind} {body}: {problem}, not {shown}");
        }
        _ => ensure!(shown["links"] == json!([]), "{behind} {body}: {shown}"),
    }
    Ok(shown["decidedBy"].as_str().context("decidedBy")?.to_owned())
}

/// A request with what is not empty.
fn asked(of: &Value, more: [(&str, &str); 4]) -> Value {
    let mut body = of.clone();
    for (name, value) in more.into_iter().filter(|(_, value)| !value.is_empty()) {
        body[name] = json!(value);
    }
    body
}

async fn a_preview_of_digital_links_says_what_an_edge_answers(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let domains = format!("/accounts/{}/domains", access["account"].as_str().context("account")?);
    let listed = product.list(&domains).await?;
    let domain = listed.first().and_then(|one| one["domain"].as_str()).context("domain")?;
    let bare = json!({"name": "Bare", "identifiers": {"gs1:01": "09506000164915"}});
    let bare = create(&product, PRODUCTS, bare).await?;
    let mut decided = BTreeSet::new();
    // Nothing resolves them yet.
    decided.insert(compare(&product, &bare, &json!({"accept": "*/*", "lot": "L/1"})).await?);
    let settings = Some(json!({"digitalLinks": true}));
    let (status, body) = product.call(Method::PUT, &format!("{domains}/{domain}"), settings).await?;
    ensure!(status == StatusCode::OK, "{status}: {body}");
    let [shoe, known, template, none, lots] = prepare(&product).await?;

    // Every wish of a request, for one product.
    for accept in ["*/*", BROWSER, "application/json", "application/linkset+json", "application/pdf"] {
        for language in ["", "de-AT,en;q=0.5", "pt", "fr;q=0.9,ja"] {
            for context in ["", "lk", "CH"] {
                for link_type in [
                    "",
                    "gs1:pip",
                    "https://www.gs1.org/voc/instructions",
                    "gs1:certificationInfo",
                    "gs1:promotion",
                    "gs1:nosuch",
                    "linkset",
                ] {
                    let more = [
                        ("accept", accept),
                        ("acceptLanguage", language),
                        ("context", context),
                        ("linkType", link_type),
                    ];
                    decided.insert(compare(&product, &shoe, &asked(&json!({}), more)).await?);
                }
            }
        }
    }
    // Every level, with some of them.
    let mut count = 0;
    for (id, of) in [
        (&shoe, json!({"gtin": "09506000134369", "lot": "L/1"})),
        (&shoe, json!({"lot": "L/1", "serial": "S"})),
        (&shoe, json!({"lot": "L/1", "serial": "OWN"})),
        (&shoe, json!({"lot": "other", "serial": "PLAIN"})),
        (&shoe, json!({"variant": "V"})),
        (&shoe, json!({"variant": "V", "lot": "L/1", "serial": "A&B"})),
        (&shoe, json!({"variant": "W", "lot": "L/1"})),
        (&shoe, json!({"tpx": "X"})),
        (&known, json!({"serial": "OWN"})),
        (&known, json!({"serial": "PLAIN"})),
        (&known, json!({"serial": "NOBODY"})),
        (&template, json!({"serial": "A/1"})),
        (&none, json!({"serial": "A/1"})),
        (&lots, json!({})),
        (&lots, json!({"lot": "L", "serial": "S"})),
        (&bare, json!({"serial": "S"})),
    ] {
        for accept in ["*/*", BROWSER] {
            for link_type in ["", "gs1:instructions", "gs1:nosuch", "linkset"] {
                for query in ["", "17=261231&promo=1&x=%2f"] {
                    let more =
                        [("accept", accept), ("linkType", link_type), ("query", query), ("context", "")];
                    let request = asked(&of, more);
                    decided
                        .insert(compare(&product, id, &request).await.with_context(|| request.to_string())?);
                    count += 1;
                }
            }
        }
    }
    ensure!(count == 16 * 2 * 4 * 2, "{count}");
    let all = [
        "accept",
        "acceptLanguage",
        "all",
        "context",
        "default",
        "domain",
        "linkType",
        "noLink",
        "rule",
        "several",
        "unknown",
    ];
    ensure!(decided.iter().map(String::as_str).eq(all), "{decided:?}");
    Ok(())
}
