//! The steps of a scan one by one: negotiation, short ids, targets; route, look-up, answer; a change on its way
//! to an edge, and there.

use std::{
    hint::black_box,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering::Relaxed},
};

use criterion::{Criterion, criterion_group, criterion_main};
use edge::bench::Hot;
use hyper::{HeaderMap, header::HeaderValue};
use shared::{
    negotiate::Representation,
    redirect::{Redirect, RedirectKey},
    short_id::ShortId,
    short_url::{Scheme, ShortDomain},
    target::Target,
    time::UnixMillis,
    wire::{
        frame::{Decoder, encode},
        stream::{Change, Event, Events, ToEdge},
    },
};

const PAGE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
const IMAGE: &str = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
const CLIENT: &str = "application/json, text/plain, */*";
const TARGET: &str = "https://shop.example.com/products/view?item=4711000000012345";
const HOST: &str = "tn.gg";
/// Links that an edge holds.
const LINKS: usize = 10_000;

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
        b.iter(|| RedirectKey::new(black_box(HOST), black_box("K7Q2M4XA9R")));
    });
    group.bench_function("parse a target", |b| b.iter(|| Target::parse(black_box(TARGET))));
    group.finish();
}

fn folded(n: usize) -> String {
    format!("K7Q2M{n:05}")
}

fn link(n: usize, version: usize) -> Option<Redirect> {
    let thng = "U5Gq8sKVBfgRtKRaagBefgwk";
    Some(Redirect {
        thng_id: Some(thng.parse().ok()?),
        ..Redirect::plain(
            HOST.parse().ok()?,
            folded(n).parse().ok()?,
            thng.parse().ok()?,
            format!("https://shop.example.com/products/view?item={version:08}{n:08}"),
            UnixMillis(0),
        )
    })
}

fn edge(criterion: &mut Criterion) {
    let Ok(domain) = ShortDomain::new(Scheme::Https, HOST) else { panic!("{HOST} is no short domain") };
    let mut group = criterion.benchmark_group("edge");
    let next = AtomicUsize::new(0);
    // One after the other, in an order that no cache expects.
    let turn = || next.fetch_add(1, Relaxed).wrapping_mul(61) % LINKS;
    let ids: Vec<String> = (0..2 * LINKS).map(folded).collect();
    for (form, is_replica) in [("moka", false), ("replica", true)] {
        let links = (0..LINKS).filter_map(|n| link(n, 0)).collect();
        let edge = Hot::new(domain.clone(), links, is_replica);
        let found = (0..LINKS).filter(|n| edge.look_up(HOST, &ids[*n]).is_some()).count();
        assert_eq!((found, edge.look_up(HOST, &ids[LINKS])), (LINKS, None), "{form}");
        if !is_replica {
            group.bench_function("route", |b| {
                b.iter(|| edge.route(black_box(HOST), black_box("/K7Q2M00001"), black_box(Some(PAGE))));
            });
            let mut headers = HeaderMap::with_capacity(8);
            group.bench_function("response of a redirect", |b| {
                b.iter(|| edge.respond(&mut headers, HeaderValue::from_static(TARGET)));
            });
        }
        group.bench_function(format!("lookup, {form}"), |b| b.iter(|| edge.look_up(HOST, &ids[turn()])));
        group.bench_function(format!("lookup of an unknown id, {form}"), |b| {
            b.iter(|| edge.look_up(HOST, &ids[LINKS + turn()]));
        });
        group.bench_function(format!("apply an event, {form}"), |b| {
            b.iter(|| link(turn(), 1).map(|link| edge.apply(link)));
        });
    }
    group.finish();
}

fn push(criterion: &mut Criterion) {
    let Some(link) = link(1, 1).map(Arc::new) else { panic!("there is no link to push") };
    let mut group = criterion.benchmark_group("push");
    for items in [1, 100] {
        let items = (1..=items)
            .map(|rev| Event {
                rev,
                change: Change::Redirect(RedirectKey::new(HOST, &folded(1)), Some(link.clone())),
            })
            .collect::<Vec<_>>();
        let count = items.len();
        let message = ToEdge::Events(Arc::new(Events { prev: 0, last: count as u64, items }));
        group.bench_function(format!("write a frame of {count}"), |b| b.iter(|| encode(black_box(&message))));
        let Ok(bytes) = encode(&message) else { panic!("{count} events are no frame") };
        group.bench_function(format!("read a frame of {count}"), |b| {
            b.iter(|| {
                let mut decoder = Decoder::<ToEdge>::default();
                decoder.buffer.extend_from_slice(&bytes);
                decoder.decode().is_ok_and(|message| message.is_some())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hot, edge, push);
criterion_main!(benches);
