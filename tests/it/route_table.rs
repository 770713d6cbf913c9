//! The route table of control, and who else knows some of it.

use control::http::policies;
use edge::is_management;

#[test]
fn edges_pass_on_what_the_table_gives_to_them() {
    let mut count = 0;
    for (method, path, policy) in policies().iter() {
        let uri = path.trim_start_matches('/').replace(['{', '}'], "");
        assert_eq!(is_management(&uri), policy.by_edges, "{method} {path}");
        assert_eq!(is_management(&format!("v2/{uri}")), policy.by_edges, "{method} /v2{path}");
        count += usize::from(policy.by_edges);
    }
    assert!(count > 10, "{count} operations by edges");
}
