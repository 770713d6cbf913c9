//! Reads everything that edges hold as of one moment, in pages inside one repeatable-read transaction.

use std::sync::Arc;

use shared::{
    redirect::{Redirect, RedirectKey},
    wire::{
        links::{LinksPage, MAX_LINKS},
        stream::{Epoch, Rev},
        view::Setup,
    },
};

use super::{Conn, Db, StoreError, domain_files, log, redirections, rules, withheld};

/// One moment of the database; dropped, it is over.
pub struct Snapshot {
    conn: Conn,
    /// The history.
    pub epoch: Epoch,
    /// Everything up to this revision is in it, and nothing after.
    pub at_rev: Rev,
    after: RedirectKey,
}

impl Snapshot {
    /// Takes the moment.
    ///
    /// # Errors
    /// The log was never set up.
    pub async fn begin(db: &Db) -> Result<Self, StoreError> {
        let mut conn = db.snapshot().await?;
        let head = log::load_head(&mut conn).await?;
        Ok(Self { conn, epoch: head.epoch, at_rev: head.head, after: RedirectKey::new("", "") })
    }

    /// Domains without their pages, rules, and what is withheld.
    pub async fn setup(&mut self) -> Result<Setup, StoreError> {
        let domains = domain_files::list_all(&mut self.conn).await?;
        let (_, rules) = rules::list_with_head(&mut self.conn).await?;
        let withheld = Some(withheld::list_all(&mut self.conn).await?);
        Ok(Setup { domains, rules, withheld })
    }

    /// The next up to `limit` redirections by key, with their revisions; empty after the last.
    pub async fn next_page(
        &mut self,
        limit: u32,
    ) -> Result<Vec<(RedirectKey, Rev, Arc<Redirect>)>, StoreError> {
        let page = redirections::list_after_key(&mut self.conn, &self.after, limit).await?;
        if let Some((last, ..)) = page.last() {
            self.after = last.clone();
        }
        Ok(page)
    }

    /// The links of a domain whose folded short id follows `after`: as many as a page has.
    pub async fn page_of(&mut self, domain: &str, after: &str) -> Result<LinksPage, StoreError> {
        let links = redirections::list_of_domain(&mut self.conn, domain, after, MAX_LINKS).await?;
        let links: Vec<_> = links.into_iter().map(|(key, rev, link)| (key.folded, rev, link)).collect();
        let more = links.len() as u64 >= u64::from(MAX_LINKS);
        Ok(LinksPage { epoch: self.epoch.clone(), at_rev: self.at_rev, more, links })
    }
}
