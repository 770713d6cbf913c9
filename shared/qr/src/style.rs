//! How a code on a screen may look: two colours, a shape of its modules, and whether it has a logo.

use super::QrError;

/// Least contrast of the colours, by WCAG 2.2. Readers tell dark from light by brightness, and a screen is seen in daylight.
pub const MIN_CONTRAST: f64 = 4.5;

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// The shape of dark modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// Squares.
    Square,
    /// Squares whose free corners are round.
    Rounded,
    /// Dots.
    Dots,
}

impl Shape {
    /// Every shape with its name in a query.
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("square", Self::Square), ("rounded", Self::Rounded), ("dots", Self::Dots)];
}

/// How a code looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Style {
    pub(super) color: Rgb,
    pub(super) background: Rgb,
    pub(super) shape: Shape,
    pub(super) logo: bool,
}

impl Style {
    /// Black squares on white, as print has them.
    pub(super) const PLAIN: Self =
        Self { color: [0; 3], background: [255; 3], shape: Shape::Square, logo: false };

    /// Refuses colours that readers do not tell apart, and light codes on dark.
    pub(super) fn check(self) -> Result<(), QrError> {
        let (dark, light) = (luminance(self.color), luminance(self.background));
        let contrast = (dark.max(light) + 0.05) / (dark.min(light) + 0.05);
        if contrast < MIN_CONTRAST {
            Err(QrError::LowContrast { contrast })
        } else if dark > light {
            Err(QrError::Inverted)
        } else {
            Ok(())
        }
    }
}

/// Relative luminance by WCAG 2.2, from 0 to 1.
fn luminance(color: Rgb) -> f64 {
    let [red, green, blue] = color.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// A colour of six hexadecimal digits.
pub(super) fn parse(text: &str) -> Option<Rgb> {
    // A sign is no digit, which the parser of numbers would take.
    if text.len() != 6 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let [_, red, green, blue] = u32::from_str_radix(text, 16).ok()?.to_be_bytes();
    Some([red, green, blue])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_dark_on_light_with_enough_contrast() {
        let check = |color: &str, background: &str| {
            let (color, background) = (parse(color).unwrap_or([9; 3]), parse(background).unwrap_or([9; 3]));
            Style { color, background, ..Style::PLAIN }.check()
        };
        assert_eq!(check("000000", "ffffff"), Ok(()));
        assert_eq!(check("767676", "FFFFFF"), Ok(()), "4.54 : 1");
        assert!(
            matches!(check("777777", "ffffff"), Err(QrError::LowContrast { contrast }) if contrast > 4.4)
        );
        assert!(matches!(check("ffff00", "ffffff"), Err(QrError::LowContrast { .. })));
        assert_eq!(check("ffffff", "000000"), Err(QrError::Inverted));
    }

    #[test]
    fn colours_are_six_digits() {
        assert_eq!(parse("1a2B3c"), Some([0x1a, 0x2b, 0x3c]));
        for text in ["", "1a2b3", "1a2b3c4", "#1a2b3", "+1a2b3", "1a2b3g", "１a2b"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
