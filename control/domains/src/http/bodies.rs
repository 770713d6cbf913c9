//! Request bodies of short domains.

use serde_json::{Value, json};
use shared::{domain_files::Robots, short_url::MAX_REDIRECT_AGE};
use web::bodies::{Body, CHANGES, formatted, open_object};

pub(super) fn claim() -> Value {
    Body::new("The host")
        .must("host", formatted("own-host", "A public name, without a port; in ASCII or not."))
        .like("host", "go.example.com")
        .done()
}

pub(super) fn settings() -> Value {
    let age = json!({"type": "integer", "minimum": 0, "maximum": MAX_REDIRECT_AGE,
        "description": "Seconds for which browsers and shared caches may keep redirects of its links; null: they must not."});
    let robots = Robots::ALL.map(Robots::as_str);
    let links = json!({"type": "array", "items": open_object("A statement."),
        "description": "What /.well-known/assetlinks.json holds, at most 64 KiB; null: 404."});
    let association = "What /.well-known/apple-app-site-association holds, at most 64 KiB; null: 404.";
    let prefix = formatted(
        "path-prefix",
        "A path of 1 to 3 segments below which its short ids are, too, such as shop/go: it begins with no reserved word and no \
        key of GS1; null: none.",
    );
    let in_urls = json!({"type": "boolean", "description": "Whether short URLs and codes have the prefix; null: false."});
    let segments = json!({"type": "boolean",
        "description": "Whether short ids of your choice may have up to 4 segments, such as sale/2026/shoes; null: false."});
    Body::new(CHANGES)
        .may("redirectMaxAge", age)
        .may("digitalLinks", json!({"type": "boolean",
            "description": "Whether paths of GS1 Digital Links, such as /01/09528765123457, are resolved on it; null: they are not."}))
        .may("pathPrefix", prefix)
        .may("prefixInUrls", in_urls)
        .may("multiSegment", segments)
        .may("robots", json!({"type": "string", "enum": robots, "description": "What /robots.txt says; null: none."}))
        .may("assetLinks", links)
        .may("appleAppSiteAssociation", open_object(association))
        .may("automaticCertificate", json!({"type": "boolean",
            "description": "Whether its certificate is ordered and renewed by itself; null: it is. false takes it from the edges."}))
        .like("redirectMaxAge", 60)
        .like("digitalLinks", true)
        .like("robots", "all")
        .like(
            "appleAppSiteAssociation",
            json!({"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"], "components": [{"/": "/*"}]}]}}),
        )
        .done()
}
