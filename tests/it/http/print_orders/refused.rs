//! What is refused, to whom, and what is left of it.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use printing::{domain::order::Stage, service::purge};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, ended, ends::blobs, finished, order, serials, steps, with_product, work_all};
use crate::http::operators::machine;

crate::on_both_engines!(
    a_quota_refuses_an_order_before_anything_is_made,
    printers_order_what_is_there_and_make_nothing,
    another_account_sees_nothing,
    every_fault_of_an_order_is_named,
    serials_that_items_have_are_refused,
    what_cannot_be_drawn_is_refused_before_anything_is_made,
    files_count_for_the_quota_of_stored_bytes,
    chunks_count_for_it_while_they_are_drawn,
);

/// The rows that an order leaves.
async fn rows(api: &Api) -> Result<Vec<usize>> {
    let tables = api.fingerprint().await?;
    let names = ["thngs", "redirections", "print_orders", "print_codes", "print_serials"];
    names.iter().map(|name| tables.get(*name).map(Vec::len).with_context(|| (*name).to_owned())).collect()
}

async fn a_quota_refuses_an_order_before_anything_is_made(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let quotas = format!("/platform/accounts/{}/quotas", api.made.account);
    for (quota, name) in
        [(json!({"things": 9, "links": 100}), "things"), (json!({"things": 100, "links": 9}), "links")]
    {
        api.call_as(&api.platform_key, Method::PUT, &quotas, Some(quota)).await?.must_be(200)?;
        let before = rows(&api).await?;
        let body = json!({"source": serials(&product, 10, json!({})), "format": "zpl"});
        let faults = api.post("/jobs/qr", body).await?.problem(403, 40304);
        ensure!(faults[0].contains(&format!("quota {name} ")) && faults[0].contains("10 more"), "{faults:?}");
        ensure!(rows(&api).await? == before, "something was made");
    }
    let fits = json!({"source": serials(&product, 9, json!({})), "format": "zpl"});
    ensure!(finished(&api, fits).await?["status"] == "complete");

    // Of two that were accepted side by side the second one fails where the room ends; what it made stays.
    let room = json!({"things": 49, "links": 49});
    api.call_as(&api.platform_key, Method::PUT, &quotas, Some(room)).await?;
    let both = json!({"source": serials(&product, 30, json!({})), "format": "zpl"});
    let (one, two) = (order(&api, both.clone()).await?, order(&api, both).await?);
    ensure!(ended(&api, &one).await?["status"] == "complete");
    let failed = ended(&api, &two).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed" && message.contains("quota"), "{failed}");
    let tables = api.fingerprint().await?;
    ensure!(tables["print_codes"].is_empty() && tables["print_chunks"].is_empty(), "{tables:?}");
    Ok(())
}

async fn printers_order_what_is_there_and_make_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let made = finished(&api, json!({"source": serials(&product, 3, json!({})), "format": "zpl"})).await?;
    let made = format!("/jobs/qr/{}", made["id"].as_str().context("id")?);
    let (_, printer) = machine(&api, "printer", json!({})).await?;
    let call = async |method: Method, path: &str, body: Option<Value>| {
        api.call_as(&printer, method, path, body).await
    };
    let before = rows(&api).await?;
    let new = json!({"source": serials(&product, 3, json!({})), "format": "zpl"});
    call(Method::POST, "/jobs/qr", Some(new)).await?.problem(403, 40301);
    for (method, path) in [(Method::DELETE, made.clone()), (Method::POST, format!("{made}/cancel"))] {
        call(method, &path, None).await?.problem(403, 40301);
    }
    ensure!(rows(&api).await? == before, "a refusal changed something");
    let body = json!({"source": {"filter": format!("product={product}")}, "format": "svg"});
    let ordered = call(Method::POST, "/jobs/qr", Some(body)).await?;
    ensure!(ordered.status == 201, "{ordered:?}");
    let path = format!("/jobs/qr/{}", ordered.json()["id"].as_str().context("id")?);
    ensure!(ended(&api, &path).await?["progress"]["rendered"] == 3);
    for path in
        [path.clone(), format!("{path}/files"), format!("{made}/files/codes.zpl"), "/jobs/qr".to_owned()]
    {
        ensure!(call(Method::GET, &path, None).await?.status == 200, "{path}");
    }
    // A role that reads orders without redirections orders none.
    let policy = json!({"name": "reads", "permissions": ["printOrders:create,read,list"]});
    let policy = api.create("/accessPolicies", policy).await?["id"].clone();
    let token = api.create("/accessTokens", json!({"name": "reads", "policies": [policy]})).await?;
    let key = token["apiKey"].as_str().context("key")?;
    let body = json!({"source": {"filter": format!("product={product}")}, "format": "svg"});
    api.call_as(key, Method::POST, "/jobs/qr", Some(body)).await?.problem(403, 40301);
    Ok(())
}

