//! The head of an HTTP/1.1 answer: the few things that the load generator looks at.

/// An answer as the script sees it.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// Status code.
    pub(crate) status: u16,
    /// `Location`, if there is one.
    pub(crate) location: Option<&'a [u8]>,
}

/// The head of an answer.
pub(crate) struct Head<'a> {
    /// Status and target.
    pub(crate) answer: Answer<'a>,
    /// Bytes up to the body.
    pub(crate) length: usize,
    /// Bytes of the body, if it comes.
    pub(crate) content_length: usize,
}

/// Reads the head of an answer; `None` when it is not whole yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Head<'_>>, String> {
    let bad = || format!("not an answer: {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
    let (mut at, mut status, mut location, mut content_length) = (0, None, None, 0);
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = bytes[at..at + length].trim_ascii_end();
        at += length + 1;
        if line.is_empty() {
            let status = status.ok_or_else(bad)?;
            let answer = Answer { status, location };
            return Ok(Some(Head { answer, length: at, content_length }));
        }
        if status.is_none() {
            let code = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3)).ok_or_else(bad)?;
            status = Some(number(code).and_then(|code| u16::try_from(code).ok()).ok_or_else(bad)?);
            continue;
        }
        match line[0] | 0x20 {
            b'l' => location = value(line, b"location:").or(location),
            b'c' => {
                if let Some(text) = value(line, b"content-length:") {
                    content_length = number(text).ok_or_else(bad)?;
                }
            }
            b't' if value(line, b"transfer-encoding:").is_some() => {
                return Err("a chunked answer, which neither server should give".into());
            }
            _ => {}
        }
    }
    Ok(None)
}

fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = line.split_at_checked(name.len())?;
    head.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let text =
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://e.com/\r\ncontent-length: 12\r\n\r\n";
        for cut in 0..text.len() {
            assert!(parse(&text[..cut]).unwrap().is_none(), "{cut}");
        }
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.answer.status, head.length, head.content_length), (307, text.len(), 12));
        assert_eq!(head.answer.location, Some(&b"https://e.com/"[..]));
        for bad in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
