//! Loads the facts for an assessment from the store.

use countries::CountryCode;
use digital_links::service::find_thng;
use serde_json::{Map, Value};
use shared::{
    gtin,
    id::{AccountId, ThngId},
    identifier::Identifier,
    personal_data::PersonalData,
    time::UnixMillis,
};

use super::{Subject, settings::effective};
use crate::{
    domain::{
        access::Actor,
        action::Action,
        action_names::TriggerType,
        assessment::{
            Facts,
            decided::Decided,
            document::Context,
            locate, markets,
            peak::Peak,
            profile::Profile,
            rules::{Evidence, Item, Known},
            settings::{Settings, countries},
            source::network_of,
            spot::{Precision, Spot},
            spread::Trigger,
            trigger::{LocationSource, Named, Request},
        },
        common::Common,
        context::{self, Origin},
        grant::Grant,
        limits::shorten,
        resource::{Product, Thng},
        scan_source::Source,
    },
    error::ServiceError,
    service::{
        AssessmentState,
        assessment::{
            displays, history,
            observe::{self, ScanSources},
        },
        named,
    },
    store::{
        Conn, accounts, commissions, documents,
        identifiers::{self, Match},
        item_standings, redirections,
    },
};

/// Facts that are owned.
#[derive(Debug, Clone)]
pub(super) struct Gathered {
    pub(super) thng: Option<Subject>,
    pub(super) item: Item,
    pub(super) trigger: Trigger,
    pub(super) countries: Vec<CountryCode>,
    pub(super) evidence: Evidence,
    pub(super) profile: Profile,
    pub(super) settings: Settings,
    pub(super) context: Context,
    pub(super) markets: Vec<CountryCode>,
    pub(super) source: Source,
    pub(super) peak: Option<Peak>,
    pub(super) decided: Decided,
    /// Members of the stored scan that the context was read of.
    pub(super) scan: Option<Map<String, Value>>,
}

impl Gathered {
    pub(super) fn facts(&self, kind: TriggerType) -> Facts<'_> {
        Facts {
            item: &self.item,
            kind,
            trigger: &self.trigger,
            countries: &self.countries,
            evidence: &self.evidence,
            profile: &self.profile,
            settings: &self.settings,
            source: self.source,
            peak: self.peak,
            decided: &self.decided,
        }
    }
}

/// Reads everything that a request is judged by.
#[expect(clippy::too_many_arguments, reason = "each is read by another part of the rules")]
pub(super) async fn gather(
    state: &AssessmentState,
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    request: &Request,
    // The stored scan is authoritative for its location; a caller could claim anything.
    stored: Option<Action>,
    origin: Origin<'_>,
    kept: PersonalData,
    now: UnixMillis,
) -> Result<Gathered, ServiceError> {
    let stored = stored.filter(|action| action.kind == request.kind.as_str());
    let found = find(conn, actor, grant, request, stored.as_ref()).await?;
    let stored = stored.filter(|action| match &found {
        Ok(thng) => action.thng == Some(thng.id),
        Err(_) => true,
    });
    let place = match &stored {
        Some(action) => observe::place_of(&action.members),
        None if by_public(actor) => of_origin(state, origin),
        None => (Context::default(), Spot::NOWHERE),
    };
    let (context, by_address) = place;
    // Claims of a public key that differ from the stored scan are ignored by the rules.
    let by_actor = Source::of_actor(actor.kind);
    let source = stored.as_ref().map_or(by_actor, |action| Source::of_members(&action.members));
    let is_believed = by_actor != Source::Public && source != Source::Public;
    let sensor = request.at.filter(|_| is_believed && request.source == LocationSource::Sensor);
    let devices = state.devices.of(actor.account);
    let claimed = request.timestamp.filter(|_| is_believed);
    let (at, agent, by_address) = match (source, &stored) {
        (Source::Public, Some(action)) => {
            let (agent, spot) = observe::network_of_scan(&action.members);
            (action.created_at, agent, spot)
        }
        (Source::Public, None) => {
            let spot = Spot { point: None, region: None, ..by_address };
            let precision = spot.precision.min(Precision::GeoIpCountry);
            (now, origin.ip.map(network_of), Spot { precision, ..spot })
        }
        (Source::Edge | Source::Server, stored) => {
            let at = claimed.or_else(|| stored.as_ref().map(|action| action.timestamp)).unwrap_or(now);
            // As the profile and a replay take it.
            let agent = stored.as_ref().and_then(|action| observe::agent_of(&action.members, devices));
            (at, agent, by_address)
        }
    };
    let (mut spot, countries) = locate(sensor, by_address);
    if kept == PersonalData::None {
        // The country is known by now; distances from the point would tell it.
        spot.point = None;
    }
    let (network, language) =
        stored.as_ref().map(|action| observe::client_of(&action.members)).unwrap_or_default();
    let trigger = Trigger {
        at,
        agent,
        network,
        language,
        spot,
        is_counted: stored.is_some() && request.kind == TriggerType::ImplicitScans,
    };
    let gathered = Gathered {
        thng: None,
        item: Item::NotGiven,
        trigger,
        countries,
        evidence: evidence(&request.custom),
        profile: Profile::default(),
        settings: Settings::default(),
        context,
        markets: Vec::new(),
        source,
        peak: None,
        decided: Decided::default(),
        scan: stored.map(|action| action.members),
    };
    match found {
        Err(item) => {
            let settings = effective(conn, actor.account, &[], None).await?;
            Ok(Gathered { item, settings, ..gathered })
        }
        Ok(thng) => of_thng(state.sources(), conn, actor.account, &thng, gathered).await,
    }
}

