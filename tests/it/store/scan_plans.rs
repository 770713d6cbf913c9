//! Lists of scans read few rows, however many the account has: each is found by an index.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kernel::{
    domain::{
        filter::Filter,
        grant::Limit,
        listing::{ACTIONS, ListRequest},
    },
    store::{Db, listing::Selection},
};
use scan_store::{ScanStore as _, store::SqlScans};
use tests::db::{Engine, TestApp};

use super::{
    scan_lists::{BEGIN, P, Q, T, U, copy, insert},
    scan_retention::{execute, number, scans_of},
};

super::super::on_both_engines!(lists_of_many_scans_read_few);

/// Scans of one product and link.
const MANY: i64 = 100_000;

/// Within the month of the others.
const MADE: &str = "INSERT INTO scans_202512 (created_at, seq, timestamp, account, shape, key, short_id) ";
const PG_MADE: &str = "SELECT $1 + n, 1000000 + n, $1 + n, $2, $3, decode(lpad(to_hex(n), 24, '0'), 'hex'), \
    's' || n % 1000 FROM generate_series(1, $4) AS s (n)";
const SQLITE_MADE: &str = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $4) \
    SELECT $1 + n, 1000000 + n, $1 + n, $2, $3, unhex(printf('%024x', n)), 's' || n % 1000 FROM s";

async fn lists_of_many_scans_read_few(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    insert(&made, made.account).await?;
    copy(&made).await?;
    let db = scans_of(&made).await?;
    let account = number(&db, "SELECT id FROM scan_accounts").await?;
    // One that no other scan has: of no product and no project.
    let shape = number(
        &db,
        "SELECT x.id FROM scan_texts_202512 x WHERE x.kind = 0 AND NOT EXISTS (SELECT 1 FROM scan_facets_202512 f \
         WHERE f.id = x.id AND (f.facet LIKE 'product%' OR f.facet LIKE 'scopes%')) ORDER BY x.id LIMIT 1",
    )
    .await?;
    let from = if matches!(db, Db::Pg(_)) { PG_MADE } else { SQLITE_MADE };
    let sql = format!("{MADE}{from}");
    let values = [("$1", BEGIN), ("$2", account), ("$3", shape), ("$4", MANY)];
    let sql = values.iter().fold(sql, |sql, (name, value)| sql.replace(name, &value.to_string()));
    execute(&db, &sql).await?;
    // A month that was never analysed, and one that was.
    for is_analysed in [false, true] {
        if is_analysed && matches!(db, Db::Pg(_)) {
            execute(&db, "ANALYZE scans_202512").await?;
        }
        check(&made, &SqlScans::new(db.clone())).await.with_context(|| format!("analysed: {is_analysed}"))?;
    }
    Ok(())
}

async fn check(made: &TestApp, scans: &SqlScans) -> Result<()> {
    let filters = [
        // What the list is within, a filter, and the index that the plan names; without one nothing is read.
        ("", "", "account"),
        ("product", "", "shape"),
        ("thng", "", "thng"),
        ("", "customFields.shortId=s7", "short_id|link"),
        ("product", "customFields.shortId=s2", "short_id|link|shape"),
        // No scan by an edge names a user.
        ("", "user=U", ""),
        ("", "timestamp>=1767139205000&timestamp<1767139205030", "timestamp"),
        ("product", "timestamp>=1767139205000&timestamp<1767139205030", "timestamp|shape"),
        // Where Postgres knows that it has to read all of the month, it does so at once.
        ("", "context.city=Bern", "account|scans"),
        ("", "product=Q", ""),
        ("", "tags=none", ""),
        ("", "context.city=Nowhere", ""),
        ("", "customFields.bot=perhaps|product=Q", ""),
        ("product", "!product=P", "shape"),
        ("", "timestamp>1900000000000", ""),
        ("", "type=scans", ""),
    ];
    for (within, filter, index) in filters {
        let text = filter.replace("=U", &format!("={U}")).replace("=P", &format!("={P}"));
        let text = text.replace("=Q", &format!("={Q}"));
        let filter = (!text.is_empty()).then(|| Filter::parse(&text, ACTIONS.fields)).transpose();
        let request = ListRequest { filter: filter.map_err(anyhow::Error::msg)?, ..ListRequest::default() };
        let within: &[(&str, &str)] = match within {
            "product" => &[("product", P)],
            "thng" => &[("thng", T)],
            _ => &[],
        };
        let selection =
            Selection { account: made.account, limit: &Limit::Account, request: &request, within };
        let plan = scans.explain(&selection).await?.first().context("a month")?.join("\n");
        let names =
            |word: &str| plan.contains(&format!("_{word}")) || plan.contains(&format!("Scan on {word}"));
        let is_found = index.split('|').any(names);
        ensure!(if index.is_empty() { plan.is_empty() } else { is_found }, "{within:?} {text}: {plan}");
        let reads_all = plan.contains("Seq Scan") || plan.contains("SCAN t");
        ensure!(!reads_all || text.starts_with("context"), "{within:?} {text}: {plan}");
        let begun = Instant::now();
        scans.page(&selection).await?;
        ensure!(begun.elapsed() < Duration::from_secs(2), "{within:?} {text}: {:?}", begun.elapsed());
    }
    Ok(())
}
