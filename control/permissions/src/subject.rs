//! What operations are about and what they do, as permissions name them: `products:create,read`.

use std::fmt;

shared::words! {
    /// What an operation is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Subject {
        /// Who the caller is; an update revokes the key.
        Access = "access",
        /// Accounts and their domains.
        Accounts = "accounts",
        /// Operators, their roles and invitations.
        Operators = "operators",
        /// Operators who may do everything: to make one, and to change or remove one.
        Owners = "owners",
        /// Roles.
        Roles = "roles",
        /// Personal data in the context of actions: the address, the user agent, the city.
        PersonalData = "personalData",
        /// Projects.
        Projects = "projects",
        /// Applications of projects, and their public keys.
        Applications = "applications",
        /// Secret keys of applications, and keys of Thngs.
        Keys = "keys",
        /// Keys of operators; each operator manages its own without a permission.
        OperatorKeys = "operatorKeys",
        /// Users of applications.
        Users = "users",
        /// Products.
        Products = "products",
        /// Thngs.
        Thngs = "thngs",
        /// Properties of Thngs and products.
        Properties = "properties",
        /// Where a Thng was.
        Locations = "locations",
        /// Places.
        Places = "places",
        /// Collections and their members.
        Collections = "collections",
        /// Actions.
        Actions = "actions",
        /// Actions of the type `encodings`; who creates actions creates these, too.
        Encodings = "encodings",
        /// Actions of the type `inspectorScans`; who creates actions creates these, too.
        InspectorScans = "inspectorScans",
        /// Exports of actions.
        Exports = "exports",
        /// Types of actions.
        ActionTypes = "actionTypes",
        /// Redirections.
        Redirections = "redirections",
        /// Rules of redirection, of the account and of applications.
        Rules = "rules",
        /// Files.
        Files = "files",
        /// Assessments of items.
        Assessments = "assessments",
        /// Settings of assessments, and replays under other settings.
        AssessmentSettings = "assessmentSettings",
        /// Cases: items that assessments suspect, and what people decide on them.
        Cases = "cases",
        /// Steps and states of commissioning.
        Commissioning = "commissioning",
        /// Batches and their tasks.
        Batches = "batches",
        /// Jobs.
        Jobs = "jobs",
        /// Orders of printed codes.
        PrintOrders = "printOrders",
        /// What happens in the account, as a stream.
        Events = "events",
        /// Where events are sent.
        Webhooks = "webhooks",
        /// Reactions to events.
        Reactions = "reactions",
        /// Statistics of scans.
        Statistics = "statistics",
        /// The audit trail.
        Audit = "audit",
        /// The state of the service.
        Status = "status",
    } else ()
}

shared::words! {
    /// What an operation does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// Creates a resource.
        Create = "create",
        /// Reads one that the caller names.
        Read = "read",
        /// Lists, searches, or subscribes to many.
        List = "list",
        /// Changes a resource.
        Update = "update",
        /// Removes a resource.
        Delete = "delete",
    } else ()
}

/// A set of permissions: for each verb the subjects, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permissions([u64; Verb::ALL.len()]);

/// A text that is no permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no permission: it is a subject with verbs, such as products:create,read")]
pub struct NoPermission(String);

impl Permissions {
    /// Everything, for callers whom no role restricts.
    pub const ALL: Self = Self([u64::MAX; Verb::ALL.len()]);

    /// Those that a function admits.
    pub fn of(admits: impl Fn(Verb, Subject) -> bool) -> Self {
        let bits = |verb: Verb| {
            let admitted = Subject::ALL.iter().filter(|subject| admits(verb, **subject));
            admitted.fold(0, |bits, subject| bits | 1 << *subject as u64)
        };
        Self(std::array::from_fn(|at| Verb::ALL.get(at).copied().map_or(0, bits)))
    }

    /// Reads permissions with spaces between them, such as `products:create,read thngs:read`.
    ///
    /// # Errors
    /// The first part that is none.
    pub fn parse(text: &str) -> Result<Self, NoPermission> {
        text.split_whitespace().try_fold(Self::default(), |all, one| {
            let read = || {
                let (subject, verbs) = one.split_once(':')?;
                let subject: Subject = subject.parse().ok()?;
                let verbs: Vec<Verb> =
                    verbs.split(',').map(|verb| verb.parse().ok()).collect::<Option<_>>()?;
                Some(Self::of(|verb, of| of == subject && verbs.contains(&verb)))
            };
            Ok(all.with(read().ok_or_else(|| NoPermission(one.to_owned()))?))
        })
    }

    /// Whether an operation is among them.
    #[must_use]
    pub const fn allow(&self, verb: Verb, subject: Subject) -> bool {
        self.0[verb as usize] & 1 << subject as u64 != 0
    }

    /// These and others.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | others.0[at]))
    }

    /// These without others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !others.0[at]))
    }

    /// Whether others have nothing that these have not.
    #[must_use]
    pub fn cover(&self, others: &Self) -> bool {
        others.without(*self) == Self::default()
    }

    /// A text for each subject, such as `products:create,read`.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let text = |subject: &Subject| {
            let verbs =
                Verb::ALL.iter().filter(|verb| self.allow(**verb, *subject)).map(|verb| verb.as_str());
            let verbs = verbs.collect::<Vec<_>>().join(",");
            (!verbs.is_empty()).then(|| format!("{}:{verbs}", subject.as_str()))
        };
        Subject::ALL.iter().filter_map(text).collect()
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_read_and_written_as_texts() {
        assert!(Subject::ALL.len() <= 64, "a bit for each");
        let set = Permissions::parse("thngs:read products:list,create,read thngs:delete").unwrap();
        assert_eq!(set.to_string(), "products:create,read,list thngs:read,delete");
        assert_eq!(Permissions::parse(&set.to_string()), Ok(set));
        assert!(set.allow(Verb::Create, Subject::Products) && !set.allow(Verb::Update, Subject::Products));
        assert!(!set.allow(Verb::Create, Subject::Thngs));
        for text in ["thngs", "thngs:", "thngs:read,", "things:read", "thngs:write", ":read"] {
            assert_eq!(Permissions::parse(text), Err(NoPermission(text.to_owned())));
        }
        let less = Permissions::parse("thngs:read").unwrap();
        assert!(set.cover(&less) && !less.cover(&set) && Permissions::ALL.cover(&set));
        assert_eq!(set.without(less).with(less), set);
    }
}
