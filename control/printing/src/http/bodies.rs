//! Request bodies of print orders.

use kernel::domain::limits::{MAX_NAME, MAX_TAG};
use print::PrintFormat;
use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, ID, boolean, formatted, id_of, request, text, texts};

use crate::domain::{
    input::Form,
    order_draft::WaitForEdges,
    reprint::MAX_SHEETS,
    serials::{MAX_NUMBER, MAX_SERIAL, MIN_RANDOM},
    source::MAX_LISTED,
};

pub(super) fn order() -> Value {
    let waits: Vec<&str> = WaitForEdges::ALL.into_iter().map(WaitForEdges::as_str).collect();
    let formats: Vec<&str> = PrintFormat::ALL.into_iter().map(PrintFormat::as_str).collect();
    let schema = Body::new("")
        .may("name", text(1, MAX_NAME))
        .must("source", source())
        .may("waitForEdges", json!({"type": "string", "enum": waits}))
        .must("format", json!({"type": "string", "enum": formats}))
        .may("layout", layout())
        .may("naming", formatted("print-naming", "Names of files in a ZIP, such as `{serial}_{shortId}`."))
        .may("code", code())
        .may("hri", hri())
        .may("dpi", json!({"type": "integer", "minimum": 72, "maximum": 2400}))
        .may("allowSmall", boolean());
    let meaning = "Which codes, and how they are drawn. `source` has exactly one of `list`, `filter`, `file` and `serials`";
    let example = json!({"name": "Labels of week 12", "source": {"list": {"thngs": [AN_ID]}}, "format": "pdf-sheets",
        "layout": {"size": "a4-63.5x38.1"}, "hri": {"text": "shortId"}});
    request(meaning, exact(schema), example)
}

pub(super) fn reprint() -> Value {
    let whole = |to: u64| json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": to});
    let labels = || whole(1_000);
    let list =
        |most: usize, one: Value| json!({"type": "array", "minItems": 1, "maxItems": most, "items": one});
    let with = || Body::new("").may("name", text(1, MAX_NAME));
    let schema = json!({"anyOf": [
        exact(with().must("codes", list(MAX_LISTED, text(1, 100))).may("start", labels())),
        exact(with().must("from", whole(print::MAX_CODES)).must("to", whole(print::MAX_CODES)).may("start", labels())),
        exact(with().must("sheets", list(MAX_SHEETS, whole(print::MAX_CODES)))),
    ]});
    let meaning = "Which codes of the order: those with the short ids or serials `codes`, those from one place of the \
        manifest to another, or those of whole sheets. `start` is the first free label of the first sheet";
    request(meaning, schema, json!({"name": "Damaged labels", "codes": ["K7Q2WXYZ01", "K7Q2WXYZ07"]}))
}

/// The schema of an object that has no other members.
fn exact(body: Body) -> Value {
    let mut schema = body.schema();
    schema["additionalProperties"] = json!(false);
    schema
}

fn source() -> Value {
    let ids = |one: Value| json!({"type": "array", "minItems": 1, "maxItems": MAX_LISTED, "items": one});
    let short_id = formatted("short-id", "Of a redirection of the domain.");
    let domain = || formatted("short-domain", "A short domain of the account; without it the first.");
    let listed = json!({"anyOf": [
        exact(Body::new("").must("shortIds", ids(short_id)).may("shortDomain", domain())),
        exact(Body::new("").must("thngs", ids(json!({"type": "string", "pattern": ID})))),
    ]});
    let forms: Vec<&str> = Form::UPLOADS.iter().map(|(name, _)| *name).collect();
    let file = exact(
        Body::new("")
            .must("location", formatted("file-url", "`contentUrl` of a file of the account."))
            .must("format", json!({"type": "string", "enum": forms}))
            .may("shortDomain", domain()),
    );
    let whole =
        |from: u64, to: u64| json!({"type": "integer", "format": "int64", "minimum": from, "maximum": to});
    let made = || {
        Body::new("")
            .must("product", id_of("product-id", "The product of the Things that are made."))
            .must("count", whole(1, print::MAX_CODES))
            .must("defaultRedirectUrl", formatted("target-url", "Where the links lead."))
            .may(
                "prefix",
                json!({"type": "string", "maxLength": MAX_SERIAL - 1, "pattern": "^[A-Za-z0-9-]*$"}),
            )
            .may("shortDomain", domain())
            .may("tags", texts(MAX_TAG))
    };
    let form = |name: &str| json!({"type": "string", "enum": [name]});
    let serials = json!({"anyOf": [
        exact(made().must("form", form("numbered")).may("start", whole(0, MAX_NUMBER)).may("digits", whole(1, 15))),
        exact(made().must("form", form("random")).may("length", whole(MIN_RANDOM as u64, MAX_SERIAL as u64))),
    ]});
    json!({"anyOf": [
        exact(Body::new("").must("list", listed)),
        exact(Body::new("").must("filter", formatted("filter-listRedirections", "A filter of redirections."))),
        exact(Body::new("").must("file", file)),
        exact(Body::new("").must("serials", serials)),
    ]})
}

fn millimetres(from: f64, to: f64) -> Value {
    json!({"type": "number", "minimum": from, "maximum": to})
}

fn layout() -> Value {
    let count = || json!({"type": "integer", "minimum": 1, "maximum": 100});
    let mut schema = exact(
        Body::new("")
            .may("size", formatted("print-size", "A sheet or a roll by its name; it sets the measures."))
            .may("sheetWidthMm", millimetres(5.0, 1200.0))
            .may("sheetHeightMm", millimetres(5.0, 1200.0))
            .may("rows", count())
            .may("columns", count())
            .may("labelWidthMm", millimetres(5.0, 1000.0))
            .may("labelHeightMm", millimetres(5.0, 1000.0))
            .may("marginLeftMm", millimetres(0.0, 500.0))
            .may("marginTopMm", millimetres(0.0, 500.0))
            .may("gapXMm", millimetres(0.0, 500.0))
            .may("gapYMm", millimetres(0.0, 500.0))
            .may("start", json!({"type": "integer", "minimum": 1, "maximum": 1000}))
            .may("cutMarks", boolean()),
    );
    schema["description"] =
        json!("The labels of a sheet, or the one of a roll. Several on a sheet need `pdf-sheets`.");
    schema
}

fn code() -> Value {
    exact(
        Body::new("")
            .may("ecl", json!({"type": "string", "enum": ["L", "M", "Q", "H"]}))
            .may("version", json!({"type": "integer", "minimum": 1, "maximum": 40}))
            .may("quietZone", json!({"type": "integer", "minimum": 4, "maximum": 20}))
            .may("payload", json!({"type": "string", "enum": ["short", "gs1dl"],
                "description": "`gs1dl`: the GS1 Digital Link of the Thng or product, on a domain with `digitalLinks`."}))
            .may("moduleMm", millimetres(0.1, 20.0))
            .may("sizeMm", millimetres(3.0, 1000.0)),
    )
}

fn hri() -> Value {
    let texts = ["none", "shortId", "serial", "gs1"];
    exact(
        Body::new("")
            .may("text", json!({"type": "string", "enum": texts}))
            .may("fontMm", millimetres(0.75, 20.0)),
    )
}
