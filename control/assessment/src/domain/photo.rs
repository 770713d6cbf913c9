//! Photos of finders: which are taken, and what is left out of them before they are stored.
//!
//! A phone writes into a photo where and when it was taken, by which device, and a small copy of it. Only the parts are copied that
//! make the picture; everything else stays out, also what follows the end of the picture. Nothing is decoded.

mod jpeg;
mod png;
mod webp;

/// Most bytes of a form with its photo: what phones send of a photo of 12 million pixels.
pub const MAX_FORM_BYTES: usize = 5 << 20;
/// Most bytes of photos to an account within a day, some hundred of usual ones: strangers send them.
pub const MAX_OF_DAY_BYTES: u64 = 256 << 20;
/// Most pixels: sensors of phones have 50 million in their usual modes, and a program that shows one takes four bytes for each.
const MAX_PIXELS: u64 = 64_000_000;

/// The types of photos that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhotoType {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
}

impl PhotoType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Jpeg, Self::Png, Self::WebP];

    /// The media type, which is stored, too.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
        }
    }

    /// How names of its files end.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::WebP => "webp",
        }
    }

    /// The type of bytes, by the first of them.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => bytes.starts_with(png::SIGNATURE).then_some(Self::Png),
        }
    }
}

/// A photo without anything but the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Photo {
    /// Its type.
    pub kind: PhotoType,
    /// What is stored of it.
    pub bytes: Vec<u8>,
}

/// A photo that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPhoto {
    /// The key of its bytes among the blobs.
    pub blob: String,
    /// Its type.
    pub kind: PhotoType,
    /// How many bytes it has.
    pub size_bytes: u64,
}

/// Why a photo is not taken; a sentence without the name of the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPhoto {
    /// Its first bytes are those of no type that is taken.
    #[error("must be a JPEG, a PNG or a WebP")]
    Type,
    /// It ends early, or has a form that browsers do not show.
    #[error("is damaged, or in a form that is not taken")]
    Form,
    /// It is too large when it is shown.
    #[error("must have at most {most} pixels", most = MAX_PIXELS)]
    Pixels,
}

impl Photo {
    /// Copies the picture out of what was sent.
    ///
    /// # Errors
    /// [`InvalidPhoto`].
    pub fn read(sent: &[u8]) -> Result<Self, InvalidPhoto> {
        let kind = PhotoType::of(sent).ok_or(InvalidPhoto::Type)?;
        let picture = match kind {
            PhotoType::Jpeg => jpeg::picture(sent),
            PhotoType::Png => png::picture(sent),
            PhotoType::WebP => webp::picture(sent),
        };
        let Picture { bytes, width, height } = picture.ok_or(InvalidPhoto::Form)?;
        match u64::from(width) * u64::from(height) {
            0 => Err(InvalidPhoto::Form),
            1..=MAX_PIXELS => Ok(Self { kind, bytes }),
            _ => Err(InvalidPhoto::Pixels),
        }
    }
}

/// What is copied of a photo.
struct Picture {
    bytes: Vec<u8>,
    /// In pixels.
    width: u32,
    /// In pixels.
    height: u32,
}

#[cfg(test)]
mod tests;
