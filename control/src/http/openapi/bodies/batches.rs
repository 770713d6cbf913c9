//! Request bodies of batches and tasks.

use serde_json::{Value, json};
use web::bodies::{Body, formatted, id_of, open_object, request, text, texts};

use crate::domain::{
    limits::{MAX_DESCRIPTION, MAX_NAME, MAX_TAG},
    task::MAX_QUANTITY,
};

pub(super) fn task() -> Value {
    let word = |word: &str| json!({"type": "string", "enum": [word]});
    let template = Body::new("")
        .must("name", text(1, MAX_NAME))
        .may("description", text(0, MAX_DESCRIPTION))
        .may("product", id_of("product-id", "Id of a product of the account."))
        .may("type", text(0, MAX_NAME))
        .may("tags", texts(MAX_TAG))
        .may("customFields", open_object("The caller's own members."))
        .schema();
    let input = |with_short_urls: bool| {
        let body = Body::new("")
            .must("type", word("FIXED_AMOUNT"))
            .must("quantity", json!({"type": "integer", "minimum": 1, "maximum": MAX_QUANTITY}))
            .must("thngTemplate", template.clone())
            .may("generateThngs", json!({"type": "boolean", "enum": [true]}));
        let switch = json!({"type": "boolean", "enum": [with_short_urls]});
        if !with_short_urls {
            return body.may("generateRedirections", switch).schema();
        }
        let id = Body::new("").must("type", word("THNG_ID")).schema();
        body.must("generateRedirections", switch)
            .must(
                "defaultRedirectUrl",
                formatted("target-url", "Where each short URL leads; tags are replaced."),
            )
            .may(
                "shortDomain",
                formatted("short-domain", "A short domain of the account; its first without it."),
            )
            .may("shortIdTemplate", id)
            .schema()
    };
    let input = json!({"anyOf": [input(false), input(true)]});
    let schema = Body::new("").must("type", word("POPULATING")).must("inputParameters", input).schema();
    let example = json!({"type": "POPULATING", "inputParameters": {"type": "FIXED_AMOUNT", "quantity": 100,
        "generateThngs": true, "thngTemplate": {"name": "Red shoe"}}});
    let meaning = "What to make. With `generateRedirections` each Thng gets a short URL that leads to \
        `defaultRedirectUrl`, on `shortDomain` or the account's first; its short id is random, or the Thng's id with \
        `\"shortIdTemplate\": {\"type\": \"THNG_ID\"}`. The template is a Thng without `identifiers`";
    request(meaning, schema, example)
}
