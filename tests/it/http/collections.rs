//! Collections: members, nesting, and the collections of a Thng.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, paging::walk};

async fn make(api: &Api, path: &str, name: &str) -> Result<String> {
    let made = api.create(path, json!({"name": name})).await?;
    Ok(made["id"].as_str().context("id")?.to_owned())
}

async fn put(api: &Api, path: &str, ids: &[&String]) -> Result<u16> {
    Ok(api.put(path, json!(ids)).await?.status.as_u16())
}

pub(super) async fn a_collection_is_created_updated_and_deleted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let sent = json!({"name": "c", "description": "d", "type": "season", "tags": ["a"],
        "customFields": {"Color": "red"}, "identifiers": {"k": "1"}});
    let made = api.create("/collections", sent.clone()).await?;
    for name in ["name", "description", "type", "tags", "customFields", "identifiers"] {
        assert_eq!(made[name], sent[name], "{name}");
    }
    // These names would overwrite methods of the vendor's client.
    for name in ["collection", "thng", "action"] {
        assert_eq!(made.get(name), None);
    }
    assert_eq!(api.get("/v2/collections/k:1").await?.json(), made);
    let changed = api.put("/collections/k:1", json!({"tags": ["b"]})).await?.json();
    assert_eq!((&changed["tags"], &changed["type"]), (&json!(["b"]), &json!("season")));
    let list = api.get("/collections?filter=tags%3Db").await?;
    assert_eq!(
        (list.json()[0]["id"].clone(), list.header("x-result-count")),
        (made["id"].clone(), Some("1"))
    );
    assert_eq!(api.delete("/collections/k:1").await?.status, 200);
    api.get(&format!("/collections/{}", made["id"].as_str().context("id")?)).await?.problem(404, 40401);
    Ok(())
}

pub(super) async fn thngs_are_added_and_removed_from_both_sides(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut thngs = Vec::new();
    for n in 0..5 {
        thngs.push(make(&api, "/thngs", &n.to_string()).await?);
    }
    let (a, b) = (make(&api, "/collections", "a").await?, make(&api, "/collections", "b").await?);
    let path = format!("/collections/{a}/thngs");
    let of = |thng: &str| format!("/thngs/{thng}");
    assert_eq!(walk(&api, &path).await?, [Vec::<String>::new()]);
    // In any order, twice: listed by creation, newest first.
    assert_eq!(put(&api, &path, &[&thngs[3], &thngs[0], &thngs[3]]).await?, 204);
    assert_eq!(put(&api, &path, &[&thngs[1], &thngs[3]]).await?, 204);
    assert_eq!(put(&api, &path, &[]).await?, 204);
    assert_eq!(walk(&api, &format!("{path}?perPage=2")).await?, [vec!["3", "1"], vec!["0"]]);
    assert_eq!(walk(&api, &format!("{path}?sortOrder=ASCENDING&perPage=1")).await?.concat(), ["0", "1", "3"]);
    assert_eq!(walk(&api, &format!("{path}?filter=name%3D1")).await?.concat(), ["1"]);
    for url in [of(&thngs[3]), "/thngs?filter=name%3D3".to_owned()] {
        let read = api.get(&url).await?.json();
        let thng = if read.is_array() { &read[0] } else { &read };
        assert_eq!(thng["collections"], json!([a]), "{url}");
    }
    assert_eq!(walk(&api, &format!("/thngs?filter=collections%3D{a}")).await?.concat(), ["3", "1", "0"]);

    // The Thng's own member says the same, and replaces the whole.
    let changed = api.put(&of(&thngs[0]), json!({"collections": [b, b]})).await?.json();
    assert_eq!(changed["collections"], json!([b]));
    assert_eq!(walk(&api, &path).await?.concat(), ["3", "1"]);
    assert_eq!(walk(&api, &format!("/collections/{b}/thngs")).await?.concat(), ["0"]);
    let made = api.create("/thngs", json!({"name": "5", "collections": [b, a]})).await?;
    let mut both = vec![a.clone(), b.clone()];
    both.sort_unstable();
    assert_eq!(made["collections"], json!(both));
    assert_eq!(walk(&api, &path).await?.concat(), ["5", "3", "1"]);
    // Not said is not changed, and what was read goes back in.
    let thng = of(made["id"].as_str().context("id")?);
    api.put(&thng, json!({"name": "6"})).await?;
    let whole = api.get(&thng).await?.json();
    assert_eq!(whole["collections"], json!(both));
    assert_eq!(api.put(&thng, whole).await?.status, 200);

    // One leaves, one that is not in cannot, a removed Thng is in none, then all leave.
    assert_eq!(api.delete(&format!("{path}/{}", thngs[1])).await?.status, 200);
    api.delete(&format!("{path}/{}", thngs[1])).await?.problem(404, 40401);
    assert_eq!(api.delete(&thng).await?.status, 200);
    assert_eq!(walk(&api, &path).await?.concat(), ["3"]);
    assert_eq!(api.delete(&path).await?.status, 200);
    assert_eq!(walk(&api, &path).await?, [Vec::<String>::new()]);
    assert_eq!(api.get(&of(&thngs[3])).await?.json().get("collections"), None);
    // A removed collection takes nobody with it.
    assert_eq!(api.delete(&format!("/collections/{b}")).await?.status, 200);
    assert_eq!(api.get(&of(&thngs[0])).await?.json().get("collections"), None);
    assert_eq!(api.fingerprint().await?["collection_thngs"], [""; 0]);
    Ok(())
}

