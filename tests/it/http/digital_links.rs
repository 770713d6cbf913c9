//! GS1 Digital Links: the records that follow from products, Things and domains, and their scans.

mod arrays;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::worker::ingest_scans::ingest;
use digital_links::service::step;
use domains::store::domains::hand_over;
use kernel::store::Ctx;
use redirects::store::redirections::load_fill;
use serde_json::{Value, json};
use shared::{
    redirect::{Redirect, RedirectKey},
    wire::scan::{ScanRecord, ScannedLink},
};
use tests::{db::Engine, json::text, product::PHONE};

use super::{
    Api,
    authentication::{BERN, trigger, with},
};
use crate::{
    decode::tools,
    store::scans::{batch, record},
};

const GTIN: &str = "09521234543213";
const OTHER: &str = "09528765123457";

pub(super) fn links(href: &str) -> Value {
    json!([{"linkType": "gs1:pip", "href": href, "title": "Product", "default": true}])
}

impl Api {
    /// Says whether a domain of the first account resolves Digital Links, and waits for what follows.
    pub(super) async fn resolve(&self, host: &str, digital_links: bool) -> Result<()> {
        let path = format!("/accounts/{}/shortDomains/{host}", self.made.account);
        let answer = self
            .call(Method::PUT, &path, Some(json!({"digitalLinks": digital_links})))
            .await?
            .must_be(200)?;
        ensure!(answer.json().get("digitalLinks").is_some() == digital_links, "{answer:?}");
        self.follow().await
    }

    /// Does what is left to do in the background.
    async fn follow(&self) -> Result<()> {
        while step(&self.made.app.core).await? {}
        Ok(())
    }

    /// What an edge reads of a Digital Link on the account's domain.
    async fn resolved(&self, short_id: &str) -> Result<Option<Redirect>> {
        let mut conn = self.made.app.core.db.read().await?;
        let fill = load_fill(&mut conn, &RedirectKey::new("tn.gg", short_id)).await?;
        Ok(fill.value.map(|(_, redirect)| Redirect::clone(&redirect)))
    }

    /// Where it leads, and how many links it has.
    async fn leads(&self, short_id: &str) -> Result<Option<(String, usize)>> {
        let found = self.resolved(short_id).await?;
        Ok(found.map(|one| (one.target.into(), one.digital_link.map_or(0, |set| set.links.len()))))
    }

    async fn changed(&self, path: &str, body: Value) -> Result<Value> {
        Ok(self.call(Method::PUT, path, Some(body)).await?.must_be(200)?.json())
    }
}

fn to(href: &str, links: usize) -> Option<(String, usize)> {
    Some((href.to_owned(), links))
}

