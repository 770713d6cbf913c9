//! What people say about links: lists by conditions and by words, and the words of older links.

use anyhow::{Context, Result, ensure};
use kernel::{
    domain::{
        access::Actor,
        filter::Filter,
        grant::Limit,
        listing::{ListRequest, REDIRECTIONS},
        page::{PageRequest, SortOrder},
    },
    service::access::Caller,
    store::{Ctx, Db, listing::Selection},
};
use redirects::{
    domain::{
        redirection::{Draft, Redirection, Writable},
        words::WordQuery,
    },
    fill_words,
    service::redirections::{self, DomainChoice, Listing},
    store::redirection_lists,
};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, ResourceId},
    short_url::{Scheme, ShortDomain},
};
use sqlx::AssertSqlSafe;
use tenants::store::accounts;
use tests::db::{Engine, TestApp, random16};

use super::redirections::{execute, product, resource_of};

super::super::on_both_engines!(
    expressions_find_their_links,
    words_find_their_links,
    words_are_of_one_account,
    words_follow_each_change,
    links_of_older_releases_get_their_words,
    pages_of_a_query_hold_each_link_once,
    lists_by_words_use_the_index,
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

async fn create_as(
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

/// The short ids of a list as one text, oldest first.
async fn found(made: &TestApp, caller: &Caller, listing: &Listing) -> Result<String> {
    let page = redirections::list(&made.app.redirects, caller, listing).await?;
    Ok(page.items.iter().rev().map(|item| item.redirect.short_id.as_str()).collect())
}

fn by(filter: &str) -> Result<Listing> {
    let filter = Filter::parse(filter, REDIRECTIONS.fields).map_err(|fault| anyhow::anyhow!(fault))?;
    let request = ListRequest { filter: Some(filter), ..ListRequest::default() };
    Ok(Listing { request, ..Listing::default() })
}

fn with_words(q: &str) -> Result<Listing> {
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

async fn fill(made: &TestApp) -> Result<usize> {
    let (db, mut count) = (&made.app.core.db, 0);
    fill_words::open(db).await?;
    loop {
        let filled = fill_words::step(db).await?;
        count += filled.links;
        if filled.is_done {
            return Ok(count);
        }
    }
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
    ensure!(found(&made, &made.caller(), &with_words("summer")?).await? == "a");
    ensure!(found(&made, &stranger, &with_words("summer")?).await?.is_empty());
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

async fn count(made: &TestApp, sql: &str) -> Result<i64> {
    let sql = AssertSqlSafe(sql.to_owned());
    Ok(match &made.app.core.db {
        Db::Pg(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        Db::Sqlite { read, .. } => sqlx::query_scalar(sql).fetch_one(read).await?,
    })
}

async fn links_of_older_releases_get_their_words(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let p = product(&made).await?;
    for n in 0..450 {
        create_as(&made, &made.caller(), &format!("old{n}"), p, &json!({})).await?;
    }
    // As a release before the words left them; one link was changed since.
    execute(&made, "DELETE FROM redirection_details WHERE seq <> 7").await?;
    if engine == Engine::Sqlite {
        execute(&made, "DELETE FROM redirection_words WHERE rowid <> 7").await?;
    }
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
    let late = "(SELECT seq FROM redirections WHERE short_id = 'late')";
    execute(&made, &format!("DELETE FROM redirection_details WHERE seq = {late}")).await?;
    if engine == Engine::Sqlite {
        execute(&made, &format!("DELETE FROM redirection_words WHERE rowid = {late}")).await?;
    }
    ensure!(found(&made, &made.caller(), &with_words("late")?).await?.is_empty());
    ensure!(fill(&made).await? == 1);
    ensure!(found(&made, &made.caller(), &with_words("late")?).await? == "late");
    Ok(())
}

async fn pages_of_a_query_hold_each_link_once(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let p = product(&made).await?;
    let mut expected = Vec::new();
    for n in 0..10 {
        let tag = if n % 3 == 0 { "other" } else { "same" };
        create_as(&made, &made.caller(), &format!("id{n}"), p, &json!({"tags": [tag]})).await?;
        if n % 3 != 0 {
            expected.push(format!("id{n}"));
        }
    }
    for listing in [with_words("same")?, by("tags=same")?] {
        for sort in [SortOrder::Ascending, SortOrder::Descending] {
            let (mut page, mut seen) =
                (PageRequest { per_page: 2, sort, ..PageRequest::default() }, Vec::new());
            loop {
                let request = ListRequest { page, ..listing.request.clone() };
                let listing = Listing { request, ..listing.clone() };
                let found = redirections::list(&made.app.redirects, &made.caller(), &listing).await?;
                seen.extend(found.items.iter().map(|item| item.redirect.short_id.to_string()));
                page.after = found.next;
                if page.after.is_none() {
                    break;
                }
            }
            if sort == SortOrder::Descending {
                seen.reverse();
            }
            ensure!(seen == expected, "{sort:?}: {seen:?}");
        }
    }
    Ok(())
}

async fn lists_by_words_use_the_index(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let p = product(&made).await?;
    if engine == Engine::Postgres {
        let many = format!(
            "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, target, \
             forward_query, scopes, hits, created_at, updated_at, rev) SELECT 'tn.gg', 'N' || n, 'N' || n, '{}', \
             'product', '{p}', 'https://example.com/', false, '{{}}', 0, n, n, 1 FROM generate_series(1, 20000) n",
            made.account
        );
        execute(&made, &many).await?;
        fill(&made).await?;
        execute(&made, "ANALYZE redirections").await?;
        // Without what waits to be added to the index of words, which each search reads.
        execute(&made, "VACUUM ANALYZE redirection_details").await?;
    }
    let within = [];
    for (listing, index) in [
        (with_words("n1234")?, "redirection_details_words"),
        (by("tags=rare")?, "redirection_details_words"),
        (Listing::default(), "redirections_account"),
    ] {
        let selection = Selection {
            account: made.account,
            limit: &Limit::Account,
            request: &listing.request,
            within: &within,
        };
        let mut conn = made.app.core.db.read().await?;
        let explained = redirection_lists::explain(&mut conn, listing.words.clone(), &selection).await?;
        let plan = explained.plan.join("\n");
        if engine == Engine::Postgres {
            ensure!(plan.contains(index), "{plan}");
        } else if index == "redirections_account" {
            ensure!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{plan}");
        } else {
            ensure!(plan.contains("SCAN w VIRTUAL TABLE INDEX"), "{plan}");
            ensure!(plan.contains("SEARCH r USING INTEGER PRIMARY KEY"), "{plan}");
        }
    }
    Ok(())
}
