//! Exports actions as lines of JSON or as a Parquet file, oldest first, for analytics.
//!
//! Rows are read a page at a time by the position of the last one. An export holds no transaction and no connection
//! while its client reads, and can resume from the last line received.

mod form;

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use serde_json::json;
use shared::{
    id::{AccountId, ActionId, ProjectId},
    time::UnixMillis,
};
use tokio::{sync::mpsc, time::timeout};
use tracing::instrument;

pub use self::form::Form;
pub(super) use self::form::Groups;
use self::form::{Encoder, Group};
use super::{
    EventState, Observers,
    access::{Caller, require},
    actions,
    events::{PATIENCE, Place},
    lists,
};
use crate::{
    domain::{
        action::Action,
        device,
        grant::Limit,
        listing::ListRequest,
        page::{PageRequest, Position, SortOrder},
        permission::{
            Subject::{Exports, PersonalData},
            Verb,
        },
    },
    error::{EventsError, ServiceError},
    messages::action_message,
    store::{Db, StoreError, listing::Selection},
};

/// Lines per read: with a kilobyte each, half a megabyte.
const LINES: u32 = 500;

/// Pieces that wait for the client, so that lines take some two megabytes at most. What a Parquet file takes is in
/// [`form`].
const WAITING: usize = 2;

/// Most bytes that are sent as one: a client has [`PATIENCE`] for each, and a row group is longer.
const PART_BYTES: usize = 512 * 1_024;

/// Pages without a line for the caller after which an empty one is given: a sign of life.
const SILENT_PAGES: usize = 20;

/// The selection of an export.
#[derive(Debug, Clone)]
pub struct Request {
    /// Created at or after this.
    pub from: i64,
    /// Created before this.
    pub to: i64,
    /// The last action that came before.
    pub after: Option<ActionId>,
    /// Only actions scoped to this project.
    pub project: Option<ProjectId>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// What is sent.
    pub form: Form,
}

/// The export was interrupted: its reader must not take it for complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the export broke off")]
pub struct BrokenOff;

/// Reads actions of an account in order.
#[derive(Debug)]
pub struct Reader {
    /// The account.
    pub account: AccountId,
    /// The limit of the caller's view.
    pub limit: Limit,
    /// Of this type alone.
    pub kind: Option<String>,
    /// Only actions scoped to this project.
    pub project: Option<ProjectId>,
    /// The place of the last that was read.
    pub after: Position,
    /// Those created before this.
    pub to: i64,
    /// Whether all was read.
    pub is_done: bool,
    /// Whether the lines have what may name a person.
    pub with_personal_data: bool,
    encoder: Encoder,
}

impl Reader {
    /// Everything of an account between two times.
    ///
    /// # Errors
    /// The form has no encoder.
    pub fn of_account(account: AccountId, from: i64, to: i64, form: Form) -> Result<Self, StoreError> {
        Ok(Self {
            account,
            limit: Limit::Account,
            kind: None,
            project: None,
            after: Position { at: UnixMillis(from), seq: 0 },
            to,
            is_done: false,
            with_personal_data: true,
            encoder: Encoder::new(form)?,
        })
    }

