//! The names of all settings in the environment, so that a misspelt one is reported at start.

/// Every variable of every binary, because a shared file of settings may contain variables of another binary.
pub const NAMES: &[&str] = &[
    "WAYMARK_ABUSE_CONTACT",
    "WAYMARK_ACME_CONTACT",
    "WAYMARK_ACME_DIRECTORY",
    "WAYMARK_ACME_TRUST_FILE",
    "WAYMARK_ADMIN_LISTEN",
    "WAYMARK_API_CONNECTIONS",
    "WAYMARK_API_CONNECTIONS_PER_ADDRESS",
    "WAYMARK_API_LISTEN",
    "WAYMARK_API_TLS_LISTEN",
    "WAYMARK_API_URL",
    "WAYMARK_API_URLS",
    "WAYMARK_BEHIND_TLS_PROXY",
    "WAYMARK_CA",
    "WAYMARK_CACHE_MIB",
    "WAYMARK_CONFIG",
    "WAYMARK_CONNECTIONS",
    "WAYMARK_CONNECTIONS_PER_ACCOUNT",
    "WAYMARK_CONNECTIONS_PER_ADDRESS",
    "WAYMARK_CONNECTIONS_PER_KEY",
    "WAYMARK_CONTROL_CA",
    "WAYMARK_CONTROL_URLS",
    "WAYMARK_DATA_DIR",
    "WAYMARK_DEV_TLS",
    "WAYMARK_DNS_SERVER",
    "WAYMARK_DOCS_URL",
    "WAYMARK_DRAIN_SECONDS",
    "WAYMARK_EDGE_ACME",
    "WAYMARK_EDGE_ID",
    "WAYMARK_EDGE_KEY",
    "WAYMARK_EDGE_KEY_FILE",
    "WAYMARK_EDGE_LISTEN",
    "WAYMARK_EDGE_REPLICA",
    "WAYMARK_EDGE_TLS_LISTEN",
    "WAYMARK_EDGE_WORKERS",
    "WAYMARK_EXPORT_URL",
    "WAYMARK_FAST_REDIRECTS",
    "WAYMARK_FILES_URL",
    "WAYMARK_FORWARDED_HEADER",
    "WAYMARK_GEOIP_DB",
    "WAYMARK_HEADER_SECONDS",
    "WAYMARK_INTERNAL_LISTEN",
    "WAYMARK_INTERNAL_TLS_LISTEN",
    "WAYMARK_JOBS_KEPT_DAYS",
    "WAYMARK_LAN",
    "WAYMARK_LOGINS_PER_ADDRESS",
    "WAYMARK_LOG_FORMAT",
    "WAYMARK_LOOKUPS_PER_SECOND",
    "WAYMARK_MAILS_PER_ACCOUNT",
    "WAYMARK_MAIL_FROM",
    "WAYMARK_MIGRATE",
    "WAYMARK_MISSES_PER_ADDRESS",
    "WAYMARK_MISSES_PER_SECOND",
    "WAYMARK_MQTT_CONNECTIONS",
    "WAYMARK_MQTT_LISTEN",
    "WAYMARK_MQTT_TLS_LISTEN",
    "WAYMARK_OIDC_CA",
    "WAYMARK_OIDC_CLIENT_ID",
    "WAYMARK_OIDC_CLIENT_SECRET_FILE",
    "WAYMARK_OIDC_ISSUER",
    "WAYMARK_OIDC_REQUIRED_CLAIM",
    "WAYMARK_OPERATOR_KEY",
    "WAYMARK_OTLP_URL",
    "WAYMARK_PRINT_CODES",
    "WAYMARK_PRINT_FILES_DAYS",
    "WAYMARK_PRIVATE_TARGETS",
    "WAYMARK_PUBLIC_URL",
    "WAYMARK_REDIS_CA",
    "WAYMARK_REDIS_SHARDS",
    "WAYMARK_REFUSALS_PER_ADDRESS",
    "WAYMARK_REGION",
    "WAYMARK_REQUESTS_PER_KEY",
    "WAYMARK_SCANS_CA",
    "WAYMARK_SCANS_PASSWORD_FILE",
    "WAYMARK_SCANS_URL",
    "WAYMARK_SECRET_KEY_FILE",
    "WAYMARK_SHORT_DOMAINS",
    "WAYMARK_SMTP_CA",
    "WAYMARK_SMTP_URL",
    "WAYMARK_SNAPSHOT_MIB",
    "WAYMARK_SNAPSHOT_SECONDS",
    "WAYMARK_SPOOL_MIB",
    "WAYMARK_TLS_DIR",
    "WAYMARK_TRUSTED_PROXIES",
    "WAYMARK_UPLOADS",
    "WAYMARK_UPLOAD_BYTES_PER_SECOND",
    "WAYMARK_WEBHOOKS_LOOPBACK",
    "WAYMARK_WORKER_ADMIN_LISTEN",
];

