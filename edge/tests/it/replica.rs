//! An edge that holds every link: from the first page to a start with nobody behind it.

use std::path::Path;

use replica::ReplicaState;

use crate::support::{Control, Running, eventually, full, request};

fn links(edge: &Running) -> Option<usize> {
    let replica = edge.handle.status().replica?;
    (replica.state == ReplicaState::Whole).then_some(replica.links)
}

/// An edge that has read so many links of a control with `count` of them.
async fn whole(control: &Control, folder: &Path, count: usize) -> Running {
    let edge = Running::start(control, folder, None, full).await;
    eventually("all links are read", || links(&edge) == Some(count)).await;
    edge
}

fn many(control: &Control, count: usize) {
    for n in 0..count {
        control.put(&format!("K{n}"), &format!("https://example.com/{n}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_known_nor_unknown_ids_need_the_network() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    many(&control, 10);
    // Pages are lost, and read again.
    control.faults(|faults| faults.lost_pages = 3);
    let edge = whole(&control, folder.path(), 10).await;
    let before = control.reads();
    for n in 0..10 {
        edge.assert_leads(&format!("K{n}"), &format!("https://example.com/{n}")).await;
    }
    assert_eq!(edge.get("/NONE", &[]).await.status, 404);
    let changed = control.put("K3", "https://example.com/other");
    control.put("NEW", "https://example.com/new");
    control.delete("K4");
    control.acked(changed + 2).await;
    edge.assert_leads("K3", "https://example.com/other").await;
    edge.assert_leads("NEW", "https://example.com/new").await;
    assert_eq!(edge.get("/K4", &[]).await.status, 404);
    assert_eq!(control.reads(), before, "nothing was asked for");
    assert_eq!(links(&edge), Some(10));
    let metrics = request(edge.admin, "GET", "admin", "/metrics", &[]).await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in ["waymark_edge_replica_whole 1", "waymark_edge_replica_links 10"] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }

    // A history that was cut: the links are read again, and nothing of before is left.
    control.put("K5", "https://example.com/cut");
    control.delete("K6");
    control.new_epoch("second");
    control.break_streams();
    eventually("the new history is read", || {
        edge.handle.status().epoch.as_deref() == Some("second") && links(&edge) == Some(9)
    })
    .await;
    edge.assert_leads("K5", "https://example.com/cut").await;
    eventually("the edge is live", || edge.handle.status().state == "LIVE").await;
    assert_eq!(edge.get("/K6", &[]).await.status, 404);
    edge.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_boot_from_disk_needs_no_peer_and_the_stream_catches_up() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    many(&control, 10);
    let edge = whole(&control, folder.path(), 10).await;
    let last = control.delete("K9");
    control.acked(last).await;
    edge.stop().await;

    control.faults(|faults| faults.is_down = true);
    let edge = Running::start_cold(&control, folder.path(), None, full);
    for n in 0..9 {
        edge.assert_leads(&format!("K{n}"), &format!("https://example.com/{n}")).await;
    }
    for gone in ["/K9", "/NONE"] {
        assert_eq!(edge.get(gone, &[]).await.status, 404, "{gone}: as nobody can be asked");
    }
    assert_eq!((edge.handle.status().state, edge.handle.status().boot), ("STALE", Some("disk")));
    edge.stop().await;

    // Control continues meanwhile.
    let changed = control.put("K1", "https://example.com/other");
    control.delete("K2");
    control.put("K9", "https://example.com/back");
    control.faults(|faults| (faults.is_down, faults.lost_pages) = (false, u32::MAX));
    let edge = whole(&control, folder.path(), 9).await;
    control.acked(changed + 2).await;
    edge.assert_leads("K1", "https://example.com/other").await;
    edge.assert_leads("K9", "https://example.com/back").await;
    assert_eq!(edge.get("/K2", &[]).await.status, 404);
    let hello = control.hellos().pop().unwrap();
    assert_eq!(hello.applied, last, "it went on from its disk");
    edge.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_replica_files_are_reloaded_from_control() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    many(&control, 5);
    whole(&control, folder.path(), 5).await.stop().await;
    let path = folder.path().join("links");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let edge = whole(&control, folder.path(), 5).await;
    edge.assert_leads("K0", "https://example.com/0").await;
    edge.stop().await;
}
