//! HTTP: questions to the statistics, answered as JSON or CSV.
//!
//! Spec gap: the platform API shows no statistics.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use shared::{problem::Code, time::Clock};
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError, extract::Query, listing::number, media};

use crate::{
    domain::{
        dimension::Dimension,
        moment,
        roll_ups::{Counts, HOUR_MS},
        stats_query::{Asked, StatsQuery, TOP},
    },
    service::{
        StatisticsState,
        stats::{self, Answer, Row},
    },
};

const CSV: &str = "text/csv";
const JSON: &str = "application/json";

/// In a CSV, the value of a group that stands for all that are not shown.
const OTHERS: &str = "(other)";

/// Counts of scans.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CountsDocument {
    /// Scans of people.
    #[schema(example = 42)]
    scans: i64,
    /// Scans by a device that had not scanned in the account on that day of UTC. A device is a keyed hash of address and
    /// user agent, another one each day.
    #[schema(example = 31)]
    new_devices: i64,
    /// Scans of robots, which are not among `scans`.
    #[schema(example = 3)]
    robots: i64,
}

impl From<Counts> for CountsDocument {
    fn from(Counts { scans, new_devices, robots }: Counts) -> Self {
        Self { scans, new_devices, robots }
    }
}

/// A group in a period. It has the members that `groupBy` names; `null` means that the value is not known.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StatisticsRowDocument {
    /// When the period begins, in milliseconds since 1970.
    #[schema(example = 1_767_222_000_000_i64)]
    from: i64,
    /// When it ends; this moment is not in it.
    #[schema(example = 1_767_308_400_000_i64)]
    to: i64,
    /// ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "DE")]
    country: Option<Option<String>>,
    /// The first subdivision of the country.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Bavaria")]
    region: Option<Option<String>>,
    /// The city.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Munich")]
    city: Option<Option<String>>,
    /// The operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Android")]
    system: Option<Option<String>>,
    /// `phone`, `tablet`, `desktop` or `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "phone")]
    device: Option<Option<String>>,
    /// ISO 639-1, or `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "de")]
    language: Option<Option<String>>,
    /// `authenticationStatus` of the item when the scan was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "positive")]
    verdict: Option<Option<String>>,
    /// Id of a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    project: Option<Option<String>>,
    /// Id of a product.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    product: Option<Option<String>>,
    /// A short URL without its scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "tn.gg/K7Q2M4XA9R")]
    link: Option<Option<String>>,
    /// A GTIN of a Digital Link, 14 digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "09521234543213")]
    gtin: Option<Option<String>>,
    /// A lot of a GTIN that has links of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "L1")]
    lot: Option<Option<String>>,
    #[serde(flatten)]
    counts: Option<CountsDocument>,
}

/// The groups that `top` left out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OtherGroupsDocument {
    /// How many they are.
    #[schema(example = 12)]
    groups: u64,
    #[serde(flatten)]
    counts: CountsDocument,
}

/// An answer of the statistics.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatisticsDocument {
    /// When the range begins, in milliseconds since 1970: a whole hour of UTC.
    #[schema(example = 1_767_222_000_000_i64)]
    from: i64,
    /// When it ends; this moment is not in it.
    #[schema(example = 1_767_826_800_000_i64)]
    to: i64,
    /// `hour`, `day`, `week` or `month`; missing where the range is one period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "day")]
    interval: Option<&'static str>,
    /// The time zone of days, weeks and months.
    #[schema(example = "Europe/Berlin")]
    time_zone: String,
    /// The dimensions that are grouped by.
    #[schema(value_type = Vec<String>, example = json!(["country"]))]
    group_by: Vec<&'static str>,
    /// Groups and periods with at least one scan: in the order of periods, and most scans first.
    rows: Vec<StatisticsRowDocument>,
    /// What is in no row because of `top`, over the whole range.
    other: OtherGroupsDocument,
    /// All scans of the range that the filter admits.
    totals: CountsDocument,
}

/// Counts scans by hour, day, week or month, and by country, product and others.
///
/// Without parameters it is the number of scans of the last seven days. Which dimensions can be combined is in the guide;
/// other combinations are 400. With `Accept: text/csv` the rows come as CSV.
#[utoipa::path(get, path = "/scans/stats", tag = "Scans", operation_id = "readScanStatistics",
    params(("from" = Option<String>, Query, description = "Begin: milliseconds since 1970, a date, or a date and time with an offset. It is rounded down to a whole hour; with links, to a day of UTC. Default: seven days before `to`"),
        ("to" = Option<String>, Query, description = "End, which is not in the range, in the same forms; rounded up. Default: now"),
        ("interval" = Option<String>, Query, description = "`hour`, `day`, `week` or `month`; without it the range is one period"),
        ("timeZone" = Option<String>, Query, description = "Name of the IANA time zone in which days begin, such as `Europe/Berlin`. Default: UTC"),
        ("groupBy" = Option<String>, Query, description = "One or two of `country`, `region`, `city`, `system`, `device`, `language`, `verdict`, `project`, `product`, `link`, `gtin`, `lot`, with commas between them"),
        ("filter" = Option<String>, Query, description = "Values of dimensions, such as `country=DE|AT&product=ID`"),
        ("top" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most groups: those with most scans in the range. Default: 20")),
    responses((status = 200, description = "The counts", content((StatisticsDocument = "application/json"), (String = "text/csv")))))]
