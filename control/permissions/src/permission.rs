//! The permission table: what each kind of key may do (`control/README.md`, "Permissions").

use crate::{
    access::{
        ActorKind::{self, App, Operator, ProjectOperator, Thng, TrustedApp, User},
        UserRights,
    },
    action_names::{CREATED_BY_USERS, RESERVED, is_custom},
    subject::Subject::{
        Access, Accounts, ActionTypes, Actions, Applications, AssessmentSettings, Assessments, Audit,
        Batches, Cases, Collections, Commissioning, Encodings, Events, Exports, Files, InspectorScans, Jobs,
        Keys, Locations, OperatorKeys, Operators, Owners, PersonalData, Places, PrintOrders, Products,
        Projects, Properties, Reactions, Redirections, Roles, Rules, Statistics, Status, Thngs, Users,
        Webhooks,
    },
};

pub use crate::subject::{Subject, Verb};

/// The reach of a permission; resources outside of it do not exist for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Everything in the account.
    Account,
    /// Resources scoped to the key's project; what it creates is scoped to it too.
    Project,
    /// Resources that the key's owner created or that name it: the user in `scopes.users`, the Thng itself.
    Own,
}

/// The table: a kind of key, a subject, and the reach of Create, Read, Update and Delete by a letter: `a`ccount,
/// `p`roject, `o`wn, or a dash; `s`ingle is the project for one that is named, and `o` for lists. Everything else is
/// refused. Users are listed as under [`UserRights::Open`].
const TABLE: &[(ActorKind, Subject, &[u8; 4])] = &[
    (Operator, Access, b"-a--"),
    (Operator, Accounts, b"-aa-"),
    (Operator, Operators, b"aaaa"),
    (Operator, Owners, b"--a-"),
    (Operator, Roles, b"aaaa"),
    (Operator, PersonalData, b"-a--"),
    (Operator, Projects, b"aaaa"),
    (Operator, Applications, b"aaaa"),
    (Operator, Keys, b"aaaa"),
    (Operator, OperatorKeys, b"aaaa"),
    // Users are created through an application: its key determines where they belong.
    (Operator, Users, b"-aaa"),
    (Operator, Products, b"aaaa"),
    (Operator, Thngs, b"aaaa"),
    (Operator, Properties, b"aaaa"),
    (Operator, Locations, b"aaaa"),
    (Operator, Places, b"aaaa"),
    (Operator, Collections, b"aaaa"),
    (Operator, Actions, b"aa-a"),
    (Operator, Encodings, b"a---"),
    (Operator, InspectorScans, b"a---"),
    (Operator, Exports, b"-a--"),
    (Operator, ActionTypes, b"aaaa"),
    (Operator, Redirections, b"aaaa"),
    (Operator, Rules, b"aaaa"),
    (Operator, Files, b"aaaa"),
    (Operator, Assessments, b"a---"),
    (Operator, AssessmentSettings, b"-aa-"),
    (Operator, Cases, b"-aa-"),
    (Operator, Commissioning, b"aa--"),
    (Operator, Batches, b"aaaa"),
    // To cancel is an update.
    (Operator, Jobs, b"aaaa"),
    (Operator, PrintOrders, b"aaaa"),
    (Operator, Events, b"-a--"),
    (Operator, Webhooks, b"aaaa"),
    (Operator, Reactions, b"aaaa"),
    (Operator, Statistics, b"-a--"),
    (Operator, Audit, b"-a--"),
    (Operator, Status, b"-a--"),
    // For all else it is a trusted application: see `reach`.
    (ProjectOperator, OperatorKeys, b"pppp"),
    (TrustedApp, Access, b"-o--"),
    (TrustedApp, Users, b"pp--"),
    (TrustedApp, Products, b"pppp"),
    (TrustedApp, Thngs, b"pppp"),
    (TrustedApp, Properties, b"pppp"),
    (TrustedApp, Locations, b"pppp"),
    (TrustedApp, Places, b"pppp"),
    (TrustedApp, Collections, b"pppp"),
    (TrustedApp, PersonalData, b"-p--"),
    (TrustedApp, Actions, b"pp-p"),
    (TrustedApp, Encodings, b"p---"),
    (TrustedApp, InspectorScans, b"p---"),
    (TrustedApp, Exports, b"-p--"),
    (TrustedApp, Statistics, b"-p--"),
    (TrustedApp, ActionTypes, b"-a--"),
    (TrustedApp, Redirections, b"pppp"),
    // What no project is named in stays out.
    (TrustedApp, Events, b"-p--"),
    (TrustedApp, Assessments, b"p---"),
    (App, Access, b"-o--"),
    (App, Users, b"p---"),
    (App, Products, b"-p--"),
    (App, Places, b"-p--"),
    // Scans only: see the service of actions.
    (App, Actions, b"p---"),
    // A user revokes its own key.
    (User, Access, b"-oo-"),
    (User, Users, b"-oo-"),
    // That of its application.
    (User, Roles, b"-o--"),
    (User, Products, b"ppo-"),
    (User, Thngs, b"ppo-"),
    (User, Properties, b"opo-"),
    (User, Locations, b"opo-"),
    (User, Places, b"-p--"),
    (User, Collections, b"ppo-"),
    (User, Actions, b"pp--"),
    (User, ActionTypes, b"-a--"),
    (User, Redirections, b"opo-"),
    (User, Assessments, b"p---"),
    (Thng, Access, b"-o--"),
    (Thng, Thngs, b"-oo-"),
    (Thng, Properties, b"oooo"),
    (Thng, Locations, b"oooo"),
    (Thng, Actions, b"oo--"),
];