/// The facts with everything that depends on the Thng.
pub(super) async fn of_thng(
    sources: ScanSources<'_>,
    conn: &mut Conn,
    account: AccountId,
    thng: &Thng,
    gathered: Gathered,
) -> Result<Gathered, ServiceError> {
    let commission = commissions::find(conn, account, thng.id).await?;
    let product = thng.product.or(commission.as_ref().map(|commission| commission.product));
    let described: Option<Product> = match product {
        Some(id) => documents::find(conn, account, id).await?,
        None => None,
    };
    let projects =
        thng.details.common.scopes.as_ref().map(|scopes| scopes.projects.clone()).unwrap_or_default();
    let settings = effective(conn, account, &projects, product).await?;
    let (own, of_product) = (&thng.details.common, described.as_ref().map(|product| &product.details.common));
    let permitted = |common: &Common| field(common, "permittedCountries").and_then(countries);
    let order = commission.as_ref().and_then(|commission| commission.purchase_order.clone());
    let markets = markets(permitted(own), order.as_deref(), of_product.and_then(permitted), &settings);
    let text = |common: &Common, name: &str| field(common, name).and_then(Value::as_str).map(str::to_owned);
    let expected = |common: &Common| texts(field(common, "expectedMarkings"));
    let profile = history::load(sources, conn, account, thng.id).await?;
    let known = Known {
        displays: displays::nearby(conn, account, thng.id, &profile).await?,
        tags: own.tags.clone().unwrap_or_default(),
        factory: text(own, "factory"),
        watermark: text(own, "expectedWatermark")
            .or_else(|| of_product.and_then(|common| text(common, "expectedWatermark"))),
        markings: Some(expected(own))
            .filter(|markings| !markings.is_empty())
            .or_else(|| of_product.map(expected))
            .unwrap_or_default(),
        markets: markets.clone(),
        commission,
    };
    let kept = item_standings::load(conn, account, thng.id).await?;
    Ok(Gathered {
        thng: Some(Subject { id: thng.id, product: thng.product, projects }),
        item: known.into(),
        profile,
        decided: kept.decided(),
        peak: kept.peak,
        settings,
        markets,
        ..gathered
    })
}

/// Whether a customer's own device asks: behind other keys stands a server.
fn by_public(actor: &Actor) -> bool {
    Source::of_actor(actor.kind) == Source::Public
}

fn field<'a>(common: &'a Common, name: &str) -> Option<&'a Value> {
    common.custom_fields.as_ref()?.get(name)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn evidence(custom: &Map<String, Value>) -> Evidence {
    let text = |name: &str| custom.get(name).and_then(Value::as_str);
    Evidence {
        inspected: text("inspectedProductMatch").map(|word| word == "yes"),
        watermark: text("watermark").map(str::to_owned),
        markings: texts(custom.get("markings")),
    }
}