async fn a_product_leads_by_its_gtins_and_lots(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "9521234543213"}, "links": links("https://e.com/{01}"),
        "levels": [{"lot": "L/1", "links": links("https://e.com/lot/{10}")}], "serialMode": "template"});
    let made = api.create("/products?wait=edges", body.clone()).await?;
    ensure!(made["identifiers"]["gs1:01"] == GTIN && made["levels"] == body["levels"], "{made}");
    let path = format!("/products/{}", text(&made, "id")?);
    let (of_gtin, of_lot) = (format!("01/{GTIN}"), format!("01/{GTIN}/10/L%2F1"));
    ensure!(api.leads(&of_gtin).await? == to(&format!("https://e.com/{GTIN}"), 1));
    ensure!(api.leads(&of_lot).await? == to("https://e.com/lot/L%2F1", 1));
    let record = api.resolved(&of_gtin).await?.context("record")?;
    let set = record.digital_link.context("links")?;
    ensure!((&*set.description, set.serial_mode.as_str()) == ("Shoe", "template"), "{set:?}");

    // It is a link that is read by its path, and changed with its product alone.
    let link = format!("/redirections/01%2F{GTIN}");
    let read = api.get(&link).await?;
    ensure!(read.json()["shortUrl"] == format!("https://tn.gg/{of_gtin}"), "{read:?}");
    for (method, body) in
        [(Method::PUT, Some(json!({"defaultRedirectUrl": "https://e.com/"}))), (Method::DELETE, None)]
    {
        let faults = api.call(method, &link, body).await?.problem(409, 40901);
        ensure!(faults[0].contains("is a Digital Link"), "{faults:?}");
    }
    let listed = api.get(&format!("/redirections?platformId={}", text(&made, "id")?)).await?.json();
    ensure!(listed == json!([]), "{listed}");

    // Its id has slashes, which those of other links have not.
    let take_down = format!("/platform/takedowns/links/tn.gg/01%2F{GTIN}");
    api.call_as(&api.platform_key, Method::PUT, &take_down, Some(json!({"reason": "recall"})))
        .await?
        .must_be(200)?;
    ensure!(api.get(&link).await?.json()["takenDown"]["reason"] == "recall");
    api.call_as(&api.platform_key, Method::DELETE, &take_down, None).await?.must_be(200)?;
    let history = api.get(&format!("{link}/history")).await?.json();
    ensure!(history[0]["change"] == "created" && history[0]["operation"] == "POST /products", "{history}");

    // The former GTIN still leads to it, until somebody says that it shall not.
    let moved = json!({"identifiers": {"gs1:01": OTHER}, "links": links("https://e.com/new"), "levels": []});
    let changed = api.changed(&path, moved).await?;
    ensure!(changed["gtinAliases"] == json!([GTIN]), "{changed}");
    for gtin in [GTIN, OTHER] {
        ensure!(api.leads(&format!("01/{gtin}")).await? == to("https://e.com/new", 1), "{gtin}");
    }
    ensure!(api.leads(&of_lot).await?.is_none());
    let taken = json!({"name": "Other", "identifiers": {"gs1:01": GTIN}});
    let faults = api.call(Method::POST, "/products", Some(taken.clone())).await?.problem(409, 40901);
    ensure!(faults[0].contains(&format!("the GTIN {GTIN} leads to the product")), "{faults:?}");
    api.changed(&path, json!({"gtinAliases": []})).await?;
    ensure!(api.leads(&of_gtin).await?.is_none());

    // What comes back has the place of what was removed, with its hits.
    ensure!(api.call(Method::DELETE, &path, None).await?.status == 200);
    ensure!(api.leads(&format!("01/{OTHER}")).await?.is_none());
    let again =
        json!({"name": "Again", "identifiers": {"gs1:01": GTIN}, "links": links("https://e.com/again")});
    api.create("/products", again).await?;
    ensure!(api.leads(&of_gtin).await? == to("https://e.com/again", 1));
    // All records of a product are written at once.
    let lots = (0..100).map(|n| json!({"lot": format!("L{n}"), "links": links("https://e.com/")}));
    let mut many = json!({"name": "Many", "identifiers": {"gs1:01": "9506000134369"}, "levels": lots.collect::<Vec<_>>(),
        "gtinAliases": ["9506000134352", "96385074", "9521234543220"]});
    let faults = api.call(Method::POST, "/products", Some(many.clone())).await?.problem(400, 40001);
    ensure!(faults[0].contains("at most 300 Digital Links on a short domain, not 400"), "{faults:?}");
    many["gtinAliases"] = json!(["9506000134352", "96385074"]);
    api.create("/products", many).await?;
    Ok(())
}

async fn items_follow_the_serial_mode(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}, "links": links("https://e.com/p")});
    let product = text(&api.create("/products", body).await?, "id")?;
    let path = format!("/products/{product}");
    let item = |serial: &str, links: Value| json!({"name": serial, "product": product, "identifiers": {"gs1:21": serial}, "links": links});
    let own = text(&api.create("/thngs", item("OWN", links("https://e.com/{thngId}"))).await?, "id")?;
    api.create("/thngs", item("PLAIN", json!([]))).await?;
    let of = |serial: &str| format!("01/{GTIN}/21/{serial}");
    let own_target = to(&format!("https://e.com/{own}"), 1);
    for (mode, expected) in [
        ("none", [None, None]),
        ("overrides", [own_target.clone(), None]),
        ("known", [own_target.clone(), to("https://e.com/p", 0)]),
        ("template", [None, None]),
        ("known", [own_target.clone(), to("https://e.com/p", 0)]),
    ] {
        api.changed(&path, json!({"serialMode": mode})).await?;
        api.follow().await?;
        ensure!([api.leads(&of("OWN")).await?, api.leads(&of("PLAIN")).await?] == expected, "{mode}");
    }
    // What is made and changed later follows at once.
    let late = text(&api.create("/thngs", item("LATE", json!([]))).await?, "id")?;
    ensure!(api.leads(&of("LATE")).await? == to("https://e.com/p", 0));
    let moved = json!({"identifiers": {"gs1:21": "MOVED"}, "links": links("https://e.com/moved")});
    api.changed(&format!("/thngs/{late}?wait=edges"), moved).await?;
    ensure!(api.leads(&of("LATE")).await?.is_none());
    ensure!(api.leads(&of("MOVED")).await? == to("https://e.com/moved", 1));
    ensure!(api.call(Method::DELETE, &format!("/thngs/{late}"), None).await?.status == 200);
    ensure!(api.leads(&of("MOVED")).await?.is_none());
    // Items follow the GTIN of a product that has no links itself, and codes with the former one are printed.
    api.changed(&path, json!({"links": []})).await?;
    api.changed(&path, json!({"identifiers": {"gs1:01": OTHER}})).await?;
    api.follow().await?;
    for short_id in [of("OWN"), format!("01/{OTHER}/21/OWN")] {
        ensure!(api.leads(&short_id).await? == own_target, "{short_id}");
    }
    ensure!(api.leads(&of("PLAIN")).await?.is_none());
    // Items of a product that is gone lead nowhere.
    ensure!(api.call(Method::DELETE, &path, None).await?.status == 200);
    api.follow().await?;
    ensure!(api.leads(&of("OWN")).await?.is_none() && api.leads(&of("PLAIN")).await?.is_none());
    Ok(())
}

