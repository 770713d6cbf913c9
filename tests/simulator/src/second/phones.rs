//! Phones by the user agents that their programs send.

use verdicts::domain::assessment::agent::AgentHash;

use super::super::{Rng, atlas::Country};
use super::{Mix, facts, world};

/// The program that opens a scanned code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Safari,
    IphoneChrome,
    IphoneApplication,
    Chrome,
    SamsungInternet,
    MakerBrowser,
    Firefox,
    AndroidApplication,
    WeChatOnIphone,
    WeChatOnAndroid,
    /// A tablet or a computer at a counter or a work bench.
    Desktop,
    /// The hand scanner of a factory or a warehouse.
    HandScanner,
}

/// A device that scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phone {
    pub program: Program,
    pub model: &'static str,
}

/// Android models as their user agents name them, the commonest first.
///
/// Assumed order after the lists of best sellers that market researchers publish (Counterpoint, "Top 10
/// smartphones", 2024): Samsung's A series and Xiaomi's Redmi lead.
const MODELS: &[&str] = &[
    "SM-A155F",
    "SM-A055F",
    "SM-S928B",
    "SM-A546B",
    "23106RN0DA",
    "SM-A145R",
    "SM-S918B",
    "2312DRAABG",
    "Redmi Note 12",
    "SM-A346B",
    "CPH2591",
    "V2247",
    "Redmi 12C",
    "SM-G991B",
    "SM-A256B",
    "Pixel 8",
    "SM-A135F",
    "moto g power (2022)",
    "Infinix X6525",
    "TECNO BG6",
    "Pixel 7a",
    "CPH2505",
    "SM-S711B",
    "RMX3710",
    "SM-F946B",
    "2201116SG",
    "ALN-AL00",
    "V2302A",
    "PHW110",
    "23127PN0CC",
    "Pixel 6a",
    "SM-G781B",
    "moto g54 5G",
    "M2101K6G",
    "CPH2387",
    "A063",
    "XQ-DQ54",
    "LE2123",
    "RMX3630",
    "SM-A236B",
];

impl Program {
    const ALL: [Self; 12] = [
        Self::Safari,
        Self::IphoneChrome,
        Self::IphoneApplication,
        Self::Chrome,
        Self::SamsungInternet,
        Self::MakerBrowser,
        Self::Firefox,
        Self::AndroidApplication,
        Self::WeChatOnIphone,
        Self::WeChatOnAndroid,
        Self::Desktop,
        Self::HandScanner,
    ];
}

