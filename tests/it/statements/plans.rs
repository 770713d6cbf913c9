//! Which indexes the statements of erasures use, in a large table of an account.

use sqlx::{AssertSqlSafe, Row};

use super::{fresh_postgres, sql_of, sqlite_plan};

/// Rows of one account, a few of them of a user.
const FILLED: [&str; 6] = [
    "ALTER TABLE actions DISABLE TRIGGER ALL",
    "INSERT INTO actions (id, account_id, type, timestamp, created_at, doc, facets) SELECT 'A' || n, 'a', 'scans', 0, n, \
        '{}', CASE WHEN n % 1000 = 0 THEN ARRAY['user=U' || n] ELSE ARRAY['tags=t' || n % 7] END \
        FROM generate_series(1, 50000) n",
    "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status) \
        SELECT 1, 'a' || n % 500, 'm', 't', '{}', 0, 'delivered' FROM generate_series(1, 50000) n",
    "ALTER TABLE scan_profiles DISABLE TRIGGER ALL",
    "INSERT INTO scan_profiles (thng_id, account_id, profile, rules_version) SELECT 'T' || n, 'a' || n % 500, '', \
        CASE WHEN n % 10 = 0 THEN NULL ELSE 1 END FROM generate_series(1, 50000) n",
    "VACUUM ANALYZE actions, webhook_messages, scan_profiles",
];

async fn postgres_plan(name: &str, arguments: &str) -> String {
    let mut conn = fresh_postgres().await;
    let prepare = format!("PREPARE listed AS {}", sql_of(name));
    for sql in FILLED.into_iter().chain([prepare.as_str()]) {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    let explain = format!("EXPLAIN EXECUTE listed({arguments})");
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
}

/// An erasure of users does not read the actions of others.
#[tokio::test]
async fn actions_of_users_are_found_by_them() {
    let plan = postgres_plan("PG_OF_USERS", "'a', 0, 0, 200, '{user=U1000,user=U2000}'").await;
    assert!(plan.contains("Bitmap Index Scan on actions_facets"), "{plan}");
    assert!(!plan.contains("Seq Scan") && !plan.contains("actions_account"), "{plan}");

    let plan = sqlite_plan("SQLITE_OF_USERS").await;
    let by_user = |line: &String| line.contains("INDEX actions_user (account_id=? AND <expr>=?");
    assert!(plan.iter().any(by_user), "{plan:?}");
    assert!(!plan.iter().any(|line| line.contains("actions_account")), "{plan:?}");
}

/// Copies and profiles of an account are found without those of others.
#[tokio::test]
async fn messages_and_profiles_are_found_by_account() {
    for (name, sqlite_name, arguments, index) in [
        ("PG_MESSAGES", "SQLITE_MESSAGES", "'a7', 0, 500", "webhook_messages_account"),
        ("LIST_MARKED", "LIST_MARKED", "'a10', '', 10", "scan_profiles_marked"),
    ] {
        let plan = postgres_plan(name, arguments).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{plan}");
        let plan = sqlite_plan(sqlite_name).await;
        let is_indexed = |line: &String| line.contains(&format!("USING INDEX {index} (account_id=?"));
        assert!(plan.iter().any(is_indexed), "{plan:?}");
    }
}
