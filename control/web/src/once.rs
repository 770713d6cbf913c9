//! `Idempotency-Key` on every operation whose row says so: a repeat gets the first response and has no further effect.
//!
//! The key is stored by the transaction that carries out the request ([`Claim`]), the response right after it.
//! Redirections store both in the transaction itself and are not handled here.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::{Extension, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use kernel::{
    domain::access::Actor,
    error::ServiceError,
    service::{Core, access, idempotency},
    store::{claim::Claim, idempotency::OwnedKey},
};
use secrets::keys::{NONCE_LEN, open_with, seal_with};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tracing::Instrument;

use crate::{
    access::{TOKEN_PARAMETER, find_key, is_welcome},
    api_error::ApiError,
    extract::{pairs, read_body},
    fair_share::Slot,
    known::{APPLIED, IGNORED},
    request_error::RequestError,
    request_info::RequestInfo,
    routes::{Idempotency, Policy},
};

/// The header.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How long a repeat waits for the first request, which is still under way.
const PATIENCE: Duration = Duration::from_secs(10);
/// Poll interval.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Largest answer that is kept; none that a create gives comes near it.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Parameters that are not part of a request's identity.
const NO_PART: [&str; 3] = [TOKEN_PARAMETER, "wait", "timeout"];

/// An answer as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    /// The body, readable only with the caller's API key and a secret of ours: it may hold a key that is stored
    /// nowhere else, and the caller's key may be a public one.
    #[serde(default)]
    encrypted: Option<String>,
    /// The body as releases before schema 41 kept it, readable with the caller's API key alone.
    #[serde(default, skip_serializing)]
    sealed: Option<String>,
}

/// The layer around every route.
pub async fn once(
    State(core): State<Arc<Core>>,
    policy: Option<Extension<Policy>>,
    request: Request,
    next: Next,
) -> Response {
    let is_kept = policy.is_some_and(|Extension(policy)| policy.idempotency == Idempotency::Kept);
    if !is_kept || !request.headers().contains_key(IDEMPOTENCY_KEY) {
        return next.run(request).await;
    }
    let Some(api_key) = find_key(request.headers(), request.uri().query()) else {
        return next.run(request).await;
    };
    let client = request.extensions().get::<RequestInfo>().and_then(|info| info.client);
    match access::identify_key(&core, &api_key, client).await {
        // It runs to its end also when the client leaves, so that the repeat finds an answer.
        Ok(known) if is_welcome(request.extensions(), &known) => {
            let run = async move {
                let made = carry_out(&core, &known.actor, &api_key, request, next).await;
                made.unwrap_or_else(IntoResponse::into_response)
            };
            match tokio::spawn(run.in_current_span()).await {
                Ok(response) => response,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(error) => ApiError::from(ServiceError::Internal(error.to_string())).into_response(),
                },
            }
        }
        // The operation reports the fault of the key.
        Ok(_) | Err(_) => next.run(request).await,
    }
}

async fn carry_out(
    core: &Arc<Core>,
    actor: &Actor,
    api_key: &str,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let key = parse(request.headers())?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(Request::from_parts(parts.clone(), body)).await?;
    let slot = Slot::of(&parts.extensions);
    let path = parts.extensions.get::<RequestInfo>().map_or("", |info| &info.path);
    let said = said(actor, path, parts.uri.query().unwrap_or_default(), &bytes);
    let at = core.clock.now();
    let claim = Arc::new(Claim::new(actor.account, OwnedKey::new(actor, key), said, at.0));
    if let Some(found) = idempotency::find(core, &claim).await? {
        return replay(core, &claim, api_key, found).await;
    }
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(claim.clone());
    let response = next.run(request).await;
    if claim.is_lost() {
        // One that was not carried out has no place.
        slot.give_back();
        let found = idempotency::find(core, &claim).await?.unwrap_or_default();
        return replay(core, &claim, api_key, found).await;
    }
    if !claim.is_written() && !response.status().is_success() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, MAX_ANSWER_BYTES)
        .await
        .map_err(|error| ServiceError::Internal(format!("an answer cannot be kept: {error}")))?;
    let headers = [header::LOCATION, header::CONTENT_TYPE, IGNORED, APPLIED]
        .into_iter()
        .filter_map(|name| Some((name.to_string(), parts.headers.get(&name)?.to_str().ok()?.to_owned())));
    let kept = Kept {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        encrypted: Some(encrypt(core, &claim, api_key, &bytes)?),
        sealed: None,
    };
    idempotency::settle(core, &claim, json!({"at": claim.at_ms, "answer": kept})).await;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// The answer of the first request, as soon as there is one.
