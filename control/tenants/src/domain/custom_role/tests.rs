use kernel::domain::body::assert_faults;
use serde_json::json;

use super::*;

#[test]
fn each_fault_of_a_role_is_named() {
    let pool = json!({"name": "x", "permissions": ["actions:create", "places:list,read,update",
        "purchaseOrders:list,read"], "uiPermissions": ["a"], "homepage": "a"});
    for (body, faults) in [
        (pool, vec![]),
        (json!({}), vec!["permissions is required", "name is required"]),
        (json!({"name": "evt:x", "permissions": []}), vec!["name: that of a role"]),
        (json!({"name": "owner", "permissions": []}), vec!["name: that of a role"]),
        (
            json!({"name": "x", "permissions": ["a:b", "owners:update", "status:delete", "a:read b:read"]}),
            vec!["[0]: \"a:b\" is no permission", "[1]: only the role", "[2]: there is no", "[3]"],
        ),
    ] {
        assert_faults(&body, |body| RoleChange::parse_policy(body, Purpose::Create), &faults);
    }
    for (body, faults) in [
        (json!([{"path": "/thngs", "access": "rc"}, {"path": "/access", "access": "r"}]), vec![]),
        (json!({}), vec!["must be a JSON array"]),
        (json!([{}]), vec!["[0].path is required", "[0].access is required"]),
        (json!([{"path": "/x", "access": "x"}]), vec!["[0].path: \"/x\"", "[0].access must be"]),
    ] {
        assert_faults(&body, parse_paths, &faults);
    }
}

#[test]
fn groups_are_given_and_taken_and_the_rest_is_kept() {
    let stamp = Stamp::new(UnixMillis(1));
    let permissions = vec!["jobs:create".to_owned(), "purchaseOrders:read".to_owned()];
    let details = RoleDetails { permissions, ..RoleDetails::default() };
    let (id, name) = (RoleId::new(1, [1; 16]), "x".to_owned());
    let role = Role { id, stamp, name, kind: RoleKind::Operator, details };
    let group = role::find_group("audit_read").unwrap();
    let more = role.clone().switch(group, true, UnixMillis(2));
    assert_eq!(more.details.permissions, ["jobs:create", "audit:read,list", "purchaseOrders:read"]);
    assert_eq!(more.switch(group, false, UnixMillis(3)).details, role.details);
    let paths = json!([{"path": "/thngs", "access": "r"}, {"path": "/thngs", "access": "c"}]);
    let paths = parse_paths(&paths).unwrap();
    let role = Role { kind: RoleKind::User, details: RoleDetails { paths, ..role.details }, ..role };
    let may = role.permissions();
    assert!(may.allow(Verb::Create, Subject::Properties) && may.allow(Verb::List, Subject::Thngs));
    assert!(!may.allow(Verb::Update, Subject::Thngs) && !may.allow(Verb::Read, Subject::Products));
    assert!(may.allow(Verb::Update, Subject::Users), "each user may change itself");
    assert_eq!(role.paths().len(), 6);
}
