//! Reprints: which codes, how, and who may; and downloads that continue.

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use printing::{domain::order::Stage, service::purge};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, column, ended, file, finished, manifest, order, serials, steps, with_product};
use crate::http::{Answer, operators::machine};

crate::on_both_engines!(
    codes_are_printed_again_and_nothing_is_made,
    any_serial_is_printed_again,
    sheets_keep_their_places,
    a_reprint_survives_workers_that_die_after_each_step,
    what_cannot_be_printed_again_is_refused,
    two_files_of_one_name_are_refused_before_anything_is_drawn,
    a_download_that_broke_off_continues,
);

fn path_of(order: &Value) -> String {
    format!("/jobs/qr/{}", order["id"].as_str().unwrap_or_default())
}

/// Asks for a reprint; gives its path.
async fn reprint(api: &Api, path: &str, body: Value) -> Result<String> {
    let answer = api.post(&format!("{path}/reprint"), body).await?;
    ensure!(answer.status == 201 && answer.json()["status"] == "waiting", "{answer:?}");
    let made = path_of(&answer.json());
    ensure!(answer.header("location").is_some_and(|location| location.ends_with(&made)), "{answer:?}");
    ensure!(made != path && answer.json()["reprintOf"] == path.rsplit('/').next().unwrap_or_default());
    Ok(made)
}

async fn codes_are_printed_again_and_nothing_is_made(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 30, json!({"prefix": "-A"})), "format": "zpl",
        "layout": {"size": "roll-100x50"}, "hri": {"text": "serial"}});
    let made = finished(&api, body).await?;
    let path = path_of(&made);
    let lines = manifest(&api, &path).await?;
    let ids: Vec<String> = column(&lines, "shortId").into_iter().map(str::to_owned).collect();
    let before = api.fingerprint().await?;
    for (body, expected) in [
        (json!({"from": 5, "to": 7, "name": "Again"}), vec![4, 5, 6]),
        (json!({"from": 1, "to": 30}), (0..30).collect::<Vec<usize>>()),
        // By short id or serial, in the order of the order, each once.
        (json!({"codes": [ids[9], "-A3", ids[2]]}), vec![2, 9]),
    ] {
        let again = reprint(&api, &path, body.clone()).await?;
        let order = ended(&api, &again).await?;
        ensure!(order["status"] == "complete" && order.get("serials").is_none(), "{order}");
        ensure!(order["source"] == made["source"] && order["layout"] == made["layout"], "{order}");
        ensure!(order["progress"]["codes"] == expected.len(), "{order}");
        ensure!(order["name"] == body["name"], "{order}");
        let printed = manifest(&api, &again).await?;
        for name in ["shortId", "serial", "url", "gtin", "version", "moduleMm"] {
            let all = column(&lines, name);
            let wanted: Vec<&str> = expected.iter().map(|at: &usize| all[*at]).collect();
            ensure!(column(&printed, name) == wanted, "{body} {name}: {printed:?}");
        }
        let receipt: Value = serde_json::from_slice(&file(&api, &again, "receipt.json").await?)?;
        ensure!(receipt["reprintOf"] == made["id"] && receipt["decoded"] == expected.len(), "{receipt}");
        // A reprint may be printed again, too; all of it gives the bytes of the first.
        if expected.len() == 30 {
            ensure!(file(&api, &again, "codes.zpl").await? == file(&api, &path, "codes.zpl").await?);
            let third = ended(&api, &reprint(&api, &again, json!({"from": 2, "to": 2})).await?).await?;
            ensure!(third["status"] == "complete" && third["reprintOf"] == order["id"], "{third}");
        }
    }
    let after = api.fingerprint().await?;
    for table in ["thngs", "redirections", "print_serials"] {
        ensure!(after[table] == before[table], "{table} changed");
    }
    ensure!(after["print_codes"].is_empty() && after["print_chunks"].is_empty());
    Ok(())
}

/// Serials of Things that no order made may have line breaks, quotes, and spaces at their ends.
async fn any_serial_is_printed_again(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut thngs = Vec::new();
    for serial in ["two\r\nlines, \"A\"\n", " '=1 ", "'=1", "-1"] {
        let thng = api.create("/thngs", json!({"name": "t", "identifiers": {"gs1:21": serial}})).await?["id"]
            .clone();
        let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"});
        ensure!(api.post("/redirections", link).await?.status.is_success());
        thngs.push(thng);
    }
    let body = json!({"source": {"list": {"thngs": thngs}}, "format": "zpl", "waitForEdges": "none"});
    let path = path_of(&finished(&api, body).await?);
    let text = String::from_utf8(file(&api, &path, "manifest.csv").await?)?;
    ensure!(text.contains("two\r\nlines") && text.contains(",''=1,") && text.contains(",'-1,"), "{text}");
    // By places and by serials, the manifest is the same.
    for body in
        [json!({"from": 1, "to": 4}), json!({"codes": ["-1", "'=1", " '=1 ", "two\r\nlines, \"A\"\n"]})]
    {
        let again = reprint(&api, &path, body.clone()).await?;
        let order = ended(&api, &again).await?;
        ensure!(order["status"] == "complete", "{body}: {order}");
        let found = String::from_utf8(file(&api, &again, "manifest.csv").await?)?;
        ensure!(found == text, "{body}: {found}");
    }
    Ok(())
}

