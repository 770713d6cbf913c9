//! Operators with restricted roles: no indirect access to personal data, keys, effects and projects.

use anyhow::{Context, Result};
use axum::http::Method;
use kernel::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        api_key::Bounds,
    },
    service::access::Caller,
    store::Ctx,
};
use serde_json::{Value, json};
use tests::{db::Engine, json::text, product::PHONE};

use super::{
    Api,
    authentication::{BERN, Brand, scanned, trigger, with},
    batches::populate,
    events::Stream,
    operators::{accept, accesses, machine, project},
};

/// The key of an operator whose only role has these permissions.
pub(super) async fn with_permissions(api: &Api, permissions: &[&str]) -> Result<String> {
    let policy = json!({"name": permissions.join(" "), "permissions": permissions});
    let policy = text(&api.create("/accessPolicies", policy).await?, "id")?;
    Ok(machine(api, &policy, json!({})).await?.1)
}

async fn personal_data_is_hidden_in_streams_filters_and_results(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    // Conditions and filters.
    for uri in [
        "/events?match=context.city=x",
        "/events?match=customFields.triggerContext.city=x",
        "/events?match=location.latitude=x",
        "/actions/all?filter=context.city=x",
        "/actions/all?filter=customFields.triggerContext.city=x",
    ] {
        let faults = api.call_as(&viewer, Method::GET, uri, None).await?.problem(403, 40301);
        assert!(faults[0].contains("you do not see"), "{uri}: {faults:?}");
    }
    // The exact place of whoever scanned: in streams, lists and results.
    let mut of_viewer = Stream::open(&api, &viewer, "/events?match=context.countryCode!=x", None).await?;
    let mut of_editor = Stream::open(&api, &editor, "/events", None).await?;
    let scan = json!({"thng": thng, "location": {"latitude": BERN.0, "longitude": BERN.1}});
    let made = api.create("/actions/scans", scan).await?;
    assert_eq!(made["locationSource"], "sensor", "{made}");
    let one = format!("/actions/scans/{}", text(&made, "id")?);
    // What was done before may be told late.
    let told = async |stream: &mut Stream| loop {
        let data = stream.next().await?.body["data"].clone();
        if data["id"] == made["id"] {
            return anyhow::Ok(data);
        }
    };
    let told = [told(&mut of_viewer).await?, told(&mut of_editor).await?];
    let read = [
        api.call_as(&viewer, Method::GET, &one, None).await?.json(),
        api.call_as(&editor, Method::GET, &one, None).await?.json(),
    ];
    for [hidden, shown] in [told, read] {
        assert_eq!((&hidden["id"], hidden.get("location")), (&made["id"], None), "{hidden}");
        assert_eq!(shown["location"], made["location"]);
    }
    let scan = scanned(&api, &thng, 50, PHONE, Some(("Bern", "CH", BERN))).await?;
    let assessor = with_permissions(&api, &["assessments:create", "thngs:read", "actions:read,list"]).await?;
    let seer = with_permissions(
        &api,
        &["assessments:create", "thngs:read", "actions:read,list", "personalData:read"],
    )
    .await?;
    let ask = async |key: &str| -> Result<Value> {
        let body = with(trigger(Some(&thng), BERN), "id", json!(scan));
        let body = with(body, "type", json!("implicitScans"));
        Ok(api.call_as(key, Method::POST, "/authentication", Some(body)).await?.must_be(200)?.json())
    };
    let (hidden, shown) = (ask(&assessor).await?, ask(&seer).await?);
    assert_eq!(shown["customFields"]["triggerContext"]["city"], "Bern", "{shown}");
    assert_eq!(
        hidden["customFields"]["triggerContext"],
        json!({"countryCode": "CH", "region": "Bern", "timeZone": "unknown"}),
        "{hidden}"
    );
    assert!(hidden.get("location").is_none() && shown["location"].is_object(), "{hidden}");
    Ok(())
}

