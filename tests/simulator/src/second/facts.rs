//! What is known of people, their phones and their networks.
//!
//! Several figures have no public source: their comments say "assumed" and why.

use super::Mix;

/// A parameter: its likely value, the unfavourable end that sources support, and its value in a crowd.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact {
    likely: f64,
    unfavourable: f64,
    crowd: f64,
}

impl Fact {
    pub(super) const fn new(likely: f64, unfavourable: f64) -> Self {
        Self { likely, unfavourable, crowd: likely }
    }

    pub(super) const fn crowd(self, crowd: f64) -> Self {
        Self { crowd, ..self }
    }

    pub(super) const fn of(self, mix: Mix) -> f64 {
        match mix {
            Mix::Plain | Mix::Reduced | Mix::Tourists | Mix::Display | Mix::TriedInside => self.likely,
            Mix::Shift => self.unfavourable,
            Mix::Crowd => self.crowd,
        }
    }
}

/// Share of people with a VPN on their phone.
///
/// Likely: 5 % on the phone and 6 % on all devices ("Fewer than one third of consumers use a VPN", PCMag
/// survey of 3,000 US consumers, 2018). Unfavourable: 31 % of the world's internet users (GlobalWebIndex,
/// 2020).
pub(super) const VPN_USERS: Fact = Fact::new(0.11, 0.31);

/// Share of the scans of a VPN user that go through it. Assumed: no source tells how long it stays on.
pub(super) const VPN_ON: Fact = Fact::new(0.5, 0.7);

/// Share of VPN users whose exit is in another country.
///
/// Assumed, as no share is published: to reach content of other countries is the commonest reason, but in
/// western Europe it is privacy, which an exit at home serves (GlobalWebIndex in "How VPN use varies by
/// country", WIRED UK, 2016).
pub(super) const VPN_ABROAD: Fact = Fact::new(0.4, 0.6);

/// Share of VPN exits that the database places in another country than the one the user chose.
///
/// 26 % of the addresses of VPN providers have a mismatch ("IP geolocation and geofeeds: why verification
/// matters", IPinfo, after NANOG 96, 2026). Likely: assumed a third of it, as popular exits are corrected
/// first.
pub(super) const VPN_MISPLACED: Fact = Fact::new(0.09, 0.26);

/// Countries of VPN exits, the commonest first. Assumed from the server lists that large providers advertise.
pub(super) const VPN_EXITS: &[&str] = &["US", "GB", "NL", "DE", "FR", "SG", "JP", "CH", "SE", "CA"];

/// Share of Safari users with iCloud Private Relay.
///
/// Assumed: it needs a paid iCloud+ plan and no share is published. It keeps the country and the rough region
/// ("About iCloud Private Relay", Apple support, undated).
pub(super) const RELAY_USERS: Fact = Fact::new(0.10, 0.20);

/// Share of addresses of the relay that are placed in the right city. Assumed: Apple has a setting for the
/// general location, which is the default, and one for the country only.
pub(super) const RELAY_NEAR: f64 = 0.6;

/// Share of scans at home over Wi-Fi. 82 to 89 % of smartphone data ("Wi-Fi drives smartphone data
/// consumption in the US", Opensignal, 2024).
pub(super) const WIFI_HOME: Fact = Fact::new(0.86, 0.82);

/// Share of scans over Wi-Fi in shops and on the way.
///
/// Opensignal (2024) has 77 to 88 % of the screen time away from home, work places included. Assumed lower
/// for scans, which are made standing before goods.
pub(super) const WIFI_AWAY: Fact = Fact::new(0.5, 0.35);

/// Share of fixed addresses that are placed in the right city.
///
/// 83 % within 40 km in the US and less elsewhere (MaxMind's claim in "Data Platform: Geolocation",
/// Wikimedia, undated). Unfavourable: failures of 9 to 20 % in Europe, but 53 to 61 % in Asia ("Lost in the
/// Prefix", arXiv 2605.21937, 2026).
pub(super) const FIXED_RIGHT_CITY: Fact = Fact::new(0.80, 0.62);

/// Share of fixed addresses of which only the country is told. Assumed: databases leave the city out where
/// unsure.
pub(super) const FIXED_COUNTRY_ONLY: Fact = Fact::new(0.12, 0.20);

/// Share of mobile addresses that are placed in the right city.
///
/// Median errors of 179 to 207 km, and 70 % of mobile prefixes span more than 100 km ("Lost in the Prefix",
/// arXiv 2605.21937, 2026). Unfavourable: 29.9 % of phones whose GPS was compared (IPinfo, after NANOG 96,
/// 2026), less some for the countries that the sample lacks.
pub(super) const MOBILE_RIGHT_CITY: Fact = Fact::new(0.36, 0.25);

/// Share of mobile addresses of which only the country is told. Assumed, twice that of fixed ones.
pub(super) const MOBILE_COUNTRY_ONLY: Fact = Fact::new(0.25, 0.32);

