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

/// A link of a page: its folded short id, its revision, and the record.
type Link = (Arc<str>, Rev, Arc<Redirect>);

/// Most bytes of the typed links of a page, roughly. Edges take 8 MiB: all else is at most 5 MiB, and JSON may need six bytes for
/// one.
const MAX_SET_BYTES: usize = 512 << 10;

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
        let mut links: Vec<Link> =
            links.into_iter().map(|(key, rev, link)| (key.folded, rev, link)).collect();
        let is_full = links.len() as u64 >= u64::from(MAX_LINKS);
        let is_cut = cut(&mut links);
        let more = is_full || is_cut;
        Ok(LinksPage { epoch: self.epoch.clone(), at_rev: self.at_rev, more, links })
    }
}

/// Leaves out what is too much for a page behind its first link; returns whether there was any.
fn cut(links: &mut Vec<Link>) -> bool {
    let mut bytes = 0;
    let fits = |(.., link): &&Link| {
        bytes += link.digital_link.as_ref().map_or(0, |set| set.size_bytes());
        bytes <= MAX_SET_BYTES
    };
    let kept = links.iter().take_while(fits).count().max(1);
    let is_cut = kept < links.len();
    links.truncate(kept);
    is_cut
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typed_links_end_a_page_before_an_edge_refuses_it() {
        let link = |title_bytes: usize| -> Link {
            let title = "t".repeat(title_bytes);
            let set = json!({"description": "", "links": [{"linkType": "gs1:pip", "href": "https://e.com/", "title": title}]});
            let link = json!({"domain": "tn.gg", "shortId": "01/09528765123457", "type": "product",
                "platformId": "U5Gq8sKVBfgRtKRaagBefgwk", "target": "https://e.com/", "forwardQuery": true,
                "digitalLink": set, "createdAt": 0, "updatedAt": 0});
            ("01/09528765123457".into(), 1, Arc::new(serde_json::from_value(link).unwrap()))
        };
        for (sizes, kept) in [
            (&[][..], 0),
            (&[1, 1, 1], 3),
            (&[MAX_SET_BYTES / 2, MAX_SET_BYTES / 4, MAX_SET_BYTES / 2, 1], 2),
            (&[2 * MAX_SET_BYTES, 1], 1),
        ] {
            let mut links: Vec<Link> = sizes.iter().map(|size| link(*size)).collect();
            assert_eq!((cut(&mut links), links.len()), (kept < sizes.len(), kept), "{sizes:?}");
        }
    }
}
