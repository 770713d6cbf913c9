//! A picture of one bit a dot.

use crate::place::{Group, Rect};

/// A picture; rows are padded to whole bytes, the highest bit of a byte is the leftmost dot, 1 is dark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bitmap {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Bitmap {
    /// All light.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, bytes: vec![0; width.div_ceil(8) * height] }
    }

    /// From its bytes; `None` where their number does not fit.
    pub(crate) fn from_bytes(width: usize, height: usize, bytes: Vec<u8>) -> Option<Self> {
        (width.div_ceil(8).checked_mul(height) == Some(bytes.len())).then_some(Self { width, height, bytes })
    }

    /// The groups of a label, whose units are dots.
    pub(crate) fn draw(width: u64, height: u64, groups: &[Group]) -> Self {
        let mut bitmap = Self::new(width as usize, height as usize);
        for Group { scale, x, y, rects } in groups {
            for rect in rects {
                bitmap.fill(&Rect {
                    x: x + rect.x * scale,
                    y: y + rect.y * scale,
                    width: rect.width * scale,
                    height: rect.height * scale,
                });
            }
        }
        bitmap
    }

    /// Darkens a rectangle, what of it lies inside.
    pub(crate) fn fill(&mut self, rect: &Rect) {
        let clip = |at: u64, most: usize| usize::try_from(at).unwrap_or(most).min(most);
        let (left, right) = (clip(rect.x, self.width), clip(rect.x + rect.width, self.width));
        let (top, bottom) = (clip(rect.y, self.height), clip(rect.y + rect.height, self.height));
        if left >= right || top >= bottom {
            return;
        }
        let stride = self.stride();
        let (first, last) = (left / 8, (right - 1) / 8);
        let head = 0xff_u8 >> (left % 8);
        let tail = 0xff_u8 << (7 - (right - 1) % 8);
        for row in self.bytes.chunks_exact_mut(stride).take(bottom).skip(top) {
            if first == last {
                row[first] |= head & tail;
            } else {
                row[first] |= head;
                row[first + 1..last].fill(0xff);
                row[last] |= tail;
            }
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// Bytes of a row.
    pub(crate) fn stride(&self) -> usize {
        self.width.div_ceil(8)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The rows from the top.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.stride().max(1))
    }

    /// Whether a dot is dark; all outside are light.
    pub(crate) fn is_dark(&self, x: usize, y: usize) -> bool {
        x < self.width
            && self.bytes.get(y * self.stride() + x / 8).is_some_and(|byte| byte >> (7 - x % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_darkens_exactly_its_dots() {
        for x in 0..24 {
            for width in 1..=26 - x {
                let mut bitmap = Bitmap::new(23, 3);
                bitmap.fill(&Rect { x, y: 1, width, height: 1 });
                for at in 0..23_u64 {
                    assert_eq!(
                        bitmap.is_dark(at as usize, 1),
                        (x..x + width).contains(&at),
                        "{x} {width} {at}"
                    );
                    assert!(!bitmap.is_dark(at as usize, 0) && !bitmap.is_dark(at as usize, 2));
                }
                assert!(bitmap.bytes().chunks(3).all(|row| row[2] & 1 == 0), "the padding is light");
            }
        }
    }
}
