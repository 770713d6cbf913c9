//! The authority that is asked for certificates of short domains.

use std::fs;

use certificates::settings::{AcmeSettings, InvalidSetting};
use platform::settings::ConfigError;
use serde::{Deserialize, Serialize};

/// The authority, as it is set.
#[derive(Debug, Default, Clone, clap::Args, Serialize, Deserialize)]
pub struct AcmeTexts {
    /// Directory of the certificate authority (ACME) that gives certificates for the short domains that accounts have proven;
    /// with it you agree to the terms of the authority [default: none, no certificates are ordered]
    #[arg(long, env = "WAYMARK_ACME_DIRECTORY", value_name = "URL")]
    pub acme_directory: Option<String>,

    /// Address that the authority may write to, such as ops@example.com [default: none]
    #[arg(long, env = "WAYMARK_ACME_CONTACT", value_name = "ADDRESS")]
    pub acme_contact: Option<String>,

    /// Root that signed the certificate of the directory's server, as a PEM file, if the authority is your own [default: those of
    /// the system]
    #[arg(long, env = "WAYMARK_ACME_TRUST_FILE", value_name = "FILE")]
    pub acme_trust_file: Option<String>,
}

/// The authority; `None` where no certificates are ordered.
///
/// # Errors
/// One setting cannot be used, or is of no use without another.
pub fn acme(texts: &AcmeTexts) -> Result<Option<AcmeSettings>, ConfigError> {
    const DIRECTORY: &str = "WAYMARK_ACME_DIRECTORY";
    const CONTACT: &str = "WAYMARK_ACME_CONTACT";
    const TRUST: &str = "WAYMARK_ACME_TRUST_FILE";
    let Some(directory) = &texts.acme_directory else {
        let others = [(CONTACT, &texts.acme_contact), (TRUST, &texts.acme_trust_file)];
        return match others.into_iter().find(|(_, text)| text.is_some()) {
            Some((key, _)) => {
                Err(ConfigError::new(key, "it is of no use without WAYMARK_ACME_DIRECTORY: set both"))
            }
            None => Ok(None),
        };
    };
    let wrong = |key| move |error: InvalidSetting| ConfigError::new(key, error.to_string());
    let mut settings = AcmeSettings::parse(directory).map_err(wrong(DIRECTORY))?;
    if let Some(contact) = &texts.acme_contact {
        settings = settings.with_contact(contact).map_err(wrong(CONTACT))?;
    }
    if let Some(path) = &texts.acme_trust_file {
        let unread =
            |error| ConfigError::new(TRUST, format!("{path} cannot be read: {error}; give a PEM file"));
        settings = settings.with_trust(fs::read(path).map_err(unread)?).map_err(wrong(TRUST))?;
    }
    Ok(Some(settings))
}