fn of_origin(state: &AssessmentState, origin: Origin<'_>) -> (Context, Spot) {
    let locality = origin.ip.map(|ip| state.actions.geo_ip.find(ip)).unwrap_or_default();
    let agent = context::read_agent(&state.actions.agents, origin.user_agent);
    let mut members = Map::new();
    members.insert("context".to_owned(), Value::Object(context::context(origin, agent, &locality)));
    if let Some(location) = context::location(&locality) {
        members.insert("locationSource".to_owned(), "geoIp".into());
        members.insert("location".to_owned(), Value::Object(location));
    }
    observe::place_of(&members)
}

/// The Thng that a request names, or what is known instead.
async fn find(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    request: &Request,
    stored: Option<&Action>,
) -> Result<Result<Thng, Item>, ServiceError> {
    let (id, shown) = match &request.named {
        Named::Malformed(text) => return Ok(Err(Item::Malformed(shorten(text).to_owned()))),
        Named::Id(id) => (Some(*id), id.to_string()),
        Named::Value(value) => match by_value(conn, actor, value).await? {
            Ok(id) => (id, shorten(value).to_owned()),
            Err(item) => return Ok(Err(item)),
        },
        Named::Nothing => match stored.and_then(|action| action.thng) {
            Some(id) => (Some(id), id.to_string()),
            None => return Ok(Err(Item::NotGiven)),
        },
    };
    let found: Option<Thng> = match id {
        Some(id) => documents::find(conn, actor.account, id).await?,
        None => None,
    };
    Ok(found.filter(|thng| named::is_seen(thng, grant)).ok_or(Item::Absent(shown)))
}

/// The Thng of a scanned value: a short URL, a Digital Link, `<key>:<value>` or an id.
async fn by_value(
    conn: &mut Conn,
    actor: &Actor,
    value: &str,
) -> Result<Result<Option<ThngId>, Item>, ServiceError> {
    if let Ok(id) = value.parse() {
        return Ok(Ok(Some(id)));
    }
    if let Some((host, path)) = short_url(value) {
        let domains = accounts::list_all_domains(conn).await?;
        let own = domains.iter().find(|domain| {
            domain.host.as_str().eq_ignore_ascii_case(host) && domain.account == Some(actor.account)
        });
        let Some(domain) = own else { return Ok(Ok(None)) };
        if domain.digital_links
            && let Some(thng) = find_thng(conn, actor.account, &format!("/{path}")).await?
        {
            return Ok(Ok(Some(thng)));
        }
        let first = || path.split('/').next().and_then(|segment| segment.parse().ok());
        let Some(short_id) = domain.short_id_in(path).or_else(first) else { return Ok(Ok(None)) };
        let folded = domain.fold(&short_id);
        let found = redirections::find(conn, domain.host.as_str(), &folded, actor.account).await?;
        return Ok(Ok(found.and_then(|item| item.redirect.thng_id)));
    }
    let Ok(identifier) = value.parse::<Identifier>() else {
        return Ok(Err(Item::Malformed(shorten(value).to_owned())));
    };
    if identifier.key == "gs1:01" && !gtin::is_valid(&identifier.value) || value.contains('\0') {
        return Ok(Err(Item::Malformed(shorten(value).to_owned())));
    }
    match identifiers::find(conn, actor.account, "thng", &identifier).await? {
        Match::One(id) => Ok(Ok(id.parse().ok())),
        // An ambiguous identifier identifies no Thng.
        Match::None | Match::Many(_) => Ok(Ok(None)),
    }
}

/// Host and path of a text that looks like a short URL.
fn short_url(value: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = value.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let (host, path) = rest.split_once('/')?;
    Some((host, path.split(['?', '#']).next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_urls_have_a_host_and_a_path() {
        for (text, expected) in [
            ("HTTPS://TN.GG/ABC", Some(("TN.GG", "ABC"))),
            ("http://tn.gg:8080/abc?x=1", Some(("tn.gg:8080", "abc"))),
            ("https://tn.gg/shop/go/ABC#x", Some(("tn.gg", "shop/go/ABC"))),
            ("https://tn.gg/", Some(("tn.gg", ""))),
            ("https://tn.gg", None),
            ("ftp://tn.gg/a", None),
            ("gs1:21:A", None),
        ] {
            assert_eq!(short_url(text), expected, "{text}");
        }
    }
}
