use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn bounds() -> Bounds {
    Bounds { newcomers: Some(4), public: 3, per_key: 2, per_account: 4, ..Bounds::plain(8, 100) }
}

fn holder(rank: Rank, key: u8, account: &str) -> Holder {
    Holder { rank, key: [key; 32], account: account.to_owned(), is_operator: true }
}

fn is_displaced(permit: &Permit) -> bool {
    permit.handle().prove(&holder(Rank::Trusted, 99, "probe")) == Err(Refused::Displaced)
}

#[test]
fn permits_per_address_are_counted_and_returned() {
    let permits = Permits::new(Bounds::plain(1_000_000, 2));
    let [a, b, loopback] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(ip);
    let first = permits.enter(a, false).unwrap();
    let _second = permits.enter(a, false).unwrap();
    assert_eq!(permits.enter(a, false).unwrap_err(), Refused::Address);
    let _other = permits.enter(b, false).unwrap();
    drop(first);
    let _third = permits.enter(a, false).unwrap();
    assert!(permits.enter(a, false).is_err());
    let [six, same_64, other_64] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(ip);
    let sixes = [permits.enter(six, false).unwrap(), permits.enter(same_64, false).unwrap()];
    assert!(permits.enter(six, false).is_err());
    assert!(permits.enter(other_64, false).is_ok());
    let many: Vec<_> = (0..1_000).map(|_| permits.enter(loopback, true).unwrap()).collect();
    drop((many, sixes));
    assert_eq!(permits.lock().owners.len(), 2, "only addresses with connections are held");
    assert_eq!((permits.taken(), permits.refused(Refused::Address)), (3, 3));
}

#[test]
fn plain_permits_run_out_without_closing_others() {
    let permits = Permits::new(Bounds::plain(1, 10));
    let permit = permits.enter(ip("192.0.2.1"), false).unwrap();
    assert_eq!(permits.enter(ip("192.0.2.2"), false).unwrap_err(), Refused::Full);
    drop(permit);
    assert!(permits.enter(ip("192.0.2.2"), false).is_ok());
}

#[test]
fn a_newcomer_of_the_address_with_most_permits_is_closed() {
    let permits = Permits::new(bounds());
    let lone = permits.enter(ip("192.0.2.1"), false).unwrap();
    let crowd: Vec<_> = (0..50).map(|_| permits.enter(ip("192.0.2.2"), false).unwrap()).collect();
    assert!(!is_displaced(&lone), "the one of another address stays");
    assert_eq!(permits.refused(Refused::Displaced), 47);
    drop(crowd);
    assert_eq!(permits.taken(), 1);
}

#[test]
fn connections_with_a_request_in_flight_are_closed_last() {
    let permits = Permits::new(bounds());
    let busy = permits.enter(ip("192.0.2.2"), false).unwrap();
    let request = busy.handle().begin();
    let crowd: Vec<_> = (0..50).map(|n| permits.enter(ip(&format!("192.0.3.{n}")), false).unwrap()).collect();
    drop(request);
    assert!(!is_displaced(&busy));
    drop(crowd);
}

#[test]
fn public_keys_take_their_share_and_operators_the_rest() {
    let permits = Permits::new(bounds());
    let enter = || permits.enter(ip("127.0.0.1"), true).unwrap();
    let public: Vec<_> = (0..5_u8)
        .filter_map(|key| {
            let permit = enter();
            permit.handle().prove(&holder(Rank::Public, key, "a")).is_ok().then_some(permit)
        })
        .collect();
    assert_eq!((public.len(), permits.refused(Refused::Public)), (3, 2));
    let strangers: Vec<_> = (0..20).map(|_| enter()).collect();
    let operator = enter();
    operator.handle().prove(&holder(Rank::Trusted, 9, "a")).unwrap();
    // A key that comes again on the same connection counts once.
    operator.handle().prove(&holder(Rank::Trusted, 9, "a")).unwrap();
    let more: Vec<_> = (0..20).map(|_| enter()).collect();
    assert_eq!(permits.taken(), 3 + 4 + 1);
    drop((public, strangers, more));
    assert_eq!(permits.taken(), 1);
    let state = permits.lock();
    assert_eq!((state.public, state.newcomers.len(), state.owners.len()), (0, 0, 2));
}

