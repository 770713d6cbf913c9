//! Results of assessments, which hold no address.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{BEGIN, END, Scanned, ask, marked, other, receipt, work_all};

crate::on_both_engines!(results_of_scans_from_a_network_are_cut);

async fn results_of_scans_from_a_network_are_cut(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    scanned.scan(&[marked("A", 1)?, other("A", 2)?]).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    // Newest first.
    let scans = scanned.scans_of(0).await?;
    for scan in &scans {
        // A point of the request, which is not that of the scan.
        let body = json!({"id": scan["id"], "locationSource": "sensor", "location": {"latitude": 46.812_345,
            "longitude": 7.612_345, "position": {"type": "Point", "coordinates": [7.612_345, 46.812_345]}}});
        api.post("/authentication", body).await?.must_be(200)?;
    }
    let result_of = async |scan: &Value| -> Result<Value> {
        let uri = format!("/thngs/{thng}/actions/authenticationResults?perPage=100");
        let results: Vec<Value> = serde_json::from_value(api.get(&uri).await?.json())?;
        let is_of_it = |result: &Value| result["customFields"]["triggerAction"] == scan["id"];
        results.into_iter().find(is_of_it).context("a result")
    };
    let (by_other, by_marked) = (result_of(&scans[0]).await?, result_of(&scans[1]).await?);
    ensure!(by_marked["location"].is_object() && by_other["location"].is_object(), "{by_marked} {by_other}");

    let path = ask(api, json!({"network": "203.0.113.0/24", "from": BEGIN, "to": END})).await?;
    work_all(api).await?;
    let receipt = receipt(api, &path).await?;
    let rows = &receipt["rows"];
    ensure!((&rows["scans"], &rows["actions"]) == (&json!(1), &json!(1)), "{receipt}");
    let cut = result_of(&scans[1]).await?;
    ensure!(cut.get("location").is_none() && cut["locationSource"] == "unknown", "{cut}");
    ensure!(cut["customFields"]["triggerContext"]["userAgent"] == "unknown", "{cut}");
    let status = |result: &Value| result["customFields"]["authenticationStatus"].clone();
    ensure!(status(&cut) == status(&by_marked), "its verdict stays: {cut}");
    ensure!(result_of(&scans[0]).await? == by_other, "the result of another scan is touched");
    Ok(())
}
