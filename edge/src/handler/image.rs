//! The image of the code of a link.

use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT, IF_NONE_MATCH},
};
use qr::Format;
use shared::problem::Code;

use super::{App, Asking, Next};
use crate::{
    backing::Backing,
    cache::Served,
    connection::Client,
    images::{self, ImageKey},
    response::Body,
};

impl<B: Backing> App<B> {
    /// Answers with the image, unless it has to be rendered.
    pub(super) fn image(&self, asking: &Asking<'_>, served: &Served, format: Format) -> Next {
        let Asking { request, sent, site, .. } = *asking;
        let image = match images::parse(format, request.uri().query()) {
            Ok(image) => image,
            Err(faults) => {
                return Next::Answer(self.errors(sent.accept).with(Code::InvalidParameter, faults));
            }
        };
        let short_id = &served.record.short_id;
        let pages = site.domain.pages.as_ref().filter(|_| image.wants_logo());
        let key = ImageKey {
            payload: site.domain.qr_payload(short_id).into(),
            caption: short_id.as_str().into(),
            request: image,
            development: site.domain.is_development(),
            logo: pages.and_then(|pages| pages.logo.clone()),
        };
        match self.renderer.held(&key) {
            Some(image) => {
                Next::Answer(images::answer(&image, key.marks(), request.headers().get(IF_NONE_MATCH)))
            }
            None => Next::Render(key),
        }
    }

    /// Renders an image for a request with these headers.
    pub(super) async fn render(&self, key: ImageKey, client: Client, headers: &HeaderMap) -> Response<Body> {
        let marks = key.marks();
        match self.renderer.render(key, client.limited(), &self.metrics).await {
            Ok(image) => images::answer(&image, marks, headers.get(IF_NONE_MATCH)),
            Err(reason) => {
                images::refusal(reason, self.errors(headers.get(ACCEPT).map(HeaderValue::as_bytes)))
            }
        }
    }
}
