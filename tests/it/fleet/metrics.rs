//! `/metrics` and `/ready` of the binaries `control` and `edge`.

use std::{
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use tests::{
    fleet::Fleet,
    product::{metrics_of, root},
    promtool,
};

use super::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_binaries_count_what_they_did() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let edge = fleet.add_edge("e1")?;
    edge.until_live(&fleet.http, 0).await?;
    let wait = "?wait=edges&timeout=20s";
    let (status, body) = fleet.create_redirection(0, &product, Some("ONE"), wait).await?;
    ensure!(status == StatusCode::CREATED, "{body}");
    ensure!(edge.scan(&fleet.http, "ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    ensure!(fleet.call(0, Method::GET, "/no/such/path", None).await?.0 == StatusCode::NOT_FOUND);
    until("the scan is stored and the view is written", async || {
        let metrics = fleet.controls[0].metrics(&fleet.http).await?;
        let at_least = |name: &str, least: f64| metrics.get(name).is_some_and(|found| *found >= least);
        Ok(at_least("waymark_control_scans_total{result=\"stored\"}", 1.0)
            && at_least("waymark_control_publisher_watermark", 1.0))
    })
    .await?;
    let control = fleet.controls[0].metrics(&fleet.http).await?;
    for (name, least) in [
        ("waymark_control_requests_total{route=\"/products\",method=\"POST\",status=\"201\"}", 1.0),
        ("waymark_control_requests_total{route=\"none\",method=\"GET\",status=\"404\"}", 1.0),
        ("waymark_control_push_seconds_count", 1.0),
        ("waymark_control_wait_edges_seconds_count", 1.0),
        ("waymark_control_log_head_rev", 1.0),
        ("waymark_control_edges{state=\"reachable\"}", 1.0),
        ("waymark_control_edges{state=\"unreachable\"}", 0.0),
        ("waymark_control_streams", 1.0),
        ("waymark_control_replicas", 1.0),
        ("waymark_control_publisher_leading", 1.0),
        ("waymark_control_publisher_rebuilds_total", 1.0),
        ("waymark_control_publisher_failures_total", 0.0),
        ("waymark_control_database_connections_max{pool=\"all\"}", 1.0),
    ] {
        let found = control.get(name).copied();
        ensure!(found.is_some_and(|found| found >= least), "{name} is {found:?} in {control:#?}");
    }
    let mine = metrics_of(&fleet.http, &edge.admin).await?;
    for (name, expected) in [
        ("waymark_edge_view_up", 1.0),
        ("waymark_edge_state{state=\"LIVE\"}", 1.0),
        ("waymark_edge_responses_total{status=\"307\"}", 1.0),
    ] {
        ensure!(mine.get(name) == Some(&expected), "{name} is {:?}", mine.get(name));
    }
    promtool::check(&fleet.http, &fleet.controls[0].admin).await?;
    promtool::check(&fleet.http, &edge.admin).await?;
    ensure!(
        control.get("waymark_control_database_size_bytes").is_some_and(|bytes| *bytes > 1e5),
        "{control:#?}"
    );
    // What the dashboard and the alerts show of a fleet alone; `ops::metrics` looks for the rest.
    for file in ["waymark.json", "alerts.yml"] {
        let shown = std::fs::read_to_string(root().join("deploy/grafana").join(file))?;
        for name in promtool::shown_metrics(&shown) {
            let metrics = match name.as_str() {
                _ if name.starts_with("waymark_control_publisher_") => &control,
                "waymark_edge_view_up" => &mine,
                _ => continue,
            };
            let is_there = metrics.keys().any(|key| key.split('{').next() == Some(&name));
            ensure!(is_there, "{file} shows {name}, which nobody counts");
        }
    }
    let ready: serde_json::Value =
        fleet.http.get(format!("{}/ready", fleet.controls[0].admin)).send().await?.json().await?;
    ensure!(ready["ready"] == true && ready["edges"] == 1, "{ready}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_binaries_show_certificate_expiry() -> Result<()> {
    let mut fleet = Fleet::start(0).await?;
    let folder = fleet.dir.join("tls");
    let made =
        Command::new(root().join("deploy/docker/make-certs")).arg(&folder).arg("control-1").output()?;
    ensure!(made.status.success(), "{made:?}");
    let folder = folder.join("hosts").display().to_string();
    let redis = fleet.redis_settings.clone();
    let with =
        |listener: &'static str| [("WAYMARK_TLS_DIR", folder.clone()), (listener, "127.0.0.1:0".to_owned())];
    fleet.redis_settings.extend(with("WAYMARK_API_TLS_LISTEN"));
    fleet.add_control()?;
    let edge =
        fleet.add_edge_with("e1", redis.into_iter().chain(with("WAYMARK_EDGE_TLS_LISTEN")).collect())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    for (side, admin) in [("control", &fleet.controls[0].admin), ("edge", &edge.admin)] {
        let metrics = metrics_of(&fleet.http, admin).await?;
        let name = format!("waymark_{side}_certificate_expiry_timestamp_seconds{{name=\"control-1\"}}");
        ensure!(metrics.get(&name).is_some_and(|end| *end > now), "{name}: {metrics:#?}");
    }
    Ok(())
}
