//! Request bodies of redirections, rules and tasks.

use serde_json::{Map, Value, json};
use shared::{
    availability::{ACTIVE, PAUSED},
    redirect_status::RedirectStatus,
    rules::{MAX_NAME as MAX_RULE_NAME, MAX_RULES},
};
use web::bodies::{
    AN_ID, Body, boolean, formatted, id_of, max_scans, millis, open_object, request, scopes, text, texts,
};

use crate::domain::{
    assumed_scan::{MAX_CITY, MAX_HEADER, MAX_PERCENTAGE, MAX_QUERY},
    limits::{MAX_DESCRIPTION, MAX_NAME, MAX_TAG},
    link_details::{MAX_NOTES, MAX_TITLE},
    task::MAX_QUANTITY,
};

/// Of a Thng or product: the path says which.
pub(super) fn redirection_of_path() -> Value {
    redirection(Kind::OfPath).done()
}

pub(super) fn replacement() -> Value {
    redirection(Kind::Replace).done()
}

/// Which state of a redirection to bring back.
pub(super) fn version() -> Value {
    Body::new("The state to bring back")
        .must(
            "version",
            json!({"type": "string", "pattern": "^[0-9]{1,18}$",
            "description": "From the history of the redirection: its state after this change."}),
        )
        .like("version", "4711")
        .done()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    OfPath,
    Replace,
}

pub(super) fn rules() -> Value {
    let text = "When it fires: conditions on the scan, in the language of filters.";
    let rule = Body::new("")
        .may("name", json!({"type": "string", "minLength": 1, "maxLength": MAX_RULE_NAME}))
        .must("match", formatted("rule-match", text))
        .may("redirectUrl", formatted("target-url", "Where it leads; the default target if left out."))
        .schema();
    Body::new("The whole list; the first rule that fires decides")
        .must("rules", json!({"type": "array", "maxItems": MAX_RULES, "items": rule}))
        .like(
            "rules",
            json!([{"name": "evening", "match": "hour>17", "redirectUrl": "https://example.com/evening"}]),
        )
        .done()
}

pub(super) fn pages() -> Value {
    use ::tenants::domain::pages::{
        KINDS, MAX_LABEL, MAX_LANGUAGES, MAX_LINK_BYTES, MAX_PAGE_NAME, MAX_TEXT, MAX_TITLE,
    };
    let closed = |body: Body| {
        let mut schema = body.schema();
        schema["additionalProperties"] = false.into();
        schema
    };
    let color = |format: &str| formatted(format, "Such as `#1a2b3c`.");
    let colors = Body::new("")
        .must("background", color("page-background"))
        .must("text", color("page-color"))
        .must("accent", color("page-color"));
    // Not only blanks.
    let shown = |max: usize| json!({"type": "string", "minLength": 1, "maxLength": max, "pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"});
    let url = json!({"type": "string", "format": "page-link", "maxLength": MAX_LINK_BYTES,
        "description": "An https URL without user and password."});
    let link = Body::new("").must("url", url).must("label", shown(MAX_LABEL));
    let words = Body::new("").must("title", shown(MAX_TITLE)).must("text", shown(MAX_TEXT));
    let words = closed(words);
    let texts = KINDS.into_iter().fold(Body::new(""), |body, kind| body.may(kind, words.clone()));
    let texts = json!({"type": "object", "maxProperties": MAX_LANGUAGES, "additionalProperties": closed(texts),
        "propertyNames": {"pattern": "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$", "maxLength": 35}});
    let logo = json!({"type": "string", "format": "page-logo",
        "description": "A `data:` URL of a PNG or an SVG, in base64."});
    let body = Body::new("The pages as a whole; an empty object removes them")
        .may("name", shown(MAX_PAGE_NAME))
        .may("logo", logo)
        .may("colors", closed(colors))
        .may("link", closed(link))
        .may("copies", json!({"type": "string", "enum": ["suspected", "confirmed"]}))
        .may("reports", json!({"type": "boolean"}))
        .may("photos", json!({"type": "boolean"}))
        .may("texts", texts);
    let example = json!({"name": "Acme", "colors": {"background": "#ffffff", "text": "#1a1a1a", "accent": "#0b57d0"},
        "link": {"url": "https://example.com/help", "label": "Help"},
        "texts": {"en": {"unknown": {"title": "We do not know this code", "text": "Ask in the shop where you bought it."}}}});
    request("The pages as a whole; an empty object removes them", closed(body), example)
}

