//! Counters of job workers, and the number of jobs in each state.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::domain::job::{Job, JobStatus, Standing};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    status: &'static str,
}

/// Jobs: the counters are those of this process, the gauges are of all.
#[derive(Debug, Default)]
pub struct JobMetrics {
    open: Family<InState, Gauge>,
    waiting_seconds: Gauge<f64, std::sync::atomic::AtomicU64>,
    ended: Family<InState, Counter>,
    done: Counter,
    failed: Counter,
    /// Leases that were lost while a worker held them.
    pub leases_lost: Counter,
    /// Tries of steps that failed.
    pub tries_failed: Counter,
    looked: Mutex<Option<Instant>>,
}

impl JobMetrics {
    /// Counts the effect of a committed step on a job, and its end if it ended.
    pub fn moved(&self, before: &Job, after: &Job) {
        self.done.inc_by(after.progress.done.saturating_sub(before.progress.done));
        self.failed.inc_by(after.progress.failed.saturating_sub(before.progress.failed));
        if after.status.is_terminal() && !before.status.is_terminal() {
            self.ended.get_or_create(&InState { status: after.status.as_str() }).inc();
        }
    }

    /// Shows how the jobs stand.
    pub fn stand(&self, standing: &Standing) {
        for status in JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let count = standing.open.iter().filter(|(of, _)| *of == status).map(|(_, count)| *count);
            let count = i64::try_from(count.sum::<u64>()).unwrap_or(i64::MAX);
            self.open.get_or_create(&InState { status: status.as_str() }).set(count);
        }
        self.waiting_seconds.set(standing.waiting_seconds);
    }

    /// Records a successful query for jobs.
    pub fn looked(&self) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Time since the last successful query for jobs; `None` before the first.
    pub fn silence(&self) -> Option<Duration> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        // Present from the start, because an alert on an absent series never fires.
        self.stand(&Standing::default());
        for status in JobStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
            drop(self.ended.get_or_create(&InState { status: status.as_str() }));
        }
        registry.register("jobs", "Jobs that have not ended, by state", self.open.clone());
        let help = "How long the job that nobody has worked on for longest has waited";
        registry.register("jobs_waiting_seconds", help, self.waiting_seconds.clone());
        let help = "Jobs that a worker of this process brought to their end, by state";
        registry.register("jobs_ended", help, self.ended.clone());
        for (name, help, counter) in [
            ("job_entries_done", "Entries of jobs that were carried out, failed ones among them", &self.done),
            ("job_entries_failed", "Entries of jobs that failed", &self.failed),
            ("job_leases_lost", "Jobs that others took from a worker of this process", &self.leases_lost),
            (
                "job_tries_failed",
                "Times that a job could not go on and was left for later",
                &self.tries_failed,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn each_state_is_shown_with_and_without_jobs() {
        let (metrics, mut registry) = (JobMetrics::default(), Registry::with_prefix("waymark_control"));
        metrics.register(&mut registry);
        let shown = || {
            let mut shown = String::new();
            text::encode(&mut shown, &registry).unwrap();
            shown
        };
        let check = |lines: &[&str]| {
            let shown = shown();
            for line in lines {
                assert!(shown.lines().any(|shown| shown == *line), "{line} is missing in {shown}");
            }
        };
        check(&[
            "waymark_control_jobs{status=\"ENQUEUED\"} 0",
            "waymark_control_jobs{status=\"CANCELLING\"} 0",
            "waymark_control_jobs_ended_total{status=\"FAILED\"} 0",
            "waymark_control_jobs_waiting_seconds 0.0",
            "waymark_control_job_entries_failed_total 0",
        ]);
        let open = vec![(JobStatus::Executing, 2), (JobStatus::Enqueued, 3)];
        metrics.stand(&Standing { open, waiting_seconds: 1.5 });
        check(&[
            "waymark_control_jobs{status=\"EXECUTING\"} 2",
            "waymark_control_jobs{status=\"ENQUEUED\"} 3",
            "waymark_control_jobs{status=\"STARTING\"} 0",
            "waymark_control_jobs_waiting_seconds 1.5",
        ]);
        metrics.stand(&Standing::default());
        check(&["waymark_control_jobs{status=\"EXECUTING\"} 0", "waymark_control_jobs_waiting_seconds 0.0"]);
    }
}