    /// The next bytes: whole lines, or a part of the file; there may be none yet. `None` at the end.
    pub async fn next(&mut self, observers: &dyn Observers, db: &Db) -> Result<Option<Bytes>, StoreError> {
        for _ in 0..SILENT_PAGES {
            if self.is_done {
                return Ok(None);
            }
            let lines = self.page(observers, db).await?;
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
        Ok(Some(Bytes::new()))
    }

    async fn page(&mut self, observers: &dyn Observers, db: &Db) -> Result<Bytes, StoreError> {
        let page =
            PageRequest { per_page: LINES, sort: SortOrder::Ascending, after: Some(self.after), number: 1 };
        let request = ListRequest { page, ..ListRequest::default() };
        let within: Vec<(&str, &str)> = self.kind.iter().map(|kind| ("type", kind.as_str())).collect();
        // Reads the whole account: with a condition on scopes one page might read millions of rows without result.
        let selection =
            Selection { account: self.account, limit: &Limit::Account, request: &request, within: &within };
        let page = lists::list(observers, db, &selection).await?;
        self.is_done = page.next.is_none();
        let mut documents = Vec::new();
        for action in page.items {
            if action.created_at.0 >= self.to {
                self.is_done = true;
                break;
            }
            self.after = action.position();
            if self.admits(&action) {
                documents.push(document(&action, self.with_personal_data));
            }
        }
        self.encoder.encode(documents, self.is_done).await
    }

    fn admits(&self, action: &Action) -> bool {
        let (thng, scopes) = (action.thng.map(|id| id.to_string()).unwrap_or_default(), action.scopes());
        let is_of = |project: &ProjectId| {
            scopes.as_ref().is_some_and(|scopes| scopes.projects.iter().any(|own| own == project.as_str()))
        };
        self.limit.admits(&thng, scopes.as_ref()) && self.project.as_ref().is_none_or(is_of)
    }
}

/// An action as the API shows it, with its context.
fn document(action: &Action, with_personal_data: bool) -> serde_json::Value {
    let mut action = action.clone();
    if !with_personal_data {
        actions::coarsen_action(&mut action);
    }
    let mut document = action_message(&action);
    if let (Some(members), Some(mut context)) = (document.as_object_mut(), action.members.remove("context")) {
        device::hide(&mut context);
        members.insert("context".to_owned(), context);
    }
    document
}

/// Opens an export of actions of one type or of all; what comes are pieces of whole lines or of a file, and [`BrokenOff`]
/// if it cannot continue. It ends when its key is revoked, the process stops, or the client does not read.
///
/// # Errors
/// The key lacks the permission, the type or the action to continue from does not exist, too many streams are open, or too
/// many exports of this form run.
#[instrument(skip_all)]
pub async fn open(
    state: &Arc<EventState>,
    actor: &Caller,
    key: [u8; 32],
    kind: &str,
    request: Request,
) -> Result<mpsc::Receiver<Result<Bytes, BrokenOff>>, ServiceError> {
    let grant = require(actor, Verb::Read, Exports)?;
    let mut conn = state.db.read().await?;
    let kind = actions::action_type(&mut conn, actor, kind).await?.name().map(str::to_owned);
    let mut after = Position { at: UnixMillis(request.from), seq: 0 };
    if let Some(id) = request.after {
        let found = lists::find(&*state.actions.observers, &mut conn, actor.account, id).await?;
        let limit = grant.limit();
        let found = found.filter(|action| {
            limit.admits(&action.thng.map(|id| id.to_string()).unwrap_or_default(), action.scopes().as_ref())
        });
        after = after.max(found.ok_or(EventsError::ActionRemoved)?.position());
    }
    drop(conn);
    let mut reader = Reader {
        account: actor.account,
        limit: grant.limit().clone(),
        kind,
        project: request.project,
        after,
        to: request.to,
        is_done: false,
        with_personal_data: require(actor, Verb::Read, PersonalData).is_ok(),
        encoder: Encoder::new(request.form)?,
    };
    let group = Group::take(&state.streams.groups, request.form, actor.account)?;
    let place = Place::take(state, actor, key, request.client).await?;
    note(state, actor, &reader, request.form).await?;
    let first = read(state, &mut reader).await?;
    let (pieces, receiver) = mpsc::channel(WAITING);
    state.connections.sessions.spawn(run((place, group), reader, first, pieces));
    Ok(receiver)
}

/// An export hands personal data out: the audit trail names it.
async fn note(state: &EventState, caller: &Caller, reader: &Reader, form: Form) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&caller.ctx).await?;
    let what = || {
        json!({
            "type": reader.kind,
            "from": reader.after.at.0,
            "to": reader.to,
            "project": reader.project,
            "format": form.name(),
        })
    };
    tx.note(caller.account, ("export", "actions"), || (None, Some(what())));
    Ok(tx.commit().await?)
}

/// Reads when it has a permit.
async fn read(state: &EventState, reader: &mut Reader) -> Result<Option<Bytes>, StoreError> {
    let _permit = state.streams.read_permit(reader.account).await.ok_or(StoreError::Stopped)?;
    reader.next(&*state.actions.observers, &state.db).await
}

async fn run(
    (place, group): (Place, Option<Group>),
    mut reader: Reader,
    first: Option<Bytes>,
    pieces: mpsc::Sender<Result<Bytes, BrokenOff>>,
) {
    let tell = async {
        let mut next = first;
        while let Some(mut piece) = next {
            loop {
                let part = piece.split_to(piece.len().min(PART_BYTES));
                match timeout(PATIENCE, pieces.send(Ok(part))).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return false,
                }
                if piece.is_empty() {
                    break;
                }
            }
            next = match read(&place.state, &mut reader).await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "an export was interrupted");
                    return false;
                }
            };
        }
        true
    };
    let is_whole = tokio::select! {
        is_whole = tell => is_whole,
        () = place.connection.ends.cancelled() => false,
        () = place.state.connections.stopping.cancelled() => false,
    };
    if !is_whole {
        // A client that does not read does not read this either.
        let _ = timeout(PATIENCE, pieces.send(Err(BrokenOff))).await;
    }
    // Before `pieces`, with which the answer ends: the client may begin the next one then.
    drop(group);
}
