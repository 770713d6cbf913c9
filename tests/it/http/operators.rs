//! Operators: invitations, roles, projects that roles are confined to, and what nobody may give.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};
use shared::id::ActionId;
use tests::{
    db::{Engine, random16},
    json::text,
};

use super::{Answer, Api};

const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// An operator with a role, and more members of the body.
pub(super) async fn machine(api: &Api, role: &str, more: Value) -> Result<(String, String)> {
    let mut body = json!({"name": role, "role": role});
    body.as_object_mut().context("object")?.extend(more.as_object().cloned().unwrap_or_default());
    let made = api.create("/accessTokens", body).await?;
    Ok((text(&made, "id")?, text(&made, "apiKey")?))
}

pub(super) fn accesses(api: &Api) -> String {
    format!("/accounts/{}/operatorAccess", api.made.account)
}

/// Accepts an invitation, without a key.
pub(super) async fn accept(api: &Api, body: Value) -> Result<Answer> {
    let request = Request::post("/invitations")
        .header(header::HOST, "api.example:8080")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))?;
    api.send(request).await
}

async fn an_invitation_is_accepted_once_and_in_time(engine: Engine) -> Result<()> {
    let api = Api::without_mail(engine).await?;
    let accesses = accesses(&api);
    let body = json!({"email": "Ada@example.com", "role": "editor", "firstName": "Ada"});
    let invited = api.create(&accesses, body).await?;
    let one = format!("{accesses}/{}", text(&invited, "id")?);
    assert_eq!((&invited["status"], &invited["policies"]), (&json!("invited"), &json!(["editor"])));
    let code = text(&invited, "invitationCode")?;
    let seen = api.get(&one).await?.json();
    assert!(seen.get("invitationCode").is_none() && seen["invitedUntil"].is_i64(), "{seen}");
    // The address is taken, in any case, and the code is in no table.
    let again = json!({"email": "ada@EXAMPLE.com", "role": "viewer"});
    api.post(&accesses, again).await?.problem(409, 40901);
    let rows = api.fingerprint().await?;
    assert!(!format!("{rows:?}").contains(&code));

    accept(&api, json!({"code": "x"})).await?.problem(401, 40103);
    accept(&api, json!({})).await?.problem(400, 40001);
    // Whoever invites again ends the code of before.
    let renewed = api.call(Method::POST, &format!("{one}/invitation"), None).await?.json();
    accept(&api, json!({"code": code})).await?.problem(401, 40103);
    let code = text(&renewed, "invitationCode")?;
    api.made.clock.advance(WEEK_MS);
    accept(&api, json!({"code": code})).await?.problem(401, 40103);
    let renewed = api.call(Method::POST, &format!("{one}/invitation"), None).await?.json();
    let code = json!({"code": text(&renewed, "invitationCode")?, "lastName": "Lovelace"});
    let accepted = accept(&api, code.clone()).await?;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    let accepted = accepted.json();
    assert_eq!((&accepted["firstName"], &accepted["lastName"]), (&json!("Ada"), &json!("Lovelace")));
    accept(&api, code).await?.problem(401, 40103);
    api.call(Method::POST, &format!("{one}/invitation"), None).await?.problem(409, 40901);
    let key = text(&accepted, "apiKey")?;
    let me = api.call_as(&key, Method::GET, "/me", None).await?.json();
    assert_eq!((&me["email"], &me["policies"]), (&json!("Ada@example.com"), &json!(["editor"])));
    assert_eq!(api.get(&one).await?.json()["status"], "active");
    let entries = api.get("/audit?filter=operation=POST%20%2Finvitations").await?.json();
    let actors: Vec<&Value> =
        entries.as_array().context("entries")?.iter().map(|entry| &entry["actor"]).collect();
    assert_eq!(actors, [&invited["id"], &invited["id"]], "the operator and the key: {entries}");

    // Removed, it is nobody, at once.
    assert_eq!(api.delete(&one).await?.status, 200);
    api.call_as(&key, Method::GET, "/me", None).await?.problem(401, 40102);
    api.get(&one).await?.problem(404, 40401);
    Ok(())
}

