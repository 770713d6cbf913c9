//! Application identifiers in a query: their values, and whether they go with each other and with the path.

use crate::{
    ai::Ai,
    error::{DigitalLinkError, Needs},
    identifiers::Row,
    link::{DigitalLink, Qualifier},
    value::{self, Kinds},
};

/// Most AIs of a link, as in GS1's engine.
const MAX_AIS: usize = 64;

/// Most characters of an unknown name in an error.
const SHOWN_NAME: usize = 20;

/// AIs whose serial is optional, but not beside a signature.
const WITH_OPTIONAL_SERIAL: [Ai; 3] = [Ai::new(253, 3), Ai::new(255, 3), Ai::new(8003, 4)];

/// Checks the query of a link whose path is right.
pub(crate) fn check(query: &str, link: &DigitalLink<'_>) -> Result<(), DigitalLinkError> {
    if !Kinds::of(query.as_bytes()).are_query() {
        let offset = query.bytes().position(|byte| !Kinds::of_byte(byte).are_query()).unwrap_or_default();
        return Err(DigitalLinkError::QueryCharacter { offset });
    }
    let mut present: Option<Present> = None;
    for (name, raw) in query.split('&').filter_map(|parameter| parameter.split_once('=')) {
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let present = match &mut present {
            Some(present) => present,
            None => present.insert(Present::of_path(link)?),
        };
        attribute(name, raw, link, present)?;
    }
    present.map_or(Ok(()), |present| present.check())
}

/// Checks one parameter whose name is digits.
fn attribute(
    name: &str,
    raw: &str,
    link: &DigitalLink<'_>,
    present: &mut Present,
) -> Result<(), DigitalLinkError> {
    let known = Ai::parse(name).and_then(|ai| Row::find(ai).map(|row| (ai, row)));
    let Some((ai, row)) = known else {
        let name = name.chars().take(SHOWN_NAME).collect();
        return Err(DigitalLinkError::UnknownIdentifier { name });
    };
    if present.contains(ai) {
        return Err(DigitalLinkError::Repeated { ai });
    }
    // A lot may go with a third party's extension in the path: there it has no place in it.
    let qualifies = Qualifier::of(name).is_some();
    if qualifies && !(row.attribute && link.get(Qualifier::ThirdParty).is_some()) {
        return Err(DigitalLinkError::BelongsInPath { ai });
    }
    if !row.attribute {
        return Err(DigitalLinkError::NotAnAttribute { ai });
    }
    let value = value::decode_query(raw);
    if value.is_empty() {
        return Err(DigitalLinkError::Empty { ai });
    }
    row.check(ai, &value)?;
    if WITH_OPTIONAL_SERIAL.contains(&ai) && value.len() == row.lengths().0 {
        present.without_serial = Some(ai);
    }
    present.push(ai)
}

/// The AIs of a link.
struct Present {
    ais: [Ai; MAX_AIS],
    count: usize,
    /// One of `WITH_OPTIONAL_SERIAL` that has none.
    without_serial: Option<Ai>,
}

impl Present {
    fn of_path(link: &DigitalLink<'_>) -> Result<Self, DigitalLinkError> {
        let mut present = Self { ais: [Ai::GTIN; MAX_AIS], count: 1, without_serial: None };
        for (qualifier, _) in link.qualifiers() {
            present.push(qualifier.ai())?;
        }
        Ok(present)
    }

    fn push(&mut self, ai: Ai) -> Result<(), DigitalLinkError> {
        *self.ais.get_mut(self.count).ok_or(DigitalLinkError::TooMany)? = ai;
        self.count += 1;
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = Ai> {
        self.ais.iter().copied().take(self.count)
    }

    fn contains(&self, ai: Ai) -> bool {
        self.all().any(|other| other == ai)
    }

    /// Whether all are there that each of them needs, and none that it excludes.
    fn check(&self) -> Result<(), DigitalLinkError> {
        for ai in self.all() {
            let Some(row) = Row::find(ai) else { continue };
            let others = || self.all().filter(|other| *other != ai);
            if let Some(other) = others().find(|other| row.excludes.iter().any(|span| span.contains(*other)))
            {
                return Err(DigitalLinkError::Excluded { ai, other });
            }
            for groups in row.requires {
                let is_met = groups
                    .iter()
                    .any(|group| group.iter().all(|span| others().any(|other| span.contains(other))));
                if !is_met {
                    return Err(DigitalLinkError::Missing { ai, needs: Needs(groups) });
                }
            }
        }
        match self.without_serial.filter(|_| self.contains(Ai::SIGNATURE)) {
            Some(ai) => Err(DigitalLinkError::UnsignedKey { ai }),
            None => Ok(()),
        }
    }
}
