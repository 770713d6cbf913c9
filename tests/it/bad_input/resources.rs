//! Arrays, lists, short ids and resources that do not exist or belong to another account.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use shared::problem::Code;
use tests::db::Engine;

use super::{Bench, Case, OTHER_DOMAIN, UNKNOWN, check_faults};

/// Whole requests that are wrong: bulk creates, `ids=`, lists, images of codes.
pub(super) async fn wrong_arrays_lists_and_short_ids_are_refused(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let ours = &bench.ours;
    let draft = json!({"platformId": ours.thng, "defaultRedirectUrl": "https://example.com/new"});
    let target = json!({"defaultRedirectUrl": "https://example.com/new"});
    let mut cases = Vec::new();
    for count in [0, 1_001] {
        let body = json!(vec![draft.clone(); count]);
        cases.push(
            bench.case(Method::POST, "/redirections", Code::Invalid, &["1 to 1000"]).json(&body).api_only(),
        );
    }
    let unknown = format!("?domain={OTHER_DOMAIN}");
    for domain in ["?domain=unknown.test", "?domain=", &unknown] {
        let case = bench.case(Method::POST, format!("/redirections{domain}"), Code::Invalid, &["hortDomain"]);
        cases.push(case.json(&json!([draft])));
        cases.push(bench.case(Method::GET, format!("/redirections{domain}"), Code::Invalid, &["hortDomain"]));
    }
    for (query, code, fault) in [
        ("perPage=0", Code::InvalidParameter, "perPage"),
        ("perPage=101", Code::InvalidParameter, "perPage"),
        ("perPage=-1", Code::InvalidParameter, "perPage"),
        ("perPage=1.5", Code::InvalidParameter, "perPage"),
        ("perPage=", Code::InvalidParameter, "perPage"),
        ("perPage=99999999999999999999", Code::InvalidParameter, "perPage"),
        ("sortOrder=UP", Code::InvalidParameter, "sortOrder"),
        ("nextPageToken=x", Code::InvalidPageToken, "nextPageToken"),
        ("platformId=x", Code::InvalidParameter, "platformId"),
        ("evrythngId=", Code::InvalidParameter, "evrythngId"),
        ("platformId=%00", Code::InvalidParameter, "query"),
    ] {
        for path in ["/redirections", "/v2/redirections"] {
            cases.push(bench.case(Method::GET, format!("{path}?{query}"), code, &[fault]));
        }
    }
    let too_many = format!("ids={}", vec!["A"; 1_001].join(","));
    for ids in ["", "ids=", "ids=,,", "ids=%20"] {
        let path = format!("/redirections?{ids}");
        cases.push(bench.case(Method::PUT, &path, Code::InvalidParameter, &["ids"]).json(&target));
        cases.push(bench.case(Method::DELETE, &path, Code::InvalidParameter, &["ids"]));
    }
    let path = format!("/redirections?{too_many}");
    cases.push(bench.case(Method::PUT, &path, Code::InvalidParameter, &["ids"]).json(&target).api_only());
    cases.push(bench.case(Method::DELETE, &path, Code::InvalidParameter, &["ids"]).api_only());
    for image in [
        format!("/redirections/{}.qr", ours.short_id),
        format!("/thngs/{}/redirector/qr", ours.thng),
        format!("/v2/products/{}/redirector/qr", ours.product),
    ] {
        for (query, fault) in super::edge::WRONG_IMAGES {
            cases.push(bench.case(Method::GET, format!("{image}?{query}"), Code::InvalidParameter, &[fault]));
        }
    }
    bench.check(&cases).await?;
    items(&bench).await
}

