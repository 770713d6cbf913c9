#![doc = include_str!("../README.md")]

mod capacity;
mod caption;
mod eps;
mod layout;
mod logo;
mod mask;
mod matrix;
mod pdf;
mod picture;
mod png;
mod request;
mod style;
mod styled;
mod svg;
mod symbol;

use self::{layout::Layout, matrix::Matrix};
pub use self::{
    layout::{MAX_PNG_SIDE, MIN_CAPTION_MM},
    request::{
        DEFAULT_PRINT_DPI, DEFAULT_SIDE, DPI_RANGE, QUIET_ZONE_RANGE, QrFault, QrRequest, SIDE_RANGE,
        SIZE_RANGE_NM, X_RANGE_NM,
    },
    style::MIN_CONTRAST,
    symbol::{GLYPH_SIZE, Symbol, glyph},
};

/// The renderer's version, part of every `ETag`: raised whenever the bytes of any image change.
///
/// The golden test in `tests/qr/golden.rs` fails when bytes change and this does not.
pub const RENDERER_VERSION: u32 = 2;

/// An image format a QR code is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// 1-bit greyscale raster.
    Png,
    /// One path on a white ground.
    Svg,
    /// One page, one path, 100 % black ink, no ground.
    Pdf,
    /// The same for older label software.
    Eps,
}

impl Format {
    /// Every format, in the order of preference where a client takes several.
    pub const ALL: [Self; 4] = [Self::Png, Self::Svg, Self::Pdf, Self::Eps];

    /// The media type of the image.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Pdf => "application/pdf",
            Self::Eps => "application/postscript",
        }
    }

    /// The suffix of a path or file that asks for this format, without the dot.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Eps => "eps",
        }
    }
}

/// The error correction level, in ascending redundancy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Ecl {
    /// About 7 % can be restored.
    L,
    /// About 15 %.
    M,
    /// About 25 %; the default of the API.
    #[default]
    Q,
    /// About 30 %.
    H,
}

impl Ecl {
    /// Every level, ascending.
    pub const ALL: [Self; 4] = [Self::L, Self::M, Self::Q, Self::H];

    /// The level's letter, as in `ecl=Q` and `X-QR-Ecl`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::L => "L",
            Self::M => "M",
            Self::Q => "Q",
            Self::H => "H",
        }
    }
}

/// A rendered image with what its response headers say.
#[derive(Debug, Clone, PartialEq)]
pub struct QrImage {
    /// The whole file.
    pub bytes: bytes::Bytes,
    /// The media type of `bytes`.
    pub content_type: &'static str,
    /// Version of the symbol, 1 to 40 (`X-QR-Version`).
    pub version: u8,
    /// Modules along one side, without the quiet zone (`X-QR-Modules`).
    pub modules: u32,
    /// The level, always the asked one (`X-QR-Ecl`).
    pub ecl: Ecl,
    /// The width of one module on paper, when print units were asked for (`X-QR-X-Dimension-Mm`).
    pub x_dimension_mm: Option<f64>,
    /// A strong entity tag with its quotes, made of the renderer's version and the bytes.
    pub etag: String,
}

impl QrImage {
    /// The value of `X-QR-X-Dimension-Mm`, to a ten-thousandth of a millimetre.
    #[must_use]
    pub fn x_dimension(&self) -> Option<String> {
        self.x_dimension_mm.map(|mm| format!("{mm:.4}"))
    }
}

/// Version and size of a payload's symbol, for the JSON of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QrFacts {
    /// Version of the symbol, 1 to 40.
    pub version: u8,
    /// Modules along one side, without the quiet zone: 21 to 177.
    pub modules: u32,
}