async fn sheets_keep_their_places(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 50, json!({})), "format": "pdf-sheets",
        "layout": {"size": "a4-63.5x38.1", "start": 3}});
    let path = path_of(&finished(&api, body).await?);
    let lines = manifest(&api, &path).await?;
    let rows_of = |sheet: &str| -> Vec<(String, String, String)> {
        let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let of_sheet = lines.iter().filter(|line| line["page"] == sheet);
        of_sheet.map(|line| (text(line, "serial"), text(line, "row"), text(line, "column"))).collect()
    };
    for (sheets, start, expected) in
        [(json!([2]), 1, rows_of("2")), (json!([3, 1]), 3, [rows_of("1"), rows_of("3")].concat())]
    {
        let again = reprint(&api, &path, json!({"sheets": sheets})).await?;
        let order = ended(&api, &again).await?;
        ensure!(order["status"] == "complete" && order["layout"]["start"] == start, "{order}");
        let printed = manifest(&api, &again).await?;
        let found: Vec<(&str, &str, &str)> = printed
            .iter()
            .filter_map(|line| {
                Some((line["serial"].as_str()?, line["row"].as_str()?, line["column"].as_str()?))
            })
            .collect();
        let wanted: Vec<(&str, &str, &str)> =
            expected.iter().map(|(serial, row, column)| (&**serial, &**row, &**column)).collect();
        ensure!(found == wanted && found.len() > 10, "{found:?}");
    }
    // On a sheet that was begun.
    let again = reprint(&api, &path, json!({"codes": ["7"], "start": 21})).await?;
    ensure!(ended(&api, &again).await?["status"] == "complete");
    let printed = manifest(&api, &again).await?;
    ensure!((&printed[0]["row"], &printed[0]["column"]) == (&json!("7"), &json!("3")), "{printed:?}");
    Ok(())
}

async fn a_reprint_survives_workers_that_die_after_each_step(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 40, json!({})), "format": "pdf-pages"});
    let path = path_of(&finished(&api, body).await?);
    let again = reprint(&api, &path, json!({"from": 11, "to": 40})).await?;
    let mut count = 0;
    while steps::step(&api).await?.is_some() {
        count += 1;
        ensure!(count < 100, "{}", api.get(&again).await?.json());
    }
    let order = api.get(&again).await?.json();
    ensure!(order["status"] == "complete" && count >= 6, "{count}: {order}");
    let lines = manifest(&api, &again).await?;
    let expected: Vec<String> = (11..=40).map(|n| n.to_string()).collect();
    ensure!(column(&lines, "serial") == expected, "{lines:?}");
    ensure!(api.fingerprint().await?["thngs"].len() == 40);
    Ok(())
}

async fn what_cannot_be_printed_again_is_refused(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 3, json!({})), "format": "zpl", "waitForEdges": "none"});
    let open = order(&api, body).await?;
    let all = json!({"from": 1, "to": 3});
    let ask = async |path: &str, body: &Value| -> Result<Answer> {
        api.post(&format!("{path}/reprint"), body.clone()).await
    };
    ask(&open, &all).await?.problem(409, 40901);
    let made = ended(&api, &open).await?;
    let path = path_of(&made);
    let before = api.fingerprint().await?;
    for (body, part) in [
        (json!({}), "exactly one of"),
        (json!({"from": 1, "to": 4}), "to must be at most 3"),
        (json!({"sheets": [1]}), "sheets is for orders"),
        (json!({"codes": ["x"], "colour": "red"}), "colour"),
    ] {
        let faults = ask(&path, &body).await?.problem(400, 40001);
        ensure!(faults[0].contains(part), "{body}: {faults:?}");
    }
    let theirs =
        api.call_as(&api.other_key, Method::POST, &format!("{path}/reprint"), Some(all.clone())).await?;
    theirs.problem(404, 40401);
    ask("/jobs/qr/UKXAGyEf8SQ5eTDmVgGpHqAa", &all).await?.problem(404, 40401);
    ensure!(api.fingerprint().await? == before, "a refusal changed something");
    // A press prints again what was ordered.
    let (_, printer) = machine(&api, "printer", json!({})).await?;
    let again = api
        .call_as(&printer, Method::POST, &format!("{path}/reprint"), Some(all.clone()))
        .await?
        .must_be(201)?;
    let again = path_of(&again.json());
    ensure!(ended(&api, &again).await?["status"] == "complete");
    // Codes that it does not have are found when its manifest is read.
    let failed = reprint(&api, &path, json!({"codes": ["2", "NOTHING", "4"]})).await?;
    let failed = ended(&api, &failed).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed", "{failed}");
    ensure!(message.contains("codes[1]: NOTHING") && message.contains("codes[2]: 4"), "{message}");
    // The manifest goes with the files.
    let late = reprint(&api, &path, all.clone()).await?;
    let left_ms = made["filesUntil"].as_i64().context("until")? - api.made.app.core.clock.now().0;
    api.made.clock.advance(left_ms);
    ensure!(purge::expire(&api.made.app.printing).await? >= 1);
    let faults = ask(&path, &all).await?.problem(409, 40901);
    ensure!(faults[0].contains("cannot be printed again"), "{faults:?}");
    ensure!(ended(&api, &late).await?["status"] == "failed");
    Ok(())
}

