//! Savepoints of transactions, and what goes back to them in memory.

use super::{Group, StoreError, Tx, execute, on_db};

/// What a transaction keeps until it commits.
#[derive(Debug)]
pub(super) struct Marked<T> {
    items: Vec<T>,
    /// How many there were at each open savepoint.
    marks: Vec<usize>,
}

impl<T> Default for Marked<T> {
    fn default() -> Self {
        Self { items: Vec::new(), marks: Vec::new() }
    }
}

/// Of any kind: a savepoint is set; the last one is forgotten, and what came since stays; or what came since did not happen, and
/// the savepoint stays.
pub(super) trait Marks {
    fn mark(&mut self);
    fn release(&mut self);
    fn rewind(&mut self);
}

impl<T> Marks for Marked<T> {
    fn mark(&mut self) {
        self.marks.push(self.items.len());
    }

    fn release(&mut self) {
        self.marks.pop();
    }

    fn rewind(&mut self) {
        self.items.truncate(self.marks.last().copied().unwrap_or(0));
    }
}

impl<T> Marked<T> {
    pub(super) fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    pub(super) fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.items)
    }
}

impl Tx {
    /// Marks a point to which [`Tx::rewind_to_savepoint`] returns.
    pub async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.marked().for_each(Marks::mark);
        self.execute("SAVEPOINT item").await
    }

    /// Forgets the savepoint and keeps what was done since.
    pub async fn release_savepoint(&mut self) -> Result<(), StoreError> {
        self.marked().for_each(Marks::release);
        self.execute("RELEASE SAVEPOINT item").await
    }

    /// Keeps what was done since the savepoint, and sets another one, in one round trip.
    pub async fn next_savepoint(&mut self) -> Result<(), StoreError> {
        self.marked().for_each(Marks::release);
        self.marked().for_each(Marks::mark);
        let both = "RELEASE SAVEPOINT item; SAVEPOINT item";
        on_db!(&mut self.conn, |c| sqlx::Executor::execute(c, sqlx::raw_sql(both)).await.map(drop))?;
        Ok(())
    }

    /// Undoes what was done since the savepoint, which stays.
    pub async fn rewind_to_savepoint(&mut self) -> Result<(), StoreError> {
        self.marked().for_each(Marks::rewind);
        self.execute("ROLLBACK TO SAVEPOINT item").await
    }

    fn marked(&mut self) -> impl Iterator<Item = &mut dyn Marks> {
        let own: [&mut dyn Marks; 2] = [&mut self.notes.entries, &mut self.quotas.released];
        own.into_iter().chain(self.group.iter_mut().flat_map(Group::lists))
    }

    async fn execute(&mut self, sql: &'static str) -> Result<(), StoreError> {
        execute!(&mut self.conn, sql)?;
        Ok(())
    }
}
