//! Descriptive fields of links: lists by conditions and by words, and the search terms of older links.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kernel::{
    domain::{
        access::Actor,
        filter::Filter,
        grant::Limit,
        listing::{ListRequest, REDIRECTIONS},
        page::Page,
    },
    service::{
        access::Caller,
        backfill::{Next, Step},
    },
    store::{Ctx, listing::Selection},
};
use redirects::{
    domain::{
        redirection::{Draft, Redirection, Writable},
        words::WordQuery,
    },
    fill_words,
    service::redirections::{self, DomainChoice, ItemResult, Listing},
    store::{
        log, redirection_details,
        redirection_fill::{self, Progress},
        redirection_lists,
    },
};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, ResourceId},
    short_url::{Scheme, ShortDomain},
};
use tenants::store::accounts;
use tests::{
    db::{Engine, TestApp, random16},
    sql,
};

use super::redirections::{execute, product, resource_of};

super::super::on_both_engines!(
    expressions_find_their_links,
    words_find_their_links,
    words_are_of_one_account,
    words_follow_each_change,
    details_that_are_there_stay,
    links_of_older_releases_get_their_words,
    an_unreadable_link_does_not_stop_the_fill,
    a_fill_waits_for_writers_and_for_another_fill,
);

/// Links by one letter, with what is said about them. `P` and `Q` stand for two products.
fn links() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("a", "P", json!({"title": "Crème brûlée", "tags": ["summer", "x,y"], "customFields": {"n": 7}})),
        (
            "b",
            "P",
            json!({"title": "Summer Sale", "tags": ["Summer"], "customFields": {"n": "7", "c": "red"}}),
        ),
        ("c", "Q", json!({"defaultRedirectUrl": "https://shop.example.com/gr%C3%BCn/sale?x=1"})),
        ("d", "Q", json!({"title": "", "tags": [], "notes": "hidden words", "customFields": {}})),
    ]
}

pub(super) async fn create_as(
    made: &TestApp,
    caller: &Caller,
    id: &str,
    owner: ResourceId,
    more: &Value,
) -> Result<Redirection> {
    let mut body = json!({"platformId": owner, "defaultRedirectUrl": "https://example.com/", "shortId": id});
    for (name, value) in more.as_object().context("an object")? {
        body[name] = value.clone();
    }
    let draft = Draft::parse(&body, None).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let choice = DomainChoice::default();
    Ok(redirections::create(&made.app.redirects, caller, draft, choice, None, None).await?.value)
}

/// Creates links in one request, which takes a fraction of one request each.
pub(crate) async fn create_many(made: &TestApp, bodies: impl Iterator<Item = Value>) -> Result<()> {
    let drafts = bodies.map(|body| Draft::parse(&body, None)).collect();
    let choice = DomainChoice::default();
    let done =
        redirections::create_many(&made.app.redirects, &made.caller(), drafts, choice, None, None).await?;
    ensure!(done.value.iter().all(|item| matches!(item, ItemResult::Created { .. })), "{done:?}");
    Ok(())
}

/// The short ids of a list as one text, oldest first; the same by the index alone, and when few links are scanned first.
pub(super) async fn found(made: &TestApp, caller: &Caller, listing: &Listing) -> Result<String> {
    let page = redirections::list(&made.app.redirects, caller, listing).await?;
    let all = ids(&page);
    for first in [0, 2] {
        let some = ids(&page_with(made, caller.account, listing, first).await?);
        ensure!(some == all, "{some} where {first} are scanned first, and not {all}");
    }
    Ok(all)
}

fn ids(page: &Page<Redirection>) -> String {
    page.items.iter().rev().map(|item| item.redirect.short_id.as_str()).collect()
}

