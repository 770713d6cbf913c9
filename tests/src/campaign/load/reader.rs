//! A reader of a campaign: what one edge answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    super::history::{Answer, DELETED, Read, Version},
    Shared, short_id,
};
use crate::product::PHONE;

/// A reader of one edge.
pub struct Reader {
    /// What is shared.
    pub shared: Arc<Shared>,
    /// A client of its own.
    pub http: reqwest::Client,
    /// Number of the edge.
    pub edge: u16,
    /// Base of the edge.
    pub url: String,
    /// Seed of its choices.
    pub seed: u64,
}

impl Reader {
    /// Reads keys at random until `stop`, with a pause after each read.
    pub async fn run(mut self, pause: Duration, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Some(key) = self.shared.pick(&mut self.seed) {
                let read = self.read(key).await;
                self.shared.history().reads.push(read);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One read.
    pub async fn read(&self, key: u32) -> Read {
        let start = self.shared.now();
        let request = self
            .http
            .get(format!("{}/{}", self.url, short_id(key)))
            .header("host", "tn.gg")
            .header("user-agent", PHONE)
            .timeout(Duration::from_secs(3));
        let answered = request.send().await;
        let end = self.shared.now();
        self.shared.requests.fetch_add(1, Ordering::SeqCst);
        let answer = match answered {
            Ok(response) => {
                let status = response.status().as_u16();
                self.shared.count_status(status.to_string());
                let location = response.headers().get("location").and_then(|value| value.to_str().ok());
                match (status, location.and_then(|text| version_in(text, key))) {
                    (307, Some(version)) => {
                        self.shared.sent.fetch_add(1, Ordering::SeqCst);
                        Answer::Version(version)
                    }
                    (404, _) => Answer::NotFound,
                    _ => Answer::Failed,
                }
            }
            Err(error) => {
                self.shared.count_status(if error.is_timeout() { "timeout" } else { "no answer" }.to_owned());
                self.shared.unseen.fetch_add(1, Ordering::SeqCst);
                Answer::Failed
            }
        };
        if answer == Answer::Failed {
            self.shared.errors.fetch_add(1, Ordering::SeqCst);
        }
        Read { edge: self.edge, key, start, end, answer }
    }
}

/// The version in a target; of another key, it is none that anybody wrote.
fn version_in(target: &str, key: u32) -> Option<Version> {
    let (of, version) = target.strip_prefix("https://example.com/")?.split_once('/')?;
    if of != key.to_string() {
        return Some(DELETED - 1);
    }
    version.parse().ok()
}
