//! Photos of reports: only the picture is kept, under the storage of the account, for whoever may read personal data; it goes with its
//! report.

use anyhow::{Context, Result, ensure};
use assessment::{
    domain::{
        photo::{MAX_FORM_BYTES, MAX_OF_DAY_BYTES, PhotoType, StoredPhoto},
        report::FinderReport,
    },
    store::{report_photos, reports},
};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use catalog::{service::files::purge, store::files};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{
    id::{CaseId, ReportId, ThngId},
    time::UnixMillis,
};
use tests::db::{Engine, random16};

use super::{
    Answer, Api,
    authentication::{BERN, id, trigger},
    operators::machine,
    reports::{send, token},
};

crate::on_both_engines!(an_account_takes_so_many_bytes_of_photos_a_day);

const NAMED: &str = "attachment; filename=\"report-";

/// A PNG of 2 x 3 pixels; one as it is sent says also where it was taken.
fn png(as_sent: bool) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap();
        [&length.to_be_bytes()[..], kind, data, &[0; 4]].concat()
    };
    let place = if as_sent { chunk(b"tEXt", b"Place\0at 48.8584 N") } else { Vec::new() };
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0]),
        place,
        chunk(b"IDAT", &[7; 50]),
        chunk(b"IEND", &[]),
    ]
    .concat()
}

/// Sends a form as browsers do.
async fn send_form(api: &Api, fields: &[(&str, &[u8])]) -> Result<Answer> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\r\n");
        body.extend([head.as_bytes(), *value, b"\r\n"].concat());
    }
    body.extend(b"--x--\r\n");
    let request = Request::post("/redirections/COPY/reports")
        .header(header::HOST, "tn.gg")
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
        .body(Body::from(body))?;
    api.send(request).await
}

/// An API with an item that may be a copy; gives its Thng.
async fn suspected(engine: Engine) -> Result<(Api, String)> {
    let api = Api::new(engine).await?;
    let thng = id(&api.create("/thngs", json!({"name": "Bag"})).await?);
    let link = json!([{"platformId": thng, "shortId": "COPY", "defaultRedirectUrl": "https://example.com/"}]);
    ensure!(api.post("/redirections", link).await?.status.is_success());
    ensure!(api.post("/authentication", trigger(Some(&thng), BERN)).await?.status == 200);
    Ok((api, thng))
}

async fn takes_photo(api: &Api) -> Result<bool> {
    Ok(send(api, "tn.gg", "COPY", json!({})).await?.json()["takesPhoto"] == true)
}

async fn find_case(api: &Api, thng: &str) -> Result<String> {
    let listed = api.get(&format!("/authentication/cases?filter=thng={thng}%26kind=counterfeit")).await?;
    Ok(id(&listed.json()[0]))
}

#[tokio::test]
async fn the_picture_of_a_photo_comes_with_its_report() -> Result<()> {
    let (api, thng) = suspected(Engine::Sqlite).await?;
    let pages = format!("/accounts/{}/pages", api.made.account);
    let put = async |body: Value| {
        api.put(&pages, body).await?.must_be(200)?;
        anyhow::Ok(())
    };
    put(json!({"copies": "suspected", "reports": true})).await?;
    let sent = token(&api).await?;
    let sent = sent.as_str().context("token")?;
    let photo = png(true);
    let fields: [(&str, &[u8]); 4] =
        [("token", sent.as_bytes()), ("text", b" In a\r\nshop."), ("mail", b""), ("photo", photo.as_slice())];
    let faults = send_form(&api, &fields).await?.problem(400, 40001);
    ensure!(faults == ["photo: the account takes none; leave it out."], "{faults:?}");
    put(json!({"copies": "suspected", "reports": true, "photos": true})).await?;
    ensure!(takes_photo(&api).await?);

    let wrong: [(&str, &[u8]); 4] = [("photo", b"<svg/>"), ("x", b"y"), ("text", b"a"), ("text", b"b")];
    let faults = send_form(&api, &wrong).await?.problem(400, 40001);
    for part in ["photo must be a JPEG", "\"x\" is not known", "text must come once", "token is required"] {
        ensure!(faults.iter().any(|fault| fault.starts_with(part)), "{part}: {faults:?}");
    }
    ensure!(faults.len() == 4, "{faults:?}");
    send_form(&api, &[("photo", vec![0_u8; MAX_FORM_BYTES].as_slice())]).await?.problem(413, 41301);
    send_form(&api, &[("photo", photo.as_slice())]).await?.problem(400, 40001);

    // The same form once more is the same report, and the same photo.
    let blobs = || {
        let folder = api.made.db.files().join(api.made.account.as_str());
        anyhow::Ok(if folder.exists() { std::fs::read_dir(folder)?.count() } else { 0 })
    };
    ensure!(blobs()? == 0, "what is refused is not kept");
    for _ in 0..2 {
        let received = send_form(&api, &fields).await?;
        ensure!(received.status == 200 && received.json() == json!({"report": "received"}), "{received:?}");
    }
    ensure!(blobs()? == 1);
    let case = format!("/authentication/cases/{}", find_case(&api, &thng).await?);
    let read = api.get(&case).await?.json();
    let report = &read["reports"][0];
    ensure!(report["text"] == "In a\nshop." && report["hasPhoto"] == true, "{read}");
    let uri = format!("{case}/reports/{}/photo", id(report));
    let answer = api.get(&uri).await?;
    ensure!(answer.status == 200 && answer.bytes == png(false), "{answer:?}");
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cache-control", "private, no-store"),
    ] {
        ensure!(answer.header(name) == Some(value), "{name}: {answer:?}");
    }
    let named = answer.header("content-disposition");
    ensure!(named.is_some_and(|name| name.starts_with(NAMED) && name.ends_with(".png\"")), "{answer:?}");
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    for (key, status) in [(&viewer, 403), (&api.other_key, 404)] {
        ensure!(api.call_as(key, Method::GET, &uri, None).await?.status == status, "{status}");
    }
    let other = format!("{case}/reports/UKXAGyEf8SQ5eTDmVgGpHqAa/photo");
    api.get(&other).await?.problem(404, 40401);

    // It takes storage, also of a count, and half of a limit is for files of the account: that has no room for a whole form.
    let quotas = format!("/platform/accounts/{}/quotas", api.made.account);
    let limit = json!({"storageBytes": 8 << 20});
    let limited = api.call_as(&api.platform_key, Method::PUT, &quotas, Some(limit)).await?;
    ensure!(limited.json()["storageBytes"]["used"] == png(false).len(), "{limited:?}");
    ensure!(!takes_photo(&api).await?);
    let now = api.made.app.core.clock.now();
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    reports::delete_before(&mut tx, api.made.account, UnixMillis(now.0 + 1)).await?;
    tx.commit().await?;
    let left = api.get(&format!("/accounts/{}/quotas", api.made.account)).await?.json();
    ensure!(left["storageBytes"]["used"] == 0, "{left}");
    api.get(&uri).await?.problem(404, 40401);
    ensure!(purge(&api.made.app.catalog).await? == 1 && blobs()? == 0);
    Ok(())
}

