//! A scan that nobody made, as the request for a preview describes it.

use std::net::IpAddr;

use serde_json::Value;
use shared::{
    commission::CommissionState,
    redirect::Redirect,
    standing::{Authenticity, Risk, Verdict},
    time::UnixMillis,
};

use super::{body, members::Members};

/// Longest `city` and `region`, in characters.
pub const MAX_CITY: usize = 200;
/// Longest `userAgent` and `acceptLanguage`, in characters; those of browsers have up to 300.
pub const MAX_HEADER: usize = 1_024;
/// Longest `query` and `referer`, in bytes.
pub const MAX_QUERY: usize = 2_048;

/// Largest `percentage`: visitors are divided by the hundredth.
pub const MAX_PERCENTAGE: f64 = 99.99;

const MEMBERS: [&str; 13] = [
    "acceptLanguage",
    "address",
    "asNumber",
    "assessment",
    "city",
    "commissionState",
    "country",
    "percentage",
    "query",
    "referer",
    "region",
    "time",
    "userAgent",
];
const VERDICT_MEMBERS: [&str; 3] = ["authenticationStatus", "counterfeitStatus", "grayMarketStatus"];

/// A scan that nobody made. What is `None` is not known of it; the time is now, and the Thng is as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssumedScan {
    /// ISO 3166-1 alpha-2, in upper case.
    pub country: Option<String>,
    /// Region in English.
    pub region: Option<String>,
    /// City in English.
    pub city: Option<String>,
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The autonomous system that the address is in.
    pub as_number: Option<u32>,
    /// The user agent as a browser sends it.
    pub user_agent: Option<String>,
    /// `Accept-Language` as a browser sends it.
    pub accept_language: Option<String>,
    /// `Referer` as a browser sends it.
    pub referer: Option<String>,
    /// Its place in every division, in hundredths of a percent; `None`: what follows from address and user agent.
    pub place: Option<u16>,
    /// When it comes.
    pub time: Option<UnixMillis>,
    /// The query of the short URL, without `?`.
    pub query: Option<String>,
    /// The commissioning state of the Thng.
    pub commission: Option<CommissionState>,
    /// What the last assessment of the Thng said.
    pub verdict: AssumedVerdict,
}

/// Statuses of an assessment; those that are `None` stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AssumedVerdict {
    authentication: Option<Authenticity>,
    counterfeit: Option<Risk>,
    gray_market: Option<Risk>,
}

impl AssumedScan {
    /// Reads a body. Unknown members are faults: a misspelt one would show another scan than was meant.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(value)?;
        refuse_unknown(&mut members, &MEMBERS);
        let country = members.typed("country", "a country code of two letters, such as DE", |value| {
            let code = value.as_str()?;
            let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
            is_code.then(|| code.to_ascii_uppercase())
        });
        let region = body::text(&mut members, "region", 1, MAX_CITY);
        let city = body::text(&mut members, "city", 1, MAX_CITY);
        let address = members.typed("address", "an IP address, such as 192.0.2.7", |value| {
            value.as_str()?.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
        });
        let as_number = members.typed("asNumber", "a whole number from 0 to 4294967295", |value| {
            value.as_u64()?.try_into().ok()
        });
        let user_agent = header(&mut members, ("userAgent", MAX_HEADER), "without control characters", |c| {
            !c.is_control()
        });
        let is_printable = |c| matches!(c, ' '..='~');
        let accept_language =
            header(&mut members, ("acceptLanguage", MAX_HEADER), "in printable ASCII", is_printable);
        let referer = header(&mut members, ("referer", MAX_QUERY), "in printable ASCII", is_printable);
        let place = members.typed("percentage", "a number from 0 to 99.99", place);
        let time = body::millis(&mut members, "time");
        let query = body::text(&mut members, "query", 0, MAX_QUERY);
        if query.as_ref().is_some_and(|query| !query.bytes().all(is_of_query)) {
            members.fault(
                "query must have the characters of a URL's query: printable ASCII without # < > and spaces.",
            );
        }
        let states = "not_commissioned, commissioned or decommissioned";
        let commission = members.typed("commissionState", states, |value| value.as_str()?.parse().ok());
        let verdict = match members.raw("assessment") {
            None => AssumedVerdict::default(),
            Some(value) => AssumedVerdict::parse(value).unwrap_or_else(|faults| {
                faults.into_iter().for_each(|fault| members.fault(fault));
                AssumedVerdict::default()
            }),
        };
        members.finish(Some(Self {
            country,
            region,
            city,
            address,
            as_number,
            user_agent,
            accept_language,
            referer,
            place,
            time,
            query,
            commission,
            verdict,
        }))
    }

    /// The link with its Thng as the scan assumes it.
    ///
    /// # Errors
    /// The link has no Thng, and something is assumed of it: each such member.
    pub fn assume(&self, mut link: Redirect) -> Result<Redirect, Vec<String>> {
        let given = [
            ("commissionState", self.commission.is_some()),
            ("assessment", self.verdict != AssumedVerdict::default()),
        ];
        let given = given.into_iter().filter_map(|(member, is_given)| is_given.then_some(member));
        if link.thng_id.is_none() {
            let faults: Vec<String> =
                given.map(|member| format!("{member} is of Thngs, and this link leads to none.")).collect();
            return if faults.is_empty() { Ok(link) } else { Err(faults) };
        }
        link.standing.commission = self.commission.or(link.standing.commission);
        link.standing.verdict = self.verdict.over(link.standing.verdict);
        Ok(link)
    }
}

