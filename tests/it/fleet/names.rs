//! Where each named check of the push to edges is; a test keeps this table true.

use std::fs;

use tests::product::root;

/// Name of the check, file, and the function that is the check.
const CHECKS: [(&str, &str, &str); 30] = [
    ("push_latency_1", "benches/src/push.rs", "measure"),
    ("push_latency_100", "benches/src/push.rs", "measure"),
    ("push_latency_1000", "benches/src/push.rs", "measure"),
    ("resume_after_cut_1", "tests/it/fleet/stream.rs", "resume_after_cut_1"),
    ("resume_after_cut_10k", "tests/it/fleet/stream.rs", "resume_after_cut_many"),
    ("resume_after_cut_beyond_ring", "tests/it/fleet/stream.rs", "resume_after_cut_beyond_ring"),
    ("resume_after_cut_beyond_compaction", "tests/it/fleet/stream.rs", "resume_after_cut_beyond_compaction"),
    ("lost_tail_detected", "edge/tests/it/stream.rs", "a_lost_message_causes_a_resync"),
    ("gap_forces_resync", "edge/tests/it/stream.rs", "a_lost_message_causes_a_resync"),
    ("dup_and_reorder_noop", "edge/src/cache/properties.rs", "no_stale_value_is_ever_served"),
    ("delete_not_resurrected", "tests/it/update.rs", "created_links_are_served_and_deleted_ones_are_404"),
    ("negative_then_create", "edge/tests/it/stream.rs", "an_unknown_id_is_cached_until_it_is_created"),
    ("redis_flush_no_404", "edge/tests/it/fleet.rs", "redis_flush_no_404_and_redis_rollback_no_regress"),
    (
        "redis_rollback_no_regress",
        "edge/tests/it/fleet.rs",
        "redis_flush_no_404_and_redis_rollback_no_regress",
    ),
    ("redis_down_serve", "edge/tests/it/fleet.rs", "redis_down_serve"),
    ("both_down_boot_from_disk", "edge/tests/it/fleet.rs", "both_down_boot_from_disk"),
    ("epoch_change_resync", "tests/it/fleet/restore.rs", "restore_drill_into_another_server"),
    ("two_publishers_fenced", "tests/it/publisher/faults.rs", "two_publishers_fenced"),
    ("slow_edge_no_memory_growth", "tests/it/fleet/stream.rs", "slow_edge_no_memory_growth"),
    ("poison_item_rejected", "edge/tests/it/stream.rs", "an_invalid_change_is_rejected_alone"),
    ("compaction_during_watch", "tests/it/publisher/faults.rs", "compaction_during_watch"),
    ("heartbeat_never_overtakes_events", "tests/src/raw_edge.rs", "follow"),
    ("starvation_under_1M_bulk", "benches/src/push.rs", "measure_bulk"),
    ("clock_jump", "edge/tests/it/stream.rs", "clock_jump"),
    ("rolling_restart", "tests/it/fleet/rolling.rs", "rolling_restart"),
    ("snapshot_while_writing", "tests/it/fleet/stream.rs", "snapshot_while_writing"),
    ("full replica", "edge/src/cache/properties/replica.rs", "assert_whole"),
    ("simulated network", "tests/it/simulation.rs", "no_stale_read_under_any_network_fault"),
    ("other releases", "tests/it/fleet/other_release.rs", "a_control_of_the_next_release_leads_this_edge"),
    ("model and its broken forms", "tests/model/main.rs", "all_hold"),
];

#[test]
fn every_named_check_exists() {
    let missing: Vec<String> = CHECKS
        .iter()
        .filter(|(_, file, function)| {
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            !text.contains(&format!("fn {function}("))
        })
        .map(|(name, file, function)| format!("{name}: {file} has no {function}"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
