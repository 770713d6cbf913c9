//! What a permission means for one caller: which resources it can see, and the scopes of those it creates.

use shared::id::ProjectId;

use super::{
    access::{Actor, ActorKind},
    permission::Reach,
    scopes::Scopes,
};

/// A permission that a caller has, with how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Grant {
    limit: Limit,
    /// The user that creates, if the caller is one.
    user: Option<String>,
    /// The project that the key is confined to.
    project: Option<ProjectId>,
}

/// The limit of a caller's view of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Nothing but the account.
    Account,
    /// Resources scoped to one of these projects.
    Projects(Vec<ProjectId>),
    /// What names this user in its scopes.
    User(String),
    /// The resource with this id.
    Itself(String),
}

impl Limit {
    /// Whether a resource is within it.
    #[must_use]
    pub fn admits(&self, id: &str, scopes: Option<&Scopes>) -> bool {
        match self {
            Self::Account => true,
            Self::Projects(projects) => scopes.is_some_and(|scopes| {
                scopes.projects.iter().any(|id| projects.iter().any(|project| project.as_str() == id))
            }),
            Self::User(user) => id == user || scopes.is_some_and(|scopes| scopes.users.contains(user)),
            Self::Itself(itself) => id == itself,
        }
    }
}

impl Grant {
    /// The grant of a caller whose permission reaches so far; `None` when its key names no project.
    #[must_use]
    pub fn new(actor: &Actor, reach: Reach) -> Option<Self> {
        let user = (actor.kind == ActorKind::User).then(|| actor.id.clone());
        let limit = match (reach, &user) {
            (Reach::Account, _) => Limit::Account,
            (Reach::Project, _) => Limit::Projects(actor.projects()?),
            (Reach::Own, Some(user)) => Limit::User(user.clone()),
            (Reach::Own, None) => Limit::Itself(actor.id.clone()),
        };
        Some(Self { limit, user, project: actor.project })
    }

    /// What lists are limited to.
    #[must_use]
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Whether a resource exists for the caller.
    #[must_use]
    pub fn admits(&self, id: &str, scopes: Option<&Scopes>) -> bool {
        self.limit.admits(id, scopes)
    }

    /// The scopes of what the caller creates: those of a confined key are its own projects and user. Of several
    /// projects it may ask for some.
    #[must_use]
    pub fn scopes_of_new(&self, asked: Option<Scopes>) -> Option<Scopes> {
        match &self.limit {
            Limit::Account | Limit::Itself(_) => asked,
            Limit::Projects(own) => {
                let mut projects: Vec<String> = own.iter().map(ToString::to_string).collect();
                if let Some(asked) =
                    asked.filter(|asked| asked.projects.iter().any(|id| projects.contains(id)))
                {
                    projects.retain(|id| asked.projects.contains(id));
                }
                Some(Scopes { users: self.user.iter().cloned().collect(), projects })
            }
            // Its project sees it, and so the user itself, which reads what its project may.
            Limit::User(user) => Some(Scopes {
                users: vec![user.clone()],
                projects: self.project.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// The scopes that a change may set: only who reaches the whole account moves things between projects.
    #[must_use]
    pub fn scopes_of_change(&self, asked: Option<Scopes>) -> Option<Scopes> {
        asked.filter(|_| self.limit == Limit::Account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{access::UserRights, subject::Permissions};

    fn actor(kind: ActorKind) -> Actor {
        Actor {
            account: shared::id::AccountId::new(1, [1; 16]),
            kind,
            id: "ME".to_owned(),
            project: Some(ProjectId::new(1, [2; 16])),
            app: None,
            enterprise: true,
            user_rights: UserRights::default(),
            permissions: Permissions::ALL,
            confined_to: Vec::new(),
        }
    }

    #[test]
    fn visibility_by_kind_of_key() {
        let project = ProjectId::new(1, [2; 16]).to_string();
        let scopes = |users: &[&str], projects: &[&str]| Scopes {
            users: users.iter().map(|user| (*user).to_owned()).collect(),
            projects: projects.iter().map(|project| (*project).to_owned()).collect(),
        };
        for (kind, reach, id, scopes, expected) in [
            (ActorKind::Operator, Reach::Account, "X", None, true),
            (ActorKind::TrustedApp, Reach::Project, "X", None, false),
            (ActorKind::TrustedApp, Reach::Project, "X", Some(scopes(&[], &[&project])), true),
            (ActorKind::TrustedApp, Reach::Project, "X", Some(scopes(&["all"], &["other"])), false),
            (ActorKind::User, Reach::Project, "X", Some(scopes(&[], &[&project])), true),
            (ActorKind::User, Reach::Own, "X", Some(scopes(&[], &[&project])), false),
            (ActorKind::User, Reach::Own, "X", Some(scopes(&["ME"], &[])), true),
            (ActorKind::User, Reach::Own, "X", Some(scopes(&["all"], &[])), false),
            (ActorKind::User, Reach::Own, "ME", None, true),
            (ActorKind::Thng, Reach::Own, "ME", None, true),
            (ActorKind::Thng, Reach::Own, "X", Some(scopes(&["ME"], &[])), false),
        ] {
            let grant = Grant::new(&actor(kind), reach).unwrap();
            assert_eq!(grant.admits(id, scopes.as_ref()), expected, "{kind:?} {reach:?} {id} {scopes:?}");
        }
        let homeless = Actor { project: None, ..actor(ActorKind::App) };
        assert_eq!(Grant::new(&homeless, Reach::Project), None);
    }

    #[test]
    fn a_confined_key_scopes_nothing_to_others() {
        let project = ProjectId::new(1, [2; 16]).to_string();
        let asked = Some(Scopes { users: vec!["all".to_owned()], projects: vec!["other".to_owned()] });
        let grant = |kind, reach| Grant::new(&actor(kind), reach).unwrap();
        let operator = grant(ActorKind::Operator, Reach::Account);
        assert_eq!(operator.scopes_of_new(asked.clone()), asked);
        assert_eq!(operator.scopes_of_change(asked.clone()), asked);
        let user = grant(ActorKind::User, Reach::Project);
        let made = user.scopes_of_new(asked.clone()).unwrap();
        assert_eq!(made, Scopes { users: vec!["ME".to_owned()], projects: vec![project] });
        assert_eq!(user.scopes_of_change(asked.clone()), None);
        assert_eq!(grant(ActorKind::User, Reach::Own).scopes_of_new(asked), Some(made));
    }
}
