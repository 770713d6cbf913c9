//! Reports about items that may be copies: the form of their page, passed on to control.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use shared::problem::Code;
use tokio::time::timeout;
use visitor_pages::{Brand, read_report};

use super::App;
use crate::{
    backing::Backing,
    connection::{Client, InFlight},
    framing::{self, Sent},
    proxy,
    response::{Body, Errors},
};

/// Most bytes of a form: 2,000 characters of four bytes, each written with three letters, the token and an address.
const FORM_BYTES: usize = 32 << 10;
/// Most bytes of a form with a photo; control takes no larger one.
const PHOTO_FORM_BYTES: usize = 5 << 20;
/// The type of such a form, without its boundary.
const MULTIPART: &[u8] = b"multipart/form-data";

impl<B: Backing> App<B> {
    /// Passes what was filled in on to control, and answers with the next page. An empty form asks for one. A form with a photo is
    /// streamed, and control reads it.
    pub(super) async fn report(
        &self,
        (short_id, brand): (&str, Brand),
        request: Request<Incoming>,
        client: Client,
        id: &HeaderValue,
        in_flight: &InFlight,
    ) -> Response<Body> {
        let host = framing::host(&request, &Sent::read(request.headers())).to_owned();
        let (parts, body) = request.into_parts();
        let segment = short_id.replace('%', "%25").replace('/', "%2F");
        let path = format!("/redirections/{segment}/reports");
        let answer = self.pass_report((&host, &path), (&parts.headers, body), client, id, in_flight).await;
        let sent = |name| parts.headers.get(name).map(HeaderValue::as_bytes);
        Errors { brand, language: sent(ACCEPT_LANGUAGE), ..self.errors(sent(ACCEPT)) }.report(answer)
    }

    async fn pass_report(
        &self,
        to: (&str, &str),
        (headers, body): (&HeaderMap, Incoming),
        client: Client,
        id: &HeaderValue,
        in_flight: &InFlight,
    ) -> Result<(StatusCode, Bytes), Code> {
        let patience = self.config.limits.proxy_timeout;
        let is_multipart = |kind: &&HeaderValue| {
            kind.as_bytes().get(..MULTIPART.len()).is_some_and(|start| start.eq_ignore_ascii_case(MULTIPART))
        };
        if let Some(kind) = headers.get(CONTENT_TYPE).filter(is_multipart) {
            let form = proxy::stream(headers, body, PHOTO_FORM_BYTES).await?;
            timeout(patience, in_flight.wait_to_begin()).await.map_err(|_| Code::Timeout)?;
            return self.proxy.post(to, (kind.clone(), form), client, id).await;
        }
        let reading = async {
            let form = Limited::new(body, FORM_BYTES).collect().await;
            in_flight.wait_to_begin().await;
            form
        };
        let form = timeout(patience, reading).await.map_err(|_| Code::Timeout)?;
        let form = form
            .map_err(|error| if error.is::<LengthLimitError>() { Code::TooLarge } else { Code::Invalid })?;
        let report = read_report(&form.to_bytes()).ok_or(Code::Invalid)?;
        let json = (HeaderValue::from_static("application/json"), proxy::whole(report.into()));
        self.proxy.post(to, json, client, id).await
    }
}
