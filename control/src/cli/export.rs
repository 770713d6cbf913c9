//! `control export`: writes the actions of whole days to files, for analytics.

use std::{io::Write as _, path::Path, process::ExitCode};

use actions::store::merged_lists;
use assessment::service::observer::Assessments;
use bytes::Bytes;
use catalog::store::blobs::{Blobs, WriteError};
use events::service::export::{Form, Reader};
use flate2::{Compression, write::GzEncoder};
use futures_util::{
    Stream, StreamExt,
    stream::{self, LocalBoxStream},
};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use kernel::store::{Db, StoreError};
use shared::{
    id::AccountId,
    time::{Clock, UnixMillis},
};
use tenants::store::accounts;

use super::{failed, say};
use crate::{
    config::{ConfigError, Database, Place},
    failure::Failure,
    serve,
    system::SystemClock,
};

/// How long a day must be over: what was begun in it is written by then, as statements and leases end in seconds.
const SETTLED_MS: i64 = 10 * 60 * 1_000;

/// Arguments of `control export`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the files go: a folder, or s3://bucket/prefix with the usual AWS_ variables (required)
    #[arg(long, env = "WAYMARK_EXPORT_URL", value_name = "DIR|URL")]
    into: Option<String>,
    /// First day, in UTC, as 2026-11-21 [default: that of the first action]
    #[arg(long, value_name = "DATE")]
    from: Option<String>,
    /// Last day, in UTC [default: the last that is over]
    #[arg(long, value_name = "DATE")]
    to: Option<String>,
    /// Id of the account [default: every account]
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// Form of the files
    #[arg(long, value_enum, default_value_t = Format::Ndjson)]
    format: Format,
    /// Overwrite files that exist
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    place: Place,
}

/// Form of the files of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines of JSON, packed by gzip: account=ID/2026-11-21.ndjson.gz.
    Ndjson,
    /// Parquet with typed columns: account=ID/day=2026-11-21/actions.parquet.
    Parquet,
}

impl Format {
    /// The file of a day.
    fn key(self, account: AccountId, day: Date) -> String {
        match self {
            Self::Ndjson => format!("account={account}/{day}.ndjson.gz"),
            Self::Parquet => format!("account={account}/day={day}/actions.parquet"),
        }
    }
}

/// Writes each day that has actions and no file; a run that was broken off is simply started again.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let days = Days::parse(args.from.as_deref(), args.to.as_deref(), SystemClock.now())?;
    let account = args.account.as_deref().map(str::parse::<AccountId>).transpose();
    let account =
        account.map_err(|_| ConfigError::new("--account", "it is no id of an account".to_owned()))?;
    let blobs = open(args.into.as_deref().unwrap_or_default())?;
    let server = args.place.scans()?;
    let db = match args.place.database()? {
        Database::Postgres(url) => serve::connect(&url).await?,
        Database::Sqlite(path) => Db::open_sqlite(&path).await.map_err(failed)?,
    };
    serve::check_schema(&db).await?;
    let scans = scan_store::store::open_existing_in(&db, server).await.map_err(failed)?;
    let observers = Assessments { scans, devices: None };
    let mut conn = db.read().await.map_err(failed)?;
    let accounts = match account {
        Some(account) if accounts::exists(&mut conn, account).await.map_err(failed)? => vec![account],
        Some(account) => {
            return Err(ConfigError::new("--account", format!("there is no account {account}")).into());
        }
        None => accounts::list_ids(&mut conn).await.map_err(failed)?,
    };
    drop(conn);
    let mut files = 0_u64;
    for account in accounts {
        files += export(&db, &observers, &blobs, account, days, (args.format, args.again)).await?;
    }
    observers.scans.close().await;
    db.close().await;
    say(&format!("{files} files written."));
    Ok(ExitCode::SUCCESS)
}

fn open(into: &str) -> Result<Blobs, ConfigError> {
    let opened = match into {
        "" => return Err(ConfigError::new("WAYMARK_EXPORT_URL", "it is required".to_owned())),
        url if url.starts_with("s3://") => Blobs::in_bucket(url, u64::MAX),
        folder => Blobs::in_folder(Path::new(folder), u64::MAX),
    };
    opened.map_err(|error| ConfigError::new("WAYMARK_EXPORT_URL", format!("it cannot be used: {error}")))
}

/// The first and the last day.
#[derive(Debug, Clone, Copy)]
struct Days {
    first: Date,
    last: Date,
}

impl Days {
    fn parse(from: Option<&str>, to: Option<&str>, now: UnixMillis) -> Result<Self, ConfigError> {
        let over = day_of(now.0 - SETTLED_MS)?.yesterday().unwrap_or(Date::MIN);
        let read = |name: &'static str, text: &str| {
            text.parse::<Date>()
                .ok()
                .filter(|date| date.to_string() == text)
                .ok_or_else(|| ConfigError::new(name, format!("{text:?} is no day such as 2026-11-21")))
        };
        let first = from.map_or(Ok(Date::constant(1970, 1, 1)), |text| read("--from", text))?;
        let last = to.map_or(Ok(over), |text| read("--to", text))?;
        if last > over {
            return Err(ConfigError::new("--to", format!("{last} is not over; the last that is: {over}")));
        }
        Ok(Self { first, last })
    }
}

