//! Disturbances of a view: they are noticed, and the view becomes correct again.

use anyhow::Result;
use kernel::store::Ctx;
use redirects::store::log;
use tests::redis::RedisServer;

use super::*;
use crate::store::redirections::execute;

/// Waits until a reader has seen the view incomplete; ends by itself when it is dropped.
fn watch_incomplete(redis: &RedisServer) -> tokio::task::JoinHandle<Result<()>> {
    let url = redis.url();
    tokio::spawn(async move {
        let mut reader = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        loop {
            let text: Option<String> = redis::cmd("GET").arg(meta_key(0)).query_async(&mut reader).await?;
            if text.is_some_and(|text| text.parse::<Meta>().is_ok_and(|meta| !meta.complete)) {
                return Ok(());
            }
        }
    })
}

/// A flush takes the meta along: the view is incomplete to readers until it is whole again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_flush_is_rebuilt() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(300).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let incomplete = watch_incomplete(&redis);
    // While nothing is written, and in the middle of writing.
    for writes in [0, 20] {
        redis.command::<()>(&["FLUSHALL"]).await.unwrap();
        for n in 0..writes {
            create(&made, product, &format!("https://example.com/{n}"), None).await.unwrap();
        }
        settled(&made, &[&redis], 1).await.unwrap();
    }
    assert_eq!(working.stats.rebuilds.get(), 3);
    tokio::time::timeout(DEADLINE, incomplete).await.unwrap().unwrap().unwrap();
}

/// A server that comes back empty, and one that comes back with an older state of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_restart_with_older_state_is_noticed() {
    let mut redis = RedisServer::start().await.unwrap();
    let (made, product) = service(20).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    redis.kill();
    create(&made, product, "https://example.com/while-away", None).await.unwrap();
    redis.start_again().await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(working.stats.rebuilds.get(), 2, "it came back empty");
    // The dump holds less than the publisher knows to be there.
    redis.command::<()>(&["SAVE"]).await.unwrap();
    create(&made, product, "https://example.com/after-the-dump", None).await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    redis.kill();
    redis.start_again().await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(working.stats.rebuilds.get(), 3, "it came back with an older state");
}

/// A replica that lags is made the primary behind the same address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_promotion_of_an_older_replica_is_noticed() {
    let mut primary = RedisServer::start().await.unwrap();
    let (made, product) = service(20).await.unwrap();
    let working = publish(&made, "a", &primary.url(), 1).unwrap();
    settled(&made, &[&primary], 1).await.unwrap();
    let of = ["--replicaof", "127.0.0.1", &primary.port.to_string()].map(str::to_owned);
    let replica = RedisServer::start_with(&of.each_ref().map(String::as_str)).await.unwrap();
    until("the first copy", async || {
        Ok(replica.command::<Option<String>>(&["GET", &meta_key(0)]).await?.is_some())
    })
    .await
    .unwrap();
    replica.command::<()>(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    for n in 0..3 {
        create(&made, product, &format!("https://example.com/never-copied/{n}"), None).await.unwrap();
    }
    settled(&made, &[&primary], 1).await.unwrap();
    // What a virtual address does: the port of the primary leads to the replica.
    let port = primary.port;
    primary.kill();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let to = replica.port;
    let forward = tokio::spawn(async move {
        loop {
            let Ok((mut from, _)) = listener.accept().await else { return };
            tokio::spawn(async move {
                if let Ok(mut to) = tokio::net::TcpStream::connect(("127.0.0.1", to)).await {
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                }
            });
        }
    });
    settled(&made, &[&replica], 1).await.unwrap();
    assert_eq!(working.stats.rebuilds.get(), 2);
    forward.abort();
}

