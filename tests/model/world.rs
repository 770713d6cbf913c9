//! The whole model: possible next steps, and their effects.

mod action;

pub(super) use self::action::{Action, Fault};
use super::{
    edge::{Cache, Disk, EventStep},
    lease::Lease,
    redis::{Publisher, Shard, View},
    replica::Offered,
    rule::Rule,
    truth::{Control, KEYS, NONE, Value},
    watch::{Request, Watch},
};

/// Most requests that wait at the same time.
const REQUESTS: usize = 3;

/// A fill under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    /// None.
    Idle,
    /// It has yet to read.
    Started,
    /// It has read.
    Read(View),
    /// It was rejected; the tail may help.
    Lagging(View),
    /// The tail did not help: it may read again, or ask control.
    Rejected,
    /// It is done.
    Landed { epoch: u8, as_of: u8, value: Value },
}

/// The connection between edge and control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Link {
    /// Epoch of the stream that flows; [`NONE`] when none does.
    pub(super) epoch: u8,
    /// Epoch and head of the welcome under way.
    pub(super) welcome: Option<(u8, u8)>,
}

/// What the checker explores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) control: Control,
    pub(super) shards: [Shard; 2],
    pub(super) copy: Option<(u8, Shard)>,
    pub(super) publishers: [Publisher; 2],
    pub(super) cache: Cache,
    pub(super) link: Link,
    pub(super) flights: [Flight; KEYS],
    pub(super) leases: [bool; KEYS],
    pub(super) requests: [Request; REQUESTS],
    /// A record of the full replica that is yet to be offered.
    pub(super) offered: Option<Offered>,
    pub(super) disk: Option<Disk>,
    /// The disk snapshot that is being written.
    pub(super) saving: Option<Disk>,
    pub(super) watch: Watch,
    pub(super) lease: Lease,
    pub(super) writes_left: u8,
    pub(super) faults_left: u8,
}

/// Where things are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// The floor of each key.
    pub(super) slots: [usize; KEYS],
    /// The keys of each shard.
    pub(super) shards: &'static [&'static [usize]],
}

impl Places {
    pub(super) fn shard_of(&self, key: usize) -> usize {
        self.shards.iter().position(|keys| keys.contains(&key)).unwrap()
    }
}

impl World {
    pub(super) fn new(first: Value, places: &Places, writes: u8, faults: u8) -> Self {
        let control = Control::new(first);
        let shard = |number: usize| {
            places.shards.get(number).map_or(Shard::FLUSHED, |keys| Shard::new(&control, keys))
        };
        let shards = [shard(0), shard(1)];
        Self {
            control,
            shards,
            copy: None,
            publishers: [Publisher { term: 1, ..Publisher::DOWN }, Publisher::DOWN],
            cache: Cache::new(0, 1),
            link: Link { epoch: 0, welcome: None },
            flights: [Flight::Idle; KEYS],
            leases: [false; KEYS],
            requests: [Request::NONE; REQUESTS],
            offered: None,
            disk: None,
            saving: None,
            watch: Watch::NEW,
            lease: Lease::NEW,
            writes_left: writes,
            faults_left: faults,
        }
    }

    /// Takes one step; `None` when it cannot be taken or changes nothing.
    pub(super) fn step(&self, rule: &Rule, places: &Places, action: Action) -> Option<Self> {
        let mut next = *self;
        next.take(rule, places, action)?;
        next.requests.sort_unstable();
        (next != *self).then_some(next)
    }

