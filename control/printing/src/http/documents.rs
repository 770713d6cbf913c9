//! Print orders as answers show them.

use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;

use crate::domain::{
    order::{Order, StoredFile},
    serials::Form,
};

/// How far an order is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PrintProgressDocument {
    /// From 0 to 100; 100 when the files are there.
    #[schema(minimum = 0, maximum = 100)]
    percentage: f64,
    /// Codes of the order; while a filter is read, those that it found first.
    codes: u64,
    /// Codes that were found, or made.
    made: u64,
    /// Codes that were drawn, each of which was read back.
    rendered: u64,
}

/// How far the edges were when an order was released.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PrintEdgesDocument {
    /// The revision that they were to hold.
    rev: u64,
    /// Edges that held it.
    acked: usize,
    /// Edges that there were.
    members: usize,
    /// Edges that did not hold it.
    lagging: Vec<String>,
    /// Edges that are known, but had not reported for a while.
    unreachable: Vec<String>,
    /// Whether more may lag than are named.
    incomplete: bool,
}

/// The serials that an order makes.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PrintSerialsDocument {
    /// `numbered` or `random`.
    #[schema(example = "numbered")]
    form: String,
    /// The first serial, where they are numbered.
    #[schema(example = "A00001")]
    first: Option<String>,
    /// The last one.
    #[schema(example = "A00200")]
    last: Option<String>,
    /// Bits of randomness in each, where they are random.
    bits: Option<u32>,
}

/// A print order: many codes as one file.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PrintOrderDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was asked for, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it last moved on.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// When it ended.
    #[schema(read_only)]
    completed_at: Option<i64>,
    /// `waiting`, `making`, `rendering`, `publishing`, `complete`, `failed` or `cancelled`.
    #[schema(read_only, example = "rendering")]
    status: &'static str,
    /// What people call it.
    name: Option<String>,
    /// Which codes, as it was sent; of a reprint that of the order whose codes it prints again.
    #[schema(value_type = Object)]
    source: Value,
    /// Id of the order whose codes it prints again.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    reprint_of: Option<String>,
    /// Which of its codes, as it was sent: `codes`, `from` and `to`, or `sheets`.
    #[schema(read_only, value_type = Option<Object>)]
    reprint: Option<Value>,
    /// `none`, `report` or `require`.
    #[schema(example = "report")]
    wait_for_edges: &'static str,
    /// The format.
    #[schema(value_type = String, example = "pdf-sheets")]
    format: Option<Value>,
    /// The labels of a sheet, or the one of a roll.
    #[schema(value_type = Option<Object>)]
    layout: Option<Value>,
    /// Names of files in a ZIP.
    #[schema(value_type = Option<String>)]
    naming: Option<Value>,
    /// The symbol: `ecl`, `version`, `quietZone`, `moduleMm` or `sizeMm`, and `payload` where it is `gs1dl`.
    #[schema(value_type = Option<Object>)]
    code: Option<Value>,
    /// The text below it: `text`, `fontMm`.
    #[schema(value_type = Option<Object>)]
    hri: Option<Value>,
    /// Dots per inch of what is made of dots.
    #[schema(value_type = Option<u32>)]
    dpi: Option<Value>,
    /// Whether modules may be narrower than is wise.
    #[schema(value_type = Option<bool>)]
    allow_small: Option<Value>,
    /// How far it is.
    #[schema(read_only)]
    progress: PrintProgressDocument,
    /// The serials that it makes.
    #[schema(read_only)]
    serials: Option<PrintSerialsDocument>,
    /// How far the edges were, when it was released or last waited.
    #[schema(read_only)]
    edges: Option<PrintEdgesDocument>,
    /// Why it failed.
    #[schema(read_only)]
    message: Option<String>,
    /// Until when its files are kept.
    #[schema(read_only)]
    files_until: Option<i64>,
    /// When its files were removed.
    #[schema(read_only)]
    files_removed_at: Option<i64>,
}

impl From<Order> for PrintOrderDocument {
    fn from(order: Order) -> Self {
        let progress = PrintProgressDocument {
            percentage: order.percentage(),
            codes: order.details.codes,
            made: order.details.made,
            rendered: order.details.rendered,
        };
        let details = order.details;
        let mut spec = details.spec;
        let serials = details.serials.map(|serials| {
            let (first, last) = match serials.form {
                Form::Numbered { start, digits } => {
                    let first = start.unwrap_or(1);
                    let last = first.saturating_add(serials.count.saturating_sub(1));
                    (Some(serials.numbered(first, digits)), Some(serials.numbered(last, digits)))
                }
                Form::Random { .. } => (None, None),
            };
            PrintSerialsDocument { form: serials.form.to_string(), first, last, bits: serials.bits() }
        });
        let edges = details.edges.map(|edges| PrintEdgesDocument {
            rev: edges.rev,
            acked: edges.acked,
            members: edges.members,
            lagging: edges.lagging,
            unreachable: edges.unreachable,
            incomplete: edges.incomplete,
        });
        let (reprint_of, reprint) =
            details.reprint.map(|reprint| (reprint.of.to_string(), reprint.sent)).unzip();
        Self {
            id: order.id.to_string(),
            created_at: order.stamp.created_at.0,
            updated_at: order.stamp.updated_at.0,
            completed_at: order.completed_at.map(|at| at.0),
            status: order.status.as_str(),
            name: (!order.name.is_empty()).then_some(order.name),
            source: details.source,
            reprint_of,
            reprint,
            wait_for_edges: details.wait.as_str(),
            format: spec.remove("format"),
            layout: spec.remove("layout"),
            naming: spec.remove("naming"),
            code: spec.remove("code"),
            hri: spec.remove("hri"),
            dpi: spec.remove("dpi"),
            allow_small: spec.remove("allowSmall"),
            progress,
            serials,
            edges,
            message: details.message,
            files_until: order.files_until.map(|at| at.0),
            files_removed_at: details.files_removed_at.map(|at| at.0),
        }
    }
}

/// A file of a print order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PrintFileDocument {
    /// Its name.
    #[schema(example = "codes.pdf")]
    name: String,
    /// Its media type.
    #[serde(rename = "type")]
    #[schema(example = "application/pdf")]
    content_type: String,
    /// Bytes.
    #[schema(example = 1_048_576)]
    size_bytes: u64,
    /// The start of the BLAKE3 hash of its bytes, in hexadecimal digits.
    etag: String,
    /// Where it is downloaded, with the same key.
    url: String,
}

impl PrintFileDocument {
    pub(super) fn new(file: StoredFile, base: &str) -> Self {
        let url = format!("{base}/{}", file.name);
        let StoredFile { name, content_type, blob: _, size_bytes, etag } = file;
        Self { name, content_type, size_bytes, etag, url }
    }
}
