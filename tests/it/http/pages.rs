//! Pages where a code leads nowhere, through the API.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kernel::store::Ctx;
use redirects::store::{domains, log, pages as table};
use serde_json::{Value, json};
use shared::{pages::Pages, short_url::Host, wire::stream::Change};
use sqlx::Connection;
use tests::db::{Engine, Location};

use super::Api;

crate::on_both_engines!(
    pages_come_back_and_edges_are_told,
    those_of_a_domain_take_the_place_of_those_of_its_account,
    every_fault_is_named_and_changes_nothing,
    pages_of_others_are_not_there,
    what_all_domains_show_is_bounded,
    pages_of_a_newer_release_keep_no_edge_away,
    a_preview_says_who_gets_the_page_of_copies,
);

const DOMAIN: &str = "tn.gg";

/// A logo of one point: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>`.
const LOGO: &str = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxwYXRoIGQ9Ik0wIDBoOHY4eiIvPjwvc3ZnPg==";

impl Api {
    fn pages(&self) -> String {
        format!("/accounts/{}/pages", self.made.account)
    }

    fn domain_pages(&self) -> String {
        format!("/accounts/{}/shortDomains/{DOMAIN}/pages", self.made.account)
    }

    /// The name on the pages of each domain that has some, as an edge that connects now is told.
    async fn shown(&self) -> Result<BTreeMap<String, String>> {
        let mut conn = self.made.app.core.db.read().await?;
        let all = domains::list_all(&mut conn).await?;
        let named = all.iter().filter_map(|domain| {
            let pages = domain.pages.as_ref()?;
            Some((domain.host.to_string(), pages.name.as_deref().unwrap_or_default().to_owned()))
        });
        Ok(named.collect())
    }
}

/// What edges were told of a domain, in order: the name on its pages.
async fn told(api: &Api) -> Result<Vec<Option<String>>> {
    let mut conn = api.made.app.core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let events = log::list_after(&mut conn, &epoch, 0, 100).await?;
    let names = events.into_iter().filter_map(|event| match event.change {
        Change::Domain(domain) if domain.host.as_str() == DOMAIN => {
            Some(domain.pages.as_ref().and_then(|pages| pages.name.as_deref().map(str::to_owned)))
        }
        _ => None,
    });
    Ok(names.collect())
}

async fn pages_come_back_and_edges_are_told(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let before = told(&api).await?.len();
    let whole = json!({
        "name": "Acme",
        "logo": LOGO,
        "colors": {"background": "#ffffff", "text": "#1a1a1a", "accent": "#0b57d0"},
        "link": {"url": "https://example.com/help", "label": "Help"},
        "copies": "confirmed",
        "reports": true,
        "photos": true,
        "texts": {"de": {"unknown": {"title": "Unbekannt", "text": "Fragen Sie im Geschäft."}},
            "pt-BR": {"ended": {"title": "a", "text": "b"}, "suspended": {"title": "a", "text": "b"},
                "root": {"title": "a", "text": "b"}}},
    });
    for path in [api.pages(), api.domain_pages()] {
        ensure!(api.get(&path).await?.json() == json!({}));
        // The same once more is no change, and a body replaces all of the one before.
        for body in [&whole, &whole, &json!({"name": "Other"}), &json!({})] {
            let answer = api.put(&path, body.clone()).await?;
            ensure!(answer.status == 200 && answer.json() == *body, "{answer:?}");
            ensure!(answer.header("x-ignored").is_none(), "{answer:?}");
            ensure!(api.get(&path).await?.json() == *body);
        }
        let waited = api.put(&format!("{path}?wait=edges"), json!({})).await?;
        ensure!(waited.status == 200 && waited.json()["members"] == 0, "{waited:?}");
    }
    let names = told(&api).await?.split_off(before);
    let once = [Some("Acme".to_owned()), Some("Other".to_owned()), None];
    ensure!(names == [once.clone(), once].concat(), "{names:?}");
    let trail = api.get("/audit?filter=resource=pages&perPage=100").await?.json();
    let entries = trail.as_array().with_context(|| trail.to_string())?;
    ensure!(entries.len() == 6 && entries[0]["resourceId"] == DOMAIN, "{trail}");
    ensure!(entries[0]["before"]["name"] == "Other", "{trail}");
    // The trail has a fingerprint of the logo.
    ensure!(
        trail.to_string().contains("data:image/svg+xml, ") && !trail.to_string().contains(LOGO),
        "{trail}"
    );
    Ok(())
}

