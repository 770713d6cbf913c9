//! Redirections in the store: revisions, tombstones, chains, lists.

mod repeats;
mod thngs;

use anyhow::Result;
use kernel::{
    domain::{
        access::Actor,
        listing::ListRequest,
        page::{PageRequest, SortOrder},
    },
    error::ServiceError,
    service::access::Caller,
    store::Ctx,
};
use redirects::{
    domain::redirection::{Draft, Redirection, Writable},
    service::redirections::{self, DomainChoice, ItemResult, Listing},
    store::log,
};
use serde_json::json;
use shared::{
    id::{AccountId, ResourceId},
    problem::Code,
    short_url::{Scheme, ShortDomain},
    wire::stream::Change,
};
use tenants::store::accounts;
use tests::db::{Engine, TestApp, random16};

use super::schema::run;

/// Adds a product without the service, so that these tests stand on the tables alone.
pub(crate) async fn product(made: &TestApp) -> Result<ResourceId> {
    resource_of(made, made.account).await
}

/// A service, and a product in it.
pub(crate) async fn app_with_product(engine: Engine) -> Result<(TestApp, ResourceId)> {
    let made = TestApp::new(engine).await?;
    let product = product(&made).await?;
    Ok((made, product))
}

pub(crate) async fn resource_of(made: &TestApp, account: AccountId) -> Result<ResourceId> {
    let id = shared::id::ProductId::new(made.app.core.clock.now().0, random16()?);
    let sql = format!(
        "INSERT INTO products (id, account_id, name, doc, created_at, updated_at) \
         VALUES ('{id}', '{account}', 'Bag', '{{}}', 1, 1)"
    );
    execute(made, &sql).await?;
    Ok(id.into())
}

pub(crate) async fn execute(made: &TestApp, sql: &str) -> Result<()> {
    run(&made.db.location, &[sql.to_owned()]).await
}

pub(crate) fn draft(platform_id: ResourceId, target: &str, short_id: Option<&str>) -> Draft {
    let body = json!({"platformId": platform_id, "defaultRedirectUrl": target, "shortId": short_id});
    Draft::parse(&body, None).unwrap()
}

pub(crate) async fn create(
    made: &TestApp,
    platform_id: ResourceId,
    target: &str,
    short_id: Option<&str>,
) -> Result<Redirection, ServiceError> {
    let draft = draft(platform_id, target, short_id);
    let done =
        redirections::create(&made.app.redirects, &made.caller(), draft, DomainChoice::default(), None, None)
            .await?;
    Ok(done.value)
}

pub(crate) fn writable(target: &str) -> Writable {
    Writable::parse(&json!({"defaultRedirectUrl": target})).unwrap()
}

fn refusal(result: Result<impl std::fmt::Debug, ServiceError>) -> (Code, String) {
    match result.unwrap_err() {
        ServiceError::Refused { code, errors } => (code, errors.join(" ")),
        other => panic!("not a refusal: {other}"),
    }
}

super::super::on_both_engines!(
    a_redirection_is_created_replaced_and_deleted,
    short_ids_are_unique_ignoring_case_and_never_reused,
    a_case_sensitive_domain_distinguishes_letter_case,
    loops_and_long_chains_are_refused,
    a_bulk_create_keeps_valid_items_and_reports_invalid_ones,
    redirections_are_isolated_between_accounts,
    revisions_are_gapless_under_concurrency,
    lists_page_in_order_of_creation,
);

async fn a_redirection_is_created_replaced_and_deleted(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (app, actor) = (&made.app, made.caller());
    let product = product(&made).await?;
    let one = create(&made, product, "https://example.com/a", None).await?;
    assert_eq!(one.redirect.short_id.as_str().len(), 10);
    assert_eq!((one.hits, one.rev), (0, 1));
    assert_eq!(one.redirect.created_at, one.redirect.updated_at);
    assert_eq!(one.redirect.product_id.map(|id| id.to_string()), Some(product.to_string()));

    let id = one.redirect.short_id.to_string();
    let changed = redirections::replace(
        &app.redirects,
        &actor,
        DomainChoice::default(),
        vec![id.to_lowercase()],
        writable("https://example.com/b"),
    )
    .await?;
    assert_eq!(changed.rev, 2);
    let found = redirections::find(&app.redirects, &actor, DomainChoice::default(), &id).await?;
    assert_eq!(&*found.redirect.target, "https://example.com/b");
    assert!(found.redirect.updated_at > found.redirect.created_at);
    assert_eq!(found, changed.value[0]);

    let gone =
        redirections::delete(&app.redirects, &actor, DomainChoice::default(), vec![id.clone()]).await?;
    assert_eq!(gone.rev, 3);
    assert_eq!(
        refusal(redirections::find(&app.redirects, &actor, DomainChoice::default(), &id).await).0,
        Code::NotFound
    );
    let again = redirections::delete(&app.redirects, &actor, DomainChoice::default(), vec![id.clone()]).await;
    assert_eq!(refusal(again).0, Code::NotFound);

    let events = log::list_after(&mut app.core.db.read().await?, app.hub.epoch(), 0, 10).await?;
    let values: Vec<Option<&str>> = events
        .iter()
        .map(|event| match &event.change {
            Change::Redirect(_, value) => value.as_ref().map(|redirect| &*redirect.target),
            Change::Domain(_)
            | Change::Rules(_)
            | Change::Withhold(..)
            | Change::Certificate(..)
            | Change::Challenge(_)
            | Change::Unreadable(_) => {
                panic!("only redirections were changed")
            }
        })
        .collect();
    assert_eq!(values, [Some("https://example.com/a"), Some("https://example.com/b"), None]);
    Ok(())
}

