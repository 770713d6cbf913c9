//! Request bodies of the counts of demos.

use kernel::domain::property::MAX_TIME_MS;
use serde_json::{Value, json};
use shared::standing::Authenticity;
use web::bodies::{AN_ID, Body, ID, boolean, request, text};

use crate::domain::reported_scan::{MAX_COUNT, MAX_ENTRIES, MAX_HOST, MAX_TEXT};

pub(super) fn reported_scans() -> Value {
    let verdicts: Vec<&str> = Authenticity::ALL.iter().map(|one| one.as_str()).collect();
    let link = format!("^[A-Za-z0-9.:\\[\\]-]{{1,{MAX_HOST}}}/[A-Za-z0-9_-]{{1,64}}$");
    let described = |mut schema: Value, what: &str| {
        schema["description"] = json!(what);
        schema
    };
    let time = json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_TIME_MS,
        "description": "When it was, in milliseconds since 1970; at most a day ahead."});
    let count = json!({"type": "integer", "minimum": 1, "maximum": MAX_COUNT,
        "description": "How many scans the entry stands for; 1 without it."});
    let scan = Body::new("")
        .must("timestamp", time)
        .may("count", count)
        .may("newDevice", described(boolean(), "Whether it is by a device that is new on its day of UTC."))
        .may(
            "product",
            json!({"type": "string", "pattern": ID, "description": "A product of the demo."}),
        )
        .may(
            "link",
            json!({"type": "string", "pattern": link, "description": "The short URL of a link of the demo, without its scheme."}),
        )
        .may(
            "country",
            json!({"type": "string", "pattern": "^[A-Z]{2}$", "description": "ISO 3166-1 alpha-2."}),
        )
        .may("region", text(0, MAX_TEXT))
        .may("city", text(0, MAX_TEXT))
        .may(
            "system",
            described(text(0, MAX_TEXT), "The operating system; the kind of device follows from it."),
        )
        .may("language", described(text(0, MAX_TEXT), "A language tag such as `de-CH`."))
        .may("verdict", json!({"type": "string", "enum": verdicts}));
    let schema = Body::new("").must(
        "scans",
        json!({"type": "array", "minItems": 1, "maxItems": MAX_ENTRIES, "items": scan.schema()}),
    );
    let meaning = "Scans of a demo, each with what is known of it";
    let example = json!({"scans": [{"timestamp": 1_767_225_600_000_i64, "count": 12, "country": "DE",
        "product": AN_ID, "system": "Android"}]});
    request(meaning, schema.schema(), example)
}
