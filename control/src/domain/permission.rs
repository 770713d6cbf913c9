//! What each kind of key may do: one table (decisions 3).

use super::access::ActorKind;

/// What an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Who the caller is.
    Access,
    /// Accounts and their domains.
    Accounts,
    /// Operators.
    Operators,
    /// Products.
    Products,
    /// Thngs.
    Thngs,
    /// Actions and their types.
    Actions,
    /// Redirections.
    Redirections,
    /// The state of the service.
    Status,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 8] = [
        Self::Access,
        Self::Accounts,
        Self::Operators,
        Self::Products,
        Self::Thngs,
        Self::Actions,
        Self::Redirections,
        Self::Status,
    ];
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Makes a resource.
    Create,
    /// Reads or lists.
    Read,
    /// Changes a resource.
    Update,
    /// Removes a resource.
    Delete,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 4] = [Self::Create, Self::Read, Self::Update, Self::Delete];
}

use Verb::{Create, Delete, Read, Update};

/// The table: a kind of key, a subject, and the verbs it may use; what is not listed is refused.
const TABLE: &[(ActorKind, Subject, &[Verb])] = &[
    (ActorKind::Operator, Subject::Access, &[Read]),
    (ActorKind::Operator, Subject::Accounts, &[Read, Update]),
    (ActorKind::Operator, Subject::Operators, &[Read, Update]),
    (ActorKind::Operator, Subject::Products, &[Create, Read, Update, Delete]),
    (ActorKind::Operator, Subject::Thngs, &[Create, Read, Update, Delete]),
    (ActorKind::Operator, Subject::Actions, &[Create, Read, Delete]),
    (ActorKind::Operator, Subject::Redirections, &[Create, Read, Update, Delete]),
    (ActorKind::Operator, Subject::Status, &[Read]),
];

/// Tells whether a kind of key may do this.
#[must_use]
pub fn allows(kind: ActorKind, verb: Verb, subject: Subject) -> bool {
    TABLE.iter().any(|(k, s, verbs)| *k == kind && *s == subject && verbs.contains(&verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_as_decided() {
        // One letter for each of Create, Read, Update, Delete, or a dash.
        let expected = [
            (ActorKind::Operator, Subject::Access, "-R--"),
            (ActorKind::Operator, Subject::Accounts, "-RU-"),
            (ActorKind::Operator, Subject::Operators, "-RU-"),
            (ActorKind::Operator, Subject::Products, "CRUD"),
            (ActorKind::Operator, Subject::Thngs, "CRUD"),
            (ActorKind::Operator, Subject::Actions, "CR-D"),
            (ActorKind::Operator, Subject::Redirections, "CRUD"),
            (ActorKind::Operator, Subject::Status, "-R--"),
        ];
        for kind in [ActorKind::Operator] {
            for subject in Subject::ALL {
                let cell: String = Verb::ALL
                    .iter()
                    .zip("CRUD".chars())
                    .map(|(verb, letter)| if allows(kind, *verb, subject) { letter } else { '-' })
                    .collect();
                let wanted = expected.iter().find(|(k, s, _)| *k == kind && *s == subject).unwrap().2;
                assert_eq!(cell, wanted, "{kind:?} {subject:?}");
            }
        }
    }
}
