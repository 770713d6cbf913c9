use std::io::Cursor;

use serde_json::json;

use super::*;
use crate::{Chunk, MANIFEST_HEADER, PrintItem, render_chunk};

/// Short ids as they are made: ten of 31 letters and digits.
fn items(count: u64) -> Vec<PrintItem> {
    let id = |nth: u64| -> String {
        let letter = |at: u32| {
            let step = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(6 * at) as usize % 31;
            char::from(b"ABCDEFGHKMNPQRSTUVWXY0123456789"[step])
        };
        (0..10).map(letter).collect()
    };
    let item = |nth| PrintItem {
        serial: Some(format!("SN-{nth:05}")),
        short_id: id(nth),
        url: format!("HTTPS://TN.GG/{}", id(nth)),
        gtin: Some("4012345678901".to_owned()),
    };
    (1..=count).map(item).collect()
}

fn spec(members: &Value) -> PrintSpec {
    PrintSpec::parse(members.as_object().expect("an object"))
        .unwrap_or_else(|faults| panic!("{members}: {faults:?}"))
}

fn facts() -> OrderFacts {
    let members = Map::from_iter([("edges".to_owned(), json!(3)), ("codes".to_owned(), json!("not this"))]);
    OrderFacts { order: "U8eDRxXfMKfq9aRKnVwAgwfr".to_owned(), members }
}

fn chunks(spec: &PrintSpec, items: &[PrintItem], codes: u64) -> Vec<Chunk> {
    let draw = |range: Range<u64>| {
        let part = &items[range.start as usize..range.end as usize];
        render_chunk(spec, range.start, part).unwrap_or_else(|error| panic!("{range:?}: {error}"))
    };
    spec.chunks_of(items.len() as u64, codes).map(draw).collect()
}

/// The file and the manifest.
fn join(spec: &PrintSpec, range: Range<u64>, chunks: &[Chunk]) -> (Vec<u8>, String, Finished) {
    let mut file = Vec::new();
    let manifest = chunks.iter().fold(MANIFEST_HEADER.to_owned(), |all, chunk| all + &chunk.manifest);
    let mut assembly = Assembly::new(spec, range, &facts(), &mut file).expect("whole pages");
    for chunk in chunks {
        assembly.add(&chunk.body[..], &chunk.index).expect("the next one");
    }
    let finished = assembly.finish(manifest.as_bytes()).expect("all are there");
    assert_eq!(finished.bytes, file.len() as u64);
    (file, manifest, finished)
}

/// An order of each format.
fn orders() -> Vec<Value> {
    let text = json!({"text": "gs1", "fontMm": 1.5});
    let sheet = json!({"size": "a4-38.1x21.2", "start": 3, "cutMarks": true});
    vec![
        json!({"format": "png", "hri": text, "naming": "{serial}_{shortId}.png"}),
        json!({"format": "png", "code": {"sizeMm": 15}, "dpi": 1_200}),
        json!({"format": "svg", "hri": text}),
        json!({"format": "pdf", "hri": text, "layout": {"size": "roll-50x30"}}),
        json!({"format": "eps", "hri": {"text": "serial"}}),
        json!({"format": "tiff", "hri": text, "dpi": 600}),
        json!({"format": "pdf-pages", "hri": {"text": "shortId"}, "code": {"moduleMm": 0.33, "version": 5, "ecl": "H"}}),
        json!({"format": "pdf-sheets", "layout": sheet, "hri": {"text": "shortId", "fontMm": 1.2}}),
        json!({"format": "zpl", "layout": {"size": "roll-25.4x25.4"}, "hri": {"text": "shortId", "fontMm": 1.6}}),
        json!({"format": "zpl", "code": {"moduleMm": 0.25}}),
    ]
}

#[test]
fn the_bytes_do_not_depend_on_the_chunks() {
    // More than a sheet, or some. Each code is drawn and read again, in each of the ways.
    for order in orders() {
        let (count, most) = if order["format"] == "pdf-sheets" { (70, 33) } else { (12, 5) };
        let (spec, items) = (spec(&order), items(count));
        let whole = chunks(&spec, &items, 1_000);
        assert_eq!(whole.len(), 1, "{order}");
        let (file, manifest, finished) = join(&spec, 0..count, &whole);
        for codes in [1, most] {
            let parts = chunks(&spec, &items, codes);
            assert!(parts.len() > 1, "{order}");
            let joined = join(&spec, 0..count, &parts);
            assert!(
                joined == (file.clone(), manifest.clone(), finished.clone()),
                "{order}: {codes} codes a chunk"
            );
        }
        let totals = finished.totals;
        assert_eq!((totals.codes, totals.decoded), (count, count), "{order}");
        assert!(totals.sampled <= count / 4, "{order}: the decoder finds nearly all, {totals:?}");
        assert_eq!(manifest.lines().count() as u64, count + 1, "{order}");
    }
}

