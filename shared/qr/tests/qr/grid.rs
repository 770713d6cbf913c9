//! The grid of requests that every decoder has to read.

use qr::{Ecl, Format, QrImage, QrRequest, render};

/// (payload, caption): the printed form, a development domain, a mixed-case id in byte mode.
pub(crate) const PAYLOADS: [(&str, &str); 3] = [
    ("HTTPS://TN.GG/K7Q2M4XA9R", "K7Q2M4XA9R"),
    ("HTTP://127.0.0.1:8081/K7Q2M4XA9R", "K7Q2M4XA9R"),
    ("https://tn.gg/aB3-x_Yz9qLm", "aB3-x_Yz9qLm"),
];

const SIZES: [&str; 11] = [
    "w=95",
    "w=96",
    "w=128",
    "w=256",
    "w=300",
    "w=511",
    "w=800",
    "w=95&h=800",
    "w=800&h=95",
    "w=300&h=200",
    "w=97&h=131",
];

/// Every size, template and level, as query strings.
pub(crate) fn queries() -> impl Iterator<Item = String> {
    let templates = ["default", "default-shortid"];
    SIZES.into_iter().flat_map(move |size| {
        templates.into_iter().flat_map(move |template| {
            Ecl::ALL.into_iter().map(move |ecl| format!("{size}&tpl={template}&ecl={}", ecl.as_str()))
        })
    })
}

/// Print units: module or edge, with and without a density, captioned and not.
pub(crate) const PRINT: [&str; 7] = [
    "x=0.4",
    "x=0.5&hri=shortid",
    "size=20",
    "size=25&tpl=default-shortid&ecl=H",
    "x=0.4&dpi=203&xmin=0.396&xmax=0.99",
    "size=15&dpi=600&qz=6",
    "x=0.33&version=7&ecl=L",
];

pub(crate) fn request(format: Format, query: &str) -> QrRequest {
    QrRequest::parse(format, query.split('&').filter_map(|pair| pair.split_once('='))).expect(query)
}

pub(crate) fn draw(format: Format, query: &str, (payload, caption): (&str, &str)) -> QrImage {
    render(payload, caption, &request(format, query)).unwrap_or_else(|error| panic!("{query}: {error}"))
}
