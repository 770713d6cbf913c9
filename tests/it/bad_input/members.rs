//! Missing and invalid members, at every endpoint that takes a body.

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use shared::problem::Code;
use tests::db::Engine;

use super::{Bench, OTHER_DOMAIN, UNKNOWN};

/// What `defaultRedirectUrl` may not be, and a word of the fault.
fn wrong_targets() -> Vec<(Value, &'static str)> {
    let long = |bytes: usize| format!("https://example.com/{}", "x".repeat(bytes - 20));
    vec![
        (json!(null), "is required"),
        (json!(1), "must be a string"),
        (json!(["https://example.com/"]), "must be a string"),
        (json!({"url": "https://example.com/"}), "must be a string"),
        (json!(""), "must be an absolute"),
        (json!("javascript:alert(1)"), "must be an absolute"),
        (json!("JavaScript:alert(1)"), "must be an absolute"),
        (json!("data:text/html,x"), "must be an absolute"),
        (json!("mailto:a@example.com"), "must be an absolute"),
        (json!("ftp://example.com/"), "must be an absolute"),
        (json!("file:///etc/passwd"), "must be an absolute"),
        (json!("/welcome"), "must be an absolute"),
        (json!("//example.com/"), "must be an absolute"),
        (json!("example.com"), "must be an absolute"),
        (json!("https://"), "must be an absolute"),
        (json!("https:example.com"), "must be an absolute"),
        (json!("https://example.com/\r\nSet-Cookie: a=b"), "must be printable ASCII"),
        (json!("https://example.com/\n"), "must be printable ASCII"),
        (json!("https://example.com/\ta"), "must be printable ASCII"),
        (json!("https://example.com/\u{0}"), "must be printable ASCII"),
        (json!("https://example.com/\u{7f}"), "must be printable ASCII"),
        (json!(" https://example.com/"), "must be printable ASCII"),
        (json!("https://example.com/a b"), "must be printable ASCII"),
        (json!("https://example.com/caf\u{e9}"), "must be printable ASCII"),
        (json!("https://ex\u{e4}mple.com/"), "must be printable ASCII"),
        (json!("https://example.com\\@evil.test/"), "must be printable ASCII"),
        (json!(long(2_049)), "must have at most 2048 bytes"),
        (json!("https://user:secret@example.com/"), "must not hold a user name"),
        (json!("https://@example.com/"), "must not hold a user name"),
        (json!("https://example.com/{unknown}"), "unknown tag"),
        (json!("https://example.com/{"), "unknown tag"),
        (json!("https://{shortId}.example.com/"), "must not hold a tag in the scheme or host"),
    ]
}

/// Other members of a PUT and a POST that are wrong: the member, its value, the fault.
fn wrong_writable() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("forwardQuery", json!("yes"), "forwardQuery must be true or false"),
        ("forwardQuery", json!(1), "forwardQuery must be true or false"),
        ("statusCode", json!(303), "statusCode must be 301, 302, 307 or 308"),
        ("statusCode", json!("301"), "statusCode must be 301, 302, 307 or 308"),
        ("scopes", json!([]), "scopes must be an object"),
        ("scopes", json!({"users": "all"}), "scopes must be an object"),
        ("scopes", json!({"users": ["x"]}), "scopes must hold ids"),
        ("scopes", json!({"projects": vec![UNKNOWN; 101]}), "scopes must hold at most 100"),
    ]
}

/// Members of a POST that are wrong.
fn wrong_draft() -> Vec<(&'static str, Value, &'static str)> {
    let mut all = vec![
        ("shortId", json!(1), "shortId must be a string"),
        ("shortId", json!(""), "shortId: a short id has 1 to 64"),
        ("shortId", json!("a b"), "shortId: a short id has 1 to 64"),
        ("shortId", json!("a//b"), "shortId: a short id has 1 to 64"),
        ("shortId", json!("a.png"), "shortId: a short id has 1 to 64"),
        ("shortId", json!("caf\u{e9}"), "shortId: a short id has 1 to 64"),
        ("shortId", json!("x".repeat(65)), "shortId: a short id has 1 to 64"),
        ("shortDomain", json!(1), "shortDomain must be a string"),
        ("shortDomain", json!("unknown.test"), "shortDomain: unknown.test is not"),
        ("shortDomain", json!(OTHER_DOMAIN), "shortDomain: other.test is not"),
        ("shortDomain", json!(""), "shortDomain:  is not"),
    ];
    for word in ["redirections", "V2", "thngs", "Products", "docs", "access", "robots", "favicon"] {
        all.push(("shortId", json!(word), "shortId: this short id is a reserved word"));
    }
    all
}