#[test]
fn a_receipt_says_what_was_drawn() {
    let order = json!({"format": "zpl", "code": {"moduleMm": 0.25}});
    let spec = spec(&order);
    let (_, _, finished) = join(&spec, 0..3, &chunks(&spec, &items(3), 1));
    let receipt: Value = serde_json::from_str(&finished.receipt).expect("JSON");
    assert_eq!(receipt["order"], "U8eDRxXfMKfq9aRKnVwAgwfr");
    assert_eq!(receipt["spec"]["format"], "zpl");
    assert_eq!(receipt["edges"], 3);
    assert_eq!(
        (&receipt["codes"], &receipt["decoded"], &receipt["pages"]),
        (&json!(3), &json!(3), &json!(3))
    );
    assert_eq!(receipt["smallestModuleMm"], 0.250_246, "two dots at 203 dpi");
    assert_eq!((&receipt["lowestVersion"], &receipt["highestVersion"]), (&json!(2), &json!(2)));
}

#[test]
fn a_zip_has_the_files_that_its_manifest_names() {
    let items = items(40);
    for order in orders() {
        let spec = spec(&order);
        if !spec.format().is_zip() {
            continue;
        }
        let (file, manifest, finished) = join(&spec, 0..40, &chunks(&spec, &items, 9));
        let mut archive = ::zip::ZipArchive::new(Cursor::new(file)).expect("a ZIP");
        let names: Vec<&str> = manifest.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
        assert_eq!(archive.len(), names.len() + 2, "{order}");
        for name in names {
            let mut content = Vec::new();
            archive.by_name(name).expect(name).read_to_end(&mut content).expect("its sum is right");
            assert!(!content.is_empty(), "{order}: {name}");
        }
        for (name, expected) in [(MANIFEST_NAME, &manifest), (RECEIPT_NAME, &finished.receipt)] {
            let mut text = String::new();
            archive.by_name(name).expect(name).read_to_string(&mut text).expect("its sum is right");
            assert_eq!(&text, expected, "{order}: {name}");
        }
    }
}

#[test]
fn pages_are_printed_again_as_they_were() {
    let order = json!({"format": "pdf-sheets", "layout": {"size": "a4-70x37", "start": 3}});
    let (spec, items) = (spec(&order), items(60));
    let whole = chunks(&spec, &items, 1_000);
    let range = spec.codes_of_page(1, 60);
    assert_eq!(range, 22..46);
    let again = render_chunk(&spec, 22, &items[22..46]).expect("a whole sheet");
    assert!(whole[0].manifest.contains(&again.manifest), "index and page are those of the order");
    let page = |file: &[u8]| file.windows(again.body.len()).any(|window| window == again.body);
    assert!(page(&join(&spec, 0..60, &whole).0), "the page is in the order");
    assert!(page(&join(&spec, range, std::slice::from_ref(&again)).0), "and in the reprint");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let pages = spec(&json!({"format": "pdf-pages"}));
    let items = items(6);
    let parts = chunks(&pages, &items, 2);
    let begin = || Assembly::new(&pages, 0..6, &OrderFacts::default(), Vec::new()).expect("whole pages");
    let is_chunk = |result: Result<(), PrintError>| matches!(result, Err(PrintError::Chunk(_)));

    assert!(is_chunk(begin().add(&parts[1].body[..], &parts[1].index)), "the first is missing");
    assert!(is_chunk(begin().add(&parts[0].body[..], b"{}")), "no index");
    let longer = [&parts[0].body[..], b"x"].concat();
    assert!(is_chunk(begin().add(&longer[..], &parts[0].index)), "a longer body");
    let shorter = &parts[0].body[1..];
    assert!(matches!(begin().add(shorter, &parts[0].index), Err(PrintError::Io(_))), "a shorter body");
    let other = chunks(&spec(&json!({"format": "zpl"})), &items, 2);
    assert!(is_chunk(begin().add(&other[0].body[..], &other[0].index)), "another format");

    let mut assembly = begin();
    assembly.add(&parts[0].body[..], &parts[0].index).expect("the first");
    assert!(is_chunk(assembly.add(&parts[0].body[..], &parts[0].index)), "the first again");
    assembly.add(&parts[1].body[..], &parts[1].index).expect("the second");
    assert!(matches!(assembly.finish(&b""[..]), Err(PrintError::Chunk(_))), "the third is missing");

    let sheets = spec(&json!({"format": "pdf-sheets", "layout": {"size": "a4-70x37"}}));
    assert!(matches!(render_chunk(&sheets, 5, &items), Err(PrintError::Chunk(_))), "within a sheet");
    assert!(matches!(render_chunk(&sheets, 0, &[]), Err(PrintError::Chunk(_))), "no codes");
    assert!(Assembly::new(&sheets, 5..9, &OrderFacts::default(), Vec::new()).is_err(), "within a sheet");
    assert!(
        Assembly::new(&sheets, 0..MAX_CODES + 1, &OrderFacts::default(), Vec::new()).is_err(),
        "too many"
    );
}

