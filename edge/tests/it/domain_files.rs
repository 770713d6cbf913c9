//! Files that a domain serves beside its links, and domains that are removed.

use std::sync::Arc;

use serde_json::json;
use shared::{
    domain_files::{DomainFiles, JsonFile, Robots},
    short_url::{Scheme, ShortDomain},
    wire::stream::Change,
};

use crate::support::{HOST, account, build, edge, h2_prior_knowledge, request};

const ANDROID: &str = "/.well-known/assetlinks.json";
const APPLE: &str = "/.well-known/apple-app-site-association";

fn domain(files: Option<DomainFiles>) -> ShortDomain {
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    ShortDomain { account: Some(account()), files: files.map(Arc::new), ..domain }
}

#[tokio::test]
async fn files_of_a_domain_are_served_from_memory() {
    let (control, edge, _folder) = edge().await;
    for path in [ANDROID, APPLE] {
        edge.get(path, &[]).await.problem(40402);
    }
    let android = json!([{"relation": ["delegate_permission/common.handle_all_urls"],
        "target": {"namespace": "android_app", "package_name": "com.example"}}]);
    let apple = json!({"applinks": {"details": [{"appIDs": ["A.com.example"]}]}});
    let files = DomainFiles {
        robots: Robots::All,
        asset_links: Some(JsonFile::new(&android)),
        apple_app_site_association: Some(JsonFile::new(&apple)),
    };
    control.acked(control.commit([Change::Domain(domain(Some(files)))])).await;
    assert_eq!(edge.get("/robots.txt", &[]).await.body, "User-agent: *\nDisallow:\n");
    for (path, expected) in [(ANDROID, &android), (APPLE, &apple)] {
        // Apple's and Google's servers ask for anything; a browser asks for a page.
        for accept in ["*/*", "text/html,*/*;q=0.8"] {
            let answer = edge.get(path, &[("accept", accept)]).await;
            assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"), "{path}");
            assert_eq!(answer.header("cache-control"), "public, max-age=3600");
            assert_eq!(answer.json(), *expected, "{path}");
            let head = request(edge.plain, "HEAD", HOST, path, &[("accept", accept)]).await;
            assert!(head.body.is_empty());
            assert_eq!(head.header("content-length"), answer.body.len().to_string());
        }
        let uri = format!("http://{HOST}{path}");
        let answers = h2_prior_knowledge(edge.plain, vec![build("GET", &uri, &[], "")]).await;
        assert_eq!(answers[0].json(), *expected, "{path}");
        assert_eq!(request(edge.plain, "POST", HOST, path, &[]).await.status, 405);
    }
    control.acked(control.commit([Change::Domain(domain(None))])).await;
    assert_eq!(edge.get("/robots.txt", &[]).await.body, "User-agent: *\nDisallow: /\n");
    edge.get(ANDROID, &[]).await.problem(40402);
    edge.stop().await;
}

#[tokio::test]
async fn a_removed_domain_is_not_served() {
    let (control, edge, _folder) = edge().await;
    let other = || ShortDomain::new(Scheme::Https, "own.example").unwrap();
    control.acked(control.commit([Change::Domain(other())])).await;
    assert_eq!(request(edge.plain, "GET", "own.example", "/robots.txt", &[]).await.status, 200);
    let removed = ShortDomain { removed: true, ..other() };
    control.acked(control.commit([Change::Domain(removed)])).await;
    request(edge.plain, "GET", "own.example", "/robots.txt", &[]).await.problem(42101);
    assert_eq!(edge.get("/robots.txt", &[]).await.status, 200, "the other domain stays");
    edge.stop().await;
}
