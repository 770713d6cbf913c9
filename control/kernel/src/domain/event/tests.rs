use super::*;

#[test]
fn excluded_subscribers_are_stored_as_bits() {
    for (bits, notifications, reactions) in
        [(0, false, false), (1, true, false), (2, false, true), (3, true, true)]
    {
        let quiet = Quiet { notifications, reactions };
        assert_eq!((quiet.bits(), Quiet::stored(bits), Quiet::stored(bits | 4)), (bits, quiet, quiet));
    }
}

#[test]
fn loops_of_reactions_are_cut_at_each_reaction_and_at_the_depth_limit() {
    let reaction = |n: u8| ReactionId::new(1, [n; 16]);
    let mut cause = Cause::default();
    assert_eq!((cause.stored(), Cause::read(None)), (None, Ok(Cause::default())));
    for n in 0..u8::try_from(MAX_DEPTH).unwrap() {
        cause = cause.by(reaction(n)).unwrap();
        assert!((0..=n).all(|n| cause.by(reaction(n)).is_none()), "{n} does not react to itself");
        assert_eq!(Cause::read(cause.stored().as_deref()), Ok(cause.clone()));
    }
    assert_eq!(cause.by(reaction(99)), None, "too deep");
    assert_eq!(Cause::read(Some("x")), Err(InvalidCause));
}

#[test]
fn stored_events_round_trip() {
    let point = Point {
        key: PropertyKey::stored("temp".to_owned()),
        value: json!({"a": [1.5, null, "\u{1F45F}"]}),
        timestamp: UnixMillis(-5),
        created_at: UnixMillis(7),
    };
    let action = ActionEvent {
        id: ActionId::new(1, [2; 16]),
        kind: "_own".to_owned(),
        thng: Some("T".to_owned()),
        product: None,
        collection: None,
        scopes: Some(Scopes { users: vec!["all".to_owned()], projects: vec![] }),
    };
    for event in [
        Event::Properties { owner: Owner::Product, resource: "R".to_owned(), points: vec![point] },
        Event::Properties { owner: Owner::Thng, resource: String::new(), points: vec![] },
        Event::Action(action),
        Event::Actions { kind: "_own".to_owned(), ids: vec![ActionId::new(1, [2; 16])] },
        Event::Redirections {
            change: RedirectionChange::Deleted,
            items: vec![RedirectionEvent {
                domain: "tn.gg".to_owned(),
                short_id: "A".to_owned(),
                platform_id: "U".to_owned(),
                target: None,
                title: Some("Summer".to_owned()),
                tags: None,
                status_code: RedirectStatus::MovedPermanently,
                availability: Some(Box::new(Availability {
                    valid_until: Some(UnixMillis(9)),
                    ..Availability::default()
                })),
                scopes: Scopes::default(),
            }],
        },
        Event::Job { id: JobId::new(1, [2; 16]), status: "COMPLETED".to_owned(), project: None },
        Event::PrintOrder { id: JobId::new(1, [2; 16]), status: "complete".to_owned() },
        Event::ShortDomain("go.example".to_owned(), true),
        Event::Certificate("go.example".to_owned(), None),
        Event::Certificate("go.example".to_owned(), Some("why".to_owned())),
        Event::LinkChange { id: JobId::new(1, [2; 16]), status: "complete".to_owned() },
        Event::Report(CaseId::new(1, [2; 16]), ThngId::new(1, [3; 16]), ReportId::new(1, [4; 16])),
    ] {
        assert_eq!(Event::read(event.kind(), &event.to_body()), Some(event));
    }
    for (kind, body) in [("properties", "{}"), ("action", "[]"), ("later", "{}"), ("action", "")] {
        assert_eq!(Event::read(kind, body), None, "{kind} {body}");
    }
}