#[test]
fn two_files_of_one_name_are_refused() {
    let spec = spec(&json!({"format": "svg", "naming": "{shortId}"}));
    let mut items = items(2);
    items[1] = items[0].clone();
    let part = render_chunk(&spec, 0, &items).expect("drawn");
    let mut assembly = Assembly::new(&spec, 0..2, &facts(), Vec::new()).expect("whole pages");
    let result = assembly.add(&part.body[..], &part.index);
    assert!(matches!(result, Err(PrintError::DuplicateName { .. })), "{result:?}");
}

#[test]
fn a_code_that_cannot_be_drawn_is_named() {
    let check = |order: Value, change: fn(&mut PrintItem), expected: &str| {
        let mut items = items(3);
        change(&mut items[2]);
        let error = render_chunk(&spec(&order), 0, &items).expect_err("refused").to_string();
        assert!(error.starts_with("code 3 (") && error.contains(expected), "{order}: {error}");
    };
    let roll = json!({"format": "zpl", "layout": {"size": "roll-25x10"}});
    check(json!({"format": "png"}), |item| item.url = "x".repeat(3_000), "too long for a QR code");
    check(json!({"format": "png", "hri": {"text": "gs1"}}), |item| item.gtin = None, "needs a GTIN");
    check(
        json!({"format": "png", "hri": {"text": "gs1"}}),
        |item| item.gtin = Some("4A".to_owned()),
        "14 digits",
    );
    check(json!({"format": "png", "hri": {"text": "serial"}}), |item| item.serial = None, "needs a serial");
    let snow = |item: &mut PrintItem| item.serial = Some("\u{2603}".to_owned());
    check(json!({"format": "svg", "hri": {"text": "serial"}}), snow, "cannot be drawn");
    check(
        roll.clone(),
        |item| item.url = format!("HTTPS://TN.GG/{}", "A".repeat(90)),
        "a module would be 0.125 mm",
    );
    let mut wide = roll;
    wide["hri"] = json!({"text": "serial", "fontMm": 0.75});
    check(wide, |item| item.serial = Some("A".repeat(60)), "the label has");
    let error =
        render_chunk(&spec(&json!({"format": "png", "dpi": 2_400, "code": {"sizeMm": 120}})), 0, &items(1));
    assert!(error.expect_err("refused").to_string().contains("is more than the 105.8 mm that are drawn"));
}

/// What is drawn over a code, or beside its place, is noticed: what is decoded is what was written.
#[test]
fn a_damaged_drawing_is_not_decoded() {
    use crate::{
        format::{svg, zpl},
        place::{Rect, place},
        verify::{self, Expected},
    };
    let item = &items(1)[0];
    let svg_spec = spec(&json!({"format": "svg"}));
    let placed = place(&svg_spec, 0, item).expect("it fits");
    let expected = Expected { payload: &item.url, ecl: qr::Ecl::Q, placed: &placed };
    let mut groups = placed.groups((0, 0));
    let read = |groups: &[_]| {
        let drawn = svg::draw(placed.width, placed.height, groups);
        verify::vector(&svg::read(&drawn).expect("it is read"), (0, 0), &expected)
    };
    assert_eq!(read(&groups), Some(verify::Found::Located));
    let moved: Vec<_> = placed.groups((3_000_000, 0));
    assert_eq!(read(&moved), None, "it lies beside its place");
    groups[0].rects.push(Rect { x: 4, y: 9, width: 16, height: 8 });
    assert_eq!(read(&groups), None, "a third of its data is painted over");

    let zpl_spec = spec(&json!({"format": "zpl"}));
    let placed = place(&zpl_spec, 0, item).expect("it fits");
    let expected = Expected { payload: "HTTPS://TN.GG/OTHER", ecl: qr::Ecl::Q, placed: &placed };
    let bitmap = crate::bitmap::Bitmap::draw(placed.width, placed.height, &placed.groups((0, 0)));
    let drawn = zpl::read(&zpl::draw(&bitmap)).expect("it is read");
    assert_eq!(verify::raster(&drawn, &expected), None, "another payload");
}

#[test]
fn a_chunk_that_nobody_waits_for_is_given_up() {
    use std::sync::atomic::AtomicBool;
    for members in
        [json!({"format": "png"}), json!({"format": "pdf-sheets", "layout": {"size": "a4-63.5x38.1"}})]
    {
        let stopped = crate::render_chunk_until(&spec(&members), 0, &items(3), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(PrintError::Stopped)), "{members}: {stopped:?}");
        assert!(crate::render_chunk_until(&spec(&members), 0, &items(3), &AtomicBool::new(false)).is_ok());
    }
}
