//! What named resources have in common: an id, a stamp, a name, and the rest as one document.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use shared::id::{
    ApplicationId, BatchId, CollectionId, FileId, PlaceId, ProductId, ProjectId, ReactionId, TaskId, ThngId,
    WebhookId,
};

use super::{
    batch::{Batch, BatchDetails},
    collection::{Collection, CollectionDetails},
    file::{File, FileDetails},
    permission::Subject,
    place::{Place, PlaceDetails},
    project::{Application, ApplicationDetails, Project, ProjectDetails},
    reaction::{Reaction, ReactionDetails},
    redirection::Scopes,
    resource::{Common, Product, ProductDetails, Stamp, Thng, ThngDetails},
    task::{Task, TaskDetails},
    webhook::{Webhook, WebhookDetails},
};

/// A named resource of an account.
pub trait Named: Sized + Send + Sync {
    /// Its id.
    type Id: Copy + Display + FromStr + Send + Sync;
    /// What stands in its document.
    type Details: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static;

    /// What it is called in errors, and in the table of identifiers.
    const KIND: &'static str;
    /// What it is called in the table of permissions.
    const SUBJECT: Subject;

    /// Its id.
    fn id(&self) -> Self::Id;
    /// Order and times.
    fn stamp(&self) -> &Stamp;
    /// Order and times, to be changed.
    fn stamp_mut(&mut self) -> &mut Stamp;
    /// Its name.
    fn name(&self) -> &str;
    /// What stands in its document.
    fn details(&self) -> &Self::Details;
    /// The part of it that all have.
    fn common(&self) -> &Common;
    /// Who may see and change it.
    fn scopes(&self) -> Option<Cow<'_, Scopes>> {
        self.common().scopes.as_ref().map(Cow::Borrowed)
    }
    /// The latest values of its properties, if it has such.
    fn properties(&mut self) -> Option<&mut BTreeMap<String, Value>> {
        None
    }
}

macro_rules! named {
    ($($type:ident: $id:ty, $details:ty, $kind:literal, $subject:ident $(, $properties:ident)? $(of $project:ident)?;)*) => {$(
        impl Named for $type {
            type Id = $id;
            type Details = $details;

            const KIND: &'static str = $kind;
            const SUBJECT: Subject = Subject::$subject;

            fn id(&self) -> $id {
                self.id
            }

            fn stamp(&self) -> &Stamp {
                &self.stamp
            }

            fn stamp_mut(&mut self) -> &mut Stamp {
                &mut self.stamp
            }

            fn name(&self) -> &str {
                &self.name
            }

            fn details(&self) -> &$details {
                &self.details
            }

            fn common(&self) -> &Common {
                &self.details.common
            }

            $(fn properties(&mut self) -> Option<&mut BTreeMap<String, Value>> {
                Some(&mut self.$properties)
            })?

            $(fn scopes(&self) -> Option<Cow<'_, Scopes>> {
                self.$project.map(|id| Cow::Owned(Scopes { users: Vec::new(), projects: vec![id.to_string()] }))
            })?
        }
    )*};
}

named! {
    Project: ProjectId, ProjectDetails, "project", Projects;
    Application: ApplicationId, ApplicationDetails, "application", Applications;
    Product: ProductId, ProductDetails, "product", Products, properties;
    Thng: ThngId, ThngDetails, "thng", Thngs, properties;
    Place: PlaceId, PlaceDetails, "place", Places;
    Collection: CollectionId, CollectionDetails, "collection", Collections;
    Batch: BatchId, BatchDetails, "batch", Batches;
    File: FileId, FileDetails, "file", Files;
    Webhook: WebhookId, WebhookDetails, "webhook", Webhooks of project;
    Reaction: ReactionId, ReactionDetails, "reaction", Reactions of project;
}

/// A task is called by its type, and belongs to whoever its batch belongs to.
impl Named for Task {
    type Id = TaskId;
    type Details = TaskDetails;

    const KIND: &'static str = "task";
    const SUBJECT: Subject = Subject::Batches;

    fn id(&self) -> TaskId {
        self.id
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        &mut self.stamp
    }

    fn name(&self) -> &str {
        &self.kind
    }

    fn details(&self) -> &TaskDetails {
        &self.details
    }

    fn common(&self) -> &Common {
        &self.details.common
    }
}
