//! Lists of scans in their own store against the same scans among actions: the same rows, in the same order, to the byte.

use ::actions::store::{
    action_lists,
    actions::{self, NewAction},
    scan_moves,
};
use anyhow::{Context, Result, ensure};
use events::messages::action_message;
use kernel::{
    domain::{
        action::Action,
        filter::Filter,
        grant::Limit,
        listing::{ACTIONS, ListRequest},
        page::{Page, PageRequest, SortOrder},
    },
    store::{Ctx, Db, listing::Selection},
};
use scan_store::{Count, NewScan, ScanStore};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};
use tests::db::{Engine, TestApp, random16};

super::super::on_all_scan_stores!(
    lists_are_the_same_in_both_stores,
    scans_are_found_by_their_ids,
    scans_are_counted_by_time,
    an_account_sees_its_own_scans,
    whoever_holds_a_connection_reads_scans,
);

pub(super) const P: &str = "UKXAGyEf8SQ5eTDmVgGpHqAP";
pub(super) const Q: &str = "UKXAGyEf8SQ5eTDmVgGpHqAQ";
pub(super) const U: &str = "UKXAGyEf8SQ5eTDmVgGpHqAU";
pub(super) const T: &str = "UKXAGyEf8SQ5eTDmVgGpHqAT";

/// 2025-12-31T00:00:00Z: the scans below are of two months.
pub(super) const BEGIN: i64 = 1_767_139_200_000;

/// Scans of a list.
pub(super) const SCANS: i64 = 48;

/// A scan as an edge records it; each number another.
pub(super) fn scan(account: AccountId, number: i64) -> Result<NewAction> {
    let short_id = format!("s{}", number % 5);
    let mut context = json!({
        "ipAddress": if number % 3 == 0 { "2001:db8::7".to_owned() } else { format!("192.0.2.{number}") },
        "userAgent": format!("agent/{}", number % 4),
        "userAgentName": "Agent",
        "entryUrl": match number % 4 {
            0 => format!("https://tn.gg/{short_id}?n={number}"),
            1 => format!("https://tn.gg/01/{number}"),
            _ => format!("https://tn.gg/{short_id}"),
        },
    });
    if number % 2 == 0 {
        context["city"] = json!(["Bern", "Köln", "São Paulo"][usize::try_from(number / 2 % 3)?]);
        context["countryCode"] = json!(["CH", "DE", "BR"][usize::try_from(number / 2 % 3)?]);
    }
    if number % 5 == 0 {
        context["referer"] = json!("https://example.com/a\"b");
        context["language"] = json!("de-CH");
    }
    let mut doc = json!({
        "customFields": {"shortDomain": if number % 7 == 0 { "other.example" } else { "tn.gg" }, "shortId": short_id},
        "tags": [],
        "context": context,
        "locationSource": "unknown",
        "reactions": [],
        "scanSource": "edge",
    });
    if number % 2 == 0 {
        doc["locationSource"] = json!("geoIp");
        doc["location"] = json!({"latitude": 46.9, "longitude": 7.4 + number as f64 / 7.0});
    }
    if number % 6 == 0 {
        let url = format!("https://example.com/{number}");
        doc["reactions"] = json!([{"type": "redirection", "rule": {"index": 3}, "redirectUrl": url}]);
        doc["customFields"]["bot"] = json!(true);
    }
    match number % 4 {
        0 => doc["scopes"] = json!({"projects": [P], "users": []}),
        1 => doc["scopes"] = json!({"projects": [P, Q], "users": [U]}),
        _ => {}
    }
    let at = UnixMillis(BEGIN + number * 3_600_000 + number % 3);
    Ok(NewAction {
        id: ActionId::new(at.0, random16()?),
        account,
        kind: "implicitScans".to_owned(),
        thng: (number % 3 == 0).then(|| T.parse::<ThngId>()).transpose()?,
        product: (number % 2 == 0).then(|| P.parse::<ProductId>()).transpose()?,
        timestamp: at,
        doc,
    })
}

/// Stores scans among actions, three of them at each time.
pub(super) async fn insert(made: &TestApp, account: AccountId) -> Result<Vec<ActionId>> {
    let mut ids = Vec::new();
    for number in 0..SCANS {
        let new = scan(account, number)?;
        ids.push(new.id);
        let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
        actions::insert(&mut tx, UnixMillis(BEGIN + number / 3 * 10_800_000), &[new]).await?;
        tx.commit().await?;
    }
    Ok(ids)
}

