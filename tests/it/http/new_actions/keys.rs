//! Which key creates which actions.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{super::Api, id};
use crate::on_both_engines;

pub(super) async fn each_key_creates_only_permitted_actions(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let app = api.application(json!({"name": "a"})).await?;
    let (project, public, secret) = (&*app.project, &*app.public, &*app.secret);
    let scopes = json!({"users": [], "projects": [project]});
    let thng = id(&api.create("/thngs", json!({"name": "in", "scopes": scopes})).await?);
    let outside = id(&api.create("/thngs", json!({"name": "out"})).await?);
    let own = api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
    let own = own["thngApiKey"].as_str().unwrap();
    api.open_rights().await?;
    let user =
        api.call_as(public, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({}))).await?;
    let user = user.json();
    let user_key = user["evrythngApiKey"].as_str().unwrap();

    for (key, uri, about, status) in [
        (public, "/actions/scans", &thng, 201),
        (public, "/actions/scans", &outside, 400),
        (public, "/actions/checkins", &thng, 403),
        (public, "/actions/commissions", &thng, 403),
        (secret, "/actions/checkins", &thng, 201),
        (secret, "/actions/scans", &outside, 400),
        (user_key, "/actions/checkins", &thng, 201),
        (own, "/actions/checkins", &thng, 201),
        (own, "/actions/checkins", &outside, 400),
    ] {
        let answer = api.call_as(key, Method::POST, uri, Some(json!({"thng": about}))).await?;
        assert_eq!(answer.status.as_u16(), status, "{uri} {about}: {:?}", answer.json());
    }
    let of_app = api.call_as(public, Method::POST, "/actions/scans", Some(json!({}))).await?.json();
    assert_eq!((&of_app["createdByProject"], &of_app["createdByApp"]), (&json!(project), &json!(app.id)));
    let of_user = api.call_as(user_key, Method::POST, "/actions/shares", Some(json!({}))).await?.json();
    assert_eq!((&of_user["user"], &of_user["createdByApp"]), (&user["evrythngUser"], &json!(app.id)));
    let of_thng = api.call_as(own, Method::POST, "/actions/shares", Some(json!({}))).await?.json();
    assert_eq!(of_thng["thng"], json!(thng), "a Thng tells of itself");
    // What is said of a Thng of the project belongs to the project, whoever says it; the rest does not.
    let inside = api.create("/actions/shares", json!({"thng": thng})).await?;
    let hidden = api.create("/actions/shares", json!({"thng": outside})).await?;
    let asked = api.create(&format!("/actions/shares?project={project}"), json!({"thng": outside})).await?;
    assert_eq!(asked["createdByProject"], json!(project));
    for (key, action, status) in [
        (secret, &of_thng, 200),
        (secret, &inside, 200),
        (secret, &asked, 200),
        (secret, &hidden, 404),
        (user_key, &of_user, 200),
        (user_key, &hidden, 404),
        (own, &of_thng, 200),
        (own, &inside, 200),
        (own, &hidden, 404),
        (public, &of_app, 403),
    ] {
        let uri = format!("/actions/all/{}", id(action));
        let answer = api.call_as(key, Method::GET, &uri, None).await?;
        assert_eq!(answer.status.as_u16(), status, "{action}");
        if answer.status != 200 || key == secret {
            continue;
        }
        // Neither users nor Thngs remove actions.
        api.call_as(key, Method::DELETE, &uri, None).await?.problem(403, 40301);
    }
    // Lists show the same.
    for (key, seen, unseen) in [
        (secret, vec![&of_app, &of_user, &of_thng, &inside, &asked], vec![&hidden]),
        (user_key, vec![&of_app, &of_user, &of_thng, &inside, &asked], vec![&hidden]),
        (own, vec![&of_thng, &inside], vec![&of_app, &of_user, &hidden, &asked]),
        (&api.key, vec![&of_app, &of_user, &of_thng, &inside, &asked, &hidden], vec![]),
        (&api.other_key, vec![], vec![&of_app, &of_user, &of_thng, &inside, &asked, &hidden]),
    ] {
        let listed =
            api.call_as(key, Method::GET, "/actions/all?perPage=100&withScopes=true", None).await?.json();
        let listed = listed.as_array().context("array")?;
        let has = |action: &Value| listed.iter().any(|row| row["id"] == action["id"]);
        assert!(
            seen.iter().all(|action| has(action)) && !unseen.iter().any(|action| has(action)),
            "{listed:?}"
        );
        assert!(listed.iter().all(|row| row["scopes"]["projects"].is_array()), "{listed:?}");
    }
    let read = api.get(&format!("/actions/all/{}?withScopes=true", id(&of_user))).await?.json();
    assert_eq!(read["scopes"], json!({"users": [user["evrythngUser"]], "projects": [project]}));

    api.call_as(secret, Method::DELETE, &format!("/actions/all/{}", id(&hidden)), None)
        .await?
        .problem(404, 40401);
    let gone = api.call_as(secret, Method::DELETE, &format!("/actions/shares/{}", id(&inside)), None).await?;
    assert_eq!((gone.status.as_u16(), gone.bytes.len()), (200, 0));
    let foreign = format!("/actions/all/{}", id(&asked));
    api.call_as(&api.other_key, Method::DELETE, &foreign, None).await?.problem(404, 40401);
    Ok(())
}

on_both_engines!(each_key_creates_only_permitted_actions);
