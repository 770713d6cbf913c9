//! Files of print orders, read by programs that others wrote: `qpdf`, poppler, `rsvg-convert`, `zbarimg`, Python.

use std::{
    collections::HashMap,
    fs,
    io::{Cursor, Read as _},
    path::{Path, PathBuf},
    process::Command,
};

use image::{GrayImage, ImageFormat, Luma};
use print::{Assembly, MANIFEST_HEADER, OrderFacts, PrintItem, PrintSpec, render_chunk};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::decode::tools;

const POINTS_PER_MM: f64 = 72.0 / 25.4;

/// A finished order.
struct Order {
    items: Vec<PrintItem>,
    file: Vec<u8>,
    /// The lines of the manifest, by the names of its columns.
    lines: Vec<HashMap<String, String>>,
    folder: TempDir,
}

fn items(count: usize) -> Vec<PrintItem> {
    let item = |nth: usize| {
        let short_id = format!("K7Q2M4X{:03}", nth * 37 % 1_000);
        PrintItem {
            serial: Some(format!("A/{nth}")),
            url: format!("HTTPS://TN.GG/{short_id}"),
            short_id,
            gtin: Some("4012345678901".to_owned()),
        }
    };
    (1..=count).map(item).collect()
}

impl Order {
    fn draw(members: &Value, count: usize) -> Self {
        let spec = PrintSpec::parse(members.as_object().unwrap()).unwrap();
        let items = items(count);
        let mut file = Vec::new();
        let mut manifest = MANIFEST_HEADER.to_owned();
        let total = count as u64;
        let mut assembly = Assembly::new(&spec, 0..total, &OrderFacts::default(), &mut file).unwrap();
        for range in spec.chunks_of(total, 10) {
            let part = &items[range.start as usize..range.end as usize];
            let chunk = render_chunk(&spec, range.start, part).unwrap();
            assembly.add(&chunk.body[..], &chunk.index).unwrap();
            manifest += &chunk.manifest;
        }
        assert_eq!(assembly.finish(manifest.as_bytes()).unwrap().totals.decoded, total);
        let names: Vec<&str> = MANIFEST_HEADER.trim_end().split(',').collect();
        let line = |line: &str| {
            let cells = line.split(',').map(str::to_owned);
            names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
        };
        let lines = manifest.lines().skip(1).map(line).collect();
        Self { items, file, lines, folder: TempDir::new().unwrap() }
    }

    fn save(&self, name: &str, bytes: &[u8]) -> PathBuf {
        tools::save(self.folder.path(), name, bytes)
    }

    /// The files of a ZIP in the order of the manifest.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut archive = zip::ZipArchive::new(Cursor::new(&self.file)).unwrap();
        let mut file = |line: &HashMap<String, String>| {
            let mut bytes = Vec::new();
            archive.by_name(&line["file"]).unwrap().read_to_end(&mut bytes).unwrap();
            (line["file"].clone(), bytes)
        };
        self.lines.iter().map(&mut file).collect()
    }

    /// Both decoders read the codes, in their order, from one picture each.
    fn check(&self, pictures: &[Vec<u8>]) {
        let name = |nth: usize| format!("{nth:03}.png");
        let files: Vec<PathBuf> =
            pictures.iter().enumerate().map(|(nth, png)| self.save(&name(nth), png)).collect();
        let payloads: Vec<&str> = self.items.iter().map(|item| item.url.as_str()).collect();
        assert_eq!(tools::zbarimg(&files), payloads);
        let read = |png: &Vec<u8>| tools::rqrr(png, "a label").concat();
        assert_eq!(pictures.iter().map(read).collect::<Vec<_>>(), payloads);
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A part of a page as PNG, at 600 dpi, in millimetres from the upper left corner.
fn crop(pdf: &Path, page: &str, [x, y, width, height]: [f64; 4]) -> Vec<u8> {
    let mut command = Command::new("pdftoppm");
    command.args(["-png", "-singlefile", "-r", "600", "-f", page, "-l", page]);
    for (name, mm) in [("-x", x), ("-y", y), ("-W", width), ("-H", height)] {
        command.arg(name).arg(format!("{:.0}", mm / 25.4 * 600.0));
    }
    let root = pdf.with_extension("label");
    run(command.arg(pdf).arg(&root));
    fs::read(pdf.with_extension("label.png")).unwrap()
}

/// Width and height of each page in millimetres, as poppler reads them.
fn page_sizes(pdf: &Path) -> Vec<[f64; 2]> {
    let text = run(Command::new("pdfinfo").args(["-f", "1", "-l", "9999"]).arg(pdf));
    let sizes = text.lines().filter(|line| line.starts_with("Page ") && line.contains(" size:"));
    let size = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        [3, 5].map(|at| number(words[at]) / POINTS_PER_MM)
    };
    sizes.map(size).collect()
}

