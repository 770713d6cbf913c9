//! The relying party without an API: `control/oidc` against the provider.

mod faulty;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use kernel::store::Ctx;
use oidc::{
    Answer, Identity, OidcSettings, Pending, Provider, ReturnPath, SLOTS_PER_ADDRESS, SignInError,
    store::used_states,
};
use serde_json::json;
use shared::time::{Clock, ManualClock, UnixMillis};
use tests::db::{Engine, SystemRandom, TestDb};
use url::Url;

use crate::on_both_engines;

use super::provider::{Running, Tls, parameter};

const BACK: &str = "https://api.example.com/console/api/oidc/callback";

/// A relying party and its clock.
struct Party {
    provider: Arc<Provider>,
    clock: Arc<ManualClock>,
}

impl Party {
    fn new(settings: OidcSettings) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let clock = Arc::new(ManualClock::new(UnixMillis(now.try_into()?)));
        let provider =
            Provider::new(settings, clock.clone(), Arc::new(SystemRandom)).map_err(anyhow::Error::msg)?;
        Ok(Self { provider: Arc::new(provider), clock })
    }

    fn pass(&self, time: Duration) -> Result<()> {
        self.clock.set(UnixMillis(self.clock.now().0 + i64::try_from(time.as_millis())?));
        Ok(())
    }

    async fn begin(&self) -> Result<(Url, Pending), SignInError> {
        let path = ReturnPath::parse("/console/").expect("a path");
        self.provider.begin(&BACK.parse().expect("a URL"), path, None, None).await
    }

    async fn finish(&self, pending: &Pending, back: &Url) -> Result<Identity, SignInError> {
        let [state, code, iss, error] = ["state", "code", "iss", "error"].map(|name| parameter(back, name));
        let answer = Answer {
            state: state.as_deref(),
            code: code.as_deref(),
            iss: iss.as_deref(),
            error: error.as_deref(),
        };
        let code = pending.check(answer, self.clock.now())?;
        self.provider.enter(None).await?.finish(pending.clone(), code, iss.as_deref()).await
    }
}

async fn start(tls: Option<Tls>) -> Result<(Running, Party)> {
    let provider = Running::start(0, tls)?;
    provider.set(json!({"redirect": BACK})).await?;
    let party = Party::new(provider.settings()?)?;
    Ok((provider, party))
}

/// Signs in as somebody; gives who it was.
async fn sign_in(provider: &Running, party: &Party, name: &str) -> Result<Result<Identity, SignInError>> {
    let (url, pending) = party.begin().await?;
    let back = provider.sign_in(&url, name, BACK).await?;
    Ok(party.finish(&pending, &back).await)
}

#[tokio::test]
async fn whoever_signs_in_is_known_over_tls() -> Result<()> {
    let (provider, party) = start(Some(Tls::new()?)).await?;
    let (url, pending) = party.begin().await?;
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "waymark"),
        ("redirect_uri", BACK),
        ("scope", "openid email profile"),
        ("code_challenge_method", "S256"),
    ] {
        ensure!(parameter(&url, name).as_deref() == Some(value), "{name}: {url}");
    }
    for name in ["state", "nonce", "code_challenge"] {
        ensure!(parameter(&url, name).is_some_and(|value| value.len() == 43), "{name}: {url}");
    }
    let back = provider.sign_in(&url, "ada", BACK).await?;
    let ada = Identity {
        issuer: provider.issuer(),
        subject: "ada".to_owned(),
        email: Some("ada@example.com".to_owned()),
        email_verified: true,
        name: Some("ada of the tests".to_owned()),
    };
    assert_eq!(party.finish(&pending, &back).await, Ok(ada.clone()));
    assert_eq!(party.finish(&pending, &back).await, Err(SignInError::CodeRefused), "the code was used");

    // The address is in the ID token, or in the answer to the access token.
    let asked = provider.set(json!({"inIdToken": true})).await?["/me"].clone();
    assert_eq!(sign_in(&provider, &party, "ada").await?, Ok(ada.clone()));
    ensure!(provider.set(json!({})).await?["/me"] == asked && asked == 1, "asked for more than needed");
    for in_id_token in [true, false] {
        provider.set(json!({"inIdToken": in_id_token})).await?;
        let eve = sign_in(&provider, &party, "eve.unverified").await??;
        ensure!(eve.email.as_deref() == Some("eve@example.com") && !eve.email_verified, "{eve:?}");
        let eve = sign_in(&provider, &party, "eve.silent").await??;
        ensure!(eve.email.is_none() && !eve.email_verified, "{eve:?}");
    }

    // Another authority is not trusted.
    let other = OidcSettings::parse(&provider.issuer(), "waymark", "x")?;
    let other = other.with_ca(std::fs::read(Tls::new()?.certificate())?)?;
    assert_eq!(Party::new(other)?.begin().await.err(), Some(SignInError::Unavailable));
    // The metadata are of another issuer.
    let settings = OidcSettings::parse(&format!("{}/", provider.issuer()), "waymark", "x")?;
    let settings = settings.with_ca(provider.ca()?)?;
    assert_eq!(Party::new(settings)?.begin().await.err(), Some(SignInError::Unavailable));
    Ok(())
}

