//! Filters against rows: what each expression finds, and its SQL, on both engines.

use ::actions::store::{
    action_lists,
    actions::{self, NewAction},
};
use anyhow::Result;
use catalog::{
    domain::resource::{Thng, ThngDetails},
    store::thngs,
};
use kernel::{
    domain::{
        filter::Filter,
        grant::Limit,
        listing::{ACTIONS, ListRequest, THNGS},
        page::{PageRequest, SortOrder},
        scopes::Scopes,
    },
    store::{Ctx, documents, listing::Selection},
};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, ActionId, ProductId, ProjectId, ThngId},
    time::UnixMillis,
};
use tests::{
    db::{Engine, TestApp, random16},
    sql::execute,
};

super::super::on_both_engines!(
    expressions_find_their_thngs,
    expressions_find_their_actions,
    keys_see_only_their_resources,
    old_rows_are_backfilled_with_facets,
);

const P: &str = "UKXAGyEf8SQ5eTDmVgGpHqAP";
const Q: &str = "UKXAGyEf8SQ5eTDmVgGpHqAQ";
const U: &str = "UKXAGyEf8SQ5eTDmVgGpHqAU";
const T: &str = "UKXAGyEf8SQ5eTDmVgGpHqAT";

/// Expressions over the Thngs below, with the Thngs that they find, oldest first.
const OF_THNGS: &[(&str, &str)] = &[
    ("name=Red shoe", "a"),
    ("name=red shoe", ""),
    ("name%3DRed%20hat", "b"),
    ("name~Red", "ab"),
    ("name~100%", "d"),
    ("name~100%%", ""),
    ("name~_", ""),
    ("name~", "abcde"),
    ("name~Zo", "e"),
    ("name=Zoë", "e"),
    ("name=Blue (left) shoe", "c"),
    (r"name=Blue \(left\) shoe", "c"),
    ("name='; DROP TABLE thngs; --", ""),
    ("name=$1", ""),
    ("name!=Red shoe", "bcde"),
    ("!name~Red", "cde"),
    ("name<Blue", "d"),
    ("name<=Red hat", "bcd"),
    ("name>Red hat", "ae"),
    ("name>=Zoë", "e"),
    ("createdAt=300", "c"),
    ("createdAt<300", "ab"),
    ("createdAt<=300", "abc"),
    ("createdAt>300", "de"),
    ("createdAt>=300", "cde"),
    ("createdAt>100&createdAt<400", "bc"),
    ("createdAt>-1", "abcde"),
    ("product=P", "ab"),
    ("!product=P", "cde"),
    ("product=P|product=Q", "abd"),
    ("collections=Q", ""),
    ("tags=x", "ab"),
    ("tags=y", "a"),
    ("tags=y,z", "d"),
    (r"tags=y\,z", "d"),
    ("tags=x&tags=y", "a"),
    ("!tags=x", "cde"),
    ("tags~y", "ad"),
    ("customFields.color=red", "ad"),
    ("customFields.color~re", "ad"),
    ("customFields.size=42", "ac"),
    ("customFields.size!=42", "bde"),
    ("customFields.size=41.5", "b"),
    ("customFields.ok=true", "a"),
    ("customFields.deep.k=1", "a"),
    ("customFields.none=x", ""),
    ("customFields.size>41", "ab"),
    ("customFields.size>=42", "a"),
    ("customFields.size<42", "b"),
    ("customFields.size<=42", "ab"),
    ("!customFields.size<=42", "cde"),
    ("identifiers.gs1:21=A1", "a"),
    ("identifiers.gs1:21~A", "ab"),
    ("identifiers.sn=A1", "d"),
    ("!identifiers.sn=A1", "abce"),
    ("identifiers.sn=A1|identifiers.gs1:21=A2", "bd"),
    ("identifiers.gs1:21=A1&name=Red hat", ""),
    ("(tags=x|tags=y,z)&product=Q", "d"),
    ("tags=x|tags=y,z&product=P", "ab"),
    ("!(tags=x|name=Zoë)", "cd"),
    ("!!tags=x", "ab"),
    ("name=Red shoe&tags=x&customFields.color=red&product=P&createdAt<101", "a"),
];

/// The same of actions.
const OF_ACTIONS: &[(&str, &str)] = &[
    ("timestamp=20", "b"),
    ("timestamp>10", "bc"),
    ("timestamp>10&timestamp<=20", "b"),
    ("timestamp=20|timestamp=30", "bc"),
    ("type=scans", "ac"),
    ("type!=scans", "b"),
    ("type~check", "b"),
    ("thng=T", "ab"),
    ("thng=T&type=scans", "a"),
    ("!thng=T", "c"),
    ("product=P", "ac"),
    ("collection=Q", "c"),
    ("user=U", "a"),
    ("tags=m", "a"),
    ("identifiers.k=v", "a"),
    ("identifiers.k~v", "a"),
    ("customFields.n=1", "a"),
    ("customFields.n<2", "a"),
    ("context.city=São Paulo", "b"),
    ("context.city~Be", "a"),
    ("context.countryCode=CH", "a"),
    ("!context.countryCode=CH", "bc"),
    ("type=scans&(context.countryCode=CH|collection=Q)", "ac"),
];

