//! QR codes: the encoder and each format, beside `fast_qr` alone; with `--features peers` beside other makers of
//! images, too.
//!
//! The payload is the printed form of a generated short id: version 2 at level Q.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use qr::{Ecl, Format, QrRequest, bench_matrix, describe, render};

const PAYLOAD: &str = "HTTPS://TN.GG/K7Q2M4XA9R";
const CAPTION: &str = "K7Q2M4XA9R";

fn qr(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("qr");
    group.bench_function("describe", |b| b.iter(|| describe(black_box(PAYLOAD), Ecl::Q)));
    group.bench_function("matrix", |b| b.iter(|| bench_matrix(black_box(PAYLOAD), Ecl::Q)));
    group.bench_function("matrix of fast_qr, its own mask", |b| {
        b.iter(|| {
            fast_qr::QRBuilder::new(black_box(PAYLOAD)).ecl(fast_qr::ECL::Q).build().map(|code| code.size)
        });
    });
    for (name, format, query) in [
        ("png 256", Format::Png, &[][..]),
        ("png 300", Format::Png, &[("w", "300")]),
        ("png 300 with short id", Format::Png, &[("w", "300"), ("tpl", "default-shortid")]),
        ("png 800", Format::Png, &[("w", "800")]),
        ("png 20 mm at 600 dpi", Format::Png, &[("size", "20"), ("dpi", "600")]),
        ("svg 300", Format::Svg, &[("w", "300")]),
        ("pdf 300", Format::Pdf, &[("w", "300")]),
        ("eps 300", Format::Eps, &[("w", "300")]),
    ] {
        let Ok(request) = QrRequest::parse(format, query.iter().copied()) else {
            panic!("{name} is refused")
        };
        group.bench_function(name, |b| b.iter(|| render(black_box(PAYLOAD), CAPTION, black_box(&request))));
    }
    #[cfg(feature = "peers")]
    peers(&mut group);
    group.finish();
}

/// PNGs of 300 pixels of the same code by others: `fast_qr`'s own way over SVG, and the crates `qrcode` and `image`.
#[cfg(feature = "peers")]
fn peers(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>) {
    use fast_qr::convert::{Builder, image::ImageBuilder};
    use image::{ExtendedColorType, ImageEncoder, Luma, codecs::png::PngEncoder};

    group.bench_function("png 300 of fast_qr", |b| {
        b.iter(|| {
            let code = fast_qr::QRBuilder::new(black_box(PAYLOAD)).ecl(fast_qr::ECL::Q).build();
            let bytes = code.map(|code| ImageBuilder::default().margin(4).fit_width(300).to_bytes(&code));
            bytes.is_ok_and(|bytes| bytes.is_ok_and(|bytes| !bytes.is_empty()))
        });
    });
    group.bench_function("png 300 of qrcode and image", |b| {
        b.iter(|| {
            let code = qrcode::QrCode::with_error_correction_level(black_box(PAYLOAD), qrcode::EcLevel::Q);
            let pixels = code.map(|code| code.render::<Luma<u8>>().min_dimensions(300, 300).build());
            let mut png = Vec::new();
            pixels.is_ok_and(|pixels| {
                let (width, height) = pixels.dimensions();
                let encoder = PngEncoder::new(&mut png);
                encoder.write_image(pixels.as_raw(), width, height, ExtendedColorType::L8).is_ok()
            })
        });
    });
}

criterion_group!(benches, qr);
criterion_main!(benches);
