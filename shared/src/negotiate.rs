//! Chooses the representation that a short URL answers with: by suffix, else by `Accept` (README, "Content
//! negotiation").

/// What `GET {short_domain}/:shortId` may give, in the order that breaks ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Representation {
    /// 307 to the target; chosen by `text/html`.
    Redirect,
    /// The record as JSON.
    Json,
    /// The code as PNG.
    Png,
    /// The code as SVG.
    Svg,
    /// The code as PDF.
    Pdf,
    /// The code as EPS; by suffix only.
    Eps,
}

/// Those that `Accept` chooses among, in the order that breaks ties, with type and subtype.
const NEGOTIATED: [(Representation, &str, &str); 5] = [
    (Representation::Redirect, "text", "html"),
    (Representation::Json, "application", "json"),
    (Representation::Png, "image", "png"),
    (Representation::Svg, "image", "svg+xml"),
    (Representation::Pdf, "application", "pdf"),
];

/// Media ranges read of one header; what comes behind them is ignored (browsers send at most ten).
const MAX_RANGES: usize = 32;

impl Representation {
    /// Splits `ABC.png` into `ABC` and the representation of the suffix.
    #[must_use]
    pub fn split_suffix(segment: &str) -> (&str, Option<Self>) {
        let Some((stem, suffix)) = segment.rsplit_once('.') else { return (segment, None) };
        let named = [("png", Self::Png), ("svg", Self::Svg), ("pdf", Self::Pdf), ("eps", Self::Eps)];
        match named.into_iter().find(|(name, _)| suffix.eq_ignore_ascii_case(name)) {
            Some((_, representation)) => (stem, Some(representation)),
            None => (segment, None),
        }
    }

    /// Chooses by `Accept`: the highest q, a type named explicitly or by `image/*` before one that only
    /// `*/*` matches, then the order redirect, JSON, PNG, SVG, PDF.
    ///
    /// No header, an unreadable one, or nothing that can be served gives the redirect.
    #[must_use]
    pub fn negotiate(accept: Option<&str>) -> Self {
        let Some(accept) = accept else { return Self::Redirect };
        // A page load names text/html first and whole: q is 1, and no other type comes before it.
        if accept == "*/*" || accept.starts_with("text/html,") {
            return Self::Redirect;
        }
        let mut best = (0, 0, Self::Redirect);
        for (representation, kind, subtype) in NEGOTIATED {
            let (quality, named) = weigh(accept, kind, subtype);
            // Strictly greater: the earlier representation keeps a tie.
            if quality > 0 && (quality, named) > (best.0, best.1) {
                best = (quality, named, representation);
            }
        }
        best.2
    }
}

/// The q (in thousandths) that `accept` gives a type by its most specific range, and 1 if that range
/// names the type or its family, 0 if it is `*/*`.
#[must_use]
pub fn weigh(accept: &str, kind: &str, subtype: &str) -> (u16, u8) {
    let mut found = (0, 0);
    let mut specificity = 0;
    for range in accept.split(',').take(MAX_RANGES) {
        let mut parts = range.split(';');
        let Some((range_kind, range_subtype)) = parts.next().unwrap_or_default().trim().split_once('/')
        else {
            continue;
        };
        let specific = if range_kind.eq_ignore_ascii_case(kind) && range_subtype.eq_ignore_ascii_case(subtype)
        {
            3
        } else if range_kind.eq_ignore_ascii_case(kind) && range_subtype == "*" {
            2
        } else if range_kind == "*" && range_subtype == "*" {
            1
        } else {
            continue;
        };
        if specific > specificity {
            specificity = specific;
            found = (quality(parts), u8::from(specific > 1));
        }
    }
    found
}

