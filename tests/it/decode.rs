//! QR codes as the edge serves them, decoded by two independent decoders.
//!
//! The grid of requests and the decoders are those of the renderer's tests.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use qr::{Ecl, Format, QrImage};
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    product::{Options, Product},
    repetitions,
};

#[path = "../../shared/qr/tests/qr/grid.rs"]
mod grid;
#[path = "../../shared/qr/tests/qr/tools.rs"]
pub(crate) mod tools;

const CODE: (&str, &str) = grid::PAYLOADS[0];

/// A product with one redirection on `tn.gg`.
struct Served {
    product: Product,
    record: Value,
}

/// An image as it came.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    kind: String,
    etag: String,
    /// `X-QR-Version`, `-Modules`, `-Ecl` and `-X-Dimension-Mm`.
    facts: [Option<String>; 4],
    bytes: Vec<u8>,
}

impl Served {
    async fn start() -> Result<Self> {
        let product = Product::start(Options { domains: "https://tn.gg", ..Options::default() }).await?;
        let resource = product.create_product().await?;
        let record = product.create_redirection(&resource, "https://example.com/", Some(CODE.1)).await?;
        ensure!(record["qr"]["payload"] == CODE.0, "{record}");
        Ok(Self { product, record })
    }

    async fn ask(&self, path: &str, headers: &[(header::HeaderName, &str)]) -> Result<Response> {
        self.ask_at("tn.gg", path, headers).await
    }

    async fn ask_at(
        &self,
        host: &str,
        path: &str,
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Response> {
        let request = self.product.http.get(format!("{}/{path}", self.product.edge));
        let request = request.header(header::HOST, host);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        Ok(request.send().await?)
    }

    async fn image(&self, path: &str, accept: &str) -> Result<Image> {
        let answer = self.ask(path, &[(header::ACCEPT, accept)]).await?;
        let status = answer.status();
        let of = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let caching = of("cache-control").unwrap_or_default();
        ensure!(status == StatusCode::OK && caching.contains("immutable"), "{path}: {answer:?}");
        let facts = ["version", "modules", "ecl", "x-dimension-mm"].map(|name| of(&format!("x-qr-{name}")));
        let (kind, etag) = (of("content-type").context("no type")?, of("etag").context("no tag")?);
        Ok(Image { kind, etag, facts, bytes: answer.bytes().await?.to_vec() })
    }

    /// An image by its suffix; by `Accept` it must be the same.
    async fn fetch(&self, format: Format, query: &str) -> Result<Image> {
        let suffix = suffix(format);
        let page = "text/html,application/xhtml+xml,*/*;q=0.8";
        let image = self.image(&format!("{}.{suffix}?{query}", CODE.1), page).await?;
        // No `Accept` asks for EPS.
        if format != Format::Eps {
            let same = self.image(&format!("{}?{query}", CODE.1), format.content_type()).await?;
            ensure!(same == image, "{query}: {suffix} by Accept differs");
        }
        check(&image, &grid::draw(format, query, CODE), query)?;
        Ok(image)
    }
}

fn suffix(format: Format) -> &'static str {
    match format {
        Format::Png => "png",
        Format::Svg => "svg",
        Format::Pdf => "pdf",
        Format::Eps => "eps",
    }
}

/// What was served is what the renderer draws, and the headers say what it is.
fn check(image: &Image, drawn: &QrImage, query: &str) -> Result<()> {
    ensure!(image.kind == drawn.content_type, "{query}: {}", image.kind);
    ensure!(image.bytes == drawn.bytes, "{query}: other bytes than drawn");
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("ecl=")).unwrap_or("Q");
    let facts = [
        Some(drawn.version.to_string()),
        Some((17 + 4 * u32::from(drawn.version)).to_string()),
        Some(asked.to_owned()),
        drawn.x_dimension_mm.map(|mm| format!("{mm:.4}")),
    ];
    ensure!(image.facts == facts, "{query}: {:?} instead of {facts:?}", image.facts);
    Ok(())
}

