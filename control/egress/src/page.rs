//! A look at a page: whether it is there.

use reqwest::{
    Method,
    header::{LOCATION, USER_AGENT},
};
use tenants::domain::egress::check_page;

use super::{EgressClient, text_of};

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// What a look says that it is. `bot` keeps it out of the hits of short URLs, also of our own (`shared/src/user_agent.rs`).
const AGENT: &str = concat!("Waymark/", env!("CARGO_PKG_VERSION"), " (link check bot)");

/// What answered a look at a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status of the answer.
    pub status: u16,
    /// Its URL, behind redirects.
    pub url: String,
}

impl EgressClient {
    /// Looks whether a page is there: by `HEAD`, and by `GET` where that finds none. Redirects are followed to public addresses
    /// at the ports of pages alone, and no body is read. It is a robot to whoever counts visits.
    ///
    /// # Errors
    /// Why there is no answer, as a short text without anything of the answer or of the network within.
    pub async fn look(&self, url: &str) -> Result<Page, String> {
        match self.follow(&Method::HEAD, url).await {
            Ok(page) if page.status < 400 => Ok(page),
            // Some servers know no HEAD.
            Ok(_) | Err(_) => self.follow(&Method::GET, url).await,
        }
    }

    async fn follow(&self, method: &Method, url: &str) -> Result<Page, String> {
        let mut url = check_page(url, self.loopback).map_err(|fault| format!("the URL {fault}"))?;
        for _ in 0..=MAX_REDIRECTS {
            let request = self.client.request(method.clone(), url.clone()).header(USER_AGENT, AGENT);
            let response = request.send().await.map_err(|error| text_of(&error))?;
            let status = response.status();
            let Some(next) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) else {
                return Ok(Page { status: status.as_u16(), url: url.into() });
            };
            let next = next.to_str().ok().and_then(|text| url.join(text).ok());
            let next = next.ok_or("it redirects to no URL")?;
            url = check_page(next.as_str(), self.loopback)
                .map_err(|fault| format!("the URL that it redirects to {fault}"))?;
        }
        Err(format!("it redirects more than {MAX_REDIRECTS} times"))
    }
}
