//! HTTP lists: their parameters, and the `Link` to the next page (`control/README.md`, "Lists").

use std::fmt::Write;

use axum::{
    Json,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use kernel::{
    domain::{
        access::Actor,
        filter::Filter,
        listing::{ListRequest, ListType},
        page::{self, Binding, MAX_PER_PAGE, Page, PageRequest, SortOrder},
        property::{self, MAX_TIME_MS},
    },
    service::Core,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use shared::{filter::Fact, time::UnixMillis};

use crate::{
    access::TOKEN_PARAMETER, api_error::ApiError, extract::Query, request_error::RequestError,
    request_info::RequestInfo,
};

/// Most ids in `ids=`.
const MAX_IDS: usize = 100;

const PAGE_TOKEN: &str = "nextPageToken";

/// The deprecated page number. With a token it does not position the page, and is only counted up.
const PAGE_NUMBER: &str = "page";

/// Last page that can be requested by number: the rows before it are read and skipped.
pub const MAX_PAGE: u32 = 100_000;

/// The header that says how many there are.
pub const RESULT_COUNT: HeaderName = HeaderName::from_static("x-result-count");

/// Characters that `encodeURIComponent` does not encode, except `!'()*`, which may be encoded.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What a list is asked for, and what its next page is bound to.
#[derive(Debug)]
pub struct Listing {
    /// The part that the service needs.
    pub request: ListRequest,
    /// Whether `scopes` are shown.
    pub with_scopes: bool,
    /// Whether `context` is shown.
    pub with_context: bool,
    account: String,
    /// The query without the page token.
    query: Vec<(String, String)>,
    info: RequestInfo,
}

impl Listing {
    /// Reads the parameters that a list of this type has.
    pub fn parse(
        core: &Core,
        actor: &Actor,
        info: RequestInfo,
        query: &Query,
        kind: &ListType,
    ) -> Result<Self, ApiError> {
        Self::parse_of(core, actor.account.as_str(), info, query, kind)
    }

    /// The same of a list whose pages belong to `owner`, where that is no account.
    pub fn parse_of(
        core: &Core,
        owner: &str,
        info: RequestInfo,
        query: &Query,
        kind: &ListType,
    ) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let per_page = number(query, "perPage", MAX_PER_PAGE, page::DEFAULT_PER_PAGE, &mut faults);
        let sort = match query.find("sortOrder") {
            None | Some("DESCENDING") => SortOrder::Descending,
            Some("ASCENDING") => SortOrder::Ascending,
            Some(_) => {
                faults.push("sortOrder must be ASCENDING or DESCENDING.".to_owned());
                SortOrder::Descending
            }
        };
        let ids = query.find("ids").and_then(|text| parse_ids(text).map_err(|fault| faults.push(fault)).ok());
        let filter = query
            .find("filter")
            .and_then(|text| Filter::parse(text, kind.fields).map_err(|fault| faults.push(fault)).ok());
        let project = query.find("project").and_then(|text| {
            text.parse().map_err(|_| faults.push("project must be the id of a project.".to_owned())).ok()
        });
        let number = if kind.numbered { number(query, PAGE_NUMBER, MAX_PAGE, 1, &mut faults) } else { 1 };
        let with_scopes = flag(query, "withScopes", &mut faults);
        let with_context = flag(query, "context", &mut faults);
        ApiError::check_parameters(faults)?;
        let mut listing = Self {
            request: ListRequest {
                page: PageRequest { per_page, sort, after: None, number },
                ids,
                filter,
                project,
                counted: kind.numbered,
            },
            with_scopes,
            with_context,
            account: owner.to_owned(),
            query: query.all.iter().filter(|(name, _)| !is_position(kind, name)).cloned().collect(),
            info,
        };
        if let Some(token) = query.find(PAGE_TOKEN) {
            let after = listing.bound(|binding| page::read_token(&core.secrets.page_token, binding, token));
            listing.request.page.after = Some(after.ok_or(RequestError::ForeignPageToken)?);
        }
        Ok(listing)
    }

    /// Whether the filter and `ids` admit something that has only a name.
    #[must_use]
    pub fn admits_name(&self, name: &str) -> bool {
        let holds = |filter: &Filter| filter.expr().eval(&mut |term| term.admits(Fact::Text(name)));
        self.request.filter.as_ref().is_none_or(holds)
    }

    /// Reads the parameters of a history: those of a list, and the times `from` and `to`, both inclusive.
    pub fn history(
        core: &Core,
        actor: &Actor,
        info: RequestInfo,
        query: &Query,
        list: &ListType,
    ) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let (from, to) = (time(query, "from", &mut faults), time(query, "to", &mut faults));
        ApiError::check_parameters(faults)?;
        let mut listing = Self::parse(core, actor, info, query, list)?;
        let conditions =
            listing.request.filter.take().into_iter().chain(Filter::between("timestamp", from, to));
        listing.request.filter = conditions.reduce(Filter::and);
        Ok(listing)
    }

    /// The answer: the page's items as an array, and the `Link` to the next page if there is one.
    pub fn answer<T, B: Serialize>(&self, core: &Core, page: Page<T>, body: impl Fn(T) -> B) -> Response {
        let items: Vec<B> = page.items.into_iter().map(body).collect();
        let mut response = Json(items).into_response();
        let link = page.next.and_then(|next| {
            let token = self.bound(|binding| page::write_token(&core.secrets.page_token, binding, next));
            HeaderValue::from_str(&self.link(&token)).ok()
        });
        if let Some(link) = link {
            response.headers_mut().insert(header::LINK, link);
        }
        if let Some(total) = page.total.filter(|_| self.request.counted) {
            response.headers_mut().insert(RESULT_COUNT, total.into());
        }
        response
    }

    fn bound<R>(&self, with: impl FnOnce(Binding<'_>) -> R) -> R {
        // A client may send its key in the header or in the query: the account is what counts.
        let query: Vec<_> = self.query.iter().filter(|(name, _)| name != TOKEN_PARAMETER).cloned().collect();
        with(Binding { account: &self.account, path: &self.info.path, query: &query })
    }

    /// The next page's URL, whole and percent-encoded once more: clients split the header on `,` `;` `=`.
    fn link(&self, token: &str) -> String {
        let mut url = format!("{}{}?", self.info.base, self.info.original_path);
        for (name, value) in &self.query {
            let (name, value) = (utf8_percent_encode(name, COMPONENT), utf8_percent_encode(value, COMPONENT));
            // Writing to a string cannot fail.
            let _ = write!(url, "{name}={value}&");
        }
        if self.request.counted {
            let _ = write!(url, "{PAGE_NUMBER}={}&", self.request.page.number.saturating_add(1));
        }
        url.push_str(PAGE_TOKEN);
        url.push('=');
        url.push_str(token);
        format!("<{}>; rel=\"next\"", utf8_percent_encode(&url, COMPONENT))
    }
}

/// Whether a parameter selects the position of the page, which tokens are not bound to.
fn is_position(kind: &ListType, name: &str) -> bool {
    name == PAGE_TOKEN || (kind.numbered && name == PAGE_NUMBER)
}

/// A parameter that is a timestamp; one that is given must be one, so that a slip removes nothing.
pub fn time(query: &Query, name: &str, faults: &mut Vec<String>) -> Option<UnixMillis> {
    let text = query.find(name)?;
    let is_plain = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    let found = text.parse().ok().filter(|_| is_plain).and_then(property::time);
    if found.is_none() {
        faults
            .push(format!("{name} must be an integer of milliseconds from -{MAX_TIME_MS} to {MAX_TIME_MS}."));
    }
    found
}

/// A parameter from 1 to `max`.
pub fn number(query: &Query, name: &str, max: u32, default: u32, faults: &mut Vec<String>) -> u32 {
    let Some(text) = query.find(name) else { return default };
    match text.parse::<u32>() {
        Ok(value) if (1..=max).contains(&value) && text.bytes().all(|byte| byte.is_ascii_digit()) => value,
        Ok(_) | Err(_) => {
            faults.push(format!("{name} must be a whole number from 1 to {max}."));
            default
        }
    }
}

/// A parameter that is `true` or `false`.
pub fn flag(query: &Query, name: &str, faults: &mut Vec<String>) -> bool {
    match query.find(name) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            faults.push(format!("{name} must be true or false."));
            false
        }
    }
}

/// The ids of `ids=`, each once.
///
/// # Errors
/// One is no id, or there are too many.
pub fn parse_ids(text: &str) -> Result<Vec<String>, String> {
    let mut ids: Vec<String> = Vec::new();
    for id in text.split(',').map(str::trim) {
        if !shared::id::is_valid(id) {
            return Err(format!(
                "ids: {:?} is not an id of 24 characters.",
                kernel::domain::limits::shorten(id)
            ));
        }
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    if ids.len() > MAX_IDS {
        return Err(format!("ids must hold at most {MAX_IDS} ids, not {}.", ids.len()));
    }
    Ok(ids)
}