/// The same for users under [`UserRights::Own`]: any visitor of a page may be one.
const OWN_USER: &[(Subject, &[u8; 4])] = &[
    (Access, b"-oo-"),
    (Users, b"-oo-"),
    (Roles, b"-o--"),
    (Products, b"-p--"),
    // Thngs, collections and redirections are created as far as the application allows: see the service `user_rules`.
    (Thngs, b"oso-"),
    (Properties, b"ooo-"),
    (Locations, b"ooo-"),
    (Places, b"-p--"),
    (Collections, b"ooo-"),
    (Actions, b"po--"),
    (ActionTypes, b"-a--"),
    (Redirections, b"ooo-"),
    (Assessments, b"p---"),
];

/// How far a kind of key may do this; `None` when it may not at all. `rights` are those of users in the account.
#[must_use]
pub fn reach(kind: ActorKind, rights: UserRights, verb: Verb, subject: Subject) -> Option<Reach> {
    let kind = match (kind, subject) {
        (ProjectOperator, OperatorKeys) => ProjectOperator,
        (ProjectOperator, _) => TrustedApp,
        (kind, _) => kind,
    };
    let letters = match (kind, rights) {
        (User, UserRights::Own) => OWN_USER.iter().find(|(s, _)| *s == subject)?.1,
        (Operator | ProjectOperator | TrustedApp | App | User | Thng, _) => {
            TABLE.iter().find(|(k, s, _)| *k == kind && *s == subject)?.2
        }
    };
    let [create, read, update, delete] = *letters;
    let letter = match verb {
        Verb::Create => create,
        Verb::Read if read == b's' => b'p',
        Verb::List if read == b's' => b'o',
        Verb::Read | Verb::List => read,
        Verb::Update => update,
        Verb::Delete => delete,
    };
    match letter {
        b'a' => Some(Reach::Account),
        b'p' => Some(Reach::Project),
        b'o' => Some(Reach::Own),
        _ => None,
    }
}

/// How far every operator may do this, whatever its role: it manages its own keys, and reads and names itself.
#[must_use]
pub const fn own_reach(kind: ActorKind, verb: Verb, subject: Subject) -> Option<Reach> {
    match (subject, verb) {
        _ if !kind.is_operator() => None,
        (OperatorKeys, _) | (Operators, Verb::Read | Verb::Update) => Some(Reach::Own),
        _ => None,
    }
}