/// A page of an account's links, of which the next `first` ones are scanned before the index is used.
pub(super) async fn page_with(
    made: &TestApp,
    account: AccountId,
    listing: &Listing,
    first: u32,
) -> Result<Page<Redirection>> {
    let within: Vec<(&'static str, &str)> =
        listing.product.as_ref().map(|id| ("product", id.as_str())).into_iter().collect();
    let selection = Selection { account, limit: &Limit::Account, request: &listing.request, within: &within };
    let mut conn = made.app.core.db.read().await?;
    Ok(redirection_lists::list_with(&mut conn, listing.words.clone(), &selection, first).await?)
}

pub(super) fn by(filter: &str) -> Result<Listing> {
    let filter = Filter::parse(filter, REDIRECTIONS.fields).map_err(|fault| anyhow::anyhow!(fault))?;
    let request = ListRequest { filter: Some(filter), ..ListRequest::default() };
    Ok(Listing { request, ..Listing::default() })
}

pub(super) fn with_words(q: &str) -> Result<Listing> {
    let words = WordQuery::parse(q).map_err(|fault| anyhow::anyhow!(fault))?;
    Ok(Listing { words, ..Listing::default() })
}

/// A service with the links above, whose words are said to be all there.
async fn filled(engine: Engine) -> Result<(TestApp, ResourceId, ResourceId)> {
    let made = TestApp::new(engine).await?;
    let (p, q) = (product(&made).await?, product(&made).await?);
    for (id, owner, more) in links() {
        create_as(&made, &made.caller(), id, if owner == "P" { p } else { q }, &more).await?;
    }
    fill(&made).await?;
    Ok((made, p, q))
}

pub(super) async fn fill(made: &TestApp) -> Result<usize> {
    let (db, mut count) = (&made.app.core.db, 0);
    fill_words::open(db).await?;
    loop {
        let step = fill_words::step(db).await?;
        count += step.rows;
        if step.next == Next::Done {
            return Ok(count);
        }
    }
}

/// Makes some links as a release before left them: without details and search terms.
pub(super) async fn forget(made: &TestApp, engine: Engine, condition: &str) -> Result<()> {
    execute(made, &format!("DELETE FROM redirection_details WHERE seq {condition}")).await?;
    if engine == Engine::Sqlite {
        execute(made, &format!("DELETE FROM redirection_words WHERE rowid {condition}")).await?;
    }
    Ok(())
}

async fn expressions_find_their_links(engine: Engine) -> Result<()> {
    let (made, p, q) = filled(engine).await?;
    for (filter, expected) in [
        ("tags=summer", "a"),
        ("tags=Summer", "b"),
        (r"tags=x\,y", "a"),
        ("!tags=summer", "bcd"),
        ("tags~su", "a"),
        ("tags=summer|tags=Summer", "ab"),
        ("tags=summer&title~Cr", "a"),
        ("tags=summer&title~Su", ""),
        ("customFields.n=7", "ab"),
        ("customFields.n=7&customFields.c=red", "b"),
        ("customFields.n>6", "a"),
        ("title=Summer Sale", "b"),
        ("title~Sum", "b"),
        ("title=", "d"),
        ("shortId=a", "a"),
        ("defaultRedirectUrl~https://shop", "c"),
        ("type=product", "abcd"),
        ("createdAt>0", "abcd"),
        ("updatedAt<0", ""),
        ("product=P", "ab"),
        ("product=Q&!title=", "c"),
        ("platformId=Q", "cd"),
    ] {
        let filter = filter.replace("=P", &format!("={p}")).replace("=Q", &format!("={q}"));
        ensure!(found(&made, &made.caller(), &by(&filter)?).await? == expected, "{filter}");
    }
    let of_product = Listing { product: Some(p.as_str().parse()?), ..Listing::default() };
    ensure!(found(&made, &made.caller(), &of_product).await? == "ab");
    Ok(())
}

async fn words_find_their_links(engine: Engine) -> Result<()> {
    let (made, p, _) = filled(engine).await?;
    for (q, expected) in [
        ("summer", "ab"),
        ("SUMM", "ab"),
        ("sale", "bc"),
        ("sale summer", "b"),
        ("creme", "a"),
        ("crème BRÛ", "a"),
        ("grun", "c"),
        ("shop.example.com", "c"),
        ("example", "abcd"),
        ("com/grün", "c"),
        ("https", ""),
        ("hidden", ""),
        ("y", "a"),
        ("ummer", ""),
        ("' | summer", "ab"),
        ("\"summer\" *", "ab"),
        ("summer:* OR", ""),
    ] {
        ensure!(found(&made, &made.caller(), &with_words(q)?).await? == expected, "{q}");
    }
    let id = with_words(&p.as_str().to_lowercase())?;
    ensure!(found(&made, &made.caller(), &id).await? == "ab", "by the id of the product");
    let both = Listing { words: with_words("summer")?.words, ..by("tags=Summer")? };
    ensure!(found(&made, &made.caller(), &both).await? == "b");
    Ok(())
}

async fn words_are_of_one_account(engine: Engine) -> Result<()> {
    let (made, ..) = filled(engine).await?;
    let other = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, other, "Other", true, 1).await?;
    accounts::insert_domain(&mut tx, other, &ShortDomain::new(Scheme::Https, "other.example")?).await?;
    tx.commit().await?;
    let stranger = Caller::plain(Actor { account: other, ..made.caller().actor });
    let own = resource_of(&made, other).await?;
    create_as(&made, &stranger, "z", own, &json!({"title": "Summer", "tags": ["summer"]})).await?;
    for (listing, mine) in
        [(with_words("summer")?, "ab"), (by("tags=summer")?, "a"), (Listing::default(), "abcd")]
    {
        ensure!(found(&made, &made.caller(), &listing).await? == mine);
        ensure!(found(&made, &stranger, &listing).await? == "z");
    }
    // Words of two accounts that have one mark are told apart by the account of the link.
    let take = "UPDATE redirections SET account_id = (SELECT account_id FROM redirections WHERE short_id = 'a') \
        WHERE short_id = 'z'";
    let back = format!("UPDATE redirections SET account_id = '{other}' WHERE short_id = 'b'");
    execute(&made, take).await?;
    execute(&made, &back).await?;
    // By the index alone: SQLite compares the first links without it.
    let summer = with_words("summer")?;
    ensure!(ids(&page_with(&made, made.account, &summer, 0).await?) == "a");
    ensure!(ids(&page_with(&made, other, &summer, 0).await?).is_empty());
    Ok(())
}