/// A scan that nobody made.
#[must_use]
pub fn assumed_scan() -> Value {
    let country = json!({"type": "string", "minLength": 2, "maxLength": 2, "pattern": "^[A-Za-z]{2}$",
        "description": "ISO 3166-1 alpha-2, as the address of the client would give it."});
    let header = |longest: usize, pattern: &str, meaning: &str| json!({"type": "string", "maxLength": longest, "pattern": pattern, "description": meaning});
    let address = json!({"description": "The address of the client. Country, region and city do not follow from it, nor `asNumber`.",
        "anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]});
    let as_number = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX,
        "description": "The number of the autonomous system that the address is in."});
    let percentage = json!({"type": "number", "minimum": 0, "maximum": MAX_PERCENTAGE,
        "description": "The place of the visitor in every division by `percentage`, by the hundredth. Without it the place \
            follows from `address`, `userAgent` and the day, as at an edge."});
    let query = json!({"type": "string", "maxLength": MAX_QUERY, "pattern": "^[!\"$-;=?-~]*$",
        "description": "The query of the short URL without `?`, which rules test and links with `forwardQuery` append."});
    let optional_word = |words: &[&str]| {
        let words: Vec<Value> = words.iter().map(|word| json!(word)).chain([Value::Null]).collect();
        json!({"type": "string", "enum": words})
    };
    let risk = || optional_word(&["none", "unknown", "suspected", "confirmed"]);
    let statuses = closed(
        &Body::new("")
            .may("authenticationStatus", optional_word(&["positive", "unknown", "suspicious", "negative"]))
            .may("counterfeitStatus", risk())
            .may("grayMarketStatus", risk()),
        "What the last assessment of the Thng said; what is left out stays, or is `unknown` without one.",
    );
    let body = Body::new("")
        .may("country", country)
        .may("region", text(1, MAX_CITY))
        .may("city", text(1, MAX_CITY))
        .may("address", address)
        .may("asNumber", as_number)
        .may(
            "acceptLanguage",
            header(MAX_HEADER, "^[ -~]*$", "`Accept-Language`, all languages with their qualities."),
        )
        .may("referer", header(MAX_QUERY, "^[ -~]*$", "`Referer`, of which the host is read."))
        .may("percentage", percentage)
        .may(
            "userAgent",
            header(
                MAX_HEADER,
                "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
                "`User-Agent`, of which browser, system and device are read.",
            ),
        )
        .may("time", millis())
        .may("query", query)
        .may("commissionState", optional_word(&["not_commissioned", "commissioned", "decommissioned"]))
        .may("assessment", statuses);
    let example = json!({"country": "DE", "acceptLanguage": "de-AT,de;q=0.9", "time": 1_790_034_400_000_i64});
    let meaning = "What is known of the scan; without `time` it comes now. `commissionState` and `assessment` are for links of \
        Thngs, in place of what is stored. Other members are refused";
    request(meaning, closed(&body, "What is known of the scan."), example)
}

/// The schema of a body that refuses unknown members.
fn closed(body: &Body, meaning: &str) -> Value {
    let mut schema = body.schema();
    schema["additionalProperties"] = false.into();
    schema["description"] = meaning.into();
    schema
}

fn redirection(kind: Kind) -> Body {
    let text_of = match kind {
        Kind::Whole => "The redirection",
        Kind::OfPath => "The redirection of the resource in the path",
        Kind::Replace => {
            "What it leads to from now on; members left out go back to their default, but for `title`, `tags`, `notes`, \
                `customFields`, `statusCode`, `validFrom`, `validUntil`, `maxScans`, `status` and `endedUrl`, which stay; \
                `null` removes these last six"
        }
    };
    let target = "An absolute `http` or `https` URL of at most 2,048 bytes, percent-encoded, without user and \
        password; the tags `{shortId}`, `{platformId}`, `{thngId}` and `{productId}` may stand in path and query.";
    let mut body = Body::new(text_of)
        .must("defaultRedirectUrl", formatted("target-url", target))
        .may("forwardQuery", boolean())
        .may("statusCode", status_code())
        .may("validFrom", millis())
        .may("validUntil", millis())
        .may("maxScans", max_scans())
        .may("status", json!({"type": "string", "enum": [ACTIVE, PAUSED, null]}))
        .may(
            "endedUrl",
            formatted("target-url", "Where it leads outside of this time, and while it is paused."),
        )
        .may("scopes", scopes())
        .may("title", text(0, MAX_TITLE))
        .may("tags", texts(MAX_TAG))
        .may("notes", text(0, MAX_NOTES))
        .may(
            "customFields",
            open_object("The caller's own members: at most 64 KiB, 250 values, 16 levels deep."),
        )
        .like("defaultRedirectUrl", "https://example.com/?item={shortId}");
    if kind == Kind::Whole {
        let text = "Id of the resource; `evrythngId` is the same. `type` is known from it.";
        body = body.must("platformId", formatted("resource-id", text)).like("platformId", AN_ID);
    }
    if kind != Kind::Replace {
        let short_id = json!({"type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+){0,3}$",
            "description": "Made if left out; unique on its domain, and not one of the reserved words. Several segments only where \
            `multiSegment` of the domain is true."});
        body = body
            .may("shortId", short_id)
            .may("shortDomain", formatted("short-domain", "A short domain of the account."));
    }
    body
}

/// What the status code of a link means.
pub(super) const STATUS_CODE: &str = "Status code with which the link leads to `defaultRedirectUrl`. 307 (default) and 302: the \
    target may change. 301 and 308: it is final. Browsers, search engines and other programs may then remember the target and not \
    ask again, so that a later change, pause or end does not reach them, and their scans are not counted. The `Cache-Control` of \
    the answer tells them not to (`no-store`, or the `redirectMaxAge` of the domain), but not all follow it. Targets of rules and \
    `endedUrl` are always 307.";

fn status_code() -> Value {
    let codes: Vec<Value> = RedirectStatus::ALL.iter().map(|status| json!(status)).collect();
    let codes: Vec<Value> = codes.into_iter().chain([Value::Null]).collect();
    json!({"type": "integer", "enum": codes, "description": STATUS_CODE})
}

pub(super) fn redirections() -> Value {
    let one = redirection(Kind::Whole);
    // An item that is wrong has a result of its own: the array is right all the same.
    let mut names = Map::new();
    for name in one.schema()["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
        names.insert(name.clone(), json!({}));
    }
    let schema = json!({"anyOf": [one.schema(), {"type": "array", "minItems": 1, "maxItems": 1000,
        "description": "Many at once, each as a single one: each item stands or falls by itself.",
        "items": {"properties": names}}]});
    let example = json!({"platformId": AN_ID, "defaultRedirectUrl": "https://example.com/?item={shortId}"});
    request("The redirection, or an array of up to 1,000", schema, example)
}

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
