//! A logo: a `data:` URL of a PNG or an SVG, which whoever stored it has checked.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD};
use png::{ColorType, Decoder, Limits, Transformations};

use super::QrError;

const PNG: &str = "data:image/png;base64,";
const SVG: &str = "data:image/svg+xml;base64,";

/// Most bytes that decoding may take beside the picture.
const DECODER_BYTES: usize = 8 << 20;

/// The pixels of a PNG.
pub(super) struct Logo {
    width: usize,
    height: usize,
    /// Red, green, blue and how opaque, row by row.
    pixels: Vec<[u8; 4]>,
}

impl Logo {
    /// Reads a PNG.
    ///
    /// # Errors
    /// It is an SVG, or no picture.
    pub(super) fn read(url: &str) -> Result<Self, QrError> {
        if url.starts_with(SVG) {
            return Err(QrError::LogoIsSvg);
        }
        let text = url.strip_prefix(PNG).ok_or(QrError::NoLogo)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| QrError::NoLogo)?;
        decode(&bytes).ok_or(QrError::NoLogo)
    }

    /// The largest size within a rectangle that has the proportions of the logo, at least a pixel a side.
    pub(super) fn fitting(&self, width: usize, height: usize) -> (usize, usize) {
        if self.width * height > self.height * width {
            (width, (self.height * width / self.width).max(1))
        } else {
            ((self.width * height / self.height).max(1), height)
        }
    }

    /// Colour and opacity of a pixel (its place, and how many there are, along each side) of a picture of another size.
    pub(super) fn average(&self, x: (usize, usize), y: (usize, usize)) -> ([u8; 3], u32) {
        let range = |(at, of): (usize, usize), side: usize| {
            let start = at * side / of;
            start..((at + 1) * side / of).max(start + 1).min(side)
        };
        let (mut sums, mut opacity, mut count) = ([0_u64; 3], 0_u64, 0_u64);
        for row in range(y, self.height) {
            for column in range(x, self.width) {
                let [red, green, blue, alpha] = self.pixels[row * self.width + column].map(u64::from);
                for (sum, part) in sums.iter_mut().zip([red, green, blue]) {
                    *sum += part * alpha;
                }
                opacity += alpha;
                count += 1;
            }
        }
        (sums.map(|sum| (sum / opacity.max(1)) as u8), (opacity / count.max(1)) as u32)
    }
}

/// Whether a URL may stand in an attribute of an SVG: it is one of a picture in base64.
pub(super) fn is_url(url: &str) -> bool {
    let data = url.strip_prefix(PNG).or_else(|| url.strip_prefix(SVG));
    data.is_some_and(|data| {
        data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
    })
}

fn decode(bytes: &[u8]) -> Option<Logo> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: DECODER_BYTES });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16 | Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let mut buffer = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut buffer).ok()?;
    let pixels: Vec<[u8; 4]> = match info.color_type {
        ColorType::Rgba => buffer.chunks_exact(4).filter_map(|pixel| pixel.try_into().ok()).collect(),
        ColorType::GrayscaleAlpha => {
            buffer.chunks_exact(2).map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect()
        }
        ColorType::Rgb | ColorType::Grayscale | ColorType::Indexed => return None,
    };
    let (width, height) = (info.width as usize, info.height as usize);
    (width > 0 && height > 0 && pixels.len() == width * height).then_some(Logo { width, height, pixels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logos_are_scaled_with_their_proportions() {
        let logo = Logo { width: 4, height: 2, pixels: vec![[8, 16, 32, 255]; 8] };
        assert_eq!(logo.fitting(100, 100), (100, 50));
        assert_eq!(logo.fitting(100, 10), (20, 10));
        assert_eq!(logo.fitting(1, 1), (1, 1));
        assert_eq!(logo.average((0, 1), (0, 1)), ([8, 16, 32], 255));
        assert_eq!(logo.average((99, 100), (0, 100)), ([8, 16, 32], 255));
        let clear = Logo { width: 1, height: 2, pixels: vec![[255, 0, 0, 255], [0; 4]] };
        assert_eq!(clear.average((0, 1), (0, 1)), ([255, 0, 0], 127), "half of it is clear");
    }

    #[test]
    fn only_pictures_are_urls() {
        assert!(is_url("data:image/png;base64,AAA+/=") && is_url("data:image/svg+xml;base64,"));
        for bad in
            ["", "https://a.example/x.png", "data:image/png;base64,\"/><script", "data:text/html;base64,AA"]
        {
            assert!(!is_url(bad), "{bad}");
        }
        assert!(matches!(Logo::read("data:image/svg+xml;base64,AA=="), Err(QrError::LogoIsSvg)));
        assert!(matches!(Logo::read("data:image/png;base64,AA=="), Err(QrError::NoLogo)));
    }
}
