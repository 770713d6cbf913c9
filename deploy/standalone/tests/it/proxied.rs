//! URLs in answers behind a proxy that ends TLS, with and without the public URL.

use percent_encoding::percent_decode_str;
use reqwest::{Response, header::HeaderMap};
use serde_json::{Value, json};
use standalone::Config;

use crate::harness::{DOMAIN, Waymark, config, key};

/// Sends a request with a `Host`; gives headers and JSON.
async fn send(
    service: &Waymark,
    host: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (HeaderMap, Value) {
    let request = service
        .http
        .request(method.parse().unwrap(), format!("{}{path}", service.running.api_url))
        .header("host", host)
        .header("authorization", key());
    let request = body.iter().fold(request, |request, body| request.json(body));
    let response: Response = request.send().await.unwrap();
    (response.headers().clone(), response.json().await.unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_url_in_an_answer_is_https_and_names_a_known_host() {
    for (public_url, host, expected) in [
        (None, DOMAIN, Some(format!("https://{DOMAIN}/"))),
        (None, "evil.example", None),
        (Some("https://api.test"), DOMAIN, Some("https://api.test/".to_owned())),
        (Some("https://api.test"), "evil.example", Some("https://api.test/".to_owned())),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Config {
            behind_tls_proxy: true,
            public_url: public_url.map(str::to_owned),
            ..config(&folder.path().join("data"))
        };
        let service = Waymark::start_with(folder, settings).await;
        let own = service.running.docs_url.trim_end_matches("docs").to_owned();
        assert!(own.starts_with("https://"), "{own}");
        // A host that is not known is not repeated: the service names its own.
        let expected = expected.unwrap_or_else(|| own.clone());
        let case = format!("{public_url:?} {host}");

        let thng = service.thng().await;
        service.thng().await;
        let (headers, _) = send(&service, host, "GET", "/thngs?perPage=1", None).await;
        let link = headers["link"].to_str().unwrap().trim_start_matches('<');
        let link = percent_decode_str(link).decode_utf8().unwrap();
        assert!(link.starts_with(&format!("{expected}thngs?")), "{case}: {link}");

        let (_, file) = send(&service, host, "POST", "/files", Some(json!({"name": "a.csv"}))).await;
        for name in ["uploadUrl", "contentUrl"] {
            let url = file[name].as_str().unwrap();
            assert!(url.starts_with(&format!("{expected}files/")), "{case}: {name} {url}");
        }

        let (_, problem) = send(&service, host, "GET", "/thngs/none", None).await;
        let more = problem["moreInfo"].as_str().unwrap();
        assert!(more.starts_with(&format!("{own}docs#error-")), "{case}: {more}");

        let job = json!({"payload": {"type": "scans"}, "target": "THNGS",
            "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [thng]}});
        let (headers, _) = send(&service, host, "POST", "/jobs/actions", Some(job)).await;
        let location = headers["location"].to_str().unwrap();
        assert!(location.starts_with(&format!("{expected}jobs/actions/")), "{case}: {location}");
        service.stop().await;
    }
}
