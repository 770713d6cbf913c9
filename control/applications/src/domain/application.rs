//! Applications of projects.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use shared::{
    id::{ApplicationId, ProjectId},
    target::Target,
    time::UnixMillis,
};
use url::{Host, Url};

use super::{
    access::ActorKind,
    action_names::{BUILT_IN, RESERVED},
    action_names::{TriggerType, is_custom},
    body::{Purpose, common, name, text, texts},
    common::{Common, Stamp},
    limits::{self, MAX_TAG, MAX_URL},
    members::Members,
    named::named,
};

/// Longest host of a redirection, in characters: a name of the DNS with a port.
pub const MAX_HOST: usize = 253 + 6;

/// The members of an application beside its name; stored as one document.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// Settings of social networks; stored and returned, not used.
    pub social_networks: Option<Map<String, Value>>,
    /// Address of the application.
    pub default_url: Option<String>,
    /// A template of URLs to it; stored and returned, not used.
    pub redirection_template: Option<String>,
    /// Whether its users may create Thngs and collections, in an account whose users have `own` rights.
    pub users_may_create: Option<bool>,
    /// The hosts that redirections of its users may lead to; without any they cannot create redirections.
    pub redirect_hosts: Option<Vec<String>>,
    /// The types of actions that its users may create, in place of the default.
    pub user_action_types: Option<Vec<String>>,
    /// The types of triggers that it may submit for assessment, in place of the default.
    pub trigger_types: Option<Vec<String>>,
    /// Whether its secret key may say in `context` of an action whose address and user agent it passes on.
    pub reports_context: Option<bool>,
    /// Id of the role that its users have; empty restricts them no further.
    pub user_role: Option<String>,
    /// The page to which mails link, with the code in the fragment; empty is none.
    pub user_page: Option<String>,
}

/// The keys of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppKey {
    /// For pages and apps.
    Public,
    /// For servers.
    Secret,
}

impl AppKey {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Public, Self::Secret];

    /// Whom the key identifies.
    #[must_use]
    pub const fn kind(self) -> ActorKind {
        match self {
            Self::Public => ActorKind::App,
            Self::Secret => ActorKind::TrustedApp,
        }
    }
}

/// Which of its keys an application has; each number grows with a rotation, and 0 is the key of before there were
/// prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generations {
    /// Of the public key.
    pub public: u32,
    /// Of the secret key.
    pub secret: u32,
}

impl Generations {
    /// Those of a new application.
    pub const FIRST: Self = Self { public: 1, secret: 1 };

    /// That of one key.
    #[must_use]
    pub const fn of(self, key: AppKey) -> u32 {
        match key {
            AppKey::Public => self.public,
            AppKey::Secret => self.secret,
        }
    }

    /// After a rotation of one key.
    #[must_use]
    pub const fn next(self, key: AppKey) -> Self {
        match key {
            AppKey::Public => Self { public: self.public.saturating_add(1), ..self },
            AppKey::Secret => Self { secret: self.secret.saturating_add(1), ..self },
        }
    }
}

/// An application of a project: what has a public and a secret key.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// Its id.
    pub id: ApplicationId,
    /// Its project.
    pub project: ProjectId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Which of its keys it has.
    pub generations: Generations,
    /// Everything else.
    pub details: ApplicationDetails,
}

/// The members of a create or update of an application; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApplicationChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: ApplicationDetails,
}

impl ApplicationChange {
    /// Reads the body of a create or update of an application.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let details = ApplicationDetails {
            common: common(&mut members),
            social_networks: social_networks(&mut members),
            default_url: text(&mut members, "defaultUrl", 0, MAX_URL),
            redirection_template: text(&mut members, "redirectionTemplate", 0, MAX_URL),
            users_may_create: members.boolean("usersMayCreate"),
            redirect_hosts: redirect_hosts(&mut members),
            user_action_types: checked_texts(&mut members, "userActionTypes", MAX_TAG, |name| {
                let is_known = BUILT_IN.contains(&name) && !RESERVED.contains(&name);
                if is_known || is_custom(name) { Ok(()) } else { Err("no type that users may create") }
            }),
            trigger_types: checked_texts(&mut members, "triggerTypes", MAX_TAG, |name| {
                let is_known = TriggerType::ALL.iter().any(|known| known.as_str() == name);
                if is_known { Ok(()) } else { Err("no type of a trigger") }
            }),
            reports_context: members.boolean("reportsContext"),
            user_role: text(&mut members, "userRole", 0, MAX_TAG),
            user_page: user_page(&mut members),
        };
        members.finish(Some(Self { name, details }))
    }
}

/// Codes travel to the page: it is reached by https, or on this machine.
fn user_page(members: &mut Members<'_>) -> Option<String> {
    let page = text(members, "userPage", 0, MAX_URL)?;
    let is_safe = |url: &Url| match (url.scheme(), url.host()) {
        ("https", Some(_)) => true,
        ("http", Some(Host::Domain(name))) => name == "localhost",
        ("http", Some(Host::Ipv4(ip))) => ip.is_loopback(),
        ("http", Some(Host::Ipv6(ip))) => ip.is_loopback(),
        (_, _) => false,
    };
    let is_page = |url: &Url| {
        is_safe(url) && url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
    };
    if page.is_empty() || Url::parse(&page).is_ok_and(|url| is_page(&url)) {
        return Some(page);
    }
    let example = "https://shop.example/account";
    members.fault(format!("userPage must be an https URL without user and fragment, such as {example}."));
    None
}

