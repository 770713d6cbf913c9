//! QR code images: rendered on a bounded pool and cached by content, so that redirects never wait for them.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Response, header::CACHE_CONTROL};
use moka::sync::Cache;
use percent_encoding::percent_decode_str;
use platform::Shares;
use qr::{Format, QrError, QrImage, QrRequest};
use shared::{client_address::network, negotiate::Representation, problem::Code};
use tokio::sync::Semaphore;

use crate::{
    metrics::Metrics,
    response::{self, Body, Errors},
};

/// What an image costs beside its bytes: key, nodes, tag.
const OVERHEAD: usize = 400;

/// What decides every byte of an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ImageKey {
    /// The text in the code.
    pub(crate) payload: Box<str>,
    /// The short id, drawn below if the request asks for it.
    pub(crate) caption: Box<str>,
    /// Format and parameters in their normal form.
    pub(crate) request: QrRequest,
    /// Whether the code is for development only, which is part of its payload.
    pub(crate) development: bool,
    /// The logo of the domain, if the request asks for it.
    pub(crate) logo: Option<Box<str>>,
    /// Whether the payload is a Digital Link, which changes with the product.
    pub(crate) is_digital_link: bool,
}

impl ImageKey {
    /// What answers with the image say of it.
    pub(crate) fn marks(&self) -> Marks {
        let may_change = self.request.wants_logo() || self.is_digital_link;
        Marks { development: self.development, may_change }
    }
}

/// What answers with an image say of it beside its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    /// The code is not for print.
    development: bool,
    /// The image changes with the logo or the product, so that nobody may keep it for long.
    may_change: bool,
}

/// Why there is no image.
#[derive(Debug)]
pub(crate) enum NoImage {
    /// The code does not fit the requested size.
    Unfit(QrError),
    /// The renderers have more to do than they can.
    Busy,
}

/// Renders and remembers images.
#[derive(Debug)]
pub(crate) struct Renderer {
    images: Cache<ImageKey, Arc<QrImage>>,
    workers: Arc<Semaphore>,
    waiting: Shares<IpAddr>,
}

impl Renderer {
    /// Caches images up to `cache_bytes` in total; at most `queue` requests wait.
    pub(crate) fn new(cache_bytes: u64, queue: usize) -> Self {
        let weigh = |key: &ImageKey, image: &Arc<QrImage>| {
            let logo = key.logo.as_ref().map_or(0, |logo| logo.len());
            let bytes = image.bytes.len() + key.payload.len() + key.caption.len() + logo + OVERHEAD;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        // One core always stays free for redirects, where there are two.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            images: Cache::builder().max_capacity(cache_bytes).weigher(weigh).build(),
            workers: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
            waiting: Shares::new(queue),
        }
    }

    /// The image, if it is at hand.
    pub(crate) fn held(&self, key: &ImageKey) -> Option<Arc<QrImage>> {
        self.images.get(key)
    }

    /// Renders an image for a client, in order of arrival. One address (IPv6: one /64) may take half of the queue, a
    /// local program (`None`) all of it.
    pub(crate) async fn render(
        &self,
        key: ImageKey,
        client: Option<IpAddr>,
        metrics: &Metrics,
    ) -> Result<Arc<QrImage>, NoImage> {
        let owner = client.map(|ip| (network(ip.to_canonical()), (self.waiting.most() / 2).max(1)));
        let _place = self.waiting.take(owner).map_err(|_| NoImage::Busy)?;
        let permit = self.workers.clone().acquire_owned().await.map_err(|_| NoImage::Busy)?;
        // A request that waited for the same image may have rendered it meanwhile.
        if let Some(image) = self.held(&key) {
            return Ok(image);
        }
        metrics.rendered.inc();
        let work = move || {
            // Held to the end, also where the client has gone: what was begun is drawn all the same.
            let _permit = permit;
            let image = qr::render_with(&key.payload, &key.caption, &key.request, key.logo.as_deref());
            (key, image)
        };
        let (key, image) = tokio::task::spawn_blocking(work).await.map_err(|_| NoImage::Busy)?;
        let image = Arc::new(image.map_err(NoImage::Unfit)?);
        self.images.insert(key, image.clone());
        Ok(image)
    }
}