async fn words_follow_each_change(engine: Engine) -> Result<()> {
    let (made, ..) = filled(engine).await?;
    let change = async |body: Value| -> Result<Redirection> {
        let writable = Writable::parse(&body).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let ids = vec!["b".to_owned()];
        let choice = DomainChoice::default();
        let done = redirections::replace(&made.app.redirects, &made.caller(), choice, ids, writable).await?;
        done.value.into_iter().next().context("one")
    };
    let kept = change(json!({"defaultRedirectUrl": "https://new.example/"})).await?;
    ensure!(kept.details.described.title.as_deref() == Some("Summer Sale"), "what is left out stays");
    for (q, expected) in [("new", "b"), ("sale", "bc"), ("example", "abcd")] {
        ensure!(found(&made, &made.caller(), &with_words(q)?).await? == expected, "{q}");
    }
    change(json!({"defaultRedirectUrl": "https://new.example/", "title": "Winter", "tags": []})).await?;
    for (q, expected) in [("winter", "b"), ("sale", "c"), ("summer", "a")] {
        ensure!(found(&made, &made.caller(), &with_words(q)?).await? == expected, "{q}");
    }
    ensure!(found(&made, &made.caller(), &by("tags=Summer")?).await?.is_empty());
    let ids = vec!["b".to_owned()];
    redirections::delete(&made.app.redirects, &made.caller(), DomainChoice::default(), ids).await?;
    ensure!(found(&made, &made.caller(), &with_words("winter")?).await?.is_empty());
    ensure!(count(&made, "SELECT COUNT(*) FROM redirection_details").await? == 3, "nothing of it is left");
    if engine == Engine::Sqlite {
        let words = "SELECT COUNT(*) FROM redirection_words";
        ensure!(count(&made, words).await? == 3, "nothing of it is left");
    }
    Ok(())
}

pub(super) async fn count(made: &TestApp, sql: &str) -> Result<i64> {
    sql::count(&made.app.core.db, sql).await
}

