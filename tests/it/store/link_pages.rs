//! Pages of lists of links by words and filters: the scan of the next links, and the index behind it.

use anyhow::{Result, ensure};
use kernel::{
    domain::{
        grant::Limit,
        listing::ListRequest,
        page::{PageRequest, SortOrder},
    },
    store::listing::Selection,
};
use redirects::{
    service::redirections::{self, Listing},
    store::redirection_lists,
};
use serde_json::json;
use shared::id::ResourceId;
use tests::db::{Engine, TestApp};

use super::{
    links::{by, create_as, create_many, fill, forget, found, page_with, with_words},
    redirections::{execute, product},
};

super::super::on_both_engines!(
    pages_of_a_query_hold_each_link_once,
    pages_are_the_same_however_few_links_are_scanned_first,
    lists_by_words_use_the_index,
);

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

/// Makes links by one request, so all of one time: each third has the tag and the title "rare", the others "often".
async fn array(made: &TestApp, product: ResourceId, name: &str, count: usize) -> Result<()> {
    let bodies = (0..count).map(|n| {
        let what = if n % 3 == 0 { "rare" } else { "often" };
        json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "title": what,
            "tags": [what], "customFields": {"n": n}, "shortId": format!("{name}{n}")})
    });
    create_many(made, bodies).await
}

/// The short ids of all pages of a list.
async fn all_pages(
    made: &TestApp,
    listing: &Listing,
    (sort, per_page): (SortOrder, u32),
    first: u32,
) -> Result<Vec<String>> {
    let mut page = PageRequest { per_page, sort, ..PageRequest::default() };
    let mut seen = Vec::new();
    loop {
        let request = ListRequest { page, ..listing.request.clone() };
        let found = page_with(made, made.account, &Listing { request, ..listing.clone() }, first).await?;
        ensure!(found.items.len() <= per_page as usize);
        seen.extend(found.items.iter().map(|item| item.redirect.short_id.to_string()));
        page.after = found.next;
        if page.after.is_none() {
            return Ok(seen);
        }
    }
}

async fn pages_are_the_same_however_few_links_are_scanned_first(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let p = product(&made).await?;
    fill(&made).await?;
    // More than one statement writes the details of the first array.
    for (name, count) in [("a", 60), ("b", 1), ("c", 20)] {
        array(&made, p, name, count).await?;
    }
    let oldest = PageRequest { per_page: 1, sort: SortOrder::Ascending, ..PageRequest::default() };
    let request = ListRequest { page: oldest, ..ListRequest::default() };
    let oldest = page_with(&made, made.account, &Listing { request, ..Listing::default() }, 3).await?;
    let begin = oldest.items[0].redirect.created_at.0;
    let both = |q: &str, filter: &str| -> Result<Listing> {
        Ok(Listing { words: with_words(q)?.words, ..by(filter)? })
    };
    let of_product = Listing { product: Some(p.as_str().parse()?), ..Listing::default() };
    for (listing, count) in [
        (Listing::default(), 81),
        (with_words("example")?, 81),
        (with_words("rare")?, 28),
        (with_words("often a1")?, 8),
        (with_words("nothing")?, 0),
        (by("tags=rare")?, 28),
        (by("customFields.n=0")?, 3),
        (by("tags=often&title=rare")?, 0),
        (of_product, 81),
        (both("rare", "shortId~c")?, 7),
        (both("often", "tags=often&customFields.n<5")?, 6),
        // Old links and new ones: the scan begins where the filter does.
        (both("often", &format!("createdAt<={begin}"))?, 40),
        (both("often", &format!("createdAt<{begin}"))?, 0),
        (both("often", &format!("createdAt>{begin}"))?, 13),
        (both("often", &format!("createdAt>={begin}"))?, 53),
        (both("rare", &format!("tags=rare&createdAt={begin}"))?, 20),
        (both("rare", &format!("createdAt<0|createdAt>{begin}"))?, 8),
    ] {
        for sort in [SortOrder::Ascending, SortOrder::Descending] {
            // As many as there are links: none of them is looked for by the index.
            let expected = all_pages(&made, &listing, (sort, 100), 10_000).await?;
            ensure!(expected.len() == count, "{listing:?}: {expected:?}");
            for (first, per_page) in [(0, 7), (1, 5), (3, 2), (3, 5), (20, 7), (80, 30), (81, 30)] {
                let seen = all_pages(&made, &listing, (sort, per_page), first).await?;
                ensure!(seen == expected, "{listing:?} {sort:?} {first} {per_page}: {seen:?}");
            }
        }
    }
    // A filter that few links meet does not make the scan longer: SQLite would find this link without its search terms.
    forget(&made, engine, "= (SELECT seq FROM redirections WHERE short_id = 'a0')").await?;
    let one = both("a0", "shortId=a0")?;
    for (first, count) in [(3, 0), (81, usize::from(engine == Engine::Sqlite))] {
        let found = page_with(&made, made.account, &one, first).await?;
        ensure!(found.items.len() == count, "{first}: {found:?}");
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
    // Found by the index, behind the 10,000 links that are scanned first.
    let rare = if engine == Engine::Postgres {
        "N1234N12340N12341N12342N12343N12344N12345N12346N12347N12348N12349"
    } else {
        ""
    };
    ensure!(found(&made, &made.caller(), &with_words("n1234")?).await? == rare);
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