    fn take(&mut self, rule: &Rule, places: &Places, action: Action) -> Option<()> {
        match action {
            Action::Write { key, put } => {
                self.writes_left = self.writes_left.checked_sub(1)?;
                self.control.write(key, put);
            }
            Action::Publish { publisher, shard } => {
                self.publish(rule, places, publisher.into(), shard.into())?
            }
            Action::Failover => {
                let (number, shard) = self.copy.take()?;
                self.shards[usize::from(number)] = shard;
            }
            Action::Dial => {
                self.link.welcome = Some((self.control.epoch, self.control.now().head));
            }
            Action::Welcome { snapshot } => self.welcome(rule, snapshot)?,
            Action::Apply => {
                for step in EventStep::ALL {
                    if step != EventStep::Table || self.cache.replica.is_some() {
                        self.event(rule, places, step)?;
                    }
                }
            }
            Action::Event(step) => self.event(rule, places, step)?,
            Action::Stray { rev } => {
                if rule.gaps_are_refused || rev <= self.cache.applied + 1 || self.cache.is_busy() {
                    return None;
                }
                let (before, write) = (self.cache, self.control.log(self.link.epoch).write(rev));
                for step in [EventStep::Tail, EventStep::Enter, EventStep::Done] {
                    self.cache.event(rule, step, rev, write, &places.slots);
                }
                self.watch.follow(&before, &self.cache);
            }
            Action::Ask { key } => self.ask(rule, places, key.into())?,
            Action::Miss { key } => self.join(rule, places, key.into())?,
            Action::Read { key } => {
                let view = self.shards[places.shard_of(key.into())].read(key.into());
                self.flights[usize::from(key)] = Flight::Read(view);
            }
            Action::Lookup { key } => {
                self.flights[usize::from(key)] = Flight::Read(self.lookup(rule, key.into()))
            }
            Action::Offer { key } => self.offer(rule, places, key.into()),
            Action::Lift { key } => self.lift(rule, key.into()),
            Action::Land { key } => self.land(rule, key.into()),
            Action::GiveUp { key } => self.close(key.into()),
            Action::Fill { key } => self.fill(rule, places, key.into())?,
            Action::Evict { key } => self.cache.evict(key.into()),
            Action::Save => {
                let mut disk =
                    Disk { epoch: self.cache.epoch, applied: self.cache.applied, entries: <_>::default() };
                disk.entries[0] = self.cache.on_disk(rule, 0);
                self.saving = Some(disk);
            }
            Action::Saved => {
                let mut disk = self.saving.take()?;
                // Another epoch began meanwhile: what is read of the old cache is of no use.
                if disk.epoch == self.cache.epoch {
                    disk.entries[1] = self.cache.on_disk(rule, 1);
                    if !rule.disk_applied_first {
                        disk.applied = self.cache.applied;
                    }
                    self.disk = Some(disk);
                }
            }
            Action::Poison { key } => {
                self.writes_left = self.writes_left.checked_sub(1)?;
                self.control.poison(key);
            }
            Action::BootFromView => {
                let view = self.shards[0].read(0);
                if self.cache.epoch != NONE || view.epoch == NONE || !view.complete {
                    return None;
                }
                self.cache = Cache::boot_from_view(rule, &view);
            }
            Action::Ack => self.lease.acknowledge(rule, self.cache.applied, self.control.now().head),
            Action::Expire => self.lease.expire(),
            Action::Wait => self.lease.wait(rule, self.control.now().head),
            Action::Beat => {
                let head = self.control.now().head;
                if self.lease.beat(rule, self.cache.applied, head) {
                    self.link.welcome = Some((self.control.epoch, head));
                }
            }
            Action::Keep => {
                let offered = self.offered.take()?;
                self.offer_listed(rule, places, offered);
            }
            Action::ReadPages => self.read_pages()?,
            Action::TakePages => {
                let epoch = self.cache.epoch;
                self.cache.take_pages(rule, self.control.log(epoch))?;
            }
            Action::Fault(fault) => self.fault(places, fault)?,
        }
        Some(())
    }

    fn publish(&mut self, rule: &Rule, places: &Places, publisher: usize, shard: usize) -> Option<()> {
        let keys = places.shards[shard];
        let (after, changed) =
            self.publishers[publisher].step(rule, &self.control, &self.shards[shard], shard, keys)?;
        self.publishers[publisher] = after;
        self.shards[shard] = changed;
        Some(())
    }

    fn welcome(&mut self, rule: &Rule, snapshot: bool) -> Option<()> {
        let (epoch, head) = self.link.welcome.take()?;
        let before = self.cache;
        if snapshot {
            self.cache.snapshot(epoch, head);
        } else {
            // Resume iff epochs agree and control has what was applied.
            if epoch != before.epoch || before.applied > head {
                return None;
            }
            self.cache.resume(rule, head);
        }
        if epoch != before.epoch {
            self.offered = None;
        }
        self.link.epoch = epoch;
        self.lease.is_lossy = false;
        self.watch.follow(&before, &self.cache);
        Some(())
    }

    fn event(&mut self, rule: &Rule, places: &Places, step: EventStep) -> Option<()> {
        let log =
            if rule.stream_keeps_epoch { self.control.log(self.link.epoch) } else { self.control.now() };
        let rev = self.cache.next_event(step, log.head)?;
        let before = self.cache;
        self.cache.event(rule, step, rev, log.write(rev), &places.slots);
        self.watch.follow(&before, &self.cache);
        Some(())
    }

    fn ask(&mut self, rule: &Rule, places: &Places, key: usize) -> Option<()> {
        let held = self.cache.held(rule, key).map(|entry| entry.value);
        let Some(value) = held.or_else(|| self.look_up(rule, places, key)) else {
            return self.join(rule, places, key);
        };
        let request = self.watch.ask(&self.cache, key, self.cache.floor(places.slots[key]));
        self.watch.answer(&self.control, &self.cache, &request, value);
        Some(())
    }