/// The day of a time, in UTC.
fn day_of(at_ms: i64) -> Result<Date, ConfigError> {
    let time = Timestamp::from_millisecond(at_ms);
    let time = time.map_err(|error| ConfigError::new("createdAt", error.to_string()))?;
    Ok(time.to_zoned_datetime(TimeZone::UTC).date())
}

/// When a day begins, in UTC.
fn start_of(day: Date) -> Result<i64, ConfigError> {
    let start = day.to_zoned_datetime(TimeZone::UTC);
    Ok(start.map_err(|error| ConfigError::new("createdAt", error.to_string()))?.timestamp().as_millisecond())
}

/// Writes the files of an account; gives how many.
async fn export(
    db: &Db,
    observers: &Assessments,
    blobs: &Blobs,
    account: AccountId,
    days: Days,
    (format, again): (Format, bool),
) -> Result<u64, Failure> {
    let scans = &*observers.scans.reserved;
    let (mut from, mut files) = (start_of(days.first)?, 0);
    loop {
        let mut conn = db.read().await.map_err(failed)?;
        // Days without actions are passed over at once.
        let next = merged_lists::find_first_since(scans, &mut conn, account, UnixMillis(from)).await;
        drop(conn);
        let Some(at) = next.map_err(failed)? else { return Ok(files) };
        let day = day_of(at.0)?;
        if day > days.last {
            return Ok(files);
        }
        let end = start_of(day.saturating_add(1.day()))?;
        let key = format.key(account, day);
        if again || !blobs.contains(&key).await.map_err(failed)? {
            let mut bytes = body(db.clone(), observers.clone(), (account, start_of(day)?, end), format)?;
            let written = blobs.write(&key, &mut bytes).await.map_err(|error| match error {
                WriteError::BrokenOff | WriteError::TooSlow => {
                    Failure::failed(&key, "the database failed in the middle")
                }
                WriteError::TooLarge(_) | WriteError::Store(_) => Failure::failed(&key, error),
            })?;
            say(&format!("{key}: {} bytes", written.size_bytes));
            files += 1;
        }
        from = end;
    }
}

/// The bytes of the file of a day.
fn body(
    db: Db,
    observers: Assessments,
    (account, from, to): (AccountId, i64, i64),
    format: Format,
) -> Result<LocalBoxStream<'static, Result<Bytes, StoreError>>, Failure> {
    let reader = |form| Reader::of_account(account, from, to, form).map_err(failed);
    Ok(match format {
        Format::Ndjson => packed(db, observers, reader(Form::Ndjson)?).boxed_local(),
        Format::Parquet => pieces(db, observers, reader(Form::Parquet)?).boxed_local(),
    })
}

/// The bytes of a reader as they are.
fn pieces(db: Db, observers: Assessments, reader: Reader) -> impl Stream<Item = Result<Bytes, StoreError>> {
    stream::try_unfold((db, observers, reader), async |(db, observers, mut reader)| {
        Ok(reader.next(&observers, &db).await?.map(|piece| (piece, (db, observers, reader))))
    })
}

/// What is packed, or the end of it.
struct Packing {
    db: Db,
    observers: Assessments,
    reader: Reader,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

/// The lines of a reader, packed piece by piece.
fn packed(db: Db, observers: Assessments, reader: Reader) -> impl Stream<Item = Result<Bytes, StoreError>> {
    let encoder = Some(GzEncoder::new(Vec::new(), Compression::default()));
    stream::try_unfold(Packing { db, observers, reader, encoder }, async |mut packing| {
        let Some(mut encoder) = packing.encoder.take() else { return Ok(None) };
        let fault = |error: std::io::Error| StoreError::Row(format!("packing: {error}"));
        Ok(match packing.reader.next(&packing.observers, &packing.db).await? {
            Some(lines) => {
                encoder.write_all(&lines).map_err(fault)?;
                let piece = std::mem::take(encoder.get_mut());
                packing.encoder = Some(encoder);
                Some((Bytes::from(piece), packing))
            }
            None => Some((Bytes::from(encoder.finish().map_err(fault)?), packing)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_days_are_exported() {
        // 2026-11-22T00:09:59Z and a second later.
        let (early, late) = (1_795_306_199_000, 1_795_306_200_000);
        assert_eq!(Days::parse(None, None, UnixMillis(early)).unwrap().last.to_string(), "2026-11-20");
        assert_eq!(Days::parse(None, None, UnixMillis(late)).unwrap().last.to_string(), "2026-11-21");
        for (from, to, is_allowed) in [
            (Some("2026-11-20"), Some("2026-11-21"), true),
            (None, Some("2026-11-22"), false),
            (Some("2026-13-01"), None, false),
            (Some("20261101"), None, false),
            (Some("yesterday"), None, false),
        ] {
            assert_eq!(Days::parse(from, to, UnixMillis(late)).is_ok(), is_allowed, "{from:?} {to:?}");
        }
        assert_eq!(start_of(Date::constant(1970, 1, 2)).unwrap(), 86_400_000);
        assert_eq!(day_of(86_399_999).unwrap().to_string(), "1970-01-01");
    }
}
