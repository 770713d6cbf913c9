use super::*;

#[tokio::test]
async fn paths_that_no_page_has_are_not_found() {
    for (path, status) in
        [("api", 404), ("api/", 404), ("assets/old.js", 404), ("links", 200), ("index.html", 200)]
    {
        let uri = format!("/console/{path}").parse().unwrap();
        let response = answer(State(HasProvider(false)), uri, HeaderMap::new()).await;
        assert_eq!(response.status().as_u16(), status, "{path}");
    }
}

#[test]
fn every_page_has_a_policy_and_is_asked_for_again() {
    let response = page_at("links/tn.gg/K7Q2", &HeaderMap::new(), HasProvider(false));
    let of = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
    let expected = if is_built() { POLICY } else { BARE_POLICY };
    assert_eq!(of(header::CONTENT_SECURITY_POLICY), Some(expected));
    assert_eq!(of(header::CACHE_CONTROL), Some("private, no-cache"));
    for allowed in ["unsafe-eval", "script-src 'unsafe-inline'", "*", "http:"] {
        assert!(!expected.contains(allowed), "{allowed}");
    }
}

#[tokio::test]
async fn the_reference_allows_styles_in_its_markup_and_nothing_from_elsewhere() {
    let mut headers = HeaderMap::new();
    headers.insert(header::COOKIE, format!("{COOKIE_START}x").parse().unwrap());
    let response = reference(headers).await;
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert_eq!(policy, if is_built() { REFERENCE_POLICY } else { BARE_POLICY });
    for allowed in ["unsafe-eval", "script-src 'unsafe-inline'", "*", "http:"] {
        assert!(!policy.contains(allowed), "{allowed}");
    }
    let html = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let html = String::from_utf8_lossy(&html);
    assert_eq!(html.contains("<base href=\"../../console/\" data-session>"), is_built());
}

#[tokio::test]
async fn an_escaped_slash_is_no_folder() {
    let uri = "/console/links%2Ftn.gg/K7Q2".parse().unwrap();
    let response = answer(State(HasProvider(false)), uri, HeaderMap::new()).await;
    let html = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&html).contains("<base href=\"../\">"), is_built());
}

#[test]
fn files_with_a_hash_are_kept_for_ever_and_come_packed() {
    for file in FILES.iter().filter(|file| file.name.starts_with(HASHED)) {
        let mut headers = HeaderMap::new();
        let plain = serve(file, &headers);
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING), "{}", file.name);
        headers.insert(header::ACCEPT_ENCODING, "gzip, br".parse().unwrap());
        let response = serve(file, &headers);
        let of = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(of(header::CACHE_CONTROL), Some("public, max-age=31536000, immutable"));
        assert_ne!(of(header::CONTENT_TYPE), Some("application/octet-stream"), "{}", file.name);
        if file.plain.len() > 1_024 {
            assert_eq!(of(header::CONTENT_ENCODING), Some("br"), "{}", file.name);
        }
    }
}

#[test]
fn the_licences_of_what_is_bundled_are_there() {
    let file = FILES.iter().find(|file| file.name == "licences.txt");
    assert_eq!(file.is_some(), is_built());
    if let Some(file) = file {
        let text = String::from_utf8_lossy(file.plain);
        for package in ["svelte", "uplot", "openapi-fetch"] {
            assert!(text.contains(&format!("{package} ")), "{package}");
        }
        assert!(text.contains("MIT"), "{text}");
    }
}

#[tokio::test]
async fn the_page_knows_whether_the_browser_sent_a_session() {
    for (cookie, expected) in [("a=b; __Host-waymark=x", is_built()), ("a=b; waymark=x", false), ("", false)]
    {
        let headers = HeaderMap::from_iter([(header::COOKIE, cookie.parse().unwrap())]);
        let response = page_at("", &headers, HasProvider(false));
        let html = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&html).contains("data-session"), expected, "{cookie}");
    }
}
