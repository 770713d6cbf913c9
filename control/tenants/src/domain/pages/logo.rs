//! Checks a logo: a `data:` URL of a PNG or an SVG.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD};

use super::svg;

/// Most pixels of a side: twice what pages show, for screens with two pixels for one.
const MAX_SIDE: u32 = 512;
/// Most bytes of a PNG.
const MAX_PNG: usize = 64 << 10;
/// Most bytes of an SVG.
const MAX_SVG: usize = 32 << 10;
/// Most bytes that decoding may take beside the picture, which has 2 MiB at most.
const DECODER_BYTES: usize = 8 << 20;

const PNG: &str = "data:image/png;base64,";
const SVG: &str = "data:image/svg+xml;base64,";

/// The URL of a logo in one form.
///
/// # Errors
/// It is too large, or nothing that a page may show; without the subject of the sentence.
pub(super) fn check(url: &str) -> Result<String, String> {
    if let Some(text) = url.strip_prefix(PNG) {
        let bytes = decode(text, MAX_PNG)?;
        check_png(&bytes)?;
        return Ok(format!("{PNG}{}", BASE64_STANDARD.encode(bytes)));
    }
    if let Some(text) = url.strip_prefix(SVG) {
        let bytes = decode(text, MAX_SVG)?;
        let text = str::from_utf8(&bytes).map_err(|_| "is no UTF-8".to_owned())?;
        svg::check(text).map_err(|fault| format!("cannot be taken as an SVG: {fault}"))?;
        return Ok(format!("{SVG}{}", BASE64_STANDARD.encode(bytes)));
    }
    Err(format!("must begin with {PNG} or {SVG}"))
}

fn decode(text: &str, max: usize) -> Result<Vec<u8>, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| "is not base64".to_owned())?;
    if bytes.len() <= max {
        Ok(bytes)
    } else {
        Err(format!("must have at most {max} bytes, not {}", bytes.len()))
    }
}

/// Decodes the whole picture, so that nothing is sent to browsers that is none.
fn check_png(bytes: &[u8]) -> Result<(), String> {
    let broken = |error: png::DecodingError| format!("is no PNG that can be read: {error}");
    let limits = png::Limits { bytes: DECODER_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    let info = decoder.read_header_info().map_err(broken)?;
    let (width, height) = (info.width, info.height);
    if width > MAX_SIDE || height > MAX_SIDE {
        return Err(format!("must have at most {MAX_SIDE} x {MAX_SIDE} pixels, not {width} x {height}"));
    }
    let mut reader = decoder.read_info().map_err(broken)?;
    if reader.info().animation_control().is_some() {
        return Err("must not move: take a PNG with one picture".to_owned());
    }
    let size = reader.output_buffer_size().ok_or("is too large")?;
    reader.next_frame(&mut vec![0; size]).map_err(broken)?;
    reader.finish().map_err(broken)
}
