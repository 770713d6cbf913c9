//! What an administrator runs for ClickHouse by hand.

use anyhow::{Context, Result, ensure};
use tests::{clickhouse::ClickHouse, product::root};

/// The statements of a text, without lines of comments.
fn statements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let all = lines.join("\n");
    all.split(';').map(|sql| sql.trim().to_owned()).filter(|sql| !sql.is_empty()).collect()
}

/// The engine of the tests is no cluster and has no users: it says whether it can read the statements.
#[tokio::test]
async fn statements_of_administrators_can_be_read() -> Result<()> {
    let server = ClickHouse::start()?;
    let read = |path: &str| std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned());
    let (cluster, guide) = (read("deploy/clickhouse/cluster.sql")?, read("deploy/guide/clickhouse.md")?);
    let (_, example) = guide.split_once("```sql").context("no statements in the guide")?;
    let (example, _) = example.split_once("```").context("they do not end")?;
    let all = [statements(&cluster), statements(example)].concat();
    ensure!(all.iter().filter(|sql| sql.starts_with("GRANT ")).count() == 5, "{all:?}");
    for sql in all {
        server.ask(&format!("EXPLAIN AST {sql}")).await?;
    }
    ensure!(server.ask("EXPLAIN AST GRANT ALTER NOTHING ON waymark.* TO waymark").await.is_err());
    Ok(())
}
