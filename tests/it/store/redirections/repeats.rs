//! Repeats of a create: the stored response, and how long it is kept.

use anyhow::Result;
use kernel::{
    service::idempotency::IdempotencyKey,
    store::{Ctx, idempotency},
};
use redirects::{
    service::redirections::{self, DomainChoice},
    store::log,
};
use serde_json::json;
use shared::problem::Code;
use tests::db::{Engine, TestApp, random16};

use super::{app_with_product, draft, refusal};
use crate::on_both_engines;

on_both_engines!(
    a_repeat_with_the_same_key_gets_the_first_response,
    stored_responses_are_deleted_after_a_day_in_steps,
);

async fn a_repeat_with_the_same_key_gets_the_first_response(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let key = |request| Some(IdempotencyKey { key: "order-1".to_owned(), request: [request; 32] });
    let run = async |request| {
        let draft = draft(product, "https://example.com/", None);
        redirections::create(
            &made.app.redirects,
            &made.caller(),
            draft,
            DomainChoice::default(),
            None,
            key(request),
        )
        .await
    };
    let first = run(1).await?;
    let second = run(1).await?;
    assert_eq!(first, second);
    assert_eq!(refusal(run(2).await).0, Code::IdempotencyMismatch);
    assert_eq!(log::load_head(&mut made.app.core.db.read().await?).await?.head, 1);
    Ok(())
}

async fn stored_responses_are_deleted_after_a_day_in_steps(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    for at in [1, 2, 3, 3, 4, 5] {
        let key =
            format!("order-{}", random16()?.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let key = idempotency::OwnedKey::new(&made.caller(), key);
        idempotency::insert(&mut tx, made.account, &key, &[1; 32], &json!({}), at).await?;
    }
    let now = 4 + idempotency::KEPT_MS;
    for (removed, why) in [
        (2, "the two oldest"),
        (2, "those of one moment go together"),
        (1, "the last that is a day old"),
        (0, "the younger one stays"),
    ] {
        assert_eq!(idempotency::purge(&mut tx, now, 2).await?, removed, "{why}");
    }
    tx.commit().await?;
    Ok(())
}