async fn short_ids_are_unique_ignoring_case_and_never_reused(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("Summer")).await?;
    let twin = create(&made, product, "https://example.com/", Some("SUMMER")).await;
    assert_eq!(refusal(twin).0, Code::ShortIdTaken);
    let id = vec!["summer".to_owned()];
    redirections::delete(&made.app.redirects, &made.caller(), DomainChoice::default(), id).await?;
    let reborn = create(&made, product, "https://example.com/", Some("summer")).await;
    assert_eq!(refusal(reborn).0, Code::ShortIdTaken, "a tombstone holds its short id");
    Ok(())
}

async fn a_case_sensitive_domain_distinguishes_letter_case(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let mut domain = ShortDomain::new(Scheme::Https, "old.example")?;
    domain.case_sensitive = true;
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert_domain(&mut tx, made.account, &domain).await?;
    tx.commit().await?;
    let choice = DomainChoice { named: Some("OLD.example".to_owned()), host: None };
    for (id, target) in [("aBc", "https://example.com/1"), ("abc", "https://example.com/2")] {
        let draft = draft(product, target, Some(id));
        redirections::create(&made.app.redirects, &made.caller(), draft, choice.clone(), None, None).await?;
    }
    let found = redirections::find(&made.app.redirects, &made.caller(), choice.clone(), "aBc").await?;
    assert_eq!(&*found.redirect.target, "https://example.com/1");
    assert_eq!(
        refusal(redirections::find(&made.app.redirects, &made.caller(), choice, "ABC").await).0,
        Code::NotFound
    );
    Ok(())
}

async fn loops_and_long_chains_are_refused(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let this = create(&made, product, "https://TN.GG/self", Some("self")).await;
    assert_eq!(
        refusal(this),
        (Code::Invalid, "defaultRedirectUrl leads back to the short URL itself.".to_owned())
    );
    let by_tag = create(&made, product, "https://tn.gg/{shortId}?x={platformId}", Some("tag")).await;
    assert!(refusal(by_tag).1.contains("leads back"), "what counts is the target with its tags expanded");
    create(&made, product, "https://example.com/", Some("fine")).await?;
    let (ids, target) = (vec!["fine".to_owned()], writable("https://tn.gg/{shortId}"));
    let by_tag =
        redirections::replace(&made.app.redirects, &made.caller(), DomainChoice::default(), ids, target)
            .await;
    assert!(refusal(by_tag).1.contains("leads back"));
    // A link to a short id that is not there yet is no loop, until somebody closes it.
    create(&made, product, "https://tn.gg/b", Some("a")).await?;
    assert!(refusal(create(&made, product, "https://tn.gg/A?x=1", Some("b")).await).1.contains("leads back"));
    create(&made, product, "https://example.com", Some("c0")).await?;
    for n in 1..=4 {
        create(&made, product, &format!("https://tn.gg/c{}", n - 1), Some(&format!("c{n}"))).await?;
    }
    let deep = create(&made, product, "https://tn.gg/c4", Some("c5")).await;
    assert!(refusal(deep).1.contains("more than 5"));
    // Within one request too.
    let items = vec![
        Ok(draft(product, "https://tn.gg/y", Some("x"))),
        Ok(draft(product, "https://tn.gg/x", Some("y"))),
    ];
    let (caller, choice) = (made.caller(), DomainChoice::default());
    let done = redirections::create_many(&made.app.redirects, &caller, items, choice, None, None).await?;
    assert!(
        done.value.iter().all(|item| matches!(item, ItemResult::Refused { status: 400, .. })),
        "{done:?}"
    );
    Ok(())
}

async fn a_bulk_create_keeps_valid_items_and_reports_invalid_ones(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("TAKEN")).await?;
    let stranger = ResourceId::new(1, random16()?);
    let items = vec![
        Ok(draft(product, "https://example.com/1", Some("one"))),
        Err(vec!["platformId is required.".to_owned()]),
        Ok(draft(product, "https://example.com/2", Some("taken"))),
        Ok(draft(stranger, "https://example.com/3", None)),
        Ok(draft(product, "https://example.com/4", Some("ONE"))),
        Ok(draft(product, "https://example.com/5", None)),
    ];
    let (caller, choice) = (made.caller(), DomainChoice::default());
    let done = redirections::create_many(&made.app.redirects, &caller, items, choice, None, None).await?;
    let statuses: Vec<u16> = done
        .value
        .iter()
        .map(|item| match item {
            ItemResult::Created { status, .. } | ItemResult::Refused { status, .. } => *status,
        })
        .collect();
    assert_eq!(statuses, [201, 400, 409, 400, 409, 201]);
    assert_eq!(done.rev, 3, "only what was created took a revision");
    let found =
        redirections::find(&made.app.redirects, &made.caller(), DomainChoice::default(), "one").await?;
    assert_eq!(&*found.redirect.target, "https://example.com/1");
    Ok(())
}

