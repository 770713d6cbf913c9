//! The provider: begins a sign-in, and asks who signed in.

mod identity;

use std::{fmt, net::IpAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use kernel::service::Random;
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IdTokenVerifier, IssuerUrl, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse as _,
    core::{
        CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType, CoreIdTokenClaims,
        CoreJsonWebKey, CoreJwsSigningAlgorithm, CoreTokenResponse, CoreUserInfoClaims,
    },
};
use platform::{Share, Shares};
use shared::{
    client_address::network,
    id::AccountId,
    time::{Clock, UnixMillis},
};
use tokio::time::{Instant, timeout_at};
use url::Url;

pub use self::identity::Identity;
use self::identity::{check_access_token, identity, text_of};
use crate::{
    client::{ProviderClient, TIMEOUT},
    error::SignInError,
    metadata::{Known, MetadataCache},
    pending::{LIFETIME, Pending},
    return_path::ReturnPath,
    settings::{OidcSettings, SCOPES},
};

/// Sign-ins that may wait for the provider at once: a provider that takes a second lets 16 people in each second.
pub const SLOTS: usize = 16;

/// Those of one address (IPv6: one /64): the others stay free for the rest of the world.
pub const SLOTS_PER_ADDRESS: usize = 4;

/// Longest access token that is sent on.
const MAX_TOKEN_BYTES: usize = 16_384;

