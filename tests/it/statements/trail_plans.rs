//! The entries of one resource are found by it, and those without a place, however many entries there are.

use sqlx::{AssertSqlSafe, Row};

use super::{fresh_postgres, sql_of, sqlite_plan};

#[tokio::test]
async fn entries_of_a_resource_are_found_by_it() {
    let mut conn = fresh_postgres().await;
    let prepare = format!("PREPARE written AS {}", sql_of("audit_trail::WRITTEN_BEFORE"));
    for sql in [
        "INSERT INTO audit_entries (account_id, at, actor_kind, operation, resource, resource_id, number) \
            SELECT 'a', n, 'operator', 'PUT /redirections/{shortId}', 'redirection', 'tn.gg/' || n % 5000, n \
            FROM generate_series(1, 50000) n",
        "VACUUM ANALYZE audit_entries",
        prepare.as_str(),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    let explain = "EXPLAIN EXECUTE written('a', 'tn.gg/7', 'redirection', 9223372036854775807, 100)";
    let rows = sqlx::raw_sql(explain).fetch_all(&mut conn).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("audit_entries_resource") && !plan.contains("Seq Scan"), "{plan}");

    // Each second, and before each list.
    let explain = AssertSqlSafe(format!("EXPLAIN {}", sql_of("audit_trail::WAITING")));
    let rows = sqlx::raw_sql(explain).fetch_all(&mut conn).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(
        plan.contains("audit_entries_unchained") && !plan.contains("Seq Scan on audit_entries"),
        "{plan}"
    );
    for name in ["audit_trail::WAITING", "audit_trail::SQLITE_TAKE_UNPLACED"] {
        let plan = sqlite_plan(name).await;
        assert!(plan.iter().any(|line| line.contains("INDEX audit_entries_unchained")), "{plan:?}");
    }

    let plan = sqlite_plan("audit_trail::WRITTEN_BEFORE").await;
    let is_found =
        |line: &String| line.contains("INDEX audit_entries_resource (account_id=? AND resource_id=?)");
    assert!(plan.iter().any(is_found), "{plan:?}");
}
