//! The life of the process: first start, later starts, stop, and what survives.

mod process;

use std::{collections::HashSet, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use shared::short_url::Scheme;
use standalone::{
    Config, Failure,
    config::{Database, DomainSetting, Tls},
};
use tokio_util::sync::CancellationToken;

use crate::harness::{DOMAIN, Waymark, config, eventually, key, waymark};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_goes_on_with_the_same_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Config { operator_key: None, ..config(&data) };
    let service = Waymark::start_with(folder, first.clone()).await;
    let made = service.running.seeded.new_key.clone().expect("the first start makes a key");
    assert_eq!(made.len(), 80);
    let database = std::fs::read(data.join("waymark.db")).unwrap();
    assert!(!database.windows(80).any(|part| part == made.as_bytes()), "the key is stored as a hash only");
    let mode = std::fs::metadata(&data).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "the folder is its owner's");
    let account = service.running.seeded.account;
    let folder = service.stop().await;

    let service = Waymark::start_with(folder, config(&data)).await;
    assert_eq!(service.running.seeded.new_key, None, "a later start makes no key");
    assert_eq!(service.running.seeded.account, account);
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/a", "shortId": "KEPT"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201, "the seeded key works");
    assert_eq!(service.scan(DOMAIN, "kept").await, (307, "https://example.com/a".to_owned()));
    let folder = service.stop().await;

    let service = Waymark::start_with(folder, config(&data)).await;
    assert_eq!(service.scan(DOMAIN, "kept").await, (307, "https://example.com/a".to_owned()));
    assert_eq!(service.scan(DOMAIN, "other").await.0, 404);
    // Two scans: the one before the stop was handed over while the process ended.
    eventually("both scans are counted", async || {
        let (_, record) = service.call("GET", "/redirections/KEPT", None).await;
        (record["hits"] == 2).then_some(())
    })
    .await;
    service.stop().await;
}