async fn those_of_a_domain_take_the_place_of_those_of_its_account(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let put = async |path: String, name: Option<&str>| {
        let body = name.map_or(json!({}), |name| json!({"name": name}));
        api.put(&path, body).await?.must_be(200)?;
        anyhow::Ok(api.shown().await?.get(DOMAIN).cloned())
    };
    let shown = |name: &str| Some(name.to_owned());
    ensure!(put(api.pages(), Some("Account")).await? == shown("Account"));
    ensure!(put(api.domain_pages(), Some("Domain")).await? == shown("Domain"));
    ensure!(put(api.pages(), Some("Other")).await? == shown("Domain"));
    ensure!(put(api.domain_pages(), None).await? == shown("Other"));
    ensure!(put(api.pages(), None).await?.is_none());
    // Another setting of the domain tells edges its pages, too.
    put(api.pages(), Some("Account")).await?;
    let path = format!("/accounts/{}/domains/{DOMAIN}", api.made.account);
    ensure!(api.put(&path, json!({"redirectMaxAge": 60})).await?.status == 200);
    ensure!(told(&api).await?.last() == Some(&shown("Account")));
    Ok(())
}

async fn every_fault_is_named_and_changes_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let before = api.fingerprint().await?;
    for path in [api.pages(), api.domain_pages()] {
        let body = json!({
            "name": "x".repeat(81),
            "logo": "data:image/svg+xml;base64,PHN2Zy8+",
            "copies": "all",
            "reports": 1,
            "colors": {"background": "#ffffff", "text": "#777777", "accent": "#000000"},
            "link": {"url": "http://example.com/", "label": "x"},
            "texts": {"de": {"unknwon": {"title": "x", "text": "x"}}},
            "sound": "x",
        });
        let faults = api.put(&path, body).await?.problem(400, 40001);
        for part in [
            "sound is not known here.",
            "name must have at most 80 characters, not 81.",
            "logo cannot be taken as an SVG: ",
            "colors.text has a contrast of 4.47 with colors.background; it must be at least 4.5.",
            "link.url must be an https URL",
            "copies must be suspected or confirmed.",
            "reports must be true or false.",
            "texts.de.unknwon is not known here.",
        ] {
            ensure!(faults.iter().any(|fault| fault.starts_with(part)), "{part}: {faults:?}");
        }
        ensure!(faults.len() == 8, "{faults:?}");
        for body in [json!([]), json!("x"), json!(null)] {
            api.put(&path, body).await?.problem(400, 40001);
        }
        api.put(&format!("{path}?wait=all"), json!({})).await?.problem(400, 40003);
    }
    assert_eq!(before, api.fingerprint().await?);

    // The button leads only where links of the account may lead.
    let account = format!("/accounts/{}", api.made.account);
    let hosts = json!({"targetHosts": ["example.com"]});
    ensure!(api.put(&account, hosts).await?.status == 200);
    let before = api.fingerprint().await?;
    let link = |host: &str| json!({"link": {"url": format!("https://{host}/"), "label": "Help"}});
    for host in ["example.org", "example.org/?{", "example.org/?|"] {
        let faults = api.put(&api.pages(), link(host)).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].starts_with("link.url "), "{faults:?}");
    }
    assert_eq!(before, api.fingerprint().await?);
    ensure!(api.put(&api.pages(), link("example.com")).await?.status == 200);
    Ok(())
}

async fn pages_of_others_are_not_there(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let of = format!("/accounts/{}", api.made.account);
    let others = format!("/accounts/{}", api.other_account);
    let before = api.fingerprint().await?;
    for path in [
        format!("{of}/shortDomains/other.gg/pages"),
        format!("{of}/shortDomains/x.gg/pages"),
        format!("{of}/shortDomains/%00/pages"),
        format!("{others}/pages"),
        format!("{others}/shortDomains/other.gg/pages"),
        format!("{others}/shortDomains/{DOMAIN}/pages"),
    ] {
        api.get(&path).await?.problem(404, 40401);
        api.put(&path, json!({"name": "x"})).await?.problem(404, 40401);
    }
    assert_eq!(before, api.fingerprint().await?);
    api.put(&api.pages(), json!({"name": "Acme"})).await?.must_be(200)?;
    let shown = api.shown().await?;
    ensure!(shown.contains_key(DOMAIN) && !shown.contains_key("other.gg"), "{shown:?}");
    Ok(())
}

