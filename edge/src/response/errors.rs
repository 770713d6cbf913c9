//! Errors: JSON for programs, and pages for people.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, VARY},
};
use serde_json::Value;
use shared::{
    contact::Contact,
    negotiate::Representation,
    problem::{Code, Problem},
};
use visitor_pages::{Brand, Kind, PageCache, ReportPage, escape, report_page};

use super::{Body, NO_STORE, headers, response};
use crate::route;

/// Words errors for the client that asked: JSON, or a page for a browser that asks for HTML.
#[derive(Debug, Clone)]
pub(crate) struct Errors<'a> {
    /// The docs page that `moreInfo` points to.
    pub(crate) docs_url: &'a str,
    /// `Accept` of the request.
    pub(crate) accept: Option<&'a [u8]>,
    /// `Accept-Language` of the request.
    pub(crate) language: Option<&'a [u8]>,
    /// What the account of the domain shows on pages.
    pub(crate) brand: Brand,
    /// Where abuse is reported.
    pub(crate) contact: Option<&'a Contact>,
    /// Bodies that are at hand.
    pub(crate) prepared: &'a Prepared,
}

/// An answer in a form that was negotiated.
struct Form {
    is_html: bool,
    vary: &'static str,
    body: Bytes,
}

impl Errors<'_> {
    /// The answer for `code` with its own sentence.
    pub(crate) fn plain(&self, code: Code) -> Response<Body> {
        self.answer(headers(), code, Kind::of(code))
    }

    /// The answer for `code` with the faults found.
    pub(crate) fn with(&self, code: Code, faults: Vec<String>) -> Response<Body> {
        refusal(headers(), code, self.made(code, faults))
    }

    /// The answer for a link that exists and does not lead anywhere now.
    pub(crate) fn closed_or_withheld(&self, code: Code) -> Response<Body> {
        self.plain(code)
    }

    /// The answer for an id that leads nowhere; `headers` are those of the request.
    pub(crate) fn unknown(&self, headers: HeaderMap) -> Response<Body> {
        self.answer(headers, Code::ShortIdUnknown, Some(Kind::Unknown))
    }

    /// The answer for a domain without an id.
    pub(crate) fn root(&self) -> Response<Body> {
        self.answer(headers(), Code::NoSuchPath, Some(Kind::Root))
    }

    /// The answer to a report: the next page for people, and for programs what control says.
    pub(crate) fn report(&self, answered: Result<(StatusCode, Bytes), Code>) -> Response<Body> {
        let (status, answer) = match answered {
            Err(code) if !self.wants_html() => return self.plain(code),
            Err(code) => (status_of(code), Bytes::new()),
            Ok(answered) => answered,
        };
        if !self.wants_html() {
            return written(headers(), status, Form { is_html: false, vary: "Accept", body: answer });
        }
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let page = match (answer["report"].as_str(), answer["token"].as_str()) {
            (Some("form"), Some(token)) => {
                let (takes_mail, takes_photo) = (answer["takesMail"] == true, answer["takesPhoto"] == true);
                ReportPage::Form { token, takes_mail, takes_photo }
            }
            (Some("received"), _) => ReportPage::Received,
            _ => ReportPage::Refused,
        };
        let body = report_page(page, self.language, &self.brand, self.contact).into();
        written(headers(), status, Form { is_html: true, vary: VARY_OF_PAGES, body })
    }

    /// Type and body of the answer for an id that leads nowhere.
    pub(crate) fn body_of_unknown(&self) -> (&'static str, Bytes) {
        let form = self.form(Code::ShortIdUnknown, Some(Kind::Unknown));
        (kind_of(form.is_html), form.body)
    }

    fn answer(&self, headers: HeaderMap, code: Code, kind: Option<Kind>) -> Response<Body> {
        refusal(headers, code, self.form(code, kind))
    }

    /// A page of a kind, or what is prepared for programs; made where neither is there.
    fn form(&self, code: Code, kind: Option<Kind>) -> Form {
        let wants_html = self.wants_html();
        if let Some(kind) = kind
            && wants_html
        {
            let pages = &self.prepared.pages;
            let body = pages.page((code, kind), self.language, &self.brand, self.contact);
            return Form { is_html: true, vary: VARY_OF_PAGES, body };
        }
        match self.prepared.json.iter().find(|(of, _)| *of == code) {
            Some((_, body)) if !wants_html => Form { is_html: false, vary: "Accept", body: body.clone() },
            Some(_) | None => self.made(code, Vec::new()),
        }
    }

    fn made(&self, code: Code, faults: Vec<String>) -> Form {
        let problem = Problem::new(code, faults, self.docs_url);
        let is_html = self.wants_html();
        let body = if is_html { page(code, &problem, self.contact).into() } else { json_of(&problem) };
        Form { is_html, vary: "Accept", body }
    }

    /// Whether HTML is named and not outweighed; `*/*` alone is a program.
    fn wants_html(&self) -> bool {
        let Some(accept) = self.accept else { return false };
        let is_named = |word: &[u8]| word.eq_ignore_ascii_case(b"text/html");
        accept.starts_with(b"text/html,")
            || (accept.windows(b"text/html".len()).any(is_named)
                && route::negotiate(Some(accept)) == Representation::Redirect)
    }
}

