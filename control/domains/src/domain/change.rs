//! What operators may change of a short domain.

use std::sync::Arc;

use kernel::domain::{limits::check_nested, members::Members};
use serde_json::Value;
use shared::{
    domain_files::{JsonFile, MAX_FILE_BYTES, Robots},
    domain_paths::{DomainPaths, PathPrefix},
    short_url::{MAX_REDIRECT_AGE, ShortDomain},
};

const REDIRECT_MAX_AGE: &str = "redirectMaxAge";
const ROBOTS: &str = "robots";
const PATH_PREFIX: &str = "pathPrefix";
const AUTOMATIC_CERTIFICATE: &str = "automaticCertificate";
const DIGITAL_LINKS: &str = "digitalLinks";

/// The members of an update of a short domain; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShortDomainChange {
    /// Seconds for which browsers and shared caches may keep its redirects; the inner `None`: they must not.
    pub redirect_max_age: Option<Option<u32>>,
    /// Whether paths of GS1 Digital Links are resolved on it.
    pub digital_links: Option<bool>,
    /// What `/robots.txt` says.
    pub robots: Option<Robots>,
    /// `/.well-known/assetlinks.json`; the inner `None`: there is none.
    pub asset_links: Option<Option<JsonFile>>,
    /// `/.well-known/apple-app-site-association`; the inner `None`: there is none.
    pub apple_app_site_association: Option<Option<JsonFile>>,
    /// A path below which its short ids are, too; the inner `None`: there is none.
    pub path_prefix: Option<Option<PathPrefix>>,
    /// Whether short URLs and codes have the prefix.
    pub prefix_in_urls: Option<bool>,
    /// Whether short ids of somebody's choice may have several segments.
    pub multi_segment: Option<bool>,
    /// Whether its certificate is ordered by this service.
    pub automatic_certificate: Option<bool>,
}

impl ShortDomainChange {
    /// Reads the body of `PUT /accounts/:id/shortDomains/:host`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let redirect_max_age = if members.is_null(REDIRECT_MAX_AGE) {
            Some(None)
        } else {
            let expected = format!("a whole number of seconds from 0 to {MAX_REDIRECT_AGE}, or null");
            let seconds = members.typed(REDIRECT_MAX_AGE, &expected, |value| {
                u32::try_from(value.as_u64()?).ok().filter(|seconds| *seconds <= MAX_REDIRECT_AGE)
            });
            seconds.map(Some)
        };
        let digital_links =
            if members.is_null(DIGITAL_LINKS) { Some(false) } else { members.boolean(DIGITAL_LINKS) };
        let robots = if members.is_null(ROBOTS) {
            Some(Robots::default())
        } else {
            members.typed(ROBOTS, "none or all", |value| value.as_str()?.parse().ok())
        };
        let asset_links = file(&mut members, "assetLinks", "an array of objects, or null", |value| {
            value.as_array().is_some_and(|items| items.iter().all(Value::is_object))
        });
        let apple_app_site_association =
            file(&mut members, "appleAppSiteAssociation", "an object, or null", Value::is_object);
        let path_prefix = path_prefix(&mut members);
        let prefix_in_urls = switch(&mut members, "prefixInUrls");
        let multi_segment = switch(&mut members, "multiSegment");
        let automatic_certificate = if members.is_null(AUTOMATIC_CERTIFICATE) {
            Some(true)
        } else {
            members.typed(AUTOMATIC_CERTIFICATE, "true, false or null", Value::as_bool)
        };
        members.finish(Some(Self {
            redirect_max_age,
            digital_links,
            robots,
            asset_links,
            apple_app_site_association,
            path_prefix,
            prefix_in_urls,
            multi_segment,
            automatic_certificate,
        }))
    }

    /// The domain after the change; whether its certificate is ordered is stored apart.
    #[must_use]
    pub fn apply(self, domain: ShortDomain) -> ShortDomain {
        let redirect_max_age = self.redirect_max_age.unwrap_or(domain.redirect_max_age);
        let digital_links = self.digital_links.unwrap_or(domain.digital_links);
        let mut files = domain.files.as_deref().cloned().unwrap_or_default();
        if let Some(robots) = self.robots {
            files.robots = robots;
        }
        if let Some(asset_links) = self.asset_links {
            files.asset_links = asset_links;
        }
        if let Some(apple_app_site_association) = self.apple_app_site_association {
            files.apple_app_site_association = apple_app_site_association;
        }
        let files = (!files.is_default()).then(|| Arc::new(files));
        let paths = DomainPaths {
            path_prefix: self.path_prefix.unwrap_or_else(|| domain.paths.path_prefix.clone()),
            prefix_in_urls: self.prefix_in_urls.unwrap_or(domain.paths.prefix_in_urls),
            multi_segment: self.multi_segment.unwrap_or(domain.paths.multi_segment),
        };
        ShortDomain { redirect_max_age, digital_links, files, paths, ..domain }
    }
}