async fn another_account_sees_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let made = finished(&api, json!({"source": serials(&product, 2, json!({})), "format": "zpl"})).await?;
    let path = format!("/jobs/qr/{}", made["id"].as_str().context("id")?);
    let theirs = async |method: Method, path: &str, body: Option<Value>| {
        api.call_as(&api.other_key, method, path, body).await
    };
    let before = rows(&api).await?;
    for (method, end) in [
        (Method::GET, ""),
        (Method::GET, "/files"),
        (Method::GET, "/files/codes.zpl"),
        (Method::POST, "/cancel"),
        (Method::DELETE, ""),
    ] {
        theirs(method, &format!("{path}{end}"), None).await?.problem(404, 40401);
    }
    ensure!(theirs(Method::GET, "/jobs/qr", None).await?.json() == json!([]));
    let links = api.get(&format!("/redirections?filter=product={product}")).await?.json();
    for source in [
        json!({"list": {"thngs": [links[0]["platformId"]]}}),
        json!({"list": {"shortIds": [links[0]["shortId"]]}}),
        json!({"list": {"shortIds": [links[0]["shortId"]], "shortDomain": "tn.gg"}}),
        json!({"filter": format!("product={product}")}),
        serials(&product, 1, json!({})),
    ] {
        let body = json!({"source": source, "format": "zpl"});
        theirs(Method::POST, "/jobs/qr", Some(body)).await?.problem(400, 40001);
    }
    ensure!(rows(&api).await? == before, "another account changed something");
    ensure!(api.get(&path).await?.status == 200);
    Ok(())
}

async fn every_fault_of_an_order_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].clone();
    let link = json!({"platformId": thng, "defaultRedirectUrl": "https://e.com", "shortId": "PLAIN"});
    ensure!(api.post("/redirections", link).await?.status.is_success());
    let unknown = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    let before = rows(&api).await?;
    for (body, parts) in [
        (json!({}), vec!["source is required", "format"]),
        (
            json!({"source": {"filter": "colour=red"}, "format": "cuneiform", "waitForEdges": 1, "colour": "red"}),
            vec!["source.filter", "format", "waitForEdges", "colour"],
        ),
        (json!({"source": {"filter": "shortId=NOTHING"}, "format": "zpl"}), vec!["finds no redirection"]),
        (
            json!({"source": {"list": {"shortIds": ["PLAIN", "X-1", "X-2"]}}, "format": "zpl"}),
            vec!["shortIds[1]", "shortIds[2]"],
        ),
        (json!({"source": {"list": {"thngs": [thng, unknown]}}, "format": "zpl"}), vec!["thngs[1]"]),
        (
            json!({"source": {"list": {"shortIds": ["PLAIN"]}}, "format": "zpl", "hri": {"text": "serial"}}),
            vec!["PLAIN has no serial"],
        ),
        (json!({"source": serials(unknown, 1, json!({})), "format": "zpl"}), vec!["was not found"]),
        (
            json!({"source": serials(unknown, 1, json!({"shortDomain": "other.gg"})), "format": "zpl"}),
            vec!["other.gg is not a short domain"],
        ),
    ] {
        let faults = api.post("/jobs/qr", body.clone()).await?.problem(400, 40001);
        for part in parts {
            ensure!(faults.iter().any(|fault| fault.contains(part)), "{body}: {part} is not in {faults:?}");
        }
    }
    ensure!(rows(&api).await? == before, "a refusal changed something");
    Ok(())
}

async fn serials_that_items_have_are_refused(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let thng = json!({"name": "t", "product": product, "identifiers": {"gs1:21": "1200"}});
    api.create("/thngs", thng).await?;
    let body = |start: u64, count: u64| json!({"source": serials(&product, count, json!({"start": start})), "format": "zpl", "waitForEdges": "none"});
    // Among the first, and the last one.
    for body in [body(1_190, 20), body(100, 1_101)] {
        let faults = api.post("/jobs/qr", body).await?.problem(409, 40901);
        ensure!(faults[0].contains("1200"), "{faults:?}");
    }
    ensure!(rows(&api).await?[4] == 0, "numbers of a refused order stay free");
    // In the middle it is found where it is made: the order fails and says which.
    let failed = finished(&api, body(195, 1_010)).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed" && message.contains("1200"), "{failed}");
    Ok(())
}

