//! What a list of products or Thngs is asked for, and how it is cut into pages.

use crate::domain::{
    filter::Filter,
    page::{Page, PageRequest},
    resource::Stamp,
};
use crate::store::listing::Selection;

/// A request for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Which part of it.
    pub page: PageRequest,
    /// Only these ids.
    pub ids: Option<Vec<String>>,
    /// Only rows that meet this.
    pub filter: Option<Filter>,
}

impl ListRequest {
    pub(super) fn selection(&self) -> Selection<'_> {
        match (&self.ids, &self.filter) {
            (Some(ids), _) => Selection::Ids(ids),
            (None, Some(filter)) => Selection::Filtered(filter),
            (None, None) => Selection::All,
        }
    }

    /// Cuts fetched rows to the page; rows found by ids have not met the filter yet.
    pub(super) fn cut<T>(
        &self,
        mut rows: Vec<T>,
        stamp: impl Fn(&T) -> Stamp,
        matches: impl Fn(&T, &Filter) -> bool,
    ) -> Page<T> {
        if self.ids.is_some() {
            rows.retain(|row| self.filter.as_ref().is_none_or(|filter| matches(row, filter)));
        }
        Page::cut(rows, self.page, |row| stamp(row).position())
    }
}
