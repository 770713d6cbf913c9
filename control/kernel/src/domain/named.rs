//! What named resources have in common: an id, a stamp, a name, and the rest as one document.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    common::{Common, Stamp},
    permission::Subject,
    scopes::Scopes,
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

/// Implements [`Named`] for structs that have the members `id`, `stamp`, `name` and `details`.
#[macro_export]
macro_rules! named {
    ($($type:ident: $id:ty, $details:ty, $kind:literal, $subject:ident $(, $properties:ident)? $(of $project:ident)?;)*) => {$(
        impl $crate::domain::named::Named for $type {
            type Id = $id;
            type Details = $details;

            const KIND: &'static str = $kind;
            const SUBJECT: $crate::domain::permission::Subject = $crate::domain::permission::Subject::$subject;

            fn id(&self) -> $id {
                self.id
            }

            fn stamp(&self) -> &$crate::domain::common::Stamp {
                &self.stamp
            }

            fn stamp_mut(&mut self) -> &mut $crate::domain::common::Stamp {
                &mut self.stamp
            }

            fn name(&self) -> &str {
                &self.name
            }

            fn details(&self) -> &$details {
                &self.details
            }

            fn common(&self) -> &$crate::domain::common::Common {
                &self.details.common
            }

            $(fn properties(&mut self) -> Option<&mut std::collections::BTreeMap<String, serde_json::Value>> {
                Some(&mut self.$properties)
            })?

            $(fn scopes(&self) -> Option<std::borrow::Cow<'_, $crate::domain::scopes::Scopes>> {
                self.$project.map(|id| std::borrow::Cow::Owned($crate::domain::scopes::Scopes { users: Vec::new(), projects: vec![id.to_string()] }))
            })?
        }
    )*};
}
pub use named;