/// Copies the scans that are among actions, and leaves them there.
pub(super) async fn copy(made: &TestApp) -> Result<()> {
    let mut rows = Vec::new();
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    for (_, row) in scan_moves::list(&mut tx, 0, 1_000).await?.scans {
        let row = row.context("it cannot be read")?;
        let about = (row.thng, row.product);
        let new =
            NewScan::of(row.account, row.id, row.timestamp, about, &row.doc).context("it does not fit")?;
        rows.push((row.seq, row.created_at, new));
    }
    drop(tx);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let within = matches!(made.app.core.db, Db::Pg(_)).then_some(&mut tx);
    made.app.actions.scans.pool.adopt(within, made.app.core.clock.now(), &rows).await?;
    Ok(tx.commit().await?)
}

/// Every member of an action, and its position.
fn shown(action: &Action) -> (i64, i64, Value) {
    let mut whole = action_message(action);
    whole["members"] = Value::Object(action.members.clone());
    (action.created_at.0, action.seq, whole)
}

async fn lists_are_the_same_in_both_stores(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    insert(&made, made.account).await?;
    copy(&made).await?;
    // Once more changes nothing.
    copy(&made).await?;
    let filters = [
        "",
        "type=implicitScans",
        "type=scans",
        "type~impl",
        "!type<x",
        "thng=T",
        "!thng=T",
        "product=P",
        "product=Q",
        "!product=P",
        "collection=Q",
        "user=U",
        "tags=m",
        "!tags=m",
        "identifiers.k=v",
        "customFields.shortId=s1",
        "customFields.shortId~s",
        "customFields.shortId~1",
        "!customFields.shortId=s1",
        "customFields.shortDomain=tn.gg",
        "customFields.shortDomain~other",
        "customFields.bot=true",
        "customFields.bot=yes",
        "customFields.none>1",
        "!customFields.none>1",
        "context.city=Bern",
        "context.city~São",
        "context.countryCode=DE",
        "!context.countryCode=DE",
        "timestamp>1767200000000",
        "timestamp<=1767200000000&thng=T",
        "(context.city=Bern|context.city=Köln)&!customFields.bot=true",
        "thng=T&product=P|customFields.shortId=s3",
    ];
    let mut limits: Vec<Limit> = vec![
        Limit::Account,
        Limit::User(U.to_owned()),
        Limit::Itself(T.to_owned()),
        Limit::User("all".to_owned()),
    ];
    limits.push(Limit::Projects(vec![P.parse()?]));
    limits.push(Limit::Projects(vec![Q.parse()?]));
    let everything: [&[(&str, &str)]; 4] = [&[], &[("thng", T)], &[("product", P)], &[("collection", Q)]];
    // A page takes 40 ms in ClickHouse. The gate looks at each filter, each limit and each place with some of the others.
    let step = tests::repetitions(if engine == Engine::ClickHouse { 19 } else { 5 }, 1);
    let (mut seen, mut lists) = (0, 0);
    for filter in filters {
        // The one that every id begins with comes first.
        let text = filter.replace("=U", &format!("={U}")).replace("=T", &format!("={T}"));
        let text = text.replace("=P", &format!("={P}")).replace("=Q", &format!("={Q}"));
        let parsed = (!text.is_empty()).then(|| Filter::parse(&text, ACTIONS.fields)).transpose();
        let parsed = parsed.map_err(anyhow::Error::msg)?;
        for limit in &limits {
            for within in everything {
                lists += 1;
                if lists % step != 0 {
                    continue;
                }
                let request = ListRequest { filter: parsed.clone(), ..ListRequest::default() };
                seen += same(&made, limit, &request, within)
                    .await
                    .with_context(|| format!("{filter} {limit:?} {within:?}"))?;
            }
        }
    }
    ensure!(seen > 2_000 / step, "only {seen} rows were compared");
    Ok(())
}

