//! `/metrics` and `/ready` of the single process, which show both sides.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    product::{DEADLINE, Options, Product, root},
    promtool,
};

/// Waits until a metric has a value that fits.
async fn until(product: &Product, name: &str, fits: impl Fn(f64) -> bool) -> Result<()> {
    let mut last = None;
    let found = async {
        loop {
            last = product.metrics().await?.get(name).copied();
            if last.is_some_and(&fits) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(DEADLINE, found).await;
    found.with_context(|| format!("{name} is {last:?}"))?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_count_what_they_did() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let bag = product.create_product().await?;
    let link = product.create_redirection(&bag, "https://example.com/", None).await?;
    let short_id = link["shortId"].as_str().context("no short id")?.to_owned();
    for _ in 0..3 {
        ensure!(product.scan(&short_id).await?.0 == 307);
    }
    ensure!(product.scan("NOBODY").await?.0 == 404);
    ensure!(product.call(Method::GET, "/no/such/path", None).await?.0 == 404);
    let (status, _) =
        product.call(Method::PUT, &format!("/redirections/{short_id}"), Some(json!({}))).await?;
    ensure!(status != 500);
    until(&product, "waymark_control_scans_total{result=\"stored\"}", |stored| stored == 3.0).await?;
    let metrics = product.metrics().await?;
    for (name, at_least) in [
        ("waymark_edge_responses_total{status=\"307\"}", 3.0),
        ("waymark_edge_responses_total{status=\"404\"}", 1.0),
        ("waymark_edge_response_seconds_count{kind=\"redirect\"}", 3.0),
        ("waymark_edge_scans_shipped_total", 3.0),
        ("waymark_edge_state{state=\"LIVE\"}", 1.0),
        ("waymark_control_requests_total{route=\"/products\",method=\"POST\",status=\"201\"}", 1.0),
        (
            "waymark_control_requests_total{route=\"/redirections/{shortId}\",method=\"PUT\",status=\"400\"}",
            0.0,
        ),
        ("waymark_control_requests_total{route=\"none\",method=\"GET\",status=\"404\"}", 1.0),
        ("waymark_control_writer_group_size_count", 1.0),
        ("waymark_control_push_seconds_count", 1.0),
        ("waymark_control_wait_edges_seconds_count", 1.0),
        ("waymark_control_log_head_rev", 2.0),
        ("waymark_control_edges{state=\"reachable\"}", 1.0),
        ("waymark_control_database_connections_max{pool=\"write\"}", 1.0),
        ("waymark_control_failures_total{reason=\"StatementTimeout\"}", 0.0),
        ("waymark_control_database_size_bytes", 100_000.0),
        ("waymark_control_scans_size_bytes", 4_096.0),
        ("waymark_edge_disk_free_bytes", 1.0),
        ("waymark_edge_disk_size_bytes", 1.0),
        ("waymark_control_jobs{status=\"EXECUTING\"}", 0.0),
        ("waymark_control_jobs_ended_total{status=\"FAILED\"}", 0.0),
    ] {
        let found = metrics.get(name).copied();
        ensure!(found.unwrap_or_default() >= at_least, "{name} is {found:?} in {metrics:#?}");
    }
    let text = product.http.get(format!("{}/metrics", product.admin)).send().await?.text().await?;
    promtool::check(&product.http, &product.admin).await?;
    for file in ["waymark.json", "alerts.yml"] {
        let shown = std::fs::read_to_string(root().join("deploy/grafana").join(file))?;
        let names = promtool::shown_metrics(&shown);
        ensure!(names.len() > 10, "{file}: {names:?}");
        // The view and its publisher are a fleet's: `fleet::metrics` looks for these. Certificates: see below.
        let is_of_fleets = |name: &String| {
            name.starts_with("waymark_control_publisher_")
                || name == "waymark_edge_view_up"
                || name.ends_with("_certificate_expiry_timestamp_seconds")
        };
        for name in names.iter().filter(|name| !is_of_fleets(name)) {
            let is_there = metrics.keys().any(|key| key.split('{').next() == Some(name));
            ensure!(is_there, "{file} shows {name}, which nobody counts");
        }
    }
    for secret in [&product.key, &short_id, &bag] {
        ensure!(!text.contains(secret.as_str()), "labels are closed sets");
    }
    Ok(())
}

/// One process has one set of certificates, which its edge shows; `fleet::metrics` looks at the two binaries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_each_certificate_is_shown() -> Result<()> {
    let product = Product::start(Options { dev_tls: true, domains: "tn.gg", ..Options::default() }).await?;
    let metrics = product.metrics().await?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    for name in ["tn.gg", "localhost"] {
        let end =
            metrics.get(&format!("waymark_edge_certificate_expiry_timestamp_seconds{{name=\"{name}\"}}"));
        ensure!(end.is_some_and(|end| *end > now), "{name}: {metrics:#?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_no_requests_of_users() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let counted = |metrics: &std::collections::HashMap<String, f64>| -> f64 {
        let requests = |name: &&String| {
            name.starts_with("waymark_edge_responses_total")
                || name.starts_with("waymark_control_requests_total")
                || name.starts_with("waymark_edge_scans_recorded")
        };
        metrics.keys().filter(requests).map(|name| metrics[name]).sum()
    };
    let before = counted(&product.metrics().await?);
    for path in ["/live", "/ready", "/metrics"] {
        for _ in 0..5 {
            let answer = product.http.get(format!("{}{path}", product.admin)).send().await?;
            ensure!(answer.status() == 200, "{path}");
        }
    }
    ensure!(counted(&product.metrics().await?) == before);
    let ready: Value = product.http.get(format!("{}/ready", product.admin)).send().await?.json().await?;
    ensure!(ready["state"] == "LIVE" && ready["since"].is_i64(), "{ready}");
    ensure!(ready["control"]["state"] == "fresh" && ready["control"]["edges"] == 1, "{ready}");
    let posted = product.http.post(format!("{}/ready", product.admin)).send().await?;
    ensure!(posted.status() == 405);
    Ok(())
}