#[tokio::test]
async fn an_answer_of_another_sign_in_is_refused() -> Result<()> {
    let (provider, party) = start(None).await?;
    let (url, pending) = party.begin().await?;
    let back = provider.sign_in(&url, "ada", BACK).await?;
    let with = |name: &str, value: Option<&str>| {
        let mut url = back.clone();
        let pairs: Vec<(String, String)> = back
            .query_pairs()
            .filter(|(found, _)| found != name)
            .map(|(a, b)| (a.into(), b.into()))
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs).extend_pairs(value.map(|value| (name, value)));
        url
    };
    let state = |value| with("state", value);
    for (changed, error) in [
        (state(None), SignInError::OtherState),
        (state(Some("x")), SignInError::OtherState),
        (with("iss", None), SignInError::OtherIssuer),
        (with("iss", Some("https://login.example.com")), SignInError::OtherIssuer),
        (with("code", None), SignInError::CodeRefused),
        (with("error", Some("access_denied")), SignInError::Refused("access_denied")),
    ] {
        assert_eq!(party.finish(&pending, &changed).await, Err(error), "{changed}");
    }
    // A code of another sign-in, as if somebody had stolen it: the secret of PKCE is missing.
    let (other_url, other) = party.begin().await?;
    let stolen = with("state", parameter(&other_url, "state").as_deref());
    assert_eq!(party.finish(&other, &stolen).await, Err(SignInError::CodeRefused));

    // Too late.
    let (url, pending) = party.begin().await?;
    let back = provider.sign_in(&url, "ada", BACK).await?;
    party.pass(oidc::LIFETIME)?;
    assert_eq!(party.finish(&pending, &back).await, Err(SignInError::Expired));
    Ok(())
}

#[tokio::test]
async fn a_token_that_cannot_be_trusted_is_refused() -> Result<()> {
    let (provider, party) = start(None).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok());
    for how in [
        "audience",
        "more-audiences",
        "foreign-party",
        "nonce",
        "no-nonce",
        "issuer",
        "expired",
        "access-token",
        "subject",
        "unsigned",
        "shared-secret",
        "no-token",
        "foreign-key",
        "unknown-key",
    ] {
        provider.spoil(how).await?;
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Untrusted), "{how}");
    }
    for how in ["nothing", ""] {
        provider.spoil(how).await?;
        ensure!(sign_in(&provider, &party, "ada").await?.is_ok(), "{how}");
    }
    // The clock that counts is the one that was given: the token is valid for a day.
    let (url, pending) = party.begin().await?;
    let back = provider.sign_in(&url, "ada", BACK).await?;
    let (code, iss) = (parameter(&back, "code").context("code")?, parameter(&back, "iss"));
    party.pass(Duration::from_secs(86_500))?;
    let found = party.provider.enter(None).await?.finish(pending, &code, iss.as_deref()).await;
    assert_eq!(found, Err(SignInError::Untrusted), "expired");
    Ok(())
}

#[tokio::test]
async fn a_new_key_of_the_provider_is_found_once_a_minute() -> Result<()> {
    let (provider, party) = start(None).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok());
    let reads = async || -> Result<u64> {
        provider.set(json!({})).await?["/jwks"].as_u64().context("reads of the keys")
    };
    ensure!(reads().await? == 1);
    provider.set(json!({"rotate": true})).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok(), "the new key is read");
    ensure!(reads().await? == 2);
    // Tokens with a key that is not there make us ask once a minute.
    provider.spoil("unknown-key").await?;
    for _ in 0..3 {
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Untrusted));
    }
    ensure!(reads().await? == 2);
    party.pass(Duration::from_secs(61))?;
    for _ in 0..3 {
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Untrusted));
    }
    ensure!(reads().await? == 3);
    // A look that fails counts, too.
    party.pass(Duration::from_secs(61))?;
    provider.set(json!({"rotate": true, "spoil": "broken", "at": "/jwks"})).await?;
    for error in [SignInError::Unavailable, SignInError::Untrusted] {
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(error));
    }
    ensure!(reads().await? == 4);
    provider.set(json!({"spoil": "", "at": "/token"})).await?;
    // A key that was withdrawn is forgotten after an hour.
    provider.set(json!({"rotate": true, "spoil": ""})).await?;
    party.pass(Duration::from_secs(3_600))?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok());
    ensure!(reads().await? == 5, "with the metadata");
    Ok(())
}