/// What all of them begin with.
const PREFIX: &str = "WAYMARK_";

/// Variables of scripts and tests, which no binary reads.
const OTHERS: [&str; 4] =
    ["WAYMARK_BINARY", "WAYMARK_BUILD_PROFILE", "WAYMARK_REFRESH_OPENAPI", "WAYMARK_TEST_"];

/// Most letters that may be wrong in a name that is guessed.
const MAX_DISTANCE: usize = 3;

/// [`unknown`] of the environment of this process.
#[must_use]
pub fn unknown_here() -> Vec<String> {
    unknown(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
}

/// One sentence for each variable that is no setting, with the setting that is meant, as far as it can be guessed.
pub fn unknown(present: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = present
        .into_iter()
        .filter(|name| name.starts_with(PREFIX) && !NAMES.contains(&name.as_str()))
        .filter(|name| !OTHERS.iter().any(|other| name.starts_with(other)))
        .collect();
    found.sort_unstable();
    found.iter().map(|name| sentence(name)).collect()
}

fn sentence(name: &str) -> String {
    let nearest = NAMES.iter().map(|known| (distance(name, known), *known)).min();
    // Of an unusually long name only the beginning is shown.
    let shown: String = name.chars().take(80).collect();
    match nearest {
        Some((away, known)) if away <= MAX_DISTANCE && away * 3 <= name.len() - PREFIX.len() => {
            format!("{shown} is not a setting and has no effect; did you mean {known}?")
        }
        Some(_) | None => format!("{shown} is not a setting and has no effect"),
    }
}

/// Levenshtein distance: letters to insert, remove or replace to turn one name into the other.
fn distance(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > MAX_DISTANCE {
        return MAX_DISTANCE + 1;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.bytes().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (cell, known) in row.iter_mut().skip(1).zip(other.bytes()) {
            let replaced = diagonal + usize::from(letter != known);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(one.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_reported_with_the_nearest_name() {
        for (name, expected) in [
            ("WAYMARK_API_LISTEN", None),
            ("WAYMARK_TEST_DATABASE_URL", None),
            ("HOME", None),
            ("WAYMARK_API_LISTN", Some("; did you mean WAYMARK_API_LISTEN?")),
            ("WAYMARK_TRUSTED_PROXY", Some("; did you mean WAYMARK_TRUSTED_PROXIES?")),
            ("WAYMARK_edge_LISTEN", Some("WAYMARK_edge_LISTEN is not a setting and has no effect")),
            ("WAYMARK_SOMETHING_ELSE", Some("WAYMARK_SOMETHING_ELSE is not a setting and has no effect")),
            ("WAYMARK_", Some("WAYMARK_ is not a setting and has no effect")),
        ] {
            let found = unknown([name.to_owned()]);
            assert_eq!(found.len(), usize::from(expected.is_some()), "{name}: {found:?}");
            assert!(expected.is_none_or(|text| found[0].ends_with(text)), "{name}: {found:?}");
        }
    }

    #[test]
    fn distances_count_letters() {
        for (one, other, expected) in [
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("abc", "xabc", 1),
            ("abcd", "badc", 3),
            ("a", "abcdefg", 4),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(NAMES.is_sorted_by(|one, other| one < other));
    }
}