fn with_ids(text: &str) -> String {
    [("=P", P), ("=Q", Q), ("=U", U), ("=T", T)].iter().fold(text.to_owned(), |text, (short, id)| {
        let is_id = |rest: &str| rest.is_empty() || rest.starts_with(['&', '|', ')']);
        match text.rfind(short) {
            Some(at) if is_id(&text[at + 2..]) => text.replace(short, &format!("={id}")),
            _ => text,
        }
    })
}

fn request(filter: Option<Filter>) -> ListRequest {
    let page = PageRequest { per_page: 100, sort: SortOrder::Ascending, ..PageRequest::default() };
    ListRequest { page, filter, ..ListRequest::default() }
}

/// The names of rows, whose creation was at 100, 200, 300…
fn letters(times: impl Iterator<Item = UnixMillis>) -> String {
    times.map(|at| char::from(b'`' + u8::try_from(at.0 / 100).unwrap())).collect()
}

async fn make_thngs(made: &TestApp, account: AccountId, scopes: &[Scopes]) -> Result<()> {
    let rows: [(&str, Option<&str>, Value); 5] = [
        (
            "Red shoe",
            Some(P),
            json!({"tags": ["x", "y"], "identifiers": {"gs1:21": "A1"},
                "customFields": {"color": "red", "size": 42, "ok": true, "deep": {"k": 1}}}),
        ),
        (
            "Red hat",
            Some(P),
            json!({"tags": ["x"], "identifiers": {"gs1:21": "A2"}, "customFields": {"color": "blue", "size": 41.5}}),
        ),
        ("Blue (left) shoe", None, json!({"tags": [], "customFields": {"size": "42"}})),
        (
            "100% _wool",
            Some(Q),
            json!({"tags": ["y,z"], "identifiers": {"sn": "A1"}, "customFields": {"color": ["red", "green"]}}),
        ),
        ("Zoë", None, json!({})),
    ];
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    for (index, (name, product, details)) in rows.into_iter().enumerate() {
        let at = UnixMillis(100 * (i64::try_from(index)? + 1));
        let mut details: ThngDetails = serde_json::from_value(details)?;
        details.common.scopes = scopes.get(index).cloned();
        let product: Option<ProductId> = product.map(str::parse).transpose()?;
        let id = ThngId::new(at.0, random16()?);
        documents::insert(&mut tx, account, Thng::new(id, name.to_owned(), product, details, at)).await?;
    }
    Ok(tx.commit().await?)
}

async fn make_actions(made: &TestApp, account: AccountId) -> Result<()> {
    let rows = [
        (
            "scans",
            Some(T),
            Some(P),
            json!({"tags": ["m"], "customFields": {"n": 1}, "user": U,
                "identifiers": {"k": "v"}, "context": {"city": "Bern", "countryCode": "CH"}}),
        ),
        ("checkins", Some(T), None, json!({"context": {"city": "São Paulo", "countryCode": "BR"}})),
        ("scans", None, Some(P), json!({"collection": Q})),
    ];
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    for (n, (kind, thng, product, doc)) in (1..).zip(rows) {
        let action = NewAction {
            id: ActionId::new(n, random16()?),
            account,
            kind: kind.to_owned(),
            thng: thng.map(str::parse).transpose()?,
            product: product.map(str::parse).transpose()?,
            timestamp: UnixMillis(n * 10),
            doc,
        };
        actions::insert(&mut tx, UnixMillis(n * 100), &[action]).await?;
    }
    Ok(tx.commit().await?)
}

fn selection<'a>(made: &TestApp, limit: &'a Limit, request: &'a ListRequest) -> Selection<'a> {
    Selection { account: made.account, limit, request, within: &[] }
}

async fn expressions_find_their_thngs(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    make_thngs(&made, made.account, &[]).await?;
    make_thngs(&made, stranger(&made).await?, &[]).await?;
    let mut conn = made.app.core.db.read().await?;
    let mut table = String::new();
    for (text, expected) in OF_THNGS {
        let filter =
            Filter::parse(&with_ids(text), THNGS.fields).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let request = request(Some(filter));
        let selection = selection(&made, &Limit::Account, &request);
        let found = documents::list::<Thng>(&mut conn, &selection).await?;
        assert_eq!(letters(found.items.iter().map(|thng| thng.stamp.created_at)), *expected, "{text}");
        write(&mut table, text, expected, &thngs::explain(&mut conn, &selection).await?.sql);
    }
    insta::assert_snapshot!(format!("thngs_{engine:?}").to_lowercase(), table);
    Ok(())
}