async fn a_domain_begins_and_ends_in_steps(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let gtin = |index: usize| {
        let digits = format!("0952123{index:06}");
        let sum: usize = (0..13).map(|at| usize::from(digits.as_bytes()[at] - b'0') * [3, 1][at % 2]).sum();
        format!("{digits}{}", (10 - sum % 10) % 10)
    };
    let product = |index: usize| json!({"name": "p", "identifiers": {"gs1:01": gtin(index)}, "links": links("https://e.com/")});
    let all: Vec<Value> = (0..25).map(product).collect();
    api.call(Method::POST, "/products", Some(json!(all))).await?.must_be(200)?;
    let last = format!("01/{}", gtin(24));
    let account = api.made.account;
    let (settings, quotas) =
        (format!("/accounts/{account}/shortDomains/tn.gg"), format!("/accounts/{account}/quotas"));
    let limit = Some(json!({"links": 3}));
    api.call_as(&api.platform_key, Method::PUT, &format!("/platform{quotas}"), limit).await?.must_be(200)?;
    for is_on in [true, false] {
        let before = api.get(&settings).await?.header("etag").context("etag")?.to_owned();
        api.call(Method::PUT, &settings, Some(json!({"digitalLinks": is_on}))).await?.must_be(200)?;
        ensure!(api.get(&settings).await?.header("etag") != Some(&before), "its tag is another one");
        // A step does some of them; what was killed then goes on there.
        ensure!(step(&api.made.app.core).await?);
        ensure!(api.leads(&last).await?.is_some() != is_on);
        api.follow().await?;
        ensure!(api.leads(&last).await?.is_some() == is_on);
        // What follows from a setting is made above the limit, too, and counts.
        let used = api.get(&quotas).await?.json()["links"]["used"].clone();
        let expected = if is_on { 25 } else { 0 };
        ensure!(used == expected, "{used}");
    }
    Ok(())
}

/// What another account made on the domain before keeps nobody from the same GTIN.
async fn a_domain_leads_by_the_products_of_its_next_account(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let body = |href: &str| json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}, "links": links(href)});
    let product = text(&api.create("/products", body("https://e.com/old")).await?, "id")?;
    let (of_gtin, now) = (format!("01/{GTIN}"), api.made.app.core.clock.now().0);
    ingest(&api.made.app, &batch(1, 0, &[record(&of_gtin, PHONE, now)])).await?;
    let link = format!("/redirections/01%2F{GTIN}?domain=tn.gg");
    ensure!(api.get(&link).await?.json()["hits"] == 1);
    ensure!(api.call(Method::DELETE, &format!("/products/{product}"), None).await?.status == 200);

    let (from, to_account) = (api.made.account, api.other_account);
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    ensure!(hand_over(&mut tx, from, to_account, &"tn.gg".parse()?).await?);
    tx.commit().await?;
    let as_other = async |method: Method, path: &str, body: Option<Value>| {
        api.call_as(&api.other_key, method, path, body).await
    };
    let made = as_other(Method::POST, "/products", Some(body("https://e.com/new"))).await?;
    ensure!(made.status == 201, "{made:?}");
    let settings = format!("/accounts/{to_account}/shortDomains/tn.gg");
    let on = as_other(Method::PUT, &settings, Some(json!({"digitalLinks": true}))).await?;
    ensure!(on.status == 200, "{on:?}");
    api.follow().await?;
    ensure!(api.leads(&of_gtin).await? == to("https://e.com/new", 1));
    let read = as_other(Method::GET, &link, None).await?;
    ensure!(read.status == 200 && read.json()["hits"] == 0, "{read:?}");
    Ok(())
}

