//! Projects, applications, and the keys of applications and Thngs.

use anyhow::{Context, Result};
use axum::http::{Method, StatusCode};
use kernel::store::Ctx;
use serde_json::{Value, json};
use tests::{db::Engine, wait::until};

use super::Api;

fn text<'a>(body: &'a Value, member: &str) -> Result<&'a str> {
    body[member].as_str().with_context(|| format!("{member} in {body}"))
}

/// A key of each kind but the operator's, and whose they are.
struct Keys {
    project: String,
    app: String,
    public: String,
    secret: String,
    thng: String,
    thng_key: String,
}

async fn make(api: &Api) -> Result<Keys> {
    let project = api.create("/projects", json!({"name": "p"})).await?;
    let applications = format!("/projects/{}/applications", text(&project, "id")?);
    let app = api.create(&applications, json!({"name": "a", "socialNetworks": {}})).await?;
    let secret = api.get(&format!("{applications}/{}/secretKey", text(&app, "id")?)).await?.json();
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let thng_key = api.create("/auth/evrythng/thngs", json!({"thngId": thng["id"]})).await?;
    Ok(Keys {
        project: text(&project, "id")?.to_owned(),
        app: text(&app, "id")?.to_owned(),
        public: text(&app, "appApiKey")?.to_owned(),
        secret: text(&secret, "secretApiKey")?.to_owned(),
        thng: text(&thng, "id")?.to_owned(),
        thng_key: text(&thng_key, "thngApiKey")?.to_owned(),
    })
}

async fn status_of(api: &Api, key: &str) -> Result<StatusCode> {
    Ok(api.call_as(key, Method::GET, "/access", None).await?.status)
}

pub(super) async fn projects_and_applications_are_created_and_deleted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let sent = json!({"name": "Sömmer", "description": "d", "tags": ["t"], "customFields": {"A": 1},
        "identifiers": {"k": "v"}, "startsAt": 1, "endsAt": 2});
    let answer = api.post("/v2/projects", sent.clone()).await?;
    let project = answer.json();
    let path = format!("/projects/{}", text(&project, "id")?);
    assert_eq!(answer.header("location"), Some(format!("http://api.example:8080/v2{path}").as_str()));
    for (name, value) in sent.as_object().context("object")? {
        assert_eq!(&project[name], value, "{name}");
    }
    assert_eq!(api.get(&path).await?.json(), project);
    let updated = api.put(&path, json!({"tags": ["updated"], "endsAt": null})).await?.json();
    assert_eq!((&updated["tags"], &updated["endsAt"]), (&json!(["updated"]), &json!(2)));
    assert!(updated["updatedAt"].as_i64() > project["updatedAt"].as_i64());
    assert_eq!(api.get("/projects").await?.json(), json!([updated]));

    let applications = format!("{path}/applications");
    let sent = json!({"name": "a", "socialNetworks": {"facebook": {"appId": "1"}}, "defaultUrl": "https://e.com",
        "redirectionTemplate": "x", "project": "ignored"});
    let app = api.create(&applications, sent.clone()).await?;
    for name in ["name", "socialNetworks", "defaultUrl", "redirectionTemplate"] {
        assert_eq!(app[name], sent[name], "{name}");
    }
    assert_eq!(app["project"], project["id"]);
    assert_eq!(text(&app, "appApiKey")?.len(), 80);
    let one = format!("{applications}/{}", text(&app, "id")?);
    assert_eq!(api.get(&one).await?.json(), app);
    let updated = api.put(&one, json!({"tags": ["updated"]})).await?.json();
    assert_eq!((&updated["tags"], &updated["appApiKey"]), (&json!(["updated"]), &app["appApiKey"]));
    assert_eq!(api.get(&applications).await?.json(), json!([updated]));
    let secret = api.get(&format!("{one}/secretKey")).await?.json();
    assert_eq!(text(&secret, "secretApiKey")?.len(), 80);
    assert_ne!(secret["secretApiKey"], app["appApiKey"]);
    assert_eq!(api.get(&format!("{one}/secretKey")).await?.json(), secret);

    // An application is found below its own project only.
    let other = api.create("/projects", json!({"name": "other"})).await?;
    let elsewhere = format!("/projects/{}/applications/{}", text(&other, "id")?, text(&app, "id")?);
    for (method, uri, body) in [
        (Method::GET, elsewhere.clone(), None),
        (Method::PUT, elsewhere.clone(), Some(json!({"name": "x"}))),
        (Method::DELETE, elsewhere.clone(), None),
        (Method::GET, format!("{elsewhere}/secretKey"), None),
        (Method::GET, "/projects/x".to_owned(), None),
        (Method::GET, "/projects/UKXAGyEf8SQ5eTDmVgGpHqAa/applications".to_owned(), None),
        (
            Method::POST,
            "/projects/UKXAGyEf8SQ5eTDmVgGpHqAa/applications".to_owned(),
            Some(json!({"name": "x"})),
        ),
        (Method::GET, format!("{path}/applications/x"), None),
        (Method::GET, "/applications/me".to_owned(), None),
    ] {
        api.call(method, &uri, body).await?.problem(404, 40401);
    }
    assert_eq!(api.delete(&one).await?.status, 200);
    api.get(&one).await?.problem(404, 40401);
    assert_eq!(api.delete(&path).await?.status, 200);
    api.delete(&path).await?.problem(404, 40401);
    assert_eq!(api.get("/projects").await?.json(), json!([other]));
    Ok(())
}