async fn expressions_find_their_actions(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    make_actions(&made, made.account).await?;
    make_actions(&made, stranger(&made).await?).await?;
    let mut conn = made.app.core.db.read().await?;
    let mut table = String::new();
    for (text, expected) in OF_ACTIONS {
        let filter =
            Filter::parse(&with_ids(text), ACTIONS.fields).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let request = request(Some(filter));
        let selection = selection(&made, &Limit::Account, &request);
        let found = action_lists::list(&mut conn, &selection).await?;
        assert_eq!(letters(found.items.iter().map(|action| action.created_at)), *expected, "{text}");
        write(&mut table, text, expected, &action_lists::explain(&mut conn, &selection).await?.sql);
    }
    insta::assert_snapshot!(format!("actions_{engine:?}").to_lowercase(), table);
    Ok(())
}

fn write(table: &mut String, text: &str, found: &str, sql: &str) {
    let begin = sql.find(" t WHERE ").map_or(0, |at| at + " t".len());
    let end = sql.find(" ORDER BY ").unwrap_or(sql.len());
    table.push_str(&format!("{text}\n   {}\n   => {found}\n", &sql[begin..end]));
}

async fn stranger(made: &TestApp) -> Result<AccountId> {
    let account = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    tenants::store::accounts::insert(&mut tx, account, "Other", true, 1).await?;
    tx.commit().await?;
    Ok(account)
}

async fn keys_see_only_their_resources(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let project: ProjectId = P.parse()?;
    let scopes = |users: &[&str], projects: &[&str]| Scopes {
        users: users.iter().map(|user| (*user).to_owned()).collect(),
        projects: projects.iter().map(|id| (*id).to_owned()).collect(),
    };
    let all = [scopes(&[], &[P]), scopes(&[U], &[P, Q]), scopes(&[U], &[]), scopes(&["all"], &[Q])];
    make_thngs(&made, made.account, &all).await?;
    let mut conn = made.app.core.db.read().await?;
    let first =
        documents::list::<Thng>(&mut conn, &selection(&made, &Limit::Account, &request(None))).await?;
    let first = first.items.first().map(|thng| thng.id.to_string()).unwrap_or_default();
    for (limit, asked, ids, expected) in [
        (Limit::Account, None, None, "abcde"),
        (Limit::Account, Some(project), None, "ab"),
        (Limit::Projects(vec![project]), None, None, "ab"),
        (Limit::Projects(vec![Q.parse()?]), Some(project), None, "b"),
        (Limit::Projects(vec![Q.parse()?, project]), None, None, "abd"),
        (Limit::User(U.to_owned()), None, None, "bc"),
        (Limit::User(U.to_owned()), None, Some(vec![first.clone()]), ""),
        (Limit::Itself(first.clone()), None, None, "a"),
        (Limit::Projects(vec![project]), None, Some(vec![first.clone(), Q.to_owned()]), "a"),
    ] {
        let request = ListRequest { project: asked, ids, counted: true, ..request(None) };
        let found = documents::list::<Thng>(&mut conn, &selection(&made, &limit, &request)).await?;
        let seen = letters(found.items.iter().map(|thng| thng.stamp.created_at));
        assert_eq!(seen, expected, "{limit:?} {asked:?}");
        assert_eq!(found.total, Some(expected.len() as u64), "{limit:?}");
    }
    Ok(())
}

async fn old_rows_are_backfilled_with_facets(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    make_thngs(&made, made.account, &[]).await?;
    make_actions(&made, made.account).await?;
    let find = async |expected: usize| -> Result<()> {
        let mut conn = made.app.core.db.read().await?;
        for (fields, text) in
            [(THNGS.fields, "tags=x&customFields.size=42"), (ACTIONS.fields, "identifiers.k=v")]
        {
            let request = request(Some(Filter::parse(text, fields).map_err(anyhow::Error::msg)?));
            let selection = selection(&made, &Limit::Account, &request);
            let found = if fields == THNGS.fields {
                documents::list::<Thng>(&mut conn, &selection).await?.items.len()
            } else {
                action_lists::list(&mut conn, &selection).await?.items.len()
            };
            assert_eq!(found, expected, "{text}");
        }
        Ok(())
    };
    find(1).await?;
    for sql in ["UPDATE thngs SET facets = NULL", "UPDATE actions SET facets = NULL"] {
        assert!(execute(&made.app.core.db, sql).await? > 0, "{sql}");
    }
    find(0).await?;
    made.app.core.db.migrate().await?;
    find(1).await
}
