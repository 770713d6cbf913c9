//! Request bodies of operations that need one of their own.

/// The operations for which the body of all others does not do.
pub(super) const BODIES: &[(&str, &str)] = &[
    ("POST /thngs/{id}/properties", PROPERTIES),
    ("PUT /thngs/{id}/properties", PROPERTIES),
    ("POST /products/{id}/properties", PROPERTIES),
    ("PUT /products/{id}/properties", PROPERTIES),
    ("PUT /thngs/{id}/location", "[]"),
    // Neither a product nor a link of its own: users with own rights may not say either.
    ("POST /thngs", r#"{"name": "walk"}"#),
    ("POST /authentication", TRIGGER),
    ("POST /authentication/replay", r#"{"thng": "UKXAGyEf8SQ5eTDmVgGpHqAa"}"#),
    ("PUT /authentication/cases/{id}", r#"{"status": "dismissed", "reason": "walk"}"#),
    ("POST /thngs/{id}/actions/commissions", STEP),
    ("POST /thngs/{id}/actions/decommissions", STEP),
    ("POST /thngs/commissionStateList", "[]"),
    ("PUT /collections/{id}/thngs", "[]"),
    ("PUT /collections/{id}/collections", "[]"),
    ("POST /collections/{id}/collections", "[]"),
    ("POST /batches/{id}/tasks", TASK),
    ("PUT /users/passwordReset", r#"{"code": "walk", "password": "a long sentence is best"}"#),
    ("PUT /users/{id}/password", r#"{"password": "password", "newPassword": "a long sentence is best"}"#),
    (
        "PUT /me/password",
        r#"{"password": "a long sentence is best", "newPassword": "a longer sentence is better"}"#,
    ),
    ("POST /actions", r#"{"name": "_walk"}"#),
    ("POST /keys", r#"{"label": "walk"}"#),
    ("POST /accessPolicies", r#"{"name": "walk", "permissions": ["thngs:read"]}"#),
    ("PUT /accessPolicies/{id}", r#"{"name": "walk"}"#),
    ("PUT /roles/{id}/permissions", r#"[{"path": "/thngs", "access": "r"}]"#),
    ("PUT /roles/{id}/permissions/{name}", r#"{"enabled": false}"#),
    ("POST /accounts/{id}/shortDomains", r#"{"host": "walk.example"}"#),
    ("POST /jobs/actions", JOB),
    ("POST /jobs/qr", r#"{"source": {"list": {"thngs": ["UKXAGyEf8SQ5eTDmVgGpHqAa"]}}, "format": "zpl"}"#),
    ("POST /jobs/redirections", r#"{"filter": "title=nothing", "patch": {"notes": "walk"}}"#),
    ("POST /jobs/redirections/{changeId}/undo", "{}"),
    ("POST /jobs/qr/{id}/reprint", r#"{"from": 1, "to": 1}"#),
    ("POST /privacy/erasures", ERASURE),
    ("POST /projects/{id}/scanCounts", r#"{"scans": [{"timestamp": 1}]}"#),
    ("POST /webhooks", r#"{"name": "walk", "url": "https://example.com/walk"}"#),
    ("PUT /webhooks/{id}", r#"{"name": "walk"}"#),
    ("POST /reactions", REACTION),
    ("PUT /reactions/{id}", r#"{"name": "walk"}"#),
    ("POST /products/{id}/links/preview", r#"{"serial": "A1"}"#),
    ("POST /redirections/{shortId}/preview", r#"{"country": "DE"}"#),
    ("POST /redirections/{shortId}/restore", r#"{"version": "1"}"#),
    ("PUT /redirector", r#"{"rules": []}"#),
    ("PUT /accounts/{id}/pages", r#"{"name": "walk"}"#),
    ("PUT /accounts/{id}/shortDomains/{domain}/pages", r#"{"name": "walk"}"#),
    ("PUT /projects/{project}/applications/{id}/redirector", r#"{"rules": []}"#),
];

const STEP: &str = r#"{"product": "gs1:01:1", "location": {"position": {"type": "Point", "coordinates": [1, 2]}},
    "occurredAt": "2026-11-22T08:15:30+01:00"}"#;
pub(super) const JOB: &str = r#"{"payload": {"type": "scans"}, "target": "THNGS",
    "input": {"type": "LIST", "contentType": "EXTERNAL_IDS", "payload": ["a:b"]}}"#;

/// Of a network for documentation, long ago.
pub(super) const ERASURE: &str = r#"{"network": "203.0.113.0/24", "from": 1, "to": 2}"#;

pub(super) const TASK: &str = r#"{"type": "POPULATING", "inputParameters": {"type": "FIXED_AMOUNT",
    "generateThngs": true, "thngTemplate": {"name": "x"}, "quantity": 1}}"#;

pub(super) const TRIGGER: &str = r#"{"id": "UKXAGyEf8SQ5eTDmVgGpHqAa", "type": "scans", "locationSource": "unknown", "location":
    {"latitude": 2, "longitude": 1, "position": {"type": "Point", "coordinates": [1, 2]}}}"#;

const PROPERTIES: &str = r#"[{"key": "temp", "value": 1}]"#;

/// A webhook that nothing is sent to.
pub(super) const WEBHOOK: &str =
    r#"{"name": "x", "url": "https://webhooks.invalid/hook", "status": "disabled"}"#;

/// A reaction that does nothing.
pub(super) const REACTION: &str =
    r#"{"name": "x", "status": "disabled", "effect": {"type": "property", "key": "walk", "value": 1}}"#;
