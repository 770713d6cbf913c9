//! A redirection prepared for serving.

use std::sync::Arc;

use http::HeaderValue;
use shared::{
    availability::Closed,
    redirect::{Redirect, RedirectKey},
    target::{Target, Template},
    time::UnixMillis,
};

/// A redirection prepared for serving: the bytes of `Location` are built when the record arrives.
#[derive(Debug)]
pub(crate) struct Served {
    /// The key it is found by.
    pub(crate) key: RedirectKey,
    /// The record.
    pub(crate) record: Arc<Redirect>,
    /// The target with its tags expanded.
    pub(crate) location: HeaderValue,
}

impl Served {
    /// Prepares a record; the reason when it cannot be served.
    pub(crate) fn new(key: &RedirectKey, record: Arc<Redirect>) -> Result<Self, String> {
        let links = record.digital_link.as_deref();
        let is_same = match links {
            Some(_) => record.short_id.as_str() == &*key.folded,
            None => record.short_id.as_str().eq_ignore_ascii_case(&key.folded),
        };
        if record.domain.as_str() != &*key.domain || !is_same {
            return Err(format!("the record of {}/{} has another key", key.domain, key.folded));
        }
        if let Some(links) = links {
            resolver::check(links)?;
            // Each request fills in a target of its own, and no path names the record as a short id (`DomainPaths::short_id_in`).
            let location = HeaderValue::from_static("");
            return Ok(Self { key: key.clone(), record, location });
        }
        let target = Target::parse(&record.target).map_err(|fault| format!("the target {fault}"))?;
        let location = target.expand(&record.tag_values());
        let location = HeaderValue::try_from(location).map_err(|_| "the target is no header value")?;
        let served = Self { key: key.clone(), record, location };
        served.ended_location()?;
        Ok(served)
    }

    /// Where it leads while it is closed, if anywhere. It is built for each request, so that links without one need no memory
    /// for it.
    pub(crate) fn ended_location(&self) -> Result<Option<HeaderValue>, String> {
        let availability = self.record.availability.as_deref();
        let Some(url) = availability.and_then(|availability| availability.ended_url.as_deref()) else {
            return Ok(None);
        };
        let target = Target::parse(url).map_err(|fault| format!("the ended URL {fault}"))?;
        let location = HeaderValue::try_from(target.expand(&self.record.tag_values()));
        location.map(Some).map_err(|_| "the ended URL is no header value".to_owned())
    }

    /// Whether it ends after a number of scans, so that they are counted.
    pub(crate) fn is_limited(&self) -> bool {
        self.record.availability.as_ref().is_some_and(|availability| availability.max_scans.is_some())
    }

    /// Why it does not lead to its target at a moment, whatever was scanned here.
    pub(crate) fn closed(&self, now: UnixMillis) -> Option<Closed> {
        self.record.availability.as_ref()?.closed(now)
    }

    /// Where a target of a rule leads for this redirection.
    pub(crate) fn fill_in(&self, target: &Template) -> String {
        target.expand(&self.record.tag_values())
    }
}