/// Why a valid request cannot be drawn for this payload; the caller answers 422.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QrError {
    /// No version of the standard holds the payload at the asked level.
    #[error("the payload of {length} bytes is too long for a QR code at level {}: even version 40 does not hold it", .ecl.as_str())]
    TooLarge {
        /// Bytes of the payload.
        length: usize,
        /// The asked level.
        ecl: Ecl,
    },
    /// The symbol does not fit the canvas with one pixel or printer dot a module.
    #[error(
        "the payload needs version {version_needed} ({modules} x {modules} modules) at level {}, which needs \
         at least {needed_px} x {needed_px} pixels with its quiet zone; {available_px} are available",
        .ecl.as_str()
    )]
    DoesNotFit {
        /// The version the payload needs at the asked level.
        version_needed: u8,
        /// Modules along one side of that version.
        modules: u32,
        /// The asked level.
        ecl: Ecl,
        /// Pixels (dots) a side at one a module, quiet zone included.
        needed_px: u32,
        /// Pixels (dots) there are for the symbol, beside the caption.
        available_px: u32,
    },
    /// No whole number of dots gives a module inside `xmin..xmax`, or the exact module is outside.
    #[error(
        "version {version_needed} would have modules of {x_mm:.3} mm at this size and density, \
         which is not allowed by xmin and xmax"
    )]
    XDimension {
        /// The version the payload needs at the asked level.
        version_needed: u8,
        /// The nearest module that could be printed, in millimetres.
        x_mm: f64,
    },
    /// A PNG would be larger than the limit of pixels.
    #[error("the image would be {width} x {height} pixels; at most {MAX_PNG_SIDE} a side are drawn as PNG")]
    CanvasTooLarge {
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// The short id is too long to be read at this size.
    #[error(
        "the short ID of {characters} characters cannot be drawn legibly at this size: \
         ask for at least {needed}, or for the template without it"
    )]
    CaptionDoesNotFit {
        /// Characters of the short id.
        characters: usize,
        /// The smallest width it needs, with its unit.
        needed: String,
    },
    /// The short id is empty or has a character beyond `[A-Za-z0-9_/-]`.
    #[error("the short ID has a character that cannot be drawn")]
    CaptionUnprintable,
    /// Readers do not tell the colours apart.
    #[error(
        "color and background have a contrast of {contrast:.2} : 1; a code needs {MIN_CONTRAST} : 1 at least"
    )]
    LowContrast {
        /// Their contrast by WCAG 2.2.
        contrast: f64,
    },
    /// The code is light on dark.
    #[error("color must be darker than background: many readers do not read inverted codes")]
    Inverted,
    /// A logo was asked for, and there is none.
    #[error("the domain has no logo: its visitors' pages have none")]
    NoLogo,
    /// A PNG was asked for with a logo that is an SVG.
    #[error(
        "the logo is an SVG, which only an SVG of the code can have: ask for .svg, or give the pages a PNG"
    )]
    LogoIsSvg,
    /// The code could not be read with a hole for a logo of a visible size.
    #[error(
        "a logo would cover too much of version {version} at level {}: \
         ask for a higher level (ecl=H) or a higher version (such as version=6)",
        .ecl.as_str()
    )]
    LogoCovers {
        /// The version of the symbol.
        version: u8,
        /// The asked level.
        ecl: Ecl,
    },
    /// What was drawn in colours and shapes was not read back.
    #[error("the code cannot be read back as it would look: ask for a larger one, or for squares")]
    Unreadable,
}

/// Draws `payload` as asked, with `caption` (the short id) below when the request says so.
///
/// The payload is taken as it is. The same arguments give the same bytes in every build.
///
/// # Errors
/// [`QrError`] when this payload or caption does not fit what was asked; nothing is clipped and
/// the level is never changed.
pub fn render(payload: &str, caption: &str, request: &QrRequest) -> Result<QrImage, QrError> {
    render_with(payload, caption, request, None)
}

/// [`render`] for a domain with a logo, a `data:` URL of a PNG or an SVG, which is drawn if the request says so.
///
/// A request with a style ([`QrRequest::is_styled`]) takes milliseconds, because the code is read back.
///
/// # Errors
/// Besides those of [`render`]: colours, shape or logo do not leave a code that can be read.
pub fn render_with(
    payload: &str,
    caption: &str,
    request: &QrRequest,
    logo: Option<&str>,
) -> Result<QrImage, QrError> {
    let ecl = request.ecl();
    let matrix = Matrix::encode(payload, ecl, request.version())
        .ok_or(QrError::TooLarge { length: payload.len(), ecl })?;
    let layout = Layout::new(&matrix, caption, request)?;
    let bytes = if request.is_styled() {
        styled::draw(&matrix, &layout, (payload, caption), request, logo)?
    } else {
        let rects = layout.rects(&matrix, caption);
        match request.format() {
            Format::Png => png::draw(&layout, &rects)?,
            Format::Svg => svg::draw(&layout, &rects),
            Format::Pdf => pdf::draw(&layout, &rects),
            Format::Eps => eps::draw(&layout, &rects),
        }
    };
    let hash = blake3::hash(&bytes).to_hex();
    Ok(QrImage {
        etag: format!("\"qr{RENDERER_VERSION}-{}\"", &hash[..32]),
        bytes: bytes.into(),
        content_type: request.format().content_type(),
        version: matrix.version,
        modules: matrix.size as u32,
        ecl,
        x_dimension_mm: layout.x_dimension_mm(),
    })
}

/// The version and size of `payload` at `ecl`, without drawing it.
///
/// # Errors
/// [`QrError::TooLarge`] when no version holds it.
pub fn describe(payload: &str, ecl: Ecl) -> Result<QrFacts, QrError> {
    let version =
        capacity::smallest_version(payload, ecl).ok_or(QrError::TooLarge { length: payload.len(), ecl })?;
    Ok(QrFacts { version, modules: capacity::modules(version) })
}

/// Only the matrix, as (modules a side, number of dark ones): for the benchmark of the encoder.
#[doc(hidden)]
pub fn bench_matrix(payload: &str, ecl: Ecl) -> Option<(usize, usize)> {
    let matrix = Matrix::encode(payload, ecl, 1)?;
    let dark = (0..matrix.size).flat_map(|y| (0..matrix.size).map(move |x| (x, y)));
    Some((matrix.size, dark.filter(|&(x, y)| matrix.is_dark(x, y)).count()))
}
