//! Lists: pages, order, the `Link`, filters, and rows that are inserted or deleted while somebody pages.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use catalog::domain::resource::{Thng, ThngDetails};
use kernel::store::{Ctx, documents};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use shared::{id::ThngId, time::UnixMillis};
use tests::db::{Engine, random16};

use super::{Answer, Api};

/// The next page's URL, read as the vendor's clients read it.
pub(super) fn next(answer: &Answer) -> Option<String> {
    let header = answer.header("link")?;
    assert_eq!(header.split(',').count(), 1, "{header}");
    let (target, rel) = header.split_once(';')?;
    assert_eq!(rel.trim(), "rel=\"next\"");
    assert_eq!(header.matches([';', '=']).count(), 2, "{header}");
    let encoded = target.trim().strip_prefix('<')?.strip_suffix('>')?;
    Some(percent_decode_str(encoded).decode_utf8().ok()?.into_owned())
}

fn names(page: &Value) -> Vec<String> {
    page.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Reads a list to its end, each page by the `Link` of the one before.
pub(super) async fn walk(api: &Api, first: &str) -> Result<Vec<Vec<String>>> {
    let mut pages = Vec::new();
    let mut url = first.to_owned();
    loop {
        let answer = api.get(&url).await?.must_be(200)?;
        pages.push(names(&answer.json()));
        let Some(next) = next(&answer) else { return Ok(pages) };
        url = next;
        ensure!(pages.len() < 50, "no end");
    }
}

async fn make(api: &Api, names: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for name in names {
        let made = api.create("/thngs", json!({"name": name})).await?;
        ids.push(made["id"].as_str().context("id")?.to_owned());
    }
    Ok(ids)
}

fn texts(range: impl Iterator<Item = i32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

pub(super) async fn pages_cover_the_list_in_order(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.others().await?;
    make(&api, texts(0..5)).await?;
    assert_eq!(
        walk(&api, "/thngs?perPage=2").await?,
        [texts((3..5).rev()), texts((1..3).rev()), texts(0..1)]
    );
    assert_eq!(
        walk(&api, "/v2/thngs?perPage=5").await?,
        [texts((0..5).rev())],
        "no Link on a full last page"
    );
    assert_eq!(walk(&api, "/thngs?sortOrder=ASCENDING&perPage=3").await?, [texts(0..3), texts(3..5)]);
    assert_eq!(walk(&api, "/thngs").await?, [texts((0..5).rev())]);
    assert_eq!(walk(&api, "/products").await?, [texts(0..0)]);
    make(&api, texts(5..40)).await?;
    let by_default = walk(&api, "/thngs").await?;
    assert_eq!(by_default.iter().map(Vec::len).collect::<Vec<_>>(), [30, 10]);
    Ok(())
}

pub(super) async fn rows_of_one_millisecond_keep_their_order(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    for n in 0..5 {
        let id = ThngId::new(7, random16()?);
        let thng = Thng::new(id, n.to_string(), None, ThngDetails::default(), UnixMillis(7));
        documents::insert(&mut tx, api.made.account, thng).await?;
    }
    tx.commit().await?;
    assert_eq!(
        walk(&api, "/thngs?perPage=2").await?,
        [texts((3..5).rev()), texts((1..3).rev()), texts(0..1)]
    );
    assert_eq!(
        walk(&api, "/thngs?perPage=2&sortOrder=ASCENDING").await?,
        [texts(0..2), texts(2..4), texts(4..5)]
    );
    Ok(())
}

pub(super) async fn the_next_link_holds_all_parameters(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let name = "a+b 100% ü&=,;\"<>";
    make(&api, std::iter::repeat_n(name.to_owned(), 3)).await?;
    make(&api, ["other".to_owned()]).await?;
    let filter = percent_encoding::utf8_percent_encode(
        &format!("name={}", name.replace('&', "\\&")),
        percent_encoding::NON_ALPHANUMERIC,
    )
    .to_string();
    let first = format!("/v2/thngs?perPage=2&filter={filter}&own=1");
    let answer = api.get(&first).await?;
    let url = next(&answer).context("no Link")?;
    assert!(
        url.starts_with("http://api.example:8080/v2/thngs?perPage=2&filter=name%3Da%2Bb%20100%25"),
        "{url}"
    );
    assert!(url.contains("&own=1&nextPageToken="), "{url}");
    assert_eq!(walk(&api, &first).await?, [vec![name; 2], vec![name; 1]]);

    // Without the header, the key goes on in the query as it was given.
    let request = axum::http::Request::builder()
        .uri(format!("/thngs?perPage=1&access_token={}", api.key))
        .header("host", "api.example:8080")
        .header("x-forwarded-proto", "https")
        .body(axum::body::Body::empty())?;
    let answer = api.send(request).await?;
    let url = next(&answer).context("no Link")?;
    assert!(url.starts_with("https://api.example:8080/thngs?perPage=1&access_token=AAAA"), "{url}");
    let request = axum::http::Request::builder().uri(&url).body(axum::body::Body::empty())?;
    assert_eq!(api.send(request).await?.status, 200);
    Ok(())
}

pub(super) async fn inserted_and_deleted_rows_change_no_page(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for sort in ["DESCENDING", "ASCENDING"] {
        let ids = make(&api, texts(0..9)).await?;
        let mut seen = Vec::new();
        let mut url = format!("/thngs?perPage=2&sortOrder={sort}");
        let mut turn = 0;
        loop {
            let answer = api.get(&url).await?;
            let page = answer.json();
            seen.extend(
                page.as_array().context("page")?.iter().map(|row| row["id"].as_str().unwrap().to_owned()),
            );
            let Some(next) = next(&answer) else { break };
            if turn == 0 {
                // The last row of the page before: the cursor stands on it.
                let last = seen.last().context("seen")?;
                api.delete(&format!("/thngs/{last}")).await?;
                make(&api, ["new".to_owned()]).await?;
            }
            if turn == 1 {
                // One that nobody has seen yet.
                api.delete(&format!("/thngs/{}", ids[4])).await?;
                make(&api, ["new".to_owned()]).await?;
            }
            url = next;
            turn += 1;
        }
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), seen.len(), "{sort}: a row came twice");
        for (index, id) in ids.iter().enumerate() {
            assert_eq!(seen.contains(id), index != 4, "{sort}: row {index}");
        }
        for id in seen.iter().chain(&ids) {
            api.delete(&format!("/thngs/{id}")).await?;
        }
        for row in api.get("/thngs").await?.json().as_array().context("rest")? {
            api.delete(&format!("/thngs/{}", row["id"].as_str().context("id")?)).await?;
        }
    }
    Ok(())
}

