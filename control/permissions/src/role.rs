//! Roles of operators: those that every account has, and the groups of permissions of which others are made.

use std::sync::LazyLock;

use crate::{
    access::{ActorKind, UserRights},
    permission::reach,
    subject::Permissions,
};

/// A group of permissions that is given or taken as a whole; no two have a permission in common.
#[derive(Debug)]
pub struct Group {
    /// What it is called.
    pub name: &'static str,
    /// What one may do with it.
    pub about: &'static str,
    permissions: &'static str,
}

/// The groups. Only owners have what is in none of them.
pub const GROUPS: &[Group] = &[
    Group {
        name: "global_read",
        about: "Read what the account has, but personal data, the audit trail, keys, users of applications and webhooks",
        permissions: "access:read,list accounts:read,list operators:read,list roles:read,list \
            projects:read,list applications:read,list products:read,list thngs:read,list properties:read,list \
            locations:read,list places:read,list collections:read,list actions:read,list actionTypes:read,list \
            redirections:read,list rules:read,list files:read,list assessmentSettings:read,list cases:read,list \
            commissioning:read,list batches:read,list jobs:read,list printOrders:read,list events:read,list reactions:read,list \
            statistics:read,list status:read,list",
    },
    Group {
        name: "personal_data_read",
        about: "See the address, the user agent and the city of whoever scanned",
        permissions: "personalData:read,list",
    },
    Group { name: "exports_read", about: "Export actions", permissions: "exports:read,list" },
    Group { name: "audit_read", about: "Read the audit trail", permissions: "audit:read,list" },
    Group {
        name: "catalog_write",
        about: "Write products, Thngs, places, collections, files and batches",
        permissions: "products:create,update,delete thngs:create,update,delete properties:create,update,delete \
            locations:create,update,delete places:create,update,delete collections:create,update,delete \
            files:create,update,delete batches:create,update,delete",
    },
    Group {
        name: "redirections_write",
        about: "Write redirections and the rules of redirection",
        permissions: "redirections:create,update,delete rules:create,update,delete",
    },
    Group {
        name: "actions_write",
        about: "Write actions and their types",
        permissions: "actions:create,delete actionTypes:create,update,delete",
    },
    Group {
        name: "inspections_write",
        about: "Create inspectors' scans, assess items and decide cases",
        permissions: "inspectorScans:create assessments:create cases:update",
    },
    Group {
        name: "commissioning_write",
        about: "Encode and commission items",
        permissions: "encodings:create commissioning:create",
    },
    Group {
        name: "jobs_write",
        about: "Start and end jobs, and remove those that have ended",
        permissions: "jobs:create,update,delete",
    },
    Group {
        name: "print_write",
        about: "Order printed codes, stop such orders, and remove those that have ended",
        permissions: "printOrders:create,update,delete",
    },
    Group {
        name: "webhooks_write",
        about: "Manage webhooks and reactions, which see all that happens, with exact places",
        permissions: "webhooks:create,read,list,update,delete reactions:create,update,delete",
    },
    Group {
        name: "projects_write",
        about: "Manage projects and applications",
        permissions: "projects:create,update,delete applications:create,update,delete",
    },
    Group {
        name: "users_write",
        about: "Read and change users of applications",
        permissions: "users:read,list,update,delete",
    },
    Group {
        name: "keys_write",
        about: "Manage secret keys of applications, keys of Things, and keys of other operators",
        permissions: "keys:create,read,list,update,delete operatorKeys:create,read,list,update,delete",
    },
    Group {
        name: "operators_write",
        about: "Invite operators, give them roles and remove them",
        permissions: "operators:create,update,delete",
    },
    Group { name: "roles_write", about: "Manage roles", permissions: "roles:create,update,delete" },
    Group {
        name: "settings_write",
        about: "Change the settings of the account and of assessments",
        permissions: "accounts:update assessmentSettings:update",
    },
];

/// A role that every account has.
#[derive(Debug)]
pub struct BuiltIn {
    /// Its id and name.
    pub name: &'static str,
    /// Its name among access policies.
    pub policy: &'static str,
    /// Whom it is for.
    pub about: &'static str,
    /// Names of groups, and permissions.
    made_of: &'static [&'static str],
}

/// Who may do everything.
pub const OWNER: &str = "owner";

/// Who may do everything but make, change or remove owners.
pub const ADMIN: &str = "admin";

