//! `POST /products/{id}/links/preview`: where the Digital Links of a product lead, and why.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::{merged, text},
};

use super::{Api, digital_links::links, operators::machine, platform::ask};

crate::on_both_engines!(
    what_decides_is_named,
    a_serial_is_looked_up_as_its_product_says,
    links_hold_within_their_time,
    what_was_taken_down_leads_nowhere,
    a_rule_decides_about_the_default_link,
    every_fault_is_named,
    who_reads_products_and_redirections_may_look,
);

const GTIN: &str = "09521234543213";
const FORMER: &str = "09528765123457";
/// Monday, 2026-09-21, 23:46:40 UTC.
const WHEN: i64 = 1_790_034_400_000;

fn link(page: &str, more: Value) -> Value {
    merged(json!({"linkType": "gs1:pip", "href": format!("https://e.com/{page}"), "title": page}), &more)
}

/// The path of the previews of a new product.
async fn make(api: &Api, more: Value) -> Result<(String, String)> {
    let body = merged(json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}}), &more);
    let id = text(&api.create("/products", body).await?, "id")?;
    Ok((format!("/products/{id}/links/preview"), id))
}

async fn preview(api: &Api, path: &str, body: Value) -> Result<Value> {
    let answer = api.post(path, body).await?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(answer.json())
}

/// A product with links in languages and contexts, and a lot.
fn shoe() -> Value {
    let manual = |page: &str| link(page, json!({"linkType": "gs1:instructions"}));
    json!({"gtinAliases": [FORMER], "links": [
        link("own?gtin={01}", json!({"default": true})),
        link("de", json!({"hreflang": ["de"]})),
        link("lk", json!({"context": ["LK"]})),
        manual("one"), manual("two"),
        link("proof", json!({"linkType": "gs1:certificationInfo", "type": "application/pdf"})),
        link("seal", json!({"linkType": "gs1:certificationInfo", "type": "text/html"})),
    ], "levels": [{"lot": "L/1", "links": links("https://e.com/lot/{10}")}]})
}

async fn what_decides_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (path, _) = make(&api, shoe()).await?;
    let off = preview(&api, &path, json!({"lot": "L/1"})).await?;
    let expected = json!({"url": format!("https://tn.gg/01/{GTIN}/10/L%2F1"), "status": 404, "code": 40402,
        "decidedBy": "domain", "links": [], "tried": []});
    ensure!(off == expected, "{off}");
    api.resolve("tn.gg", true).await?;

    let before = api.fingerprint().await?;
    let of_product = format!("01/{GTIN}");
    let of_lot = format!("{of_product}/10/L%2F1");
    for (body, status, by, level, location) in [
        (json!({}), 307, "default", &of_product, Some(format!("https://e.com/own?gtin={GTIN}"))),
        (
            json!({"acceptLanguage": "ja"}),
            307,
            "acceptLanguage",
            &of_product,
            Some(format!("https://e.com/own?gtin={GTIN}")),
        ),
        (
            json!({"acceptLanguage": "de-AT"}),
            307,
            "acceptLanguage",
            &of_product,
            Some("https://e.com/de".to_owned()),
        ),
        (
            json!({"context": "LK"}),
            307,
            "context",
            &of_product,
            Some("https://e.com/lk?context=LK".to_owned()),
        ),
        (json!({"lot": "L/1"}), 307, "default", &of_lot, Some("https://e.com/lot/L%2F1".to_owned())),
        (
            json!({"lot": "L/1", "serial": "S", "linkType": "gs1:certificationInfo", "accept": "application/pdf"}),
            307,
            "accept",
            &of_product,
            Some("https://e.com/proof?linkType=gs1:certificationInfo".to_owned()),
        ),
        (
            json!({"gtin": "9528765123457", "query": "17=261231"}),
            307,
            "default",
            &format!("01/{FORMER}"),
            Some(format!("https://e.com/own?gtin={FORMER}&17=261231")),
        ),
        (json!({"linkType": "gs1:instructions"}), 300, "several", &of_product, None),
        (json!({"linkType": "gs1:nosuch"}), 404, "noLink", &of_product, None),
        (json!({"linkType": "linkset"}), 200, "all", &of_product, None),
    ] {
        let shown = preview(&api, &path, body.clone()).await?;
        ensure!(shown["status"] == status && shown["decidedBy"] == by, "{body}: {shown}");
        ensure!(shown["location"] == json!(location), "{body}: {shown}");
        let counts_for = json!(Some(level).filter(|_| [300, 307].contains(&status)));
        ensure!(shown["countsFor"] == counts_for, "{body}: {shown}");
        ensure!(shown["code"] == json!(Some(40402).filter(|_| status == 404)), "{body}: {shown}");
        ensure!(shown["link"]["level"] == json!(location.map(|_| level)), "{body}: {shown}");
        let count = match status {
            200 => 7,
            300 => 2,
            _ => 0,
        };
        ensure!(shown["links"].as_array().map(Vec::len) == Some(count), "{body}: {shown}");
    }
    let shown = preview(&api, &path, json!({"lot": "L/1", "linkType": "all"})).await?;
    let first = json!({"level": of_lot, "linkType": "gs1:pip", "href": "https://e.com/lot/L%2F1", "title": "Product",
        "default": true});
    ensure!(shown["links"][0] == first && shown["links"].as_array().map(Vec::len) == Some(8), "{shown}");
    ensure!(api.fingerprint().await? == before, "a preview wrote something");
    Ok(())
}

