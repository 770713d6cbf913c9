//! What a change of a Thng does to its redirections.

use anyhow::Result;
use catalog::{domain::resource::ThngChange, service::thngs};
use kernel::domain::body::Purpose;
use redirects::{
    service::redirections::{self, DomainChoice},
    store::log,
};
use serde_json::json;
use shared::wire::stream::{Change, Event};
use tests::db::{Engine, TestApp};

use super::{create, product};
use crate::on_both_engines;

on_both_engines!(a_redirection_follows_the_product_of_its_thng,);

async fn a_redirection_follows_the_product_of_its_thng(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (app, actor) = (&made.app, made.caller());
    let (first, second) = (product(&made).await?, product(&made).await?);
    let change =
        |body, purpose| ThngChange::parse(&body, purpose).map_err(|faults| anyhow::anyhow!("{faults:?}"));
    let thng = thngs::create(
        &app.core,
        &actor,
        change(json!({"name": "Bag 1", "product": first}), Purpose::Create)?,
        None,
    )
    .await?;
    let one = create(&made, thng.id.into(), "https://example.com/{productId}", Some("ONE")).await?;
    assert_eq!(one.redirect.product_id.map(Into::into), Some(first));
    let other = json!({"description": "red", "name": "Bag 1"});
    thngs::update(&app.core, &actor, thng.id.as_str(), change(other, Purpose::Update)?).await?;
    assert_eq!(
        log::load_head(&mut app.core.db.read().await?).await?.head,
        1,
        "another member changes nothing"
    );
    thngs::update(&app.core, &actor, thng.id.as_str(), change(json!({"product": second}), Purpose::Update)?)
        .await?;
    let found = redirections::find(&app.redirects, &actor, DomainChoice::default(), "ONE").await?;
    assert_eq!(found.redirect.product_id.map(Into::into), Some(second));
    assert_eq!(log::load_head(&mut app.core.db.read().await?).await?.head, 2);
    // The name goes along for the rules, and with the Thng; the product stays.
    for (step, expected) in [(3, Some("Bag one")), (4, None)] {
        match expected {
            Some(name) => {
                let renamed = change(json!({"name": name}), Purpose::Update)?;
                drop(thngs::update(&app.core, &actor, thng.id.as_str(), renamed).await?);
            }
            None => thngs::delete(&app.core, &actor, thng.id.as_str()).await?,
        }
        let events = log::list_after(&mut app.core.db.read().await?, app.hub.epoch(), step - 1, 10).await?;
        let [Event { rev, change: Change::Redirect(_, Some(told)) }] = &events[..] else {
            panic!("one redirection is published again: {events:?}")
        };
        assert_eq!((*rev, told.thng_name.as_deref()), (step, expected));
        assert_eq!(told.product_id.map(Into::into), Some(second));
        let found = redirections::find(&app.redirects, &actor, DomainChoice::default(), "ONE").await?;
        assert_eq!(found.redirect, **told, "what is read is what edges were told");
    }
    Ok(())
}