#[test]
fn keys_and_accounts_have_bounds() {
    let permits = Permits::new(Bounds { most: 100, newcomers: Some(50), ..bounds() });
    let prove = |key, account| {
        let permit = permits.enter(ip("127.0.0.1"), true).unwrap();
        permit.handle().prove(&holder(Rank::Trusted, key, account)).map(|()| permit)
    };
    let held: Vec<_> = [(1, "a"), (1, "a"), (2, "a"), (2, "a")].map(|(k, a)| prove(k, a).unwrap()).into();
    for (key, account, expected) in [(1, "b", Refused::Key), (3, "a", Refused::Account)] {
        assert_eq!(prove(key, account).map(drop), Err(expected), "{key} {account}");
    }
    drop(held);
    prove(1, "b").unwrap();
}

#[test]
fn applications_of_an_account_leave_room_to_its_operators() {
    let permits = Permits::new(Bounds { per_applications: 3, ..Bounds::plain(100, 100) });
    let prove = |key, is_operator| {
        let permit = permits.enter(ip("127.0.0.1"), true).unwrap();
        let holder = Holder { is_operator, ..holder(Rank::Trusted, key, "a") };
        permit.handle().prove(&holder).map(|()| permit)
    };
    let held: Vec<_> = (0..3).map(|key| prove(key, false).unwrap()).collect();
    assert_eq!(prove(3, false).map(drop), Err(Refused::Account));
    let operator = prove(4, true).unwrap();
    drop(held);
    drop((prove(5, false).unwrap(), operator));
    assert!(permits.lock().owners.is_empty(), "all that was taken is given back");
}

#[test]
fn public_keys_of_one_account_leave_room_to_those_of_others() {
    let permits = Permits::new(Bounds { public: 4, per_account_public: 2, ..Bounds::plain(100, 100) });
    let prove = |rank, key, account| {
        let permit = permits.enter(ip("127.0.0.1"), true).unwrap();
        permit.handle().prove(&holder(rank, key, account)).map(|()| permit)
    };
    let first: Vec<_> = (0..2).map(|key| prove(Rank::Public, key, "a").unwrap()).collect();
    assert_eq!(prove(Rank::Public, 2, "a").map(drop), Err(Refused::Public));
    let _other = prove(Rank::Public, 3, "b").unwrap();
    assert_eq!(
        prove(Rank::Public, 4, "b").map(drop),
        Err(Refused::Public),
        "the last is for one that has none"
    );
    let last = prove(Rank::Public, 5, "c").unwrap();
    assert_eq!(prove(Rank::Public, 6, "d").map(drop), Err(Refused::Public), "all together");
    // Who shows a secret key later no longer counts among them.
    first[0].handle().prove(&holder(Rank::Trusted, 9, "a")).unwrap();
    drop(last);
    let _again = prove(Rank::Public, 6, "a").unwrap();
}

#[test]
fn behind_a_proxy_only_long_lived_connections_are_counted() {
    let permits = Permits::new(Bounds { per_address: 1, ..bounds() });
    let client = Some(ip("198.51.100.1"));
    let relay = || {
        let permit = permits.enter(ip("10.0.0.1"), true).unwrap();
        permit.handle().relay();
        permit
    };
    let pooled = relay();
    for key in 0..20 {
        pooled.handle().prove(&holder(Rank::Public, key, "a")).unwrap();
    }
    let socket = relay();
    socket.handle().hold(&holder(Rank::Public, 1, "a"), client).unwrap();
    assert_eq!(relay().handle().hold(&holder(Rank::Public, 2, "a"), client), Err(Refused::Address));
    drop(socket);
    relay().handle().hold(&holder(Rank::Public, 2, "a"), client).unwrap();
}

#[test]
fn accounts_that_take_all_leave_room_for_one_that_comes_late() {
    const MOST: usize = 64;
    let accounts: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let (per_account, per_account_public) = (48, 16);
    let bounds = Bounds { public: 32, per_account, per_account_public, ..Bounds::plain(MOST, MOST) };
    for rank in [Rank::Trusted, Rank::Public] {
        let permits = Permits::new(bounds);
        let enter = |account: &str, key: u8| {
            let permit = permits.enter(ip("127.0.0.1"), true)?;
            permit.handle().hold(&Holder { rank, ..holder(rank, key, account) }, None)?;
            Ok::<_, Refused>(permit)
        };
        let mut held = Vec::new();
        for key in 0..40 {
            held.extend(accounts.iter().filter_map(|account| enter(account, key).ok()));
        }
        assert!(permits.taken() < MOST, "{rank:?}: {} of {MOST}", permits.taken());
        assert!(enter("0", 100).is_err(), "{rank:?}: the first has what it gets");
        assert!(enter("late", 100).is_ok(), "{rank:?}: one that comes late");
    }
}
