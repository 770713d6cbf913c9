//! Requests that the edge itself refuses: images out of range, unknown ids, methods and hosts.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, header};
use serde_json::json;
use shared::problem::Code;
use tests::db::Engine;

use super::{Bench, JSON, OTHER_DOMAIN, check_faults};

/// Queries of an image that are wrong, and the parameter that the fault names.
pub(super) const WRONG_IMAGES: [(&str, &str); 22] = [
    ("w=94", "w must be a whole number of pixels from 95 to 800"),
    ("w=801", "w must be a whole number of pixels from 95 to 800"),
    ("h=94", "h must be"),
    ("h=801", "h must be"),
    ("w=0", "w must be"),
    ("w=-1", "w must be"),
    ("w=", "w must be"),
    ("w=x", "w must be"),
    ("w=256.5", "w must be"),
    ("w=99999999999999999999", "w must be"),
    ("w=100&w=200", "w is given more than once"),
    ("ecl=Z", "ecl must be"),
    ("ecl=", "ecl must be"),
    ("tpl=x", "tpl must be"),
    ("x=0.09", "x must be"),
    ("x=20.1", "x must be"),
    ("x=abc", "x must be"),
    ("size=1", "size must be"),
    ("dpi=300", "dpi needs x or size"),
    ("x=0.5&w=100", "w is in pixels"),
    ("qz=3", "qz must be"),
    ("version=41", "version must be"),
];

/// A request to the edge, sent as it stands.
struct Ask {
    method: Method,
    path: String,
    host: Option<String>,
    accept: &'static str,
    key: Option<String>,
    code: Code,
    faults: Vec<&'static str>,
}

fn ask(method: Method, path: impl Into<String>, code: Code, faults: &[&'static str]) -> Ask {
    Ask { method, path: path.into(), host: None, accept: "*/*", key: None, code, faults: faults.to_vec() }
}

impl Bench {
    async fn send(&self, ask: &Ask) -> Result<()> {
        let url = format!("{}{}", self.product.edge, ask.path);
        let mut request =
            self.product.http.request(ask.method.clone(), url).header(header::ACCEPT, ask.accept);
        if let Some(host) = &ask.host {
            request = request.header(header::HOST, host);
        }
        if let Some(key) = &ask.key {
            request = request.header(header::AUTHORIZATION, key);
        }
        let errors = self.problem(request.send().await?, ask.code).await?;
        let faults: Vec<String> = ask.faults.iter().map(|fault| (*fault).to_owned()).collect();
        check_faults(&errors, &faults)
    }
}

/// Every wrong request to the edge gets the common body, and no scan is recorded.
pub(super) async fn the_edge_refuses_invalid_requests(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let id = &bench.ours.short_id;
    let mut asks = Vec::new();
    for (query, fault) in WRONG_IMAGES {
        for suffix in [".png", ".svg", ".pdf", ".eps"] {
            asks.push(ask(Method::GET, format!("/{id}{suffix}?{query}"), Code::InvalidParameter, &[fault]));
        }
        let by_accept = ask(Method::GET, format!("/{id}?{query}"), Code::InvalidParameter, &[fault]);
        asks.push(Ask { accept: "image/png", ..by_accept });
    }
    asks.push(ask(
        Method::GET,
        format!("/{id}.png?w=94&h=801&ecl=Z&tpl=x"),
        Code::InvalidParameter,
        &["w must be", "h must be", "ecl must be", "tpl must be"],
    ));
    for suffix in ["", ".png", ".svg", ".pdf", ".eps", ".png?w=94"] {
        for unknown in ["NOT-THERE", "not-there", "V2", &"X".repeat(64)] {
            asks.push(ask(Method::GET, format!("/{unknown}{suffix}"), Code::ShortIdUnknown, &[]));
        }
    }
    for path in ["/", "/a/b", "/x.gif", "/.png", "/%00", "/caf%C3%A9", "/.env", "/wp-login.php", "/a%2Fb"] {
        asks.push(ask(Method::GET, path, Code::NoSuchPath, &[]));
    }
    asks.push(ask(Method::GET, format!("/{}", "X".repeat(65)), Code::NoSuchPath, &[]));
    asks.push(ask(Method::GET, format!("/{id}?{}", "x".repeat(2_048)), Code::Invalid, &["url"]));
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        for path in [format!("/{id}"), format!("/{id}.png"), "/NOT-THERE".to_owned(), "/".to_owned()] {
            asks.push(ask(method.clone(), path, Code::MethodNotAllowed, &[]));
        }
    }
    for host in ["unknown.test", "127.0.0.1", "127.0.0.1:1", "localhost", "tn.gg.evil.test", ""] {
        for path in [format!("/{id}"), format!("/{id}.png"), "/redirections".to_owned(), "/".to_owned()] {
            let misdirected = ask(Method::GET, path, Code::MisdirectedHost, &[]);
            asks.push(Ask { host: Some(host.to_owned()), ..misdirected });
        }
    }
    // With a key the edge asks control for the whole record, and control refuses.
    let record = |key: &str, code| Ask {
        accept: JSON,
        key: Some(key.to_owned()),
        ..ask(Method::GET, format!("/{id}"), code, &[])
    };
    asks.push(record("x", Code::KeyUnknown));
    asks.push(record(&"C".repeat(80), Code::KeyUnknown));
    let theirs = ask(Method::GET, format!("/{}", bench.theirs.short_id), Code::NotFound, &[]);
    asks.push(Ask { accept: JSON, key: Some(bench.key.clone()), ..theirs });
    let before = bench.fingerprint().await?;
    for one in &asks {
        bench.send(one).await.with_context(|| {
            format!("{} {} host {:?} accept {}", one.method, one.path, one.host, one.accept)
        })?;
    }
    pages(&bench).await?;
    management_is_no_other_domains(&bench).await?;
    bench.is_unchanged(&before).await?;
    let metrics = bench.product.metrics().await?;
    ensure!(metrics.get("waymark_edge_scans_recorded_total") == Some(&0.0), "a wrong request is a scan");
    Ok(())
}

