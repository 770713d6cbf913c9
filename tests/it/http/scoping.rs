//! What confined keys see, create and change: resources of their project, and their own.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use redirects::store::redirections;
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use super::Api;

/// A project with a key of each kind that it has.
struct Tenant {
    project: String,
    public: String,
    secret: String,
    user: String,
    user_key: String,
}

async fn tenant(api: &Api) -> Result<Tenant> {
    api.open_rights().await?;
    let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let app = api.create(&applications, json!({"name": "a"})).await?;
    let secret = api.get(&format!("{applications}/{}/secretKey", text(&app, "id")?)).await?.json();
    let public = text(&app, "appApiKey")?;
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    Ok(Tenant {
        project,
        public,
        secret: text(&secret, "secretApiKey")?,
        user: text(&user, "evrythngUser")?,
        user_key: text(&user, "evrythngApiKey")?,
    })
}

async fn make_as(api: &Api, key: &str, uri: &str, body: Value) -> Result<String> {
    let answer = api.call_as(key, Method::POST, uri, Some(body)).await?.must_be(201)?;
    text(&answer.json(), "id")
}

/// Reads, changes and deletes as somebody; gives the three statuses.
async fn try_all(api: &Api, key: &str, uri: &str) -> Result<[u16; 3]> {
    let read = api.call_as(key, Method::GET, uri, None).await?.status.as_u16();
    let change = json!({"name": "changed", "scopes": {"users": ["all"], "projects": []}});
    let update = api.call_as(key, Method::PUT, uri, Some(change)).await?.status.as_u16();
    Ok([read, update, api.call_as(key, Method::DELETE, uri, None).await?.status.as_u16()])
}

pub(super) async fn things_belong_to_projects_and_users(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (mine, other) = (tenant(&api).await?, tenant(&api).await?);
    for kind in ["/thngs", "/products"] {
        let bare = make_as(&api, &api.key, kind, json!({"name": "bare"})).await?;
        let by_query = format!("{kind}?project={}", mine.project);
        let in_project = make_as(&api, &api.key, &by_query, json!({"name": "in project"})).await?;
        let by_app = make_as(&api, &mine.secret, kind, json!({"name": "x"})).await?;
        // What a confined key asks for does not widen what it has.
        let asked = json!({"name": "x", "scopes": {"users": ["all"], "projects": [other.project]}});
        let by_user = make_as(&api, &mine.user_key, kind, asked).await?;
        for (id, users, projects) in [
            (&bare, json!([]), json!([])),
            (&in_project, json!([]), json!([mine.project])),
            (&by_app, json!([]), json!([mine.project])),
            (&by_user, json!([mine.user]), json!([mine.project])),
        ] {
            let found = api.get(&format!("{kind}/{id}?withScopes=true")).await?.json();
            assert_eq!(found["scopes"], json!({"users": users, "projects": projects}), "{kind} {id}");
        }
        for (what, key, id, expected) in [
            ("trusted, outside", &mine.secret, &bare, [404, 404, 404]),
            ("user, outside", &mine.user_key, &bare, [404, 404, 403]),
            ("user, not its own", &mine.user_key, &in_project, [200, 404, 403]),
            ("user, its own", &mine.user_key, &by_user, [200, 200, 403]),
            ("another project", &other.secret, &by_user, [404, 404, 404]),
            ("another user", &other.user_key, &by_user, [404, 404, 403]),
            ("trusted, its project's", &mine.secret, &by_app, [200, 200, 200]),
            ("trusted, its user's", &mine.secret, &by_user, [200, 200, 200]),
            ("operator", &api.key, &bare, [200, 200, 200]),
        ] {
            assert_eq!(try_all(&api, key, &format!("{kind}/{id}")).await?, expected, "{kind} {what}");
        }
        // No change took it out of its project.
        let found = api.get(&format!("{kind}/{in_project}?withScopes=true")).await?.json();
        assert_eq!(found["scopes"]["projects"], json!([mine.project]));
        for (key, project, fault) in [
            (&api.key, "UKXAGyEf8SQ5eTDmVgGpHqAa", "project: UKX"),
            (&api.key, "x", "project: x"),
            (&mine.secret, other.project.as_str(), "project: "),
            (&mine.user_key, other.project.as_str(), "project: "),
        ] {
            let uri = format!("{kind}?project={project}");
            let answer = api.call_as(key, Method::POST, &uri, Some(json!({"name": "x"}))).await?;
            let errors = answer.problem(400, 40003);
            assert!(errors.len() == 1 && errors[0].starts_with(fault), "{errors:?}");
        }
        let answer = api.call_as(&mine.public, Method::GET, &format!("{kind}/{in_project}"), None).await?;
        assert_eq!(answer.status, if kind == "/thngs" { 403 } else { 200 });
    }
    Ok(())
}

