//! Providers that are down, silent, or not to be trusted.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use oidc::{OidcSettings, ReturnPath, SLOTS, SignInError};
use serde_json::json;

use super::{
    super::provider::{Running, Tls, parameter},
    BACK, Party, sign_in, start,
};

#[tokio::test]
async fn metadata_that_cannot_be_trusted_are_not_used() -> Result<()> {
    // Over TLS, so that endpoints without it are refused.
    let (provider, _) = start(Some(Tls::new()?)).await?;
    for (path, how) in [("/jwks", "endless"), ("/jwks", "redirect"), ("/jwks", "broken")] {
        provider.set(json!({"spoil": how, "at": path})).await?;
        let begun = Party::new(provider.settings()?)?.begin().await;
        assert_eq!(begun.err(), Some(SignInError::Unavailable), "{path} {how}");
    }
    provider.set(json!({"spoil": "", "at": "/token"})).await?;
    let plain = format!("http://127.0.0.1:{}/x", provider.port);
    for metadata in [
        json!({"authorization_endpoint": plain}),
        json!({"jwks_uri": plain}),
        json!({"token_endpoint": null}),
        json!({"issuer": "https://login.example.com"}),
    ] {
        provider.set(json!({"metadata": metadata})).await?;
        let begun = Party::new(provider.settings()?)?.begin().await;
        assert_eq!(begun.err(), Some(SignInError::Unavailable), "{metadata}");
    }
    // A secret is sent to none without TLS.
    for metadata in [json!({"token_endpoint": plain}), json!({"userinfo_endpoint": plain})] {
        provider.set(json!({"metadata": metadata})).await?;
        let party = Party::new(provider.settings()?)?;
        assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Unavailable), "{metadata}");
    }
    Ok(())
}

#[tokio::test]
async fn answers_that_are_too_long_or_lead_elsewhere_are_not_used() -> Result<()> {
    let (provider, party) = start(None).await?;
    for how in ["endless", "redirect"] {
        let (url, pending) = party.begin().await?;
        let back = provider.sign_in(&url, "ada", BACK).await?;
        provider.spoil(how).await?;
        let begun = Instant::now();
        assert_eq!(party.finish(&pending, &back).await, Err(SignInError::Unavailable), "{how}");
        ensure!(begun.elapsed() < Duration::from_secs(5), "{how}: {:?}", begun.elapsed());
        provider.spoil("").await?;
    }
    ensure!(provider.set(json!({})).await?.get("/elsewhere").is_none(), "the redirect was followed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_provider_costs_ten_seconds_and_a_slot() -> Result<()> {
    // Both wait for 10 s.
    tokio::try_join!(metadata_do_not_come(), the_answer_to_a_code_does_not_come())?;
    Ok(())
}

/// It accepts connections, and then nothing: each sign-in waits for 10 s, and not all of them at once.
async fn metadata_do_not_come() -> Result<()> {
    let (provider, party) = start(None).await?;
    party.begin().await?;
    provider.spoil("silent").await?;
    // It has forgotten the metadata.
    party.pass(Duration::from_secs(3_600))?;
    let begun = Instant::now();
    // One more than there is room for.
    let waiting: Vec<_> = (0..=SLOTS)
        .map(|_| {
            let (provider, path) = (party.provider.clone(), ReturnPath::parse("/").expect("a path"));
            let back = BACK.parse().expect("a URL");
            tokio::spawn(
                async move { (provider.begin(&back, path, None, None).await.err(), begun.elapsed()) },
            )
        })
        .collect();
    let mut refused = Vec::new();
    for one in waiting {
        let (error, took) = one.await?;
        match error {
            Some(SignInError::Busy) => refused.push(took),
            Some(SignInError::Unavailable) => {
                ensure!((9..13).contains(&took.as_secs()), "{took:?}");
            }
            error => anyhow::bail!("{error:?}"),
        }
    }
    ensure!(refused.len() == 1 && refused[0] < Duration::from_secs(2), "at once: {refused:?}");
    provider.spoil("").await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok(), "the slots are free again");
    Ok(())
}

async fn the_answer_to_a_code_does_not_come() -> Result<()> {
    let (provider, party) = start(None).await?;
    let (url, pending) = party.begin().await?;
    let back = provider.sign_in(&url, "ada", BACK).await?;
    provider.spoil("silent-token").await?;
    let begun = Instant::now();
    let code = parameter(&back, "code").context("code")?;
    let found = party.provider.enter(None).await?.finish(pending, &code, Some(&provider.issuer())).await;
    assert_eq!(found, Err(SignInError::Unavailable));
    ensure!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_provider_that_was_down_is_used_once_it_is_up() -> Result<()> {
    // Nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let settings =
        OidcSettings::parse(&format!("http://127.0.0.1:{port}"), "waymark", "a secret of the client: 100 %")?;
    let party = Party::new(settings)?;
    let begun = Instant::now();
    assert_eq!(party.begin().await.err(), Some(SignInError::Unavailable));
    ensure!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let provider = Running::start(port, None)?;
    provider.set(json!({"redirect": BACK})).await?;
    ensure!(sign_in(&provider, &party, "ada").await?.is_ok());
    // A secret that the provider does not know is the fault of the platform operator, not of who signs in.
    let party = Party::new(OidcSettings::parse(&provider.issuer(), "waymark", "another")?)?;
    assert_eq!(sign_in(&provider, &party, "ada").await?, Err(SignInError::Unavailable));
    Ok(())
}
