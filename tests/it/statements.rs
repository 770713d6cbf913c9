//! Every SQL text of the store can be prepared on its engines.
//!
//! The texts are read from the sources: constants, and the small macros that build statements. Errors in the dialect of an
//! engine are found here, so that a test which looks at nothing of the engine needs one of the two (`tests/nextest.toml`).

mod plans;
mod source;
mod trail_plans;

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection, Row};
use tests::{
    db::{Engine, Location, TestDb},
    product::root,
};

use self::source::{Sources, Statement};

/// Every statement of the store.
fn statements() -> Result<Vec<Statement>> {
    let mut sources = Sources::default();
    for path in source::rust_files(&root().join("control"))? {
        // A file below another is a part of its module.
        let below = path.to_str().context("path")?.split_once("/src/store/");
        if let Some((_, file)) = below {
            let name = file.trim_end_matches(".rs").replace('/', "::");
            sources.read(&name, &std::fs::read_to_string(&path)?).with_context(|| name.clone())?;
        }
    }
    sources.statements()
}

/// Whether a statement runs on an engine, by the words of its name.
fn is_for(statement: &Statement, engine: Engine) -> bool {
    let mut words = statement.name.split(|c: char| !c.is_ascii_alphanumeric());
    // ClickHouse's are run by the tests of its store.
    if statement.name.starts_with("clickhouse::") {
        return false;
    }
    let other = if engine == Engine::Sqlite { "PG" } else { "SQLITE" };
    !words.any(|word| word.eq_ignore_ascii_case(other))
}

/// The database itself prepares each statement: tables, columns, types and functions are there.
async fn each_statement_can_be_prepared(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let (mut faults, mut count) = (Vec::new(), 0);
    let all = statements()?;
    let mine: Vec<&Statement> = all.iter().filter(|statement| is_for(statement, engine)).collect();
    match &db.location {
        Location::Sqlite(path) => {
            let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
            // Scans are in a file of their own; no table is in both.
            scan_store::store::open(&db.db).await?.close().await;
            let attach =
                AssertSqlSafe(format!("ATTACH '{}' AS scans", scan_store::store::file_of(path).display()));
            sqlx::raw_sql(attach).execute(&mut conn).await?;
            for statement in mine {
                let sql = AssertSqlSafe(format!("EXPLAIN {}", statement.sql));
                count += 1;
                if let Err(error) = sqlx::raw_sql(sql).execute(&mut conn).await {
                    faults.push(format!("{}: {error}\n    {}", statement.name, statement.sql));
                }
            }
        }
        Location::Postgres(url) => {
            let mut conn = sqlx::PgConnection::connect(url).await?;
            for statement in mine {
                let sql = AssertSqlSafe(format!("PREPARE s{count} AS {}", statement.sql));
                count += 1;
                if let Err(error) = sqlx::raw_sql(sql).execute(&mut conn).await {
                    faults.push(format!("{}: {error}\n    {}", statement.name, statement.sql));
                }
            }
        }
    }
    ensure!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
    ensure!(count > 60, "only {count} statements were found");
    Ok(())
}

/// The text of a statement, by the end of its name.
fn sql_of(name: &str) -> String {
    let found = statements().unwrap().into_iter().find(|statement| statement.name.ends_with(name));
    found.unwrap().sql
}

/// A connection to a migrated database of its own.
async fn fresh_postgres() -> sqlx::PgConnection {
    let db = TestDb::new(Engine::Postgres).await.unwrap();
    let Location::Postgres(url) = &db.location else { panic!("not Postgres") };
    sqlx::PgConnection::connect(url).await.unwrap()
}

/// How SQLite goes about a statement, step by step.
async fn sqlite_plan(name: &str) -> Vec<String> {
    let db = TestDb::new(Engine::Sqlite).await.unwrap();
    let Location::Sqlite(path) = &db.location else { panic!("not SQLite") };
    let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql_of(name)));
    let rows = sqlx::query(sql).fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

/// Hits are counted by the index of short ids: by domain alone, a batch reads every row of the domain.
#[tokio::test]
async fn hits_are_found_by_short_id() {
    let plan = sqlite_plan("SQLITE_HITS").await;
    let is_indexed =
        |line: &String| line.contains("SEARCH redirections") && line.contains("domain=? AND folded=?");
    assert!(plan.iter().any(is_indexed), "{plan:?}");
}

