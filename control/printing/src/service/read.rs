//! The first stage of orders whose codes a file names: an upload, or the manifest of the order that is printed again.

use std::collections::HashMap;

use bytes::BytesMut;
use futures_util::StreamExt as _;
use kernel::store::{Ctx, StoreError};

use super::{PrintState, accept, render, rows, steps::Stepped};
use crate::{
    domain::{
        code::Code,
        input::{Input, Lines, MAX_FAULTS, Row},
        order::Stage,
        reprint::Reprint,
    },
    error::{CommonError, PrintingError, ServiceError},
    store::{
        codes,
        leases::{self, Claimed},
    },
};

/// Codes that are named when they are not found.
const MAX_ABSENT: usize = 20;

/// Reads the next lines, and notes their codes.
///
/// # Errors
/// The file cannot be read, or has lines with faults; there are too many codes, or none.
pub(super) async fn read(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let mut next = claimed.item.clone();
    let (seq, first) = (next.stamp.seq, next.details.made);
    let Some(mut input) = next.details.input.take() else {
        return Err(ServiceError::Internal("an order of a file without it".to_owned()));
    };
    let reprint = next.details.reprint.clone();
    let held: &Claimed = claimed;
    let reading = async {
        match &reprint {
            Some(reprint) if !reprint.codes.is_empty() => pick(state, &mut input, reprint).await,
            Some(reprint) => range(state, &mut input, reprint).await,
            None => upload(state, held, &mut input).await,
        }
    };
    let (found, is_over) = tokio::select! {
        read = reading => read?,
        lost = render::keep(state, held) => {
            lost?;
            return Ok(Stepped::Lost);
        }
    };
    if is_over && !input.faults.is_empty() {
        return Err(CommonError::Faults(input.faults).into());
    }
    let made = first + found.len() as u64;
    if is_over && reprint.as_ref().is_some_and(|one| one.codes.is_empty() && one.count() != made) {
        return Err(PrintingError::UnreadableSource.into());
    }
    let most = state.limits.max_codes;
    if is_over || made > most {
        let member = if reprint.is_some() { "The reprint" } else { "source.file" };
        accept::check_count(member, made, most)?;
    }
    next.details.made = made;
    next.details.codes = if is_over { made } else { next.details.codes.max(made) };
    next.details.input = (!is_over).then_some(input);
    let next = next.at(if is_over { Stage::Render } else { Stage::Read }, state.clock.now());
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // First the order: another holder may have noted these codes.
    if !leases::hold(&mut tx, claimed).await? {
        return Ok(Stepped::Lost);
    }
    codes::insert(&mut tx, seq, first, &found).await?;
    super::steps::finish(tx, claimed, next).await
}

/// The codes of the next lines of an upload, and whether these were the last.
async fn upload(
    state: &PrintState,
    claimed: &Claimed,
    input: &mut Input,
) -> Result<(Vec<Code>, bool), ServiceError> {
    let spec = render::spec(&claimed.item)?;
    let Lines { rows, mut faults } = window(state, input).await?;
    let mut conn = state.db.read().await?;
    let account = claimed.item.account;
    let of = (input.short_domain.as_deref(), &spec);
    let found = rows::resolve(&mut conn, account, of, &rows, &mut faults).await?;
    drop(conn);
    let mut codes = Vec::new();
    for (line, code) in found {
        match code.lack(spec.needs_serial(), spec.needs_gtin()) {
            Some(lack) => faults.push((line, lack)),
            None => codes.push(code),
        }
    }
    let is_more = input.faults.len() + faults.len() > MAX_FAULTS;
    input.note(faults);
    if is_more || (input.is_over() && input.window().is_some()) {
        input.faults.push("There may be more; nothing was made.".to_owned());
    }
    Ok((codes, input.is_over()))
}

/// The codes of the next lines of a manifest that belong to a reprint, and whether these were the last.
async fn range(
    state: &PrintState,
    input: &mut Input,
    reprint: &Reprint,
) -> Result<(Vec<Code>, bool), ServiceError> {
    let lines = window(state, input).await?;
    input.note(lines.faults);
    let is_behind = lines.rows.last().is_some_and(|row| row.index >= reprint.end());
    let rows =
        lines.rows.into_iter().filter(|row| row.index.checked_sub(1).is_some_and(|at| reprint.has(at)));
    Ok((rows.filter_map(code).collect(), is_behind || input.is_over()))
}

/// The codes of a whole manifest that have the named short ids or serials, in its order.
async fn pick(
    state: &PrintState,
    input: &mut Input,
    reprint: &Reprint,
) -> Result<(Vec<Code>, bool), ServiceError> {
    let mut wanted: HashMap<&str, usize> =
        reprint.codes.iter().enumerate().map(|(at, text)| (text.as_str(), at)).collect();
    let mut found = Vec::new();
    while !input.is_over() && !wanted.is_empty() {
        let lines = window(state, input).await?;
        input.note(lines.faults);
        for row in lines.rows {
            let names = [row.short_id.as_deref(), row.serial.as_deref()];
            // The first one of each; both names of one code are one code.
            let mut is_wanted = false;
            for name in names.into_iter().flatten() {
                is_wanted |= wanted.remove(name).is_some();
            }
            found.extend(is_wanted.then_some(row).and_then(code));
        }
    }
    let mut absent: Vec<(usize, &str)> = wanted.into_iter().map(|(text, at)| (at, text)).collect();
    absent.sort_unstable();
    let absent = absent.into_iter().take(MAX_ABSENT);
    input.faults.extend(absent.map(|(at, text)| format!("codes[{at}]: {text} is no code of the order.")));
    Ok((found, true))
}

/// The code of a line of a manifest.
fn code(row: Row) -> Option<Code> {
    Some(Code { short_id: row.short_id?, payload: row.url?, serial: row.serial, gtin: row.gtin })
}

/// The lines of the next window.
async fn window(state: &PrintState, input: &mut Input) -> Result<Lines, ServiceError> {
    let Some(range) = input.window() else { return Ok(Lines::default()) };
    let gone = || ServiceError::from(PrintingError::UnreadableSource);
    let mut pieces = state.blobs.read_range(&input.blob, range).await?.ok_or_else(gone)?;
    let mut bytes = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.map_err(StoreError::blob)?);
    }
    input.take(&bytes).map_err(|what| CommonError::Faults(vec![format!("The file {what}.")]).into())
}
