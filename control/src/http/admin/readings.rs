//! Metrics that are computed at each scrape: connection pools, edges, the head of the log, scan intake.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use platform::Refused;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::{MetricType, info::Info},
    registry::Registry,
};

use crate::{state::ApiState, tls::Certificates};

/// Puts everything that control counts into a registry.
pub(super) fn register(app: &Arc<ApiState>, registry: &mut Registry) {
    register_worker(app, registry);
    app.metrics.register(registry);
    app.fair_share.register(registry);
    app.redirects.writer.metrics().register(registry);
    app.hub.metrics().register(registry);
    app.events.feed.metrics().register(registry);
    app.events.connections.metrics.register(registry);
    app.events.webhooks.metrics.register(registry);
    app.events.reactions.metrics.register(registry);
    app.users.outbox.metrics.register(registry);
    app.domains.certificates.metrics.register(registry);
    app.privacy.metrics.register(registry);
    registry.register_collector(Box::new(Readings(app.clone())));
}

/// Registers the metrics of a worker of jobs and print orders.
pub(super) fn register_worker(app: &Arc<ApiState>, registry: &mut Registry) {
    registry.register("build", "The build that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
    app.jobs.metrics.register(registry);
    app.printing.metrics.register(registry);
    registry.register_collector(Box::new(Pools(app.clone())));
}

/// Shows when certificates end.
pub(super) fn register_certificates(certificates: &Certificates, registry: &mut Registry) {
    registry.register_collector(Box::new(Expiries(certificates.clone())));
}

#[derive(Debug)]
struct Expiries(Certificates);

impl Collector for Expiries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ends = self.0.expiries();
        if ends.is_empty() {
            return Ok(());
        }
        let help = "When a certificate ends, in seconds since 1970";
        let name = "certificate_expiry_timestamp_seconds";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let values = ends.into_iter().map(|(name, end)| one("name", name, end)).collect();
        family(metric, values, |metric, value| metric.encode_gauge(&value))
    }
}

struct Readings(Arc<ApiState>);

shared::opaque!(Readings);

