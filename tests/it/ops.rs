//! What operators see: metrics, probes, traces, and what stands in `deploy`.

mod deploy;
mod metrics;
mod traces;