/// The roles of every account (`deploy/guide/roles.md`); an owner and an admin are made of all groups.
pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { name: OWNER, policy: "evt:accountOwner", about: "Everything, other owners too", made_of: &[] },
    BuiltIn { name: ADMIN, policy: "evt:accountAdmin", about: "Everything but owners", made_of: &[] },
    BuiltIn {
        name: "editor",
        policy: "evt:editor",
        about: "Products to redirections, actions, jobs, webhooks and reactions",
        made_of: &[
            "global_read",
            "personal_data_read",
            "exports_read",
            "catalog_write",
            "redirections_write",
            "actions_write",
            "inspections_write",
            "commissioning_write",
            "jobs_write",
            "print_write",
            "webhooks_write",
        ],
    },
    BuiltIn {
        name: "commissioner",
        policy: "evt:commissioner",
        about: "Reads, encodes, commissions and prints",
        made_of: &["global_read", "commissioning_write", "print_write"],
    },
    BuiltIn {
        name: "printer",
        policy: "evt:printer",
        about: "Reads redirections, fetches their codes and orders them as files",
        made_of: &["redirections:read,list", "printOrders:create,read,list"],
    },
    BuiltIn {
        name: "inspector",
        policy: "evt:inspector",
        about: "Reads, scans as an inspector, assesses items and decides cases",
        made_of: &["global_read", "personal_data_read", "inspections_write"],
    },
    BuiltIn {
        name: "analyst",
        policy: "evt:analyst",
        about: "Reads and exports, without personal data",
        made_of: &["global_read", "exports_read"],
    },
    BuiltIn {
        name: "viewer",
        policy: "evt:viewer",
        about: "Reads, without personal data",
        made_of: &["global_read"],
    },
    BuiltIn {
        name: "auditor",
        policy: "evt:auditor",
        about: "Reads, and the audit trail, without personal data",
        made_of: &["global_read", "audit_read"],
    },
];

impl Group {
    /// Its permissions, as far as operators have such.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        read(self.permissions)
    }
}

/// What each role of [`BUILT_IN`] allows, in its order.
static ALLOWED: LazyLock<Vec<Permissions>> = LazyLock::new(|| BUILT_IN.iter().map(BuiltIn::read).collect());

/// What the role of every account with this id allows; `None` if there is no such role.
#[must_use]
pub fn permissions_of(id: &str) -> Option<Permissions> {
    let at = BUILT_IN.iter().position(|role| role.name == id)?;
    ALLOWED.get(at).copied()
}

impl BuiltIn {
    fn read(&self) -> Permissions {
        match self.name {
            OWNER => of_owner(),
            ADMIN => GROUPS.iter().fold(Permissions::default(), |all, group| all.with(group.permissions())),
            _ => self.made_of.iter().fold(Permissions::default(), |all, part| {
                all.with(find_group(part).map_or_else(|| read(part), Group::permissions))
            }),
        }
    }
}

/// The group of a name.
#[must_use]
pub fn find_group(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name == name)
}

/// Everything that an operator may do at all.
#[must_use]
pub fn of_owner() -> Permissions {
    Permissions::of(|verb, subject| reach(ActorKind::Operator, UserRights::Own, verb, subject).is_some())
}

/// Permissions of the tables above, as far as operators have such; the tests read each.
fn read(text: &str) -> Permissions {
    let read = Permissions::parse(text).unwrap_or_default();
    read.without(Permissions::ALL.without(of_owner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_each_permission_once_and_all_but_that_of_owners() {
        let mut all = Permissions::default();
        for group in GROUPS {
            let parsed = Permissions::parse(group.permissions).unwrap();
            assert!(of_owner().cover(&parsed), "{}: {}", group.name, parsed.without(of_owner()));
            assert_eq!(all.without(parsed), all, "{} repeats another", group.name);
            all = all.with(parsed);
        }
        assert_eq!(of_owner().without(all).to_string(), "owners:update");
    }

    #[test]
    fn built_in_roles_are_what_they_are_called() {
        for (name, expected, not) in [
            ("owner", "owners:update audit:list", ""),
            (
                "admin",
                "accounts:update operators:create keys:read audit:read personalData:read",
                "owners:update",
            ),
            (
                "editor",
                "products:create redirections:delete jobs:create webhooks:read personalData:read exports:read",
                "accounts:update keys:read operators:update roles:create projects:create audit:read users:read",
            ),
            (
                "commissioner",
                "products:read encodings:create commissioning:create redirections:read",
                "actions:create thngs:update redirections:update personalData:read",
            ),
            (
                "printer",
                "redirections:read printOrders:create,read,list",
                "products:read actions:read thngs:read,create redirections:create printOrders:update,delete accounts:read",
            ),
            (
                "inspector",
                "thngs:read inspectorScans:create assessments:create cases:update personalData:read",
                "actions:create thngs:update exports:read",
            ),
            (
                "analyst",
                "actions:read exports:read",
                "personalData:read actions:create audit:read users:list",
            ),
            ("viewer", "actions:list", "personalData:read exports:read webhooks:read keys:read users:read"),
            ("auditor", "audit:read audit:list actions:read", "personalData:read exports:read"),
        ] {
            let role = BUILT_IN.iter().find(|role| role.name == name).unwrap();
            let has = permissions_of(name).unwrap();
            for part in role.made_of {
                assert!(find_group(part).is_some() || Permissions::parse(part).is_ok(), "{name}: {part}");
            }
            assert!(has.cover(&Permissions::parse(expected).unwrap()), "{name}: {has}");
            let more = Permissions::parse(not).unwrap();
            assert_eq!(has.without(more), has, "{name}: {has}");
        }
        assert_eq!(BUILT_IN.len(), 9);
    }
}