#[test]
fn each_label_of_a_sheet_is_where_the_manifest_says() {
    let layout = json!({"size": "a4-63.5x38.1", "start": 4, "cutMarks": true});
    let order = Order::draw(
        &json!({"format": "pdf-sheets", "layout": layout, "hri": {"text": "gs1", "fontMm": 1.5}}),
        20,
    );
    let pdf = order.save("codes.pdf", &order.file);
    tools::qpdf(&pdf);
    let sizes = page_sizes(&pdf);
    assert_eq!(sizes.len(), 2, "18 labels and 2");
    for [width, height] in sizes {
        assert!((width - 210.0).abs() < 0.01 && (height - 297.0).abs() < 0.01, "{width} x {height}");
    }
    let label = |line: &HashMap<String, String>| {
        let x = 7.25 + (number(&line["column"]) - 1.0) * 66.0;
        let y = 15.15 + (number(&line["row"]) - 1.0) * 38.1;
        crop(&pdf, &line["page"], [x, y, 63.5, 38.1])
    };
    let first = &order.lines[0];
    assert_eq!(
        (&*first["page"], &*first["row"], &*first["column"]),
        ("1", "2", "1"),
        "three labels are gone"
    );
    order.check(&order.lines.iter().map(label).collect::<Vec<_>>());
}

#[test]
fn pages_have_the_size_that_was_asked_for() {
    for (members, mm) in [
        (json!({"format": "pdf-pages", "code": {"moduleMm": 0.4}}), [13.2, 13.2]),
        (json!({"format": "pdf-pages", "code": {"sizeMm": 20}}), [20.0, 20.0]),
        (
            json!({"format": "pdf-pages", "layout": {"size": "roll-50x25"}, "hri": {"text": "serial"}}),
            [50.0, 25.0],
        ),
        (json!({"format": "pdf-pages", "code": {"moduleMm": 0.4}, "dpi": 600}), [12.573, 12.573]),
    ] {
        let order = Order::draw(&members, 5);
        let pdf = order.save("codes.pdf", &order.file);
        tools::qpdf(&pdf);
        let sizes = page_sizes(&pdf);
        assert_eq!(sizes.len(), 5, "{members}");
        for size in sizes {
            let is_near = size.iter().zip(mm).all(|(is, should)| (is - should).abs() < 0.01);
            assert!(is_near, "{members}: {size:?} instead of {mm:?}");
        }
        let page = |nth: usize| crop(&pdf, &nth.to_string(), [0.0, 0.0, mm[0], mm[1]]);
        order.check(&(1..=5).map(page).collect::<Vec<_>>());
    }
}

#[test]
fn a_tree_of_many_pages_is_read_by_others() {
    let order = Order::draw(&json!({"format": "pdf-pages"}), 200);
    let pdf = order.save("codes.pdf", &order.file);
    tools::qpdf(&pdf);
    assert_eq!(page_sizes(&pdf).len(), 200);
}