pub(super) async fn collections_nest_without_cycles(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut ids = Vec::new();
    for n in 0..11 {
        ids.push(make(&api, "/collections", &n.to_string()).await?);
    }
    let path = |n: usize| format!("/collections/{}/collections", ids[n]);
    assert_eq!(put(&api, &path(0), &[&ids[1], &ids[2]]).await?, 204);
    assert_eq!(put(&api, &path(1), &[&ids[3]]).await?, 204);
    assert_eq!(put(&api, &path(2), &[&ids[3]]).await?, 204);
    assert_eq!(walk(&api, &path(0)).await?.concat(), ["2", "1"]);
    assert_eq!(api.get(&path(0)).await?.header("x-result-count"), Some("2"));
    let before = api.fingerprint().await?;
    for (outer, inner, why) in
        [(0, 0, "itself"), (1, 0, "its own outer one"), (3, 0, "two levels up"), (3, 2, "by another way")]
    {
        let errors = api.put(&path(outer), json!([ids[10], ids[inner]])).await?;
        let errors = errors.problem(409, 40901);
        assert!(errors[0].contains("inside of itself"), "{why}: {errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal added something");
    // A chain of ten, and no longer: 0 > 1 > 3 > 4 > … > 10 would be eleven with another on top.
    for n in 3..10 {
        assert_eq!(put(&api, &path(n), &[&ids[n + 1]]).await?, 204, "{n}");
    }
    let top = make(&api, "/collections", "top").await?;
    let errors = api.put(&format!("/collections/{top}/collections"), json!([ids[0]])).await?;
    assert!(errors.problem(409, 40901)[0].contains("10 deep"));
    // Cut in the middle, both ends may grow, and what was below may now be above.
    assert_eq!(api.delete(&format!("{}/{}", path(3), ids[4])).await?.status, 200);
    api.delete(&format!("{}/{}", path(3), ids[4])).await?.problem(404, 40401);
    assert_eq!(put(&api, &path(10), &[&ids[0]]).await?, 204);
    assert_eq!(api.delete(&path(0)).await?.status, 200);
    assert_eq!(walk(&api, &path(0)).await?, [Vec::<String>::new()]);
    assert_eq!(api.delete(&format!("/collections/{}", ids[10])).await?.status, 200);
    assert_eq!(walk(&api, &path(9)).await?, [Vec::<String>::new()]);
    Ok(())
}

/// Two that would close a circle at the same moment: one of them is refused.
pub(super) async fn two_concurrent_requests_cannot_create_a_cycle(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for round in 0..5 {
        let (a, b) = (make(&api, "/collections", "a").await?, make(&api, "/collections", "b").await?);
        let (into_a, into_b) =
            (format!("/collections/{a}/collections"), format!("/collections/{b}/collections"));
        let (one, two) = ([&b], [&a]);
        let (first, second) = tokio::join!(put(&api, &into_a, &one), put(&api, &into_b, &two));
        let mut both = [first?, second?];
        both.sort_unstable();
        assert_eq!(both, [204, 409], "round {round}");
    }
    Ok(())
}

pub(super) async fn wrong_members_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let unknown = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    let (_, other_thng) = api.others().await?;
    let theirs = json!({"name": "x"});
    let theirs = api.call_as(&api.other_key, Method::POST, "/collections", Some(theirs)).await?.json();
    let theirs = theirs["id"].as_str().context("id")?.to_owned();
    let (thng, id) = (make(&api, "/thngs", "t").await?, make(&api, "/collections", "c").await?);
    let before = api.fingerprint().await?;
    let cases: Vec<(String, Value, Vec<&str>)> = vec![
        (format!("/collections/{id}/thngs"), json!([thng, unknown]), vec!["thng UKX"]),
        (format!("/collections/{id}/thngs"), json!([thng, other_thng, id]), vec!["does not", "does not"]),
        (format!("/collections/{id}/thngs"), json!([thng, "x", 1]), vec!["[1]", "[2]"]),
        (format!("/collections/{id}/thngs"), json!({"ids": [thng]}), vec!["array of ids"]),
        (format!("/collections/{id}/collections"), json!([theirs, unknown]), vec!["does not", "does not"]),
        (format!("/collections/{id}/collections"), json!([thng]), vec!["collection"]),
        (
            format!("/thngs/{thng}"),
            json!({"collections": [id, unknown]}),
            vec!["collections: the collection"],
        ),
        (format!("/thngs/{thng}"), json!({"collections": [theirs]}), vec!["does not exist"]),
        (format!("/thngs/{thng}"), json!({"collections": ["x"]}), vec!["collections must hold ids"]),
        (format!("/thngs/{thng}"), json!({"collections": id}), vec!["collections must be an array"]),
    ];
    for (path, body, faults) in cases {
        let errors = api.put(&path, body.clone()).await?.problem(400, 40001);
        assert_eq!(errors.len(), faults.len(), "{path} {body}: {errors:?}");
        for fault in faults {
            assert!(errors.iter().any(|error| error.contains(fault)), "{path} {body}: {errors:?}");
        }
    }
    for collection in [unknown, &theirs, "k:none", "x"] {
        for members in ["thngs", "collections"] {
            let path = format!("/collections/{collection}/{members}");
            api.get(&path).await?.problem(404, 40401);
            api.put(&path, json!([])).await?.problem(404, 40401);
            api.delete(&path).await?.problem(404, 40401);
            api.delete(&format!("{path}/{thng}")).await?.problem(404, 40401);
        }
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// A redirection may belong to a collection or a place; its type follows.
pub(super) async fn redirections_belong_to_collections_and_places_too(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (path, kind) in [("/collections", "collection"), ("/places", "place")] {
        let id = make(&api, path, "x").await?;
        let body = json!({"platformId": id, "defaultRedirectUrl": "https://example.com/{platformId}"});
        let answer = api.post("/redirections", body.clone()).await?;
        assert!(answer.status.is_success(), "{answer:?}");
        let list = api.get(&format!("/redirections?platformId={id}")).await?.json();
        assert_eq!((&list[0]["type"], &list[0]["platformId"]), (&json!(kind), &json!(id)));
        let mut wrong = body;
        wrong["type"] = json!("thng");
        api.post("/redirections", wrong).await?.problem(400, 40001);
    }
    Ok(())
}

crate::on_both_engines!(
    a_collection_is_created_updated_and_deleted,
    thngs_are_added_and_removed_from_both_sides,
    collections_nest_without_cycles,
    two_concurrent_requests_cannot_create_a_cycle,
    wrong_members_change_nothing,
    redirections_belong_to_collections_and_places_too,
);