/// Share of misplaced mobile addresses that are put where the carrier has its gateway. Assumed: the rest is
/// spread.
pub(super) const AT_GATEWAY: f64 = 0.6;

/// Share of fixed addresses in a wrong country. 99.8 % are right by MaxMind (Wikimedia, undated);
/// unfavourable: 0.5 % by an older claim of 99.5 % (Zander, "How accurate is IP geolocation based on IP
/// allocation data?", Swinburne, 2012), doubled for networks along borders.
pub(super) const FIXED_WRONG_COUNTRY: Fact = Fact::new(0.002, 0.01);

/// Share of mobile addresses in a wrong country. Phones' own geofeeds are right for 84.5 % (IPinfo, after
/// NANOG 96, 2026), but that sample has many travellers; assumed far less for people at home.
pub(super) const MOBILE_WRONG_COUNTRY: Fact = Fact::new(0.006, 0.03);

/// Share of addresses without any place. Assumed: new or internal ranges.
pub(super) const NO_PLACE: Fact = Fact::new(0.003, 0.01);

/// Share of home lines with a new address each day.
///
/// 20 providers of the world, large German ones among them, reassign addresses after a multiple of 24 hours
/// ("Reasons Dynamic Addresses Change", Padmanabhan et al., IMC 2016); the share of lines is assumed.
pub(super) const DAILY_LINES: Fact = Fact::new(0.15, 0.30);

/// Days that other home lines keep an address. Assumed: months, until an outage of power or of the line (same
/// study).
pub(super) const LINE_DAYS: Fact = Fact::new(240.0, 60.0);

/// Share of changes of an address that lead into another /24. Almost half lead into another routed prefix (same
/// study); assumed somewhat more.
pub(super) const OTHER_NETWORK: Fact = Fact::new(0.55, 0.70);

/// Share of home lines behind the NAT of their provider, whose outer address changes.
///
/// 17 to 18 % of providers ("A Multi-perspective Analysis of Carrier-Grade NAT Deployment", Richter et al., IMC
/// 2016); 4,100 networks in 2018 ("Inferring Carrier-Grade NAT Deployment in the Wild", CAIDA).
pub(super) const NAT_LINES: Fact = Fact::new(0.17, 0.30);

/// Share of people born abroad whose phone has the language that they brought.
///
/// Of the foreign-born in the United States 46 % speak English less than very well (Census Bureau, 2019); the
/// others are assumed to follow the country.
pub(super) const KEPT_LANGUAGE: Fact = Fact::new(0.5, 0.3);

/// Share of people in countries with another language whose phone is set to English. Assumed: nobody counts it.
pub(super) const ENGLISH: Fact = Fact::new(0.05, 0.10);

/// Share of people whose second device is set to another language than the first. Assumed: a computer of the
/// employer, a tablet in English.
pub(super) const OTHER_LANGUAGE: Fact = Fact::new(0.10, 0.20);

/// Share of scans without a language. Assumed: a few programs send no such header.
pub(super) const NO_LANGUAGE: Fact = Fact::new(0.005, 0.02);

/// Share of people who let the page have the place of their phone.
///
/// No grant rates are published; "assume users won't give you their locations" ("Requests the geolocation
/// permission on page load", web.dev, 2019). Assumed low.
pub(super) const SENSOR_USERS: Fact = Fact::new(0.15, 0.06);

/// Share of their scans for which such people give it. Assumed: browsers ask again after a while.
pub(super) const SENSOR_ON: f64 = 0.7;

/// Share of people abroad on local Wi-Fi. This and the next two are assumed: reports on travel connectivity
/// name the ways (Holafly Global eSIM & Travel Report, 2025) but no shares of use.
pub(super) const ABROAD_WIFI: Fact = Fact::new(0.48, 0.33);

/// Share of people abroad who roam, with an address of their home country: home routing is the rule
/// ("Understanding Travel eSIM Rerouting", esim.info, undated).
pub(super) const ABROAD_ROAMING: Fact = Fact::new(0.32, 0.45);

/// Share of people abroad with a travel eSIM that leaves by a hub in a third country ("IPX hub breakout",
/// esim.info, 2025). The rest has a local card.
pub(super) const ABROAD_ESIM: Fact = Fact::new(0.10, 0.16);

/// Where such hubs are: "often in Europe or the US" (esim.info, undated); one prefix moved from France to the
/// United Kingdom within weeks ("Mobile roaming IP prefix classification", IPinfo, 2025).
pub(super) const ESIM_HUBS: &[&str] = &["GB", "FR", "NL", "PL", "US", "SG"];

/// Journeys abroad in a year.
///
/// EU residents made 1.14 billion trips with a night away in 2023, 27 % of them abroad (Eurostat, 2024): 0.8
/// for each of some 380 million people from 15 on. Unfavourable: assumed two and a half times as many, for
/// well-off owners.
pub(super) const TRIPS_ABROAD: Fact = Fact::new(0.8, 2.0);