impl Phone {
    /// Every model with every program.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let models = || MODELS.iter().copied().chain([Self::hand_scanner().model]);
        Program::ALL.into_iter().flat_map(move |program| models().map(move |model| Self { program, model }))
    }

    /// The phone of somebody who lives in a country.
    pub(super) fn of(rng: &mut Rng, mix: Mix, country: &Country) -> Self {
        let is_iphone = rng.chance(country.iphones);
        let ranks: Vec<_> =
            MODELS.iter().enumerate().map(|(rank, model)| (*model, 1.0 / (rank as f64 + 4.0))).collect();
        let model = world::weighted(rng, &ranks);
        let program = match (mix, is_iphone) {
            (Mix::Reduced, _) => reduced(rng, is_iphone),
            (_, true) if country.code == "CN" && rng.chance(facts::CHINA_WECHAT) => Program::WeChatOnIphone,
            (_, false) if country.code == "CN" && rng.chance(facts::CHINA_WECHAT) => Program::WeChatOnAndroid,
            (_, true) => on_iphone(rng),
            (_, false) => on_android(rng),
        };
        Self { program, model }
    }

    pub(super) const fn desktop() -> Self {
        Self { program: Program::Desktop, model: "" }
    }

    pub(super) const fn hand_scanner() -> Self {
        Self { program: Program::HandScanner, model: "TC52" }
    }

    /// What the system knows the device by, some years after the start; versions grow with them.
    pub(super) fn agent(self, years: i64) -> Option<AgentHash> {
        AgentHash::of(&self.user_agent(years.max(0)))
    }

    pub(crate) fn user_agent(self, years: i64) -> String {
        let (ios, android, chrome, model) = (17 + years, 14 + years, 124 + 12 * years, self.model);
        let iphone = format!(
            "Mozilla/5.0 (iPhone; CPU iPhone OS {ios}_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
        );
        let named = format!("Mozilla/5.0 (Linux; Android {android}; {model} Build/UP1A.231005.007");
        let kit = "AppleWebKit/537.36 (KHTML, like Gecko)";
        match self.program {
            Program::Safari => format!("{iphone} Version/{ios}.5 Mobile/15E148 Safari/604.1"),
            Program::IphoneChrome => format!("{iphone} CriOS/{chrome}.0.6367.88 Mobile/15E148 Safari/604.1"),
            Program::IphoneApplication => format!("{iphone} Mobile/15E148 QRReader/{ios}.2"),
            Program::WeChatOnIphone => {
                format!("{iphone} Mobile/15E148 MicroMessenger/8.0.{ios} NetType/WIFI")
            }
            Program::Chrome => {
                format!("Mozilla/5.0 (Linux; Android 10; K) {kit} Chrome/{chrome}.0.0.0 Mobile Safari/537.36")
            }
            Program::SamsungInternet => format!(
                "Mozilla/5.0 (Linux; Android 10; K) {kit} SamsungBrowser/{ios}.0 Chrome/{chrome}.0.0.0 Mobile \
                 Safari/537.36"
            ),
            Program::MakerBrowser => {
                format!(
                    "{named}) {kit} Version/4.0 Chrome/{chrome}.0.1.2 Mobile Safari/537.36 MiuiBrowser/{ios}.1"
                )
            }
            Program::Firefox => {
                format!(
                    "Mozilla/5.0 (Android {android}; Mobile; rv:{chrome}.0) Gecko/{chrome}.0 Firefox/{chrome}.0"
                )
            }
            Program::AndroidApplication => {
                format!("{named}; wv) {kit} Version/4.0 Chrome/{chrome}.0.6367.82 Mobile Safari/537.36")
            }
            Program::WeChatOnAndroid => {
                format!(
                    "{named}; wv) {kit} Version/4.0 Chrome/{chrome}.0.1.2 Mobile Safari/537.36 \
                     MicroMessenger/8.0.{ios}"
                )
            }
            Program::Desktop => {
                format!("Mozilla/5.0 (Windows NT 10.0; Win64; x64) {kit} Chrome/{chrome}.0.0.0 Safari/537.36")
            }
            Program::HandScanner => format!("Mozilla/5.0 (Linux; Android 11; {model}) Warehouse/{years}.4"),
        }
    }
}

fn on_iphone(rng: &mut Rng) -> Program {
    let application = 1.0 - facts::IPHONE_SAFARI - facts::IPHONE_CHROME;
    world::weighted(
        rng,
        &[
            (Program::Safari, facts::IPHONE_SAFARI),
            (Program::IphoneChrome, facts::IPHONE_CHROME),
            (Program::IphoneApplication, application),
        ],
    )
}

fn on_android(rng: &mut Rng) -> Program {
    let known = facts::ANDROID_CHROME + facts::ANDROID_SAMSUNG + facts::ANDROID_MAKER + facts::ANDROID_OTHER;
    world::weighted(
        rng,
        &[
            (Program::Chrome, facts::ANDROID_CHROME),
            (Program::SamsungInternet, facts::ANDROID_SAMSUNG),
            (Program::MakerBrowser, facts::ANDROID_MAKER),
            (Program::Firefox, facts::ANDROID_OTHER),
            (Program::AndroidApplication, 1.0 - known),
        ],
    )
}

/// A program in the mix of reduced user agents: none of them names a model.
fn reduced(rng: &mut Rng, is_iphone: bool) -> Program {
    match (is_iphone, rng.chance(facts::REDUCED_COMMON)) {
        (true, true) => Program::Safari,
        (false, true) => Program::Chrome,
        (true, false) => *rng.pick(&[Program::IphoneChrome, Program::IphoneApplication]),
        (false, false) => *rng.pick(&[Program::SamsungInternet, Program::Firefox]),
    }
}
