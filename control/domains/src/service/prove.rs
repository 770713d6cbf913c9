//! Looks for the proof of a claim: a TXT record, or a file.

use std::time::Duration;

use events::egress::EgressClient;
use reqwest::{RequestBuilder, StatusCode};
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
        Err(no_file) => no_file,
    };
    let why = format!("{name}: {no_record}. {url}: {no_file}.");
    // A domain that a file proved needs no record: while its host is silent, nobody knows.
    let is_silent = claim.proof == Some(Proof::File) && matches!(no_file, NoFile::Unanswered(_));
    if is_answered && !is_silent { Finding::Missing(why) } else { Finding::Unanswered(why) }
}

/// Why a URL has no proof, as a short text without anything of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFile {
    /// The answer is another one, or the URL may not be asked for.
    #[error("{0}")]
    Missing(String),
    /// There is no answer, or a server says that it fails.
    #[error("{0}")]
    Unanswered(String),
}

/// Whether a URL answers with a text, with blanks around it at most. Redirects are not followed.
///
/// # Errors
/// Why it does not.
pub async fn read_file(egress: &EgressClient, url: &str, content: &str) -> Result<(), NoFile> {
    let read = read(egress.get(url).map_err(NoFile::Missing)?, content);
    let late = || NoFile::Unanswered("there is no answer in time".to_owned());
    timeout(TIMEOUT, read).await.unwrap_or_else(|_| Err(late()))
}

async fn read(request: RequestBuilder, content: &str) -> Result<(), NoFile> {
    let no_answer = |_: reqwest::Error| NoFile::Unanswered("there is no answer over HTTPS".to_owned());
    let mut response = request.send().await.map_err(no_answer)?;
    let status = response.status();
    if status != StatusCode::OK {
        let why = format!("the status is {}, and not 200", status.as_u16());
        return Err(if status.is_server_error() { NoFile::Unanswered(why) } else { NoFile::Missing(why) });
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if bytes.len() + chunk.len() > MAX_FILE {
            return Err(NoFile::Missing(format!("the file has more than {MAX_FILE} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    let is_proof = bytes.trim_ascii() == content.as_bytes();
    if is_proof { Ok(()) } else { Err(NoFile::Missing("the file has another text".to_owned())) }
}
