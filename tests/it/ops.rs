//! What operators see: metrics, probes, traces, and what stands in `deploy`.

mod deploy;
mod env;
mod metrics;
mod traces;
