//! How long lists of links take by words and by conditions, and what the words cost a write. On SQLite, or with
//! `WAYMARK_TEST_DATABASE_URL` on Postgres.

use std::{
    io::{Write, stdout},
    time::{Duration, Instant},
};

use ::tests::hist::Hist;
use anyhow::{Context, Result, anyhow, ensure};
use kernel::{
    domain::{
        filter::Filter,
        grant::Limit,
        listing::{ListRequest, REDIRECTIONS},
        page::{PageRequest, SortOrder},
    },
    service::backfill::Next,
    store::{Ctx, listing::Selection},
};
use redirects::{
    domain::{
        redirection::{Draft, Redirection, Writable},
        words::WordQuery,
    },
    fill_words,
    service::redirections::{self, DomainChoice, Listing},
    store::{redirection_details, redirection_lists},
};
use serde_json::json;
use shared::id::ProductId;
use tests::db::{Engine, POSTGRES_URL, TestApp};

use crate::{links::Rng, product, stats::Spread};

/// Links that one request makes.
const CHUNK: usize = 1_000;

/// Words of titles; one in [`WORDS`] links has a certain one.
const WORDS: usize = 5_000;

/// Links of one campaign, which are made one after the other.
const CAMPAIGN: usize = 500;

/// Measures searches over links, and what their words cost a write
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Links of the account
    #[arg(long, default_value_t = 1_000_000)]
    links: usize,
    /// Times that each query is asked
    #[arg(long, default_value_t = 40)]
    repeats: usize,
    /// Print query plans
    #[arg(long)]
    plans: bool,
}

/// Fills, asks and prints.
///
/// # Errors
/// Something could not be started or measured, or an answer is wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        args = Args { links: 2_000, repeats: 2, ..args };
    }
    ensure!(args.links >= CHUNK && args.repeats >= 1, "sizes are out of range");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&args))?;
    Ok(true)
}

async fn measure(args: &Args) -> Result<()> {
    let engine = if std::env::var_os(POSTGRES_URL).is_some() { Engine::Postgres } else { Engine::Sqlite };
    let made = TestApp::new(engine).await?;
    fill_words::open(&made.app.core.db).await?;
    while fill_words::step(&made.app.core.db).await?.next != Next::Done {}
    let product = product::insert(&made).await?;
    let begun = Instant::now();
    let mut rng = Rng::new(1);
    for from in (0..args.links).step_by(CHUNK) {
        let drafts = (from..args.links.min(from + CHUNK)).map(|at| draft(product, at, &mut rng));
        let drafts = drafts.collect::<Result<Vec<Draft>>>()?.into_iter().map(Ok).collect();
        let (redirects, choice) = (&made.app.redirects, DomainChoice::default());
        redirections::create_many(redirects, &made.caller(), drafts, choice, None, None).await?;
    }
    writeln!(
        stdout(),
        "{engine:?}: {} links in arrays of {CHUNK}, µs each {:.1}",
        args.links,
        begun.elapsed().as_secs_f64() * 1e6 / args.links as f64
    )?;
    analyze(&made).await?;
    for (name, listing) in cases(args.links, product, oldest_tenth(&made).await?)? {
        let mut hist = Hist::default();
        let mut found = 0;
        for _ in 0..args.repeats {
            let begun = Instant::now();
            let page = redirections::list(&made.app.redirects, &made.caller(), &listing).await?;
            hist.add(begun.elapsed());
            found = page.items.len();
        }
        ensure!((found > 0) != name.starts_with("none"), "{name} finds {found}");
        writeln!(
            stdout(),
            "{name}: {found} on the page, ms p50 {:.2} p99 {:.2}",
            hist.quantile_us(0.5) / 1e3,
            hist.quantile_us(0.99) / 1e3
        )?;
        if args.plans {
            let mut conn = made.app.core.db.read().await?;
            let selection = Selection {
                account: made.account,
                limit: &Limit::Account,
                request: &listing.request,
                within: &[],
            };
            let plan = redirection_lists::explain(&mut conn, listing.words.clone(), &selection).await?;
            writeln!(stdout(), "    {}", plan.plan.join("\n    "))?;
        }
    }
    writes(&made, product, args).await
}

fn draft(product: ProductId, at: usize, rng: &mut Rng) -> Result<Draft> {
    let (one, two) = (rng.below(WORDS), rng.below(WORDS));
    let campaign = at / CAMPAIGN;
    let mut body = json!({
        "platformId": product,
        "defaultRedirectUrl": format!("https://shop.example.com/campaign{campaign}/item?serial={:x}", rng.next()),
        "title": format!("Word{one} and word{two}"),
        "tags": [format!("campaign{campaign}"), if at.is_multiple_of(2) { "even" } else { "odd" }],
    });
    if at.is_multiple_of(1_000) {
        body["customFields"] = json!({"batch": at / 1_000});
    }
    Draft::parse(&body, None).map_err(|faults| anyhow!("{faults:?}"))
}

