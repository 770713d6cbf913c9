//! Rights of public keys: strangers who open a page, users under either setting, and Thngs.

mod verdicts;

use anyhow::{Context, Result};
use axum::http::Method;
use control::service::seed::{self, NewAccount};
use events::{
    domain::topic::Topic,
    service::{connections, live},
};
use kernel::{
    domain::access::{UserRights, hash_key},
    service::access::{Caller, identify},
};
use serde_json::{Value, json};
use shared::problem::Code;
use tests::{
    db::{Engine, SystemRandom},
    json::text,
};

use super::Api;

const EVIL: &str = "https://evil.example/";
const RESERVED: [&str; 8] = [
    "implicitScans",
    "encodings",
    "commissions",
    "decommissions",
    "inspectorScans",
    "supplyChainScans",
    "authenticationConfirmations",
    "authenticationResults",
];

/// A brand with an application in a page, and a genuine item that was scanned.
struct Brand {
    application: String,
    public: String,
    product: String,
    thng: String,
    short_id: String,
    scan: String,
    collection: String,
}

impl Brand {
    async fn new(api: &Api) -> Result<Self> {
        let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
        let applications = format!("/projects/{project}/applications");
        let app = api.create(&applications, json!({"name": "a"})).await?;
        let scopes = json!({"users": [], "projects": [project]});
        let product = json!({"name": "Bag", "identifiers": {"gs1:01": "00000000000017"}, "scopes": scopes});
        let product = text(&api.create("/products", product).await?, "id")?;
        let thng = json!({"name": "Bag 1", "product": product, "identifiers": {"gs1:21": "A1"},
            "customFields": {"permittedCountries": ["CH"]}, "properties": {"secret": 7}, "scopes": scopes});
        let thng = text(&api.create("/thngs", thng).await?, "id")?;
        let link = json!([{"platformId": thng, "defaultRedirectUrl": "https://brand.example/",
            "scopes": scopes}]);
        let link = api.post("/redirections", link).await?.json();
        let scan = text(&api.create("/actions/implicitScans", json!({"thng": thng})).await?, "id")?;
        let collection = json!({"name": "c", "scopes": scopes});
        let collection = text(&api.create("/collections", collection).await?, "id")?;
        let members = json!([thng]);
        api.put(&format!("/collections/{collection}/thngs"), members).await?;
        Ok(Self {
            application: format!("{applications}/{}", text(&app, "id")?),
            public: text(&app, "appApiKey")?,
            product,
            thng,
            short_id: text(&link[0], "shortId")?,
            scan,
            collection,
        })
    }

    /// Key and id of a new anonymous user: everybody who opens the page.
    async fn stranger(&self, api: &Api) -> Result<(String, String)> {
        let uri = "/auth/evrythng/users?anonymous=true";
        let user = api.call_as(&self.public, Method::POST, uri, Some(json!({}))).await?.json();
        Ok((text(&user, "evrythngApiKey")?, text(&user, "evrythngUser")?))
    }

    async fn set(&self, api: &Api, change: Value) -> Result<()> {
        api.put(&self.application, change).await?.must_be(200)?;
        Ok(())
    }
}

