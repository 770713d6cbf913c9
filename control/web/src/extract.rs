//! Extractors: JSON bodies, query parameters, path segments.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{Extensions, HeaderMap, Uri, header, request::Parts},
};
use futures_util::StreamExt;
use kernel::domain::limits::MAX_BODY_BYTES;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    access::TOKEN_PARAMETER, api_error::ApiError, fair_share::Slot, known::Ignored,
    request_error::RequestError,
};

/// Bytes of a body that is too large which are still read, so that the client gets to read the answer.
const MAX_DRAIN_BYTES: usize = 8 * MAX_BODY_BYTES;

/// A JSON body.
#[derive(Debug)]
pub struct JsonBody(pub Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let ignored = request.extensions().get::<Ignored>().cloned();
        let bytes = read_body(request).await?;
        if bytes.is_empty() {
            return Err(no_body());
        }
        read_known(&bytes, is_json, ignored).map(Self)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub struct OptionalJsonBody(pub Option<Value>);

impl<S: Send + Sync> FromRequest<S> for OptionalJsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let ignored = request.extensions().get::<Ignored>().cloned();
        let bytes = read_body(request).await?;
        if bytes.is_empty() {
            Ok(Self(None))
        } else {
            read_known(&bytes, is_json, ignored).map(|body| Self(Some(body)))
        }
    }
}

/// The refusal of a request whose body is missing.
pub fn no_body() -> ApiError {
    RequestError::BodyMissing.into()
}

/// A JSON body with the members that the operation knows.
fn read_known(bytes: &[u8], is_json: bool, ignored: Option<Ignored>) -> Result<Value, ApiError> {
    let mut body = read_json(bytes, is_json)?;
    if let Some(ignored) = ignored {
        ignored.check(&mut body)?;
    }
    Ok(body)
}

fn read_json(bytes: &[u8], is_json: bool) -> Result<Value, RequestError> {
    if !is_json {
        return Err(RequestError::NotJson);
    }
    serde_json::from_slice(bytes)
        .map_err(|error| RequestError::MalformedJson { line: error.line(), column: error.column() })
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The whole body, if it is not too large. From here on a request of a known caller has a place.
pub async fn read_body(request: Request) -> Result<Vec<u8>, ApiError> {
    read_up_to(request, MAX_BODY_BYTES).await
}

/// The same, for a body of at most so many bytes.
pub async fn read_up_to(request: Request, most: usize) -> Result<Vec<u8>, ApiError> {
    let slot = Slot::of(request.extensions());
    let mut stream = request.into_body().into_data_stream();
    let mut bytes = Vec::new();
    let mut size = 0_usize;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| RequestError::BodyBrokenOff)?;
        size = size.saturating_add(chunk.len());
        if size > MAX_DRAIN_BYTES {
            break;
        }
        if size <= most {
            bytes.extend_from_slice(&chunk);
        }
    }
    if size > most {
        return Err(RequestError::BodyTooLarge { most }.into());
    }
    slot.enter().await?;
    Ok(bytes)
}

/// The query's parameters, decoded, in order.
#[derive(Debug, Clone)]
pub struct Query {
    /// All of them: what the operation does not know stays in links to further pages.
    pub all: Vec<(String, String)>,
    /// The place of the request.
    pub slot: Slot,
    /// Says which the operation knows; without it, all.
    known: Option<Ignored>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = Self::read(&parts.uri, &parts.extensions);
        // No column holds U+0000, and Postgres fails on a parameter that does; keys are checked separately.
        let bad = query.known().find(|(name, value)| value.contains('\0') && *name != TOKEN_PARAMETER);
        if let Some((name, _)) = bad {
            return Err(RequestError::NulInQuery(name.to_owned()).into());
        }
        Ok(query)
    }
}

impl Query {
    /// The parameters of a request, whatever their values.
    pub fn read(uri: &Uri, extensions: &Extensions) -> Self {
        let known = extensions.get::<Ignored>().cloned();
        Self { slot: Slot::of(extensions), known, ..Self::of(uri.query().unwrap_or_default()) }
    }

    /// The parameters of a text, of any operation.
    pub fn of(query: &str) -> Self {
        Self { all: pairs(query).collect(), slot: Slot::default(), known: None }
    }

    /// The parameters that the operation knows.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_known = |name: &str| self.known.as_ref().is_none_or(|known| known.has_parameter(name));
        let all = self.all.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(move |(name, _)| is_known(name))
    }

    /// The first value of a parameter, if the operation knows it.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.known().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// The parameters of a query, decoded.
pub fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

/// Parts of the path, decoded; one that is not UTF-8 names nothing.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(_) => Err(RequestError::NoResource.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_json() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/json", false),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonx", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