async fn nobody_gives_what_it_does_not_have(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let accesses = accesses(&api);
    let owner = format!("{accesses}/{}", api.made.operator);
    let (admin_id, admin) = machine(&api, "admin", json!({})).await?;
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    let call = async |key: &str, method: Method, uri: &str, body: Value| {
        api.call_as(key, method, uri, (!body.is_null()).then_some(body)).await
    };
    // An admin makes admins, no owners, and does not touch one.
    let admin_too = json!({"name": "x", "role": "admin"});
    assert_eq!(call(&admin, Method::POST, "/accessTokens", admin_too).await?.status, 201);
    let keys = api.get("/keys").await?.json();
    let of_owner = keys.as_array().into_iter().flatten();
    let of_owner: Vec<&Value> = of_owner.filter(|key| key["operator"] == json!(api.made.operator)).collect();
    let key = format!("/keys/{}", text(of_owner.first().context("no key of the owner")?, "id")?);
    for (method, uri, body) in [
        (Method::POST, "/accessTokens".to_owned(), json!({"name": "x", "role": "owner"})),
        (Method::POST, accesses.clone(), json!({"email": "a@b", "policies": ["viewer", "owner"]})),
        (Method::PUT, format!("{accesses}/{admin_id}"), json!({"role": "owner"})),
        (Method::PUT, owner.clone(), json!({"role": "viewer"})),
        (Method::DELETE, owner.clone(), Value::Null),
        (Method::PUT, format!("/operators/{}", api.made.operator), json!({"firstName": "x"})),
        (Method::PUT, key.clone(), json!({"label": "x"})),
        (Method::POST, format!("{key}/rotate"), json!({})),
        (Method::DELETE, key.clone(), Value::Null),
    ] {
        call(&admin, method.clone(), &uri, body).await?.problem(403, 40301);
    }
    // A role that manages roles and no more gives no more.
    let policy =
        json!({"name": "roles only", "permissions": ["roles:create,read,list,update", "operators:create"]});
    let policy = text(&api.create("/accessPolicies", policy).await?, "id")?;
    let (_, keeper) = machine(&api, &policy, json!({})).await?;
    for (method, uri, body) in [
        (Method::POST, "/accessPolicies".to_owned(), json!({"name": "x", "permissions": ["thngs:read"]})),
        (Method::POST, "/roles".to_owned(), json!({"name": "x"})),
        (Method::PUT, format!("/accessPolicies/{policy}"), json!({"permissions": ["thngs:read"]})),
        (Method::PUT, format!("/roles/{policy}/permissions/audit_read"), json!({"enabled": true})),
        (Method::POST, "/accessTokens".to_owned(), json!({"name": "x", "role": "viewer"})),
    ] {
        call(&keeper, method, &uri, body).await?.problem(403, 40301);
    }
    let less = json!({"name": "x", "permissions": ["roles:read"]});
    assert_eq!(call(&keeper, Method::POST, "/accessPolicies", less).await?.status, 201);
    // An editor sees its own keys, and changes none of others.
    let own = call(&editor, Method::GET, "/keys", Value::Null).await?.json();
    assert_eq!(own.as_array().map(Vec::len), Some(1), "{own}");
    call(&editor, Method::DELETE, &key, Value::Null).await?.problem(404, 40401);
    let made = call(&editor, Method::POST, "/keys", json!({"label": "second"})).await?;
    assert_eq!(made.status, 201, "{made:?}");
    let second = text(&made.json(), "apiKey")?;
    call(&second, Method::GET, "/projects/x", Value::Null).await?.problem(404, 40401);
    call(&second, Method::POST, "/projects", json!({"name": "x"})).await?.problem(403, 40301);
    // The last owner stays owner, and its last key works.
    for (method, uri, body) in [
        (Method::PUT, owner.clone(), json!({"role": "admin"})),
        (Method::PUT, owner.clone(), json!({"conditions": [format!("project={}", project(&api).await?)]})),
        (Method::DELETE, owner.clone(), Value::Null),
        (Method::DELETE, key.clone(), Value::Null),
    ] {
        call(&api.key, method, &uri, body).await?.problem(409, 40901);
    }
    let (other, other_key) = machine(&api, "owner", json!({})).await?;
    assert_eq!(call(&other_key, Method::PUT, &owner, json!({"role": "viewer"})).await?.status, 200);
    call(&api.key, Method::POST, "/thngs", json!({"name": "x"})).await?.problem(403, 40301);
    let back = call(&other_key, Method::PUT, &owner, json!({"role": "owner"})).await?;
    assert_eq!(back.status, 200, "{back:?}");
    assert_eq!(
        call(&api.key, Method::DELETE, &format!("{accesses}/{other}"), Value::Null).await?.status,
        200
    );
    Ok(())
}

