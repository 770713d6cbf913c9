//! A request for a Digital Link, and where it leads among the links of the levels that were found.

use std::borrow::Cow;

use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    redirect::Redirect,
    time::UnixMillis,
    wire::spooled::NewLink,
};

use crate::{
    choose::{Choice, ChosenBy, choose, is_open},
    error::DigitalLinkError,
    fill::{Tags, expand},
    link::{DigitalLink, Qualifier},
    wanted::{Form, Wanted},
};

/// Bytes of the short id of a GTIN, `01/` with 14 digits.
const PRODUCT: usize = 17;

/// A request for a Digital Link.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    path: &'a str,
    link: DigitalLink<'a>,
    wanted: Wanted<'a>,
}

/// The links of one level, as they were found.
#[derive(Debug, Clone, Copy)]
pub struct Level<'a> {
    /// The short id of the level.
    pub id: &'a str,
    /// Its links.
    pub set: &'a LinkSet,
    /// The Thng of the level, for `{thngId}`.
    pub thng_id: Option<&'a str>,
}

/// Where a request leads that asks for a redirect.
#[derive(Debug, PartialEq, Eq)]
pub enum Lead<'a> {
    /// To a link.
    To {
        /// The place of the level that has the link.
        level: usize,
        /// The link.
        link: &'a TypedLink,
        /// What decided for it.
        by: ChosenBy,
        /// Its target, the tags replaced.
        location: String,
    },
    /// Several links fit, and none better than the others.
    Several {
        /// The place of the level that has them.
        level: usize,
        /// The links, two or more.
        links: Vec<&'a TypedLink>,
    },
    /// There is no link of the type that was asked for.
    Nothing,
}

impl<'a> Level<'a> {
    /// The level of a record that was found by this short id; `None` where it has no typed links.
    #[must_use]
    pub fn of(id: &'a str, record: &'a Redirect) -> Option<Self> {
        let thng_id = record.thng_id.as_ref().map(|id| id.as_str());
        Some(Self { id, set: record.digital_link.as_deref()?, thng_id })
    }

    /// Whether it is that of an item.
    #[must_use]
    pub fn is_item(&self) -> bool {
        self.id.get(PRODUCT..PRODUCT + 4) == Some("/21/")
    }

    /// The links that hold at a moment.
    pub fn open_links(&self, now: UnixMillis) -> impl Iterator<Item = &'a TypedLink> + use<'a> {
        self.set.links.iter().filter(move |link| is_open(link, now))
    }
}

impl<'a> Asked<'a> {
    /// Reads the raw path, the raw query (without `?`), `Accept` and `Accept-Language`.
    ///
    /// # Errors
    /// As [`DigitalLink::parse`]: `NoKey` where the path is something else, all others say what is wrong.
    pub fn read(
        path: &'a str,
        query: Option<&'a str>,
        accept: Option<&'a [u8]>,
        language: Option<&'a [u8]>,
    ) -> Result<Self, DigitalLinkError> {
        let link = DigitalLink::parse(path, query)?;
        Ok(Self { path, link, wanted: Wanted::read(query, accept, language) })
    }

    /// In which form the links are asked for.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.wanted.form
    }

    /// Whether no type of link is asked for, so that rules may decide otherwise.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.wanted.link_type.is_none()
    }

    /// Whether a list of links to choose from is shown as a page.
    #[must_use]
    pub fn takes_page(&self) -> bool {
        self.wanted.accept.unwrap_or_default().contains("text/html")
    }

    /// The link, without what is asked of it.
    #[must_use]
    pub const fn link(&self) -> &DigitalLink<'a> {
        &self.link
    }

    /// The short id of the GTIN. Its record says whether items have records of their own.
    #[must_use]
    pub fn product(&self) -> Cow<'a, str> {
        // As nearly every path has it.
        let written =
            self.path.get(1..=PRODUCT).filter(|id| id.strip_prefix("01/") == Some(self.link.gtin()));
        written.map_or_else(|| Cow::Owned(self.link.level(&[])), Cow::Borrowed)
    }

    /// The short ids of the levels below the GTIN that may have links, the most specific first.
    ///
    /// A lot comes before a variant: what is said of a lot, such as a recall, is about fewer items.
    #[must_use]
    pub fn levels(&self, mode: SerialMode) -> Vec<String> {
        use Qualifier::{Lot, Serial, ThirdParty, Variant};

        let of: [&[Qualifier]; 5] = [&[Serial], &[Variant, Lot], &[Lot], &[Variant], &[ThirdParty]];
        let fits = |kept: &&[Qualifier]| {
            kept.iter().all(|qualifier| {
                self.link.get(*qualifier).is_some() && (*qualifier != Serial || mode.has_items())
            })
        };
        of.into_iter().filter(fits).map(|kept| self.link.level(kept)).collect()
    }

    /// What a scan says of the link, for which these levels were found; without a type of link where there was a choice.
    #[must_use]
    pub fn scanned<'s>(&'s self, link_type: &'s str, levels: &[Level<'_>]) -> NewLink<'s> {
        let has_item = levels.iter().any(Level::is_item);
        let mode = levels.last().map(|level| level.set.serial_mode).unwrap_or_default();
        let of = |qualifier| self.link.get(qualifier).unwrap_or_default();
        let serial = of(Qualifier::Serial);
        let can_be_known = !serial.is_empty() && (has_item || mode == SerialMode::Known);
        NewLink {
            gtin: self.link.gtin(),
            values: [of(Qualifier::Variant), of(Qualifier::Lot), serial, link_type],
            known: can_be_known.then_some(has_item),
        }
    }

    /// Where a redirect leads, with the levels that were found, the most specific first.
    #[must_use]
    pub fn lead<'l>(&self, levels: &[Level<'l>], now: UnixMillis) -> Lead<'l> {
        for (place, level) in levels.iter().enumerate() {
            match choose(level.set, &self.wanted, now) {
                Choice::Nothing => {}
                Choice::One(link, by) => {
                    return Lead::To { level: place, link, by, location: self.target(levels, level, link) };
                }
                Choice::Several(links) => return Lead::Several { level: place, links },
            }
        }
        Lead::Nothing
    }

    /// The target of a link of one of these levels, its tags replaced.
    #[must_use]
    pub fn target(&self, levels: &[Level<'_>], level: &Level<'_>, link: &TypedLink) -> String {
        let of = |qualifier| self.link.get(qualifier);
        let tags = Tags {
            gtin: self.link.gtin(),
            variant: of(Qualifier::Variant),
            lot: of(Qualifier::Lot),
            serial: of(Qualifier::Serial).filter(|_| level.set.serial_mode != SerialMode::None),
            thng_id: levels.iter().find_map(|level| level.thng_id),
        };
        expand(&link.href, &tags)
    }
}

/// The place of the level for which a redirect counts: the item where it was found, else the one that has the link.
#[must_use]
pub fn counted(levels: &[Level<'_>], level: usize) -> usize {
    if levels.first().is_some_and(Level::is_item) { 0 } else { level }
}

#[cfg(test)]
mod tests;