pub(super) async fn access_names_the_actor_of_each_key(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let keys = make(&api).await?;
    for (key, kind, id, project) in [
        (&api.key, "operator", &api.made.operator.to_string(), None),
        (&keys.public, "app", &keys.app, Some(&keys.project)),
        (&keys.secret, "app", &keys.app, Some(&keys.project)),
        (&keys.thng_key, "thng", &keys.thng, None),
    ] {
        let mut expected = json!({"account": api.made.account, "actor": {"type": kind, "id": id}});
        if let Some(project) = project {
            expected["project"] = json!(project);
        }
        assert_eq!(api.call_as(key, Method::GET, "/access", None).await?.json(), expected);
    }
    for key in [&keys.public, &keys.secret] {
        let own = api.call_as(key, Method::GET, "/applications/me", None).await?.json();
        assert_eq!((&own["id"], &own["appApiKey"]), (&json!(keys.app), &json!(keys.public)));
    }
    Ok(())
}

pub(super) async fn a_thng_has_one_key(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let keys = make(&api).await?;
    let again = api.post("/v2/auth/evrythng/thngs", json!({"thngId": keys.thng})).await?;
    assert_eq!(again.json(), json!({"thngId": keys.thng, "thngApiKey": keys.thng_key}));
    let location = format!("http://api.example:8080/v2/thngs/{}", keys.thng);
    assert_eq!(again.header("location"), Some(location.as_str()));
    // A key that was revoked does not come back; the next one is another.
    assert_eq!(status_of(&api, &keys.thng_key).await?, 200);
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let hash = kernel::domain::access::hash_key(&keys.thng_key);
    assert!(kernel::store::keys::revoke(&mut tx, &hash, 1).await?);
    tx.commit().await?;
    let next = api.create("/auth/evrythng/thngs", json!({"thngId": keys.thng})).await?;
    // As another process revokes it: this one hears of it when it looks again.
    until("the end of a revoked key", async || Ok(status_of(&api, &keys.thng_key).await? == 401)).await?;
    assert_eq!(status_of(&api, text(&next, "thngApiKey")?).await?, 200);
    assert_eq!(api.create("/auth/evrythng/thngs", json!({"thngId": keys.thng})).await?, next);
    let (_, others) = api.others().await?;
    for (body, status, code) in [
        (json!({"thngId": others}), 404, 40401),
        (json!({"thngId": "UKXAGyEf8SQ5eTDmVgGpHqAa"}), 404, 40401),
        (json!({"thngId": "x"}), 400, 40001),
        (json!({}), 400, 40001),
    ] {
        let answer = api.post("/auth/evrythng/thngs", body).await?;
        answer.problem(status, code);
    }
    Ok(())
}

