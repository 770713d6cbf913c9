//! Pages of the audit trail: the entries of one resource are found by it.

use anyhow::{Result, ensure};
use kernel::{
    domain::{grant::Limit, listing::ListRequest},
    store::{Db, listing::Selection},
};
use tenants::store::audit_trail;
use tests::db::{Engine, TestApp};

use super::scan_retention::execute;

super::super::on_both_engines!(entries_of_a_resource_are_found_by_it);

const MADE: &str =
    "INSERT INTO audit_entries (account_id, at, actor_kind, operation, resource, resource_id) ";

async fn entries_of_a_resource_are_found_by_it(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let db = &made.app.core.db;
    let account = made.account;
    let columns = format!("SELECT '{account}', n, 'operator', 'PUT', 'redirection', 'tn.gg/' || (n % 2000)");
    let rows = match db {
        Db::Pg(_) => format!("{columns} FROM generate_series(1, 20000) AS s (n)"),
        Db::Sqlite { .. } => format!(
            "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000) {columns} FROM s"
        ),
    };
    execute(db, &format!("{MADE}{rows}")).await?;
    if matches!(db, Db::Pg(_)) {
        execute(db, "ANALYZE audit_entries").await?;
    }
    let within = [("resource", "redirection"), ("resourceId", "tn.gg/7")];
    let request = ListRequest::default();
    let selection = Selection { account, limit: &Limit::Account, request: &request, within: &within };
    let mut conn = db.read().await?;
    let plan = audit_trail::explain(&mut conn, &selection).await?.plan.join("\n");
    ensure!(plan.contains("audit_entries_resource"), "{plan}");
    ensure!(!plan.contains("TEMP B-TREE"), "{plan}");
    ensure!(audit_trail::list(&mut conn, &selection).await?.items.len() == 10);
    Ok(())
}