async fn a_serial_is_looked_up_as_its_product_says(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let (path, product) = make(&api, json!({"links": links("https://e.com/{21}/{thngId}")})).await?;
    let item = |serial: &str, links: Value| json!({"name": serial, "product": product, "identifiers": {"gs1:21": serial}, "links": links});
    api.create("/thngs", item("OWN", links("https://e.com/own/{21}"))).await?;
    let plain = text(&api.create("/thngs", item("PLAIN", json!([]))).await?, "id")?;
    let of = |serial: &str| format!("01/{GTIN}/21/{serial}");
    let of_product = format!("01/{GTIN}");
    let of_plain = format!("https://e.com/PLAIN/{plain}");
    for (mode, serial, location, level, counts_for, known) in [
        ("none", "OWN", "https://e.com//", &of_product, &of_product, None),
        ("template", "OWN", "https://e.com/OWN/", &of_product, &of_product, None),
        ("overrides", "OWN", "https://e.com/own/OWN", &of("OWN"), &of("OWN"), Some(true)),
        ("overrides", "PLAIN", "https://e.com/PLAIN/", &of_product, &of_product, None),
        ("known", "OWN", "https://e.com/own/OWN", &of("OWN"), &of("OWN"), Some(true)),
        ("known", "PLAIN", of_plain.as_str(), &of_product, &of("PLAIN"), Some(true)),
        ("known", "NOBODY", "https://e.com/NOBODY/", &of_product, &of_product, Some(false)),
    ] {
        let changed = api.put(&format!("/products/{product}"), json!({"serialMode": mode})).await?;
        ensure!(changed.status == 200, "{changed:?}");
        api.resolve("tn.gg", true).await?;
        let shown = preview(&api, &path, json!({"serial": serial})).await?;
        ensure!(shown["location"] == location, "{mode} {serial}: {shown}");
        let found = (&shown["link"]["level"], &shown["countsFor"], &shown["known"]);
        ensure!(found == (&json!(level), &json!(counts_for), &json!(known)), "{mode} {serial}: {shown}");
    }
    // What is assumed of a Thng is for an item that is there.
    preview(&api, &path, json!({"serial": "OWN", "commissionState": "commissioned"})).await?;
    let nobody = Some(json!({"serial": "NOBODY", "commissionState": "commissioned"}));
    let faults = api.call(Method::POST, &path, nobody).await?.problem(400, 40001);
    ensure!(faults == ["commissionState is of Thngs, and this link leads to none."], "{faults:?}");
    Ok(())
}