async fn two_files_of_one_name_are_refused_before_anything_is_drawn(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    finished(&api, json!({"source": serials(&product, 2, json!({})), "format": "zpl"})).await?;
    let links = api.get(&format!("/redirections?filter=product={product}")).await?.json();
    let (one, two) = (links[0]["shortId"].clone(), links[1]["shortId"].clone());
    let body = |naming: &str, source: Value| json!({"source": source, "format": "png", "naming": naming});
    let list = json!({"list": {"shortIds": [one, two, one]}});
    let refused = body("{shortId}", list.clone());
    let faults = api.post("/jobs/qr", refused).await?.problem(400, 40001);
    ensure!(faults.len() == 1 && faults[0].contains("the codes 1 and 3"), "{faults:?}");
    ensure!(finished(&api, body("{shortId}_{index}", list)).await?["status"] == "complete");
    // Of a file they are found before the first chunk.
    let text = format!("shortId\n{}\n{}\n", one.as_str().context("id")?, one.as_str().context("id")?);
    let location = crate::http::jobs::file(&api, text.as_bytes()).await?;
    let source = json!({"file": {"location": location, "format": "CSV"}});
    let path = order(&api, body("{shortId}", source)).await?;
    steps::step_to(&api, &path, Stage::Render).await?;
    let failed = ended(&api, &path).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed" && message.contains("the codes 1 and 2"), "{failed}");
    ensure!(failed["progress"]["rendered"] == 0, "{failed}");
    Ok(())
}

async fn a_download_that_broke_off_continues(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let made = finished(&api, json!({"source": serials(&product, 5, json!({})), "format": "zpl"})).await?;
    let uri = format!("{}/files/codes.zpl", path_of(&made));
    let whole = api.get(&uri).await?;
    let etag = whole.header("etag").context("etag")?;
    let size = whole.bytes.len();
    ensure!(whole.header("accept-ranges") == Some("bytes") && size > 500, "{whole:?}");
    let ask = async |method: Method, headers: &[(header::HeaderName, &str)]| -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(&uri)
            .header(header::HOST, "api.example:8080")
            .header(header::AUTHORIZATION, &api.key);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        api.send(request.body(Body::empty())?).await
    };
    for (range, from, to) in [("bytes=0-99", 0, 100), ("bytes=100-", 100, size), ("bytes=-7", size - 7, size)]
    {
        let part = ask(Method::GET, &[(header::RANGE, range), (header::IF_RANGE, etag)]).await?;
        ensure!(part.status == 206 && part.bytes == whole.bytes[from..to], "{range}: {}", part.status);
        let expected = format!("bytes {from}-{}/{size}", to - 1);
        ensure!(part.header("content-range") == Some(expected.as_str()), "{part:?}");
        ensure!(part.header("content-length") == Some((to - from).to_string().as_str()), "{part:?}");
        ensure!(part.header("etag") == Some(etag), "{part:?}");
    }
    // Another file, several ranges: all of it.
    for headers in [
        [(header::RANGE, "bytes=5-"), (header::IF_RANGE, "\"other\"")].as_slice(),
        [(header::RANGE, "bytes=0-1,4-5")].as_slice(),
        [(header::RANGE, "pages=1-2")].as_slice(),
    ] {
        let all = ask(Method::GET, headers).await?;
        ensure!(all.status == 200 && all.bytes == whole.bytes, "{headers:?}: {}", all.status);
    }
    // So does an If-Range that is no text.
    let request = Request::builder()
        .uri(&uri)
        .header(header::HOST, "api.example:8080")
        .header(header::AUTHORIZATION, &api.key)
        .header(header::RANGE, "bytes=5-")
        .header(header::IF_RANGE, b"\"\xe9\"".as_slice());
    let all = api.send(request.body(Body::empty())?).await?;
    ensure!(all.status == 200 && all.bytes == whole.bytes, "{}", all.status);
    let known = ask(Method::GET, &[(header::RANGE, "bytes=0-1"), (header::IF_NONE_MATCH, etag)]).await?;
    ensure!(known.status == 304 && known.bytes.is_empty(), "{known:?}");
    let range = format!("bytes={size}-");
    let behind = ask(Method::GET, &[(header::RANGE, range.as_str())]).await?;
    let expected = format!("bytes */{size}");
    ensure!(behind.header("content-range") == Some(expected.as_str()), "{behind:?}");
    behind.problem(416, 41601);
    let head = ask(Method::HEAD, &[(header::RANGE, "bytes=0-1")]).await?;
    ensure!(head.status == 200 && head.bytes.is_empty(), "{head:?}");
    Ok(())
}