type Labels = Vec<(&'static str, String)>;

fn one<T>(label: &'static str, value: impl Into<String>, number: T) -> (Labels, T) {
    (vec![(label, value.into())], number)
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, values: Vec<(Labels, f64)>| {
            family(
                encoder.encode_descriptor(name, help, None, MetricType::Gauge)?,
                values,
                |metric, value| metric.encode_gauge(&value),
            )
        };
        let (app, hub) = (&self.0, &self.0.hub);
        let edges = hub.edges();
        let plain = |value: f64| vec![(Labels::new(), value)];
        gauge("log_head_rev", "Newest revision that is on its way to the edges", plain(hub.head() as f64))?;
        gauge(
            "store_writable",
            "1 while the database takes writes, as last tried",
            plain(f64::from(u8::from(app.write_probe.failing_since().is_none()))),
        )?;
        gauge(
            "log_silence_seconds",
            "Time since the change log was read well",
            plain(hub.silence().as_secs_f64()),
        )?;
        gauge(
            "writer_group_age_seconds",
            "Time since the transaction of the writer that runs began; 0 without one",
            plain(app.redirects.writer.metrics().group_age().as_secs_f64()),
        )?;
        let reachable = edges.iter().filter(|edge| edge.reachable).count();
        let states = vec![
            one("state", "reachable", reachable as f64),
            one("state", "unreachable", (edges.len() - reachable) as f64),
        ];
        gauge("edges", "Edges of the fleet, by state", states)?;
        let id = hub.replica().map(|replica| replica.id());
        let streams = edges.iter().filter(|edge| edge.reachable && edge.replica.as_ref() == id).count();
        gauge("streams", "Edges whose stream this replica holds", plain(streams as f64))?;
        let replicas = hub.replica().map_or(1, |replica| replica.replicas());
        gauge("replicas", "Replicas of control that run, as this one knows", plain(replicas as f64))?;
        let of_edges = |value: fn(&push::hub::EdgeStatus) -> f64| {
            edges.iter().map(|edge| one("edge", &*edge.edge_id, value(edge))).collect::<Vec<_>>()
        };
        gauge("edge_lag_revs", "Revisions that an edge is behind", of_edges(|edge| edge.lag as f64))?;
        let silence = of_edges(|edge| edge.silent_ms as f64 / 1e3);
        gauge("edge_silence_seconds", "Time since the last sign of life of an edge", silence)?;
        gauge(
            "broker_connections",
            "Connections of MQTT and WebSockets that are open",
            plain(app.events.connections.count() as f64),
        )?;
        let ends = app.domains.certificates.metrics.ends();
        gauge(
            "domain_certificate_expiry_timestamp_seconds",
            "When the certificate of a short domain ends, in seconds since 1970: the 1,000 that end first",
            ends.into_iter().map(|(host, end)| one("host", host, end.0 as f64 / 1e3)).collect(),
        )?;
        let listeners = [
            ("api", &app.core.capacity.api),
            ("mqtt", &app.core.capacity.mqtt),
            ("internal", &app.core.capacity.internal),
        ];
        let open = listeners.map(|(name, permits)| one("listener", name, permits.taken() as f64));
        gauge("connections", "Connections open by listener", open.into())?;
        let pools = [
            ("uploads", &app.core.capacity.uploads),
            ("photos", &app.core.capacity.photos),
            ("streams", &app.core.capacity.streams),
            ("passwords", &app.core.capacity.passwords),
        ];
        let taken = pools.map(|(name, pool)| one("pool", name, pool.taken() as f64));
        gauge("pool_places", "Places taken of pools that tenants share", taken.into())?;
        let mut counter = |name: &str, help: &str, values: Vec<(Labels, u64)>| {
            family(
                encoder.encode_descriptor(name, help, None, MetricType::Counter)?,
                values,
                |metric, value| metric.encode_counter::<NoLabelSet, _, u64>(&value, None),
            )
        };
        let intake = &app.intake;
        let scans = [
            ("stored", &intake.stored),
            ("repeated", &intake.repeated),
            ("unknown", &intake.unknown),
            ("over_quota", &intake.over_quota),
            ("missing", &intake.missing),
        ];
        let scans = scans.map(|(result, count)| one("result", result, count.load(Relaxed)));
        counter("scans", "Scans by what became of them", scans.into())?;
        let refused = listeners.iter().flat_map(|(name, permits)| {
            Refused::ALL.map(|reason| {
                let labels = vec![("listener", (*name).to_owned()), ("reason", reason.as_str().to_owned())];
                (labels, permits.refused(reason))
            })
        });
        let help = "Connections refused or ended by a limit";
        counter("connections_refused", help, refused.collect())
    }
}

struct Pools(Arc<ApiState>);

shared::opaque!(Pools);

impl Collector for Pools {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut connections, mut most) = (Vec::new(), Vec::new());
        for pool in self.0.core.db.pools() {
            for (state, count) in [("busy", pool.open - pool.idle), ("idle", pool.idle)] {
                let labels = vec![("pool", pool.name.to_owned()), ("state", state.to_owned())];
                connections.push((labels, f64::from(count)));
            }
            most.push(one("pool", pool.name, f64::from(pool.most)));
        }
        for (name, help, values) in [
            ("database_connections", "Connections to the database by pool and state", connections),
            ("database_connections_max", "Most connections of a pool", most),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            family(metric, values, |metric, value| metric.encode_gauge(&value))?;
        }
        Ok(())
    }
}

fn family<T>(
    mut metric: MetricEncoder<'_>,
    values: Vec<(Labels, T)>,
    encode: impl Fn(&mut MetricEncoder<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in values {
        if labels.is_empty() {
            encode(&mut metric, value)?;
        } else {
            encode(&mut metric.encode_family(&labels)?, value)?;
        }
    }
    Ok(())
}