/// What looks at nothing of the database but through the same calls.
async fn links_are_refused_with_every_fault(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let identifiers = json!({"gs1:01": GTIN});
    let product = |links: Value| json!({"name": "p", "identifiers": identifiers, "links": links});
    let before = api.fingerprint().await?;
    for (body, part) in [
        (
            json!({"name": "p", "links": links("https://e.com/")}),
            "links need a Digital Link: identifiers.gs1:01 is missing",
        ),
        (product(links("https://127.0.0.1/")), "links[0].href must not lead to a loopback"),
        (product(links("https://tn.gg/A")), "links[0].href must not lead to a short domain of this service"),
        (product(links("https://{01}.e.com/")), "links[0].href must not hold a tag in the host"),
        (
            json!({"name": "p", "identifiers": {"gs1:01": "00000000000000"}, "links": links("https://e.com/")}),
            "GS1 prefix",
        ),
    ] {
        let faults = api.call(Method::POST, "/products", Some(body)).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(part), "{part}: {faults:?}");
    }
    let thng = json!({"name": "t", "links": links("https://10.0.0.1/")});
    let faults = api.call(Method::POST, "/thngs", Some(thng)).await?.problem(400, 40001);
    ensure!(faults[0].contains("links[0].href must not lead to a loopback"), "{faults:?}");
    api.call(Method::POST, "/products?wait=all", Some(json!({"name": "p"}))).await?.problem(400, 40003);
    assert_eq!(before, api.fingerprint().await?);

    // Another account may have the same GTIN: its domains are others.
    api.create("/products", product(links("https://e.com/"))).await?;
    api.call_as(&api.other_key, Method::POST, "/products", Some(product(links("https://e.com/"))))
        .await?
        .must_be(201)?;
    // Waiting: there is no edge, so all have it.
    let waited = api.call(Method::POST, "/products?wait=edges", Some(json!({"name": "p"}))).await?;
    ensure!(waited.status == 201 && waited.header("x-waymark-edges").is_some(), "{waited:?}");
    Ok(())
}

/// A code of a short id says the Digital Link, where its domain resolves it.
async fn codes_may_say_the_digital_link(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}});
    let product = text(&api.create("/products", body).await?, "id")?;
    let thng = json!({"name": "t", "product": product, "identifiers": {"gs1:21": "A/1"}});
    let thng = text(&api.create("/thngs", thng).await?, "id")?;
    let link = json!({"platformId": thng, "shortId": "ONE", "defaultRedirectUrl": "https://e.com/"});
    ensure!(api.call(Method::POST, "/redirections", Some(link)).await?.status == 200);
    let order = json!({"format": "svg", "code": {"payload": "gs1dl"}, "hri": {"text": "gs1"},
        "source": {"list": {"shortIds": ["ONE"]}}, "waitForEdges": "none"});
    let code = "/redirections/ONE.qr?payload=gs1dl&ecl=M";
    let faults = api.get(code).await?.problem(422, 42201);
    ensure!(faults[0].contains("does not have digitalLinks"), "{faults:?}");
    let faults = api.call(Method::POST, "/jobs/qr", Some(order.clone())).await?.problem(400, 40001);
    ensure!(faults[0].contains("no Digital Link"), "{faults:?}");
    api.resolve("tn.gg", true).await?;
    // Of the item, and of the record of a lot.
    let lots = json!({"links": links("https://e.com/"), "levels": [{"lot": "L/1%", "links": links("https://e.com/lot")}]});
    api.call(Method::PUT, &format!("/products/{product}"), Some(lots)).await?.must_be(200)?;
    api.follow().await?;
    let lot = format!("/redirections/01%2F{GTIN}%2F10%2FL%252F1%2525.qr");
    for (code, path) in [(code, "21/A%2F1"), (&*lot, "10/L%2F1%25")] {
        let drawn = api.get(code).await?.must_be(200)?;
        let read = tools::rqrr(&drawn.bytes, code);
        ensure!(read == [format!("https://tn.gg/01/{GTIN}/{path}")], "{code}: {read:?}");
    }
    let made = api.call(Method::POST, "/jobs/qr", Some(order.clone())).await?;
    ensure!(made.status == 201 && made.json()["code"]["payload"] == "gs1dl", "{made:?}");
    // An item without a serial is not printed with the code of its product.
    let bare = text(&api.create("/thngs", json!({"name": "u", "product": product})).await?, "id")?;
    let link = json!({"platformId": bare, "shortId": "TWO", "defaultRedirectUrl": "https://e.com/"});
    ensure!(api.call(Method::POST, "/redirections", Some(link)).await?.status == 200);
    let order = json!({"source": {"list": {"shortIds": ["TWO"]}}, "format": "svg", "code": order["code"]});
    let faults = api.call(Method::POST, "/jobs/qr", Some(order)).await?.problem(400, 40001);
    ensure!(faults[0].contains("no Digital Link"), "{faults:?}");
    Ok(())
}