/// A prefix: `Some(None)` removes it, `None` leaves it as it is, or is a fault.
fn path_prefix(members: &mut Members<'_>) -> Option<Option<PathPrefix>> {
    if members.is_null(PATH_PREFIX) {
        return Some(None);
    }
    let text = members.text(PATH_PREFIX)?;
    match text.parse() {
        Ok(prefix) => Some(Some(prefix)),
        Err(fault) => {
            members.fault(format!("{PATH_PREFIX} {fault}."));
            None
        }
    }
}

/// A switch, which null turns off; `None` leaves it as it is, or is a fault.
fn switch(members: &mut Members<'_>, name: &str) -> Option<bool> {
    if members.is_null(name) { Some(false) } else { members.boolean(name) }
}

/// A JSON file: `Some(None)` removes it, `None` leaves it as it is, or is a fault.
fn file(
    members: &mut Members<'_>,
    name: &str,
    expected: &str,
    fits: impl Fn(&Value) -> bool,
) -> Option<Option<JsonFile>> {
    if members.is_null(name) {
        return Some(None);
    }
    let value = members.typed(name, expected, |value| fits(value).then_some(value))?;
    if let Err(fault) = check_nested(value) {
        members.fault(format!("{name} {fault}."));
        return None;
    }
    let file = JsonFile::new(value);
    let size_bytes = file.as_str().len();
    if size_bytes > MAX_FILE_BYTES {
        members.fault(format!("{name} must have at most {MAX_FILE_BYTES} bytes, not {size_bytes}."));
        return None;
    }
    Some(Some(file))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::short_url::Scheme;

    use super::*;

    #[test]
    fn ages_are_seconds_of_a_day_at_most() {
        for (body, expected) in [
            (json!({}), Some(Some(9))),
            (json!({"redirectMaxAge": null}), Some(None)),
            (json!({"redirectMaxAge": 0}), Some(Some(0))),
            (json!({"redirectMaxAge": 86_400}), Some(Some(86_400))),
            (json!({"redirectMaxAge": 86_401}), None),
            (json!({"redirectMaxAge": -1}), None),
            (json!({"redirectMaxAge": 1.5}), None),
            (json!({"redirectMaxAge": "60"}), None),
            (json!({"redirectMaxAge": true}), None),
            (json!({"digitalLinks": true}), Some(Some(9))),
            // 60 in the last 32 bits.
            (json!({"redirectMaxAge": 4_294_967_356_u64}), None),
        ] {
            let before = ShortDomain {
                redirect_max_age: Some(9),
                ..ShortDomain::new(Scheme::Https, "tn.gg").unwrap()
            };
            let change = ShortDomainChange::parse(&body);
            let text = "redirectMaxAge must be a whole number of seconds from 0 to 86400, or null.";
            match expected {
                Some(after) => assert_eq!(change.unwrap().apply(before).redirect_max_age, after, "{body}"),
                None => assert_eq!(change.unwrap_err(), [text], "{body}"),
            }
        }
        assert_eq!(ShortDomainChange::parse(&json!([])).unwrap_err(), ["The body must be a JSON object."]);
    }

    #[test]
    fn paths_are_set_and_taken_away() {
        let domain = ShortDomain::new(Scheme::Https, "tn.gg").unwrap();
        let body = json!({"pathPrefix": "shop/go", "prefixInUrls": true, "multiSegment": true});
        let with = ShortDomainChange::parse(&body).unwrap().apply(domain.clone());
        assert_eq!(serde_json::to_value(&with.paths).unwrap(), body);
        assert_eq!(ShortDomainChange::parse(&json!({})).unwrap().apply(with.clone()), with);
        let none = json!({"pathPrefix": null, "prefixInUrls": null, "multiSegment": false});
        assert_eq!(ShortDomainChange::parse(&none).unwrap().apply(with), domain);
        let faults =
            ShortDomainChange::parse(&json!({"pathPrefix": "01", "prefixInUrls": 1, "multiSegment": "x"}));
        assert_eq!(
            faults.unwrap_err(),
            [
                "pathPrefix must not begin with a key of GS1, such as 01.",
                "prefixInUrls must be true or false.",
                "multiSegment must be true or false.",
            ]
        );
    }

    #[test]
    fn files_are_json_of_a_bounded_size() {
        let links = json!([{"relation": ["delegate_permission/common.handle_all_urls"]}]);
        let body = json!({"robots": "all", "assetLinks": links, "appleAppSiteAssociation": {"applinks": {}}});
        let domain = ShortDomain::new(Scheme::Https, "tn.gg").unwrap();
        let with = ShortDomainChange::parse(&body).unwrap().apply(domain.clone());
        let files = with.files.clone().unwrap();
        assert_eq!(files.robots, Robots::All);
        assert_eq!(files.asset_links, Some(JsonFile::new(&links)));
        // What is not given stays; null takes it away.
        let less = json!({"assetLinks": null, "robots": null});
        let less = ShortDomainChange::parse(&less).unwrap().apply(with.clone());
        let files = less.files.clone().unwrap();
        assert!(files.asset_links.is_none() && files.apple_app_site_association.is_some());
        assert_eq!(ShortDomainChange::parse(&json!({})).unwrap().apply(with.clone()), with);
        let none = json!({"appleAppSiteAssociation": null});
        assert_eq!(ShortDomainChange::parse(&none).unwrap().apply(less), domain, "as without settings");

        let exact = "a".repeat(MAX_FILE_BYTES - r#"{"a":""}"#.len());
        assert!(ShortDomainChange::parse(&json!({"appleAppSiteAssociation": {"a": exact}})).is_ok());
        let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
        let faults =
            ShortDomainChange::parse(&json!({"robots": "some", "redirectMaxAge": -1, "digitalLinks": 1,
            "assetLinks": {"a": 1}, "appleAppSiteAssociation": {"a": format!("{exact}a")},
            "automaticCertificate": "no"}));
        assert_eq!(
            faults.unwrap_err(),
            [
                "redirectMaxAge must be a whole number of seconds from 0 to 86400, or null.",
                "digitalLinks must be true or false.",
                "robots must be none or all.",
                "assetLinks must be an array of objects, or null.",
                "appleAppSiteAssociation must have at most 65536 bytes, not 65537.",
                "automaticCertificate must be true, false or null.",
            ]
        );
        for (name, value) in [
            ("assetLinks", json!([1])),
            ("assetLinks", json!("[]")),
            ("assetLinks", json!([{"a": deep}])),
            ("assetLinks", json!([{"a\u{0}": 1}])),
            ("appleAppSiteAssociation", json!([])),
            ("appleAppSiteAssociation", json!({"a": "\u{0}"})),
        ] {
            assert_eq!(
                ShortDomainChange::parse(&json!({name: value})).unwrap_err().len(),
                1,
                "{name} {value}"
            );
        }
    }
}
