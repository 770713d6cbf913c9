//! Reports of finders: by the token of a form they come to the case of the item, within limits, and go with it.

use anyhow::{Result, ensure};
use assessment::{
    domain::report::{FinderReport, MAX_OF_ITEM},
    store::reports,
};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{
    id::{CaseId, ReportId, ThngId},
    time::UnixMillis,
};
use tests::{
    db::{Engine, random16},
    json::text,
};

use super::{
    Answer, Api,
    authentication::{BERN, id, trigger},
    operator_bounds::with_permissions,
    operators::{machine, project},
    platform::{platform_key, resume, suspend},
};

crate::on_both_engines!(a_report_comes_to_the_case_of_its_item);

/// Sends what an edge sends for a finder: without a key, to the short domain.
pub(super) async fn send(api: &Api, host: &str, short_id: &str, body: Value) -> Result<Answer> {
    let request = Request::post(format!("/redirections/{short_id}/reports"))
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))?;
    api.send(request).await
}

pub(super) async fn token(api: &Api) -> Result<Value> {
    let form = send(api, "tn.gg", "COPY", json!({})).await?;
    ensure!(form.status == 200 && form.json()["report"] == "form", "{form:?}");
    Ok(form.json()["token"].clone())
}

async fn a_report_comes_to_the_case_of_its_item(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = project(&api).await?;
    let thng = id(&api.create(&format!("/thngs?project={project}"), json!({"name": "Bag"})).await?);
    for (short_id, platform) in
        [("COPY", &thng), ("FINE", &id(&api.create("/thngs", json!({"name": "x"})).await?))]
    {
        let link = json!([{"platformId": platform, "shortId": short_id, "defaultRedirectUrl": "https://example.com/"}]);
        let made = api.post("/redirections", link).await?.json();
        ensure!(made[0]["shortId"] == short_id, "{made}");
    }
    // It was never commissioned: that opens a case.
    api.post("/authentication", trigger(Some(&thng), BERN)).await?.must_be(200)?;
    let put = async |uri: String, body: Value| {
        api.put(&uri, body).await?.must_be(200)?;
        anyhow::Ok(())
    };
    let pages = format!("/accounts/{}/pages", api.made.account);
    put(pages.clone(), json!({"copies": "suspected"})).await?;
    send(&api, "tn.gg", "COPY", json!({})).await?.problem(404, 40401);
    put(pages, json!({"copies": "suspected", "reports": true})).await?;

    // Whatever is not to be reported has one answer.
    for (host, short_id) in
        [("tn.gg", "NONE"), ("tn.gg", "FINE"), ("other.gg", "COPY"), ("x.gg", "COPY"), ("tn.gg", "%00")]
    {
        let faults = send(&api, host, short_id, json!({})).await?.problem(404, 40401);
        ensure!(
            faults[0].starts_with("The item to report ") && faults.len() == 1,
            "{host} {short_id}: {faults:?}"
        );
    }
    let before = api.fingerprint().await?;
    let sent = token(&api).await?;
    let faults =
        send(&api, "tn.gg", "COPY", json!({"token": "1.2.3", "text": "x"})).await?.problem(400, 40001);
    ensure!(faults == ["token is not of a form of this item, or older than an hour."], "{faults:?}");
    send(&api, "tn.gg", "COPY", json!({"token": sent, "mail": "x"})).await?.problem(400, 40001);
    assert_eq!(before, api.fingerprint().await?);

    let written = json!({"token": sent, "text": " From a <shop>.\n", "mail": "ada@example.com"});
    // The same form once more is the same report; letters of the short id may be small.
    for short_id in ["COPY", "copy"] {
        let received = send(&api, "tn.gg", short_id, written.clone()).await?;
        ensure!(received.status == 200 && received.json() == json!({"report": "received"}), "{received:?}");
    }
    let listed =
        api.get(&format!("/authentication/cases?filter=thng={thng}%26kind=counterfeit")).await?.json();
    ensure!(listed[0]["reportCount"] == 1 && listed[0].get("reports").is_none(), "{listed}");
    let case = id(&listed[0]);
    let uri = format!("/authentication/cases/{case}");
    let read = api.get(&uri).await?.json();
    let report = &read["reports"][0];
    // On Postgres transactions of other tests may hold up what is settled.
    if engine == Engine::Sqlite {
        let events = String::from_utf8(api.get("/events?types=case").await?.bytes)?;
        let events: Vec<Value> = events
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect();
        let data = json!({"id": case, "thng": thng, "report": report["id"]});
        ensure!(
            events.len() == 1 && events[0]["type"] == "case.reported" && events[0]["data"] == data,
            "{events:?}"
        );
        // Neither an application of the project nor a role without the permission may read the case.
        let applications = format!("/projects/{project}/applications");
        let application = id(&api.create(&applications, json!({"name": "a"})).await?);
        let secret = api.get(&format!("{applications}/{application}/secretKey")).await?.json();
        let secret = text(&secret, "secretApiKey")?;
        let streaming = with_permissions(&api, &["events:read"]).await?;
        for key in [&api.other_key, &secret, &streaming] {
            let others = api.call_as(key, Method::GET, "/events?types=case", None).await?;
            ensure!(others.status == 200 && !String::from_utf8(others.bytes)?.contains("data:"));
        }
        let reading = with_permissions(&api, &["events:read", "cases:read"]).await?;
        let shown = api.call_as(&reading, Method::GET, "/events?types=case", None).await?;
        ensure!(String::from_utf8(shown.bytes)?.contains("case.reported"));
    }
    ensure!(report["text"] == "From a <shop>." && report["mail"] == "ada@example.com", "{read}");
    ensure!(report["shortUrl"] == "https://tn.gg/COPY" && read["reportCount"] == 1, "{read}");
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let read = api.call_as(&viewer, Method::GET, &uri, None).await?.json();
    ensure!(read["reports"][0]["text"] == "From a <shop>.", "{read}");
    ensure!(read["reports"][0].get("mail").is_none(), "a viewer sees no personal data: {read}");

    // An account without personal data takes no address.
    put(format!("/accounts/{}", api.made.account), json!({"personalData": "none"})).await?;
    let form = send(&api, "tn.gg", "COPY", json!({})).await?.json();
    ensure!(form["takesMail"] == false, "{form}");
    let both = json!({"token": "x", "text": "x", "mail": "ada@example.com"});
    let faults = send(&api, "tn.gg", "COPY", both).await?.problem(400, 40001);
    ensure!(faults.len() == 2 && faults[1].starts_with("mail: "), "{faults:?}");

    // An item has so many a day.
    let (account, now) = (api.made.account, api.made.app.core.clock.now());
    let of: (CaseId, ThngId) = (case.parse()?, thng.parse()?);
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    for n in 1..MAX_OF_ITEM {
        let report = FinderReport {
            id: ReportId::new(n, random16()?),
            short_url: "https://tn.gg/COPY".to_owned(),
            text: "x".to_owned(),
            mail: None,
            has_photo: false,
            created_at: now,
        };
        reports::insert(&mut tx, account, of, &report).await?;
    }
    tx.commit().await?;
    let one_more = json!({"token": token(&api).await?, "text": "x"});
    let faults = send(&api, "tn.gg", "COPY", one_more).await?.problem(429, 42901);
    ensure!(faults[0].starts_with("This item gets at most 20 reports"), "{faults:?}");
    let again = json!({"token": sent, "text": "x"});
    ensure!(send(&api, "tn.gg", "COPY", again).await?.status == 200, "it is one of the 20");

    // They go by their age, and with their item.
    let count = async || anyhow::Ok(api.get(&uri).await?.json()["reportCount"].clone());
    for (account, before, left) in
        [(api.other_account, now.0 + 1, MAX_OF_ITEM), (account, 1, MAX_OF_ITEM), (account, now.0 + 1, 0)]
    {
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        reports::delete_before(&mut tx, account, UnixMillis(before)).await?;
        tx.commit().await?;
        ensure!(count().await? == left, "before {before}");
    }
    // Nobody writes to an account that the platform has suspended.
    let (platform, sent) = (platform_key(&api).await?, token(&api).await?);
    suspend(&api, &platform).await?;
    for body in [json!({}), json!({"token": sent, "text": "x"})] {
        send(&api, "tn.gg", "COPY", body).await?.problem(404, 40401);
    }
    resume(&api, &platform).await?;
    let last = json!({"token": token(&api).await?, "text": "x"});
    ensure!(send(&api, "tn.gg", "COPY", last).await?.status == 200);
    ensure!(count().await? == 1);
    ensure!(api.delete(&format!("/thngs/{thng}")).await?.status.is_success());
    let mut conn = api.made.app.core.db.read().await?;
    ensure!(reports::list(&mut conn, account, of.0).await?.is_empty());
    Ok(())
}
