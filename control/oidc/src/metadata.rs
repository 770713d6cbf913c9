//! What the provider says of itself, and its keys; both are kept for an hour.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use arc_swap::ArcSwapOption;
use openidconnect::{
    AdditionalProviderMetadata, DiscoveryError, IssuerUrl, JsonWebKeySet, ProviderMetadata,
    core::{
        CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType, CoreJsonWebKey,
        CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm, CoreResponseMode, CoreResponseType,
        CoreSubjectIdentifierType,
    },
};
use serde::{Deserialize, Serialize};
use shared::time::UnixMillis;
use tokio::sync::Mutex;

use crate::{
    client::{HttpError, ProviderClient},
    error::SignInError,
    settings::OidcSettings,
};

/// How long metadata and keys are used. Endpoints seldom change; a key that is withdrawn is used no longer than that.
const LIFETIME_MS: i64 = 3_600_000;

/// Least time between two looks for a key that is not known.
const KEYS_PAUSE_MS: i64 = 60_000;

/// A member of RFC 9207 that openidconnect does not know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Extra {
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for Extra {}

pub(crate) type Metadata = ProviderMetadata<
    Extra,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// Metadata with keys.
pub(crate) struct Known {
    pub(crate) metadata: Metadata,
    read_at: UnixMillis,
}

impl Known {
    /// Whether answers name the issuer (RFC 9207).
    pub(crate) fn names_issuer(&self) -> bool {
        self.metadata.additional_metadata().authorization_response_iss_parameter_supported
    }

    fn is_fresh(&self, now: UnixMillis) -> bool {
        // A clock that was set back makes it stale, too.
        (0..LIFETIME_MS).contains(&now.0.saturating_sub(self.read_at.0))
    }
}

/// Reads metadata and keys, one reader at a time.
pub(crate) struct MetadataCache {
    issuer: IssuerUrl,
    settings: OidcSettings,
    known: ArcSwapOption<Known>,
    /// When somebody last looked for a key that was not known.
    looked_at: AtomicI64,
    reading: Mutex<()>,
}

impl MetadataCache {
    /// A cache that knows nothing yet.
    pub(crate) fn new(issuer: IssuerUrl, settings: OidcSettings) -> Self {
        Self {
            issuer,
            settings,
            known: ArcSwapOption::empty(),
            looked_at: AtomicI64::new(i64::MIN),
            reading: Mutex::new(()),
        }
    }

    /// The metadata, if they were read within the last hour.
    pub(crate) fn fresh(&self, now: UnixMillis) -> Option<Arc<Known>> {
        self.known.load_full().filter(|known| known.is_fresh(now))
    }

    /// The metadata.
    ///
    /// # Errors
    /// They are not known, and the provider does not give them.
    pub(crate) async fn find(
        &self,
        client: &ProviderClient,
        now: UnixMillis,
    ) -> Result<Arc<Known>, SignInError> {
        if let Some(known) = self.fresh(now) {
            return Ok(known);
        }
        let _reading = self.reading.lock().await;
        if let Some(known) = self.fresh(now) {
            return Ok(known);
        }
        let metadata = Metadata::discover_async(self.issuer.clone(), client).await.map_err(unavailable)?;
        self.check(&metadata)?;
        let known = Arc::new(Known { metadata, read_at: now });
        self.known.store(Some(known.clone()));
        Ok(known)
    }

    /// The metadata with newer keys than `old`; `None` when somebody looked within the last minute.
    ///
    /// # Errors
    /// The provider does not give its keys.
    pub(crate) async fn find_newer_keys(
        &self,
        client: &ProviderClient,
        old: &Arc<Known>,
        now: UnixMillis,
    ) -> Result<Option<Arc<Known>>, SignInError> {
        let _reading = self.reading.lock().await;
        if let Some(known) = self.known.load_full().filter(|known| !Arc::ptr_eq(known, old)) {
            return Ok(Some(known));
        }
        let since = now.0.saturating_sub(self.looked_at.load(Ordering::Relaxed));
        if (0..KEYS_PAUSE_MS).contains(&since) {
            return Ok(None);
        }
        // Before the provider is asked: a look that fails counts, too.
        self.looked_at.store(now.0, Ordering::Relaxed);
        let keys = JsonWebKeySet::fetch_async(old.metadata.jwks_uri(), client).await.map_err(unavailable)?;
        let known = Arc::new(Known { metadata: old.metadata.clone().set_jwks(keys), read_at: old.read_at });
        self.known.store(Some(known.clone()));
        Ok(Some(known))
    }

    /// What this crate needs of the metadata, beyond what the other requests find out.
    fn check(&self, metadata: &Metadata) -> Result<(), SignInError> {
        if !self.settings.allows(metadata.authorization_endpoint().url()) {
            return Err(unusable("its authorization endpoint has no TLS"));
        }
        if metadata.token_endpoint().is_none() {
            return Err(unusable("it names no token endpoint"));
        }
        Ok(())
    }
}

fn unusable(reason: &str) -> SignInError {
    tracing::warn!(reason, "the provider of identities cannot be used");
    SignInError::Unavailable
}

fn unavailable(error: DiscoveryError<HttpError>) -> SignInError {
    match error {
        DiscoveryError::Request(error) => unusable(&error.to_string()),
        DiscoveryError::Response(status, _, _) => {
            unusable(&format!("its metadata or keys have status {}, or are no JSON", status.as_u16()))
        }
        DiscoveryError::Parse(error) => unusable(&format!("its metadata or keys cannot be read: {error}")),
        error => unusable(&error.to_string()),
    }
}
