//! How long the tools try: a request that is not answered is sent again, and the operator is told at once.

use std::{
    error::Error,
    io::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{RequestBuilder, Response, StatusCode, header::RETRY_AFTER};

use super::client::{RequestError, chain, refused};

/// Tries of one request where work must go on: with the pauses below, about two minutes of a service that is away.
const TRIES: u32 = 16;

/// The longest that an answer which somebody waits for may take, with all tries.
const BRIEF: Duration = Duration::from_secs(10);

/// Longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Least time between two lines that say the same.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// How often and how long a request is tried.
#[derive(Debug, Clone)]
pub struct Patience {
    /// The longest that all tries may take; else they are counted.
    limit: Option<Duration>,
    /// What was said last, and when: requests under way at once say it once.
    said: Arc<Mutex<Option<(String, Instant)>>>,
}

impl Patience {
    /// For work that outlasts a restart of the service: some two minutes.
    #[must_use]
    pub fn long() -> Self {
        Self { limit: None, said: Arc::default() }
    }

    /// For an answer that somebody waits for: 10 seconds.
    #[must_use]
    pub fn brief() -> Self {
        Self { limit: Some(BRIEF), said: Arc::default() }
    }

    /// Sends a request until it is answered with anything but "later", with growing, jittered pauses.
    ///
    /// # Errors
    /// The service refused, or did not answer within the tries.
    pub async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, RequestError> {
        let begun = Instant::now();
        let mut last = String::new();
        for attempt in 0..TRIES {
            let left = self.limit.map(|limit| limit.saturating_sub(begun.elapsed()));
            let answer = match left {
                None => request().send().await,
                Some(left) => match tokio::time::timeout(left, request().send()).await {
                    Ok(answer) => answer,
                    Err(_) if last.is_empty() => {
                        return Err(RequestError::Unreachable(format!(
                            "no answer within {} s",
                            BRIEF.as_secs()
                        )));
                    }
                    Err(_) => break,
                },
            };
            let pause = match answer {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) if is_passing(response.status()) => {
                    last = format!("the service answers {}", response.status());
                    let named = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                    named.and_then(|value| value.parse().ok()).map(Duration::from_secs)
                }
                Ok(response) => return Err(refused(response).await),
                Err(error) if error.is_builder() => return Err(RequestError::Unreachable(chain(&error))),
                Err(error) => {
                    last = reason(&error);
                    None
                }
            };
            let grown = Duration::from_millis(100) * 2u32.saturating_pow(attempt.min(10));
            let pause = pause.unwrap_or(grown).min(MAX_PAUSE);
            // Between half and all of it: clients that were refused together do not come back together.
            let half = pause / 2;
            let pause = half + half.mul_f64(fraction());
            if self.limit.is_some_and(|limit| begun.elapsed() + pause >= limit) {
                break;
            }
            self.say(&last);
            tokio::time::sleep(pause).await;
        }
        let seconds = begun.elapsed().as_secs();
        Err(RequestError::Unreachable(format!("{last} (tried for {seconds} s)")))
    }

    /// Says why a request is tried again.
    fn say(&self, why: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = said.as_ref().is_some_and(|(text, at)| text == why && at.elapsed() < SAID_AGAIN);
        if !is_known {
            *said = Some((why.to_owned(), Instant::now()));
            // A closed pipe is no fault.
            let _ = writeln!(io::stderr().lock(), "waymark: retrying: {why}");
        }
    }
}

/// Why a request failed, in the words of the operating system where it has some.
fn reason(error: &reqwest::Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>()
            && !matches!(cause.kind(), io::ErrorKind::Other | io::ErrorKind::InvalidData)
        {
            let at = error.url().map(|url| url.origin().ascii_serialization());
            let at = at.map(|at| format!(" by {at}")).unwrap_or_default();
            return format!("{}{at}", cause.kind());
        }
        source = cause.source();
    }
    chain(error)
}

/// Whether a repeat may be answered otherwise.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// A random number from 0 to 1.
fn fraction() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
