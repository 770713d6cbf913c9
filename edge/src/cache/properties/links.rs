//! Digital Links in the same model: an edge that holds every link offers their records to the entries.

use std::sync::Arc;

use proptest::prelude::*;
use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    wire::stream::Rev,
};

use super::{
    replica::whole,
    world::{KEYS, LINKS, key, record},
};
use crate::cache::{
    Held, KeyRef, Served,
    generation::{Generation, Listed},
};

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A client asks, and what only the full replica holds is offered at once.
    Ask { key: u8 },
    /// A client asks, and the offer comes later.
    LookUp { key: u8 },
    /// An offer comes; any of those that are late.
    Offer { which: u8 },
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    let key = LINKS..KEYS;
    prop_oneof![
        1 => key.clone().prop_map(|key| Step::Ask { key }),
        1 => key.prop_map(|key| Step::LookUp { key }),
        1 => any::<u8>().prop_map(|which| Step::Offer { which }),
    ]
}

/// Records that are offered late, each with the generation that they were read in.
#[derive(Default)]
pub(super) struct World {
    offers: Vec<(Arc<Generation>, Listed)>,
}

/// The short id of a key from [`LINKS`] on.
pub(super) fn level(n: u8) -> &'static str {
    if n == LINKS { "01/09506000134352" } else { "01/09506000134352/21/A%2F1" }
}

/// The links that revision `rev` wrote; their target contains the revision.
pub(super) fn set(rev: Rev) -> LinkSet {
    let link = TypedLink {
        link_type: "gs1:pip".into(),
        href: format!("https://example.com/{rev}?serial={{21}}").into(),
        title: "A shoe".into(),
        media_type: None,
        hreflang: vec!["en".into()],
        context: Vec::new(),
        from: None,
        to: None,
        default: true,
    };
    LinkSet { description: "A shoe".into(), serial_mode: SerialMode::Overrides, links: vec![link] }
}

impl super::World {
    pub(super) fn links_step(&mut self, step: Step) {
        match step {
            Step::Ask { key: n } => {
                let held = self.cache.held_links(KeyRef::of(&key(n)));
                self.serve_held(n, held);
            }
            Step::LookUp { key: n } => {
                let generation = self.cache.generation.load_full();
                let (held, listed) = generation.look_up_links(KeyRef::of(&key(n)), self.cache.is_live());
                self.links.offers.extend(listed.map(|listed| (generation, listed)));
                self.serve_held(n, held);
            }
            Step::Offer { which } => {
                if !self.links.offers.is_empty() {
                    let which = usize::from(which) % self.links.offers.len();
                    let (generation, listed) = self.links.offers.swap_remove(which);
                    generation.take_listed(listed);
                }
            }
        }
    }
}

/// The revision that is shown, or a verified absence.
fn shown(world: &super::World, n: u8) -> Option<Rev> {
    match world.cache.held_links(KeyRef::of(&key(n))) {
        Held::Present(served) => super::rev_of(&Some(served)),
        Held::Absent => None,
        other => panic!("key {n} is {other:?}"),
    }
}

#[test]
fn the_table_does_not_take_back_a_change_that_was_served() {
    // Created again, changed, deleted.
    for (was_deleted, is_there) in [(true, true), (false, true), (false, false)] {
        let mut world = whole();
        assert!(shown(&world, LINKS).is_some(), "it is in the entries now");
        if was_deleted {
            world.step(super::Step::Write { key: LINKS, delete: true });
            world.step(super::Step::Deliver { count: 1 });
        }
        let rev = world.head() + 1;
        let served = is_there.then(|| Arc::new(Served::new(&key(LINKS), record(LINKS, rev)).unwrap()));
        // The event is not in the table yet.
        world.cache.generation.load().enter(rev, &key(LINKS), served);
        let expected = is_there.then_some(rev);
        assert_eq!(shown(&world, LINKS), expected, "from the entries");
        world.cache.evict(&key(LINKS));
        assert_eq!(shown(&world, LINKS), expected, "lifted by the tail");
    }
}

#[test]
fn a_record_that_was_removed_does_not_come_back_by_a_late_offer() {
    let mut world = whole();
    world.step(super::Step::Links(Step::LookUp { key: LINKS }));
    assert_eq!(world.links.offers.len(), 1, "only the table holds it");
    world.step(super::Step::Write { key: LINKS, delete: true });
    world.step(super::Step::Deliver { count: 1 });
    world.step(super::Step::Links(Step::Offer { which: 0 }));
    assert_eq!(shown(&world, LINKS), None);
    // Nor when the table must not answer.
    world.cache.set_live(false);
    let held = world.cache.held_links(KeyRef::of(&key(LINKS)));
    assert!(matches!(held, Held::Nothing), "{held:?}");
}

#[test]
fn a_record_is_read_from_the_table_once() {
    let mut world = whole();
    for is_offered in [true, false] {
        world.step(super::Step::Links(Step::LookUp { key: LINKS }));
        let offer = world.links.offers.pop();
        assert_eq!(offer.is_some(), is_offered);
        if let Some((generation, listed)) = offer {
            generation.take_listed(listed);
        }
    }
    // The entry follows the stream as any other does.
    world.step(super::Step::Write { key: LINKS, delete: false });
    world.step(super::Step::Deliver { count: 1 });
    world.step(super::Step::Links(Step::LookUp { key: LINKS }));
    assert!(world.links.offers.is_empty());
    assert_eq!(shown(&world, LINKS), Some(world.head()));
}
