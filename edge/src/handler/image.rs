//! The image of the code of a link.

use std::time::Duration;

use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT, IF_NONE_MATCH},
};
use qr::Format;
use shared::{problem::Code, redirect::RedirectKey};
use tokio::time::timeout;

use super::{App, Asking, Next};
use crate::{
    backing::Backing,
    cache::Served,
    connection::Client,
    images::{self, ImageKey},
    response::Body,
};

/// How long an answer of control may take, as for a miss.
const CODE_TIMEOUT: Duration = Duration::from_millis(1_200);

impl<B: Backing> App<B> {
    /// Answers with the image, unless it has to be rendered.
    pub(super) fn image(&self, asking: &Asking<'_>, served: &Served, format: Format) -> Next {
        let Asking { request, sent, site, .. } = *asking;
        let (image, is_digital_link) = match images::parse(format, request.uri().query()) {
            Ok(read) => read,
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
            is_digital_link,
        };
        if is_digital_link {
            return Next::Code(Box::new((served.key.clone(), key)));
        }
        match self.renderer.held(&key) {
            Some(image) => {
                Next::Answer(images::answer(&image, key.marks(), request.headers().get(IF_NONE_MATCH)))
            }
            None => Next::Render(key),
        }
    }

    /// Asks which Digital Link the code of a link says.
    pub(super) async fn digital_link_code(
        &self,
        (key, image): (RedirectKey, ImageKey),
        client: Client,
        headers: &HeaderMap,
    ) -> Next {
        let errors = || self.errors(headers.get(ACCEPT).map(HeaderValue::as_bytes));
        if let Err(code) = self.allowed(client) {
            return Next::Answer(errors().plain(code));
        }
        match timeout(CODE_TIMEOUT, self.backing.digital_link(&key)).await {
            Ok(Ok(Ok(url))) => Next::Render(ImageKey { payload: url.into(), ..image }),
            Ok(Ok(Err(why))) => {
                let fault = format!("payload: there is no Digital Link of it: {why}");
                Next::Answer(errors().with(Code::InvalidParameter, vec![fault]))
            }
            Ok(Err(_)) | Err(_) => {
                self.metrics.unanswered.inc();
                Next::Answer(errors().plain(Code::Unavailable))
            }
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
