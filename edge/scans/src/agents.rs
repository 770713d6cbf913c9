//! Parses user agents for rules, with a cache of recent ones.

use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use shared::user_agent::{Device, Names, read_names};

/// User agents remembered: each takes some 300 bytes; browsers of one country send a few hundred kinds.
const SLOTS: usize = 1_024;

/// A parser with a cache; a look-up takes no lock.
pub struct Agents {
    parser: woothee::parser::Parser,
    /// Each user agent has one slot, and pushes another out of it.
    slots: Box<[ArcSwapOption<Agent>]>,
}

/// What is known from a user agent.
#[derive(Debug, Default)]
pub struct Agent {
    sent: Box<[u8]>,
    /// Name of the browser or program.
    pub name: Option<Box<str>>,
    /// Name of the operating system.
    pub system: Option<Box<str>>,
    /// Kind of device.
    pub device: Option<Device>,
}

/// Remembers nothing yet.
impl Default for Agents {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| ArcSwapOption::empty()).collect();
        Self { parser: woothee::parser::Parser::new(), slots }
    }
}

impl Agents {
    /// Parses a user agent; `None` for bytes that are not text.
    pub fn read(&self, sent: &[u8]) -> Guard<Option<Arc<Agent>>> {
        // The remainder is below the number of slots.
        let slot = &self.slots[crc32c::crc32c(sent) as usize % SLOTS];
        let held = slot.load();
        if held.as_ref().is_some_and(|agent| *agent.sent == *sent) {
            return held;
        }
        let agent = Arc::new(self.parse(sent));
        slot.store(Some(agent.clone()));
        Guard::from_inner(Some(agent))
    }

    fn parse(&self, sent: &[u8]) -> Agent {
        let text = str::from_utf8(sent).unwrap_or_default();
        let Names { browser, system, device } = read_names(&self.parser, text);
        Agent { sent: sent.into(), name: browser.map(Into::into), system: system.map(Into::into), device }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_agents_equal_parsed_ones() {
        let agents = Agents::default();
        let firefox = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
            (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";
        let read = |sent: &str| {
            let agent = agents.read(sent.as_bytes());
            let agent = agent.as_ref().unwrap();
            (agent.name.clone().unwrap_or_default().to_string(), agent.system.is_some())
        };
        // More kinds than slots, so that some push others out.
        for round in 0..3 {
            for n in 0..2 * SLOTS {
                assert!(!read(&format!("unheard-of/{n}")).1, "{round}");
            }
            for _ in 0..2 {
                assert_eq!(read(firefox), ("Firefox".to_owned(), true));
                assert_eq!(read(phone), ("Safari".to_owned(), true));
                assert_eq!(read(""), (String::new(), false));
            }
        }
    }
}