/// A project as `waymark demo` makes it.
pub(super) fn demo() -> Value {
    let mark =
        json!({"seed": 1, "items": 50, "target": "https://example.com/", "end": 1, "state": "filling"});
    json!({"name": "Waymark demo", "tags": ["waymark-demo"], "customFields": {"waymarkDemo": mark}})
}

pub(super) async fn project(api: &Api) -> Result<String> {
    text(&api.create("/projects", json!({"name": "p"})).await?, "id")
}

async fn bad_roles_and_conditions_are_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let accesses = accesses(&api);
    let users = text(&api.create("/roles", json!({"name": "x", "type": "userInApp"})).await?, "id")?;
    let before = api.fingerprint().await?;
    let nowhere = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    for (body, fault) in [
        (json!({"role": "viewer"}), "email is required"),
        (json!({"email": "a@b"}), "role or policies is required"),
        (json!({"email": "a@b", "role": "king"}), "there is no role \"king\""),
        (json!({"email": "a@b", "role": users}), "there is no role"),
        (json!({"email": "a@b", "policies": ["viewer", nowhere]}), nowhere),
        (json!({"email": "a@b", "role": "viewer", "conditions": [format!("project={nowhere}")]}), nowhere),
        (json!({"email": "a@b", "role": "viewer", "conditions": ["country=DE"]}), "conditions[0]"),
        (json!({"email": "a@b", "role": "viewer", "policies": ["admin", "viewer"]}), "give one of them"),
    ] {
        let faults = api.post(&accesses, body.clone()).await?.problem(400, 40001);
        assert!(faults.iter().any(|said| said.contains(fault)), "{body}: {faults:?}");
    }
    let elsewhere = format!("/accounts/{}/operatorAccess", api.other_account);
    let body = json!({"email": "a@b", "role": "viewer"});
    api.post(&elsewhere, body).await?.problem(404, 40401);
    for id in ["owner", "viewer"] {
        let uri = format!("/roles/{id}");
        api.put(&uri, json!({"name": "x"})).await?.problem(409, 40901);
        api.delete(&uri).await?.problem(409, 40901);
    }
    api.get(&format!("/accessPolicies/{users}")).await?.problem(404, 40401);
    assert_eq!(api.fingerprint().await?, before);
    // A role that somebody has stays.
    let role = text(&api.create("/roles", json!({"name": "x"})).await?, "id")?;
    let (holder, _) = machine(&api, &role, json!({})).await?;
    api.delete(&format!("/roles/{role}")).await?.problem(409, 40901);
    api.delete(&format!("{accesses}/{holder}")).await?;
    assert_eq!(api.delete(&format!("/roles/{role}")).await?.status, 200);
    Ok(())
}