/// Of a table of which Postgres knows nothing at first, and which it would rather read as a whole than look into a thousand
/// times.
#[tokio::test]
async fn hits_are_found_by_indexes_on_postgres() {
    const LINKS: usize = 50_000;
    let mut conn = fresh_postgres().await;
    let set = sql_of("PG_HITS_SET");
    for sql in [
        "SET random_page_cost = 4",
        "ALTER TABLE redirections DISABLE TRIGGER ALL",
        "ALTER TABLE redirections SET (autovacuum_enabled = false)",
        &format!(
            "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, target, forward_query, \
            scopes, hits, created_at, updated_at, rev) SELECT 'tn.gg', 'ID' || n, 'ID' || n, 'a', 'thng', 'p', \
            'https://example.com/', true, '{{}}', 0, 0, 0, 1 FROM generate_series(1, {LINKS}) n"
        ),
        &format!("PREPARE locked AS {}", sql_of("PG_LOCK_HITS")),
        &format!("PREPARE hits AS {}", sql_of("PG_HITS")),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    let list = |item: &dyn Fn(usize) -> String| (1..=1_000).map(item).collect::<Vec<_>>().join(",");
    let (ids, seqs) = (list(&|n| format!("ID{n}")), list(&|n| n.to_string()));
    let counts = list(&|_| "1".to_owned());
    let locked = format!("EXPLAIN EXECUTE locked('tn.gg', '{{{ids}}}', '{{{counts}}}')");
    let hits = format!("EXPLAIN EXECUTE hits('{{{seqs}}}', '{{{counts}}}')");
    for before in ["SELECT 1", "ANALYZE redirections"] {
        sqlx::raw_sql(AssertSqlSafe(before)).execute(&mut conn).await.unwrap();
        for (explain, index) in [(&locked, "redirections_short_id"), (&hits, "redirections_pkey")] {
            let plan = plan_within(&mut conn, &set, explain).await;
            assert!(plan.contains(&format!("Index Scan using {index}")), "after {before}: {plan}");
        }
    }
    // Else the settings are not needed.
    let plan = plan_within(&mut conn, "SELECT 1", &hits).await;
    assert!(plan.contains("Seq Scan on redirections"), "{plan}");
}

/// The plan of a prepared statement behind another one, in a transaction that is rolled back.
async fn plan_within(conn: &mut sqlx::PgConnection, before: &str, explain: &str) -> String {
    let mut tx = conn.begin().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(before)).execute(&mut *tx).await.unwrap();
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut *tx).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
}

/// A list of states reads no table as a whole, also where nothing was analysed: the index holds what the statement says.
#[tokio::test]
async fn states_of_a_list_are_found_by_their_index() {
    let mut conn = fresh_postgres().await;
    let prepare = format!("PREPARE states AS {}", sql_of("PG_PAIRS"));
    for sql in [
        "ALTER TABLE thngs DISABLE TRIGGER ALL",
        "ALTER TABLE thngs SET (autovacuum_enabled = false)",
        "INSERT INTO thngs (id, account_id, name, doc, created_at, updated_at, facets, commission_state, \
            commission_product, commission) SELECT 'T' || n, 'a', 't', \
            jsonb_build_object('identifiers', jsonb_build_object('gs1:21', 'S' || n)), 0, 0, '{}', 'commissioned', 'P', \
            '{\"occurredAt\": \"x\", \"steps\": [{\"at\": 1}]}' FROM generate_series(1, 20000) n",
        &prepare,
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    let explain = "EXPLAIN EXECUTE states('a', '{S1,S2,S3}', '{1,2}', '{1,3}', '{2,3}')";
    let rows = sqlx::raw_sql(explain).fetch_all(&mut conn).await.unwrap();
    let plan = rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n");
    assert!(plan.contains("thngs_commissioned") && !plan.contains("Seq Scan"), "{plan}");

    let plan = sqlite_plan("SQLITE_PAIRS").await;
    assert!(
        plan.iter().any(|line| line.contains("USING INDEX thngs_commissioned (<expr>=? AND")),
        "{plan:?}"
    );
}

/// A write of properties looks for its Thng by id, and not through all of an account's, also in a small table of which
/// nothing is known yet.
#[tokio::test]
async fn owners_of_properties_are_found_by_id() {
    let mut conn = fresh_postgres().await;
    let prepare = format!("PREPARE written AS {}", sql_of("PG_WRITE"));
    for sql in [
        "ALTER TABLE thngs DISABLE TRIGGER ALL",
        "ALTER TABLE thngs SET (autovacuum_enabled = false)",
        "INSERT INTO thngs (id, account_id, name, doc, created_at, updated_at, facets) \
            SELECT 'T' || n, 'a', 't', '{}', 0, 0, '{}' FROM generate_series(1, 64) n",
        &prepare,
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }
    let explain = "EXPLAIN EXECUTE written(1, '{0,1}', '{a,a}', '{thng,thng}', '{T1,T2}', '{account,account}', \
        '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{0,1}', '{k,k}', '{1,1}', '{1,1}', '{NULL,NULL}')";
    let rows = sqlx::raw_sql(explain).fetch_all(&mut conn).await.unwrap();
    let plan = rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n");
    assert!(
        plan.contains("Index Scan using thngs_id_key") && plan.contains("Index Cond: (id = a.id)"),
        "{plan}"
    );
}

/// The reader of the sources misses nothing: each literal that begins a statement is in one.
#[test]
fn every_statement_is_listed() {
    let all = statements().unwrap();
    let folder = root().join("control");
    let mut seen = 0;
    for path in source::rust_files(&folder).unwrap() {
        for literal in source::literals(&std::fs::read_to_string(&path).unwrap()).unwrap() {
            if source::is_sql(&literal) {
                seen += 1;
                assert!(
                    all.iter().any(|statement| statement.sql.contains(literal.trim())),
                    "{}: no statement holds {literal:?}",
                    path.display()
                );
            }
        }
    }
    assert!(seen > 50, "only {seen} literals");
    for name in ["thngs::LIST.select", "facets::ACTIONS_FILL.pg", "redirections::fill::FILL"] {
        assert!(all.iter().any(|statement| statement.name == name), "{name}");
    }
}

crate::on_both_engines!(each_statement_can_be_prepared);