async fn redirections_are_isolated_between_accounts(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("mine")).await?;
    let other = shared::id::AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, other, "Other", true, 1).await?;
    accounts::insert_domain(&mut tx, other, &ShortDomain::new(Scheme::Https, "other.example")?).await?;
    tx.commit().await?;
    let stranger = Caller::plain(Actor { account: other, ..made.caller().actor });
    let own = resource_of(&made, other).await?;
    redirections::create(
        &made.app.redirects,
        &stranger,
        draft(own, "https://example.com/own", Some("mine")),
        DomainChoice::default(),
        None,
        None,
    )
    .await?;
    let named = DomainChoice { named: Some("tn.gg".to_owned()), host: None };
    let hosted = DomainChoice { named: None, host: Some("tn.gg".to_owned()) };
    let ids = vec!["mine".to_owned()];
    assert_eq!(
        refusal(redirections::find(&made.app.redirects, &stranger, named.clone(), "mine").await).0,
        Code::Invalid
    );
    assert_eq!(
        refusal(redirections::find(&made.app.redirects, &stranger, hosted.clone(), "mine").await).0,
        Code::NotFound
    );
    let replaced = redirections::replace(
        &made.app.redirects,
        &stranger,
        hosted.clone(),
        ids.clone(),
        writable("https://evil.example"),
    );
    assert_eq!(refusal(replaced.await).0, Code::NotFound);
    assert_eq!(
        refusal(redirections::delete(&made.app.redirects, &stranger, hosted, ids).await).0,
        Code::NotFound
    );
    let made_on_ours = redirections::create(
        &made.app.redirects,
        &stranger,
        draft(product, "https://e.com", None),
        named,
        None,
        None,
    )
    .await;
    assert_eq!(refusal(made_on_ours).0, Code::Invalid);
    let listed = redirections::list(&made.app.redirects, &stranger, &Listing::default()).await?;
    let targets: Vec<&str> = listed.items.iter().map(|item| &*item.redirect.target).collect();
    assert_eq!(targets, ["https://example.com/own"], "its own is neither deleted nor replaced");
    Ok(())
}

async fn revisions_are_gapless_under_concurrency(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let made = std::sync::Arc::new(made);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..60u32 {
        let made = made.clone();
        tasks.spawn(async move {
            // Every third one is refused, in the middle of the others' transaction.
            let target =
                if n % 3 == 0 { "https://tn.gg/loop".to_owned() } else { format!("https://example.com/{n}") };
            let id = if n % 3 == 0 { Some("loop") } else { None };
            create(&made, product, &target, id).await.is_ok()
        });
    }
    let mut created = 0;
    while let Some(done) = tasks.join_next().await {
        created += u64::from(done?);
    }
    assert_eq!(created, 40);
    let events = log::list_after(&mut made.app.core.db.read().await?, made.app.hub.epoch(), 0, 100).await?;
    let revs: Vec<u64> = events.iter().map(|event| event.rev).collect();
    assert_eq!(revs, (1..=40).collect::<Vec<u64>>());
    Ok(())
}

async fn lists_page_in_order_of_creation(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (product, other) = (product(&made).await?, product(&made).await?);
    let mut expected = Vec::new();
    for n in 0..7 {
        let owner = if n == 3 { other } else { product };
        let made = create(&made, owner, "https://example.com/", Some(&format!("id{n}"))).await?;
        expected.push(made.redirect.short_id.to_string());
    }
    let names =
        |rows: &[Redirection]| rows.iter().map(|row| row.redirect.short_id.to_string()).collect::<Vec<_>>();
    for sort in [SortOrder::Ascending, SortOrder::Descending] {
        let mut seen = Vec::new();
        let mut page = PageRequest { per_page: 3, sort, ..PageRequest::default() };
        loop {
            let request = ListRequest { page, ..ListRequest::default() };
            let listing = Listing { request, ..Listing::default() };
            let rows = redirections::list(&made.app.redirects, &made.caller(), &listing).await?;
            assert!(rows.items.len() <= 3);
            seen.extend(names(&rows.items));
            page.after = rows.next;
            if page.after.is_none() {
                break;
            }
        }
        let mut wanted = expected.clone();
        if sort == SortOrder::Descending {
            wanted.reverse();
        }
        assert_eq!(seen, wanted);
    }
    let listing = Listing { platform_id: Some(other), ..Listing::default() };
    assert_eq!(
        names(&redirections::list(&made.app.redirects, &made.caller(), &listing).await?.items),
        ["id3"]
    );
    Ok(())
}