fn social_networks(members: &mut Members<'_>) -> Option<Map<String, Value>> {
    let networks = members.typed("socialNetworks", "an object", Value::as_object)?;
    match limits::check_custom_fields(networks) {
        Ok(()) => Some(networks.clone()),
        Err(fault) => {
            members.fault(format!("socialNetworks {fault}."));
            None
        }
    }
}

/// Texts that are checked one by one; a fault names the member and the problem.
fn checked_texts(
    members: &mut Members<'_>,
    member: &str,
    max: usize,
    check: impl Fn(&str) -> Result<(), &'static str>,
) -> Option<Vec<String>> {
    let mut found = texts(members, member, max)?;
    for (index, text) in found.iter().enumerate() {
        if let Err(fault) = check(text) {
            members.fault(format!("{member}[{index}]: {:?} is {fault}.", limits::shorten(text)));
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Hosts as targets name them: in lower case, with a port where it is not the default one.
fn redirect_hosts(members: &mut Members<'_>) -> Option<Vec<String>> {
    let hosts = checked_texts(members, "redirectHosts", MAX_HOST, |host| match target_host(host) {
        Some(_) => Ok(()),
        None => Err("no host, such as shop.example or shop.example:8443"),
    })?;
    Some(hosts.iter().filter_map(|host| target_host(host)).collect())
}

fn target_host(host: &str) -> Option<String> {
    let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', '{', '*', '\\']);
    is_host.then(|| Target::parse(&format!("https://{host}/")).ok()?.host()).flatten()
}

impl Application {
    /// The application after a change at `now`.
    #[must_use]
    pub fn apply(self, change: ApplicationChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = ApplicationDetails {
            common: old.common.merge(new.common),
            social_networks: new.social_networks.or(old.social_networks),
            default_url: new.default_url.or(old.default_url),
            redirection_template: new.redirection_template.or(old.redirection_template),
            users_may_create: new.users_may_create.or(old.users_may_create),
            redirect_hosts: new.redirect_hosts.or(old.redirect_hosts),
            user_action_types: new.user_action_types.or(old.user_action_types),
            trigger_types: new.trigger_types.or(old.trigger_types),
            reports_context: new.reports_context.or(old.reports_context),
            user_role: new.user_role.or(old.user_role),
            user_page: new.user_page.or(old.user_page),
        };
        Self { stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details, ..self }
    }
}

named! {
    Application: ApplicationId, ApplicationDetails, "application", Applications;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_is_named() {
        for (body, faults) in [
            (json!({"name": "x", "socialNetworks": {}, "appApiKey": 7}), vec![]),
            (json!({"name": "x", "socialNetworks": {"facebook": {"appId": "1"}}}), vec![]),
            (json!({"name": "x", "socialNetworks": []}), vec!["socialNetworks must be an object"]),
            (json!({"name": "x", "socialNetworks": {"": 1}}), vec!["socialNetworks has a key"]),
            (json!({"defaultUrl": 1}), vec!["name is required", "defaultUrl"]),
            (
                json!({"name": "x", "usersMayCreate": true, "redirectHosts": ["Shop.example", "a.example:8443"],
                    "userActionTypes": ["scans", "_own"], "triggerTypes": ["scans", "inspectorScans"]}),
                vec![],
            ),
            (json!({"name": "x", "redirectHosts": [], "userActionTypes": []}), vec![]),
            (json!({"name": "x", "usersMayCreate": "yes"}), vec!["usersMayCreate must be true or false"]),
            (json!({"name": "x", "reportsContext": 1}), vec!["reportsContext must be true or false"]),
            (
                json!({"name": "x", "redirectHosts": ["https://a.example", "*.a.example", "", "u@a.example"]}),
                vec![
                    "redirectHosts[2] must not be empty",
                    "redirectHosts[0]: ",
                    "redirectHosts[1]: ",
                    "redirectHosts[2]: ",
                    "redirectHosts[3]: ",
                ],
            ),
            (
                json!({"name": "x", "userActionTypes": ["encodings", "none", "implicitScans"]}),
                vec!["userActionTypes[0]: ", "userActionTypes[1]: ", "userActionTypes[2]: "],
            ),
            (json!({"name": "x", "triggerTypes": ["checkins"]}), vec!["triggerTypes[0]: "]),
            (json!({"name": "x", "userPage": ""}), vec![]),
            (json!({"name": "x", "userPage": "https://shop.example/?a=b"}), vec![]),
            (json!({"name": "x", "userPage": "http://127.0.0.1:3000/"}), vec![]),
            (json!({"name": "x", "userPage": "http://shop.example/"}), vec!["userPage must be an https URL"]),
            (
                json!({"name": "x", "userPage": "https://shop.example/#a"}),
                vec!["userPage must be an https URL"],
            ),
            (
                json!({"name": "x", "userPage": "https://u@shop.example/"}),
                vec!["userPage must be an https URL"],
            ),
            (json!({"name": "x", "userPage": "javascript:alert(1)"}), vec!["userPage must be an https URL"]),
            (json!({"name": "x", "userPage": "shop.example"}), vec!["userPage must be an https URL"]),
        ] {
            assert_faults(&body, |body| ApplicationChange::parse(body, Purpose::Create), &faults);
        }
    }

    #[test]
    fn hosts_are_kept_as_targets_name_them() {
        let body = json!({"name": "x", "redirectHosts": ["Shop.Example", "a.example:443", "a.example:8443"]});
        let change = ApplicationChange::parse(&body, Purpose::Create).unwrap();
        let hosts = change.details.redirect_hosts.unwrap();
        assert_eq!(hosts, ["shop.example", "a.example", "a.example:8443"]);
    }
}
