//! Operations: metrics, probes, traces, and the files in `deploy`.

mod backup;
mod deploy;
mod deploy_run;
mod env;
mod full_disk;
mod metrics;
mod newer_schema;
mod previous_release;
mod traces;

pub(crate) use self::newer_schema::waits_for_postgres;