async fn links_of_older_releases_get_their_words(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let p = product(&made).await?;
    let old = |n: usize| json!({"platformId": p, "defaultRedirectUrl": "https://example.com/", "shortId": format!("old{n}")});
    create_many(&made, (0..450).map(old)).await?;
    // One link was changed since.
    forget(&made, engine, "<> 7").await?;
    execute(&made, "UPDATE redirection_fill SET after = 0, done = false").await?;
    redirections::delete(
        &made.app.redirects,
        &made.caller(),
        DomainChoice::default(),
        vec!["old9".to_owned()],
    )
    .await?;
    let of_product = Listing { product: Some(p.as_str().parse()?), ..Listing::default() };
    let page = redirections::list(&made.app.redirects, &made.caller(), &of_product).await?;
    ensure!(page.items.len() == 30, "conditions on columns hold before");
    ensure!(fill(&made).await? == 448, "all but the one that has its words, and the deleted one");
    ensure!(fill(&made).await? == 0, "once");
    ensure!(count(&made, "SELECT COUNT(*) FROM redirection_details").await? == 449);
    ensure!(
        found(&made, &made.caller(), &with_words("old44")?).await?
            == "old44old440old441old442old443old444old445old446old447old448old449"
    );
    ensure!(found(&made, &made.caller(), &with_words("old9 example")?).await?.contains("old90"));
    let page = redirections::list(&made.app.redirects, &made.caller(), &of_product).await?;
    ensure!(page.items.len() == 30 && page.next.is_some());
    // A replica of the release before makes one, and this one starts again.
    create_as(&made, &made.caller(), "late", p, &json!({})).await?;
    forget(&made, engine, "= (SELECT seq FROM redirections WHERE short_id = 'late')").await?;
    ensure!(page_with(&made, made.account, &with_words("late")?, 0).await?.items.is_empty());
    // SQLite needs no search terms of the first links, and asks no index that lacks some where it has seen them all.
    let seen = redirections::list(&made.app.redirects, &made.caller(), &with_words("late")?).await?;
    ensure!(ids(&seen) == if engine == Engine::Sqlite { "late" } else { "" });
    ensure!(fill(&made).await? == 1);
    ensure!(found(&made, &made.caller(), &with_words("late")?).await? == "late");
    Ok(())
}

async fn details_that_are_there_stay(engine: Engine) -> Result<()> {
    let (made, ..) = filled(engine).await?;
    let caller = made.caller();
    let choice = DomainChoice::default();
    let mut link = redirections::find(&made.app.redirects, &caller, choice, "b").await?;
    link.details.described.title = Some("Autumn".to_owned());
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    redirection_details::insert(&mut tx, std::iter::once(&link)).await?;
    tx.commit().await?;
    ensure!(found(&made, &caller, &with_words("autumn")?).await?.is_empty());
    ensure!(found(&made, &caller, &with_words("summer sale")?).await? == "b");
    Ok(())
}

async fn an_unreadable_link_does_not_stop_the_fill(engine: Engine) -> Result<()> {
    let (made, ..) = filled(engine).await?;
    let begin = "UPDATE redirection_fill SET after = 0, done = false";
    for broken in ["type = 'box'", r#"type = 'product', scopes = '"x"'"#] {
        forget(&made, engine, "> 0").await?;
        execute(&made, begin).await?;
        execute(&made, &format!("UPDATE redirections SET {broken} WHERE short_id = 'b'")).await?;
        ensure!(fill(&made).await? == 3, "{broken}");
    }
    execute(&made, "UPDATE redirections SET type = 'product', scopes = '{}' WHERE short_id = 'b'").await?;
    execute(&made, begin).await?;
    ensure!(fill(&made).await? == 1);
    // What people said about them is gone with the details; the rest is found.
    ensure!(found(&made, &made.caller(), &with_words("example")?).await? == "abcd");
    Ok(())
}

async fn a_fill_waits_for_writers_and_for_another_fill(engine: Engine) -> Result<()> {
    let (made, ..) = filled(engine).await?;
    // SQLite has one writer anyway.
    if engine == Engine::Sqlite {
        return Ok(());
    }
    forget(&made, engine, "> 0").await?;
    execute(&made, "UPDATE redirection_fill SET after = 0, done = false").await?;
    let db = &made.app.core.db;
    let mut other = db.begin(&Ctx::default()).await?;
    ensure!(redirection_fill::lock(&mut other).await? == Progress::After(0));
    ensure!(fill_words::step(db).await? == Step { rows: 0, next: Next::Wait });
    other.commit().await?;
    let mut writer = db.begin(&Ctx::default()).await?;
    log::lock(&mut writer).await?;
    let blocked = tokio::time::timeout(Duration::from_millis(300), fill_words::step(db)).await;
    ensure!(blocked.is_err(), "a step writes beside a writer of links");
    writer.commit().await?;
    ensure!(fill(&made).await? == 4);
    Ok(())
}