/// Clients of the first generation send `*/*` to the short domain and read JSON.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirector_made_through_the_edge_is_answered_in_json() {
    let (service, thng) = Waymark::with_thng().await;
    let url = format!("http://{}/thngs/{thng}/redirector", service.running.addresses.edge);
    for accept in [Some("*/*"), None] {
        let mut request = service.http.post(&url).header("host", DOMAIN).header("authorization", key());
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let made = request.json(&json!({"defaultRedirectUrl": "https://example.com/"})).send().await.unwrap();
        let (status, kind) = (made.status(), made.headers()["content-type"].clone());
        assert_eq!((status.as_u16(), kind.to_str().unwrap()), (201, "application/json"), "{accept:?}");
        let made: serde_json::Value = made.json().await.unwrap();
        assert_eq!((made["shortDomain"].as_str(), made["platformId"].as_str()), (Some(DOMAIN), Some(&*thng)));
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_of_the_last_moment_are_kept() {
    let service = Waymark::start().await;
    let data = service.folder.path().join("data");
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "LAST"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    for _ in 0..50 {
        assert_eq!(service.scan(DOMAIN, "LAST").await.0, 307);
    }
    let folder = service.stop().await;
    let service = Waymark::start_with(folder, config(&data)).await;
    let (_, record) = service.call("GET", "/redirections/LAST", None).await;
    assert_eq!(record["hits"], 50, "all of them were handed over before the database closed");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_replica_asks_the_database_for_no_id() {
    let service = Waymark::start().await;
    let data = service.folder.path().join("data");
    let thng = service.thng().await;
    for short_id in ["ONE", "TWO"] {
        let body =
            json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
        assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    }
    let mut folder = service.stop().await;
    for (is_replica, misses) in [(true, 0), (false, 3)] {
        let service = Waymark::start_with(folder, Config { is_replica, ..config(&data) }).await;
        let held = if is_replica { json!(2) } else { json!(null) };
        eventually("what the edge shall hold is read", async || {
            let ready = service.ready().await;
            let is_read = !is_replica || ready["replica"]["state"] == "whole";
            (is_read && ready["state"] == "LIVE" && ready["replica"]["links"] == held).then_some(())
        })
        .await;
        for (short_id, status) in [("ONE", 307), ("TWO", 307), ("NONE", 404)] {
            assert_eq!(service.scan(DOMAIN, short_id).await.0, status, "{short_id}, {is_replica}");
        }
        let ready = service.ready().await;
        assert_eq!(ready["misses"], misses, "{ready}");
        // What changes is known at once.
        let body = json!({"defaultRedirectUrl": "https://example.com/new"});
        assert_eq!(service.call("PUT", "/redirections/ONE?wait=edges", Some(body)).await.0, 200);
        assert_eq!(service.scan(DOMAIN, "ONE").await, (307, "https://example.com/new".to_owned()));
        // Another in each round: an id that was deleted is not given again.
        let made = if is_replica { "THREE" } else { "FOUR" };
        let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": made});
        assert_eq!(service.call("POST", "/redirections?wait=edges", Some(body)).await.0, 201);
        assert_eq!(service.scan(DOMAIN, made).await.0, 307);
        let path = format!("/redirections/{made}?wait=edges");
        assert!(service.call("DELETE", &path, None).await.0 < 300);
        assert_eq!(service.scan(DOMAIN, made).await.0, 404);
        folder = service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_domains_are_added_and_keep_their_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let domain = |scheme, host: &str| DomainSetting { scheme, host: host.to_owned() };
    let with = |domains| Config { short_domains: domains, ..config(&data) };
    let shown = |service: &Waymark| -> Vec<String> {
        let domains = service.running.seeded.domains.iter();
        domains.map(|domain| format!("{}://{}", domain.scheme.as_str(), domain.host)).collect()
    };
    let service = Waymark::start_with(folder, with(Vec::new())).await;
    let own = format!("http://{}", service.running.addresses.edge);
    assert_eq!(shown(&service), std::slice::from_ref(&own), "without a setting it is the edge's own address");
    let folder = service.stop().await;

    let https = domain(Some(Scheme::Https), "a.test");
    let service = Waymark::start_with(folder, with(vec![https, domain(None, "b.test")])).await;
    let expected = ["https://a.test".to_owned(), "https://b.test".to_owned(), own.clone()];
    assert_eq!(HashSet::from(expected), shown(&service).into_iter().collect());
    assert_eq!(shown(&service)[0], "https://a.test", "codes are created there, not on a development domain");
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://x.test/", "shortId": "B",
        "shortDomain": "b.test"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    assert_eq!(service.scan("b.test", "B").await.0, 307, "the edge serves the new domain");
    assert_eq!(service.scan("c.test", "B").await.0, 421, "and no other");
    let folder = service.stop().await;

    let http = ["a.test", "b.test"].map(|host| domain(Some(Scheme::Http), host));
    let service = Waymark::start_with(folder, with(http.to_vec())).await;
    assert_eq!(shown(&service)[0], "http://a.test", "without a code it may be changed");
    assert!(shown(&service).contains(&"https://b.test".to_owned()), "its codes may be printed");
    let (_, record) = service.call("GET", "/redirections/B?domain=b.test", None).await;
    assert_eq!(record["shortUrl"], "https://b.test/B");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_in_the_own_network_need_the_accounts_word() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Waymark::start_with(folder, config(&data)).await;
    let thng = service.thng().await;
    let body =
        |id: &str| json!({"platformId": thng, "defaultRedirectUrl": "http://0x7f.1:9/", "shortId": id});
    let (status, refused) = service.call("POST", "/redirections", Some(body("ONE"))).await;
    assert_eq!((status, refused["code"].as_u64()), (400, Some(40001)), "{refused}");
    let account = format!("/accounts/{}", service.running.seeded.account);
    for (change, status) in [
        (json!({"privateTargets": true}), 201),
        (json!({"targetHosts": ["example.com"]}), 400),
        (json!({"targetHosts": [], "privateTargets": false}), 400),
    ] {
        assert_eq!(service.call("PUT", &account, Some(change.clone())).await.0, 200);
        let found = service.call("POST", "/redirections", Some(body(&format!("S{status}")))).await;
        assert_eq!(found.0, status, "{change}: {}", found.1);
    }
    let folder = service.stop().await;
    let allowing = Config { private_targets: Some(true), ..config(&data) };
    let service = Waymark::start_with(folder, allowing).await;
    assert_eq!(service.call("POST", "/redirections", Some(body("TWO"))).await.0, 201);
    assert_eq!(service.call("GET", &account, None).await.1["privateTargets"], true);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_in_answers_never_name_a_strangers_host() {
    let behind = |config: Config| Config { behind_tls_proxy: true, ..config };
    let public =
        |config: Config| Config { public_url: Some("https://api.test".to_owned()), ..behind(config) };
    for (form, host, expected) in [
        (None, "evil.example", None),
        (None, DOMAIN, Some("http://")),
        (Some(false), "evil.example", None),
        (Some(false), DOMAIN, Some("https://")),
        (Some(true), DOMAIN, Some("https://api.test/")),
        (Some(true), "evil.example", Some("https://api.test/")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let settings = config(&folder.path().join("data"));
        let settings = match form {
            None => settings,
            Some(false) => behind(settings),
            Some(true) => public(settings),
        };
        let service = Waymark::start_with(folder, settings).await;
        let own = service.running.docs_url.trim_end_matches("docs").to_owned();
        let scheme = if form.is_some() { "https://" } else { "http://" };
        assert!(own.starts_with(scheme), "{own}");
        let request = service.http.post(format!("{}/thngs", service.running.api_url));
        let request = request.header("host", host).header("authorization", key()).json(&json!({"name": "x"}));
        let answer = request.send().await.unwrap();
        let location = answer.headers()["location"].to_str().unwrap().to_owned();
        let expected = match expected {
            None => own,
            Some(scheme) if scheme.ends_with("://") => format!("{scheme}{DOMAIN}/"),
            Some(base) => base.to_owned(),
        };
        assert!(location.starts_with(&expected), "{form:?} {host}: {location}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_holds_a_data_folder() {
    let service = Waymark::start().await;
    let again = standalone::up(config(&service.folder.path().join("data")), CancellationToken::new()).await;
    let Err(Failure::Config(refused)) = again else { panic!("the folder was taken twice") };
    assert_eq!(refused.key, "WAYMARK_DATA_DIR");
    assert!(refused.reason.contains("in use by another process"), "{refused}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_seed_key_is_refused() {
    let service = Waymark::start().await;
    let data = service.folder.path().join("data");
    let folder = service.stop().await;
    let revoke = waymark().args(["keys", "revoke", &key()]).env("WAYMARK_DATA_DIR", &data).status();
    assert!(revoke.unwrap().success());
    let again = standalone::up(config(&data), CancellationToken::new()).await;
    let Err(Failure::Config(refused)) = again else { panic!("a revoked key was taken") };
    assert_eq!(refused.key, "WAYMARK_OPERATOR_KEY");
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn development_tls_serves_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let free = Config::on_free_ports(data.clone()).api_listen;
    let with_tls =
        Config { tls: Tls::Dev, edge_tls_listen: Some(free), api_tls_listen: Some(free), ..config(&data) };
    let service = Waymark::start_with(folder, with_tls).await;
    let addresses = service.running.addresses;
    let ca = std::fs::read(service.running.dev_ca.as_ref().unwrap()).unwrap();
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .resolve(DOMAIN, addresses.edge_tls.unwrap())
        .build()
        .unwrap();
    let api_port = addresses.api_tls.unwrap().port();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{api_port}/access");
        let answer = http.get(url).header("authorization", key()).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{host}");
    }
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "TLS"});
    let (status, record) = service.call("POST", "/redirections", Some(body)).await;
    assert_eq!((status, record["shortUrl"].as_str()), (201, Some("https://tn.test/TLS")));
    let answer = http.get("https://tn.test/TLS").send().await.unwrap();
    assert_eq!(answer.status(), 307);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trusted_proxies_name_the_client_on_both_sides() {
    // A new account keeps networks.
    for (trusted, expected) in [("", "127.0.0.0"), ("10.0.0.0/8,127.0.0.1", "203.0.113.0")] {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Config { trusted_proxies: trusted.parse().unwrap(), ..config(&folder.path().join("data")) };
        let service = Waymark::start_with(folder, settings).await;
        let thng = service.thng().await;
        let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "P"});
        let (status, _) = service.call("POST", "/redirections?wait=edges", Some(link)).await;
        assert_eq!(status, 201);
        let forwarded = ("x-forwarded-for", "6.6.6.6, 203.0.113.7");
        let scan = format!("http://{}/P", service.running.addresses.edge);
        let scan = service.http.get(scan).header("host", DOMAIN).header(forwarded.0, forwarded.1);
        assert_eq!(scan.send().await.unwrap().status(), 307);
        let action = service.http.post(format!("{}/actions/checkins", service.running.api_url));
        let action = action.header("authorization", key()).header(forwarded.0, forwarded.1);
        assert_eq!(action.json(&json!({"thng": thng})).send().await.unwrap().status(), 201);
        let uri = format!("/thngs/{thng}/actions/all?context=true");
        let actions = eventually("both are stored", async || {
            let (_, actions) = service.call("GET", &uri, None).await;
            Some(actions).filter(|actions| actions.as_array().is_some_and(|all| all.len() == 2))
        });
        for action in actions.await.as_array().unwrap() {
            assert_eq!(action["context"]["ipAddress"], expected, "{trusted:?}: {action}");
        }
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_waits_for_postgres_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("postgres://waymark:secret@{closed}/x");
    let with = Config { database: Database::Postgres(url), ..config(&folder.path().join("data")) };
    let shutdown = CancellationToken::new();
    let mut starting = Box::pin(standalone::up(with, shutdown.clone()));
    let first = tokio::time::timeout(std::time::Duration::from_millis(300), &mut starting).await;
    assert!(first.is_err(), "Postgres may still come");
    shutdown.cancel();
    let Err(error) = starting.await else { panic!("it started") };
    assert_eq!(error.to_string(), "stopped before Postgres answered");
}
