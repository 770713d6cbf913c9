//! Welcomes: what edges that connect together share, and which pages and files are left out.

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use kernel::store::Ctx;
use redirects::store::{domains, pages};
use shared::{
    pages::Pages,
    wire::{
        contents,
        frame::Decoder,
        stream::{Hello, ToEdge, Welcome},
    },
};
use tests::{
    db::{Engine, TestApp},
    raw_edge::hello,
};

use super::redirections::{create, product};

/// The address of the chunk with the only domain.
fn chunk(parts: &[Bytes]) -> Option<*const u8> {
    parts[1..parts.len() - 1].iter().find(|part| !part.is_empty()).map(|part| part.as_ptr())
}

#[tokio::test]
async fn edges_share_a_reading_and_are_sent_what_they_do_not_hold() -> Result<()> {
    let made = TestApp::new(Engine::Sqlite).await?;
    let product = product(&made).await?;
    let publish = async |name: &str| -> Result<()> {
        let shown = Pages { name: Some(name.into()), ..Pages::default() };
        let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
        pages::put(&mut tx, made.account, None, &shown).await?;
        domains::publish(&mut tx, made.account, made.app.core.clock.now()).await?;
        tx.commit().await?;
        Ok(())
    };
    let connect = async |contents: Vec<u64>| -> Result<(Vec<Bytes>, Welcome)> {
        let hello = Hello { contents, ..hello("e1", None, 0) };
        let outgoing = made.app.hub.connect(&hello).await?.next_outgoing().await?;
        let parts = outgoing.frames()?;
        let ToEdge::Welcome(welcome) = outgoing.into_message() else { bail!("no welcome") };
        let mut decoder = Decoder::<ToEdge>::default();
        decoder.buffer.extend_from_slice(&parts.concat());
        assert_eq!(decoder.decode()?, Some(ToEdge::Welcome(welcome.clone())), "the same over the network");
        Ok((parts, welcome))
    };
    publish("Acme").await?;
    let (first, whole) = connect(Vec::new()).await?;
    assert!(whole.kept.is_empty() && whole.domains[0].pages.is_some(), "{whole:?}");
    let rev = create(&made, product, "https://example.com/", None).await?.rev;
    while made.app.hub.head() < rev {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (second, _) = connect(Vec::new()).await?;
    assert_eq!(chunk(&first), chunk(&second), "no link changes it");

    let held = contents::digests(&whole.domains);
    let (small, left_out) = connect(held.clone()).await?;
    assert_eq!(left_out.kept, [contents::group_of(&whole.domains[0])]);
    assert_eq!(left_out.domains, [contents::without(&whole.domains[0])]);
    assert!(small.concat().len() < first.concat().len());

    publish("Other").await?;
    let (third, changed) = connect(held).await?;
    assert_ne!(chunk(&first), chunk(&third));
    assert!(changed.kept.is_empty(), "{changed:?}");
    let shown = changed.domains[0].pages.as_ref().and_then(|pages| pages.name.as_deref());
    assert_eq!(shown, Some("Other"));
    Ok(())
}
