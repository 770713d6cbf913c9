//! A view without disturbances.

use anyhow::ensure;
use hosting::{
    domain::platform_take_down::NewTakeDown,
    service::{
        By,
        take_downs::{self, Named},
    },
};
use kernel::store::Ctx;
use push::store::publishers;
use redirects::{
    service::rules::{self, Whose},
    store::log,
};
use serde_json::json;
use shared::{
    personal_data::PersonalData,
    short_url::{Scheme, ShortDomain},
    wire::{
        stream::{Change, Event},
        view::{meta_key, record_key, setup_key, shard_of},
    },
};
use tenants::store::accounts;
use tests::{
    db::{Engine, TestApp},
    redis::RedisServer,
};

use super::*;

/// Creates, updates, deletes, rules and domains arrive, from a view that was empty at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_view_follows_every_change() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(30).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let first = create(&made, product, "https://example.com/first", Some("AAAAAAAAAA")).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let writable = redirects::domain::redirection::Writable::parse(
        &json!({"defaultRedirectUrl": "https://example.com/second"}),
    )
    .unwrap();
    let ids = vec![first.redirect.short_id.to_string()];
    redirections::replace(&made.app.redirects, &made.caller(), DomainChoice::default(), ids, writable)
        .await
        .unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    delete(&made, "AAAAAAAAAA").await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let rule: Vec<shared::rules::Rule> =
        serde_json::from_value(json!([{"match": "true", "redirectUrl": "https://example.com/rule"}]))
            .unwrap();
    rules::replace(&made.app.redirects, &made.caller(), Whose::Account, rule).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let domain = ShortDomain::new(Scheme::Https, "second.example").unwrap();
    let mut tx = made.app.core.db.begin(&Ctx::default()).await.unwrap();
    let domain = accounts::insert_domain(&mut tx, made.account, &domain).await.map(|()| domain).unwrap();
    let rev = log::take_revs(&mut tx, 1).await.unwrap();
    let domain =
        ShortDomain { account: Some(made.account), personal_data: Some(PersonalData::Full), ..domain };
    log::append(&mut tx, 1, &[Event { rev, change: Change::Domain(domain) }]).await.unwrap();
    tx.commit().await.unwrap();
    made.app.hub.wake();
    settled(&made, &[&redis], 1).await.unwrap();
    rules::delete(&made.app.redirects, &made.caller(), Whose::Account).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(working.stats.rebuilds.get(), 1, "only the first, of an empty view");
    working.stop().await.unwrap();
}

/// The same on SQLite, whose statements differ, and in several shards on one server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_view_follows_a_sqlite_log_in_shards() {
    let redis = RedisServer::start().await.unwrap();
    let made = TestApp::new(Engine::Sqlite).await.unwrap();
    let product = product(&made).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 5).unwrap();
    settled(&made, &[&redis], 5).await.unwrap();
    for n in 0..40 {
        create(&made, product, &format!("https://example.com/{n}"), None).await.unwrap();
    }
    let metas = settled(&made, &[&redis], 5).await.unwrap();
    assert!(
        metas.iter().all(|meta| meta.watermark == metas[0].watermark),
        "every batch advances every shard"
    );
    working.stop().await.unwrap();
}

/// A publisher that comes back carries on where the view is, without a rebuild; so does the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_existing_view_is_continued() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(5).await.unwrap();
    let first = publish(&made, "a", &redis.url(), 1).unwrap();
    let before = settled(&made, &[&redis], 1).await.unwrap();
    first.stop().await.unwrap();
    // More than a batch.
    for n in [0, 350] {
        create_many(&made, links(product, n..n + 350)).await.unwrap();
        // Rules in between: the setup moves on with the shard it belongs to.
        let rule = json!([{"match": "true", "redirectUrl": format!("https://example.com/{n}")}]);
        let rule = serde_json::from_value(rule).unwrap();
        rules::replace(&made.app.redirects, &made.caller(), Whose::Account, rule).await.unwrap();
    }
    let second = publish(&made, "b", &redis.url(), 1).unwrap();
    let after = settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(second.stats.rebuilds.get(), 0);
    assert!(after[0].term > before[0].term, "{} after {}", after[0], before[0]);
    second.stop().await.unwrap();
}

