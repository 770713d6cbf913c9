//! Who may ask: roles, projects, accounts.

use anyhow::Result;
use axum::http::Method;
use serde_json::json;
use tests::{db::Engine, product::PHONE};

use super::{
    super::operators::{machine, project},
    *,
};

async fn roles_decide_who_asks_and_who_sees_cities(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    for (role, expected) in
        [("viewer", [200, 403]), ("analyst", [200, 403]), ("editor", [200, 200]), ("printer", [403, 403])]
    {
        let (_, key) = machine(&api, role, json!({})).await?;
        for (query, status) in ["groupBy=region", "groupBy=city"].iter().zip(expected) {
            let answer = api.call_as(&key, Method::GET, &format!("/scans/stats?{query}"), None).await?;
            assert_eq!(answer.status, status, "{role} {query}: {answer:?}");
        }
    }
    Ok(())
}

async fn a_key_of_a_project_sees_the_scans_of_its_links(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (one, two) = (project(&api).await?, project(&api).await?);
    linked(&api, "ONE", &[&one]).await?;
    linked(&api, "BOTH", &[&one, &two]).await?;
    linked(&api, "NONE", &[]).await?;
    let records = ["ONE", "BOTH", "BOTH", "NONE"].map(|id| scan(id, NOW, "203.0.113.1", PHONE));
    take(&api, 0, &records).await?;
    let applications = format!("/projects/{one}/applications");
    let app = api.create(&applications, json!({"name": "a"})).await?;
    let secret = api.get(&format!("{applications}/{}/secretKey", text(&app, "id")?)).await?.json();
    let secret = text(&secret, "secretApiKey")?;
    let bound = |projects: &[&String]| json!({"conditions": projects.iter().map(|id| format!("project={id}")).collect::<Vec<_>>()});
    let (_, of_two) = machine(&api, "viewer", bound(&[&two])).await?;
    let (_, of_both) = machine(&api, "viewer", bound(&[&one, &two])).await?;
    let scans = async |key: &str, query: &str| -> Result<Value> {
        Ok(ask_as(&api, key, query).await?["totals"]["scans"].clone())
    };
    assert_eq!(scans(&api.key, "").await?, 4);
    assert_eq!(scans(&secret, "").await?, 3);
    assert_eq!(scans(&of_two, "").await?, 2);
    assert_eq!(
        scans(&of_two, &format!("filter=project={one}")).await?,
        0,
        "another project is as if it were not there"
    );
    assert_eq!(scans(&of_both, &format!("filter=project={one}")).await?, 3);
    assert_eq!(scans(&of_two, "groupBy=country&filter=country=CH").await?, 2);
    let faults = api.call_as(&of_both, Method::GET, "/scans/stats", None).await?.problem(400, 40003);
    assert!(faults[0].contains("several projects"), "{faults:?}");
    let faults =
        api.call_as(&of_two, Method::GET, "/scans/stats?groupBy=project", None).await?.problem(400, 40003);
    assert!(faults[0].starts_with("groupBy: "), "{faults:?}");
    // A scan of two projects is in both rows, and once in the totals.
    let answer = ask(&api, "groupBy=project").await?;
    assert_eq!(answer["totals"]["scans"], 4, "{answer}");
    let mut found = rows(&answer, &["project", "scans"]);
    found.sort();
    let mut expected = [format!("{one:?} 3"), format!("{two:?} 2")];
    expected.sort();
    assert_eq!(found, expected);
    Ok(())
}

async fn accounts_do_not_see_each_other(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let product = linked(&api, "ONE", &[]).await?;
    take(&api, 0, &[scan("ONE", NOW, "203.0.113.1", PHONE)]).await?;
    for query in ["", "filter=link=tn.gg/ONE", &format!("filter=product={product}"), "groupBy=country"] {
        let answer = ask_as(&api, &api.other_key, query).await?;
        assert_eq!(
            (answer["totals"]["scans"].clone(), answer["rows"].clone()),
            (json!(0), json!([])),
            "{query}"
        );
        assert_eq!(ask(&api, query).await?["totals"]["scans"], 1, "{query}");
    }
    Ok(())
}

crate::on_both_engines!(
    roles_decide_who_asks_and_who_sees_cities,
    a_key_of_a_project_sees_the_scans_of_its_links,
    accounts_do_not_see_each_other,
);