/// The bodies of 404 responses and of links that are withheld or closed, built once: guessing, and scans of what leads nowhere,
/// must not cost more than finding.
#[derive(Debug)]
pub(crate) struct Prepared {
    json: [(Code, Bytes); 7],
    pages: PageCache,
}

impl Prepared {
    /// Prepares what is for programs; a page is rendered when the first one asks for it.
    pub(crate) fn new(docs_url: &str, contact: Option<&Contact>) -> Self {
        let of = |code, faults| (code, json_of(&Problem::new(code, faults, docs_url)));
        // A page has the contact below its text.
        let withheld = |code: Code| {
            let text = contact.map(|contact| format!("{} Contact: {contact}", code.text()));
            of(code, text.into_iter().collect())
        };
        let plain = |code| of(code, Vec::new());
        let json = [
            plain(Code::ShortIdUnknown),
            withheld(Code::Suspended),
            withheld(Code::TakenDown),
            plain(Code::LinkScheduled),
            plain(Code::LinkPaused),
            plain(Code::LinkEnded),
            plain(Code::SuspectedCopy),
        ];
        Self { json, pages: PageCache::default() }
    }
}

fn json_of(problem: &Problem) -> Bytes {
    // A body of numbers and texts always serialises; an empty one would break the platform API.
    serde_json::to_vec(problem).unwrap_or_else(|_| b"{}".to_vec()).into()
}

/// What a page of ours may load.
pub(crate) const PAGE_POLICY: &str = visitor_pages::POLICY;

/// What a page in the language of the visitor depends on.
pub(crate) const VARY_OF_PAGES: &str = "Accept, Accept-Language";

const fn kind_of(is_html: bool) -> &'static str {
    if is_html { "text/html; charset=utf-8" } else { "application/json" }
}

fn refusal(headers: HeaderMap, code: Code, form: Form) -> Response<Body> {
    let mut response = written(headers, status_of(code), form);
    if code.status() == 405 {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn written(mut headers: HeaderMap, status: StatusCode, form: Form) -> Response<Body> {
    let Form { is_html, vary, body } = form;
    headers.clear();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind_of(is_html)));
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(VARY, HeaderValue::from_static(vary));
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if is_html {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    }
    response(status, headers, Body::of(body))
}