/// One that was written by an older release lacks what is withheld: it is written anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_without_what_is_withheld_is_rebuilt() {
    let redis = RedisServer::start().await.unwrap();
    let (made, _) = service(3).await.unwrap();
    let by = By::command("tests", made.app.core.clock.now());
    let new = NewTakeDown { reason: "x".to_owned(), until: None };
    let host = Named::Host("evil.example".to_owned());
    take_downs::take_down(&made.app.core.db, &by, &host, new).await.unwrap();
    let first = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    first.stop().await.unwrap();
    let setup: String = redis.command(&["GET", &setup_key()]).await.unwrap();
    let mut setup: serde_json::Value = serde_json::from_str(&setup).unwrap();
    let withheld = setup.as_object_mut().unwrap().remove("withheld");
    assert_eq!(withheld, Some(json!([{"host": "evil.example"}])));
    redis.command::<()>(&["SET", &setup_key(), &setup.to_string()]).await.unwrap();
    let second = publish(&made, "b", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(second.stats.rebuilds.get(), 1);
    second.stop().await.unwrap();
}

/// The user of an edge may only read keys of the view, and reads all that an edge needs in one step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_may_only_mget_reads_the_view() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(1).await.unwrap();
    let _working = publish(&made, "a", &redis.url(), 1).unwrap();
    create(&made, product, "https://example.com/x", Some("AAAAAAAAAA")).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let user = ["ACL", "SETUSER", "edge", "on", ">secret", "~{waymark:*", "-@all", "+mget"];
    redis.command::<()>(&user).await.unwrap();
    let key = shared::redirect::RedirectKey::new("tn.gg", "AAAAAAAAAA");
    let key = record_key(shard_of(&key, 1), &key);
    let url = format!("redis://edge:secret@127.0.0.1:{}", redis.port);
    let mut edge = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
    let read: Vec<Option<String>> =
        redis::cmd("MGET").arg(meta_key(0)).arg(&key).arg(setup_key()).query_async(&mut edge).await.unwrap();
    assert!(read.iter().all(Option::is_some), "{read:?}");
    for refused in
        [&["SET", key.as_str(), "x"][..], &["GET", key.as_str()], &["FLUSHALL"], &["MGET", "other"]]
    {
        let answer: redis::RedisResult<redis::Value> =
            redis::cmd(refused[0]).arg(&refused[1..]).query_async(&mut edge).await;
        assert!(answer.is_err(), "{refused:?}: {answer:?}");
    }
}

/// A server that may throw keys away is not written to, and that is told; set right, it is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_with_an_eviction_policy_is_refused() {
    let redis = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).await.unwrap();
    let (made, _) = service(1).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    until("the refusal", async || Ok(working.stats.refused_policy.get() > 0)).await.unwrap();
    assert_eq!(redis.command::<u64>(&["DBSIZE"]).await.unwrap(), 0);
    redis.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
}

/// What an operator asks for is carried out, and is known to be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requested_rebuild_is_performed() {
    let redis = RedisServer::start().await.unwrap();
    let (made, _) = service(3).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    // What nobody can notice: a key that is wrong behind a right watermark.
    redis.command::<()>(&["SET", "{waymark:0}:r:tn.gg/ZZZZZZZZZZ", "{}"]).await.unwrap();
    let mut tx = made.app.core.db.begin(&Ctx::default()).await.unwrap();
    assert_eq!(publishers::request_rebuild(&mut tx, Some("elsewhere")).await.unwrap(), [""; 0]);
    assert_eq!(publishers::request_rebuild(&mut tx, None).await.unwrap(), ["here"]);
    tx.commit().await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    until("the note that it is done", async || {
        let all = publishers::list(&mut made.app.core.db.read().await?).await?;
        ensure!(all.len() == 1 && all[0].is_held && all[0].rebuilds.asked == 1, "{all:?}");
        Ok(all[0].rebuilds.done == 1)
    })
    .await
    .unwrap();
    assert_eq!(working.stats.rebuilds.get(), 2);
}
