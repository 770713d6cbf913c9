//! Where scans are kept, if not in the database.

use std::{fmt, fs};

use platform::settings::ConfigError;
use scan_store::domain::scan_server::{InvalidScanServer, ScanServer};
use serde::{Deserialize, Serialize};

use super::parse::private_text;

/// The server of scans, of every program that opens their store.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct ScanTexts {
    /// ClickHouse for scans, over HTTP: clickhouse://user:password@host:8123/database, with clickhouses for TLS and
    /// ?cluster=NAME for a cluster [default: none, scans are kept with the database]
    #[arg(long, env = "WAYMARK_SCANS_URL", value_name = "URL", hide_env_values = true)]
    pub scans_url: Option<String>,

    /// File of the password, in place of one in WAYMARK_SCANS_URL; nobody but its owner may read it [default: none]
    #[arg(long, env = "WAYMARK_SCANS_PASSWORD_FILE", value_name = "FILE")]
    pub scans_password_file: Option<String>,

    /// Authority that signed the certificate of ClickHouse, as a PEM file [default: those of the system]
    #[arg(long, env = "WAYMARK_SCANS_CA", value_name = "FILE")]
    pub scans_ca: Option<String>,
}

// The URL may hold a password.
impl fmt::Debug for ScanTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanTexts").field("scans_ca", &self.scans_ca).finish_non_exhaustive()
    }
}

/// The server of scans; `None` where the database keeps them. An error repeats no text, which may hold a password.
///
/// # Errors
/// One cannot be used, or is of no use without another.
pub fn scans(texts: &ScanTexts) -> Result<Option<ScanServer>, ConfigError> {
    const URL: &str = "WAYMARK_SCANS_URL";
    const PASSWORD: &str = "WAYMARK_SCANS_PASSWORD_FILE";
    const CA: &str = "WAYMARK_SCANS_CA";
    let Some(url) = &texts.scans_url else {
        let others = [(PASSWORD, &texts.scans_password_file), (CA, &texts.scans_ca)];
        return match others.into_iter().find(|(_, text)| text.is_some()) {
            Some((key, _)) => {
                Err(ConfigError::new(key, "it is of no use without WAYMARK_SCANS_URL: set both"))
            }
            None => Ok(None),
        };
    };
    let wrong = |key| move |error: InvalidScanServer| ConfigError::new(key, error.to_string());
    let mut server: ScanServer = url.parse().map_err(wrong(URL))?;
    if let Some(path) = &texts.scans_password_file {
        server = server.with_password(&private_text(PASSWORD, path)?).map_err(wrong(PASSWORD))?;
    }
    if let Some(path) = &texts.scans_ca {
        let unread = |error| ConfigError::new(CA, format!("{path} cannot be read: {error}; give a PEM file"));
        server = server.with_ca(fs::read(path).map_err(unread)?).map_err(wrong(CA))?;
    }
    Ok(Some(server))
}