async fn an_account_takes_so_many_bytes_of_photos_a_day(engine: Engine) -> Result<()> {
    let (api, thng) = suspected(engine).await?;
    let pages = format!("/accounts/{}/pages", api.made.account);
    let body = json!({"copies": "suspected", "reports": true, "photos": true});
    ensure!(api.put(&pages, body).await?.status == 200);
    let of: (CaseId, ThngId) = (find_case(&api, &thng).await?.parse()?, thng.parse()?);
    let (account, db) = (api.made.account, &api.made.app.core.db);
    let add = async |n: i64, size_bytes: u64| {
        let report = FinderReport {
            id: ReportId::new(n, random16()?),
            short_url: "https://tn.gg/COPY".to_owned(),
            text: "x".to_owned(),
            mail: None,
            has_photo: true,
            created_at: api.made.app.core.clock.now(),
        };
        let photo = StoredPhoto { blob: format!("{account}/{n}"), kind: PhotoType::Png, size_bytes };
        let mut tx = db.begin(&Ctx::default()).await?;
        reports::insert(&mut tx, account, of, &report).await?;
        report_photos::insert(&mut tx, account, report.id, &photo).await?;
        anyhow::Ok(tx.commit().await?)
    };
    add(1, MAX_OF_DAY_BYTES - 1).await?;
    ensure!(takes_photo(&api).await?, "{engine:?}: the last byte is left");
    let (sent, photo) = (token(&api).await?, png(true));
    add(2, 1).await?;
    ensure!(!takes_photo(&api).await?, "{engine:?}");
    // A form from before is refused with a photo, and taken without.
    let sent = sent.as_str().context("token")?;
    let fields: [(&str, &[u8]); 3] =
        [("token", sent.as_bytes()), ("text", b"In a shop."), ("photo", photo.as_slice())];
    let faults = send_form(&api, &fields).await?.problem(400, 40001);
    ensure!(faults == ["photo: the account takes none; leave it out."], "{faults:?}");
    ensure!(send_form(&api, &fields[..2]).await?.status == 200);

    // A day later there is room again, while they are still kept.
    api.made.clock.advance(24 * 60 * 60 * 1_000);
    ensure!(takes_photo(&api).await?, "{engine:?}: a day has passed");
    add(3, 5).await?;
    let now = api.made.app.core.clock.now();
    let mut tx = db.begin(&Ctx::default()).await?;
    reports::delete_before(&mut tx, account, UnixMillis(now.0 - 60_000)).await?;
    tx.commit().await?;
    let mut garbage = files::list_garbage(&mut db.read().await?, now, 10).await?;
    garbage.sort_unstable();
    ensure!(garbage == [format!("{account}/1"), format!("{account}/2")], "{garbage:?}");
    ensure!(report_photos::sum_since(&mut db.read().await?, account, UnixMillis(0)).await? == 5);
    Ok(())
}