async fn links_hold_within_their_time(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let sale = link("sale", json!({"linkType": "gs1:promotion", "from": WHEN, "to": WHEN + 2}));
    let (path, _) = make(&api, json!({"links": [link("own", json!({"default": true})), sale]})).await?;
    for (time, status) in [(WHEN - 1, 404), (WHEN, 307), (WHEN + 1, 307), (WHEN + 2, 404)] {
        let shown = preview(&api, &path, json!({"linkType": "gs1:promotion", "time": time})).await?;
        ensure!(shown["status"] == status, "{time}: {shown}");
        let shown = preview(&api, &path, json!({"linkType": "linkset", "time": time})).await?;
        let expected = if status == 307 { 2 } else { 1 };
        ensure!(shown["links"].as_array().map(Vec::len) == Some(expected), "{time}: {shown}");
    }
    Ok(())
}

async fn what_was_taken_down_leads_nowhere(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let evil = |page: &str, more: Value| {
        let mut link = link(page, more);
        link["href"] = json!(format!("https://a.evil.example/{page}"));
        link
    };
    let manual = |page: &str| link(page, json!({"linkType": "gs1:instructions"}));
    let bad_manual = evil("bad", json!({"linkType": "gs1:instructions"}));
    let links = json!([evil("own", json!({"default": true})), manual("one"), manual("two"), bad_manual]);
    let (path, _) = make(&api, json!({"links": links})).await?;
    let why = json!({"reason": "phishing"});
    let (platform, down) = (&api.platform_key, "/platform/takedowns");
    ask(&api, platform, Method::PUT, &format!("{down}/hosts/evil.example"), Some(why.clone())).await?;
    let shown = preview(&api, &path, json!({})).await?;
    ensure!(shown["status"] == 451 && shown["code"] == 45101 && shown.get("location").is_none(), "{shown}");
    ensure!(shown["decidedBy"] == "takeDown" && shown.get("countsFor").is_none(), "{shown}");
    ensure!(shown["takenDown"] == json!({"reason": "phishing", "host": "evil.example"}), "{shown}");
    for (link_type, status) in [("gs1:instructions", 300), ("linkset", 200)] {
        let shown = preview(&api, &path, json!({"linkType": link_type})).await?;
        let titles: Vec<&Value> =
            shown["links"].as_array().context("links")?.iter().map(|link| &link["title"]).collect();
        ensure!(shown["status"] == status && titles == ["one", "two"], "{shown}");
    }
    // Whatever is asked for, once a level itself was taken down.
    ask(&api, platform, Method::PUT, &format!("{down}/links/tn.gg/01%2F{GTIN}"), Some(why)).await?;
    for body in
        [json!({"serial": "S"}), json!({"linkType": "gs1:instructions"}), json!({"linkType": "linkset"})]
    {
        let shown = preview(&api, &path, body).await?;
        ensure!(shown["status"] == 451 && shown["takenDown"] == json!({"reason": "phishing"}), "{shown}");
        ensure!(shown["links"] == json!([]) && shown.get("link").is_none(), "{shown}");
    }
    Ok(())
}

async fn a_rule_decides_about_the_default_link(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let (path, _) = make(&api, shoe()).await?;
    let rules = json!({"rules": [
        {"name": "France", "match": "country=FR", "redirectUrl": "https://e.com/fr"},
        {"name": "Lots", "match": "shortId~01/&country=DE", "redirectUrl": "https://e.com/lots/{shortId}"},
    ]});
    let answer = api.put("/redirector", rules).await?;
    ensure!(answer.status == 200, "{answer:?}");
    let asked = json!({"country": "DE", "lot": "L/1", "query": "a=1"});
    let shown = preview(&api, &path, asked.clone()).await?;
    let leads = format!("https://e.com/lots/01%2F{GTIN}%2F10%2FL%252F1?a=1");
    ensure!(shown["location"] == leads && shown["decidedBy"] == "rule", "{shown}");
    ensure!(shown["rule"]["name"] == "Lots" && shown["tried"][0]["name"] == "France", "{shown}");
    ensure!(shown["link"]["href"] == "https://e.com/lot/L%2F1", "{shown}");
    let mut typed = asked;
    typed["linkType"] = json!("gs1:pip");
    let shown = preview(&api, &path, typed).await?;
    ensure!(shown["location"] == "https://e.com/lot/L%2F1?linkType=gs1:pip&a=1", "{shown}");
    ensure!(shown["decidedBy"] == "linkType" && shown["tried"] == json!([]), "{shown}");
    Ok(())
}

