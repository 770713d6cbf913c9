//! What each kind of key may do: one table (decisions 3).

use super::access::ActorKind::{self, App, Operator, Thng, TrustedApp, User};

/// What an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Who the caller is; an update gives the key back.
    Access,
    /// Accounts, their domains and accesses.
    Accounts,
    /// Operators.
    Operators,
    /// Projects.
    Projects,
    /// Applications of projects, and their public keys.
    Applications,
    /// Secret keys of applications, and keys of Thngs.
    Keys,
    /// Users of applications.
    Users,
    /// Products.
    Products,
    /// Thngs.
    Thngs,
    /// Properties of Thngs and products.
    Properties,
    /// Where a Thng was.
    Locations,
    /// Places.
    Places,
    /// Collections and their members.
    Collections,
    /// Actions.
    Actions,
    /// Types of actions.
    ActionTypes,
    /// Redirections.
    Redirections,
    /// Rules of redirection, of the account and of applications.
    Rules,
    /// Files.
    Files,
    /// Assessments of items.
    Assessments,
    /// What assessments go by, and what they would say under other settings.
    AssessmentSettings,
    /// Steps and states of commissioning.
    Commissioning,
    /// Batches and their tasks.
    Batches,
    /// Jobs.
    Jobs,
    /// What happens in the account, as a stream.
    Events,
    /// Where events are sent.
    Webhooks,
    /// What is done when something happens.
    Reactions,
    /// The state of the service.
    Status,
}

use Subject::{
    Access, Accounts, ActionTypes, Actions, Applications, AssessmentSettings, Assessments, Batches,
    Collections, Commissioning, Events, Files, Jobs, Keys, Locations, Operators, Places, Products, Projects,
    Properties, Reactions, Redirections, Rules, Status, Thngs, Users, Webhooks,
};

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 27] = [
        Access,
        Accounts,
        Operators,
        Projects,
        Applications,
        Keys,
        Users,
        Products,
        Thngs,
        Properties,
        Locations,
        Places,
        Collections,
        Actions,
        ActionTypes,
        Redirections,
        Rules,
        Files,
        Assessments,
        AssessmentSettings,
        Commissioning,
        Batches,
        Jobs,
        Events,
        Webhooks,
        Reactions,
        Status,
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

/// How far a permission goes; what is out of reach does not exist for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Everything in the account.
    Account,
    /// What is scoped to the key's project; what it makes is scoped so too.
    Project,
    /// What the key's owner made or is named in: the user in `scopes.users`, the Thng itself.
    Own,
}

/// The table: a kind of key, a subject, and the reach of Create, Read, Update and Delete by a letter:
/// `a`ccount, `p`roject, `o`wn, or a dash. What is not listed is refused.
const TABLE: &[(ActorKind, Subject, &[u8; 4])] = &[
    (Operator, Access, b"-a--"),
    (Operator, Accounts, b"-aa-"),
    (Operator, Operators, b"-aa-"),
    (Operator, Projects, b"aaaa"),
    (Operator, Applications, b"aaaa"),
    (Operator, Keys, b"aaaa"),
    // Users are made through an application: its key says where they belong.
    (Operator, Users, b"-aaa"),
    (Operator, Products, b"aaaa"),
    (Operator, Thngs, b"aaaa"),
    (Operator, Properties, b"aaaa"),
    (Operator, Locations, b"aaaa"),
    (Operator, Places, b"aaaa"),
    (Operator, Collections, b"aaaa"),
    (Operator, Actions, b"aa-a"),
    (Operator, ActionTypes, b"aaaa"),
    (Operator, Redirections, b"aaaa"),
    (Operator, Rules, b"aaaa"),
    (Operator, Files, b"aaaa"),
    (Operator, Assessments, b"a---"),
    (Operator, AssessmentSettings, b"-aa-"),
    (Operator, Commissioning, b"aa--"),
    (Operator, Batches, b"aaaa"),
    // To cancel is an update.
    (Operator, Jobs, b"aaa-"),
    (Operator, Events, b"-a--"),
    (Operator, Webhooks, b"aaaa"),
    (Operator, Reactions, b"aaaa"),
    (Operator, Status, b"-a--"),
    (TrustedApp, Access, b"-o--"),
    (TrustedApp, Users, b"pp--"),
    (TrustedApp, Products, b"pppp"),
    (TrustedApp, Thngs, b"pppp"),
    (TrustedApp, Properties, b"pppp"),
    (TrustedApp, Locations, b"pppp"),
    (TrustedApp, Places, b"pppp"),
    (TrustedApp, Collections, b"pppp"),
    (TrustedApp, Actions, b"pp-p"),
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
    // A user gives its own key back.
    (User, Access, b"-oo-"),
    (User, Users, b"-oo-"),
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

/// How far a kind of key may do this; `None` when it may not at all.
#[must_use]
pub fn reach(kind: ActorKind, verb: Verb, subject: Subject) -> Option<Reach> {
    let (_, _, letters) = TABLE.iter().find(|(k, s, _)| *k == kind && *s == subject)?;
    let [create, read, update, delete] = **letters;
    let letter = match verb {
        Verb::Create => create,
        Verb::Read => read,
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

/// Whether a kind of key may write actions of a type: the public key of an application writes scans only.
#[must_use]
pub fn may_create_action(kind: ActorKind, action_type: &str) -> bool {
    kind != App || action_type == "scans"
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
    }

    #[test]
    fn what_is_decided_of_each_kind_holds() {
        for subject in Subject::ALL {
            for verb in Verb::ALL {
                let cell = |kind| reach(kind, verb, subject);
                assert!(cell(Operator).is_none_or(|reach| reach == Reach::Account), "{subject:?} {verb:?}");
                for kind in [TrustedApp, App, User, Thng] {
                    // Nobody may what an operator may not, but for logins.
                    let is_login = matches!((subject, verb), (Users, Verb::Create) | (Access, Verb::Update));
                    assert!(
                        is_login || cell(kind).is_none() || cell(Operator).is_some(),
                        "{kind:?} {subject:?} {verb:?}"
                    );
                    let is_shared = subject == ActionTypes && verb == Verb::Read;
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
            (TrustedApp, Verb::Read, Accounts, None),
            (TrustedApp, Verb::Read, Files, None),
            (TrustedApp, Verb::Create, Jobs, None),
            (TrustedApp, Verb::Update, Redirections, Some(Reach::Project)),
            (Thng, Verb::Update, Thngs, Some(Reach::Own)),
            (Thng, Verb::Delete, Thngs, None),
            (Thng, Verb::Read, Products, None),
        ] {
            assert_eq!(reach(kind, verb, subject), expected, "{kind:?} {verb:?} {subject:?}");
        }
    }

    #[test]
    fn a_public_key_writes_scans_only() {
        for kind in ActorKind::ALL {
            assert!(may_create_action(kind, "scans"));
            for other in ["implicitScans", "checkins", "_own", "inspectorScans"] {
                assert_eq!(may_create_action(kind, other), kind != App, "{kind:?} {other}");
            }
        }
    }
}
