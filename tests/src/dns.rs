//! A DNS server for TXT records and addresses of this machine, over UDP.

use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use tokio::{net::UdpSocket, task::JoinHandle};

/// The types of a TXT record and of an address, and the class of the Internet.
const TXT: [u8; 2] = [0, 16];
const A: [u8; 2] = [0, 1];
const IN: [u8; 2] = [0, 1];

/// Bytes of the header of a message.
const HEAD: usize = 12;

type Records = Arc<Mutex<Known>>;

#[derive(Debug, Default)]
struct Known {
    texts: HashMap<String, Vec<String>>,
    /// Names that lead to this machine.
    hosts: HashSet<String>,
}

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
        records.texts.insert(name.to_owned(), texts.iter().map(|text| (*text).to_owned()).collect());
    }

    /// Lets a name lead to 127.0.0.1.
    pub fn point(&self, name: &str) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).hosts.insert(name.to_owned());
    }
}

/// The answer to a query with one question; `None` for what is no query.
fn answer(query: &[u8], records: &Records) -> Option<Vec<u8>> {
    let (name, end) = name_at(query, HEAD)?;
    let question = query.get(HEAD..end + 4)?;
    let asked = query.get(end..end + 4)?;
    let (texts, is_host) = {
        let known = records.lock().unwrap_or_else(PoisonError::into_inner);
        (known.texts.get(&name).cloned().unwrap_or_default(), known.hosts.contains(&name))
    };
    let found: Vec<([u8; 2], Vec<u8>)> = if asked == [TXT, IN].concat() {
        texts.iter().map(|text| Some((TXT, text_data(text)?))).collect::<Option<_>>()?
    } else if asked == [A, IN].concat() && is_host {
        vec![(A, Ipv4Addr::LOCALHOST.octets().to_vec())]
    } else {
        Vec::new()
    };
    // Response, authoritative, recursion as desired and available; then no error, or a name that does not exist.
    let code = if texts.is_empty() && !is_host { 3 } else { 0 };
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
    for (kind, data) in found {
        // The name of the question, its type and class, and no time to keep it.
        answer.extend([0xc0, 12]);
        answer.extend([kind, IN].concat());
        answer.extend([0; 4]);
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

/// A text in parts of up to 255 bytes, each behind its length.
fn text_data(text: &str) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for part in text.as_bytes().chunks(255) {
        data.push(u8::try_from(part.len()).ok()?);
        data.extend_from_slice(part);
    }
    Some(data)
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
