//! A view on several servers.

use tests::redis::RedisCluster;

use super::*;

/// Sixteen shards on three servers: filled, followed, flushed on one server, followed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_in_a_cluster() {
    let cluster = RedisCluster::start(3).await.unwrap();
    let servers: Vec<_> = cluster.nodes.iter().collect();
    let (made, product) = service(60).await.unwrap();
    let working = publish(&made, "a", &cluster.url(), 16).unwrap();
    settled(&made, &servers, 16).await.unwrap();
    for n in 0..40 {
        create(&made, product, &format!("https://example.com/later/{n}"), None).await.unwrap();
    }
    let metas = settled(&made, &servers, 16).await.unwrap();
    assert!(metas.iter().all(|meta| *meta == metas[0]), "every batch advances every shard: {metas:?}");
    for server in &servers {
        let count: u64 = server.command(&["DBSIZE"]).await.unwrap();
        assert!(count > 0, "each server has a share");
    }
    servers[1].command::<()>(&["FLUSHALL"]).await.unwrap();
    until("the rebuild", async || Ok(working.stats.rebuilds.get() == 2)).await.unwrap();
    settled(&made, &servers, 16).await.unwrap();
    working.stop().await.unwrap();
}