/// Everything that a stranger was seen to do with the public key of a page.
pub(super) async fn a_stranger_with_the_public_key_can_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (key, _) = brand.stranger(&api).await?;
    let before = api.fingerprint().await?;
    let (thng, product, short_id) = (&brand.thng, &brand.product, &brand.short_id);
    let link = json!({"platformId": thng, "shortId": "promo", "defaultRedirectUrl": EVIL});
    let target = json!({"defaultRedirectUrl": EVIL});
    let trigger = |kind: &str| {
        json!({"id": "UKXAGyEf8SQ5eTDmVgGpHqAa", "type": kind, "thng": thng,
        "locationSource": "unknown", "location": {"latitude": 2, "longitude": 1,
        "position": {"type": "Point", "coordinates": [1, 2]}}})
    };
    let step = json!({"product": product, "occurredAt": "2026-11-22T08:15:30Z",
        "location": {"position": {"type": "Point", "coordinates": [1, 2]}}});
    let mut wrong = Vec::new();
    for (method, uri, body) in [
        // Links of the stranger's choice on the brand's domain.
        (Method::POST, "/redirections".to_owned(), Some(link.clone())),
        (Method::POST, "/redirections".to_owned(), Some(json!([link, link]))),
        (Method::POST, format!("/thngs/{thng}/redirector"), Some(target.clone())),
        (Method::PUT, format!("/redirections/{short_id}"), Some(target.clone())),
        (Method::PUT, format!("/redirections?ids={short_id}"), Some(target.clone())),
        (Method::PUT, format!("/thngs/{thng}/redirector"), Some(target)),
        (Method::DELETE, format!("/redirections/{short_id}"), None),
        // Other visitors' addresses and agents.
        (Method::GET, format!("/actions/implicitScans/{}?context=true", brand.scan), None),
        (Method::GET, format!("/actions/all/{}", brand.scan), None),
        (Method::GET, "/actions/all?filter=context.countryCode%3DCH".to_owned(), None),
        // Targets, properties, members.
        (Method::GET, format!("/redirections/{short_id}"), None),
        (Method::GET, format!("/thngs/{thng}/redirector"), None),
        (Method::GET, format!("/thngs/{thng}/properties"), None),
        (Method::GET, format!("/thngs/{thng}/properties/secret"), None),
        (Method::GET, format!("/thngs/{thng}/location"), None),
        (Method::GET, format!("/collections/{}", brand.collection), None),
        (Method::GET, format!("/collections/{}/thngs", brand.collection), None),
        // A serial that is not the stranger's, and what verdicts go by.
        (Method::POST, "/thngs".to_owned(), Some(json!({"name": "x", "identifiers": {"gs1:21": "A1"}}))),
        (Method::POST, "/thngs".to_owned(), Some(json!({"name": "x"}))),
        (Method::POST, "/collections".to_owned(), Some(json!({"name": "x"}))),
        (Method::POST, "/products".to_owned(), Some(json!({"name": "x"}))),
        (Method::PUT, format!("/products/{product}"), Some(json!({"name": "x"}))),
        (
            Method::PUT,
            format!("/thngs/{thng}"),
            Some(json!({"customFields": {"permittedCountries": ["US"]}})),
        ),
        (Method::PUT, format!("/thngs/{thng}/properties/secret"), Some(json!(8))),
        (Method::PUT, format!("/thngs/{thng}/location"), Some(json!([{"latitude": 1, "longitude": 2}]))),
        (Method::POST, format!("/thngs/{thng}/actions/commissions"), Some(step)),
        (Method::POST, "/authentication".to_owned(), Some(trigger("inspectorScans"))),
        (Method::POST, "/authentication".to_owned(), Some(trigger("authenticationConfirmations"))),
        (Method::GET, "/events".to_owned(), None),
    ] {
        let answer = api.call_as(&key, method.clone(), &uri, body).await?;
        if answer.status != 403 && answer.status != 404 {
            wrong.push(format!("{method} {uri}: {answer:?}"));
        }
    }
    for kind in RESERVED {
        for (uri, body) in [
            (format!("/actions/{kind}"), json!({"thng": thng})),
            (format!("/actions/{kind}"), json!([{"thng": thng}])),
            ("/actions/all".to_owned(), json!({"type": kind, "thng": thng})),
            (format!("/products/{product}/actions/{kind}"), json!({})),
            (format!("/thngs/{thng}/actions/{kind}"), json!({})),
        ] {
            for key in [&key, &brand.public] {
                let answer = api.call_as(key, Method::POST, &uri, Some(body.clone())).await?;
                // A step of commissioning is read before it is asked who may: nothing of it is said or done.
                let is_step = ["commissions", "decommissions"].contains(&kind) && uri.starts_with("/thngs/");
                if answer.status != 403 && !(is_step && answer.status == 400) {
                    wrong.push(format!("POST {uri} {body}: {answer:?}"));
                }
            }
        }
    }
    // Lists show nothing but the stranger's own.
    for uri in [
        "/actions/implicitScans?context=true".to_owned(),
        "/actions/all?context=true&withScopes=true".to_owned(),
        format!("/thngs/{thng}/actions/all?context=true"),
        format!("/products/{product}/actions/all?context=true"),
        "/thngs".to_owned(),
        format!("/thngs?ids={thng}"),
        "/thngs?filter=identifiers.gs1:21%3DA1".to_owned(),
        "/redirections".to_owned(),
        format!("/redirections?platformId={thng}"),
        "/collections".to_owned(),
    ] {
        let answer = api.call_as(&key, Method::GET, &uri, None).await?;
        if answer.status != 200 || answer.json() != json!([]) {
            wrong.push(format!("GET {uri}: {answer:?}"));
        }
    }
    // What is read one by one: the item, without what was measured of it.
    for reference in [thng.as_str(), "gs1:21:A1"] {
        let found =
            api.call_as(&key, Method::GET, &format!("/thngs/{reference}"), None).await?.must_be(200)?;
        assert!(!found.json().to_string().contains("secret"), "{found:?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The broker goes by the same rules.
    let caller = Caller::plain(identify(&api.made.app.core, &key, None).await?);
    let sender = live::Sender { caller: &caller, key: &[0; 32], origin: Default::default() };
    for (topic, payload, code) in [
        ("/actions/implicitScans".to_owned(), json!({"thng": thng}), Code::Forbidden),
        (format!("/thngs/{thng}/actions/encodings"), json!([{}]), Code::Forbidden),
        (format!("/thngs/{thng}/properties"), json!([{"key": "secret", "value": 1}]), Code::NotFound),
    ] {
        let topic = Topic::parse(&topic).map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let refused = live::publish(&api.made.app.events, &sender, &topic, &payload).await;
        assert_eq!(refused.map_err(|error| error.code()), Err(code), "{topic:?}");
    }
    let topic = Topic::Properties(kernel::domain::property::Owner::Thng, thng.clone());
    assert!(live::channel(&api.made.app.events, &caller, &topic).await.is_err());
    assert_eq!(api.fingerprint().await?, before, "an attack changed something");
    Ok(())
}

/// With own rights users make what their application lets them, and see nothing but their own.
pub(super) async fn users_create_only_what_their_application_allows(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (key, user) = brand.stranger(&api).await?;
    api.create("/actions", json!({"name": "_opened"})).await?;
    let post = async |uri: &str, body: Value| api.call_as(&key, Method::POST, uri, Some(body)).await;
    // Types of actions.
    for (kind, status) in [("scans", 201), ("checkins", 201), ("_opened", 201), ("invalidScans", 403)] {
        let answer = post(&format!("/actions/{kind}"), json!({"thng": brand.thng})).await?;
        assert_eq!(answer.status.as_u16(), status, "{kind} {answer:?}");
    }
    brand.set(&api, json!({"userActionTypes": ["shares", "invalidScans"]})).await?;
    for (kind, status) in [("scans", 403), ("_opened", 403), ("shares", 201), ("invalidScans", 201)] {
        let answer = post("/actions/all", json!({"type": kind, "thng": brand.thng})).await?;
        assert_eq!(answer.status.as_u16(), status, "{kind} {answer:?}");
    }
    let listed = api.call_as(&key, Method::GET, "/actions/all?context=true", None).await?.json();
    let listed = listed.as_array().context("array")?;
    assert_eq!(listed.len(), 5);
    assert!(listed.iter().all(|action| action["user"] == json!(user) && action.get("context").is_none()));
    let uri = format!("/thngs/{}/actions/all", brand.thng);
    let of_thng = api.call_as(&key, Method::GET, &uri, None).await?.json();
    assert_eq!(of_thng.as_array().map(Vec::len), Some(5), "not the scans of others");
    // Things and collections.
    let bare = json!({"name": "mine"});
    assert_eq!(post("/thngs", bare.clone()).await?.status, 403);
    brand.set(&api, json!({"usersMayCreate": true})).await?;
    let thng = text(&post("/thngs", bare.clone()).await?.json(), "id")?;
    let collection = text(&post("/collections", bare).await?.json(), "id")?;
    for (uri, body) in [
        ("/thngs", json!({"name": "x", "identifiers": {"a": "1"}})),
        ("/thngs", json!({"name": "x", "product": brand.product})),
        ("/thngs", json!({"name": "x", "customFields": {"factory": "F"}})),
        ("/thngs", json!({"name": "x", "tags": ["display"]})),
        ("/collections", json!({"name": "x", "identifiers": {"a": "1"}})),
    ] {
        let errors = post(uri, body.clone()).await?.problem(403, 40301);
        assert_eq!(errors.len(), 1, "{uri} {body}: {errors:?}");
    }
    let put = async |uri: &str, body: Value| api.call_as(&key, Method::PUT, uri, Some(body)).await;
    let uri = format!("/thngs/{thng}");
    assert_eq!(put(&uri, json!({"name": "renamed", "customFields": {"a": 1}})).await?.status, 200);
    put(&uri, json!({"identifiers": {"a": "1"}})).await?.problem(403, 40301);
    put(&uri, json!({"product": brand.product})).await?.problem(403, 40301);
    let members = format!("/collections/{collection}/thngs");
    assert!(put(&members, json!([thng])).await?.status.is_success());
    // Somebody else's Thing is not put into it, nor listed by it.
    assert!(put(&members, json!([brand.thng])).await?.status.is_client_error());
    for uri in ["/thngs".to_owned(), members] {
        let listed = api.call_as(&key, Method::GET, &uri, None).await?.json();
        assert_eq!((listed.as_array().map(Vec::len), &listed[0]["id"]), (Some(1), &json!(thng)), "{uri}");
    }
    // Redirections.
    let link = |url: &str| json!({"platformId": thng, "defaultRedirectUrl": url});
    let shop = "https://shop.example/{shortId}";
    assert_eq!(post("/redirections", link(shop)).await?.status, 403);
    brand.set(&api, json!({"redirectHosts": ["Shop.Example"]})).await?;
    let mut chosen = link(shop);
    chosen["shortId"] = json!("promo");
    let before = api.fingerprint().await?;
    for body in [
        link(EVIL),
        link("https://shop.example:8443/"),
        link("https://shop.example.evil.example/"),
        chosen.clone(),
        json!([link(shop), link(EVIL)]),
        json!([chosen]),
    ] {
        post("/redirections", body).await?.problem(403, 40301);
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    let made = post("/redirections", json!([link(shop)])).await?.json();
    let uri = format!("/redirections/{}", text(&made[0], "shortId")?);
    let to = |url: &str| json!({"defaultRedirectUrl": url});
    put(&uri, to(EVIL)).await?.problem(403, 40301);
    put(&format!("/thngs/{thng}/redirector"), to(EVIL)).await?.problem(403, 40301);
    assert_eq!(put(&uri, to("https://shop.example/other")).await?.status, 200);
    // What the operator takes back is gone at once.
    brand.set(&api, json!({"redirectHosts": [], "usersMayCreate": false})).await?;
    put(&uri, to(shop)).await?.problem(403, 40301);
    post("/thngs", json!({"name": "x"})).await?.problem(403, 40301);
    Ok(())
}

/// With open rights users reach the project, and still neither others' context nor what verdicts go by.
pub(super) async fn open_rights_exclude_resources_of_others(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let account = format!("/accounts/{}", api.made.account);
    assert_eq!(api.get(&account).await?.json()["userRights"], "own");
    api.put(&account, json!({"userRights": "all"})).await?.problem(400, 40001);
    let brand = Brand::new(&api).await?;
    let (key, user) = brand.stranger(&api).await?;
    // The key is known: the change counts for it at once.
    assert_eq!(api.call_as(&key, Method::GET, "/thngs", None).await?.json(), json!([]));
    let actor = identify(&api.made.app.core, &key, None).await?;
    let connection = connections::open(&api.made.app.events, &actor, hash_key(&key), None, None).await?;
    api.open_rights().await?;
    // What a connection hears was decided when it came.
    connections::check_keys(&api.made.app.events).await?;
    assert!(connection.ends.is_cancelled());
    assert_eq!(api.get(&account).await?.json()["userRights"], "open");
    let listed = api.call_as(&key, Method::GET, "/thngs", None).await?.json();
    assert_eq!(listed[0]["id"], json!(brand.thng));
    let body = Some(json!({"thng": brand.thng}));
    let own = api.call_as(&key, Method::POST, "/actions/scans", body).await?.must_be(201)?;
    let own = own.json()["id"].clone();
    let listed = api.call_as(&key, Method::GET, "/actions/all?context=true", None).await?.json();
    let listed = listed.as_array().context("array")?;
    assert!(listed.iter().any(|action| action["id"] == json!(brand.scan)));
    for action in listed {
        assert_eq!(action.get("context").is_some(), action["id"] == own, "{action}");
    }
    let uri = format!("/actions/all/{}?context=true", brand.scan);
    let read = api.call_as(&key, Method::GET, &uri, None).await?.json();
    assert_eq!(read.get("context"), None);
    let uri = "/actions/all?filter=context.city%3DBern";
    api.call_as(&key, Method::GET, uri, None).await?.problem(403, 40301);
    for kind in RESERVED {
        let uri = format!("/actions/{kind}");
        let body = Some(json!({"thng": brand.thng}));
        api.call_as(&key, Method::POST, &uri, body).await?.problem(403, 40301);
    }
    for (uri, body, status) in [
        ("/thngs", json!({"name": "x", "identifiers": {"gs1:21": "A1"}}), 409),
        ("/thngs", json!({"name": "x", "product": brand.product, "identifiers": {"gs1:21": "B"}}), 201),
        ("/products", json!({"name": "x", "identifiers": {"gs1:01": "00000017"}}), 409),
        ("/thngs", json!({"name": "x", "customFields": {"expectedWatermark": "w"}}), 403),
        ("/products", json!({"name": "x", "customFields": {"permittedCountries": ["US"]}}), 403),
    ] {
        let answer = api.call_as(&key, Method::POST, uri, Some(body.clone())).await?;
        assert_eq!(answer.status.as_u16(), status, "{uri} {body}: {answer:?}");
    }
    // An item that names the user.
    let scopes = json!({"users": [user], "projects": []});
    let named = json!({"name": "n", "scopes": scopes, "customFields": {"permittedCountries": ["CH"]}});
    let uri = format!("/thngs/{}", text(&api.create("/thngs", named).await?, "id")?);
    let change = json!({"customFields": {"permittedCountries": ["US"]}});
    api.call_as(&key, Method::PUT, &uri, Some(change)).await?.problem(403, 40301);
    let change = json!({"customFields": {"note": 1}});
    assert_eq!(api.call_as(&key, Method::PUT, &uri, Some(change)).await?.status, 200);
    let fields = api.get(&uri).await?.json()["customFields"].clone();
    assert_eq!(fields, json!({"permittedCountries": ["CH"], "note": 1}));
    Ok(())
}

/// `control accounts create --user-rights open`.
pub(super) async fn an_account_is_created_with_its_user_rights(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (app, key) = (&api.made.app, "C".repeat(80));
    let new = NewAccount {
        name: "Open".to_owned(),
        email: "o@example.com".to_owned(),
        domains: Vec::new(),
        key: Some(key.clone()),
        user_rights: UserRights::Open,
        only_first: false,
    };
    let made =
        seed::create_account(&app.core.db, &*app.core.clock, &SystemRandom, new).await?.context("account")?;
    let uri = format!("/accounts/{}", made.account);
    assert_eq!(api.call_as(&key, Method::GET, &uri, None).await?.json()["userRights"], "open");
    Ok(())
}

crate::on_both_engines!(
    a_stranger_with_the_public_key_can_change_nothing,
    users_create_only_what_their_application_allows,
    open_rights_exclude_resources_of_others,
    an_account_is_created_with_its_user_rights,
);