async fn what_cannot_be_drawn_is_refused_before_anything_is_made(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    finished(&api, json!({"source": serials(&product, 1, json!({})), "format": "zpl"})).await?;
    let links = api.get(&format!("/redirections?filter=product={product}")).await?.json();
    let before = rows(&api).await?;
    for source in [
        serials(&product, 3, json!({})),
        serials(&product, 3, json!({"form": "random"})),
        json!({"list": {"thngs": [links[0]["platformId"]]}}),
        json!({"filter": format!("product={product}")}),
    ] {
        let body =
            json!({"source": source, "format": "zpl", "layout": {"labelWidthMm": 5, "labelHeightMm": 5}});
        let faults = api.post("/jobs/qr", body).await?.problem(422, 42201);
        ensure!(faults[0].contains("below 0.25 mm"), "{faults:?}");
    }
    ensure!(rows(&api).await? == before, "a refusal changed something");
    Ok(())
}

async fn files_count_for_the_quota_of_stored_bytes(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl", "waitForEdges": "none"});
    // Sets the limit; gives what is used.
    let set = async |limit: u64| -> Result<u64> {
        let path = format!("/platform/accounts/{}/quotas", api.made.account);
        let limits = json!({"storageBytes": limit});
        let set = api.call_as(&api.platform_key, Method::PUT, &path, Some(limits)).await?.must_be(200)?;
        set.json()["storageBytes"]["used"].as_u64().context("used")
    };
    let first = finished(&api, body.clone()).await?;
    let path = format!("/jobs/qr/{}", first["id"].as_str().context("id")?);
    let files = api.get(&format!("{path}/files")).await?.json();
    let sizes = files.as_array().context("files")?.iter().filter_map(|file| file["sizeBytes"].as_u64());
    let bytes: u64 = sizes.sum();
    ensure!(bytes > 100 && set(bytes + 1).await? == bytes, "the first count finds the files: {files}");

    // There is room, but not for these.
    let failed = finished(&api, body.clone()).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed" && message.contains("quota storageBytes"), "{failed}");
    ensure!(set(bytes).await? == bytes && blobs(&api)?.len() == 3, "{:?}", blobs(&api)?);
    let faults = api.post("/jobs/qr", body.clone()).await?.problem(403, 40304);
    ensure!(faults[0].contains("quota storageBytes"), "{faults:?}");

    ensure!(api.delete(&path).await?.status == 200);
    ensure!(set(10 * bytes).await? == 0, "a removed order gives its bytes back");
    let again = finished(&api, body).await?;
    ensure!(again["status"] == "complete" && set(10 * bytes).await? > 100, "{again}");
    let left_ms = again["filesUntil"].as_i64().context("until")? - api.made.app.core.clock.now().0;
    api.made.clock.advance(left_ms);
    ensure!(purge::expire(&api.made.app.printing).await? == 1 && set(bytes).await? == 0);
    let path = format!("/jobs/qr/{}", again["id"].as_str().context("id")?);
    ensure!(api.delete(&path).await?.status == 200);
    ensure!(set(bytes).await? == 0, "bytes are given back once");
    Ok(())
}

async fn chunks_count_for_it_while_they_are_drawn(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 5, json!({})), "format": "zpl", "waitForEdges": "none"});
    let set = async |limit: u64| -> Result<u64> {
        let path = format!("/platform/accounts/{}/quotas", api.made.account);
        let limits = json!({"storageBytes": limit});
        let set = api.call_as(&api.platform_key, Method::PUT, &path, Some(limits)).await?.must_be(200)?;
        set.json()["storageBytes"]["used"].as_u64().context("used")
    };
    let on_disk = || -> Result<u64> {
        let folder = api.made.db.files().join(api.made.account.as_str());
        blobs(&api)?
            .into_iter()
            .map(|name| -> Result<u64> { Ok(std::fs::metadata(folder.join(name))?.len()) })
            .sum()
    };
    // The first count finds chunks; what is drawn later is counted as it is drawn.
    let path = order(&api, body.clone()).await?;
    steps::step_to(&api, &path, Stage::Publish).await?;
    let one = on_disk()?;
    ensure!(one > 100 && set(1 << 30).await? == one, "{one}");
    ensure!(ended(&api, &path).await?["status"] == "complete");
    let files = on_disk()?;
    ensure!(set(1 << 30).await? == files, "the files take the place of the chunks");
    let other = order(&api, body.clone()).await?;
    steps::step_to(&api, &other, Stage::Publish).await?;
    ensure!(on_disk()? > files && set(1 << 30).await? == on_disk()?);
    ensure!(api.call(Method::POST, &format!("{other}/cancel"), None).await?.status == 202);
    work_all(&api).await?;
    ensure!(on_disk()? == files && set(1 << 30).await? == files, "a cancelled order gives its bytes back");

    // A limit below a chunk: the order fails where it is drawn, and leaves none.
    ensure!(set(files + 10).await? == files);
    let failed = finished(&api, body).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed" && message.contains("quota storageBytes"), "{failed}");
    ensure!(failed["progress"]["rendered"] == 0, "{failed}");
    work_all(&api).await?;
    ensure!(on_disk()? == files && set(1 << 30).await? == files);
    Ok(())
}
