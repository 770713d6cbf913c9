//! What the simulation assumes, each with its reason.
//!
//! These were written down, and committed, before the rules were run on them, and are not to be changed to make a
//! figure better: whoever changes one says what is known now that was not known then.

/// A share or a number of a mix, with what speaks for it.
#[derive(Debug, Clone, Copy)]
pub struct Assumption {
    /// What it is.
    pub name: &'static str,
    /// In the plain mix.
    pub plain: f64,
    /// In the shifted mix: harder, by about as much as our reasons may be wrong.
    pub shifted: f64,
    /// Why.
    pub reason: &'static str,
}

macro_rules! assumptions {
    ($($name:ident $plain:literal $shifted:literal $reason:literal)+) => {
        /// The figures of one mix.
        #[derive(Debug, Clone, Copy)]
        #[expect(missing_docs, reason = "each is told by the list beside it")]
        pub struct Figures { $(pub $name: f64,)+ }

        impl Figures {
            /// As it is thought to be.
            pub const PLAIN: Self = Self { $($name: $plain,)+ };
            /// Harder in each figure that we know least of.
            pub const SHIFTED: Self = Self { $($name: $shifted,)+ };
            /// As plain, with what looks most like copies and is none: five times as many display pieces, none of them
            /// tagged, and twice as many owners who come back. No rule was chosen by it.
            pub const CROWDED: Self = Self { display: 0.05, display_tagged: 0.0, engaged: 0.24, ..Self::PLAIN };
        }

        /// Every figure with its reason; printed beside the results.
        pub const ASSUMPTIONS: &[Assumption] = &[
            $(Assumption { name: stringify!($name), plain: $plain, shifted: $shifted, reason: $reason },)+
        ];
    };
}

assumptions! {
    // Networks and places.
    cellular 0.50 0.60 "scans over a carrier, not Wi-Fi: in shops a carrier, at home Wi-Fi; about half of mobile traffic each"
    cellular_elsewhere 0.60 0.70 "of those, placed at another gateway of the country: mobile networks are placed with a median error of 180 to 210 km (arXiv 2605.21937, 2026)"
    cellular_main 0.50 0.50 "of these, at the carrier's main gateway, else at any: carriers have few exits"
    wifi_elsewhere 0.10 0.15 "of Wi-Fi scans, placed in another city: fixed networks have a median error of 3 to 16 km, with a tail (same source)"
    country_only 0.15 0.20 "addresses of which a database knows the country only"
    wrong_country 0.003 0.006 "addresses in the wrong country: makers of databases claim 99.8 % right"
    no_place 0.01 0.02 "addresses that no database knows"
    sensor 0.05 0.03 "scans by an application that was allowed to know the place; a redirect has none, and most people refuse"
    vpn 0.08 0.16 "people with a VPN on their phone: a quarter ever used one by surveys (GWI), a third of these daily"
    vpn_on 0.50 0.50 "of their scans, with it on"
    vpn_abroad 0.50 0.60 "of VPN users, with an exit in another country: the others take the nearest"
    vpn_many 0.30 0.30 "of these, with three exits in rotation"
    roaming 0.80 0.80 "of carriers' scans abroad, seen at home: roaming data is routed through the home network"
    wifi_away 0.25 0.35 "scans over Wi-Fi in the own town that are not at home: at work, with friends, in a café"
    daily_lines 0.20 0.30 "home lines with a new address each day: 20 providers, large ones in Germany and elsewhere, reassign by a multiple of 24 hours (Reasons Dynamic Addresses Change, IMC 2016)"
    line_days 200.0 60.0 "days that other home lines keep an address: months in the same study; outages of power and line end it"
    other_network 0.50 0.60 "changes into another /24: almost half of them are into another routed prefix (same study), and more into another /24; routers and so /24s come back"
    nat_lines 0.15 0.25 "home lines behind the NAT of their provider: 17 to 18 % of providers had one in 2016 (A Multi-perspective Analysis of Carrier-Grade NAT Deployment, IMC 2016), many more in 2018 (CAIDA)"
    // Languages.
    kept_language 0.50 0.35 "people born abroad whose phone has the language they brought: half of the foreign-born in the United States speak English less than very well (Census Bureau, 2019)"
    english 0.05 0.10 "people in countries with another language whose phone is set to English: no source counts them"
    other_language 0.10 0.20 "people whose second program is set to another language than the first: no source; a program in English on a phone that is not"
    no_language 0.005 0.02 "scans without a language: programs that send no such header"
    // Devices.
    iphone_safari 0.85 0.90 "iPhones that scan with Safari, which tells no model: all are one device to us; the camera opens it"
    android_reduced 0.80 0.85 "Androids that scan with a Chrome of 110 or later, which tells neither model nor version (User-Agent Reduction, phase 6, 2023): one device to us; not in China"
    other_browser 0.07 0.07 "scans of a person in a second program (an in-app browser)"
    // What becomes of a thing.
    engaged 0.12 0.12 "owners who come back 5 to 40 times (services, loyalty); others scan 1 + geometric (mean 1) times, half of it in the first week"
    household 0.25 0.30 "things that a second person of the household scans, too, in three scans of ten"
    travel 0.08 0.15 "owners who scan 1 to 3 times on a journey to 1 to 3 countries, with their own device"
    resale 0.06 0.12 "things that get a second owner, mostly (85 %) of the same country"
    shop 0.10 0.15 "things that 1 to 3 visitors or clerks scan in the shop before they are sold"
    tourist 0.05 0.10 "things bought on a journey: scanned in the shop, then at home in another country; of luxury goods it is more"
    logistics 0.03 0.05 "things that somebody scans on the way, in another country, with a phone of his own"
    factory 0.20 0.20 "things scanned 1 to 3 times in the factory, before their commission"
    display 0.01 0.03 "things on display, scanned by 10 to 120 visitors (one in ten a tourist): a few for hundreds that are sold"
    display_tagged 0.50 0.50 "of these, tagged as the documentation asks: half forget"
    // Copies.
    least_copies 3.0 3.0 "copies that somebody scans, at least; one that nobody scans leaves no trace and is not counted"
    most_copies 500.0 500.0 "and at most; in between, equally many series for each factor of ten, as we know nothing better"
    original 0.50 0.50 "copied codes whose genuine item has an owner who scans: half are samples that were bought for copying"
    parcels 0.63 0.45 "series sold online by post: 63 % of customs seizures (OECD/EUIPO 2018)"
    parcels_home 0.30 0.40 "of these copies, sent to the brand's market: sellers offer where the brand is known"
    parcels_countries 6.0 3.0 "other countries, at most, that such a series goes to; at least two"
    container 0.25 0.40 "series that a container brings to one country; the rest of them goes to 2 to 4 countries of one area"
    container_home 0.50 0.60 "of these, to the country of the brand's market, where the copies stay: the hard case"
    one_city 0.20 0.30 "of these, sold in one city only: a market, a shop"
    // Diversion.
    whole_area 0.50 0.50 "items whose market is all countries of an area, and not one country"
    tried_inside 0.125 0.25 "diverted things that somebody scanned once in their market before: goods leave a wholesaler unopened"
}
