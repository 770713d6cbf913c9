//! GS1's own test suite for resolvers, unmodified, in Node: `tests/clients/gs1/suite.mjs`.
//!
//! It lies in a repository that no package has. `WAYMARK_TEST_GS1_SUITE` and `WAYMARK_TEST_GS1_LINKSET` are folders of checkouts of
//! <https://github.com/gs1/GS1DL-resolver-testsuite> and <https://github.com/gs1/linkset>. `tests/run --long` clones what is not
//! given; else the test is not run, and says so.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use shared::{
    digital_link::LinkSet,
    redirect::Redirect,
    short_url::{Scheme, ShortDomain},
    wire::stream::Change,
};

use crate::support::{Control, HOST, account, edge, redirect};

const PRODUCT: &str = "01/09528765123457";

/// The checkout of a repository of GS1; `None` where it is neither given nor may be cloned.
fn checkout(variable: &str, repository: &str, scratch: &Path) -> Option<PathBuf> {
    if let Some(folder) = env::var_os(variable) {
        return Some(folder.into());
    }
    env::var_os("WAYMARK_TEST_LONG")?;
    let folder = scratch.join(repository);
    let url = format!("https://github.com/gs1/{repository}");
    let cloned = Command::new("git").args(["clone", "--quiet", "--depth", "1", &url]).arg(&folder).status();
    assert!(cloned.unwrap().success(), "{url} could not be cloned: set {variable}");
    Some(folder)
}

fn put(control: &Control, short_id: &str, links: &Value) {
    let set = json!({"description": short_id, "serialMode": "known", "links": links});
    let set: LinkSet = serde_json::from_value(set).unwrap();
    let record = redirect(short_id, "https://example.com/unused");
    control.put_record(Redirect { digital_link: Some(Box::new(set)), ..record });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_of_gs1_is_passed() {
    let scratch = tempfile::tempdir().unwrap();
    let suite = checkout("WAYMARK_TEST_GS1_SUITE", "GS1DL-resolver-testsuite", scratch.path());
    let linkset = checkout("WAYMARK_TEST_GS1_LINKSET", "linkset", scratch.path());
    let (Some(suite), Some(linkset)) = (suite, linkset) else {
        eprintln!("not run: WAYMARK_TEST_GS1_SUITE and WAYMARK_TEST_GS1_LINKSET are not set");
        return;
    };
    let (control, edge, _folder) = edge().await;
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let domain = ShortDomain { account: Some(account()), digital_links: true, ..domain };
    let link = |link_type: &str, href: &str, rest: Value| {
        let mut link = json!({"linkType": link_type, "href": href, "title": href});
        link.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        link
    };
    let pdf = |rest: &str| format!("https://example.com/certificate/{rest}");
    put(
        &control,
        PRODUCT,
        &json!([
            link("gs1:pip", "https://example.com/{01}/{21}", json!({"default": true})),
            link("gs1:pip", "https://example.com/de/{01}", json!({"hreflang": ["de"]})),
            link("gs1:pip", "https://example.com/pt/{01}", json!({"hreflang": ["pt-BR"]})),
            link("gs1:instructions", "https://example.com/one", json!({"type": "text/html"})),
            link("gs1:instructions", "https://example.com/two", json!({"type": "text/html"})),
            link("gs1:certificationInfo", &pdf("1"), json!({"type": "application/pdf"})),
            link("gs1:certificationInfo", &pdf("2"), json!({"type": "application/pdf", "hreflang": ["en"]})),
            link(
                "gs1:certificationInfo",
                &pdf("3"),
                json!({"type": "application/pdf", "hreflang": ["en"], "context": ["LK"]})
            ),
            link("gs1:certificationInfo", &pdf("page"), json!({"type": "text/html"})),
            link("gs1:sustainabilityInfo", "https://example.com/{10}", json!({})),
        ]),
    );
    let recall = link("gs1:recallStatus", "https://example.com/recall/{10}", json!({"default": true}));
    put(&control, &format!("{PRODUCT}/10/L1"), &json!([recall]));
    let passport = link("gs1:dpp", "https://example.com/passport/{21}", json!({"default": true}));
    put(&control, &format!("{PRODUCT}/21/S1"), &json!([passport]));
    control.acked(control.commit([Change::Domain(domain)])).await;

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let links = ["", "/10/L1", "/10/L1/21/S1", "/21/never-issued"];
    let links = links.map(|rest| format!("https://{HOST}/{PRODUCT}{rest}"));
    let mut node = Command::new("node");
    node.arg(root.join("tests/clients/gs1/suite.mjs")).args([suite, linkset]);
    node.arg(edge.plain.to_string()).args(&links);
    let output = tokio::task::spawn_blocking(move || node.output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{error}");
    assert_eq!(printed.matches("ok - defaultTarget").count(), links.len(), "{printed}");
    edge.stop().await;
}