/// A provider whose keys have no ids, with one key and with two.
#[tokio::test]
async fn a_new_key_without_an_id_is_found() -> Result<()> {
    let (provider, party) = start(None).await?;
    provider.set(json!({"nameless": true, "spoil": "nameless"})).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok());
    provider.set(json!({"rotate": true})).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok(), "the new key is read");
    // One that fits no key makes us look once a minute as well.
    provider.spoil("foreign-key").await?;
    for _ in 0..2 {
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Untrusted));
    }
    Ok(())
}

#[tokio::test]
async fn the_required_claim_is_in_the_id_token() -> Result<()> {
    let (provider, _) = start(None).await?;
    for (claim, ada, eve) in
        [("sub=ada", true, false), ("hd=example.com", false, false), ("aud=waymark", true, true)]
    {
        let party = Party::new(provider.settings()?.with_required_claim(claim)?)?;
        for (name, fits) in [("ada", ada), ("eve", eve)] {
            let found = sign_in(&provider, &party, name).await?;
            let expected = if fits { found.is_ok() } else { found == Err(SignInError::ClaimMissing) };
            ensure!(expected, "{claim} {name}: {found:?}");
        }
    }
    // The answer to the access token does not count: nobody signed it.
    let party = Party::new(provider.settings()?.with_required_claim("hd=example.com")?)?;
    provider.set(json!({"user": {"hd": "example.com"}})).await?;
    assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::ClaimMissing));
    Ok(())
}

/// The ID token may leave out what the answer to the access token says.
#[tokio::test]
async fn a_verified_address_is_asked_for() -> Result<()> {
    let (provider, party) = start(None).await?;
    provider.set(json!({"inIdToken": true, "spoil": "not-said"})).await?;
    for (user, email, is_verified) in [
        (json!({}), "ada@example.com", true),
        (json!({"email_verified": false}), "ada@example.com", false),
        (json!({"email_verified": null}), "ada@example.com", false),
        (json!({"email": "other@example.com"}), "other@example.com", true),
        // Of which address?
        (json!({"email": null}), "ada@example.com", false),
    ] {
        provider.set(json!({"user": user})).await?;
        let found = sign_in(&provider, &party, "ada").await??;
        let as_told = found.email.as_deref() == Some(email) && found.email_verified == is_verified;
        ensure!(as_told, "{user}: {found:?}");
    }
    // Somebody else's answer is not used, and without one nobody signs in.
    provider.set(json!({"user": {"sub": "eve"}})).await?;
    assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Unavailable));
    provider.set(json!({"user": {}, "inIdToken": false, "spoil": "broken", "at": "/me"})).await?;
    assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Unavailable));
    Ok(())
}

#[tokio::test]
async fn an_address_has_a_share_of_the_slots() -> Result<()> {
    let (provider, party) = start(None).await?;
    let [one, same, other] = ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|ip| ip.parse().ok());
    let mut held = Vec::new();
    for _ in 0..SLOTS_PER_ADDRESS {
        held.push(party.provider.enter(one).await?);
    }
    for client in [one, same] {
        assert_eq!(party.provider.enter(client).await.err(), Some(SignInError::Busy));
    }
    held.push(party.provider.enter(other).await?);
    // A sign-in begins without a slot: the metadata are known.
    let (url, pending) = {
        let path = ReturnPath::parse("/").expect("a path");
        party.provider.begin(&BACK.parse()?, path, None, one).await?
    };
    held.clear();
    let back = provider.sign_in(&url, "ada", BACK).await?;
    ensure!(party.finish(&pending, &back).await.is_ok());
    Ok(())
}

async fn a_state_is_used_once_until_it_expires(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let (one, other) = ([1; 32], [2; 32]);
    for (hash, expires_at, is_new) in [
        (one, 1_000, true),
        (one, 1_000, false),
        (other, 2_000, true),
        (one, 3_000, false),
        (other, 2_000, false),
    ] {
        let mut tx = db.db.begin(&Ctx::default()).await?;
        let claimed = used_states::claim(&mut tx, &hash, UnixMillis(expires_at)).await?;
        ensure!(claimed == is_new, "{hash:?} {expires_at}");
        tx.commit().await?;
    }
    let mut tx = db.db.begin(&Ctx::default()).await?;
    ensure!(used_states::purge(&mut tx, UnixMillis(1_000), 10).await? == 1);
    ensure!(used_states::claim(&mut tx, &one, UnixMillis(4_000)).await?, "it has expired");
    ensure!(!used_states::claim(&mut tx, &other, UnixMillis(4_000)).await?, "it has not");
    tx.commit().await?;
    Ok(())
}

on_both_engines!(a_state_is_used_once_until_it_expires);