/// Whether a kind of key may write actions of a type.
///
/// The public key of an application only writes scans. Its users write the types that it lists, or without a list
/// those of [`CREATED_BY_USERS`] and of the account. No public key writes a [`RESERVED`] type.
#[must_use]
pub fn may_create_action(
    kind: ActorKind,
    rights: UserRights,
    listed: Option<&[String]>,
    action_type: &str,
) -> bool {
    let is_reserved = RESERVED.contains(&action_type);
    match (kind, rights) {
        (Operator | ProjectOperator | TrustedApp, _) => true,
        (App, _) => action_type == "scans",
        (Thng, _) | (User, UserRights::Open) => !is_reserved,
        (User, UserRights::Own) => {
            !is_reserved
                && match listed {
                    Some(listed) => listed.iter().any(|one| one == action_type),
                    None => CREATED_BY_USERS.contains(&action_type) || is_custom(action_type),
                }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_cell_once_and_knows_its_letters() {
        for (index, (kind, subject, letters)) in TABLE.iter().enumerate() {
            assert!(letters.iter().all(|letter| b"apo-".contains(letter)), "{kind:?} {subject:?}");
            let again = TABLE[index + 1..].iter().any(|(k, s, _)| k == kind && s == subject);
            assert!(!again, "{kind:?} {subject:?} twice");
        }
        for (index, (subject, letters)) in OWN_USER.iter().enumerate() {
            let [create, read, update, delete] = **letters;
            assert!([create, update, delete].iter().all(|letter| b"po-".contains(letter)), "{subject:?}");
            assert!(b"apos-".contains(&read), "{subject:?}");
            assert!(!OWN_USER[index + 1..].iter().any(|(other, _)| other == subject), "{subject:?} twice");
        }
    }

    /// How far a permission goes, as a number.
    fn width(reach: Option<Reach>) -> u8 {
        match reach {
            None => 0,
            Some(Reach::Own) => 1,
            Some(Reach::Project) => 2,
            Some(Reach::Account) => 3,
        }
    }

    #[test]
    fn own_rights_are_a_subset_of_open_rights() {
        for subject in Subject::ALL {
            for verb in Verb::ALL {
                let cell = |rights| reach(User, rights, verb, subject);
                let (own, open) = (cell(UserRights::Own), cell(UserRights::Open));
                assert!(width(own) <= width(open), "{verb:?} {subject:?}: {own:?} is more than {open:?}");
            }
        }
        for (verb, subject, expected) in [
            (Verb::Create, Products, None),
            (Verb::Update, Products, None),
            (Verb::Read, Thngs, Some(Reach::Project)),
            (Verb::List, Thngs, Some(Reach::Own)),
            (Verb::List, Products, Some(Reach::Project)),
            (Verb::Read, Actions, Some(Reach::Own)),
            (Verb::List, Actions, Some(Reach::Own)),
            (Verb::Read, Redirections, Some(Reach::Own)),
            (Verb::List, Redirections, Some(Reach::Own)),
            (Verb::Read, Properties, Some(Reach::Own)),
            (Verb::Read, Collections, Some(Reach::Own)),
        ] {
            assert_eq!(reach(User, UserRights::Own, verb, subject), expected, "{verb:?} {subject:?}");
        }
    }

    #[test]
    fn decided_permissions_of_each_kind_hold() {
        for subject in Subject::ALL {
            for verb in Verb::ALL {
                let cell = |kind| reach(kind, UserRights::Open, verb, subject);
                assert!(cell(Operator).is_none_or(|reach| reach == Reach::Account), "{subject:?} {verb:?}");
                for kind in [ProjectOperator, TrustedApp, App, User, Thng] {
                    // No kind may do what an operator may not, except log in.
                    let is_login = matches!((subject, verb), (Users, Verb::Create) | (Access, Verb::Update));
                    assert!(
                        is_login || cell(kind).is_none() || cell(Operator).is_some(),
                        "{kind:?} {subject:?} {verb:?}"
                    );
                    let is_shared = subject == ActionTypes && matches!(verb, Verb::Read | Verb::List);
                    let is_confined = cell(kind) != Some(Reach::Account);
                    assert!(
                        is_confined || is_shared,
                        "{kind:?} {subject:?} {verb:?} reaches the whole account"
                    );
                }
                if verb == Verb::Delete && cell(User).is_some() {
                    panic!("a user deletes {subject:?}");
                }
                if verb == Verb::Update && cell(User).is_some_and(|reach| reach != Reach::Own) {
                    panic!("a visitor may change the {subject:?} of others");
                }
            }
        }
        for (kind, verb, subject, expected) in [
            (App, Verb::Read, Thngs, None),
            (App, Verb::Read, Products, Some(Reach::Project)),
            (App, Verb::Create, Actions, Some(Reach::Project)),
            (App, Verb::Read, Actions, None),
            (User, Verb::Create, ActionTypes, None),
            (ProjectOperator, Verb::Create, OperatorKeys, Some(Reach::Project)),
            (ProjectOperator, Verb::Read, Accounts, None),
            (ProjectOperator, Verb::Read, Keys, None),
            (ProjectOperator, Verb::Update, Products, Some(Reach::Project)),
            (TrustedApp, Verb::List, OperatorKeys, None),
            (TrustedApp, Verb::Read, Accounts, None),
            (TrustedApp, Verb::Read, Files, None),
            (TrustedApp, Verb::Create, Jobs, None),
            (TrustedApp, Verb::Update, Redirections, Some(Reach::Project)),
            (Thng, Verb::Update, Thngs, Some(Reach::Own)),
            (Thng, Verb::Delete, Thngs, None),
            (Thng, Verb::Read, Products, None),
        ] {
            assert_eq!(
                reach(kind, UserRights::Open, verb, subject),
                expected,
                "{kind:?} {verb:?} {subject:?}"
            );
        }
    }

    /// Who may write which type: each cell.
    #[test]
    fn public_keys_write_no_reserved_type() {
        let listed = ["invalidScans".to_owned(), "_a".to_owned(), "encodings".to_owned()];
        for (action_type, expected) in [
            ("scans", "ooooo-o"),
            ("checkins", "oo-oo-o"),
            ("shares", "oo-oo-o"),
            ("invalidScans", "oo-o-oo"),
            ("_a", "oo-oooo"),
            ("_b", "oo-oo-o"),
            ("implicitScans", "oo-----"),
            ("encodings", "oo-----"),
            ("commissions", "oo-----"),
            ("decommissions", "oo-----"),
            ("inspectorScans", "oo-----"),
            ("supplyChainScans", "oo-----"),
            ("authenticationConfirmations", "oo-----"),
            ("authenticationResults", "oo-----"),
        ] {
            let cells = [
                (Operator, UserRights::Own, None),
                (TrustedApp, UserRights::Own, None),
                (App, UserRights::Open, None),
                (User, UserRights::Open, None),
                (User, UserRights::Own, None),
                (User, UserRights::Own, Some(&listed[..])),
                (Thng, UserRights::Own, None),
            ];
            for ((kind, rights, listed), letter) in cells.into_iter().zip(expected.chars()) {
                let may = may_create_action(kind, rights, listed, action_type);
                assert_eq!(may, letter == 'o', "{kind:?} {rights:?} {listed:?} {action_type}");
            }
        }
    }
}