/// The page of an error that is none of a code: no script, no image, no other host.
fn page(code: Code, problem: &Problem, contact: Option<&Contact>) -> String {
    let title = match code.status() {
        404 => "This code leads nowhere",
        421 => "This address is not served here",
        429 => "Too many requests",
        503 => "One moment, please",
        _ => "This did not work",
    };
    let faults: String = problem.errors.iter().map(|fault| format!("<p>{}</p>", escape(fault))).collect();
    let contact = contact.map(Contact::html).unwrap_or_default();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>{title}</title><style>\
         :root{{color-scheme:light dark}}\
         body{{font:1rem/1.5 system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center}}\
         main{{max-width:32rem;padding:2rem}}h1{{font-size:1.5rem;font-weight:600}}\
         p{{margin:.5rem 0}}</style></head>\
         <body><main><h1>{title}</h1>{faults}<p><small>{} · {}</small></p>{contact}</main></body></html>",
        problem.status, problem.code
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(accept: Option<&'a [u8]>, prepared: &'a Prepared) -> Errors<'a> {
        let (language, brand, contact) = (None, Brand::default(), None);
        Errors { docs_url: "https://x/docs", accept, language, brand, contact, prepared }
    }

    #[test]
    fn browsers_get_a_page_and_programs_json() {
        for (accept, is_page) in [
            (None, false),
            (Some("*/*"), false),
            (Some("application/json"), false),
            (Some("image/png"), false),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), true),
            (Some("TEXT/HTML"), true),
            (Some("application/json, text/html;q=0.5"), false),
            (Some("text/html;q=0, */*"), false),
        ] {
            let accept = accept.map(str::as_bytes);
            let contact = "abuse@example.com".parse().unwrap();
            let prepared = &Prepared::new("https://x/docs", Some(&contact));
            let errors = Errors { contact: Some(&contact), ..asked(accept, prepared) };
            let answers = [errors.plain(Code::ShortIdUnknown), errors.unknown(headers())];
            for answer in &answers {
                assert_eq!(answer.status(), 404);
                let kind = answer.headers()[CONTENT_TYPE].to_str().unwrap();
                assert_eq!(kind.starts_with("text/html"), is_page, "{accept:?}");
            }
            let [made, prepared] = answers.map(|answer| format!("{answer:?}"));
            assert_eq!(made, prepared, "the same whether it is made or prepared");
        }
    }

    #[test]
    fn what_may_be_repeated_says_when_to_people_and_programs() {
        let prepared = &Prepared::new("https://x/docs", None);
        for accept in [None, Some(&b"text/html,*/*;q=0.8"[..])] {
            let errors = asked(accept, prepared);
            for code in [Code::TooManyRequests, Code::Timeout, Code::TooLarge] {
                // Control answers a report with a status of its own.
                let by_control = (status_of(code), Bytes::from_static(b"{}"));
                for answer in [errors.plain(code), errors.report(Err(code)), errors.report(Ok(by_control))] {
                    let after = answer.headers().get(RETRY_AFTER).map(HeaderValue::as_bytes);
                    let is_due = matches!(code.status(), 429 | 503);
                    assert_eq!(after, is_due.then_some(&b"1"[..]), "{code:?} {accept:?}: {answer:?}");
                }
            }
            assert!(!errors.plain(Code::ShortIdUnknown).headers().contains_key(RETRY_AFTER));
        }
    }

    #[test]
    fn a_withheld_link_names_whom_to_write_to() {
        let contact = "abuse@example.com".parse().unwrap();
        let html: &[u8] = b"text/html,*/*;q=0.8";
        for (code, title) in
            [(Code::Suspended, "This code is out of service"), (Code::TakenDown, "This code was taken down")]
        {
            let prepared = &Prepared::new("https://x/docs", Some(&contact));
            let of = |accept| Errors { contact: Some(&contact), ..asked(accept, prepared) };
            for (answer, texts) in [
                (of(Some(html)).closed_or_withheld(code), [title, "href=\\\"mailto:abuse@example.com\\\""]),
                (of(None).closed_or_withheld(code), [code.text(), "Contact: abuse@example.com"]),
            ] {
                assert_eq!(answer.status().as_u16(), code.status());
                assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
                let shown = format!("{answer:?}");
                assert!(texts.iter().all(|text| shown.contains(text)), "{shown}");
                assert_eq!(
                    shown.matches("abuse@example.com").count(),
                    if shown.contains("<a ") { 2 } else { 1 }
                );
            }
        }
    }

    #[test]
    fn a_page_shows_faults_as_text() {
        let problem = Problem::new(Code::Invalid, vec!["<script>&\"".into()], "d");
        let html = page(Code::Invalid, &problem, None);
        assert!(html.contains("&lt;script&gt;&amp;&#34;") && !html.contains("<script"));
    }
}
