//! Settings of assessment: of the account, of a project, of a product. The most specific one wins.

use serde_json::Value;
use shared::id::{AccountId, ProductId, ProjectId};
use tracing::instrument;

use crate::{
    domain::{
        assessment::settings::{Overrides, Settings},
        limits::{integer, shorten},
        members::Members,
        permission::{Subject::AssessmentSettings, Verb},
        resource::Product,
    },
    error::{AssessmentError, ServiceError},
    service::{
        AssessmentState,
        access::{Caller, require, require_enterprise},
    },
    store::{
        Conn, Tx,
        assessments::{self, Stored},
        audit::state_of,
        documents, projects,
    },
};

/// Whose settings a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The account.
    Account,
    /// A project of it.
    Project(ProjectId),
    /// A product of it.
    Product(ProductId),
}

impl Owner {
    /// The owner that the parameters of a query name.
    ///
    /// # Errors
    /// `Code::InvalidParameter`: both are named, or one is no id.
    pub fn parse(project: Option<&str>, product: Option<&str>) -> Result<Self, AssessmentError> {
        let wrong = |name, text| AssessmentError::NoSuchOwner { name, id: shorten(text).to_owned() };
        match (project, product) {
            (None, None) => Ok(Self::Account),
            (Some(text), None) => text.parse().map(Self::Project).map_err(|_| wrong("project", text)),
            (None, Some(text)) => text.parse().map(Self::Product).map_err(|_| wrong("product", text)),
            (Some(_), Some(_)) => Err(AssessmentError::TwoOwners),
        }
    }

    fn column(self) -> String {
        match self {
            Self::Account => String::new(),
            Self::Project(id) => id.to_string(),
            Self::Product(id) => id.to_string(),
        }
    }

    async fn check(self, conn: &mut Tx, account: AccountId) -> Result<(), ServiceError> {
        let (name, is_there) = match self {
            Self::Account => return Ok(()),
            Self::Project(id) => ("project", projects::hold(conn, account, id).await?),
            Self::Product(id) => {
                let found: Option<Product> = documents::find(conn, account, id).await?;
                ("product", found.is_some())
            }
        };
        if is_there {
            return Ok(());
        }
        Err(AssessmentError::NoSuchOwner { name, id: self.column() }.into())
    }
}

/// The body of a `PUT` of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// The settings.
    pub settings: Overrides,
    /// The version that the caller saw, if it cares.
    pub version: Option<i64>,
}

impl Replacement {
    /// Reads the body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let settings = Overrides::parse(body)?;
        let mut members = Members::of(body)?;
        let version = members.typed("version", "a whole number of 0 or more", |value| {
            integer(value).filter(|version| *version >= 0)
        });
        members.finish(Some(Self { settings, version }))
    }
}

/// The settings that an owner has of its own.
///
/// # Errors
/// The account or the key may not or the owner does not exist.
#[instrument(skip_all)]
pub async fn read(state: &AssessmentState, caller: &Caller, owner: Owner) -> Result<Stored, ServiceError> {
    let _ = require(caller, Verb::Read, AssessmentSettings)?;
    require_enterprise(caller, "Assessment")?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    owner.check(&mut tx, caller.account).await?;
    Ok(assessments::find(&mut tx, caller.account, &owner.column()).await?.unwrap_or_default())
}

/// Replaces the settings of an owner as a whole.
///
/// # Errors
/// As [`read`]; 409 when the version is another one than the caller saw.
#[instrument(skip_all)]
pub async fn replace(
    state: &AssessmentState,
    caller: &Caller,
    owner: Owner,
    replacement: &Replacement,
) -> Result<Stored, ServiceError> {
    let _ = require(caller, Verb::Update, AssessmentSettings)?;
    require_enterprise(caller, "Assessment")?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    owner.check(&mut tx, caller.account).await?;
    let (column, now) = (owner.column(), state.clock.now());
    let before = assessments::find(&mut tx, caller.account, &column).await?.unwrap_or_default();
    if replacement.version.is_some_and(|version| version != before.version) {
        return Err(AssessmentError::SettingsChanged(before.version).into());
    }
    let settings = &replacement.settings;
    if !assessments::put(&mut tx, caller.account, &column, settings, before.version, now).await? {
        return Err(AssessmentError::SettingsChanged(before.version + 1).into());
    }
    let stored = assessments::find(&mut tx, caller.account, &column).await?.unwrap_or_default();
    let owner = if column.is_empty() { caller.account.to_string() } else { column };
    tx.note(caller.account, ("assessmentSettings", &owner), || {
        (Some(state_of(&before.settings)), Some(state_of(&stored.settings)))
    });
    tx.commit().await?;
    Ok(stored)
}

/// The settings by which an item is assessed: the product's over those of its first project over the account's.
pub(super) async fn effective(
    conn: &mut Conn,
    account: AccountId,
    projects: &[String],
    product: Option<ProductId>,
) -> Result<Settings, ServiceError> {
    let mut owners = vec![String::new()];
    owners.extend(projects.iter().cloned());
    owners.extend(product.map(|id| id.to_string()));
    let stored = assessments::list(conn, account, &owners).await?;
    let of = |owner: &String| stored.iter().find(|one| one.owner == *owner);
    let nearest_project = projects.iter().find_map(of);
    let product = product.map(|id| id.to_string());
    let in_order = [of(&String::new()), nearest_project, product.as_ref().and_then(of)];
    Ok(in_order.into_iter().flatten().fold(Settings::default(), |settings, one| settings.with(&one.settings)))
}