    fn join(&mut self, rule: &Rule, places: &Places, key: usize) -> Option<()> {
        let request = self.watch.ask(&self.cache, key, self.cache.floor(places.slots[key]));
        let place = self.requests.iter_mut().find(|place| **place == Request::NONE)?;
        *place = request;
        if self.flights[key] == Flight::Idle {
            self.flights[key] = Flight::Started;
            self.leases[key] = rule.taking == super::rule::Taking::Leases;
        }
        Some(())
    }

    fn lookup(&self, rule: &Rule, key: usize) -> View {
        let log = self.control.now();
        // An answer that does not tell is taken for one of the edge's own epoch.
        let epoch = if rule.lookup_tells_epoch { self.control.epoch } else { self.cache.epoch };
        View { epoch, complete: true, wm: log.head, value: log.stored(log.head, key) }
    }

    fn offer(&mut self, rule: &Rule, places: &Places, key: usize) {
        let Flight::Read(view) = self.flights[key] else { return };
        let offered = self.cache.offer(rule, key, places.slots[key], &view, self.leases[key]);
        self.flights[key] = match offered {
            Some((as_of, value)) => Flight::Landed { epoch: self.cache.epoch, as_of, value },
            None => Flight::Lagging(view),
        };
    }

    fn lift(&mut self, rule: &Rule, key: usize) {
        let Flight::Lagging(view) = self.flights[key] else { return };
        self.flights[key] = match self.cache.lift(key, &view) {
            Some(lifted) if lifted != view => Flight::Read(lifted),
            Some(_) | None if !rule.only_verified && view.epoch == self.cache.epoch && view.complete => {
                Flight::Landed { epoch: view.epoch, as_of: u8::MAX, value: view.value }
            }
            Some(_) | None => Flight::Rejected,
        };
    }

    fn land(&mut self, rule: &Rule, key: usize) {
        let Flight::Landed { epoch, as_of, value } = self.flights[key] else { return };
        for place in 0..REQUESTS {
            let request = self.requests[place];
            if usize::from(request.key) == key
                && request.epoch == epoch
                && (as_of >= request.floor || !rule.joined_are_checked)
            {
                self.watch.answer(&self.control, &self.cache, &request, value);
            }
        }
        self.close(key);
    }

    /// Takes a flight off the board; who was not answered asks again, as another request.
    fn close(&mut self, key: usize) {
        self.flights[key] = Flight::Idle;
        self.leases[key] = false;
        for request in &mut self.requests {
            if usize::from(request.key) == key {
                *request = Request::NONE;
            }
        }
    }

    fn fill(&mut self, rule: &Rule, places: &Places, key: usize) -> Option<()> {
        self.ask(rule, places, key)?;
        while self.flights[key] != Flight::Idle {
            let action = match self.flights[key] {
                Flight::Idle => break,
                Flight::Started => Action::Read { key: key as u8 },
                Flight::Read(_) => Action::Offer { key: key as u8 },
                Flight::Lagging(_) => Action::Lift { key: key as u8 },
                Flight::Rejected => Action::Lookup { key: key as u8 },
                Flight::Landed { .. } => Action::Land { key: key as u8 },
            };
            let rejected = self.flights[key] == Flight::Rejected;
            self.take(rule, places, action)?;
            // Control's answer may be of an epoch that the edge has yet to hear of.
            if rejected {
                self.offer(rule, places, key);
                if !matches!(self.flights[key], Flight::Landed { .. }) {
                    self.close(key);
                }
            }
        }
        Some(())
    }

    fn fault(&mut self, places: &Places, fault: Fault) -> Option<()> {
        self.faults_left = self.faults_left.checked_sub(1)?;
        match fault {
            Fault::Cut => {
                self.link = Link { epoch: NONE, welcome: None };
                self.cache.cut();
                self.lease.cut();
            }
            Fault::Resync => self.link.welcome = Some((self.control.epoch, self.control.now().head)),
            Fault::Flush(shard) => self.shards[usize::from(shard)] = Shard::FLUSHED,
            Fault::Copy(shard) => self.copy = Some((shard, self.shards[usize::from(shard)])),
            Fault::Depose => self.publishers[1].term = 2,
            Fault::Restore(back) => self.control.restore(back),
            Fault::Crash => {
                self.cache = Cache::boot(self.disk.as_ref(), &places.slots);
                self.link = Link { epoch: NONE, welcome: None };
                (0..KEYS).for_each(|key| self.close(key));
                (self.saving, self.offered) = (None, None);
                self.watch.crash();
                self.lease.cut();
            }
            Fault::Lose => self.lease.is_lossy = true,
        }
        Some(())
    }
}
