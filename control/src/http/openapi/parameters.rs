//! Parameters that several operations share: those of QR codes, of waiting for edges, and of domains.

use qr::{DPI_RANGE, Ecl, QUIET_ZONE_RANGE, SIDE_RANGE, SIZE_RANGE_NM, X_RANGE_NM};
use serde_json::{Value, json};
use web::routes::Policy;

/// Parameters of an operation besides its own.
pub(super) fn more(policy: Policy, own: &[Value]) -> Vec<Value> {
    let has = |name: &str| own.iter().any(|parameter| parameter["name"] == name);
    let mut found = Vec::new();
    if policy.draws {
        found.extend(qr());
    }
    found.extend(policy.queries.iter().map(|(name, text)| query(name, text, json!({}))));
    if policy.takes_tag {
        let text = "The `ETag` of the resource as it was read, or `*`: 412 if it was changed since";
        found.push(
            json!({"name": "If-Match", "in": "header", "required": false, "description": text, "schema": {}}),
        );
    }
    if policy.takes_range {
        let header = |name: &str, text: &str, format: &str| {
            json!({"name": name, "in": "header", "required": false, "description": text,
                "schema": {"type": "string", "format": format}})
        };
        let range = "One range of bytes, such as `bytes=1048576-`; several get the whole file";
        found.push(header("Range", range, "byte-range"));
        let known = "The `ETag` of the bytes that the range is of: of others the whole file is sent";
        found.push(header("If-Range", known, "entity-tag"));
    }
    found.retain(|parameter| parameter["name"].as_str().is_none_or(|name| !has(name)));
    let waits = has("wait") || found.iter().any(|parameter| parameter["name"] == "wait");
    if waits && !has("timeout") {
        let text = "Longest wait, such as `500ms` or `2s` (default), at most `20s`";
        found.push(query("timeout", text, json!({})));
    }
    found
}

/// The parameters of a QR code image.
fn qr() -> [Value; 17] {
    let whole = |range: &std::ops::RangeInclusive<u32>| json!({"type": "integer", "minimum": range.start(), "maximum": range.end()});
    let millimetres = |range: &std::ops::RangeInclusive<u32>| {
        let [low, high] = [range.start(), range.end()].map(|length| f64::from(*length) / 1e6);
        json!({"type": "number", "minimum": low, "maximum": high})
    };
    let word = |words: &[&str]| json!({"type": "string", "enum": words});
    let levels = Ecl::ALL.map(Ecl::as_str);
    [
        query("w", "Width in pixels; alone also the height. 256 without both", whole(&SIDE_RANGE)),
        query("h", "Height in pixels; alone also the width", whole(&SIDE_RANGE)),
        query("x", "Width of a module in millimetres, of at most 6 decimals", millimetres(&X_RANGE_NM)),
        query(
            "size",
            "Edge of the code with its quiet zone in millimetres; not with `x`",
            millimetres(&SIZE_RANGE_NM),
        ),
        query("dpi", "Dots per inch of a PNG in millimetres; 300 if left out", whole(&DPI_RANGE)),
        query(
            "xmin",
            "Least width of a module in millimetres, beside `x` or `size`",
            millimetres(&X_RANGE_NM),
        ),
        query(
            "xmax",
            "Greatest width of a module in millimetres, beside `x` or `size`",
            millimetres(&X_RANGE_NM),
        ),
        query("qz", "Modules of white around the code; 4 if left out", whole(&QUIET_ZONE_RANGE)),
        query("ecl", "Level of error correction; `Q` if left out", word(&levels)),
        query(
            "tpl",
            "`default-shortid` draws the short id under the code",
            word(&["default", "default-shortid"]),
        ),
        query("hri", "`shortid` is `tpl=default-shortid`", word(&["none", "shortid"])),
        query(
            "version",
            "Least version of the code",
            json!({"type": "integer", "minimum": 1, "maximum": 40}),
        ),
        query(
            "payload",
            "What the code holds. `short`: the short URL. `gs1dl`, where a code is read: the GS1 Digital Link of the resource, on a domain with `digitalLinks`",
            word(&["short", "gs1dl"]),
        ),
        query(
            "color",
            "Colour of the modules, for PNG and SVG in pixels; darker than the background, with a contrast of 4.5 : 1 at least (422)",
            color(),
        ),
        query("background", "Colour behind the code, for PNG and SVG in pixels", color()),
        query(
            "shape",
            "Shape of the modules, for PNG and SVG in pixels",
            word(&["square", "rounded", "dots"]),
        ),
        query(
            "logo",
            "`1`: the logo of the domain's visitors' pages in the middle, for PNG and SVG in pixels; 422 where the code could not be read",
            word(&["0", "1"]),
        ),
    ]
}

fn color() -> Value {
    json!({"type": "string", "pattern": "^[0-9A-Fa-f]{6}$"})
}

fn query(name: &str, text: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": text, "schema": schema})
}

#[cfg(test)]
mod tests {
    use qr::{Format, QrRequest};

    use super::*;

    #[test]
    fn documented_qr_parameters_match_the_parser() {
        for parameter in qr() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let beside = if ["dpi", "xmin", "xmax"].contains(&name) { Some(("x", "5")) } else { None };
            let parse =
                |value: &str| QrRequest::parse(Format::Png, [(name, value)].into_iter().chain(beside));
            let fault = parse("neither").unwrap_err();
            assert!(fault.iter().any(|fault| fault.parameter == name), "{name} is not read");
            if name == "xmin" || name == "xmax" {
                continue;
            }
            for bound in ["minimum", "maximum"].into_iter().filter_map(|bound| schema[bound].as_f64()) {
                assert!(parse(&bound.to_string()).is_ok(), "{name}={bound}");
            }
            for out in
                [schema["minimum"].as_f64().map(|v| v - 0.05), schema["maximum"].as_f64().map(|v| v + 1.0)]
            {
                assert!(out.is_none_or(|out| parse(&out.to_string()).is_err()), "{name}={out:?}");
            }
            // A Digital Link belongs to a resource, so the routes that read a code take it, before the parser of its looks.
            let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for word in words.filter(|word| *word != "gs1dl") {
                assert!(parse(word).is_ok(), "{name}={word}");
            }
        }
    }
}