/// Rasters that both decoders must read as the record's payload.
struct Decoders {
    payload: String,
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Decoders {
    fn new(served: &Served) -> Result<Self> {
        let payload = served.record["qr"]["payload"].as_str().context("no payload")?.to_owned();
        Ok(Self { payload, folder: TempDir::new()?, files: Vec::new() })
    }

    fn check(&mut self, query: &str, png: &[u8]) {
        assert_eq!(tools::rqrr(png, query), [self.payload.as_str()], "{query}");
        let name = format!("{:03}-{query}.png", self.files.len());
        self.files.push(tools::save(self.folder.path(), &name, png));
    }

    fn finish(self) -> TempDir {
        let found = tools::zbarimg(&self.files);
        if found.len() != self.files.len() || found.iter().any(|text| *text != self.payload) {
            for file in &self.files {
                let found = tools::zbarimg(std::slice::from_ref(file));
                assert_eq!(found, [self.payload.as_str()], "{}", file.display());
            }
        }
        self.folder
    }
}

fn queries() -> impl Iterator<Item = String> {
    grid::queries().chain(grid::PRINT.map(str::to_owned))
}

/// The same, each with whether its image is decoded here: what is served is what the renderer draws, and that the tests of
/// the renderer decode, all of it. So every seventh is enough, which has each size, template and level among them.
fn decoded() -> impl Iterator<Item = (String, bool)> {
    let step: usize = repetitions(7, 1);
    queries().enumerate().map(move |(nth, query)| (query, nth.is_multiple_of(step)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_png_decodes_and_is_well_formed() {
    let served = Served::start().await.unwrap();
    let mut decoders = Decoders::new(&served).unwrap();
    for (query, is_decoded) in decoded() {
        let png = served.fetch(Format::Png, &query).await.unwrap().bytes;
        if is_decoded {
            decoders.check(&query, &png);
        }
    }
    tools::pngcheck(&decoders.files);
    decoders.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_svg_decodes_when_rasterised() {
    let served = Served::start().await.unwrap();
    let mut decoders = Decoders::new(&served).unwrap();
    for (query, is_decoded) in decoded() {
        // Millimetres are few pixels on a screen.
        let zoom = if query.contains("w=") { "1" } else { "4" };
        let svg = served.fetch(Format::Svg, &query).await.unwrap().bytes;
        if is_decoded {
            decoders.check(&query, &tools::rsvg(&svg, zoom));
        }
    }
    decoders.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pdf_decodes_when_rasterised_and_is_well_formed() {
    let served = Served::start().await.unwrap();
    let mut decoders = Decoders::new(&served).unwrap();
    for (query, is_decoded) in decoded() {
        // Poppler thickens edges by up to a pixel, which counts while modules are small.
        let dpi = match query.as_str() {
            query if !query.contains("w=") => "600",
            query if query.contains("w=511") || query.contains("w=800&tpl") => "72",
            _ => "144",
        };
        let pdf = served.fetch(Format::Pdf, &query).await.unwrap().bytes;
        if is_decoded {
            tools::qpdf(&tools::save(decoders.folder.path(), "code.pdf", &pdf));
            decoders.check(&query, &tools::pdftoppm(&pdf, dpi));
        }
    }
    decoders.finish();
}

/// No decoder reads EPS; its rectangles are those of the PDF, as the renderer's tests show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eps_is_served_whole() {
    let served = Served::start().await.unwrap();
    for query in queries() {
        let eps = served.fetch(Format::Eps, &query).await.unwrap().bytes;
        assert!(eps.starts_with(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 "), "{query}");
        assert!(eps.ends_with(b"%%EOF\n"), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_url_of_tn_gg_is_version_2_at_level_q() {
    let served = Served::start().await.unwrap();
    assert_eq!(served.record["qr"]["version"], 2);
    assert_eq!(served.record["qr"]["modules"], 25);
    assert_eq!(served.record["qr"]["ecl"], "Q");
    for query in ["", "w=95", "ecl=Q", "x=0.5"] {
        let image = served.fetch(Format::Png, query).await.unwrap();
        assert_eq!(image.facts[..3], ["2", "25", "Q"].map(|text| Some(text.to_owned())), "{query}");
        assert_eq!(symbol(&image.bytes), (2, Ecl::Q), "{query}: what a decoder sees");
    }
    for ecl in Ecl::ALL {
        let image = served.fetch(Format::Png, &format!("w=300&ecl={}", ecl.as_str())).await.unwrap();
        let (version, seen) = symbol(&image.bytes);
        assert_eq!((image.facts[0].clone(), seen), (Some(version.to_string()), ecl));
    }
}

/// Version and level that `rqrr` reads out of the symbol itself.
fn symbol(png: &[u8]) -> (usize, Ecl) {
    let image = image::load_from_memory(png).unwrap().to_luma8();
    let luma = |x, y| image.get_pixel(x as u32, y as u32).0[0];
    let (width, height) = (image.width() as usize, image.height() as usize);
    let mut prepared = rqrr::PreparedImage::prepare_from_greyscale(width, height, luma);
    let meta = prepared.detect_grids()[0].decode().unwrap().0;
    // The two bits of the format information (ISO/IEC 18004, table 12).
    let ecl = [Ecl::M, Ecl::L, Ecl::H, Ecl::Q][usize::from(meta.ecc_level)];
    (meta.version.0, ecl)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_is_told_that_nothing_changed() {
    let served = Served::start().await.unwrap();
    let mut tags = std::collections::HashSet::new();
    for (format, query) in [
        (Format::Png, ""),
        (Format::Png, "w=300"),
        (Format::Png, "ecl=H"),
        (Format::Png, "tpl=default-shortid"),
        (Format::Svg, ""),
        (Format::Pdf, ""),
        (Format::Eps, ""),
    ] {
        let image = served.fetch(format, query).await.unwrap();
        assert!(image.etag.starts_with('"'), "a strong tag: {}", image.etag);
        assert!(tags.insert(image.etag.clone()), "two images have one tag: {format:?} {query}");
        let path = format!("{}.{}?{query}", CODE.1, suffix(format));
        let (weak, among) = (format!("W/{}", image.etag), format!("\"x\", {}", image.etag));
        for (sent, status) in [
            (image.etag.as_str(), StatusCode::NOT_MODIFIED),
            (&weak, StatusCode::NOT_MODIFIED),
            (&among, StatusCode::NOT_MODIFIED),
            ("*", StatusCode::NOT_MODIFIED),
            ("\"x\"", StatusCode::OK),
        ] {
            let answer = served.ask(&path, &[(header::IF_NONE_MATCH, sent)]).await.unwrap();
            assert_eq!(answer.status(), status, "{path} {sent}");
            assert_eq!(answer.headers()[header::ETAG], image.etag, "{path} {sent}");
            let bytes = answer.bytes().await.unwrap();
            assert_eq!(bytes.is_empty(), status == StatusCode::NOT_MODIFIED, "{path} {sent}");
        }
    }
}

/// Short ids of a product and of its items, with the serial and what a code says of it.
const DIGITAL_LINKS: [(&str, Option<&str>, &str); 5] = [
    ("SHOE", None, ""),
    ("PLAIN", Some("aB-7_c.9"), "/21/aB-7_c.9"),
    ("SLASH", Some("A/1"), "/21/A%2F1"),
    ("PERCENT", Some("A%2F1"), "/21/A%252F1"),
    ("SIGNS", Some("!\"%&'()*+,-./:;<=>?_"), "/21/%21%22%25%26%27%28%29%2A%2B%2C-.%2F%3A%3B%3C%3D%3E%3F_"),
];

/// A code of a Digital Link says its URI, byte for byte, and is the same from the edge and from control.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_digital_links_decode_to_their_uri() -> Result<()> {
    let served = Served::start().await?;
    let product = &served.product;
    let made = async |path: &str, body: Value| -> Result<String> {
        let body = product.must_answer(201, Method::POST, path, Some(body)).await?;
        Ok(body["id"].as_str().context("no id")?.to_owned())
    };
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let domain = format!("/accounts/{}/domains/tn.gg", access["account"].as_str().context("no account")?);
    product.must_answer(200, Method::PUT, &domain, Some(json!({"digitalLinks": true}))).await?;
    let shoe = json!({"name": "Shoe", "identifiers": {"gs1:01": "09506000134352"}});
    let shoe = made("/products", shoe).await?;
    for (short_id, serial, behind) in DIGITAL_LINKS {
        let resource = match serial {
            Some(serial) => {
                let item = json!({"name": "One", "product": shoe, "identifiers": {"gs1:21": serial}});
                made("/thngs", item).await?
            }
            None => shoe.clone(),
        };
        product.create_redirection(&resource, "https://example.com/", Some(short_id)).await?;
        let uri = format!("https://tn.gg/01/09506000134352{behind}");
        for format in Format::ALL {
            let path = format!("{short_id}.{}?ecl=M", suffix(format));
            let answer = served.ask(&format!("{path}&payload=gs1dl"), &[]).await?;
            ensure!(answer.status() == StatusCode::OK, "{format:?}: {answer:?}");
            ensure!(answer.headers()[header::CACHE_CONTROL] == "public, max-age=300", "{answer:?}");
            let by_edge = answer.bytes().await?;
            let query = "payload=gs1dl&ecl=M&domain=tn.gg";
            let request = product.http.get(format!("{}/redirections/{short_id}.qr?{query}", product.api));
            let request = request.header(header::AUTHORIZATION, &product.key);
            let by_control = request.header(header::ACCEPT, format.content_type()).send().await?;
            ensure!(by_control.status() == StatusCode::OK, "{format:?}: {by_control:?}");
            ensure!(by_edge == by_control.bytes().await?, "{format:?}: other bytes than control's");
            // The short URL after the Digital Link: they are two images.
            ensure!(by_edge != served.ask(&path, &[]).await?.bytes().await?, "{format:?}: the short URL");
            let png = match format {
                Format::Png => by_edge.to_vec(),
                Format::Svg => tools::rsvg(&by_edge, "4"),
                Format::Pdf => tools::pdftoppm(&by_edge, "600"),
                // No decoder reads it.
                Format::Eps => continue,
            };
            let read = tools::rqrr(&png, short_id);
            ensure!(read == [uri.as_str()], "{format:?}: {read:?} instead of {uri}");
        }
        // The host of a URI is in lower case, however it was asked for.
        let path = format!("{short_id}.png?ecl=M&payload=gs1dl");
        let png = served.ask_at("Tn.GG", &path, &[]).await?.bytes().await?;
        ensure!(tools::rqrr(&png, short_id) == [uri.as_str()], "{uri}");
    }
    let answer = served.ask(&format!("{}.svg?payload=gs1dl", CODE.1), &[]).await?;
    ensure!(answer.status() == StatusCode::BAD_REQUEST, "{answer:?}");
    let body: Value = serde_json::from_slice(&answer.bytes().await?)?;
    let fault = body["errors"][0].as_str().context("no fault")?;
    ensure!(fault.contains("it has no product with a GTIN"), "{fault}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_serve_the_same_bytes_under_the_same_tags() {
    let (one, other) = tokio::try_join!(Served::start(), Served::start()).unwrap();
    for query in queries() {
        for format in Format::ALL {
            let images =
                [one.fetch(format, &query).await.unwrap(), other.fetch(format, &query).await.unwrap()];
            assert!(images[0] == images[1], "{format:?} {query}: two processes differ");
        }
    }
}