/// Journeys within the country in a year: the other 73 % (Eurostat, 2024).
pub(super) const TRIPS_INLAND: Fact = Fact::new(2.2, 3.5);

/// Journeys abroad in a year of frequent travellers. The most active tax-free shoppers make more than three
/// (Global Blue in American Marketer, 2019); assumed twice that, with business trips.
pub(super) const TRIPS_OF_TRAVELLERS: Fact = Fact::new(6.0, 10.0);

/// Nights of a journey abroad: 7.3 within the EU ("Tourism statistics: intra-EU tourism flows", Eurostat,
/// 2024).
pub(super) const NIGHTS_ABROAD: f64 = 7.3;

/// Nights of a journey within the country: 5.1 over all journeys (Eurostat, 2017) leaves about four.
pub(super) const NIGHTS_INLAND: f64 = 4.0;

/// Share of journeys abroad to a near country: 21 of 27 points go to EU countries (Eurostat, 2017).
pub(super) const TRIPS_NEAR: f64 = 0.78;

/// Share of people who work in another city of their country: 6.4 % work in another region of it (Eurostat,
/// 2022); unfavourable: 21 % in Belgium (Eurostat, 2020).
pub(super) const OTHER_CITY_WORKERS: Fact = Fact::new(0.064, 0.21);

/// Share of the scans of commuters that are made at work. Assumed: a third of the waking hours.
pub(super) const AT_WORK: f64 = 0.33;

/// Share of the other scans that are made at home and not on the way. Assumed: goods are unpacked and used
/// there.
pub(super) const AT_HOME: f64 = 0.7;

/// Share of visits of a second device, of those of owners who have one. Assumed.
pub(super) const BY_SECOND_DEVICE: f64 = 0.3;

/// Years that a phone is used: 29 months (Reviews.org survey of US users, 2025).
pub(super) const PHONE_YEARS: f64 = 2.4;

/// Share of new phones with the same program as the one before. Assumed: most people stay with their system.
pub(super) const SAME_PROGRAM: f64 = 0.85;

/// Share of owners who also scan with a second device or browser. Assumed; nothing is published.
pub(super) const SECOND_DEVICE: Fact = Fact::new(0.10, 0.20).crowd(0.20);

/// Share of scans that are repeated within minutes, as a page did not load. Assumed.
pub(super) const RESCANS: Fact = Fact::new(0.20, 0.30).crowd(0.30);

/// Share of scans without a user agent. Assumed: a few programs send none.
pub(super) const NO_AGENT: Fact = Fact::new(0.002, 0.01);

/// Share of visits that a brand's own application reports with a public key. Assumed: few owners install one.
pub(super) const BY_APPLICATION: Fact = Fact::new(0.03, 0.06);

/// Share of the phones of one system that have its own browser as the program that opens a code, in the mix
/// of reduced user agents: given by that mix, three quarters.
pub(super) const REDUCED_COMMON: f64 = 0.75;

/// Share of iPhones that open codes in Safari, the program that the camera starts unless another one was made
/// the default. Assumed from Safari's 18.5 to 20 % of mobile browsing beside iOS's 28 % of phones
/// (StatCounter, 2024), of which much is inside of applications, where no camera opens a code.
pub(super) const IPHONE_SAFARI: f64 = 0.85;

/// Share of iPhones with Chrome as the default; the rest opens codes in an application. Assumed, see above.
pub(super) const IPHONE_CHROME: f64 = 0.09;

/// Share of Android phones that open codes in Chrome, whose user agent names no model since version 110
/// ("User-Agent Reduction", The Chromium Projects, 2023).
///
/// Chrome has 67 to 69 % of mobile browsing and Android 72 % of phones (StatCounter, 2024 and 2025); less
/// some for scanners and makers' browsers that are not counted well.
pub(super) const ANDROID_CHROME: f64 = 0.76;

/// Share of Android phones with Samsung Internet: 3.3 to 4.9 % of mobile browsing (StatCounter, 2024 and
/// 2025) over Android's 72 %. It sends a reduced user agent too.
pub(super) const ANDROID_SAMSUNG: f64 = 0.07;

/// Share of Android phones with the browser of another maker, which names the model. Assumed from the small
/// browsers that StatCounter (2024) lists beside the first three.
pub(super) const ANDROID_MAKER: f64 = 0.06;

/// Share of Android phones with Firefox, Opera or Edge: about 3 % (StatCounter, 2024). The rest opens codes
/// in an application, whose web view names the model (the Android Compatibility Definition makes it optional
/// since "Relax requirements for WebView useragent", 2019).
pub(super) const ANDROID_OTHER: f64 = 0.04;

/// Share of phones in China that open codes within WeChat or Alipay, whose user agents name the Android
/// model.
///
/// WeChat has 93 % adoption in Chinese cities and its reader is the usual one ("China's QR code craze", Lost
/// Plate, 2019; "How WeChat Wallet has kept QR codes alive in China", ClickZ, 2016). Assumed less for pages
/// of brands.
pub(super) const CHINA_WECHAT: f64 = 0.75;