#[test]
fn a_zip_is_read_by_python() {
    let naming = "{serial}_{shortId}.png";
    let order = Order::draw(&json!({"format": "png", "naming": naming}), 30);
    let zip = order.save("codes.zip", &order.file);
    run(Command::new("python3").args(["-m", "zipfile", "-t"]).arg(&zip));
    let names = run(Command::new("python3")
        .args(["-c", "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))"])
        .arg(&zip));
    let expected =
        order.lines.iter().map(|line| line["file"].as_str()).chain(["manifest.csv", "receipt.json"]);
    assert_eq!(names.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(order.lines[0]["file"], "A_1_K7Q2M4X037.png", "the serial is A/1");
}

#[test]
fn every_image_of_a_zip_decodes() {
    let text = json!({"text": "gs1", "fontMm": 1.5});
    for format in ["png", "svg", "pdf", "tiff"] {
        let order = Order::draw(&json!({"format": format, "hri": text, "code": {"moduleMm": 0.5}}), 12);
        let files = order.files();
        let saved: Vec<PathBuf> = files.iter().map(|(name, bytes)| order.save(name, bytes)).collect();
        match format {
            // `zbarimg` reads TIFF by ImageMagick; `rqrr` has read it while it was drawn.
            "tiff" => {
                let payloads: Vec<&str> = order.items.iter().map(|item| item.url.as_str()).collect();
                assert_eq!(tools::zbarimg(&saved), payloads);
            }
            "png" => {
                tools::pngcheck(&saved);
                order.check(&files.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>());
            }
            "svg" => order.check(&files.iter().map(|(_, svg)| tools::rsvg(svg, "4")).collect::<Vec<_>>()),
            _ => {
                saved.iter().for_each(|file| tools::qpdf(file));
                order.check(&files.iter().map(|(_, pdf)| tools::pdftoppm(pdf, "600")).collect::<Vec<_>>());
            }
        }
    }
}

/// No decoder reads EPS: its rectangles are read by our own reader while it is drawn.
#[test]
fn an_eps_has_the_frame_that_the_format_demands() {
    let order = Order::draw(&json!({"format": "eps", "code": {"moduleMm": 0.4}}), 2);
    for (name, bytes) in order.files() {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 38 38\n"), "{name}");
        assert!(text.contains("%%HiResBoundingBox: 0 0 37.417323 37.417323\n"), "{name}");
        assert!(text.ends_with("showpage\n%%EOF\n"), "{name}");
    }
}

/// No printer stands in a computer: the pictures are unpacked here as the language's manual says.
#[test]
fn every_label_of_zpl_decodes() {
    let layout = json!({"size": "roll-50x25"});
    let order = Order::draw(&json!({"format": "zpl", "layout": layout, "hri": {"text": "shortId"}}), 8);
    let text = String::from_utf8(order.file.clone()).unwrap();
    let labels: Vec<&str> = text.split_inclusive("^XZ\n").collect();
    assert_eq!(labels.len(), 8);
    for label in &labels {
        assert!(label.starts_with("^XA\n^PW399\n^LL199\n"), "50 x 25 mm at 203 dpi: {label}");
    }
    order.check(&labels.iter().map(|label| picture(label)).collect::<Vec<_>>());
}

/// The picture of a label as PNG, four pixels a dot.
fn picture(label: &str) -> Vec<u8> {
    let (_, rest) = label.split_once("^GFA,").unwrap();
    let mut parts = rest.split_once("^FS").unwrap().0.splitn(4, ',');
    let [total, _, stride] = [(); 3].map(|()| parts.next().unwrap().parse::<usize>().unwrap());
    let mut rows: Vec<Vec<u32>> = Vec::new();
    let (mut row, mut count) = (Vec::new(), 0);
    for letter in parts.next().unwrap().chars() {
        match letter {
            ',' => row.resize(stride * 2, 0),
            '!' => row.resize(stride * 2, 15),
            ':' => row = rows.last().unwrap().clone(),
            'G'..='Y' => count += letter as usize - 'F' as usize,
            'g'..='z' => count += 20 * (letter as usize - 'f' as usize),
            digit => {
                row.extend(std::iter::repeat_n(digit.to_digit(16).unwrap(), count.max(1)));
                count = 0;
            }
        }
        if row.len() == stride * 2 {
            rows.push(std::mem::take(&mut row));
        }
    }
    assert_eq!(rows.len() * stride, total);
    let dot = |x: u32, y: u32| {
        let (x, y) = (x as usize / 4, y as usize / 4);
        let is_dark = rows[y][x / 4] >> (3 - x % 4) & 1 == 1;
        Luma([if is_dark { 0 } else { 255 }])
    };
    let image = GrayImage::from_fn(stride as u32 * 8 * 4, rows.len() as u32 * 4, dot);
    let mut png = Cursor::new(Vec::new());
    image.write_to(&mut png, ImageFormat::Png).unwrap();
    png.into_inner()
}