/// Compares all pages of a list, in both directions; returns how many rows it has.
async fn same(
    made: &TestApp,
    limit: &Limit,
    request: &ListRequest,
    within: &[(&'static str, &str)],
) -> Result<usize> {
    let mut rows = 0;
    for (sort, per_page) in [(SortOrder::Ascending, 7), (SortOrder::Descending, 20)] {
        let mut page = PageRequest { sort, per_page, ..PageRequest::default() };
        loop {
            let request = ListRequest { page, ..request.clone() };
            let selection = Selection { account: made.account, limit, request: &request, within };
            let mut conn = made.app.core.db.read().await?;
            let expected = action_lists::list(&mut conn, &selection).await?;
            let found =
                Page::cut(made.app.actions.scans.pool.page(&selection).await?, page, Action::position);
            let all = |page: &Page<Action>| page.items.iter().map(shown).collect::<Vec<_>>();
            ensure!(all(&found) == all(&expected), "{:#?}\nnot\n{:#?}", all(&found), all(&expected));
            ensure!(found.next == expected.next, "{:?} {:?}", found.next, expected.next);
            rows += found.items.len();
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
    }
    Ok(rows)
}

async fn scans_are_found_by_their_ids(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let mut ids = insert(&made, made.account).await?;
    copy(&made).await?;
    let scans = &made.app.actions.scans.pool;
    let unknown = ActionId::new(BEGIN, random16()?);
    ids.push(unknown);
    let mut conn = made.app.core.db.read().await?;
    let expected = action_lists::find_many(&mut conn, made.account, &ids).await?;
    let found = scans.find_many(made.account, &ids).await?;
    ensure!(found.len() == ids.len() - 1);
    ensure!(found.iter().map(shown).eq(expected.iter().map(shown)));
    // A list of ids, of which one is not there and one is no id.
    let asked = vec![ids[3].to_string(), unknown.to_string(), "x".to_owned(), ids[40].to_string()];
    let request = ListRequest { ids: Some(asked), ..ListRequest::default() };
    ensure!(same(&made, &Limit::Account, &request, &[]).await? == 4);
    ensure!(scans.delete(made.account, &ids[..2]).await? == 2);
    ensure!(scans.delete(made.account, &ids[..2]).await? == 0);
    ensure!(scans.find_many(made.account, &ids).await?.len() == ids.len() - 3);
    Ok(())
}

async fn scans_are_counted_by_time(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    insert(&made, made.account).await?;
    copy(&made).await?;
    let (from, to) = (UnixMillis(BEGIN), UnixMillis(BEGIN + 10 * 86_400_000));
    let count = Count { account: made.account, from, to, piece_ms: 86_400_000 };
    let days = made.app.actions.scans.pool.count(&count).await?;
    ensure!(days == [(from, 24), (UnixMillis(BEGIN + 86_400_000), 24)], "{days:?}");
    // One piece over two months.
    let one = made.app.actions.scans.pool.count(&Count { piece_ms: 100 * 86_400_000, ..count }).await?;
    ensure!(one == [(from, 48)], "{one:?}");
    let first = made.app.actions.scans.pool.find_first_since(made.account, UnixMillis(BEGIN + 1)).await?;
    ensure!(first == Some(UnixMillis(BEGIN + 10_800_000)), "{first:?}");
    Ok(())
}

async fn an_account_sees_its_own_scans(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let other = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    tenants::store::accounts::insert(&mut tx, other, "Other", true, 1).await?;
    tx.commit().await?;
    let (own, others) = (insert(&made, made.account).await?, insert(&made, other).await?);
    copy(&made).await?;
    let scans: &dyn ScanStore = &*made.app.actions.scans.pool;
    let request = ListRequest {
        page: PageRequest { per_page: 100, ..PageRequest::default() },
        ..ListRequest::default()
    };
    for within in [&[][..], &[("thng", T)], &[("product", P)]] {
        let selection =
            Selection { account: made.account, limit: &Limit::Account, request: &request, within };
        let found = scans.page(&selection).await?;
        ensure!(!found.is_empty() && found.iter().all(|scan| own.contains(&scan.id)), "{within:?}");
    }
    ensure!(scans.find_many(made.account, &others).await?.is_empty());
    ensure!(scans.delete(made.account, &others).await? == 0);
    let kept = [(made.account, UnixMillis(i64::MAX))].into_iter().collect();
    ensure!(scans.delete_before(&kept, UnixMillis(0)).await? == SCANS as u64);
    ensure!(scans.find_many(other, &others).await?.len() == others.len());
    Ok(())
}

/// All connections of the database are taken by callers that read scans: none of them waits for another one.
async fn whoever_holds_a_connection_reads_scans(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    insert(&made, made.account).await?;
    copy(&made).await?;
    let db = &made.app.core.db;
    let most = db.pools().last().context("a pool")?.most as usize;
    let all_hold_one = tokio::sync::Barrier::new(most);
    let read = async || {
        let _held = db.read().await?;
        all_hold_one.wait().await;
        made.app.actions.scans.reserved.find_first_since(made.account, UnixMillis(BEGIN)).await
    };
    for found in futures_util::future::join_all((0..most).map(|_| read())).await {
        ensure!(found? == Some(UnixMillis(BEGIN)));
    }
    Ok(())
}