/// The image format of a representation; `None` for a redirect or a record.
pub(crate) fn format_of(representation: Representation) -> Option<Format> {
    match representation {
        Representation::Redirect | Representation::Json => None,
        Representation::Png => Some(Format::Png),
        Representation::Svg => Some(Format::Svg),
        Representation::Pdf => Some(Format::Pdf),
        Representation::Eps => Some(Format::Eps),
    }
}

/// Reads the parameters of an image's query, and whether its code says the Digital Link; every fault found otherwise.
pub(crate) fn parse(format: Format, query: Option<&str>) -> Result<(QrRequest, bool), Vec<String>> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let mut pairs: Vec<(String, String)> = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect();
    // One that says both is a fault.
    let is_digital_link = pairs.iter().any(|(name, _)| name == "payload")
        && pairs.iter().all(|(name, value)| name != "payload" || value == "gs1dl");
    if is_digital_link {
        pairs.retain(|(name, _)| name != "payload");
    }
    QrRequest::parse(format, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        .map(|request| (request, is_digital_link))
        .map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

/// The answer with an image: 200, or 304 when the client has it.
pub(crate) fn answer(image: &QrImage, marks: Marks, if_none_match: Option<&HeaderValue>) -> Response<Body> {
    // A tag is a fixed prefix with hexadecimal digits, which is always a header value.
    let etag = HeaderValue::from_str(&image.etag).unwrap_or(HeaderValue::from_static("\"\""));
    let mut extra = HeaderMap::with_capacity(6);
    extra.insert(HeaderName::from_static("x-qr-version"), HeaderValue::from(u16::from(image.version)));
    extra.insert(HeaderName::from_static("x-qr-modules"), HeaderValue::from(image.modules));
    extra.insert(HeaderName::from_static("x-qr-ecl"), HeaderValue::from_static(image.ecl.as_str()));
    if let Some(value) = image.x_dimension().and_then(|mm| HeaderValue::try_from(mm).ok()) {
        extra.insert(HeaderName::from_static("x-qr-x-dimension-mm"), value);
    }
    if marks.may_change {
        extra.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    }
    if marks.development {
        extra.insert(HeaderName::from_static("x-waymark-development"), HeaderValue::from_static("true"));
    }
    response::image(image.content_type, image.bytes.clone(), etag, extra, if_none_match)
}

/// The answer without one.
pub(crate) fn refusal(reason: NoImage, errors: Errors<'_>) -> Response<Body> {
    match reason {
        NoImage::Unfit(error) => errors.with(Code::CannotRender, vec![error.to_string()]),
        NoImage::Busy => errors.plain(Code::Unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_one_of_two_texts() {
        for (query, expected) in [
            ("payload=gs1dl&ecl=M", Some(true)),
            ("payload=gs1dl&payload=gs1dl", Some(true)),
            ("payload=short", Some(false)),
            ("payload=gs1dl&payload=short", None),
            ("payload=GS1DL", None),
        ] {
            let read = parse(Format::Png, Some(query)).ok();
            assert_eq!(read.map(|(_, is_digital_link)| is_digital_link), expected, "{query}");
        }
    }

    #[tokio::test]
    async fn one_address_takes_half_of_the_queue() {
        let renderer = Renderer::new(1 << 20, 4);
        let held: Vec<_> = (0..renderer.workers.available_permits())
            .map(|_| renderer.workers.try_acquire().unwrap())
            .collect();
        let metrics = Metrics::default();
        let key = |n: usize| ImageKey {
            payload: format!("HTTPS://TN.GG/{n}").into(),
            caption: "".into(),
            request: parse(Format::Png, None).unwrap().0,
            development: false,
            logo: None,
            is_digital_link: false,
        };
        let render = |n, ip: &str| Box::pin(renderer.render(key(n), ip.parse().ok(), &metrics));
        let mut waiting = Vec::new();
        // Loopback that a proxy names, or behind a TLS proxy, is a client like any other.
        for n in 0..2 {
            let mut image = render(n, "127.0.0.1");
            assert!(futures_util::poll!(&mut image).is_pending());
            waiting.push(image);
        }
        assert!(matches!(render(2, "127.0.0.1").await, Err(NoImage::Busy)));
        let mut other = render(3, "192.0.2.2");
        assert!(futures_util::poll!(&mut other).is_pending(), "another address has its share");
        let mut local = render(4, "");
        assert!(futures_util::poll!(&mut local).is_pending(), "a program of this machine has what is left");
        drop((held, waiting));
        assert!(other.await.is_ok() && local.await.is_ok());
    }
}
