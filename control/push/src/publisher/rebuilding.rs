//! Rebuilds the view of a region from one snapshot of the database, under a term of its own.

use std::time::Instant;

use super::{
    super::{
        rebuild::Rebuild,
        view::{ViewError, Write},
    },
    Fault, LEASE, Lead, Publisher, RENEW, ROUNDS, SCRIPT_BYTES,
};
use crate::store::{
    Ctx,
    publishers::{self, Lease},
    snapshot::Snapshot,
};

/// Rows of one page of a rebuild.
const PAGE: u32 = 1_000;

impl Publisher {
    /// Rebuilds the view from one snapshot of the database.
    pub(super) async fn rebuild(&mut self, lead: &mut Lead, reason: &str) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            self.renew(lead).await?;
            let asked = lead.asked;
            // A term of its own: no step of another rebuild is taken for one of this.
            self.raise(lead).await?;
            let term = lead.lease.term;
            tracing::info!(region = self.config.region, term, reason, "the view is rebuilt");
            self.stats.rebuilds.inc();
            match self.rebuild_once(lead).await {
                Ok(()) => {}
                Err(Fault::View(ViewError::Refused)) => {
                    lead.view.reload().await?;
                    continue;
                }
                Err(fault) => return Err(fault),
            }
            if let Some(asked) = asked {
                let mut tx = self.db.begin(&Ctx::default()).await?;
                publishers::rebuilt(&mut tx, &lead.lease, asked).await?;
                tx.commit().await?;
                lead.asked = None;
            }
            self.note(lead);
            let ms = begun.elapsed().as_millis();
            tracing::info!(region = self.config.region, term, ms, "the view is complete");
            return Ok(());
        }
        Err(Fault::Unsettled)
    }

    async fn rebuild_once(&self, lead: &mut Lead) -> Result<(), Fault> {
        let mut snapshot = Snapshot::begin(&self.db).await?;
        let setup = snapshot.setup().await?;
        let (epoch, at_rev, shards) = (snapshot.epoch.clone(), snapshot.at_rev, self.config.shards);
        let (view, term) = (&lead.view, lead.lease.term);
        let mut holding = Holding { publisher: self, lease: lead.lease.clone(), renewed: Instant::now() };
        let mut rebuild = Rebuild::claim(view, term, &epoch, at_rev).await?;
        while rebuild.clear_some().await? {
            holding.keep().await?;
        }
        let mut page = snapshot.next_page(PAGE).await?;
        while !page.is_empty() {
            let (mut parts, mut size) = (vec![Vec::new()], 0);
            for (key, rev, redirect) in &page {
                let write = Write::of(shards, *rev, key, Some(redirect))?;
                size += write.size_bytes();
                if size > SCRIPT_BYTES {
                    parts.push(Vec::new());
                    size = write.size_bytes();
                }
                if let Some(part) = parts.last_mut() {
                    part.push(write);
                }
            }
            let filled = async {
                for part in parts {
                    rebuild.fill(part).await?;
                }
                Ok::<_, Fault>(())
            };
            let read = async { Ok::<_, Fault>(snapshot.next_page(PAGE).await?) };
            ((), page) = tokio::try_join!(filled, read)?;
            holding.keep().await?;
        }
        let meta = rebuild.finish(&setup).await?;
        lead.renewed = holding.renewed;
        lead.view.set_rebuilt(&meta);
        (lead.epoch, lead.book, lead.book_rev) = (epoch, setup.into(), at_rev);
        Ok(())
    }
}

/// Holds the lease during a long rebuild.
struct Holding<'p> {
    publisher: &'p Publisher,
    lease: Lease,
    renewed: Instant,
}

impl Holding<'_> {
    async fn keep(&mut self) -> Result<(), Fault> {
        if self.renewed.elapsed() < RENEW {
            return Ok(());
        }
        let mut tx = self.publisher.db.begin(&Ctx::default()).await?;
        let renewed = publishers::renew(&mut tx, &self.lease, LEASE).await?;
        tx.commit().await?;
        self.renewed = Instant::now();
        renewed.map(|_| ()).ok_or(Fault::Deposed)
    }
}