async fn a_role_changes_what_its_holders_may_do_at_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let role = text(&api.create("/roles", json!({"name": "custom"})).await?, "id")?;
    let (_, key) = machine(&api, &role, json!({})).await?;
    let thng = json!({"name": "x"});
    api.call_as(&key, Method::POST, "/thngs", Some(thng.clone())).await?.problem(403, 40301);
    let uri = format!("/roles/{role}/permissions/catalog_write");
    for (enabled, status) in [(true, 201), (false, 403)] {
        let switched = api.put(&uri, json!({"enabled": enabled})).await?;
        assert_eq!(switched.json()["enabled"], enabled, "{switched:?}");
        assert_eq!(api.get(&uri).await?.json()["enabled"], enabled);
        let made = api.call_as(&key, Method::POST, "/thngs", Some(thng.clone())).await?;
        assert_eq!(made.status, status, "{made:?}");
    }
    // Two roles: what either allows.
    let policies = json!({"policies": [role, "commissioner"]});
    let (_, both) = machine(&api, "x", json!({"role": null, "policies": policies["policies"]})).await?;
    assert_eq!(api.call_as(&both, Method::GET, "/thngs", None).await?.status, 200);
    Ok(())
}

async fn roles_of_users_narrow_what_they_may_do(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.open_rights().await?;
    let role = text(&api.create("/roles", json!({"name": "x", "type": "userInApp"})).await?, "id")?;
    let applications = format!("/projects/{}/applications", project(&api).await?);
    let app = api.create(&applications, json!({"name": "a"})).await?;
    let one = format!("{applications}/{}", text(&app, "id")?);
    let public = text(&app, "appApiKey")?;
    let user =
        api.call_as(&public, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({}))).await?;
    let key = text(&user.json(), "evrythngApiKey")?;
    let create = async || api.call_as(&key, Method::POST, "/thngs", Some(json!({"name": "x"}))).await;
    assert_eq!(create().await?.status, 201);
    for (bad, fault) in [("owner", "no role"), ("UKXAGyEf8SQ5eTDmVgGpHqAa", "no role")] {
        let faults = api.put(&one, json!({"userRole": bad})).await?.problem(400, 40001);
        assert!(faults[0].contains(fault), "{faults:?}");
    }
    assert_eq!(api.put(&one, json!({"userRole": role})).await?.status, 200);
    create().await?.problem(403, 40301);
    assert_eq!(api.call_as(&key, Method::GET, "/access", None).await?.status, 200);
    let paths = json!([{"path": "/thngs", "access": "c"}]);
    let uri = format!("/roles/{role}/permissions");
    let listed = api.put(&uri, paths).await?.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(6), "{listed}");
    assert_eq!(create().await?.status, 201);
    api.call_as(&key, Method::GET, "/products", None).await?.problem(403, 40301);
    api.delete(&format!("/roles/{role}")).await?.problem(409, 40901);
    assert_eq!(api.put(&one, json!({"userRole": ""})).await?.status, 200);
    assert_eq!(api.call_as(&key, Method::GET, "/products", None).await?.status, 200);
    Ok(())
}

async fn personal_data_needs_a_permission_of_its_own(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = text(&api.create("/thngs", json!({"name": "x"})).await?, "id")?;
    let context = json!({"ipAddress": "203.0.113.7", "userAgent": "x/1", "city": "Bern", "countryCode": "CH",
        "referer": "https://example.com/ada", "language": "de-CH"});
    let action = ::actions::store::actions::NewAction {
        id: ActionId::new(1, random16()?),
        account: api.made.account,
        kind: "scans".to_owned(),
        thng: Some(thng.parse()?),
        product: None,
        timestamp: shared::time::UnixMillis(1),
        doc: json!({"context": context}),
    };
    let mut tx = api.made.app.core.db.begin(&kernel::store::Ctx::default()).await?;
    ::actions::store::actions::insert(&mut tx, shared::time::UnixMillis(1), &[action]).await?;
    tx.commit().await?;
    let list = "/actions/scans?context=true";
    for role in ["admin", "editor", "inspector"] {
        let (_, key) = machine(&api, role, json!({})).await?;
        let seen = api.call_as(&key, Method::GET, list, None).await?.json();
        assert_eq!(seen[0]["context"], context, "{role}");
    }
    for role in ["viewer", "analyst", "auditor", "commissioner"] {
        let (_, key) = machine(&api, role, json!({})).await?;
        let seen = api.call_as(&key, Method::GET, list, None).await?.json();
        assert_eq!(seen[0]["context"], json!({"countryCode": "CH"}), "{role}");
        let by = |field: &str| format!("/actions/scans?filter=context.{field}=x");
        api.call_as(&key, Method::GET, &by("city"), None).await?.problem(403, 40301);
        assert_eq!(api.call_as(&key, Method::GET, &by("countryCode"), None).await?.status, 200);
        let exported = api.call_as(&key, Method::GET, "/actions/all/export?from=0", None).await?;
        if role == "analyst" {
            let line = exported.json();
            assert_eq!(line["context"], json!({"countryCode": "CH"}), "{line}");
        } else {
            exported.problem(403, 40301);
        }
    }
    Ok(())
}