pub(super) async fn a_page_token_is_valid_for_its_query_only(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, texts(0..4)).await?;
    for n in 0..3 {
        api.create("/products", json!({"name": n.to_string()})).await?;
    }
    let answer = api.get("/thngs?perPage=1").await?;
    let url = next(&answer).context("no Link")?;
    let token = url.split("nextPageToken=").nth(1).context("token")?.to_owned();
    assert_eq!(names(&api.get(&url).await?.json()), ["2"]);
    let before = api.fingerprint().await?;
    let mut tampered = token.clone();
    tampered.replace_range(0..1, if token.starts_with('B') { "C" } else { "B" });
    for wrong in [
        format!("/thngs?perPage=2&nextPageToken={token}"),
        format!("/thngs?perPage=1&sortOrder=ASCENDING&nextPageToken={token}"),
        format!("/thngs?perPage=1&filter=name%3D1&nextPageToken={token}"),
        format!("/thngs?nextPageToken={token}"),
        format!("/products?perPage=1&nextPageToken={token}"),
        format!("/thngs?perPage=1&nextPageToken={tampered}"),
        format!("/thngs?perPage=1&nextPageToken={token}A"),
    ] {
        api.get(&wrong).await?.problem(400, 40004);
    }
    // The key of another account.
    let answer = api.call_as(&api.other_key, Method::GET, &url, None).await?;
    answer.problem(400, 40004);
    // The prefix and the place of the key are no part of the query.
    let elsewhere = format!("/v2/thngs?perPage=1&nextPageToken={token}&access_token=x");
    assert_eq!(api.get(&elsewhere).await?.status, 200);
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

