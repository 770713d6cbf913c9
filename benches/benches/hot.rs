//! The pure steps of a scan: negotiation, short ids, targets, the folded key.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use shared::{negotiate::Representation, redirect::RedirectKey, short_id::ShortId, target::Target};

const PAGE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
const IMAGE: &str = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
const CLIENT: &str = "application/json, text/plain, */*";
const TARGET: &str = "https://shop.example.com/products/view?item=4711000000012345";

fn hot(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hot");
    for (name, accept) in [
        ("negotiate without Accept", None),
        ("negotiate anything", Some("*/*")),
        ("negotiate a page load", Some(PAGE)),
        ("negotiate an image", Some(IMAGE)),
        ("negotiate an API client", Some(CLIENT)),
    ] {
        group.bench_function(name, |b| b.iter(|| Representation::negotiate(black_box(accept))));
    }
    group.bench_function("generate a short id", |b| b.iter(|| ShortId::generate(black_box([7; 16]))));
    group.bench_function("parse a short id", |b| b.iter(|| black_box("K7Q2M4XA9R").parse::<ShortId>()));
    group.bench_function("make a key", |b| {
        b.iter(|| RedirectKey::new(black_box("tn.gg"), black_box("K7Q2M4XA9R")));
    });
    group.bench_function("parse a target", |b| b.iter(|| Target::parse(black_box(TARGET))));
    group.finish();
}

criterion_group!(benches, hot);
criterion_main!(benches);
