//! PDF: one page as large as the image, one path in DeviceGray black, no ground and no font.
//!
//! Without a document id, dates or a producer, so that equal requests give equal bytes.

use pdf_writer::{Content, Finish, Pdf, Rect as Page, Ref};

use super::layout::{Layout, Rect, Scale};

/// Points in a millimetre.
pub(super) const POINTS_PER_MM: f64 = 72.0 / 25.4;

/// Points of a unit: a pixel is 1/72 inch.
pub(super) fn points_per_unit(scale: Scale) -> f64 {
    match scale {
        Scale::Pixel => 1.0,
        Scale::Millimetres { unit, .. } => unit * POINTS_PER_MM,
    }
}

/// The whole document.
pub(super) fn draw(layout: &Layout, rects: &[Rect]) -> Vec<u8> {
    let unit = points_per_unit(layout.scale);
    let (width, height) = (unit * f64::from(layout.width), unit * f64::from(layout.height));

    let mut content = Content::new();
    // Units from the upper left corner, as everywhere else.
    content.transform([unit as f32, 0.0, 0.0, -unit as f32, 0.0, height as f32]);
    content.set_fill_gray(0.0);
    for rect in rects {
        content.rect(rect.x as f32, rect.y as f32, rect.width as f32, rect.height as f32);
    }
    content.fill_nonzero();

    let [catalog, pages, page, contents] = [1, 2, 3, 4].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut sheet = pdf.page(page);
    sheet.parent(pages).media_box(Page::new(0.0, 0.0, width as f32, height as f32)).contents(contents);
    sheet.resources();
    sheet.finish();
    pdf.stream(contents, &content.finish());
    pdf.finish()
}
