//! From the entries of an input to the Thngs that they name, many at once.

use std::collections::{HashMap, HashSet};

use shared::{
    id::{AccountId, ThngId},
    identifier::Identifier,
    redirect::ResourceType,
    short_url::ShortDomain,
};

use crate::{
    domain::{
        job_input::{ContentType, JobRequest, Name},
        job_lines::Entry,
    },
    error::ServiceError,
    store::{
        Conn, accounts, identifiers, parse, redirections,
        thngs::{self, Target},
    },
};

/// The Thng of each entry, or why it names none; in the order of the entries.
pub(super) async fn resolve(
    conn: &mut Conn,
    account: AccountId,
    request: &JobRequest,
    entries: &[Entry],
) -> Result<Vec<Result<Target, String>>, ServiceError> {
    let input = &request.input;
    let named: Vec<Result<Name, String>> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Id(text) => input.name(text),
            Entry::Bad { fault, .. } => Err(fault.clone()),
        })
        .collect();
    let ids = match input.content_type {
        ContentType::PlatformIds | ContentType::EvrythngIds => of_ids(named),
        ContentType::ExternalIds => of_identifiers(conn, account, named).await?,
        ContentType::ShortIds => of_short_ids(conn, account, request, named).await?,
    };
    let wanted: HashSet<String> = ids.iter().flatten().map(ToString::to_string).collect();
    let wanted: Vec<String> = wanted.into_iter().collect();
    let found: HashMap<ThngId, Target> = thngs::list_targets(conn, account, &wanted)
        .await?
        .into_iter()
        .map(|target| (target.thng, target))
        .collect();
    let target = |id: Result<ThngId, String>| {
        id.and_then(|id| found.get(&id).cloned().ok_or_else(|| format!("The thng {id} was not found.")))
    };
    Ok(ids.into_iter().map(target).collect())
}

type Ids = Vec<Result<ThngId, String>>;

fn of_ids(named: Vec<Result<Name, String>>) -> Ids {
    named
        .into_iter()
        .map(|name| {
            name.and_then(|name| match name {
                Name::Thng(id) => Ok(id),
                Name::Identifier(_) | Name::Short(_) => Err(other_kind()),
            })
        })
        .collect()
}

async fn of_identifiers(
    conn: &mut Conn,
    account: AccountId,
    named: Vec<Result<Name, String>>,
) -> Result<Ids, ServiceError> {
    let wanted: HashSet<&Identifier> = named
        .iter()
        .flatten()
        .filter_map(|name| if let Name::Identifier(identifier) = name { Some(identifier) } else { None })
        .collect();
    let wanted: Vec<&Identifier> = wanted.into_iter().collect();
    let mut found: HashMap<Identifier, Vec<String>> = HashMap::new();
    for (identifier, id) in identifiers::find_many(conn, account, "thng", &wanted).await? {
        found.entry(identifier).or_default().push(id);
    }
    let mut ids = Vec::with_capacity(named.len());
    for name in named {
        ids.push(match name {
            Err(fault) => Err(fault),
            Ok(Name::Identifier(identifier)) => match found.get(&identifier).map(Vec::as_slice) {
                Some([id]) => Ok(parse("resource_id", id)?),
                Some(many) => Err(format!("The identifier {identifier} belongs to {} thngs.", many.len())),
                None => Err(format!("No thng has the identifier {identifier}.")),
            },
            Ok(Name::Thng(_) | Name::Short(_)) => Err(other_kind()),
        });
    }
    Ok(ids)
}

async fn of_short_ids(
    conn: &mut Conn,
    account: AccountId,
    request: &JobRequest,
    named: Vec<Result<Name, String>>,
) -> Result<Ids, ServiceError> {
    let domains = accounts::list_domains(conn, account).await?;
    let host = request.input.short_domain.as_ref().or(request.default_domain.as_ref());
    let domain: Option<ShortDomain> =
        domains.into_iter().find(|domain| host.is_none_or(|host| domain.host.as_str() == host));
    // It was there when the job was accepted.
    let Some(domain) = domain else {
        let gone = || Err("The short domain is not one of this account any more.".to_owned());
        return Ok(named.into_iter().map(|name| name.and_then(|_| gone())).collect());
    };
    let folded: Vec<Result<String, String>> = named
        .into_iter()
        .map(|name| match name? {
            Name::Short(short_id) => Ok(domain.fold(&short_id).to_string()),
            Name::Thng(_) | Name::Identifier(_) => Err(other_kind()),
        })
        .collect();
    let wanted: HashSet<String> = folded.iter().flatten().cloned().collect();
    let wanted: Vec<String> = wanted.into_iter().collect();
    let owners = redirections::list_owners(conn, domain.host.as_str(), account, &wanted).await?;
    let owners: HashMap<String, (ResourceType, String)> =
        owners.into_iter().map(|(folded, kind, id)| (folded, (kind, id))).collect();
    let mut ids = Vec::with_capacity(folded.len());
    for folded in folded {
        ids.push(match folded {
            Err(fault) => Err(fault),
            Ok(folded) => match owners.get(&folded) {
                Some((ResourceType::Thng, id)) => Ok(parse("platform_id", id)?),
                Some((_, id)) => Err(format!("The short id {folded} belongs to {id}, which is not a thng.")),
                None => Err(format!("The short id {folded} was not found on {}.", domain.host)),
            },
        });
    }
    Ok(ids)
}

/// Unreachable: all entries have the kind of the input.
fn other_kind() -> String {
    "The id is of another kind.".to_owned()
}
