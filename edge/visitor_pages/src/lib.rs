//! Pages that an edge shows to people where a code leads nowhere: in their language, with what the account has chosen.
//!
//! A page has no script and loads nothing; every text in it is escaped. It is rendered once and kept in a bounded cache, but those
//! of a report, which hold its token. Pages of what the platform withholds show nothing of the account.

mod answered;
mod frame;
mod page;
mod report;
mod report_texts;
mod texts;

pub use self::{
    frame::{POLICY, escape},
    page::{Brand, Kind, PageCache},
    report::{ReportPage, read_report, report_page},
};
