//! What the columns and members of other shorteners' exports mean. `a.b` is the member `b` of the object `a`.

use crate::Source;

/// What a column says of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// The short link, whole.
    Link,
    /// The short link that people use in place of [`Column::Link`].
    CustomLink,
    /// The short code alone.
    Code,
    Target,
    Title,
    /// An array of texts or of objects with a `name`, or a text separated by commas.
    Tags,
    Notes,
    Created,
    From,
    Until,
    MaxScans,
    EndedUrl,
    ForwardQuery,
    Clicks,
    /// The link is off if this says something.
    Paused,
    /// The link has a password if this says something.
    Password,
    /// Kept as this custom field.
    Kept(&'static str),
    /// Kept as this custom field, but without effect: named in the report.
    Idle(&'static str),
    /// Named in the report if it says something.
    Dropped,
    /// Says nothing of where the link leads: ids and counts of the other service.
    Quiet,
}

use Column::{
    Clicks, Code, Created, CustomLink, Dropped, EndedUrl, ForwardQuery, From, Idle, Kept, Link, MaxScans,
    Notes, Password, Paused, Quiet, Tags, Target, Title, Until,
};

/// Bitly: the CSV of "Export" (Help Center, "How do I export link data"), and links of `GET /v4/groups/{guid}/bitlinks`
/// (API reference, "Retrieve Bitlinks by Group").
const BITLY: &[(&str, Column)] = &[
    ("Link", Link),
    ("Custom Link", CustomLink),
    ("Destination URL", Target),
    ("long_url", Target),
    ("Long URL", Target),
    ("title", Title),
    ("tags", Tags),
    ("created_at", Created),
    ("Date Created", Created),
    ("Created", Created),
    ("expiration_at", Until),
    ("Clicks", Clicks),
    ("Engagements", Clicks),
    ("archived", Kept("importedArchived")),
    ("custom_bitlinks", Quiet),
    ("deeplinks", Dropped),
    ("campaign_ids", Dropped),
    ("launchpad_ids", Dropped),
    ("id", Quiet),
    ("client_id", Quiet),
    ("created_by", Quiet),
    ("references", Quiet),
    ("modified_at", Quiet),
];

/// Shlink: `shortUrls.data` of `GET /rest/v3/short-urls` (its `ShortUrl` in the API specification), the table of
/// `short-url:list`, and the CSV of its web client.
const SHLINK: &[(&str, Column)] = &[
    ("shortCode", Code),
    ("Short Code", Code),
    ("shortUrl", Link),
    ("Short URL", Link),
    ("longUrl", Target),
    ("Long URL", Target),
    ("title", Title),
    ("tags", Tags),
    ("dateCreated", Created),
    ("Date created", Created),
    ("createdAt", Created),
    ("meta.validSince", From),
    ("meta.validUntil", Until),
    ("meta.maxVisits", MaxScans),
    ("forwardQuery", ForwardQuery),
    ("visitsSummary.total", Clicks),
    ("visitsCount", Clicks),
    ("Visits count", Clicks),
    ("visits", Clicks),
    ("hasRedirectRules", Dropped),
    ("deviceLongUrls", Dropped),
    ("crawlable", Dropped),
    ("visitsSummary.nonBots", Quiet),
    ("visitsSummary.bots", Quiet),
    ("domain", Quiet),
    ("API Key Name", Quiet),
];

/// YOURLS: the table `yourls_url` as CSV, and `links` of the API's action `stats` (its wiki, "API").
const YOURLS: &[(&str, Column)] = &[
    ("keyword", Code),
    ("shorturl", Link),
    ("url", Target),
    ("longurl", Target),
    ("title", Title),
    ("timestamp", Created),
    ("clicks", Clicks),
    ("ip", Dropped),
];

/// Kutt: `data` of `GET /api/v2/links` (API documentation, `Link`), and the table `links` as CSV.
const KUTT: &[(&str, Column)] = &[
    ("address", Code),
    ("link", Link),
    ("target", Target),
    ("description", Notes),
    ("created_at", Created),
    ("expire_in", Until),
    ("visit_count", Clicks),
    ("banned", Paused),
    ("password", Password),
    ("id", Quiet),
    ("uuid", Quiet),
    ("domain", Quiet),
    ("domain_id", Quiet),
    ("user_id", Quiet),
    ("banned_by_id", Quiet),
    ("updated_at", Quiet),
];

/// Dub: links of `GET /links` (API reference, "Retrieve a list of links"), and the CSV of "Export links".
const DUB: &[(&str, Column)] = &[
    ("key", Code),
    ("shortLink", Link),
    ("Short link", Link),
    ("url", Target),
    ("Destination URL", Target),
    ("title", Title),
    ("tags", Tags),
    ("comments", Notes),
    ("createdAt", Created),
    ("Created at", Created),
    ("expiresAt", Until),
    ("expiredUrl", EndedUrl),
    ("disabledAt", Paused),
    ("password", Password),
    ("clicks", Clicks),
    ("archived", Kept("importedArchived")),
    ("externalId", Kept("importedExternalId")),
    ("tenantId", Kept("importedTenantId")),
    ("ios", Idle("importedIos")),
    ("android", Idle("importedAndroid")),
    ("geo", Idle("importedGeo")),
    ("testVariants", Dropped),
    ("rewrite", Dropped),
    ("proxy", Dropped),
    ("description", Dropped),
    ("image", Dropped),
    ("video", Dropped),
    ("doIndex", Dropped),
    ("publicStats", Dropped),
    ("trackConversion", Dropped),
    ("webhookIds", Dropped),
    ("leads", Dropped),
    ("conversions", Dropped),
    ("sales", Dropped),
    ("saleAmount", Dropped),
    ("Revenue", Dropped),
    ("id", Quiet),
    ("Link ID", Quiet),
    ("domain", Quiet),
    ("programId", Quiet),
    ("partnerId", Quiet),
    ("folderId", Quiet),
    ("tagId", Quiet),
    ("userId", Quiet),
    ("projectId", Quiet),
    ("workspaceId", Quiet),
    ("qrCode", Quiet),
    ("lastClicked", Quiet),
    ("testStartedAt", Quiet),
    ("testCompletedAt", Quiet),
    ("updatedAt", Quiet),
    ("Updated at", Quiet),
    // The target has these already.
    ("utm_source", Quiet),
    ("utm_medium", Quiet),
    ("utm_campaign", Quiet),
    ("utm_term", Quiet),
    ("utm_content", Quiet),
];

const fn table(source: Source) -> &'static [(&'static str, Column)] {
    match source {
        Source::Bitly => BITLY,
        Source::Shlink => SHLINK,
        Source::Yourls => YOURLS,
        Source::Kutt => KUTT,
        Source::Dub => DUB,
    }
}

/// The column of a name, whatever its case.
pub(super) fn find(source: Source, name: &str) -> Option<(&'static str, Column)> {
    table(source).iter().copied().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Whether some members of the object of this name are known.
pub(super) fn has_members(source: Source, name: &str) -> bool {
    table(source).iter().any(|(known, _)| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}