/// The `q` of a range's parameters in thousandths; absent is 1,000, unreadable is 0.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    match value.map(str::parse::<f32>) {
        None => 1_000,
        // The range check also refuses NaN, so the cast is exact enough and in range.
        Some(Ok(q)) if (0.0..=1.0).contains(&q) => (q * 1_000.0).round() as u16,
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Representation::*, *};

    /// `Accept` headers of real clients, with the representation that each gets.
    const CASES: &[(&str, Representation, &str)] = &[
        // page loads
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
            Redirect,
            "Chrome page",
        ),
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            Redirect,
            "Firefox page",
        ),
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
            Redirect,
            "Firefox 128 page, names PNG and SVG",
        ),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Redirect, "Safari page"),
        ("text/html, application/xhtml+xml, image/jxr, */*", Redirect, "old Edge page"),
        ("text/html, application/xhtml+xml, */*", Redirect, "Internet Explorer 11 page"),
        (
            "image/gif, image/jpeg, image/pjpeg, application/x-ms-application, application/xaml+xml, */*",
            Redirect,
            "Internet Explorer 8 page",
        ),
        (
            "text/html,application/xml;q=0.9,application/xhtml+xml,image/png,image/webp,image/jpeg,image/gif,image/x-xbitmap,*/*;q=0.1",
            Redirect,
            "Opera page, names PNG",
        ),
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/wxpic,image/tpg,image/webp,image/apng,*/*;q=0.8",
            Redirect,
            "WeChat in-app browser",
        ),
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.9",
            Redirect,
            "Samsung Internet page",
        ),
        ("text/html,*/*", Redirect, "UC Browser"),
        ("text/html", Redirect, "text browser"),
        ("text/html,text/html;q=0.1,image/png", Redirect, "the first of two equally specific ranges counts"),
        ("text/html;q=0.2,image/png", Png, "a page that would rather not"),
        ("text/html, text/*;q=0.5, image/*", Redirect, "Lynx-like"),
        // images in a page
        ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", Png, "Chrome <img>"),
        ("image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5", Png, "Firefox 128 <img>"),
        ("image/avif,image/webp,*/*", Redirect, "Firefox 92 <img>: no type of ours, nor image/*"),
        (
            "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
            Png,
            "Safari 17 <img>",
        ),
        ("image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", Png, "Safari 13 <img>"),
        ("image/webp,image/apng,image/*,*/*;q=0.8", Png, "Chrome 79 <img>"),
        ("image/png, image/svg+xml, image/*;q=0.8, */*;q=0.5", Png, "Internet Explorer 11 <img>"),
        ("image/*", Png, "img loader of apps"),
        ("image/svg+xml", Svg, "print pipeline"),
        ("image/svg+xml,image/*;q=0.8", Svg, "SVG preferred"),
        ("image/svg+xml;q=0.9,image/png;q=0.5", Svg, "SVG before PNG by q"),
        ("image/png", Png, "the contract's default image"),
        ("IMAGE/PNG", Png, "types compare without case"),
        ("image/png;q=0.1", Png, "low, yet the only one"),
        ("application/pdf", Pdf, "print pipeline"),
        ("application/pdf,*/*;q=0.5", Pdf, "PDF named"),
        ("application/pdf;q=0.9, image/png;q=0.9", Png, "order breaks the tie"),
        // programs
        ("*/*", Redirect, "curl, wget, python-requests, Go"),
        ("application/json, text/plain, */*", Json, "axios, Angular"),
        ("application/json", Json, "vendor SDKs"),
        ("application/json; charset=utf-8", Json, "parameters do not matter"),
        ("application/json, text/javascript, */*; q=0.01", Json, "jQuery"),
        ("application/hal+json, application/json;q=0.9, */*;q=0.1", Json, "REST client"),
        ("text/html;q=0.5, application/json", Json, "JSON by q"),
        ("application/json, text/html", Redirect, "equal: the redirect comes first"),
        ("application/*", Json, "a family names JSON and PDF"),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", Redirect, "Java URLConnection"),
        ("*/*, application/json;q=0", Redirect, "JSON refused"),
        // scanners' apps and previews
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8,application/pdf;q=0.7",
            Redirect,
            "scanner app",
        ),
        ("text/html,application/xhtml+xml,application/xml", Redirect, "facebookexternalhit"),
        ("text/html,application/xhtml+xml;q=0.9, */*;q=0.1", Redirect, "Slackbot"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Redirect, "Googlebot, bingbot"),
        ("application/signed-exchange;v=b3;q=0.9,*/*;q=0.8", Redirect, "prefetch"),
        // nothing we serve, or unreadable
        ("text/plain", Redirect, "nothing we serve"),
        ("application/xml", Redirect, "nothing we serve"),
        ("image/webp", Redirect, "an image we do not serve"),
        ("text/css,*/*;q=0.1", Redirect, "stylesheet load"),
        ("audio/*;q=0.9, video/*", Redirect, "media load"),
        ("", Redirect, "empty"),
        (";;;,,,q", Redirect, "garbage"),
        ("image/png;q=2", Redirect, "a q out of range counts as none"),
        ("*/*;q=0", Redirect, "everything refused"),
    ];

    #[test]
    fn real_headers() {
        for (accept, expected, who) in CASES {
            assert_eq!(Representation::negotiate(Some(accept)), *expected, "{who}: {accept}");
        }
        assert_eq!(Representation::negotiate(None), Redirect);
    }

    #[test]
    fn suffixes() {
        for (segment, expected) in [
            ("ABC.png", ("ABC", Some(Png))),
            ("ABC.SVG", ("ABC", Some(Svg))),
            ("ABC.pdf", ("ABC", Some(Pdf))),
            ("ABC.eps", ("ABC", Some(Eps))),
            ("ABC", ("ABC", None)),
            ("ABC.gif", ("ABC.gif", None)),
            (".png", ("", Some(Png))),
        ] {
            assert_eq!(Representation::split_suffix(segment), expected, "{segment}");
        }
    }

    proptest! {
        #[test]
        fn any_header_gives_a_representation(accept in "\\PC{0,120}") {
            let _ = Representation::negotiate(Some(&accept));
        }
    }
}
