//! Counts requests for short ids that do not exist, and reports them to control.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use shared::{
    networks::network_of,
    short_url::ShortDomain,
    wire::unknown::{UnknownCounts, UnknownReport, anywhere},
};
use tokio_util::sync::CancellationToken;

use crate::{Backing, BackingError, jittered};

/// Time between two reports.
const PERIOD: Duration = Duration::from_secs(5);

/// How long a stopping edge tries to deliver the last one.
const FINISH: Duration = Duration::from_secs(1);

/// Counts between two reports.
#[derive(Debug, Default)]
pub struct UnknownIds(Mutex<UnknownCounts>);

impl UnknownIds {
    /// Counts a request. An answer from the cache does so too: whoever guesses asks for other ids each time.
    /// The network is left out where the account of the domain omits personal data.
    pub fn add(&self, at_ms: i64, domain: &ShortDomain, ip: IpAddr) {
        let network = if domain.omits_personal_data() { anywhere() } else { network_of(ip) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(at_ms, domain.host.as_str(), network);
    }

    fn take(&self) -> UnknownCounts {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reports until `shutdown`, and once more then.
///
/// A report that was not answered is sent again under its number, so that it counts once. Meanwhile the next one gathers,
/// within its bounds. What a stopping edge cannot deliver is lost: it is a sign of forgery, and no scan.
pub async fn report<B: Backing>(
    backing: Arc<B>,
    ids: Arc<UnknownIds>,
    edge: Arc<str>,
    boot: i64,
    shutdown: CancellationToken,
) {
    let mut pending: Option<UnknownReport> = None;
    let mut number = 0;
    loop {
        let is_stopping = shutdown.run_until_cancelled(tokio::time::sleep(jittered(PERIOD))).await.is_none();
        let limit = if is_stopping { FINISH } else { Duration::MAX };
        // First the one that waits, then what gathered since.
        for _ in 0..2 {
            if pending.is_none() {
                let counts = ids.take().take();
                if counts.is_empty() {
                    break;
                }
                number += 1;
                pending = Some(UnknownReport { edge: (&*edge).into(), boot, number, counts });
            }
            let Some(report) = &pending else { break };
            match tokio::time::timeout(limit, backing.record_unknown(report)).await {
                Ok(Ok(())) => pending = None,
                // Sent again it would be refused again, and those behind it would never be sent.
                Ok(Err(error @ BackingError::Refused(_))) => {
                    tracing::warn!(%error, "a report of requests for unknown ids is dropped");
                    pending = None;
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "requests for unknown ids are reported later");
                    break;
                }
                Err(_) => break,
            }
        }
        if is_stopping {
            return;
        }
    }
}