async fn an_operator_of_two_projects_sees_both_and_no_third(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (first, second, third) = (project(&api).await?, project(&api).await?, project(&api).await?);
    for (name, project) in [("one", &first), ("two", &second), ("three", &third)] {
        let product = json!({"name": name, "scopes": {"users": [], "projects": [project]}});
        api.create("/products", product).await?;
    }
    let conditions = json!({"conditions": [format!("project={first}"), format!("project={second}")]});
    let (id, key) = machine(&api, "editor", conditions).await?;
    let names = async |key: &str| -> Result<Vec<String>> {
        let listed = api.call_as(key, Method::GET, "/products?sortOrder=ASCENDING", None).await?.json();
        listed.as_array().context("list")?.iter().map(|one| text(one, "name")).collect()
    };
    assert_eq!(names(&key).await?, ["one", "two"]);
    let create = async |uri: &str, body: Value| api.call_as(&key, Method::POST, uri, Some(body)).await;
    // Where none is named, what it makes is of both; one that is named must be its own.
    let scopes_of = async |uri: &str| -> Result<Value> {
        let made = create(uri, json!({"name": "new"})).await?;
        assert_eq!(made.status, 201, "{made:?}");
        let id = text(&made.json(), "id")?;
        Ok(api.get(&format!("/products/{id}?withScopes=true")).await?.json()["scopes"]["projects"].clone())
    };
    assert_eq!(scopes_of("/products").await?, json!([first, second]));
    assert_eq!(scopes_of(&format!("/products?project={second}")).await?, json!([second]));
    create(&format!("/products?project={third}"), json!({"name": "x"})).await?.problem(400, 40003);
    // What has no project is not for it, though an editor may do it elsewhere.
    create("/jobs/actions", json!({})).await?.problem(403, 40301);
    // A key for one of the projects does not see the other one, nor the keys for both.
    let narrow = create("/keys", json!({"label": "x", "project": first})).await?;
    assert_eq!(narrow.status, 201, "{narrow:?}");
    let narrow = text(&narrow.json(), "apiKey")?;
    assert_eq!(names(&narrow).await?, ["one", "new"]);
    let keys = api.call_as(&narrow, Method::GET, "/keys", None).await?.json();
    assert_eq!(keys.as_array().map(Vec::len), Some(1), "{keys}");
    create("/keys", json!({"label": "x", "project": third})).await?.problem(400, 40001);
    // When its role loses the project, the key for it is none any more.
    let access = format!("{}/{id}", accesses(&api));
    let body = json!({"conditions": [format!("project={second}")]});
    assert_eq!(api.put(&access, body).await?.status, 200);
    api.call_as(&narrow, Method::GET, "/access", None).await?.problem(401, 40102);
    assert_eq!(names(&key).await?, ["two", "new", "new"]);
    Ok(())
}

crate::on_both_engines!(
    an_invitation_is_accepted_once_and_in_time,
    nobody_gives_what_it_does_not_have,
    bad_roles_and_conditions_are_named,
    a_role_changes_what_its_holders_may_do_at_once,
    roles_of_users_narrow_what_they_may_do,
    personal_data_needs_a_permission_of_its_own,
    an_operator_of_two_projects_sees_both_and_no_third,
);
