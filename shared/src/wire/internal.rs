//! Paths and headers of control's internal listener, which edges call with their keys.
//!
//! Every request carries `Authorization: Bearer KEY` with the key of the edge. Errors have the common body.

/// `GET` with `Connection: upgrade` and `Upgrade:` [`STREAM_UPGRADE`]: answered by 101, then frames in both
/// directions, beginning with the edge's `Hello`.
pub const STREAM_PATH: &str = "/internal/v1/stream";

/// Name of the protocol in the `Upgrade` header.
pub const STREAM_UPGRADE: &str = "waymark-stream";

/// `POST` of a [`ScanBatch`](super::scan::ScanBatch) as JSON; the answer is a
/// [`ScanAnswer`](super::scan::ScanAnswer).
///
/// If the answer says so, records in spool format are accepted too: with the content type
/// [`SPOOLED`](super::spooled::SPOOLED) and `?edge=NAME&boot=N&firstSeq=N`.
pub const SCANS_PATH: &str = "/internal/v1/scans";

/// `POST` of an [`UnknownReport`](super::unknown::UnknownReport) as JSON; the answer is an empty object. A control of the
/// previous version has no such path: the edge keeps the report and sends it again.
pub const UNKNOWN_PATH: &str = "/internal/v1/unknown";

/// `POST` of a [`LimitReport`](super::limits::LimitReport) as JSON; the answer is an empty object. A control of the previous
/// version has no such path: the edge goes on counting and sends it again.
pub const LIMITS_PATH: &str = "/internal/v1/limits";

/// `GET ?domain=HOST&shortId=FOLDED`: a [`Fill`](super::stream::Fill) as JSON, from the database itself.
pub const LOOKUP_PATH: &str = "/internal/v1/lookup";

/// `GET ?domain=HOST&shortId=FOLDED`: the Digital Link that the code of a link says, as JSON `{"Ok": URL}`; or `{"Err": TEXT}`, why
/// there is none. A control of the previous version has no such path.
pub const DIGITAL_LINK_PATH: &str = "/internal/v1/digitalLink";

/// `GET ?domain=HOST&after=FOLDED`: the [`LinksPage`](super::links::LinksPage) of a domain that begins behind a
/// short id (or at the first one, without `after`), as JSON.
pub const LINKS_PATH: &str = "/internal/v1/links";

/// `GET`: every edge with its lag, as JSON; for operators, also with an operator's key.
pub const EDGES_PATH: &str = "/internal/v1/edges";
