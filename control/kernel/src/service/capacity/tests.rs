use shared::problem::Code;

use super::*;
use crate::domain::{access::UserRights, subject::Permissions};

fn actor(account: u8, kind: ActorKind, id: &str) -> Actor {
    let account = AccountId::new(1, [account; 16]);
    Actor {
        account,
        kind,
        id: id.to_owned(),
        project: None,
        app: None,
        enterprise: true,
        user_rights: UserRights::default(),
        permissions: Permissions::ALL,
        confined_to: Vec::new(),
    }
}

/// Takes slots until one is refused.
fn taken(mut take: impl FnMut(usize) -> Result<Place, ServiceError>) -> (Vec<Place>, Code) {
    let mut places = Vec::new();
    loop {
        match take(places.len()) {
            Ok(place) => places.push(place),
            Err(error) => return (places, error.code()),
        }
    }
}

#[test]
fn applications_leave_streams_to_operators_and_tenants_to_others() {
    let capacity = Capacity::default();
    let app = |n: usize| actor(1, ActorKind::TrustedApp, &n.to_string());
    let (one, code) = taken(|_| capacity.stream(&app(0), None));
    assert_eq!((one.len(), code), (20, Code::TooManyRequests));
    let (apps, _) = taken(|n| capacity.stream(&app(1 + n), None));
    assert_eq!(apps.len(), 5, "all applications of the account");
    let operator = |n: usize| actor(1, ActorKind::Operator, &n.to_string());
    let (operators, _) = taken(|n| capacity.stream(&operator(n), None));
    assert_eq!(operators.len(), 25);
    let client = "198.51.100.1".parse().ok();
    let (other, _) = taken(|n| capacity.stream(&actor(2, ActorKind::Operator, &n.to_string()), client));
    assert_eq!(other.len(), 40, "of one address");
}

#[test]
fn uploads_of_one_url_key_or_tenant_leave_places_to_others() {
    let capacity = Capacity::default();
    let account = |n: u8| AccountId::new(1, [n; 16]);
    let file = |n: usize| FileId::new(1, [u8::try_from(n).unwrap(); 16]);
    let (signed, code) = taken(|_| capacity.upload(account(1), None, file(0), None));
    assert_eq!((signed.len(), code), (8, Code::TooManyRequests));
    let (rest, _) = taken(|n| capacity.upload(account(1), None, file(1 + n), None));
    assert_eq!(rest.len(), 8, "of the account");
    let operator = actor(2, ActorKind::Operator, "o");
    let (keyed, _) = taken(|n| capacity.upload(account(2), Some(&operator), file(n), None));
    assert_eq!(keyed.len(), 8);
    let (last, code) =
        taken(|n| capacity.upload(account(3 + u8::try_from(n).unwrap()), None, file(100 + n), None));
    assert_eq!((last.len(), code), (8, Code::Unavailable), "the pool is full");
}

#[test]
fn photos_of_strangers_take_no_uploads() {
    let capacity = Capacity::default();
    let account = |n: u8| AccountId::new(1, [n; 16]);
    let (of_address, code) = taken(|_| capacity.photo(account(1), "198.51.100.1".parse().ok()));
    assert_eq!((of_address.len(), code), (4, Code::TooManyRequests));
    let (rest, _) = taken(|_| capacity.photo(account(1), None));
    assert_eq!(rest.len(), 4, "of the account");
    let (other, _) = taken(|_| capacity.photo(account(2), None));
    assert_eq!((other.len(), capacity.uploads.taken()), (4, 0), "half of those that are free");
}

/// A Thng's key can be taken out of an item: three of them must not fill an account's share.
#[test]
fn keys_of_things_leave_connections_to_operators() {
    let limits = CapacityLimits { api_connections: Some(16), ..CapacityLimits::default() };
    let permits = Capacity::new(limits).api;
    let prove = |kind, n: u8| {
        let permit = permits.enter("127.0.0.1".parse().unwrap(), true).unwrap();
        permit.handle().prove(&holder(&actor(1, kind, &n.to_string()), [n; 32])).map(|()| permit)
    };
    let things: Vec<_> = (0..16).filter_map(|n| prove(ActorKind::Thng, n).ok()).collect();
    assert_eq!(things.len(), 4, "half of what all public keys have");
    let trusted: Vec<_> = (16..32).filter_map(|n| prove(ActorKind::TrustedApp, n).ok()).collect();
    assert_eq!(trusted.len(), 4, "all applications and Things of the account have half");
    let operators: Vec<_> = (32..48).filter_map(|n| prove(ActorKind::Operator, n).ok()).collect();
    assert_eq!(operators.len(), 4);
}

#[test]
fn logins_test_events_and_look_ups_have_shares() {
    let capacity = Capacity::default();
    let app = actor(1, ActorKind::App, "a");
    assert_eq!(taken(|_| capacity.password(&app)).0.len(), 25);
    assert_eq!(taken(|_| capacity.ping(&actor(1, ActorKind::Operator, "o"))).0.len(), 4);
    let (edge, other) = ("e1".into(), "e2".into());
    let (held, code) = taken(|_| capacity.lookup(&edge));
    assert_eq!((held.len(), code), (6, Code::Unavailable));
    assert!(capacity.lookup(&other).is_ok(), "another edge is answered");
}

#[test]
fn waiting_writes_of_an_account_leave_room_to_operators_and_other_accounts() {
    type Take = fn(&Capacity, &Actor) -> Result<Place, ServiceError>;
    let pools: [(usize, Take); 4] = [
        (1_024, |capacity, actor| capacity.write(actor)),
        (1_024, |capacity, actor| capacity.change(actor)),
        (64, |capacity, actor| capacity.import(actor)),
        (8_192, |capacity, actor| capacity.property_write(actor)),
    ];
    for (most, take) in pools {
        let capacity = Capacity::default();
        let app = |n: usize| actor(1, ActorKind::App, &n.to_string());
        let (apps, code) = taken(|n| take(&capacity, &app(n)));
        assert_eq!((apps.len(), code), (most / 2, Code::TooManyRequests), "all applications of the account");
        let (operator, code) = taken(|_| take(&capacity, &actor(1, ActorKind::Operator, "o")));
        assert_eq!((operator.len(), code), (most / 4, Code::TooManyRequests), "its operators");
        let (other, code) = taken(|_| take(&capacity, &actor(2, ActorKind::Operator, "o")));
        let share = most / 16 * 3;
        assert_eq!(
            (other.len(), code),
            (share, Code::TooManyRequests),
            "another account, which leaves room too"
        );
        drop(apps);
        assert!(take(&capacity, &app(0)).is_ok(), "what was written makes room");
    }
}
