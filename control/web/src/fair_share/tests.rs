use axum::{extract::FromRequestParts, http::Request};
use futures_util::FutureExt;

use super::*;
use crate::extract::Query;

fn account(n: u8) -> AccountId {
    AccountId::new(1, [n; 16])
}

/// Places that are limited for as long as a test takes.
fn contended(places: usize, most: usize) -> Arc<FairShare> {
    let share = FairShare::new(places, most);
    share.lock().contended_until = Some(Instant::now() + Duration::from_secs(3_600));
    share
}

/// What a request gets at once.
fn ask(share: &Arc<FairShare>, n: u8) -> Option<Place> {
    share.enter(account(n), false).now_or_never().map(Result::unwrap)
}

#[test]
fn an_account_alone_is_not_limited() {
    let share = FairShare::new(2, 4);
    let places: Vec<_> = (0..100).map(|_| ask(&share, 1).unwrap()).collect();
    assert!(ask(&share, 2).is_none(), "too many are under way");
    assert!(ask(&share, 1).is_none(), "it is not alone any more");
    drop(places);
    let state = share.lock();
    assert_eq!(
        (state.under_way, state.present, state.queue.len()),
        (0, 0, 0),
        "callers that left get nothing"
    );
}

#[test]
fn an_account_gets_its_part_whatever_the_others_have() {
    let share = contended(4, 6);
    let first = ask(&share, 2).unwrap();
    let noisy: Vec<_> = (0..3).map(|_| ask(&share, 1).unwrap()).collect();
    let mut waiting: Vec<_> = (0..40).map(|_| Box::pin(share.enter(account(1), false))).collect();
    assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
    assert_eq!(share.count_waiting(), 40);
    assert!(ask(&share, 2).is_some(), "beyond the usual places");
    let others: Vec<_> = (3..5).filter_map(|n| ask(&share, n)).collect();
    assert_eq!(others.len(), 2, "beyond the usual places");
    assert!(ask(&share, 5).is_none(), "these are all");
    drop((noisy, others));
    assert!(waiting.iter_mut().filter_map(|one| one.now_or_never()).count() >= 3, "places are used");
    drop(waiting);
    drop(first);
    assert_eq!((share.count_waiting(), share.lock().under_way), (0, 0));
}

#[test]
fn the_account_that_used_least_goes_next() {
    let share = contended(1, 1);
    let used = ask(&share, 1).unwrap();
    let mut noisy: Vec<_> = (0..3).map(|_| Box::pin(share.enter(account(1), false))).collect();
    assert!(noisy.iter_mut().all(|one| one.now_or_never().is_none()));
    let mut quiet = Box::pin(share.enter(account(3), false));
    assert!((&mut quiet).now_or_never().is_none());
    std::thread::sleep(Duration::from_millis(2));
    drop(used);
    let place = (&mut quiet).now_or_never().unwrap().unwrap();
    assert!(noisy.iter_mut().all(|one| one.now_or_never().is_none()), "one place");
    drop(place);
    let got: Vec<_> = noisy.iter_mut().map(|one| one.now_or_never()).collect();
    assert!(got[0].is_some() && got[1..].iter().all(Option::is_none), "in the order in which they came");
}

#[test]
fn an_account_with_many_that_wait_is_refused() {
    let share = contended(1, 1);
    let _used = ask(&share, 1).unwrap();
    let mut waiting: Vec<_> =
        (0..MOST_WAITING / 2).map(|_| Box::pin(share.enter(account(1), true))).collect();
    assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
    assert!(
        share.enter(account(1), true).now_or_never().unwrap().is_err(),
        "strangers leave the others a half"
    );
    waiting.extend((0..MOST_WAITING / 2).map(|_| Box::pin(share.enter(account(1), false))));
    assert!(waiting.iter_mut().skip(MOST_WAITING / 2).all(|one| one.now_or_never().is_none()));
    let refused = share.enter(account(1), false).now_or_never().unwrap().unwrap_err().to_string();
    assert!(refused.contains(account(1).as_str()), "{refused}");
    assert!(ask(&share, 2).is_none(), "the other account may wait");
}

#[tokio::test]
async fn a_place_is_free_once_it_is_given_back_or_nobody_knows_it() {
    let share = contended(1, 1);
    let slot = Slot::new(share.clone());
    slot.note(account(1), false);
    let (mut parts, ()) = Request::builder().extension(slot.clone()).body(()).unwrap().into_parts();
    let query = Query::from_request_parts(&mut parts, &()).await.unwrap();
    slot.enter().await.unwrap();
    assert!(ask(&share, 2).is_none(), "the request has the place");
    query.slot.give_back();
    assert!(ask(&share, 2).is_some(), "given back by another part of the request");
    slot.enter().await.unwrap();
    drop((parts, slot));
    assert!(ask(&share, 2).is_none(), "a part of the request goes on");
    drop(query);
    assert!(ask(&share, 2).is_some(), "the request is gone");
}

#[test]
fn use_fades_and_little_is_forgotten() {
    let share = FairShare::new(1, 1);
    drop(ask(&share, 1));
    let mut state = share.lock();
    let now = Instant::now();
    assert!(state.weight(now + HALF_LIFE) > 1.9);
    for (n, used) in [(1, 1e3), (2, 0.0), (3, 1e9)] {
        state.accounts.entry(account(n)).or_default().used = used;
    }
    assert!((state.weight(now + 30 * HALF_LIFE) - 1.0).abs() < 1e-9);
    assert!(state.accounts.len() == 1 && state.accounts.contains_key(&account(3)), "{:?}", state.accounts);
}