async fn webhooks_reactions_and_deliveries_need_personal_data(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let hook = json!({"name": "w", "url": "https://webhooks.invalid/", "status": "disabled"});
    let hook = format!("/webhooks/{}", text(&api.create("/webhooks", hook).await?, "id")?);
    let effect = json!({"type": "property", "key": "a", "value": 1});
    let reaction = api.create("/reactions", json!({"name": "r", "effect": effect})).await?;
    let reaction = format!("/reactions/{}", text(&reaction, "id")?);
    let keeper =
        with_permissions(&api, &["webhooks:create,read,list,update", "reactions:create,read,list,update"])
            .await?;
    let deliveries = format!("{hook}/deliveries");
    api.call_as(&keeper, Method::GET, &deliveries, None).await?.problem(403, 40301);
    for uri in [&hook, &reaction] {
        let answer = api.call_as(&keeper, Method::PUT, uri, Some(json!({"name": "x"}))).await?;
        assert!(answer.problem(403, 40301)[0].contains("personalData:read"));
    }
    // The effect of a reaction needs the permission for what it does.
    let base = ["reactions:create,read,list,update", "personalData:read"];
    for (permission, effect) in [
        ("properties:update", json!({"type": "property", "key": "a", "value": 1})),
        ("actions:create", json!({"type": "action", "action": {"type": "shares"}})),
        ("webhooks:read", json!({"type": "webhook", "webhook": hook.rsplit('/').next()})),
    ] {
        let body = json!({"name": "r", "effect": effect});
        let without = with_permissions(&api, &base).await?;
        let answer = api.call_as(&without, Method::POST, "/reactions", Some(body.clone())).await?;
        assert!(answer.problem(403, 40301)[0].contains(permission), "{permission}");
        let answer = api.call_as(&without, Method::PUT, &reaction, Some(json!({"effect": effect}))).await?;
        answer.problem(403, 40301);
        let with = with_permissions(&api, &[base[0], base[1], permission]).await?;
        let answer = api.call_as(&with, Method::POST, "/reactions", Some(body)).await?;
        assert_eq!(answer.status, 201, "{permission}: {answer:?}");
    }
    Ok(())
}