/// Items of an array stand or fall by themselves; an array of wrong ones changes nothing.
async fn items(bench: &Bench) -> Result<()> {
    let thng = &bench.ours.thng;
    let target = "https://example.com/";
    let own = format!("{}/ITEM", bench.product.edge);
    let table: Vec<(Value, Code, Vec<&str>)> = vec![
        (json!({}), Code::Invalid, vec!["platformId is required", "defaultRedirectUrl is required"]),
        (json!(1), Code::Invalid, vec!["must be a JSON object"]),
        (json!([]), Code::Invalid, vec!["must be a JSON object"]),
        (json!({"platformId": thng, "defaultRedirectUrl": "javascript:x"}), Code::Invalid, vec!["absolute"]),
        (
            json!({"platformId": thng, "defaultRedirectUrl": "https://e.com/\r\n"}),
            Code::Invalid,
            vec!["ASCII"],
        ),
        (json!({"platformId": UNKNOWN, "defaultRedirectUrl": target}), Code::Invalid, vec!["not found"]),
        (
            json!({"platformId": bench.theirs.thng, "defaultRedirectUrl": target}),
            Code::Invalid,
            vec!["not found in this account"],
        ),
        (
            json!({"platformId": thng, "defaultRedirectUrl": own, "shortId": "ITEM"}),
            Code::Invalid,
            vec!["leads back"],
        ),
        (
            json!({"platformId": thng, "defaultRedirectUrl": target, "shortId": "V2"}),
            Code::Invalid,
            vec!["reserved"],
        ),
        (
            json!({"platformId": thng, "defaultRedirectUrl": target, "shortDomain": OTHER_DOMAIN}),
            Code::Invalid,
            vec!["shortDomain"],
        ),
        (
            json!({"platformId": thng, "defaultRedirectUrl": target, "shortId": bench.ours.short_id}),
            Code::ShortIdTaken,
            vec!["shortId"],
        ),
    ];
    let before = bench.fingerprint().await?;
    let body: Value = table.iter().map(|(item, _, _)| item.clone()).collect();
    let (status, body) = bench.product.call(Method::POST, "/redirections", Some(body)).await?;
    ensure!(status == 200 && body.as_array().map(Vec::len) == Some(table.len()), "{status}: {body}");
    for (result, (item, code, faults)) in body.as_array().into_iter().flatten().zip(&table) {
        ensure!(
            result["status"] == code.status() && result["code"] == *code as u32,
            "{item}: {result} instead of {code:?}"
        );
        let errors: Vec<String> = serde_json::from_value(result["errors"].clone())?;
        let faults: Vec<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
        check_faults(&errors, &faults)?;
    }
    ensure!(bench.fingerprint().await? == before, "an array of wrong items changed something");
    Ok(())
}

/// What is absent, and what another account has, is 404 alike; of several ids none is changed.
pub(super) async fn resources_of_another_account_are_404(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let (ours, theirs) = (&bench.ours, &bench.theirs);
    let target = json!({"defaultRedirectUrl": "https://example.com/new"});
    let mut cases = Vec::new();
    let mut add = |method: Method, path: String, faults: &[&str]| {
        let writes = method != Method::GET && method != Method::DELETE;
        let case = bench.case(method, path, Code::NotFound, faults);
        cases.push(if writes { case.json(&target) } else { case });
    };
    for short_id in
        ["NOT-THERE", &theirs.short_id, &theirs.product_short_id, "a%20b", "%00", "%FF", &"x".repeat(65)]
    {
        let path = format!("/redirections/{short_id}");
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            add(method, path.clone(), &[]);
        }
        add(Method::GET, format!("{path}.qr"), &[]);
    }
    for method in [Method::PUT, Method::DELETE] {
        for (ids, faults) in [
            (format!("{},NOT-THERE", ours.short_id), vec!["NOT-THERE"]),
            (format!("{},{}", theirs.short_id, ours.short_id), vec![theirs.short_id.as_str()]),
            ("NOT-1,NOT-2".to_owned(), vec!["NOT-1", "NOT-2"]),
        ] {
            add(method.clone(), format!("/redirections?ids={ids}"), &faults);
        }
    }
    for (kind, absent) in [
        // A product is no Thng, and the other way round.
        ("thngs", vec![UNKNOWN, &theirs.thng, &ours.product, &theirs.product, "x", "%00", "gs1:21:none"]),
        ("products", vec![UNKNOWN, &theirs.product, &ours.thng, &theirs.thng, "x", "%00", "gs1:01:none"]),
    ] {
        for id in absent {
            for method in [Method::POST, Method::GET, Method::PUT, Method::DELETE] {
                add(method, format!("/{kind}/{id}/redirector"), &[]);
            }
            add(Method::GET, format!("/v2/{kind}/{id}/redirector/qr"), &[]);
        }
    }
    // A Thng without a redirection.
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        add(method, format!("/thngs/{}/redirector", bench.bare), &["has no redirection"]);
    }
    add(Method::GET, format!("/thngs/{}/redirector/qr", bench.bare), &["has no redirection"]);
    let foreign: Vec<Case> = [Method::GET, Method::PUT, Method::DELETE]
        .into_iter()
        .map(|method| {
            let path = format!("/redirections/{}?domain={OTHER_DOMAIN}", theirs.short_id);
            let writes = method == Method::PUT;
            let case = bench.case(method, path, Code::Invalid, &["other.test is not"]);
            if writes { case.json(&target) } else { case }
        })
        .collect();
    cases.extend(foreign);
    bench.check(&cases).await?;
    // A list of what another account has is empty.
    let (status, body) =
        bench.product.call(Method::GET, &format!("/redirections?platformId={}", theirs.thng), None).await?;
    ensure!((status.as_u16(), &body) == (200, &json!([])), "{status}: {body}");
    Ok(())
}
