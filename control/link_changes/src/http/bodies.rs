//! Request bodies of changes of many links.

use kernel::domain::limits::MAX_TAG;
use redirects::domain::{
    link_details::{MAX_NOTES, MAX_TITLE},
    words::MAX_QUERY,
};
use serde_json::{Value, json};
use shared::{
    availability::{ACTIVE, PAUSED},
    redirect_status::RedirectStatus,
};
use web::bodies::{
    Body, boolean, formatted, id_of, max_scans, millis, open_object, request, scopes, text, texts,
};

/// The schema of an object that has no other members.
fn exact(body: Body) -> Value {
    let mut schema = body.schema();
    schema["additionalProperties"] = json!(false);
    schema
}

pub(super) fn change() -> Value {
    let resource = "Only links of this resource; `evrythngId` is the same.";
    let schema = exact(
        Body::new("")
            .may("filter", formatted("filter-listRedirections", "A filter, as of the list of redirections."))
            .may("q", text(1, MAX_QUERY))
            .may("platformId", formatted("resource-id", resource))
            .may("product", id_of("product-id", "Only links of this product and of its Thngs."))
            .may("project", id_of("project-id", "Only links that are scoped to this project."))
            .may("domain", formatted("short-domain", "Only links of this short domain."))
            .may("evrythngId", formatted("resource-id", "The same as `platformId`."))
            .must("patch", patch())
            .may("dryRun", boolean())
            .may("expect", json!({"type": "integer", "format": "int64", "minimum": 0})),
    );
    let meaning = "Which links, by the parameters of their list, of which one is required; and what is changed of them. \
        `dryRun` counts and shows only. With `expect` it is refused where another number of links is found";
    let example = json!({"filter": "tags=summer", "dryRun": true, "patch": {"defaultRedirectUrl": "https://example.com/autumn",
        "tags": {"add": ["autumn"], "remove": ["summer"]}}});
    request(meaning, schema, example)
}

fn patch() -> Value {
    let codes: Vec<Value> = RedirectStatus::ALL.iter().map(|status| json!(status)).collect();
    let codes: Vec<Value> = codes.into_iter().chain([Value::Null]).collect();
    let added = exact(Body::new("").may("add", texts(MAX_TAG)).may("remove", texts(MAX_TAG)));
    let mut schema = exact(
        Body::new("")
            .may("defaultRedirectUrl", formatted("target-url", "Where they lead."))
            .may("forwardQuery", boolean())
            .may("statusCode", json!({"type": "integer", "enum": codes}))
            .may("validFrom", millis())
            .may("validUntil", millis())
            .may("maxScans", max_scans())
            .may("status", json!({"type": "string", "enum": [ACTIVE, PAUSED, null]}))
            .may("endedUrl", formatted("target-url", "Where they lead outside of this time, and while paused."))
            .may("scopes", scopes())
            .may("title", text(0, MAX_TITLE))
            .may("tags", json!({"anyOf": [texts(MAX_TAG), added]}))
            .may("notes", text(0, MAX_NOTES))
            .may(
                "customFields",
                open_object("The caller's own members, replaced as a whole: at most 64 KiB, 250 values, 16 levels deep."),
            ),
    );
    schema["minProperties"] = json!(1);
    schema["description"] = json!(
        "What is changed; at least one member, as of a `PUT` of one link. What is left out stays; `null` removes `statusCode`, \
        `validFrom`, `validUntil`, `maxScans`, `status` and `endedUrl`. `tags` replaces all, or adds some and removes others."
    );
    schema
}

pub(super) fn undo() -> Value {
    let schema = exact(Body::new("").may("strict", boolean()));
    request("With `strict`, it is refused where any link was changed since", schema, json!({"strict": false}))
}
