use super::*;

const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

fn claim() -> Claim {
    Claim::new(AccountId::new(1, [1; 16]), "go.example".parse().unwrap(), [0xab; 16], NOW)
}

fn missing() -> Finding {
    Finding::Missing("nothing".to_owned())
}

#[test]
fn a_claim_says_what_proves_it() {
    let claim = claim();
    assert_eq!(claim.record_name(), "_waymark.go.example");
    assert_eq!(claim.content(), format!("waymark-domain={}", "ab".repeat(16)));
    assert_eq!(claim.file_url(), "https://go.example/.well-known/waymark-domain.txt");
}

#[test]
fn pauses_grow_to_six_hours_and_the_claim_ends_after_a_week() {
    let (mut claim, mut pauses) = (claim(), Vec::new());
    let mut now = NOW;
    while !claim.has_ended(now) {
        let next = claim.next_check.unwrap();
        pauses.push(next.0 - now.0);
        now = next;
        claim = claim.after(missing(), now, 0);
        assert_eq!(claim.state, State::Pending);
    }
    let minutes: Vec<i64> = pauses.iter().map(|pause| pause / MINUTE_MS).collect();
    assert_eq!(minutes[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
    assert_eq!(claim.ends_at, Some(UnixMillis(NOW.0 + UNPROVEN_MS)));
    let proven = claim.after(Finding::Proven(Proof::Txt), now, 0);
    assert_eq!((proven.state, proven.ends_at), (State::Verified, None), "one that is proven stays");
    let refused = proven.after(Finding::Taken, now, 0);
    assert_eq!(refused.ends_at, Some(UnixMillis(now.0 + UNPROVEN_MS)), "from the loss on");
}

#[test]
fn a_proof_is_lost_after_three_checks_and_may_come_back() {
    let proven = claim().after(Finding::Proven(Proof::File), NOW, 0);
    assert_eq!((proven.state, proven.proof), (State::Verified, Some(Proof::File)));
    assert_eq!(proven.next_check, Some(UnixMillis(NOW.0 + DAY_MS)));
    let at = |hours: i64| UnixMillis(NOW.0 + hours * HOUR_MS);
    let once = proven.after(missing(), at(24), 0);
    assert_eq!((once.state, once.next_check), (State::Verified, Some(at(25))));
    let again = once.clone().after(Finding::Proven(Proof::Txt), at(25), 0);
    assert_eq!((again.failures, again.fault), (0, None), "one failure is no loss");
    let lost = once.after(missing(), at(25), 0).after(missing(), at(26), 0);
    assert_eq!((lost.state, lost.unproven_since), (State::Unproven, Some(at(26))));
    let still = lost.after(missing(), at(27), 0);
    assert_eq!((still.unproven_since, still.next_check), (Some(at(26)), Some(at(33))));
    assert_eq!(still.opens_at(), Some(at(26 + 30 * 24)));
    let week = 26 + 7 * 24;
    let [early, late] = [week - 1, week].map(|hours| still.clone().after(missing(), at(hours), 0));
    assert_eq!((early.begins_week(&still), late.begins_week(&early)), (false, true));
    assert!(!late.clone().after(missing(), at(week + 1), 0).begins_week(&late), "once a week");
    assert_eq!(still.verified_at, Some(NOW));
    let back = still.after(Finding::Proven(Proof::Txt), at(33), 0);
    assert_eq!((back.state, back.unproven_since, back.failures), (State::Verified, None, 0));
    assert_eq!(back.opens_at(), None);
    let released = back.clone().released([0xcd; 16], at(34));
    assert!(released.opens_at() == Some(at(34)) && released.content() != back.content());
}

#[test]
fn checks_in_a_hurry_lose_no_proof() {
    let mut claim = claim().after(Finding::Proven(Proof::Txt), NOW, 0);
    for minutes in [1, 2, 3, 4, 25 * 60] {
        claim = claim.after(missing(), UnixMillis(NOW.0 + minutes * MINUTE_MS), 0);
        assert_eq!(claim.state, State::Verified, "{minutes}");
    }
    let lost = claim.clone().after(missing(), UnixMillis(NOW.0 + 26 * HOUR_MS), 0);
    assert_eq!((lost.state, lost.failures), (State::Unproven, 6));
    let ahead = Claim { verified_at: Some(UnixMillis(NOW.0 + 400 * DAY_MS)), ..claim };
    let lost = ahead.after(missing(), UnixMillis(NOW.0 + 26 * HOUR_MS), 0);
    assert_eq!(lost.state, State::Unproven, "a proof by a clock that was ahead holds no longer");
}

#[test]
fn an_outage_loses_a_proof_after_three_days() {
    let mut claim = claim().after(Finding::Proven(Proof::Txt), NOW, 0);
    let mut hours = 0;
    while claim.state == State::Verified {
        hours += 1;
        let at = UnixMillis(NOW.0 + hours * HOUR_MS);
        claim = claim.after(Finding::Unanswered("DNS gave no answer".to_owned()), at, 0);
    }
    assert_eq!((claim.state, hours), (State::Unproven, 72));
}

#[test]
fn a_claim_on_what_is_taken_waits_for_its_account() {
    let refused = claim().after(Finding::Taken, NOW, 0);
    assert_eq!((refused.state, refused.next_check), (State::Refused, None));
    assert_eq!(refused.ends_at, Some(UnixMillis(NOW.0 + UNPROVEN_MS)));
    // The other account has removed it.
    assert_eq!(refused.after(missing(), NOW, 0).state, State::Pending);
}

#[test]
fn pauses_vary_by_a_tenth() {
    let next = |jitter| claim().after(Finding::Proven(Proof::Txt), NOW, jitter).next_check.unwrap().0 - NOW.0;
    assert_eq!(next(0), DAY_MS);
    assert!(next(255) > DAY_MS && next(255) <= DAY_MS + DAY_MS / 10, "{}", next(255));
}

#[test]
fn names_are_read_back() {
    for state in State::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
    }
    for proof in Proof::ALL {
        assert_eq!(proof.as_str().parse(), Ok(proof));
    }
    assert_eq!("lost".parse::<State>(), Err(Unknown));
}