async fn a_preview_says_who_gets_the_page_of_copies(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "Left shoe"})).await?["id"].clone();
    let link =
        json!({"platformId": thng, "shortId": "SHOE", "defaultRedirectUrl": "https://example.com/own"});
    let made = api.post("/redirections", json!([link])).await?.json();
    ensure!(made[0]["shortId"] == "SHOE", "{made}");
    let put = async |path: String, pages: Value| {
        api.put(&path, pages).await?.must_be(200)?;
        anyhow::Ok(())
    };
    let check = async |status: &str, expected: [Value; 3]| {
        let scan = json!({"assessment": {"counterfeitStatus": status}});
        let asked = api.post("/redirections/SHOE/preview", scan).await?.json();
        let said = ["status", "code", "decidedBy"].map(|name| asked[name].clone());
        ensure!(said == expected, "{status}: {asked}");
        ensure!(asked.get("location").is_some() == (said[0] == 307), "{status}: {asked}");
        anyhow::Ok(())
    };
    let leads = || [json!(307), Value::Null, json!("defaultRedirectUrl")];
    let stops = || [json!(403), json!(40_305), json!("copy")];
    check("confirmed", leads()).await?;
    put(api.pages(), json!({"copies": "confirmed"})).await?;
    check("suspected", leads()).await?;
    check("confirmed", stops()).await?;
    put(api.domain_pages(), json!({"copies": "suspected"})).await?;
    check("none", leads()).await?;
    check("suspected", stops()).await?;
    // Those of the domain take the place of all of those of the account.
    put(api.domain_pages(), json!({"name": "Acme"})).await?;
    check("confirmed", leads()).await?;
    put(api.domain_pages(), json!({})).await?;
    let rules = json!({"rules": [{"match": "assessment.counterfeitStatus=confirmed"}]});
    ensure!(api.put("/redirector", rules).await?.status == 200);
    check("confirmed", [json!(307), Value::Null, json!("rule")]).await
}

/// Every edge holds all pages, and is told all of them when it connects.
async fn what_all_domains_show_is_bounded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let huge = Pages { name: Some("x".repeat(32 << 20).into()), ..Pages::default() };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let host: Host = "other.gg".parse()?;
    table::put(&mut tx, api.other_account, Some(&host), &huge).await?;
    tx.commit().await?;
    let answer = api.put(&api.pages(), json!({"name": "Acme"})).await?;
    let faults = answer.problem(409, 40901);
    ensure!(faults[0].starts_with("The pages of all domains take at most 33554432 bytes"), "{faults:?}");
    ensure!(api.get(&api.pages()).await?.json() == json!({}), "nothing was stored");
    // Those of before stay, and may become smaller.
    let small = Pages { name: Some("Acme".into()), ..Pages::default() };
    let own: Host = DOMAIN.parse()?;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    table::put(&mut tx, api.made.account, Some(&own), &small).await?;
    tx.commit().await?;
    let longer = api.put(&api.domain_pages(), json!({"name": "Acme Bags"})).await?;
    longer.problem(409, 40901);
    for smaller in [json!({"name": "Ac"}), json!({})] {
        let answer = api.put(&api.domain_pages(), smaller.clone()).await?;
        ensure!(answer.status == 200 && answer.json() == smaller, "smaller pages are taken: {answer:?}");
    }
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    table::put(&mut tx, api.other_account, Some(&host), &Pages::default()).await?;
    tx.commit().await?;
    let answer: Value = api.put(&api.pages(), json!({"name": "Acme"})).await?.json();
    ensure!(answer == json!({"name": "Acme"}), "{answer}");
    Ok(())
}

async fn pages_of_a_newer_release_keep_no_edge_away(engine: Engine) -> Result<()> {
    const NEWER: &str = "UPDATE accounts SET pages = '{\"name\": {\"en\": \"Acme\"}}'";
    let api = Api::new(engine).await?;
    ensure!(api.put(&api.domain_pages(), json!({"name": "Own"})).await?.status == 200);
    match &api.made.db.location {
        Location::Sqlite(path) => {
            let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
            sqlx::raw_sql(NEWER).execute(&mut conn).await?;
        }
        Location::Postgres(url) => {
            let mut conn = sqlx::PgConnection::connect(url).await?;
            sqlx::raw_sql(NEWER).execute(&mut conn).await?;
        }
    }
    let mut conn = api.made.app.core.db.read().await?;
    let hosts: Vec<String> =
        domains::list_all(&mut conn).await?.iter().map(|domain| domain.host.to_string()).collect();
    drop(conn);
    ensure!(hosts.iter().any(|host| host == "other.gg"), "{hosts:?}");
    let shown = api.shown().await?;
    ensure!(shown.get(DOMAIN).map(String::as_str) == Some("Own"), "{shown:?}");
    ensure!(!shown.contains_key("other.gg"), "{shown:?}");
    Ok(())
}