async fn replay(core: &Core, claim: &Claim, api_key: &str, mut found: Value) -> Result<Response, ApiError> {
    let begun = Instant::now();
    while found.is_null() && begun.elapsed() < PATIENCE {
        tokio::time::sleep(LOOK_EVERY).await;
        found = idempotency::find(core, claim).await?.unwrap_or_default();
    }
    if found.is_null() {
        return Err(RequestError::FirstRequestOpen.into());
    }
    let unreadable = || ServiceError::Internal("a kept answer cannot be read".to_owned());
    let kept: Kept = serde_json::from_value(found["answer"].take()).map_err(|_| unreadable())?;
    let first =
        Claim::new(claim.account, claim.key.clone(), claim.request, found["at"].as_i64().unwrap_or(0));
    let bytes = match (kept.encrypted, kept.sealed) {
        (Some(text), _) => {
            Some(decrypt(core, &first, api_key, &text).ok_or(RequestError::FirstRequestOfOtherKey)?)
        }
        (None, Some(text)) => BASE64_STANDARD.decode(text).ok().map(|bytes| unseal(&first, api_key, bytes)),
        (None, None) => None,
    };
    let mut response = Response::new(Body::from(bytes.ok_or_else(unreadable)?));
    *response.status_mut() = StatusCode::from_u16(kept.status).map_err(|_| unreadable())?;
    for (name, value) in kept.headers {
        let name = HeaderName::try_from(name).map_err(|_| unreadable())?;
        response.headers_mut().insert(name, HeaderValue::try_from(value).map_err(|_| unreadable())?);
    }
    Ok(response)
}

/// The key of a request.
pub fn parse(headers: &HeaderMap) -> Result<String, RequestError> {
    let value = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
    let is_key = |key: &&str| (1..=255).contains(&key.len()) && !key.contains('\t');
    value.filter(is_key).map(str::to_owned).ok_or(RequestError::NoIdempotencyKey)
}

/// Hash of a request's identity: caller, path, parameters and body.
fn said(actor: &Actor, path: &str, query: &str, bytes: &[u8]) -> [u8; 32] {
    let query: Vec<_> = pairs(query).filter(|(name, _)| !NO_PART.contains(&name.as_str())).collect();
    let mut hash = Sha256::new();
    hash.update(json!([actor.kind.as_str(), actor.id, path, query]).to_string());
    match serde_json::from_slice::<Value>(bytes) {
        Ok(body) => hash.update(body.to_string()),
        Err(_) => hash.update(bytes),
    }
    hash.finalize().into()
}

/// The name of a kept answer, to which its ciphertext is bound.
fn name_of(claim: &Claim) -> String {
    json!([claim.account.as_str(), claim.key.as_sent(), claim.at_ms]).to_string()
}

/// The key of a caller's kept answers.
fn answer_key(core: &Core, api_key: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&core.secrets.kept_answer);
    hasher.update(api_key.as_bytes());
    hasher.finalize().into()
}

fn encrypt(core: &Core, claim: &Claim, api_key: &str, bytes: &[u8]) -> Result<String, ServiceError> {
    let mut nonce = [0; NONCE_LEN];
    core.random.fill(&mut nonce)?;
    let sealed = seal_with(&answer_key(core, api_key), &name_of(claim), bytes, nonce);
    let too_long = || ServiceError::Internal("an answer is too long to be kept".to_owned());
    Ok(BASE64_STANDARD.encode(sealed.ok_or_else(too_long)?))
}

fn decrypt(core: &Core, claim: &Claim, api_key: &str, text: &str) -> Option<Vec<u8>> {
    open_with(&answer_key(core, api_key), &name_of(claim), &BASE64_STANDARD.decode(text).ok()?)
}

/// Decrypts what a release before schema 41 kept, within a day of the upgrade.
fn unseal(claim: &Claim, api_key: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_derive_key("waymark 2026-11 kept answers");
    hasher.update(
        json!([api_key, claim.account.as_str(), claim.key.as_sent(), claim.at_ms]).to_string().as_bytes(),
    );
    let mut stream = vec![0; bytes.len()];
    hasher.finalize_xof().fill(&mut stream);
    bytes.iter_mut().zip(stream).for_each(|(byte, pad)| *byte ^= pad);
    bytes
}
