//! A DNS server for TXT records, over UDP on this machine.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use tokio::{net::UdpSocket, task::JoinHandle};

/// The type of a TXT record, and the class of the Internet.
const TXT: [u8; 2] = [0, 16];
const IN: [u8; 2] = [0, 1];

/// Bytes of the header of a message.
const HEAD: usize = 12;

type Records = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// A server that knows some records and says of every other name that it does not exist.
#[derive(Debug)]
pub struct DnsServer {
    /// Where it is asked.
    pub address: SocketAddr,
    records: Records,
    task: JoinHandle<()>,
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DnsServer {
    /// Starts a server without records.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start() -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let records = Records::default();
        let known = records.clone();
        let task = tokio::spawn(async move {
            let mut query = vec![0; 4_096];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                if let Some(answer) = answer(query.get(..length).unwrap_or_default(), &known) {
                    // A client that has gone asks no more.
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Ok(Self { address, records, task })
    }

    /// Sets the texts of a name; none of them: the name does not exist.
    pub fn set(&self, name: &str, texts: &[&str]) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.insert(name.to_owned(), texts.iter().map(|text| (*text).to_owned()).collect());
    }
}

/// The answer to a query with one question; `None` for what is no query.
fn answer(query: &[u8], records: &Records) -> Option<Vec<u8>> {
    let (name, end) = name_at(query, HEAD)?;
    let question = query.get(HEAD..end + 4)?;
    let is_txt = query.get(end..end + 4)? == [TXT, IN].concat();
    let texts =
        records.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned().unwrap_or_default();
    let found: &[String] = if is_txt { &texts } else { &[] };
    // Response, authoritative, recursion as desired and available; then no error, or a name that does not exist.
    let code = if texts.is_empty() { 3 } else { 0 };
    let mut answer = query.get(..2)?.to_vec();
    answer.extend([
        0x84 | (query.get(2)? & 1),
        0x80 | code,
        0,
        1,
        0,
        u8::try_from(found.len()).ok()?,
        0,
        0,
        0,
        0,
    ]);
    answer.extend_from_slice(question);
    for text in found {
        let parts: Vec<&[u8]> = text.as_bytes().chunks(255).collect();
        let length = u16::try_from(text.len() + parts.len()).ok()?;
        // The name of the question, its type and class, and no time to keep it.
        answer.extend([0xc0, 12]);
        answer.extend([TXT, IN].concat());
        answer.extend([0; 4]);
        answer.extend(length.to_be_bytes());
        for part in parts {
            answer.push(u8::try_from(part.len()).ok()?);
            answer.extend_from_slice(part);
        }
    }
    Some(answer)
}

/// The name at a place, in lower case, and where it ends.
fn name_at(message: &[u8], from: usize) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), from);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}