/// HEAD has the status without a body; a browser gets a page, without anything of the request in it.
async fn pages(bench: &Bench) -> Result<()> {
    let url = |path: &str| format!("{}{path}", bench.product.edge);
    for (path, status) in [("/NOT-THERE", 404), ("/a/b", 404), ("/OURS-0.png?w=94", 400)] {
        let response = bench.product.http.head(url(path)).send().await?;
        ensure!(response.status() == status, "{path}: {}", response.status());
        ensure!(response.headers().contains_key("x-request-id"), "{path}");
        ensure!(response.bytes().await?.is_empty(), "{path}: HEAD with a body");
    }
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    for (path, status) in [("/NOT-THERE", 404), ("/%3Cscript%3E", 404), ("/OURS-0.png?tpl=%3Cscript%3E", 400)]
    {
        let response = bench.product.http.get(url(path)).header(header::ACCEPT, browser).send().await?;
        ensure!(response.status() == status, "{path}: {}", response.status());
        let kind = response.headers().get(header::CONTENT_TYPE).context("type")?.to_str()?.to_owned();
        ensure!(kind.starts_with("text/html"), "{path}: {kind}");
        let html = response.text().await?;
        ensure!(!html.contains("<script") && !html.contains("http://"), "{path}: {html}");
    }
    Ok(())
}

/// The host of the short domain decides which account's links a management path is about.
async fn management_is_no_other_domains(bench: &Bench) -> Result<()> {
    let url = format!("{}/redirections", bench.product.edge);
    let post = |host: &str, body: serde_json::Value| {
        let request = bench.product.http.post(&url).header(header::HOST, host);
        request.header(header::AUTHORIZATION, &bench.key).header(header::ACCEPT, JSON).json(&body)
    };
    let draft = json!({"platformId": bench.theirs.thng, "defaultRedirectUrl": "https://example.com/"});
    // The edge took the domains over before the second account was there: it does not serve that host.
    let response = post(OTHER_DOMAIN, draft.clone()).send().await?;
    bench.problem(response, Code::MisdirectedHost).await?;
    let response = post(&bench.domain, draft).send().await?;
    let errors = bench.problem(response, Code::Invalid).await?;
    check_faults(&errors, &["platformId".to_owned()])
}