/// Each fault is named, and a request with several names them all.
pub(super) async fn wrong_members_are_named(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let ours = &bench.ours;
    let target = "https://example.com/new";
    let mut cases = Vec::new();
    for (method, path) in [
        (Method::POST, "/redirections".to_owned()),
        (Method::POST, format!("/thngs/{}/redirector", ours.thng)),
        (Method::POST, format!("/v2/products/{}/redirector", ours.product)),
        (Method::PUT, format!("/v2/redirections/{}", ours.short_id)),
        (Method::PUT, format!("/redirections?ids={},{}", ours.short_id, ours.product_short_id)),
        (Method::PUT, format!("/v2/thngs/{}/redirector", ours.thng)),
        (Method::PUT, format!("/products/{}/redirector", ours.product)),
    ] {
        let creates = method == Method::POST;
        let base = if path == "/redirections" { json!({"platformId": ours.thng}) } else { json!({}) };
        let mut add = |members: Vec<(&str, Value)>, faults: &[&str]| {
            let mut body = base.clone();
            for (name, value) in members {
                body[name] = value;
            }
            cases.push(bench.case(method.clone(), &path, Code::Invalid, faults).json(&body));
        };
        add(vec![], &["defaultRedirectUrl is required"]);
        for (value, fault) in wrong_targets() {
            add(vec![("defaultRedirectUrl", value)], &[fault]);
        }
        for (name, value, fault) in wrong_writable() {
            add(vec![("defaultRedirectUrl", json!(target)), (name, value)], &[fault]);
        }
        add(
            vec![("defaultRedirectUrl", json!(7)), ("forwardQuery", json!(7)), ("scopes", json!(7))],
            &["defaultRedirectUrl", "forwardQuery", "scopes"],
        );
        if creates {
            for (name, value, fault) in wrong_draft() {
                add(vec![("defaultRedirectUrl", json!(target)), (name, value)], &[fault]);
            }
        } else {
            // A change may not lead a link back to itself; one of many neither.
            let own = format!("{}/{}", bench.product.edge, own_short_id(&bench, &path).to_lowercase());
            add(vec![("defaultRedirectUrl", json!(own))], &["leads back to the short URL itself"]);
        }
    }
    cases.extend(wrong_owners(&bench));
    bench.check(&cases).await?;
    chains(&bench).await
}

fn own_short_id<'a>(bench: &'a Bench, path: &str) -> &'a str {
    if path.contains("/products/") { &bench.ours.product_short_id } else { &bench.ours.short_id }
}

/// `platformId`, its alias and `type` of `POST /redirections`.
fn wrong_owners(bench: &Bench) -> Vec<super::Case> {
    let (ours, theirs) = (&bench.ours, &bench.theirs);
    let all: Vec<(Value, Vec<&str>)> = vec![
        (json!({}), vec!["platformId is required"]),
        (json!({"platformId": null}), vec!["platformId is required"]),
        (json!({"platformId": 1}), vec!["platformId must be a string"]),
        (json!({"platformId": ""}), vec!["platformId: an id has 24"]),
        (json!({"platformId": "x"}), vec!["platformId: an id has 24"]),
        (json!({"platformId": format!("{}x", ours.thng)}), vec!["platformId: an id has 24"]),
        (json!({"evrythngId": "x"}), vec!["evrythngId: an id has 24"]),
        (json!({"platformId": ours.thng, "evrythngId": ours.product}), vec!["must be the same"]),
        (json!({"platformId": UNKNOWN}), vec!["platformId: UKXAGyEf8SQ5eTDmVgGpHqAa was not found"]),
        (json!({"platformId": theirs.thng}), vec!["was not found in this account"]),
        (json!({"evrythngId": theirs.product}), vec!["was not found in this account"]),
        (json!({"platformId": ours.thng, "type": "box"}), vec!["type must be"]),
        (json!({"platformId": ours.thng, "type": 1}), vec!["type must be a string"]),
        (json!({"platformId": ours.thng, "type": "product"}), vec!["type:"]),
        (json!({"platformId": ours.product, "type": "thng"}), vec!["type:"]),
    ];
    all.into_iter()
        .map(|(mut body, faults)| {
            body["defaultRedirectUrl"] = json!("https://example.com/new");
            bench.case(Method::POST, "/redirections", Code::Invalid, &faults).json(&body)
        })
        .collect()
}

/// A link may not lead back to itself over others, nor over more than five.
async fn chains(bench: &Bench) -> Result<()> {
    let url = |short_id: &str| format!("{}/{short_id}", bench.product.edge);
    let thng = &bench.ours.thng;
    // CHAIN-5 leads over CHAIN-4 … CHAIN-1 out.
    for n in 1..=5 {
        let target =
            if n == 1 { "https://example.com/".to_owned() } else { url(&format!("CHAIN-{}", n - 1)) };
        bench.product.create_redirection(thng, &target, Some(&format!("CHAIN-{n}"))).await?;
    }
    let (itself, long) = ("leads back to the short URL itself", "leads through more than 5 short URLs");
    let post = |short_id: &str, target: String, fault: &str| {
        let body = json!({"platformId": thng, "defaultRedirectUrl": target, "shortId": short_id});
        bench.case(Method::POST, "/redirections", Code::Invalid, &[fault]).json(&body)
    };
    let put = |short_id: &str, target: String, fault: &str| {
        let path = format!("/redirections/{short_id}");
        bench.case(Method::PUT, path, Code::Invalid, &[fault]).json(&json!({"defaultRedirectUrl": target}))
    };
    bench
        .check(&[
            post("SELF", url("SELF"), itself),
            post("SELF", url("self"), itself),
            post("SELF", format!("{}?a=b#c", url("SELF")), itself),
            put("CHAIN-1", url("chain-1"), itself),
            put("CHAIN-1", url("CHAIN-2"), itself),
            put("CHAIN-1", url("CHAIN-4"), itself),
            post("CHAIN-6", url("CHAIN-5"), long),
        ])
        .await
}
