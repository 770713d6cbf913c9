//! Request bodies of jobs.

use serde_json::{Value, json};
use web::bodies::{
    AN_ID, Body, boolean, formatted, location, millis, open_object, request, scopes, text, texts,
};

use crate::domain::{
    job_input::{MAX_ENTRY, MAX_LISTED},
    limits::{MAX_KEY, MAX_TAG},
};

pub(super) fn action_job() -> Value {
    let mut template = Body::new("")
        .must("type", formatted("action-type", "A type that a request may create."))
        .may("product", formatted("product-id", "The product of each Thng, if any is named."))
        .may("collection", formatted("collection-id", "Id of a collection of the account."))
        .may("scopes", scopes())
        .may("timestamp", millis())
        .may("location", location())
        .may("tags", texts(MAX_TAG))
        .may("customFields", open_object("The caller's own members: at most 64 KiB, 16 levels deep."))
        .schema();
    // The input names the Thngs.
    for other in ["thng", "identifiers"] {
        template["properties"][other] = json!({"type": "null"});
    }
    let word = |words: &[&str]| json!({"type": "string", "enum": words});
    let ids =
        |max: usize| json!({"type": "array", "minItems": 1, "maxItems": max, "items": text(1, MAX_ENTRY)});
    let input = |more: &dyn Fn(Body) -> Body| {
        let named = |body: Body, kinds: &[&str]| more(body.must("contentType", word(kinds))).schema();
        json!({"anyOf": [
            named(Body::new(""), &["PLATFORM_IDS", "EVRYTHNG_IDS", "EXTERNAL_IDS", "SHORT_IDS"]),
            named(Body::new("").must("key", text(1, MAX_KEY)), &["EXTERNAL_IDS"]),
            named(
                Body::new("").must("shortDomain", formatted("short-domain", "A short domain of the account.")),
                &["SHORT_IDS"],
            ),
        ]})
    };
    // A key or domain is for its own kind of id only: what has none of both is the first form.
    let list = input(&|body| body.must("type", word(&["LIST"])).must("payload", ids(MAX_LISTED)));
    let location = formatted("file-url", "`contentUrl` of a file of the account.");
    let file = input(&|body| {
        let body = body.must("type", word(&["FILE"])).must("format", word(&["CSV", "ZIP"]));
        body.must("location", location.clone())
    });
    let option = Body::new("")
        .must("type", word(&["SINGLE_RESOURCE_NOTIFICATION", "SINGLE_RESOURCE_REACTIONS"]))
        .must("enabled", boolean())
        .schema();
    let schema = Body::new("")
        .may("type", word(&["ACTION_CREATION"]))
        .must("payload", template)
        .must("target", word(&["THNGS"]))
        .must("input", json!({"anyOf": [list, file]}))
        .may("options", json!({"type": "array", "maxItems": 1, "items": option}))
        .schema();
    let example = json!({"payload": {"type": "scans", "tags": ["summer"]}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [AN_ID]},
        "options": [{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]});
    let meaning = "The template of the actions, without a Thng, and where the Thngs are named. For more than 5,000 \
        ids the input is `{\"type\": \"FILE\", \"format\": \"CSV\" or \"ZIP\", \"location\": contentUrl of a file}`. \
        `key` is for EXTERNAL_IDS only, `shortDomain` for SHORT_IDS";
    request(meaning, schema, example)
}