async fn changed_invitations_expire_and_keys_made_by_others_block_a_raise(engine: Engine) -> Result<()> {
    let api = Api::without_mail(engine).await?;
    let accesses = accesses(&api);
    // The code of an invitation expires when its roles change.
    let invited = api.create(&accesses, json!({"email": "ada@example.com", "role": "viewer"})).await?;
    let one = format!("{accesses}/{}", text(&invited, "id")?);
    assert_eq!(api.put(&one, json!({"role": "owner"})).await?.status, 200);
    accept(&api, json!({"code": invited["invitationCode"]})).await?.problem(401, 40103);
    let again = api.call(Method::POST, &format!("{one}/invitation"), None).await?.json();
    assert_eq!(accept(&api, json!({"code": again["invitationCode"]})).await?.status, 200);
    // The maker of a key may have kept a copy.
    let maker = with_permissions(&api, &["operators:create,read,list", "thngs:read"]).await?;
    let reads = json!({"name": "reads", "permissions": ["thngs:read"]});
    let reads = text(&api.create("/accessPolicies", reads).await?, "id")?;
    let body = json!({"name": "m", "role": reads});
    let made = api.call_as(&maker, Method::POST, "/accessTokens", Some(body)).await?.json();
    let (id, key) = (text(&made, "id")?, text(&made, "apiKey")?);
    let access = format!("{accesses}/{id}");
    let before = api.fingerprint().await?;
    let more = json!({"permissions": ["thngs:read,create"]});
    for (uri, body) in [
        (access.clone(), json!({"role": "editor"})),
        (format!("/accessPolicies/{reads}"), more.clone()),
        (format!("/roles/{reads}/permissions/audit_read"), json!({"enabled": true})),
    ] {
        let faults = api.put(&uri, body).await?.problem(409, 40901);
        assert!(faults[0].contains("first key") && faults[0].contains(&id), "{faults:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    // A change without more rights is fine; more rights are fine once the owner has rotated the key.
    api.put(&format!("/accessPolicies/{reads}"), json!({"name": "less"})).await?.must_be(200)?;
    let keys = api.get("/keys").await?.json();
    let of_machine = keys.as_array().into_iter().flatten().find(|key| key["operator"] == json!(id));
    let of_machine = text(of_machine.context("no key")?, "id")?;
    api.post(&format!("/keys/{of_machine}/rotate"), json!({})).await?.must_be(201)?;
    for (uri, body) in [(format!("/accessPolicies/{reads}"), more), (access, json!({"role": "editor"}))] {
        api.put(&uri, body).await?.must_be(200)?;
    }
    api.call_as(&key, Method::GET, "/me", None).await?.problem(401, 40102);
    Ok(())
}

async fn secret_keys_are_shown_only_to_roles_that_allow_as_much(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let applications = format!("/projects/{}/applications", project(&api).await?);
    let app = api.create(&applications, json!({"name": "a"})).await?;
    let secret = format!("{applications}/{}/secretKey", text(&app, "id")?);
    let reader = with_permissions(&api, &["keys:read,update", "projects:read", "applications:read"]).await?;
    let (_, admin) = machine(&api, "admin", json!({})).await?;
    for (method, uri) in [(Method::GET, secret.clone()), (Method::POST, format!("{secret}/rotate"))] {
        let body = (method == Method::POST).then(|| json!({}));
        api.call_as(&reader, method.clone(), &uri, body.clone()).await?.problem(403, 40301);
        let answer = api.call_as(&admin, method, &uri, body).await?;
        assert!(answer.status.is_success(), "{answer:?}");
    }
    // Without `operatorKeys:create` an operator has at most 50 keys.
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    for _ in 1..50 {
        api.call_as(&viewer, Method::POST, "/keys", Some(json!({"label": "x"}))).await?.must_be(201)?;
    }
    api.call_as(&viewer, Method::POST, "/keys", Some(json!({"label": "x"}))).await?.problem(409, 40901);
    assert_eq!(api.create("/keys", json!({"label": "x"})).await?["label"], "x");
    Ok(())
}

/// A request that was authenticated before a demotion writes nothing after it.
async fn roles_are_checked_again_under_the_lock(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (id, _) = machine(&api, "admin", json!({})).await?;
    let owner = kernel::domain::role::of_owner();
    let admin = kernel::domain::role::permissions_of("admin").context("admin")?;
    let caller = |permissions| {
        let actor = Actor {
            account: api.made.account,
            kind: ActorKind::Operator,
            id: id.clone(),
            project: None,
            app: None,
            enterprise: true,
            user_rights: UserRights::default(),
            permissions,
            confined_to: Vec::new(),
        };
        Caller { actor, ctx: Ctx::default(), bounds: Bounds::default() }
    };
    let core = &api.made.app.core;
    let create = async |caller: &Caller| {
        let body = json!({"name": "x", "role": "viewer"});
        let change = tenants::domain::operator::AccessChange::parse_token(&body).unwrap();
        tenants::service::operators::create_machine(core, caller, change).await
    };
    assert!(create(&caller(admin)).await.is_ok());
    for stale in [owner, admin] {
        if stale == admin {
            let access = format!("{}/{id}", accesses(&api));
            assert_eq!(api.put(&access, json!({"role": "viewer"})).await?.status, 200);
        }
        let before = api.fingerprint().await?;
        let refused = create(&caller(stale)).await.err().context("it was made")?;
        assert!(format!("{refused:?}").contains("changed a moment ago"), "{refused:?}");
        assert_eq!(api.fingerprint().await?, before);
    }
    Ok(())
}

async fn keys_follow_the_projects_of_their_operator(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (first, second) = (project(&api).await?, project(&api).await?);
    for (name, project) in [("one", &first), ("two", &second)] {
        api.create("/products", json!({"name": name, "scopes": {"users": [], "projects": [project]}}))
            .await?;
    }
    let of = |ids: &[&String]| json!({"conditions": ids.iter().map(|id| format!("project={id}")).collect::<Vec<_>>()});
    let (id, key) = machine(&api, "editor", of(&[&first])).await?;
    let access = format!("{}/{id}", accesses(&api));
    let count = async |uri: &str| -> Result<Option<usize>> {
        Ok(api.call_as(&key, Method::GET, uri, None).await?.json().as_array().map(Vec::len))
    };
    assert_eq!((count("/products").await?, count("/keys").await?), (Some(1), Some(1)));
    // The key reaches a project that is added to the role.
    assert_eq!(api.put(&access, of(&[&first, &second])).await?.status, 200);
    assert_eq!((count("/products").await?, count("/keys").await?), (Some(2), Some(1)));
    // After one project is deleted it keeps the other; after the last, its key ends.
    assert_eq!(api.delete(&format!("/projects/{first}")).await?.status, 200);
    assert_eq!(api.get(&access).await?.json()["conditions"], of(&[&second])["conditions"]);
    assert_eq!(count("/products").await?, Some(1));
    assert_eq!(api.delete(&format!("/projects/{second}")).await?.status, 200);
    api.call_as(&key, Method::GET, "/products", None).await?.problem(401, 40102);
    assert_eq!(api.get(&access).await?.json()["conditions"], of(&[&second])["conditions"]);
    // An operator who is confined later still sees its own keys.
    let (id, key) = machine(&api, "editor", json!({})).await?;
    let third = project(&api).await?;
    let access = format!("{}/{id}", accesses(&api));
    assert_eq!(api.put(&access, of(&[&third])).await?.status, 200);
    let own = api.call_as(&key, Method::GET, "/keys", None).await?.json();
    assert_eq!(own.as_array().map(Vec::len), Some(1), "{own}");
    Ok(())
}

async fn redirections_of_two_projects_fill_whole_pages(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (first, second, third) = (project(&api).await?, project(&api).await?, project(&api).await?);
    let make = async |project: &str, count: usize| -> Result<()> {
        let (_, editor) =
            machine(&api, "editor", json!({"conditions": [format!("project={project}")]})).await?;
        let create = async |uri: &str, body: Value| api.call_as(&editor, Method::POST, uri, Some(body)).await;
        for _ in 0..count {
            let thng = text(&create("/thngs", json!({"name": "x"})).await?.json(), "id")?;
            let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"});
            assert_eq!(create("/redirections", body).await?.status, 200);
        }
        Ok(())
    };
    make(&first, 2).await?;
    make(&second, 2).await?;
    make(&third, 7).await?;
    let conditions = json!({"conditions": [format!("project={first}"), format!("project={second}")]});
    let (_, key) = machine(&api, "viewer", conditions).await?;
    for order in ["ASCENDING", "DESCENDING"] {
        let uri = format!("/redirections?perPage=3&sortOrder={order}");
        let page = api.call_as(&key, Method::GET, &uri, None).await?;
        assert_eq!(page.json().as_array().map(Vec::len), Some(3), "{order}: {page:?}");
    }
    Ok(())
}

async fn batch_tasks_need_the_permissions_of_what_they_create(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let batch = text(&api.create("/batches", json!({"name": "b"})).await?, "id")?;
    let tasks = format!("/batches/{batch}/tasks");
    let links = json!({"generateRedirections": true, "defaultRedirectUrl": "https://example.com/",
        "shortDomain": "tn.gg", "shortIdTemplate": {"type": "THNG_ID"}});
    for (permissions, more, status) in [
        (vec!["batches:create"], json!({}), 403),
        (vec!["batches:create", "thngs:create"], json!({}), 202),
        (vec!["batches:create", "thngs:create"], links.clone(), 403),
        (vec!["batches:create", "thngs:create", "redirections:create"], links, 202),
    ] {
        let key = with_permissions(&api, &permissions).await?;
        let answer = api.call_as(&key, Method::POST, &tasks, Some(populate(1, &more))).await?;
        assert_eq!(answer.status, status, "{permissions:?}: {answer:?}");
    }
    Ok(())
}

async fn assessing_inspector_scans_needs_a_permission(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let project = project(&api).await?;
    let scopes = json!({"scopes": {"users": [], "projects": [project]}});
    assert_eq!(api.put(&format!("/thngs/{thng}"), scopes).await?.status, 200);
    let conditions = json!({"conditions": [format!("project={project}")]});
    let (_, of_project) = machine(&api, "inspector", conditions).await?;
    let (_, of_account) = machine(&api, "inspector", json!({})).await?;
    let other = with_permissions(&api, &["assessments:create", "thngs:read", "actions:read,list"]).await?;
    for (key, status) in [(of_project, 200), (of_account, 200), (other, 403)] {
        let body = with(trigger(Some(&thng), BERN), "type", json!("inspectorScans"));
        let answer = api.call_as(&key, Method::POST, "/authentication", Some(body)).await?;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    Ok(())
}

async fn accesses_round_trip_and_policies_exclude_user_roles(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (id, _) = machine(&api, "viewer", json!({})).await?;
    let access = format!("{}/{id}", accesses(&api));
    let read = api.get(&access).await?.json();
    let written = api.put(&access, read.clone()).await?.json();
    assert_eq!((&written["policies"], &written["name"]), (&read["policies"], &read["name"]));
    let named = api.put(&access, json!({"name": "press 4"})).await?.json();
    assert_eq!(named["name"], "press 4");
    // A role for users is no access policy, and its users can read it.
    let role = text(&api.create("/roles", json!({"name": "x", "type": "userInApp"})).await?, "id")?;
    let policy = format!("/accessPolicies/{role}");
    api.put(&policy, json!({"name": "y"})).await?.problem(404, 40401);
    api.delete(&policy).await?.problem(404, 40401);
    let applications = format!("/projects/{}/applications", project(&api).await?);
    let app = api.create(&applications, json!({"name": "a", "userRole": role})).await?;
    let (public, users) = (text(&app, "appApiKey")?, "/auth/evrythng/users?anonymous=true");
    let user = api.call_as(&public, Method::POST, users, Some(json!({}))).await?.json();
    let key = text(&user, "evrythngApiKey")?;
    let roles = api.call_as(&key, Method::GET, "/roles", None).await?.json();
    assert_eq!(roles[0]["id"], json!(role), "{roles}");
    Ok(())
}

crate::on_both_engines!(
    personal_data_is_hidden_in_streams_filters_and_results,
    webhooks_reactions_and_deliveries_need_personal_data,
    changed_invitations_expire_and_keys_made_by_others_block_a_raise,
    secret_keys_are_shown_only_to_roles_that_allow_as_much,
    roles_are_checked_again_under_the_lock,
    keys_follow_the_projects_of_their_operator,
    redirections_of_two_projects_fill_whole_pages,
    batch_tasks_need_the_permissions_of_what_they_create,
    assessing_inspector_scans_needs_a_permission,
    accesses_round_trip_and_policies_exclude_user_roles,
);
