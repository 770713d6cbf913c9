//! `waymark up --lan`: short URLs at an address of the local network, for development.

use std::{
    io::{BufRead as _, BufReader},
    net::{IpAddr, UdpSocket},
    process::Stdio,
};

use http::HeaderValue;
use serde_json::{Value, json};
use shared::short_url::is_local_network;
use standalone::{Config, config::Tls};
use tempfile::TempDir;

use crate::harness::{Waymark, config, key, texts, waymark};

/// The settings of a start with `--lan=IP`; another address of loopback stands in for that of the network.
fn in_network(folder: &TempDir, ip: &str) -> Config {
    Config {
        lan: ip.parse().ok(),
        tls: Tls::Dev,
        edge_tls_listen: format!("{ip}:0").parse().ok(),
        ..plain(folder)
    }
}

/// The settings of a start without options.
fn plain(folder: &TempDir) -> Config {
    Config { short_domains: Vec::new(), ..config(&folder.path().join("data")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_in_the_network_opens_the_printed_url() {
    let folder = tempfile::tempdir().unwrap();
    let lan = in_network(&folder, "127.0.0.2");
    let service = Waymark::start_with(folder, lan.clone()).await;
    let marked = HeaderValue::from_static("true");
    let printed = format!("https://{}", service.running.addresses.edge_tls.unwrap());
    let mut banner = Vec::new();
    standalone::banner::print(&mut banner, &service.running, &lan, false).unwrap();
    let banner = String::from_utf8(banner).unwrap();
    assert!(banner.contains(&printed) && banner.contains("for development: do not print"), "{banner}");
    assert!(banner.contains("Phones in this network"), "{banner}");
    let thng = service.thng().await;
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "LAN"});
    let created = service.http.post(format!("{}/redirections", service.running.api_url));
    let created = created.header("authorization", key()).header("accept", "image/png").json(&body);
    let created = created.send().await.unwrap();
    assert_eq!(created.headers()["x-waymark-development"], "true");
    let (_, record) = service.call("GET", "/redirections/LAN", None).await;
    assert_eq!(record["development"], true, "{record}");
    let domains = format!("/accounts/{}/domains", service.running.seeded.account);
    assert_eq!(service.call("GET", &domains, None).await.1[0]["development"], true);
    let ca = std::fs::read(service.running.dev_ca.as_ref().unwrap()).unwrap();
    let phone = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let answer = phone.get(format!("{printed}/LAN")).send().await.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(answer.headers()["strict-transport-security"], "max-age=0", "a development certificate");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert!(answer.headers().contains_key("referrer-policy"));
    // Twice: once when it is rendered, once from memory.
    for _ in 0..2 {
        let image = phone.get(format!("{printed}/LAN.png")).send().await.unwrap();
        assert_eq!((image.status().as_u16(), &image.headers()["x-waymark-development"]), (200, &marked));
    }
    let record =
        phone.get(format!("{printed}/LAN")).header("accept", "application/json").send().await.unwrap();
    assert_eq!(record.json::<Value>().await.unwrap()["development"], true);
    let image = service.http.get(format!("{}/redirections/LAN.qr", service.running.api_url));
    let image = image.header("authorization", key()).send().await.unwrap();
    assert_eq!((image.status().as_u16(), &image.headers()["x-waymark-development"]), (200, &marked));
    let ca = service.running.dev_ca.as_ref().unwrap().to_str().unwrap().to_owned();
    let (code, out, error) = service.run_tool(&["qr", "LAN", "--edge", &printed, "--ca", &ca]).await;
    assert_eq!(code, 0, "{out}{error}");
    let list = std::fs::read_to_string(service.folder.path().join("waymark-qr.csv")).unwrap();
    let mut list = csv::Reader::from_reader(list.as_bytes());
    let at = list.headers().unwrap().iter().position(|name| name == "development").unwrap();
    assert_eq!(&list.records().next().unwrap().unwrap()[at], "true");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_code_is_at_the_address_of_this_start() {
    let mut folder = tempfile::tempdir().unwrap();
    // As `deploy/run`, then with `--lan`, then in another network, then without it again.
    for lan in [None, Some("127.0.0.2"), Some("127.0.0.3"), None] {
        let settings = lan.map_or_else(|| plain(&folder), |ip| in_network(&folder, ip));
        let service = Waymark::start_with(folder, settings).await;
        let addresses = service.running.addresses;
        let expected = match lan {
            Some(_) => format!("https://{}/", addresses.edge_tls.unwrap()),
            None => format!("http://{}/", addresses.edge),
        };
        let body = json!({"platformId": service.thng().await, "defaultRedirectUrl": "https://example.com/"});
        let (status, made) = service.call("POST", "/redirections", Some(body)).await;
        assert_eq!(status, 201, "{made}");
        let short_url = made["shortUrl"].as_str().unwrap();
        assert!(short_url.starts_with(&expected), "{lan:?}: {short_url}, not {expected}");
        folder = service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_on_every_address_is_named_by_that_of_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Config { edge_tls_listen: "0.0.0.0:0".parse().ok(), ..in_network(&folder, "127.0.0.2") };
    let service = Waymark::start_with(folder, settings).await;
    let port = service.running.addresses.edge_tls.unwrap().port();
    assert_eq!(service.running.seeded.domains[0].host.as_str(), format!("127.0.0.2:{port}"));
    service.stop().await;
}

/// The flag without a value finds the address by itself; a machine without a local one says what is missing.
#[test]
fn the_flag_alone_finds_the_address_of_this_machine() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()).map(|own| own.ip());
    let own = own.ok().filter(|own| !own.is_loopback() && !own.is_unspecified());
    for args in [&["--lan"][..], &["--lan=auto"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = waymark();
        command.arg("up").args(args).env("WAYMARK_DATA_DIR", folder.path().join("data"));
        for name in ["API", "API_TLS", "EDGE", "ADMIN"] {
            command.env(format!("WAYMARK_{name}_LISTEN"), "127.0.0.1:0");
        }
        match own.filter(|own: &IpAddr| is_local_network(*own)) {
            Some(ip) => {
                command.env("WAYMARK_EDGE_TLS_LISTEN", format!("{ip}:0"));
                let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
                let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
                let banner: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C")).collect();
                child.kill().unwrap();
                child.wait().unwrap();
                let expected = format!("https://{ip}:");
                let urls = banner.iter().find(|line| line.contains("Short URLs")).unwrap();
                assert!(urls.contains(&expected), "{banner:?}");
            }
            None => {
                let (code, _, error) = texts(&command.output().unwrap());
                let expected = own.map_or_else(
                    || "this machine has no address in a network".to_owned(),
                    |ip| format!("{ip} is no address of a local network"),
                );
                assert_eq!(code, 64, "{error}");
                assert!(error.starts_with(&format!("waymark: WAYMARK_LAN: {expected}")), "{error}");
            }
        }
    }
}