async fn a_scan_belongs_to_the_item_of_its_serial(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}, "links": links("https://e.com/"),
        "levels": [{"lot": "L1", "links": links("https://e.com/lot")}], "gtinAliases": [OTHER]});
    let product = text(&api.create("/products", body).await?, "id")?;
    let thng = json!({"name": "t", "product": product, "identifiers": {"gs1:21": "S1"}});
    let thng = text(&api.create("/thngs", thng).await?, "id")?;
    let now = api.made.app.core.clock.now().0;
    let scan = |folded: &str, path: &str, serial: Option<&str>| ScanRecord {
        entry_url: format!("https://tn.gg/{path}").into(),
        digital_link: Some(Box::new(ScannedLink {
            gtin: GTIN.into(),
            serial: serial.map(Into::into),
            link_type: Some("gs1:pip".into()),
            ..ScannedLink::default()
        })),
        ..record(folded, PHONE, now)
    };
    let (of_gtin, of_lot) = (format!("01/{GTIN}"), format!("01/{GTIN}/10/L1"));
    let records = [
        scan(&of_gtin, &format!("{of_gtin}/21/S1"), Some("S1")),
        scan(&of_gtin, &format!("{of_gtin}/21/S2"), Some("S2")),
        scan(&of_lot, &of_lot, None),
    ];
    ingest(&api.made.app, &batch(1, 0, &records)).await?;

    let scans = api.get(&format!("/thngs/{thng}/actions/implicitScans")).await?.json();
    ensure!(scans.as_array().map(Vec::len) == Some(1) && scans[0]["serial"] == "S1", "{scans}");
    ensure!(scans[0]["customFields"]["linkType"] == "gs1:pip", "{scans}");
    let filter = |text: &str| format!("/actions/implicitScans?filter={}", text.replace('=', "%3D"));
    let of_one = api.get(&filter(&format!("customFields.gtin={GTIN}"))).await?.json();
    ensure!(of_one.as_array().map(Vec::len) == Some(3), "{of_one}");
    let of_lots = api.get(&filter("customFields.lot=L1")).await?.json();
    ensure!(of_lots.as_array().map(Vec::len) == Some(1), "{of_lots}");
    let link = api.get(&format!("/redirections/01%2F{GTIN}")).await?.json();
    ensure!(link["hits"] == 2, "{link}");

    let counts = api.get("/scans/stats?groupBy=gtin").await?.json();
    ensure!(counts["rows"][0]["gtin"] == GTIN && counts["rows"][0]["scans"] == 3, "{counts}");
    let counts = api.get(&format!("/scans/stats?groupBy=lot&filter=gtin%3D{GTIN}")).await?.json();
    let lots: Vec<(&Value, &Value)> =
        counts["rows"].as_array().into_iter().flatten().map(|row| (&row["lot"], &row["scans"])).collect();
    ensure!(lots == [(&json!(null), &json!(2)), (&json!("L1"), &json!(1))], "{counts}");

    // A code is that of the item, also with a former GTIN, and without a record for each serial.
    for (code, expected) in [
        (format!("https://tn.gg/{of_lot}/21/S1?17=271231"), json!(thng)),
        (format!("https://tn.gg/01/{OTHER}/21/S1"), json!(thng)),
        (format!("https://tn.gg/{of_gtin}/21/S2"), Value::Null),
    ] {
        let asked = with(trigger(None, BERN), "customFields", json!({"scanValue": code}));
        let result = api.call(Method::POST, "/authentication", Some(asked)).await?.json();
        ensure!(result["thng"] == expected, "{code}: {result}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_product_leads_by_its_gtins_and_lots,
    items_follow_the_serial_mode,
    a_domain_begins_and_ends_in_steps,
    a_domain_leads_by_the_products_of_its_next_account,
    links_are_refused_with_every_fault,
    codes_may_say_the_digital_link,
    a_scan_belongs_to_the_item_of_its_serial,
);