/// Algorithms by which a provider may sign, beside those with a shared secret and none at all.
const SIGNED_BY: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// A provider of identities; one for each process.
pub struct Provider {
    settings: OidcSettings,
    client: ProviderClient,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    cache: MetadataCache,
    slots: Shares<IpAddr>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.settings).finish()
    }
}

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl Provider {
    /// A provider that is asked for its metadata when the first person signs in: it may be down until then.
    ///
    /// # Errors
    /// The client cannot be set up.
    pub fn new(
        settings: OidcSettings,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, String> {
        let issuer = IssuerUrl::new(settings.issuer().to_owned()).map_err(|error| error.to_string())?;
        Ok(Self {
            client: ProviderClient::new(settings.clone())?,
            cache: MetadataCache::new(issuer, settings.clone()),
            settings,
            clock,
            random,
            slots: Shares::new(SLOTS),
        })
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &OidcSettings {
        &self.settings
    }

    /// Begins a sign-in: the URL to which the browser goes, and what it keeps until it comes back to `redirect_uri`. `client`
    /// is the address by which the browser is limited.
    ///
    /// # Errors
    /// The provider does not answer within 10 s, or too many wait for it.
    pub async fn begin(
        &self,
        redirect_uri: &Url,
        return_path: ReturnPath,
        account: Option<AccountId>,
        client: Option<IpAddr>,
    ) -> Result<(Url, Pending), SignInError> {
        let now = self.clock.now();
        let known = match self.cache.fresh(now) {
            Some(known) => known,
            None => self.enter(client).await?.known,
        };
        let (state, nonce, verifier) = (self.token()?, self.token()?, self.token()?);
        let challenge =
            PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(verifier.clone()));
        let (sent_state, sent_nonce) = (CsrfToken::new(state.clone()), Nonce::new(nonce.clone()));
        let client = self.openid_client(&known, redirect_uri.as_str())?;
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || sent_state, move || sent_nonce)
            // The crate adds `openid` by itself.
            .add_scopes(
                SCOPES.into_iter().filter(|scope| *scope != "openid").map(|scope| Scope::new(scope.into())),
            )
            .set_pkce_challenge(challenge);
        let (url, _, _) = request.url();
        let lifetime_ms = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        let pending = Pending {
            state,
            nonce,
            verifier,
            redirect_uri: redirect_uri.as_str().to_owned(),
            return_path,
            account,
            expires_at: UnixMillis(now.0.saturating_add(lifetime_ms)),
        };
        Ok((url, pending))
    }

    /// Takes one of the slots, and fetches the provider's metadata: all that a sign-in needs before its code is sent.
    /// `client` is the address by which the browser is limited.
    ///
    /// # Errors
    /// The provider does not answer within 10 s, or too many wait for it.
    pub async fn enter(&self, client: Option<IpAddr>) -> Result<Entered<'_>, SignInError> {
        let share = client.map(|ip| (network(ip.to_canonical()), SLOTS_PER_ADDRESS));
        let slot = self.slots.take(share).map_err(|_| SignInError::Busy)?;
        let until = Instant::now() + TIMEOUT;
        let known = limited(until, self.cache.find(&self.client, self.clock.now())).await?;
        Ok(Entered { provider: self, known, until, _slot: slot })
    }

    async fn identify(
        &self,
        known: Arc<Known>,
        pending: Pending,
        code: &str,
        iss: Option<&str>,
    ) -> Result<Identity, SignInError> {
        let is_missing = iss.is_none() && known.names_issuer();
        if is_missing || iss.is_some_and(|iss| iss != self.settings.issuer()) {
            return Err(SignInError::OtherIssuer);
        }
        let Pending { nonce, verifier, redirect_uri, .. } = pending;
        let client = self.openid_client(&known, &redirect_uri)?;
        let tokens = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|error| unexpected(&error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(verifier))
            .request_async(&self.client)
            .await
            .map_err(|error| match error {
                RequestTokenError::ServerResponse(refusal) => match refusal.error() {
                    CoreErrorResponseType::InvalidGrant => SignInError::CodeRefused,
                    // Such as `invalid_client`: the settings here do not fit those of the provider.
                    other => unexpected(&format!("it refuses the code: {}", other.as_ref())),
                },
                RequestTokenError::Request(error) => unexpected(&error.to_string()),
                // Not shown: it may hold tokens.
                RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
                    unexpected("its answer to the code cannot be read")
                }
            })?;
        let Some(id_token) = tokens.id_token() else {
            return Err(untrusted("there is no ID token"));
        };
        let nonce = Nonce::new(nonce);
        let mut known = known;
        let claims = match id_token.claims(&self.verifier(&known), &nonce) {
            // The provider may have a new key. Where keys have no names, the old ones are tried and do not fit.
            Err(ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey
                | SignatureVerificationError::CryptoError(_)
                | SignatureVerificationError::AmbiguousKeyId(_),
            )) => {
                let newer = self.cache.find_newer_keys(&self.client, &known, self.clock.now()).await?;
                known = newer.unwrap_or(known);
                id_token.claims(&self.verifier(&known), &nonce)
            }
            checked => checked,
        };
        let claims = claims.map_err(|error| untrusted(&error.to_string()))?;
        if claims.authorized_party().is_some_and(|party| party.as_str() != self.settings.client_id()) {
            return Err(untrusted("it is for another client"));
        }
        check_access_token(claims, id_token, tokens.access_token(), &self.verifier(&known))?;
        let mut identity = identity(claims)?;
        if let Some(required) = self.settings.required_claim()
            && !required.is_in(&id_token.to_string())
        {
            tracing::warn!(
                claim = required.name(),
                "an ID token lacks the claim that is required, or has another value"
            );
            return Err(SignInError::ClaimMissing);
        }
        if identity.email.is_none() || claims.email_verified().is_none() {
            self.ask_address(&client, &tokens, claims, &mut identity).await?;
        }
        Ok(identity)
    }

    /// Asks for what is missing in the ID token: some providers name the address, that they verified it, and the name only
    /// where they are asked for with the access token.
    async fn ask_address(
        &self,
        client: &Client,
        tokens: &CoreTokenResponse,
        claims: &CoreIdTokenClaims,
        identity: &mut Identity,
    ) -> Result<(), SignInError> {
        let token = tokens.access_token();
        // openidconnect takes for granted that it fits into a header.
        let is_text = token.secret().len() <= MAX_TOKEN_BYTES
            && token.secret().bytes().all(|byte| byte.is_ascii_graphic());
        let request = client.user_info(token.clone(), Some(claims.subject().clone()));
        let (Ok(request), true) = (request, is_text) else { return Ok(()) };
        let info: CoreUserInfoClaims = request
            .request_async(&self.client)
            .await
            .map_err(|_| unexpected("it does not say more of whoever signed in"))?;
        // What is verified is the address beside it.
        if let Some(email) = info.email().and_then(|email| text_of(email)) {
            identity.email = Some(email);
            identity.email_verified = info.email_verified() == Some(true);
        }
        let name = info.name().and_then(|names| names.get(None)).and_then(|name| text_of(name));
        identity.name = name.or(identity.name.take());
        Ok(())
    }

    fn openid_client(&self, known: &Known, redirect_uri: &str) -> Result<Client, SignInError> {
        let (id, secret) = (self.settings.client_id().to_owned(), self.settings.client_secret().to_owned());
        let redirect = RedirectUrl::new(redirect_uri.to_owned())
            .map_err(|_| SignInError::Internal("the redirect URL is none".to_owned()))?;
        let client = CoreClient::from_provider_metadata(
            known.metadata.clone(),
            ClientId::new(id),
            Some(ClientSecret::new(secret)),
        );
        Ok(client.set_redirect_uri(redirect).set_auth_type(auth_type(known)))
    }

    fn verifier(&self, known: &Known) -> IdTokenVerifier<'_, CoreJsonWebKey> {
        let offered = known.metadata.id_token_signing_alg_values_supported().clone();
        let clock = self.clock.clone();
        // Not as a confidential client: no token is accepted that a shared secret signed.
        IdTokenVerifier::new_public_client(
            ClientId::new(self.settings.client_id().to_owned()),
            known.metadata.issuer().clone(),
            known.metadata.jwks().clone(),
        )
        .set_allowed_algs(offered.into_iter().filter(|algorithm| SIGNED_BY.contains(algorithm)))
        .set_time_fn(move || time(clock.now()))
    }

    /// 256 random bits as 43 characters of base64url: long enough for PKCE.
    fn token(&self) -> Result<String, SignInError> {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes).map_err(|error| SignInError::Internal(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// A sign-in that has a slot.
pub struct Entered<'a> {
    provider: &'a Provider,
    known: Arc<Known>,
    until: Instant,
    _slot: Share<IpAddr>,
}

impl Entered<'_> {
    /// Exchanges the code that [`Pending::check`] gave, and reads who signed in. `iss` is the parameter of this name in
    /// the answer.
    ///
    /// # Errors
    /// The answer is of another provider, the code or the token is not accepted, or the provider does not answer within
    /// 10 s from [`Provider::enter`].
    pub async fn finish(
        self,
        pending: Pending,
        code: &str,
        iss: Option<&str>,
    ) -> Result<Identity, SignInError> {
        let Self { provider, known, until, _slot } = self;
        limited(until, provider.identify(known, pending, code, iss)).await
    }
}

/// Waits for the provider, but not for ever.
async fn limited<T>(
    until: Instant,
    step: impl Future<Output = Result<T, SignInError>>,
) -> Result<T, SignInError> {
    timeout_at(until, step).await.unwrap_or_else(|_| Err(unexpected("no answer in time")))
}

fn unexpected(reason: &str) -> SignInError {
    tracing::warn!(reason, "the provider of identities failed");
    SignInError::Unavailable
}

fn untrusted(reason: &str) -> SignInError {
    tracing::warn!(reason, "an ID token was refused");
    SignInError::Untrusted
}

/// The time as the verifier wants it; one that it cannot show makes every token expired.
fn time(now: UnixMillis) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(now.0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// How the client shows its secret: in the header, unless the provider takes it in the body only.
fn auth_type(known: &Known) -> AuthType {
    match known.metadata.token_endpoint_auth_methods_supported() {
        Some(methods)
            if methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic) =>
        {
            AuthType::RequestBody
        }
        Some(_) | None => AuthType::BasicAuth,
    }
}
