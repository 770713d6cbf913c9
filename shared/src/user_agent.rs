//! Reads user agents: names of browser and system, and whether it is a robot.

/// What is known from a user agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agent<'a> {
    /// Name of the browser or program.
    pub name: Option<&'a str>,
    /// Name of the operating system.
    pub system: Option<&'a str>,
    /// Whether it is a robot: recorded and flagged, never counted in `hits`.
    pub bot: bool,
}

/// Names of browser and system and the kind of device, as redirect rules test them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// The browser or program.
    pub browser: Option<&'a str>,
    /// The operating system.
    pub system: Option<&'a str>,
    /// The kind of device.
    pub device: Option<Device>,
}

crate::words! {
    /// A kind of device, as far as a user agent tells it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Device {
        /// A phone.
        Phone = "phone",
        /// A tablet. Some, such as an iPad by default, send the user agent of a desktop.
        Tablet = "tablet",
        /// A desktop or laptop.
        Desktop = "desktop",
        /// A program that says what it is: see [`Agent::bot`].
        Robot = "robot",
    }
}

/// Reads the names and the device from a user agent; nothing is known from an empty one.
#[must_use]
pub fn read_names<'a>(parser: &'a woothee::parser::Parser, user_agent: &'a str) -> Names<'a> {
    let known = |text: &'a str| Some(text).filter(|text| *text != "UNKNOWN");
    let by_word = has_word_of_robot(user_agent);
    let found = parser.parse(user_agent);
    let device = match &found {
        _ if by_word => Some(Device::Robot),
        None => None,
        Some(found) => device_of(found.category, found.os, user_agent),
    };
    let (browser, system) = found.map_or((None, None), |found| (known(found.name), known(found.os)));
    Names { browser, system, device }
}

fn device_of(category: &str, system: &str, user_agent: &str) -> Option<Device> {
    match category {
        "crawler" => Some(Device::Robot),
        "pc" => Some(Device::Desktop),
        "mobilephone" => Some(Device::Phone),
        "smartphone" if system == "iPad" => Some(Device::Tablet),
        // Browsers of Android write `Mobile` on phones alone; a television is neither.
        "smartphone" if system == "Android" && !user_agent.contains("Mobile") => {
            if user_agent.contains("TV") { None } else { Some(Device::Tablet) }
        }
        "smartphone" => Some(Device::Phone),
        _ => None,
    }
}

// Spec gap: what counts as a robot is not shown.
/// Reads a user agent; without one it is a program that hides, and counts as a robot.
#[must_use]
pub fn read_agent<'a>(parser: &'a woothee::parser::Parser, user_agent: Option<&'a str>) -> Agent<'a> {
    let Some(user_agent) = user_agent else { return Agent { bot: true, ..Agent::default() } };
    let by_word = has_word_of_robot(user_agent);
    match parser.parse(user_agent) {
        None => Agent { bot: by_word, ..Agent::default() },
        Some(found) => {
            let known = |text: &'a str| Some(text).filter(|text| *text != "UNKNOWN");
            Agent {
                name: known(found.name),
                system: known(found.os),
                bot: by_word || found.category == "crawler",
            }
        }
    }
}

/// Words in the user agents of robots, previews and health checks that the parser does not know.
const BOT_WORDS: &[&str] = &[
    "bot",
    "crawl",
    "spider",
    "slurp",
    "preview",
    "facebookexternalhit",
    "facebookcatalog",
    "whatsapp",
    "telegram",
    "skypeuripreview",
    "embedly",
    "quora link",
    "pinterest/",
    "vkshare",
    "w3c_validator",
    "headlesschrome",
    "lighthouse",
    "pingdom",
    "uptime",
    "monitor",
    "statuscake",
    "site24x7",
    "datadog",
    "curl/",
    "wget/",
    "python-requests",
    "python-urllib",
    "python-httpx",
    "aiohttp",
    "go-http-client",
    "java/",
    "okhttp-monitor",
    "libwww-perl",
    "apache-httpclient",
    "scrapy",
    "nmap",
    "masscan",
    "zgrab",
    "censys",
    "nuclei",
    "nikto",
];

/// Whether a word in a user agent identifies a robot; other robots are known by their whole name.
fn has_word_of_robot(user_agent: &str) -> bool {
    let lower = user_agent.to_ascii_lowercase();
    BOT_WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_device_follows_from_the_user_agent() {
        let parser = woothee::parser::Parser::new();
        for (agent, expected) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                Some(Device::Phone),
            ),
            (
                "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                Some(Device::Tablet),
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
                Some(Device::Phone),
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-X710) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
                Some(Device::Tablet),
            ),
            (
                "Mozilla/5.0 (Linux; Android 12; BRAVIA 4K VH2 Android TV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
                None,
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0",
                Some(Device::Desktop),
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
                Some(Device::Desktop),
            ),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", Some(Device::Robot)),
            ("curl/8.5.0", Some(Device::Robot)),
            ("unheard-of/1", None),
            ("", None),
        ] {
            let names = read_names(&parser, agent);
            assert_eq!(names.device, expected, "{agent}");
            assert_eq!(names.device == Some(Device::Robot), read_agent(&parser, Some(agent)).bot, "{agent}");
        }
    }

    #[test]
    fn robots_are_distinguished_from_people() {
        let parser = woothee::parser::Parser::new();
        for (agent, bot) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                false,
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
                false,
            ),
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0", false),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", true),
            ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", true),
            ("WhatsApp/2.23.20.0", true),
            ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", true),
            (
                "Mozilla/5.0 (Macintosh) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
                true,
            ),
            ("curl/8.5.0", true),
            // What looks whether the links of products are alive.
            ("Waymark/0.1.0 (link check bot)", true),
            ("python-requests/2.32.0", true),
        ] {
            assert_eq!(read_agent(&parser, Some(agent)).bot, bot, "{agent}");
        }
        assert!(read_agent(&parser, None).bot);
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";
        let agent = read_agent(&parser, Some(phone));
        assert_eq!((agent.name, agent.system), (Some("Safari"), Some("iPhone")));
    }
}