/// What a redirection belongs to is seen by its project, and travels to the edges with it.
pub(super) async fn redirections_belong_to_projects(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (mine, other) = (tenant(&api).await?, tenant(&api).await?);
    let thng = make_as(&api, &mine.secret, "/thngs", json!({"name": "t"})).await?;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"});
    let in_project = format!("?project={}", mine.project);
    let made = |key: String, uri: String, body: Value| {
        let api = &api;
        async move {
            let answer = api.call_as(&key, Method::POST, &uri, Some(body)).await?;
            ensure!(answer.status.is_success(), "{uri}: {answer:?}");
            let id = match answer.header("location") {
                Some(url) => url.rsplit('/').next().and_then(|id| id.split('?').next()).map(str::to_owned),
                None => answer.json()[0]["shortId"].as_str().map(str::to_owned),
            };
            let id = id.context("no short id")?;
            let shown = api.get(&format!("/redirections/{id}")).await?.json();
            // Edges hold the projects too: the rules of an application choose by them.
            let mut conn = api.made.app.core.db.read().await?;
            let held = redirections::find_any(&mut conn, &text(&shown, "shortDomain")?, &id).await?;
            let held = held.context("no redirection")?.redirect.projects;
            let held: Vec<&str> = held.iter().map(shared::id::ProjectId::as_str).collect();
            assert_eq!(shown["scopes"]["projects"], json!(held));
            anyhow::Ok(shown["scopes"]["projects"].clone())
        }
    };
    let path = format!("/thngs/{thng}/redirector");
    for (key, uri, body, projects) in [
        (&api.key, "/redirections".to_owned(), body.clone(), json!([])),
        (&api.key, format!("/redirections{in_project}"), body.clone(), json!([mine.project])),
        (&api.key, format!("/redirections{in_project}"), json!([body]), json!([mine.project])),
        (&api.key, format!("{path}{in_project}"), body.clone(), json!([mine.project])),
        (&mine.secret, "/redirections".to_owned(), body.clone(), json!([mine.project])),
    ] {
        assert_eq!(made(key.clone(), uri.clone(), body).await?, projects, "{uri}");
    }
    let before = api.fingerprint().await?;
    for (key, project) in [
        (&api.key, "UKXAGyEf8SQ5eTDmVgGpHqAa"),
        (&api.key, "x"),
        (&mine.secret, other.project.as_str()),
        (&mine.user_key, other.project.as_str()),
    ] {
        for body in [body.clone(), json!([body])] {
            let uri = format!("/redirections?project={project}");
            let answer = api.call_as(key, Method::POST, &uri, Some(body)).await?;
            let errors = answer.problem(400, 40003);
            assert!(errors.len() == 1 && errors[0].starts_with("project: "), "{errors:?}");
        }
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// The product of a Thng must be one that the key sees.
pub(super) async fn resources_outside_the_scope_cannot_be_referenced(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mine = tenant(&api).await?;
    let outside = make_as(&api, &api.key, "/products", json!({"name": "p"})).await?;
    let inside = make_as(&api, &mine.secret, "/products", json!({"name": "p"})).await?;
    for key in [&mine.secret, &mine.user_key] {
        let body = json!({"name": "t", "product": outside});
        api.call_as(key, Method::POST, "/thngs", Some(body)).await?.problem(400, 40001);
        make_as(&api, key, "/thngs", json!({"name": "t", "product": inside})).await?;
    }
    Ok(())
}

pub(super) async fn a_thng_key_is_confined_to_its_thng(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let own = make_as(&api, &api.key, "/thngs", json!({"name": "own", "identifiers": {"k": "1"}})).await?;
    let other =
        make_as(&api, &api.key, "/thngs", json!({"name": "other", "identifiers": {"k": "2"}})).await?;
    let key = api.create("/auth/evrythng/thngs", json!({"thngId": own})).await?;
    let key = text(&key, "thngApiKey")?;
    for (reference, expected) in [
        (own.as_str(), [200, 200, 403]),
        ("k:1", [200, 200, 403]),
        (other.as_str(), [404, 404, 403]),
        ("k:2", [404, 404, 403]),
    ] {
        assert_eq!(try_all(&api, &key, &format!("/thngs/{reference}")).await?, expected, "{reference}");
    }
    let change = json!({"scopes": {"users": ["all"], "projects": []}});
    api.call_as(&key, Method::PUT, &format!("/thngs/{own}"), Some(change)).await?;
    let found = api.get(&format!("/thngs/{own}?withScopes=true")).await?.json();
    assert_eq!(found["scopes"], json!({"users": [], "projects": []}));
    Ok(())
}

pub(super) async fn redirections_of_others_cannot_be_changed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (mine, other) = (tenant(&api).await?, tenant(&api).await?);
    let body = |id: &str| json!({"platformId": id, "defaultRedirectUrl": "https://example.com"});
    let link_as = async |key: &str, id: &str| {
        let request = axum::http::Request::post("/redirections")
            .header("authorization", key)
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .body(axum::body::Body::from(body(id).to_string()))?;
        api.send(request).await
    };
    let bare = make_as(&api, &api.key, "/thngs", json!({"name": "bare"})).await?;
    let shared = make_as(&api, &mine.secret, "/thngs", json!({"name": "shared"})).await?;
    let own = make_as(&api, &mine.user_key, "/thngs", json!({"name": "own"})).await?;
    for (what, key, id, status) in [
        ("trusted, outside", &mine.secret, &bare, 400),
        ("trusted, inside", &mine.secret, &shared, 201),
        ("trusted, of its user", &mine.secret, &own, 201),
        ("user, outside", &mine.user_key, &bare, 400),
        ("user, not its own", &mine.user_key, &shared, 400),
        ("user, its own", &mine.user_key, &own, 201),
        ("another user", &other.user_key, &own, 400),
        ("application", &mine.public, &own, 403),
    ] {
        assert_eq!(link_as(key, id).await?.status, status, "{what}");
    }
    let of_user = text(&link_as(&mine.user_key, &own).await?.json(), "shortId")?;
    let of_app = text(&link_as(&mine.secret, &own).await?.json(), "shortId")?;
    let of_operator = text(&link_as(&api.key, &own).await?.json(), "shortId")?;
    let target = json!({"defaultRedirectUrl": "https://evil.example"});
    for (what, key, short_id, read, write) in [
        ("user, its own", &mine.user_key, &of_user, 200, 200),
        ("user, the project's", &mine.user_key, &of_app, 200, 404),
        ("user, the operator's", &mine.user_key, &of_operator, 404, 404),
        ("another user", &other.user_key, &of_user, 404, 404),
        ("another project", &other.secret, &of_user, 404, 404),
        ("trusted, its user's", &mine.secret, &of_user, 200, 200),
        ("trusted, the operator's", &mine.secret, &of_operator, 404, 404),
    ] {
        let uri = format!("/redirections/{short_id}");
        assert_eq!(api.call_as(key, Method::GET, &uri, None).await?.status, read, "{what}");
        let one = api.call_as(key, Method::PUT, &uri, Some(target.clone())).await?;
        assert_eq!(one.status, write, "{what}");
        let bulk = format!("/redirections?ids={short_id}");
        let many = api.call_as(key, Method::PUT, &bulk, Some(target.clone())).await?;
        assert_eq!(many.status.is_success(), write == 200, "{what} {many:?}");
    }
    // A change keeps what says whose it is.
    assert_eq!(
        api.call_as(&mine.user_key, Method::GET, &format!("/redirections/{of_user}"), None).await?.status,
        200
    );
    let listed = async |key: &str, uri: &str| -> Result<usize> {
        let answer = api.call_as(key, Method::GET, uri, None).await?.must_be(200)?;
        Ok(answer.json().as_array().context("array")?.len())
    };
    let of_own = format!("/redirections?platformId={own}");
    for (key, all, of_thng) in
        [(&api.key, 6, 5), (&mine.secret, 5, 4), (&mine.user_key, 5, 4), (&other.secret, 0, 0)]
    {
        assert_eq!((listed(key, "/redirections").await?, listed(key, &of_own).await?), (all, of_thng));
    }
    let pages = api.call_as(&mine.secret, Method::GET, "/redirections?perPage=5", None).await?;
    assert_eq!((pages.json().as_array().map(Vec::len), pages.header("link")), (Some(5), None));
    // The first generation of paths goes by the same rules.
    for (key, id, status) in [
        (&mine.user_key, &own, 200),
        (&mine.user_key, &bare, 404),
        (&other.user_key, &own, 404),
        (&other.secret, &own, 404),
    ] {
        let uri = format!("/thngs/{id}/redirector");
        assert_eq!(api.call_as(key, Method::GET, &uri, None).await?.status, status);
    }
    let delete = format!("/redirections/{of_user}");
    assert_eq!(api.call_as(&mine.user_key, Method::DELETE, &delete, None).await?.status, 403);
    assert_eq!(api.call_as(&other.secret, Method::DELETE, &delete, None).await?.status, 404);
    assert_eq!(api.call_as(&mine.secret, Method::DELETE, &delete, None).await?.status, 200);
    Ok(())
}

crate::on_both_engines!(
    things_belong_to_projects_and_users,
    redirections_belong_to_projects,
    resources_outside_the_scope_cannot_be_referenced,
    a_thng_key_is_confined_to_its_thng,
    redirections_of_others_cannot_be_changed,
);
