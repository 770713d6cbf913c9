//! Pages that people see where a code leads nowhere: name, logo, colours and texts of an account, for all its domains or for one.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize};

use crate::standing::{Risk, Standing};

/// Least contrast of texts and of the button (WCAG 2.2, 1.4.3).
pub const MIN_CONTRAST: f64 = 4.5;

/// What an account has chosen for its pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Shown above the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// A `data:` URL of a PNG or an SVG, which control has checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<Box<str>>,
    /// Without them the colours are those of the edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colors: Option<Colors>,
    /// The button below the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PageLink>,
    /// From this `counterfeitStatus` of the item on, whoever would be led to the link's own target gets a page instead; without it
    /// nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Risk>,
    /// Whether the page of a copy lets whoever found it write to the account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reports: bool,
    /// Whether that takes a photo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub photos: bool,
    /// Texts by language tag, such as `de` or `pt-BR`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<Box<str>, PageTexts>,
}

/// Colours of a page in the light; in the dark, text and background change places where the background is the lighter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colors {
    /// Behind the text.
    pub background: Color,
    /// Of the text.
    pub text: Color,
    /// Of the button, whose text has the colour of the background.
    pub accent: Color,
}

/// The button of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLink {
    /// An absolute `https` URL.
    pub url: Box<str>,
    /// Text of the button.
    pub label: Box<str>,
}

/// The texts in one language; what is missing has a text of the edge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTexts {
    /// No link has the id, or the path can have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<PageText>,
    /// The link has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<PageText>,
    /// The account has paused the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<PageText>,
    /// The item may be a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<PageText>,
    /// The domain was asked for without an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PageText>,
}

/// Heading and text of a page, both plain texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageText {
    /// The heading.
    pub title: Box<str>,
    /// One paragraph.
    pub text: Box<str>,
}

impl Pages {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an item of this status is a copy to whoever scans its code.
    #[must_use]
    pub fn stops(&self, standing: &Standing) -> bool {
        self.copies.zip(standing.verdict).is_some_and(|(from, verdict)| verdict.counterfeit >= from)
    }

    /// Bytes of its texts and its logo, roughly.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let length = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let of_text = |text: &Option<PageText>| text.as_ref().map_or(0, |of| of.title.len() + of.text.len());
        let of_link = self.link.as_ref().map_or(0, |link| link.url.len() + link.label.len());
        let texts: usize = self
            .texts
            .iter()
            .map(|(tag, texts)| {
                let PageTexts { unknown, ended, suspended, copy, root } = texts;
                tag.len() + [unknown, ended, suspended, copy, root].into_iter().map(of_text).sum::<usize>()
            })
            .sum();
        length(&self.name) + length(&self.logo) + of_link + texts
    }
}

/// Reads pages of a newer release that this one cannot read as none, so that the domain itself stays readable.
///
/// # Errors
/// The text is not JSON.
pub fn read_if_known<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// A colour as red, green and blue, written `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Color([u8; 3]);

/// A text that is no colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a colour such as #1a2b3c")]
pub struct NotAColor;

impl Color {
    /// Contrast with another colour, from 1 (the same) to 21 (black and white), by WCAG 2.2.
    #[must_use]
    pub fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Relative luminance, from 0 (black) to 1 (white).
    #[must_use]
    pub fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

impl FromStr for Color {
    type Err = NotAColor;

    fn from_str(text: &str) -> Result<Self, NotAColor> {
        let digits = text.strip_prefix('#').ok_or(NotAColor)?;
        // A sign is no digit, which the parser of numbers would take.
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAColor);
        }
        let number = u32::from_str_radix(digits, 16).map_err(|_| NotAColor)?;
        let [_, red, green, blue] = number.to_be_bytes();
        Ok(Self([red, green, blue]))
    }
}

impl TryFrom<String> for Color {
    type Error = NotAColor;

    fn try_from(text: String) -> Result<Self, NotAColor> {
        text.parse()
    }
}

impl From<Color> for String {
    fn from(color: Color) -> Self {
        color.to_string()
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        short_url::ShortDomain,
        standing::{Authenticity, Verdict},
    };

    fn color(text: &str) -> Color {
        text.parse().unwrap()
    }

    #[test]
    fn colors_are_six_digits() {
        for text in ["#000000", "#1a2b3c", "#ffffff"] {
            assert_eq!(color(text).to_string(), text);
        }
        assert_eq!(color("#AbCdEf").to_string(), "#abcdef");
        for text in ["", "#", "1a2b3c", "#1a2b3", "#1a2b3c4", "#+a2b3c", "#gggggg", "red", "#ä2b3c"] {
            assert_eq!(text.parse::<Color>(), Err(NotAColor), "{text}");
        }
    }

    #[test]
    fn contrasts_are_those_of_the_standard() {
        // https://webaim.org/resources/contrastchecker/
        for (one, two, expected) in [
            ("#000000", "#ffffff", 21.0),
            ("#ffffff", "#ffffff", 1.0),
            ("#777777", "#ffffff", 4.48),
            ("#767676", "#ffffff", 4.54),
            ("#0000ff", "#ffffff", 8.59),
        ] {
            let found = color(one).contrast(color(two));
            assert!((found - expected).abs() < 0.01, "{one} on {two}: {found}");
            assert!((found - color(two).contrast(color(one))).abs() < 1e-9);
        }
    }

    #[test]
    fn items_are_stopped_from_a_status_on() {
        let of = |counterfeit| {
            let (authentication, gray_market) = (Authenticity::Negative, Risk::Confirmed);
            Standing {
                verdict: Some(Verdict { authentication, counterfeit, gray_market }),
                ..Standing::default()
            }
        };
        for (copies, stopped) in [
            (None, &[][..]),
            (Some(Risk::Suspected), &[Risk::Suspected, Risk::Confirmed]),
            (Some(Risk::Confirmed), &[Risk::Confirmed]),
        ] {
            let pages = Pages { copies, ..Pages::default() };
            let found: Vec<Risk> = Risk::ALL.iter().copied().filter(|risk| pages.stops(&of(*risk))).collect();
            assert_eq!(found, stopped, "{copies:?}");
            assert!(!pages.stops(&Standing::default()), "never assessed");
        }
    }

    #[test]
    fn a_domain_is_read_whatever_its_pages_are() {
        let of = |pages: &str| {
            let text =
                format!(r#"{{"host":"tn.gg","scheme":"https","case_sensitive":false,"pages":{pages}}}"#);
            serde_json::from_str::<ShortDomain>(&text).unwrap().pages
        };
        assert_eq!(of("null"), None);
        assert_eq!(of("7"), None);
        assert_eq!(of(r##"{"colors":{"background":"teal"}}"##), None, "a form of a newer release");
        let pages = of(r#"{"name":"Acme","sound":"x","texts":{"de":{"root":{"title":"a","text":"b"}}}}"#);
        let pages = pages.unwrap();
        assert_eq!(pages.name.as_deref(), Some("Acme"));
        assert_eq!(&*pages.texts["de"].root.as_ref().unwrap().text, "b");
        assert_eq!(pages.size_bytes(), "Acme".len() + "de".len() + 2);
        let text = serde_json::to_string(&*pages).unwrap();
        assert_eq!(text, r#"{"name":"Acme","texts":{"de":{"root":{"title":"a","text":"b"}}}}"#);
    }
}
