use shared::wire::PROTOCOL;

use super::*;

fn hello(edge: &str) -> Hello {
    let (region, build) = (Arc::default(), Arc::default());
    Hello {
        proto: PROTOCOL,
        edge_id: edge.into(),
        region,
        build,
        epoch: None,
        applied: 0,
        contents: Vec::new(),
        certificates: None,
    }
}

fn lease(edge: &str, session: u64, applied: Rev) -> Lease {
    Lease {
        edge_id: edge.into(),
        session,
        replica: "other".into(),
        region: Arc::default(),
        build: Arc::default(),
        applied,
        rejected: Vec::new(),
        left_ms: LEASE_MS,
    }
}

#[test]
fn an_edge_that_changes_replicas_is_counted_all_the_time() {
    let members = Members::default();
    let counts = |rev| {
        let report = members.report(rev, Instant::now());
        (report.acked, report.members, report.lagging.len() + report.unreachable.len())
    };
    members.read(vec![lease("e1", 1, 5), lease("e2", 2, 5)]);
    assert_eq!(counts(5), (2, 2, 0));
    // The replica of both dies, and one comes here. The database lists it no longer from the moment its session is opened.
    members.arrives(&"e1".into());
    members.read(vec![lease("e2", 2, 5)]);
    assert_eq!(counts(6), (0, 2, 2), "it serves what it had, and has not the change");
    assert!(members.laggard(6, Some(&"e1".into())).is_some_and(|laggard| &*laggard.edge == "e1"));
    let opened = Opened { session: 3, rejected: Vec::new() };
    assert_eq!(members.insert(&hello("e1"), Some(5), Some(opened)), 3);
    assert_eq!(counts(6), (0, 2, 2));
    members.read(vec![lease("e2", 2, 6)]);
    members.ack("e1", 3, 6, &[]);
    assert_eq!(counts(6), (2, 2, 0));
    // It goes on to a third replica before it was registered here again.
    members.arrives(&"e2".into());
    members.read(vec![lease("e2", 4, 0)]);
    assert_eq!(counts(6), (1, 2, 1), "what the database knows of it is newer");
    // Without a session that begins here, an edge that the database does not list has left the fleet.
    let others = Members::default();
    others.read(vec![lease("e1", 1, 5)]);
    others.read(Vec::new());
    assert_eq!(others.report(5, Instant::now()).members, 0);
}