pub(super) async fn lists_are_filtered(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_, other_thng) = api.others().await?;
    let product =
        api.create("/products", json!({"name": "shoe", "identifiers": {"gs1:01": "00000000000055"}})).await?;
    let product = product["id"].as_str().context("id")?;
    let a = api
        .create("/thngs", json!({"name": "a", "product": product, "identifiers": {"gs1:10": "1"}}))
        .await?;
    let b = api
        .create("/thngs", json!({"name": "b", "product": product, "identifiers": {"gs1:10": "1"}}))
        .await?;
    let c = api.create("/thngs", json!({"name": "c"})).await?;
    let [a, b, c] = [&a, &b, &c].map(|thng| thng["id"].as_str().unwrap_or_default().to_owned());
    for (uri, expected) in [
        ("/thngs?filter=name%3Db".to_owned(), vec!["b"]),
        ("/thngs?filter=name%253Db".to_owned(), vec!["b"]),
        ("/thngs?filter=name=B".to_owned(), vec![]),
        ("/thngs?filter=identifiers.gs1%3A10%3D1".to_owned(), vec!["b", "a"]),
        ("/thngs?filter=identifiers.gs1%3A10%3D2".to_owned(), vec![]),
        (format!("/thngs?filter=product%3D{product}"), vec!["b", "a"]),
        ("/products?filter=identifiers.gs1%3A01%3D00000055".to_owned(), vec!["shoe"]),
        ("/products?filter=name%3Dshoe".to_owned(), vec!["shoe"]),
        (format!("/thngs?ids={a},{c}"), vec!["c", "a"]),
        (format!("/thngs?ids={a}%2C{c}&sortOrder=ASCENDING"), vec!["a", "c"]),
        (format!("/thngs?ids={a},{a},{other_thng},UKXAGyEf8SQ5eTDmVgGpHqAa"), vec!["a"]),
        (format!("/thngs?ids={a},{b},{c}&filter=identifiers.gs1:10%3D1"), vec!["b", "a"]),
        (format!("/thngs?ids={a},{b},{c}&filter=name%3Dc"), vec!["c"]),
        ("/thngs?unknown=x&perPage=2".to_owned(), vec!["c", "b"]),
        ("/thngs?filter=name%3Da%26name%3Db".to_owned(), vec![]),
        ("/thngs?project=UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned(), vec![]),
    ] {
        let answer = api.get(&uri).await?;
        assert_eq!(names(&answer.json()), expected, "{uri}");
    }
    assert_eq!(walk(&api, &format!("/thngs?ids={a},{b},{c}&perPage=2")).await?, [vec!["c", "b"], vec!["a"]]);
    assert_eq!(walk(&api, "/thngs?filter=identifiers.gs1%3A10%3D1&perPage=1").await?, [["b"], ["a"]]);
    let rows = api.get("/thngs?withScopes=true").await?.json();
    assert_eq!(rows[0]["scopes"], json!({"users": [], "projects": []}));
    let many: Vec<&str> = std::iter::repeat_n(a.as_str(), 101).collect();
    assert_eq!(
        api.get(&format!("/thngs?ids={}", many.join(","))).await?.status,
        200,
        "the same id counts once"
    );
    for wrong in [
        "/products?filter=product%3Dx",
        "/thngs?filter=name%3Da%26color%3Db",
        "/thngs?project=x",
        "/actions/all?filter=name%3Dscans",
    ] {
        api.get(wrong).await?.problem(400, 40003);
    }
    let both = api.get("/thngs?perPage=0&sortOrder=UP&ids=x").await?.problem(400, 40003);
    assert_eq!(both.len(), 3, "{both:?}");
    Ok(())
}

/// The deprecated way: a page by its number, and how many rows there are in all.
pub(super) async fn numbered_lists_count_their_rows(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "of applications"})).await?;
    let applications = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
    for path in ["/projects", "/places", "/collections", "/files", &applications] {
        for index in 0..5 {
            api.create(path, json!({"name": format!("{index}"), "socialNetworks": {}})).await?;
        }
        let total = if path == "/projects" { "6" } else { "5" };
        for (query, expected) in [
            ("perPage=2", vec!["4", "3"]),
            ("perPage=2&page=1", vec!["4", "3"]),
            ("perPage=2&page=2", vec!["2", "1"]),
            ("perPage=2&page=9", vec![]),
        ] {
            let answer = api.get(&format!("{path}?{query}")).await?;
            assert_eq!(names(&answer.json()), expected, "{path} {query}");
            assert_eq!(answer.header("x-result-count"), Some(total), "{path} {query}");
        }
        let second = next(&api.get(&format!("{path}?perPage=2")).await?).context("a next page")?;
        assert!(second.contains("page=2"), "{second}");
        let answer = api.get(&second).await?;
        assert_eq!(names(&answer.json()), ["2", "1"], "{path}");
        assert!(next(&answer).context("a third page")?.contains("page=3"), "{path}");
        for wrong in ["page=0", "page=-1", "page=x", "page=100001"] {
            api.get(&format!("{path}?{wrong}")).await?.problem(400, 40003);
        }
    }
    // The lists without numbers say nothing of their length.
    for path in ["/thngs", "/products", "/actions/all"] {
        assert_eq!(api.get(&format!("{path}?page=1")).await?.header("x-result-count"), None, "{path}");
    }
    Ok(())
}

crate::on_both_engines!(
    pages_cover_the_list_in_order,
    rows_of_one_millisecond_keep_their_order,
    the_next_link_holds_all_parameters,
    inserted_and_deleted_rows_change_no_page,
    a_page_token_is_valid_for_its_query_only,
    lists_are_filtered,
    numbered_lists_count_their_rows,
);
