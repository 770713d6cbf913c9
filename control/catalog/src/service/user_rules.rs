//! Restrictions of public keys that the permission table cannot express: what an application lets its users do, and
//! which members they may write.

use shared::identifier::Identifier;

use crate::{
    domain::{
        access::{Actor, ActorKind},
        application::ApplicationDetails,
        authority::{changes_identifiers, keep_authority, refusal},
        common::Common,
        named::Named,
        permission::Subject,
    },
    error::{CatalogError, ServiceError},
    store::{Conn, Tx, accounts, applications, identifiers},
};

/// The rights that an application gives its users.
#[derive(Debug, Clone, Default)]
pub struct UserRules(ApplicationDetails);

impl UserRules {
    /// The rules for a caller; `None` for everybody but users that are confined to their own.
    pub async fn load(conn: &mut Conn, actor: &Actor) -> Result<Option<Self>, ServiceError> {
        if !actor.is_confined_user() {
            return Ok(None);
        }
        let found = match actor.project.zip(actor.app) {
            Some((project, app)) => applications::find(conn, actor.account, project, app).await?,
            None => None,
        };
        Ok(Some(Self(found.map(|found| found.details).unwrap_or_default())))
    }

    /// The types of actions that the application lists.
    pub fn action_types(&self) -> Option<&[String]> {
        self.0.user_action_types.as_deref()
    }

    /// The hosts that its users' redirections may go to.
    #[must_use]
    pub fn redirect_hosts(&self) -> &[String] {
        self.0.redirect_hosts.as_deref().unwrap_or_default()
    }
}

/// Refuses a user whose application does not let its users create Thngs and collections.
pub(crate) async fn check_creation(conn: &mut Conn, actor: &Actor) -> Result<(), ServiceError> {
    match UserRules::load(conn, actor).await? {
        Some(UserRules(details)) if details.users_may_create != Some(true) => {
            let fault = "The application does not let its users make this: see usersMayCreate.";
            forbid(vec![fault.to_owned()])
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks what a caller writes into a new or stored resource; members that verdicts depend on are kept.
///
/// # Errors
/// The key lacks the permission (403), or another resource has an identifier (409).
pub(crate) async fn check_write<D: Named>(
    tx: &mut Tx,
    actor: &Actor,
    stored: Option<&D>,
    change: &mut Common,
) -> Result<(), ServiceError> {
    if !actor.kind.is_public() {
        return Ok(());
    }
    let known = stored.map(D::common);
    let is_judged = matches!(D::SUBJECT, Subject::Thngs | Subject::Products);
    let mut faults = if is_judged { keep_authority(known, change) } else { Vec::new() };
    let is_renamed = changes_identifiers(known, change);
    if is_renamed && actor.is_confined_user() {
        faults.push(refusal("identifiers"));
    }
    forbid(faults)?;
    if is_renamed && actor.kind == ActorKind::User {
        let id = stored.map(|stored| stored.id().to_string()).unwrap_or_default();
        check_free::<D>(tx, actor, &id, change).await?;
    }
    Ok(())
}

/// Refuses identifiers that another resource of the kind has.
async fn check_free<D: Named>(
    tx: &mut Tx,
    actor: &Actor,
    id: &str,
    change: &Common,
) -> Result<(), ServiceError> {
    // Of two concurrent requests the second sees what the first wrote.
    accounts::lock(tx, actor.account).await?;
    for (key, value) in change.identifiers.iter().flatten() {
        let identifier = Identifier { key: key.clone(), value: value.clone() };
        let found = identifiers::find_other(tx, actor.account, D::KIND, &identifier, id).await?;
        if let Some(other) = found {
            return Err(CatalogError::IdentifierTaken { identifier, kind: D::KIND, other }.into());
        }
    }
    Ok(())
}

/// Refuses to holders of public keys to say where Digital Links lead.
pub(crate) fn check_links(actor: &Actor, are_changed: bool) -> Result<(), ServiceError> {
    forbid((are_changed && actor.kind.is_public()).then(|| refusal("links")).into_iter().collect())
}

/// Refuses with these faults, if there are any.
pub fn forbid(faults: Vec<String>) -> Result<(), ServiceError> {
    if faults.is_empty() { Ok(()) } else { Err(CatalogError::NotForThisKey(faults).into()) }
}