impl AssumedVerdict {
    fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, "assessment")?;
        refuse_unknown(&mut members, &VERDICT_MEMBERS);
        let authentication =
            members.typed("authenticationStatus", "positive, unknown, suspicious or negative", |value| {
                value.as_str()?.parse().ok()
            });
        let mut risk = |name: &str| {
            members.typed(name, "none, unknown, suspected or confirmed", |value| value.as_str()?.parse().ok())
        };
        let (counterfeit, gray_market) = (risk("counterfeitStatus"), risk("grayMarketStatus"));
        members.finish(Some(Self { authentication, counterfeit, gray_market }))
    }

    /// These statuses over those of an assessment; without one, the others are unknown.
    fn over(self, before: Option<Verdict>) -> Option<Verdict> {
        if self == Self::default() {
            return before;
        }
        let unknown = Verdict {
            authentication: Authenticity::Unknown,
            counterfeit: Risk::Unknown,
            gray_market: Risk::Unknown,
        };
        let before = before.unwrap_or(unknown);
        Some(Verdict {
            authentication: self.authentication.unwrap_or(before.authentication),
            counterfeit: self.counterfeit.unwrap_or(before.counterfeit),
            gray_market: self.gray_market.unwrap_or(before.gray_market),
        })
    }
}

fn refuse_unknown(members: &mut Members<'_>, known: &[&str]) {
    for name in members.names().filter(|name| !known.contains(name)) {
        let path = members.path(name);
        members.fault(format!("{path} is not a member of this operation."));
    }
}

/// A header of the request, without blanks around it, as a server reads it.
fn header(
    members: &mut Members<'_>,
    (name, longest): (&str, usize),
    form: &str,
    is_valid: impl Fn(char) -> bool,
) -> Option<String> {
    let text = body::text(members, name, 0, longest)?;
    if text.chars().all(is_valid) {
        return Some(text.trim_matches(' ').to_owned());
    }
    members.fault(format!("{name} must be {form}."));
    None
}

/// The place of a percentage, in hundredths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9,999")]
fn place(value: &Value) -> Option<u16> {
    let percentage = value.as_f64().filter(|percentage| (0.0..=MAX_PERCENTAGE).contains(percentage))?;
    Some((percentage * 100.0).round() as u16)
}

const fn is_of_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'#' | b'<' | b'>')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_named() {
        for (body, expected) in [
            (json!({}), &[][..]),
            (json!({"country": null, "assessment": null, "time": 0, "query": ""}), &[]),
            (json!([]), &["The body must be a JSON object."]),
            (
                json!({"countri": "DE", "country": "DEU", "time": "now"}),
                &[
                    "countri is not a member of this operation.",
                    "country must be a country code of two letters, such as DE.",
                    "time must be an integer, in milliseconds since 1970.",
                ],
            ),
            (
                json!({"userAgent": "a\nb", "acceptLanguage": "dé", "query": "a#b", "city": ""}),
                &[
                    "city must not be empty.",
                    "userAgent must be without control characters.",
                    "acceptLanguage must be in printable ASCII.",
                    "query must have the characters of a URL's query: printable ASCII without # < > and spaces.",
                ],
            ),
            (
                json!({"commissionState": "lost", "assessment": {"authenticationStatus": "bad", "x": 1}}),
                &[
                    "commissionState must be not_commissioned, commissioned or decommissioned.",
                    "assessment.x is not a member of this operation.",
                    "assessment.authenticationStatus must be positive, unknown, suspicious or negative.",
                ],
            ),
            (json!({"assessment": 1}), &["assessment must be an object."]),
            (json!({"region": "Bavaria", "address": "::1", "percentage": 99.99, "referer": ""}), &[]),
            (
                json!({"region": 1, "address": "10.0.0.0/8", "asNumber": -1, "percentage": 100, "referer": "ä"}),
                &[
                    "region must be a string.",
                    "address must be an IP address, such as 192.0.2.7.",
                    "asNumber must be a whole number from 0 to 4294967295.",
                    "referer must be in printable ASCII.",
                    "percentage must be a number from 0 to 99.99.",
                ],
            ),
            (json!({"percentage": -0.01}), &["percentage must be a number from 0 to 99.99."]),
        ] {
            let faults = AssumedScan::parse(&body).err().unwrap_or_default();
            assert_eq!(faults, expected, "{body}");
        }
    }

    #[test]
    fn a_percentage_is_a_place_in_hundredths() {
        for (percentage, expected) in
            [(json!(0), 0), (json!(33.33), 3_333), (json!(0.29), 29), (json!(99.99), 9_999)]
        {
            let scan = AssumedScan::parse(&json!({"percentage": percentage})).unwrap();
            assert_eq!(scan.place, Some(expected), "{percentage}");
        }
    }

    #[test]
    fn an_assumed_status_goes_over_that_of_the_last_assessment() {
        let read = |body: Value| AssumedScan::parse(&body).unwrap().verdict;
        let negative = read(json!({"assessment": {"authenticationStatus": "negative"}}));
        let before = Verdict {
            authentication: Authenticity::Positive,
            counterfeit: Risk::None,
            gray_market: Risk::Suspected,
        };
        let after = Verdict { authentication: Authenticity::Negative, ..before };
        assert_eq!(negative.over(Some(before)), Some(after));
        let unknown = Verdict { counterfeit: Risk::Unknown, gray_market: Risk::Unknown, ..after };
        assert_eq!(negative.over(None), Some(unknown));
        assert_eq!(read(json!({"assessment": {}})).over(None), None);
    }
}