pub(super) async fn read(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    let asked = Asked {
        from: query.find("from"),
        to: query.find("to"),
        interval: query.find("interval"),
        time_zone: query.find("timeZone"),
        group_by: query.find("groupBy"),
        filter: query.find("filter"),
        top: number(&query, "top", TOP.1, TOP.0, &mut faults),
    };
    let parsed = match StatsQuery::parse(&asked, state.clock.now()) {
        Ok(parsed) if faults.is_empty() => parsed,
        Ok(_) => return Err(ApiError::faults(Code::InvalidParameter, faults)),
        Err(more) => {
            faults.extend(more);
            return Err(ApiError::faults(Code::InvalidParameter, faults));
        }
    };
    let answer = stats::read(&state, &caller, &parsed).await?;
    let mut response = if media::prefers(&headers, CSV, JSON) {
        ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], csv(&parsed, &answer)).into_response()
    } else {
        Json(document(&parsed, answer)).into_response()
    };
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

fn document(query: &StatsQuery, answer: Answer) -> StatisticsDocument {
    let Answer { rows, others: (groups, counts), totals } = answer;
    StatisticsDocument {
        from: i64::from(query.range.from) * HOUR_MS,
        to: i64::from(query.range.to) * HOUR_MS,
        interval: query.interval.map(|interval| interval.as_str()),
        time_zone: query.zone.iana_name().unwrap_or("UTC").to_owned(),
        group_by: query.group_by.iter().map(|dimension| dimension.as_str()).collect(),
        rows: rows.into_iter().map(|row| row_document(query, row)).collect(),
        other: OtherGroupsDocument { groups, counts: counts.into() },
        totals: totals.into(),
    }
}

fn row_document(query: &StatsQuery, row: Row) -> StatisticsRowDocument {
    let (from, to) = times(query, &row);
    let mut shown = StatisticsRowDocument { from, to, counts: Some(row.counts.into()), ..Default::default() };
    for (dimension, value) in query.group_by.iter().zip(row.values) {
        let member = match dimension {
            Dimension::Country => &mut shown.country,
            Dimension::Region => &mut shown.region,
            Dimension::City => &mut shown.city,
            Dimension::System => &mut shown.system,
            Dimension::Device => &mut shown.device,
            Dimension::Language => &mut shown.language,
            Dimension::Verdict => &mut shown.verdict,
            Dimension::Project => &mut shown.project,
            Dimension::Product => &mut shown.product,
            Dimension::Link => &mut shown.link,
            Dimension::Gtin => &mut shown.gtin,
            Dimension::Lot => &mut shown.lot,
        };
        *member = Some(Some(value).filter(|value| !value.is_empty()));
    }
    shown
}

fn times(query: &StatsQuery, row: &Row) -> (i64, i64) {
    let period = query.periods.get(row.period).copied().unwrap_or(query.range);
    (i64::from(period.from) * HOUR_MS, i64::from(period.to) * HOUR_MS)
}

/// The rows as CSV, quoted as in RFC 4180 and with lines that end in a line feed, with times in the time zone; what `top` left out is the last row.
fn csv(query: &StatsQuery, answer: &Answer) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut put = |from: &str, to: &str, values: &[&str], counts: Counts| {
        let counts = [counts.scans, counts.new_devices, counts.robots].map(|count| count.to_string());
        let fields =
            [from, to].into_iter().chain(values.iter().copied()).chain(counts.iter().map(String::as_str));
        // Writing to memory cannot fail.
        let _ = writer.write_record(fields);
    };
    let time = |at: i64| moment::write(at, &query.zone);
    let names: Vec<&str> = query.group_by.iter().map(|dimension| dimension.as_str()).collect();
    for row in &answer.rows {
        let (from, to) = times(query, row);
        let values: Vec<&str> = row.values.iter().map(String::as_str).collect();
        put(&time(from), &time(to), &values, row.counts);
    }
    if answer.others.0 > 0 {
        let (from, to) = (i64::from(query.range.from) * HOUR_MS, i64::from(query.range.to) * HOUR_MS);
        put(&time(from), &time(to), &vec![OTHERS; names.len()], answer.others.1);
    }
    let mut head = ["from", "to"].into_iter().chain(names).collect::<Vec<_>>();
    head.extend(["scans", "newDevices", "robots"]);
    let mut bytes = head.join(",").into_bytes();
    bytes.extend_from_slice(b"\n");
    bytes.extend(writer.into_inner().unwrap_or_default());
    bytes
}
