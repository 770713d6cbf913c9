//! Errors as pages of a domain show them.

use std::mem::take;

use http::{
    HeaderValue, Request, Response,
    header::{ACCEPT, ACCEPT_LANGUAGE},
};
use hyper::body::Incoming;
use shared::short_url::ShortDomain;
use visitor_pages::Brand;

use super::{App, Asking};
use crate::{
    backing::Backing,
    domains::{self, Table},
    framing::Sent,
    response::{Body, Errors},
    withheld::WithheldLinks,
};

impl<B: Backing> App<B> {
    /// The answer for an id that leads nowhere.
    pub(super) fn unknown(&self, request: &mut Request<Incoming>, brand: Brand) -> Response<Body> {
        let headers = take(request.headers_mut());
        let [accept, language] = [ACCEPT, ACCEPT_LANGUAGE].map(|name| headers.get(name).cloned());
        let errors = self.errors(accept.as_ref().map(HeaderValue::as_bytes));
        let language = language.as_ref().map(HeaderValue::as_bytes);
        Errors { brand, language, ..errors }.unknown(headers)
    }

    /// The errors of a link that is asked for.
    pub(super) fn errors_at<'a>(&'a self, asking: &Asking<'a>) -> Errors<'a> {
        self.errors_on(asking.sent, asking.site.domain, asking.site.withheld)
    }

    /// The errors of the domain of a host, if it is one.
    pub(super) fn errors_of_host<'a>(&'a self, table: &Table, host: &str, sent: &Sent<'a>) -> Errors<'a> {
        match domains::find(table, host) {
            Some(domain) => self.errors_on(sent, domain, &table.withheld),
            None => self.errors(sent.accept),
        }
    }

    /// Errors as the account of a domain shows them.
    pub(super) fn errors_on<'a>(
        &'a self,
        sent: &Sent<'a>,
        domain: &ShortDomain,
        withheld: &WithheldLinks,
    ) -> Errors<'a> {
        let brand = withheld.brand(domain);
        Errors { brand, language: sent.language, ..self.errors(sent.accept) }
    }

    /// Errors of no domain.
    pub(super) fn errors<'a>(&'a self, accept: Option<&'a [u8]>) -> Errors<'a> {
        let (docs_url, contact) = (&self.config.docs_url, self.config.contact.as_ref());
        let (language, brand) = (None, Brand::default());
        Errors { docs_url, accept, language, brand, contact, prepared: &self.prepared }
    }
}