/// One holds the lease; a second that takes over without the first knowing fences it off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_publishers_fenced() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(10).await.unwrap();
    let first = publish(&made, "first", &redis.url(), 1).unwrap();
    let before = settled(&made, &[&redis], 1).await.unwrap();
    let config = PublisherConfig {
        region: "here".to_owned(),
        owner: "second".to_owned(),
        redis: redis.url().parse().unwrap(),
        ca: None,
        shards: 1,
    };
    let stats = PublisherStats::default();
    let hub = other_hub(&made).await.unwrap();
    tokio::spawn(
        Publisher::new(made.app.core.db.clone(), hub, config, stats.clone()).run(CancellationToken::new()),
    );
    for round in 0..6_u32 {
        // As if the holder had slept for long: its lease is over, and it does not know.
        execute(&made, "UPDATE publishers SET lease_until = 0").await.unwrap();
        let taken = async || {
            execute(&made, "UPDATE publishers SET lease_until = 0").await?;
            create(&made, product, "https://example.com/", None).await?;
            let leads = first.stats.leading.get() + stats.leading.get();
            Ok(leads >= 1
                && look(&made, &[&redis], 1)
                    .await
                    .is_ok_and(|m| m[0].term > before[0].term + u64::from(round)))
        };
        until("a take-over", taken).await.unwrap();
    }
    settled(&made, &[&redis], 1).await.unwrap();
    // Whoever was deposed took no part of the view along.
    assert_eq!(first.stats.rebuilds.get() + stats.rebuilds.get(), 1);
}

/// A history that was cut begins a view of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_epoch_rebuilds_the_view() {
    let redis = RedisServer::start().await.unwrap();
    let (made, _) = service(10).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    let mut tx = made.app.core.db.begin(&Ctx::default()).await.unwrap();
    log::bind(&mut tx, "another", "elsewhere").await.unwrap();
    tx.commit().await.unwrap();
    let metas = settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(&*metas[0].epoch, "another");
    assert_eq!(working.stats.rebuilds.get(), 2);
    working.stop().await.unwrap();
    // A restored database may know a smaller term than the view.
    execute(&made, "UPDATE publishers SET term = 0, lease_until = 0").await.unwrap();
    let again = publish(&made, "b", &redis.url(), 1).unwrap();
    until("the next term", async || {
        Ok(look(&made, &[&redis], 1).await.is_ok_and(|now| now[0].term > metas[0].term))
    })
    .await
    .unwrap();
    assert_eq!(again.stats.rebuilds.get(), 0);
}

/// The log is compacted past a view that stood still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_during_watch() {
    let redis = RedisServer::start().await.unwrap();
    let (made, product) = service(10).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    redis.pause().unwrap();
    for n in 0..10 {
        create(&made, product, &format!("https://example.com/{n}"), None).await.unwrap();
    }
    let mut tx = made.app.core.db.begin(&Ctx::default()).await.unwrap();
    log::compact(&mut tx, i64::MAX, 2, 1_000).await.unwrap();
    tx.commit().await.unwrap();
    redis.go_on().unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    // And past one that nobody published.
    working.stop().await.unwrap();
    for n in 0..10 {
        create(&made, product, &format!("https://example.com/{n}"), None).await.unwrap();
    }
    let mut tx = made.app.core.db.begin(&Ctx::default()).await.unwrap();
    log::compact(&mut tx, i64::MAX, 2, 1_000).await.unwrap();
    tx.commit().await.unwrap();
    let again = publish(&made, "b", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    assert_eq!(again.stats.rebuilds.get(), 1);
}

/// While Redis is away writes go on; whatever it missed is there once it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_do_not_wait_for_redis() {
    let mut redis = RedisServer::start().await.unwrap();
    let (made, product) = service(5).await.unwrap();
    let working = publish(&made, "a", &redis.url(), 1).unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
    redis.kill();
    for n in 0..20 {
        let target = format!("https://example.com/{n}");
        let written = create(&made, product, &target, None);
        tokio::time::timeout(DEADLINE, written).await.unwrap().unwrap();
    }
    until("a failure", async || Ok(working.stats.failures.get() > 0)).await.unwrap();
    redis.start_again().await.unwrap();
    settled(&made, &[&redis], 1).await.unwrap();
}

/// A view with another number of shards is rebuilt, and nothing of it is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changing_the_shard_count_leaves_no_old_keys() {
    let redis = RedisServer::start().await.unwrap();
    let (made, _) = service(30).await.unwrap();
    for (owner, shards) in [("a", 4), ("b", 1), ("c", 3)] {
        let working = publish(&made, owner, &redis.url(), shards).unwrap();
        settled(&made, &[&redis], shards).await.unwrap();
        assert_eq!(working.stats.rebuilds.get(), 1);
        let metas: Vec<String> = redis.command(&["KEYS", "*:meta"]).await.unwrap();
        assert_eq!(metas.len(), usize::from(shards), "{metas:?}");
        working.stop().await.unwrap();
    }
}
