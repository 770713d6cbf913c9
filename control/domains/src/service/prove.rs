//! Looks for the proof of a claim: a TXT record, or a file.

use std::time::Duration;

use events::egress::EgressClient;
use reqwest::RequestBuilder;
use tokio::time::timeout;

use super::DomainState;
use crate::{
    domain::claim::{Claim, Finding, Proof},
    resolver::LookupError,
};

/// Most bytes of a file that are read.
const MAX_FILE: usize = 4 << 10;

/// Longest request for a file.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks for the proof of a claim now. The record comes first: it is the way for hosts that lead to our edges, which serve no
/// file of a proof.
pub async fn prove(state: &DomainState, claim: &Claim) -> Finding {
    let (name, content) = (claim.record_name(), claim.content());
    let (no_record, is_answered) = match state.resolver.texts(&name).await {
        Ok(texts) if texts.iter().any(|text| text.trim() == content) => return Finding::Proven(Proof::Txt),
        Ok(_) => ("no TXT record has this text".to_owned(), true),
        Err(error) => (error.to_string(), error == LookupError::NoRecord),
    };
    let url = claim.file_url();
    let no_file = match read_file(&state.egress, &url, &content).await {
        Ok(()) => return Finding::Proven(Proof::File),
        Err(why) => why,
    };
    let why = format!("{name}: {no_record}. {url}: {no_file}.");
    if is_answered { Finding::Missing(why) } else { Finding::Unanswered(why) }
}

/// Whether a URL answers with a text, with blanks around it at most. Redirects are not followed.
///
/// # Errors
/// Why it does not, as a short text without anything of the answer.
pub async fn read_file(egress: &EgressClient, url: &str, content: &str) -> Result<(), String> {
    let read = read(egress.get(url)?, content);
    timeout(TIMEOUT, read).await.unwrap_or_else(|_| Err("there is no answer in time".to_owned()))
}

async fn read(request: RequestBuilder, content: &str) -> Result<(), String> {
    let no_answer = |_: reqwest::Error| "there is no answer over HTTPS".to_owned();
    let mut response = request.send().await.map_err(no_answer)?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(format!("the status is {status}, and not 200"));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if bytes.len() + chunk.len() > MAX_FILE {
            return Err(format!("the file has more than {MAX_FILE} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    let is_proof = bytes.trim_ascii() == content.as_bytes();
    if is_proof { Ok(()) } else { Err("the file has another text".to_owned()) }
}
