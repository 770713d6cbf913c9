//! A blocking HTTP/1.1 client on one connection: for the few requests that are no load.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Status code.
    pub(crate) status: u16,
    /// `Location`, or nothing.
    pub(crate) location: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON: {} {:?}", self.status, String::from_utf8_lossy(&self.body)))
    }
}

/// One connection, kept.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    /// Sent with every request.
    key: Option<String>,
}

impl Client {
    /// Connects; `key` goes into `Authorization`.
    pub(crate) fn connect(host: SocketAddr, key: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&host, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let (host, key) = (host.to_string(), key.map(ToOwned::to_owned));
        Ok(Self { stream: BufReader::new(stream), host, key })
    }

    /// Asks for another host than the address, if there is one.
    pub(crate) fn set_host(&mut self, host: Option<&str>) {
        if let Some(host) = host {
            host.clone_into(&mut self.host);
        }
    }

    /// How long each further answer may take.
    pub(crate) fn set_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.stream.get_ref().set_read_timeout(Some(timeout))?)
    }

    /// Asks, and waits for the whole answer; `body` is JSON.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: Option<&str>) -> Result<Answer> {
        self.send(method, path, body.map(|body| ("application/json", body.as_bytes())))
    }

    /// The same with a body of any content type.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        if let Some(key) = &self.key {
            request += &format!("Authorization: {key}\r\nAccept: application/json\r\n");
        }
        if let Some((kind, body)) = body {
            request += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        let mut request = (request + "\r\n").into_bytes();
        request.extend_from_slice(body.map_or(&[], |(_, body)| body));
        self.stream.get_mut().write_all(&request)?;
        self.read(method == "HEAD").with_context(|| format!("{method} {path}"))
    }

    fn read(&mut self, is_head: bool) -> Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.with_context(|| format!("not an answer: {first:?}"))?;
        let (mut location, mut length, mut is_chunked) = (String::new(), 0, false);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { bail!("not a header: {line:?}") };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "location" => value.clone_into(&mut location),
                "content-length" => length = value.parse()?,
                "transfer-encoding" => is_chunked = true,
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let size = usize::from_str_radix(self.line()?.trim(), 16)?;
                self.take(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else if !is_head {
            self.take(length, &mut body)?;
        }
        Ok(Answer { status, location, body })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> Result<()> {
        let begun = body.len();
        body.resize(begun + length, 0);
        Ok(self.stream.read_exact(&mut body[begun..])?)
    }
}