/// What is asked: words of few and of all links, new and old, and conditions. `old` is a time before most links.
fn cases(links: usize, product: ProductId, old: i64) -> Result<Vec<(String, Listing)>> {
    let words = |q: &str| -> Result<Listing> {
        Ok(Listing { words: WordQuery::parse(q).map_err(|fault| anyhow!(fault))?, ..Listing::default() })
    };
    let by = |filter: &str| -> Result<Listing> {
        let filter = Filter::parse(filter, REDIRECTIONS.fields).map_err(|fault| anyhow!(fault))?;
        let request = ListRequest { filter: Some(filter), ..ListRequest::default() };
        Ok(Listing { request, ..Listing::default() })
    };
    let last = (links - 1) / CAMPAIGN;
    let mut cases = vec![("no condition".to_owned(), Listing::default())];
    for q in ["shop", "s", "w", "word12", "word1 word2", "campaign0", "campaign1", "word77 shop example", "7"]
    {
        cases.push((format!("q={q}"), words(q)?));
    }
    cases.push(("none: q=nothing".to_owned(), words("nothing")?));
    cases.push(("none: q=shop nothing".to_owned(), words("shop nothing")?));
    for filter in ["tags=even", "tags=campaign0", "customFields.batch=1", "tags=even&title~Word1"] {
        cases.push((format!("filter={filter}"), by(filter)?));
    }
    cases.push((format!("filter=tags=campaign{last}"), by(&format!("tags=campaign{last}"))?));
    // A word of all links, where few of them are asked for.
    for (name, filter) in [
        ("old links", format!("createdAt<={old}")),
        ("new links", format!("createdAt>{old}")),
        ("tags=campaign0", "tags=campaign0".to_owned()),
        ("customFields.batch=1", "customFields.batch=1".to_owned()),
    ] {
        cases.push((format!("{name}&q=shop"), Listing { words: words("shop")?.words, ..by(&filter)? }));
    }
    cases.push(("product=".to_owned(), Listing { product: Some(product), ..Listing::default() }));
    Ok(cases)
}

/// When the oldest tenth of the links was there.
async fn oldest_tenth(made: &TestApp) -> Result<i64> {
    let mut ends = Vec::new();
    for sort in [SortOrder::Ascending, SortOrder::Descending] {
        let page = PageRequest { per_page: 1, sort, ..PageRequest::default() };
        let request = ListRequest { page, ..ListRequest::default() };
        let listing = Listing { request, ..Listing::default() };
        let found = redirections::list(&made.app.redirects, &made.caller(), &listing).await?;
        ends.push(found.items.first().context("links")?.redirect.created_at.0);
    }
    Ok(ends[0] + (ends[1] - ends[0]) / 10)
}

async fn analyze(made: &TestApp) -> Result<()> {
    if let kernel::store::Db::Pg(pool) = &made.app.core.db {
        sqlx::query("ANALYZE redirections").execute(pool).await?;
        sqlx::query("VACUUM ANALYZE redirection_details").execute(pool).await?;
    }
    Ok(())
}

/// What changes cost, and what their words alone: within one transaction, and by themselves.
async fn writes(made: &TestApp, product: ProductId, args: &Args) -> Result<()> {
    let mut rng = Rng::new(2);
    let db = &made.app.core.db;
    let (mut single, mut arrays, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.repeats.min(20) {
        let at = args.links + round * CHUNK;
        let one = draft(product, at, &mut rng)?;
        let begun = Instant::now();
        let (redirects, caller) = (&made.app.redirects, made.caller());
        let made_one =
            redirections::create(redirects, &caller, one, DomainChoice::default(), None, None).await?.value;
        let body = json!({"defaultRedirectUrl": "https://example.com/other"});
        let writable = Writable::parse(&body).map_err(|faults| anyhow!("{faults:?}"))?;
        let ids = vec![made_one.redirect.short_id.to_string()];
        redirections::replace(redirects, &caller, DomainChoice::default(), ids, writable).await?;
        single.push(micros(begun.elapsed()) / 2.0);
        let drafts = (1..CHUNK).map(|more| draft(product, at + more, &mut rng));
        let drafts: Vec<_> = drafts.collect::<Result<Vec<_>>>()?.into_iter().map(Ok).collect();
        let count = drafts.len() as f64;
        let begun = Instant::now();
        redirections::create_many(redirects, &caller, drafts, DomainChoice::default(), None, None).await?;
        arrays.push(micros(begun.elapsed()) / count);
        // The same words once more, as a link that is new has none.
        let links = newest(made).await?;
        let seqs: Vec<i64> = links.iter().map(|link| link.seq).collect();
        let mut tx = db.begin(&Ctx::default()).await?;
        redirection_details::delete(&mut tx, &seqs).await?;
        let begun = Instant::now();
        redirection_details::insert(&mut tx, links.iter()).await?;
        words.push(micros(begun.elapsed()) / links.len() as f64);
        tx.commit().await?;
    }
    let [single, arrays, words] = [single, arrays, words].map(|times| Spread::of(&times));
    writeln!(
        stdout(),
        "µs: one create or change {}, a link of an array {}, its words {}: {:.1} % of the rest",
        single.text(0),
        arrays.text(1),
        words.text(1),
        100.0 * words.median / (arrays.median - words.median)
    )?;
    Ok(())
}

async fn newest(made: &TestApp) -> Result<Vec<Redirection>> {
    let request = ListRequest {
        page: PageRequest { per_page: 100, ..PageRequest::default() },
        ..ListRequest::default()
    };
    let listing = Listing { request, ..Listing::default() };
    let page = redirections::list(&made.app.redirects, &made.caller(), &listing).await?;
    page.items.first().context("links")?;
    Ok(page.items)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
