//! Every format, template, level and size decodes to exactly the payload, by two decoders.

use std::path::PathBuf;

use qr::Format;
use tempfile::TempDir;

use crate::{
    grid::{PAYLOADS, PRINT, draw, queries},
    tools,
};

/// Decodes PNG pictures of one payload by both decoders.
struct Decoders {
    payload: &'static str,
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Decoders {
    fn new(payload: &'static str) -> Self {
        Self { payload, folder: TempDir::new().expect("a temporary folder"), files: Vec::new() }
    }

    fn check(&mut self, what: &str, png: &[u8]) {
        assert_eq!(tools::rqrr(png, what), [self.payload], "{what}");
        let name = format!("{:03}-{what}.png", self.files.len());
        self.files.push(tools::save(self.folder.path(), &name, png));
    }

    fn finish(self) -> TempDir {
        let found = tools::zbarimg(&self.files);
        if found.len() != self.files.len() || found.iter().any(|text| text != self.payload) {
            for file in &self.files {
                assert_eq!(tools::zbarimg(std::slice::from_ref(file)), [self.payload], "{}", file.display());
            }
        }
        self.folder
    }
}

fn all_queries() -> impl Iterator<Item = String> {
    queries().chain(PRINT.map(str::to_owned))
}

/// The requests that are decoded with a payload: all of them with the printed form; with the others every fifth, which
/// has each size, template and level among them, unless `tests/run --long` asks for all (`WAYMARK_TEST_LONG`).
fn with_payload(nth: usize, queries: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let step = if nth == 0 || std::env::var_os("WAYMARK_TEST_LONG").is_some() { 1 } else { 5 };
    queries.skip(nth % step).step_by(step)
}

fn pixels(png: &[u8]) -> image::GrayImage {
    image::load_from_memory(png).expect("a PNG").to_luma8()
}

#[test]
fn every_png_decodes_as_served_and_is_well_formed() {
    for (nth, code) in PAYLOADS.into_iter().enumerate() {
        let mut decoders = Decoders::new(code.0);
        for query in with_payload(nth, all_queries()) {
            decoders.check(&query, &draw(Format::Png, &query, code).bytes);
        }
        tools::pngcheck(&decoders.files);
        decoders.finish();
    }
}

#[test]
fn every_svg_decodes_when_rasterised_and_has_the_pixels_of_the_png() {
    for (nth, code) in PAYLOADS.into_iter().enumerate() {
        let mut decoders = Decoders::new(code.0);
        for query in with_payload(nth, queries()) {
            let raster = tools::rsvg(&draw(Format::Svg, &query, code).bytes, "1");
            assert!(
                pixels(&raster) == pixels(&draw(Format::Png, &query, code).bytes),
                "{query}: pixels of SVG and PNG"
            );
            decoders.check(&query, &raster);
        }
        for query in with_payload(nth, PRINT.into_iter().map(str::to_owned)) {
            decoders.check(&query, &tools::rsvg(&draw(Format::Svg, &query, code).bytes, "4"));
        }
        decoders.finish();
    }
}

#[test]
fn every_pdf_decodes_when_rasterised() {
    for (nth, code) in PAYLOADS.into_iter().enumerate() {
        let mut decoders = Decoders::new(code.0);
        for query in with_payload(nth, queries()) {
            // Poppler thickens edges by up to a pixel, which counts while modules are small.
            let dpi = if query.contains("w=511") || query.contains("w=800&tpl") { "72" } else { "144" };
            let raster = tools::pdftoppm(&draw(Format::Pdf, &query, code).bytes, dpi);
            decoders.check(&query, &raster);
        }
        for query in with_payload(nth, PRINT.into_iter().map(str::to_owned)) {
            decoders.check(&query, &tools::pdftoppm(&draw(Format::Pdf, &query, code).bytes, "600"));
        }
        decoders.finish();
    }
}

#[test]
fn pdf_structure_is_clean() {
    let folder = TempDir::new().expect("a temporary folder");
    for query in
        ["w=256", "w=95&tpl=default-shortid", "w=800&h=95&ecl=H", "size=25&hri=shortid", "x=0.4&dpi=203"]
    {
        let pdf = draw(Format::Pdf, query, PAYLOADS[0]).bytes;
        tools::qpdf(&tools::save(folder.path(), "code.pdf", &pdf));
    }
}

/// No decoder reads EPS; its rectangles are those of the PDF, which is decoded above.
#[test]
fn eps_draws_the_rectangles_of_the_pdf() {
    for query in all_queries() {
        let text = |format| String::from_utf8_lossy(&draw(format, &query, PAYLOADS[0]).bytes).into_owned();
        let rects = |text: &str, operator: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_suffix(operator)).map(str::to_owned).collect()
        };
        let (eps, pdf) = (text(Format::Eps), text(Format::Pdf));
        assert!(eps.starts_with("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 "), "{query}");
        assert!(eps.ends_with("fill\ngrestore\nshowpage\n%%EOF\n"), "{query}");
        let drawn = rects(&eps, " R");
        assert!(drawn.len() > 100, "{query}");
        assert_eq!(drawn, rects(&pdf, " re"), "{query}");
    }
}