async fn every_fault_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (path, product) = make(&api, shoe()).await?;
    api.resolve("tn.gg", true).await?;
    for (body, expected) in [
        (
            json!({"linktype": "gs1:pip", "lot": "", "time": "now"}),
            &[
                "lot: (10) has no value.",
                "linktype is not a member of this operation.",
                "time must be an integer, in milliseconds since 1970.",
            ][..],
        ),
        (json!({"tpx": "X", "serial": "S"}), &["tpx must stand alone, without variant, lot and serial."]),
        (json!({"gtin": "09506000134352"}), &["gtin: 09506000134352 does not lead to this product."]),
        (json!({"query": "17=991399"}), &["query: "]),
        (json!({"query": "x=1&".repeat(512)}), &["query: path and query have at most 2048 bytes together."]),
    ] {
        let faults = api.post(&path, body.clone()).await?.problem(400, 40001);
        let fits = faults.iter().zip(expected).all(|(fault, start)| fault.starts_with(start));
        ensure!(faults.len() == expected.len() && fits, "{body}: {faults:?}");
    }
    for domain in ["other.gg", "nowhere.example"] {
        let answer = api.post(&format!("{path}?domain={domain}"), json!({})).await?;
        let faults = answer.problem(400, 40001);
        ensure!(faults[0].contains("is not a short domain of this account"), "{faults:?}");
    }
    let bare = text(&api.create("/products", json!({"name": "Bare"})).await?, "id")?;
    let path_of_bare = format!("/products/{bare}/links/preview");
    let faults = api.post(&path_of_bare, json!({})).await?.problem(409, 40901);
    ensure!(faults == ["The product has no Digital Link: identifiers.gs1:01 is missing."], "{faults:?}");
    api.post("/products/UKXAGyEf8SQ5eTDmVgGpHqAa/links/preview", json!({})).await?.problem(404, 40401);
    api.call_as(&api.other_key, Method::POST, &path, Some(json!({}))).await?.problem(404, 40401);
    api.call(Method::POST, &path, None).await?.problem(400, 40002);
    // A product without links leads nowhere.
    let cleared = json!({"links": [], "levels": []});
    let changed = api.put(&format!("/products/{product}"), cleared).await?;
    ensure!(changed.status == 200, "{changed:?}");
    let shown = preview(&api, &path, json!({"serial": "S"})).await?;
    ensure!(shown["status"] == 404 && shown["code"] == 40403 && shown["decidedBy"] == "unknown", "{shown}");
    Ok(())
}

async fn who_reads_products_and_redirections_may_look(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let application = text(&api.create(&applications, json!({"name": "a"})).await?, "id")?;
    let secret = api.get(&format!("{applications}/{application}/secretKey")).await?.json();
    let secret = text(&secret, "secretApiKey")?;
    let scoped =
        json!({"links": links("https://e.com/"), "serialMode": "known", "scopes": {"projects": [project]}});
    let (path, product) = make(&api, scoped).await?;
    // The item is of no project.
    let item = json!({"name": "i", "product": product, "identifiers": {"gs1:21": "S"}, "links": links("https://e.com/i")});
    api.create("/thngs", item).await?;
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let policy = json!({"name": "products", "permissions": ["products:read,list,update"]});
    let policy = text(&api.create("/accessPolicies", policy).await?, "id")?;
    let (_, of_products) = machine(&api, &policy, json!({})).await?;
    for (key, body, status) in [
        (&viewer, json!({}), 200),
        (&viewer, json!({"serial": "S"}), 200),
        (&of_products, json!({}), 403),
        (&secret, json!({}), 200),
        (&secret, json!({"serial": "T"}), 200),
        (&secret, json!({"serial": "S"}), 404),
    ] {
        let answer = api.call_as(key, Method::POST, &path, Some(body.clone())).await?;
        ensure!(answer.status == status, "{body}: {answer:?}");
    }
    // The preview by a short id would know one level.
    let by_id = format!("/redirections/01%2F{GTIN}/preview");
    let faults = api.post(&by_id, json!({})).await?.problem(409, 40901);
    ensure!(faults[0].contains("POST /products/{id}/links/preview"), "{faults:?}");
    Ok(())
}