/// What goes takes its keys with it: the very next request is refused.
pub(super) async fn keys_are_revoked_with_their_owner(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let first = make(&api).await?;
    let second = make(&api).await?;
    let all =
        [&first.public, &first.secret, &first.thng_key, &second.public, &second.secret, &second.thng_key];
    for key in all {
        assert_eq!(status_of(&api, key).await?, 200);
    }
    for (uri, gone) in [
        (format!("/thngs/{}", first.thng), vec![&first.thng_key]),
        (
            format!("/projects/{}/applications/{}", first.project, first.app),
            vec![&first.public, &first.secret],
        ),
        (format!("/projects/{}", second.project), vec![&second.public, &second.secret]),
    ] {
        for key in &gone {
            assert_eq!(status_of(&api, key).await?, 200, "{uri}");
        }
        assert_eq!(api.delete(&uri).await?.status, 200);
        for key in gone {
            let answer = api.call_as(key, Method::GET, "/access", None).await?;
            answer.problem(401, 40102);
        }
    }
    assert_eq!(status_of(&api, &second.thng_key).await?, 200);
    Ok(())
}

/// Only hashes are stored, of derived keys too.
pub(super) async fn no_key_is_stored_in_clear(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let keys = make(&api).await?;
    let stored = format!("{:?}", api.fingerprint().await?);
    for key in [&keys.public, &keys.secret, &keys.thng_key, &api.key] {
        assert!(!stored.contains(key.as_str()));
    }
    Ok(())
}

pub(super) async fn accesses_are_those_of_operators(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (account, operator) = (api.made.account.to_string(), api.made.operator.to_string());
    for name in ["accesses", "operatorAccess"] {
        let list = format!("/accounts/{account}/{name}");
        let one = format!("{list}/{operator}");
        let found = api.get(&one).await?.json();
        assert_eq!((&found["id"], &found["operator"]), (&json!(operator), &json!(operator)));
        assert_eq!((&found["account"], &found["apiKey"]), (&json!(account), &json!(api.key)));
        assert_eq!(api.get(&list).await?.json(), json!([found]));
        let kept = api.put(&one, json!({"role": found["role"]})).await?.json();
        assert_eq!((&kept["role"], &kept["apiKey"]), (&json!("owner"), &json!(api.key)));
        let kept = api.put(&one, json!({})).await?.json();
        assert_eq!(kept["role"], json!("owner"));
        for role in ["", "king"] {
            api.put(&one, json!({"role": role})).await?.problem(400, 40001);
        }
        for id in ["x", "UKXAGyEf8SQ5eTDmVgGpHqAa", api.other_operator.as_str()] {
            api.get(&format!("{list}/{id}")).await?.problem(404, 40401);
        }
        let others = format!("/accounts/{}/{name}", api.other_account);
        api.get(&others).await?.problem(404, 40401);
        api.get(&format!("{others}/{}", api.other_operator)).await?.problem(404, 40401);
    }
    // A colleague's access shows no key.
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let colleague = shared::id::OperatorId::new(1, tests::db::random16()?);
    let names = ("C", "D");
    tenants::store::accounts::insert_operator(&mut tx, colleague, api.made.account, "c@d", names, 1).await?;
    tx.commit().await?;
    let list = format!("/accounts/{account}/accesses?sortOrder=ASCENDING");
    let list = api.get(&list).await?.json();
    let shown: Vec<bool> =
        list.as_array().context("list")?.iter().map(|one| one.get("apiKey").is_some()).collect();
    assert_eq!(shown.iter().filter(|shown| **shown).count(), 1, "{list}");
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!(api.get("/v2/me").await?.json()["id"], json!(operator));
    Ok(())
}

crate::on_both_engines!(
    projects_and_applications_are_created_and_deleted,
    access_names_the_actor_of_each_key,
    a_thng_has_one_key,
    keys_are_revoked_with_their_owner,
    no_key_is_stored_in_clear,
    accesses_are_those_of_operators,
);
