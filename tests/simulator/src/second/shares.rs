//! What is known of goods, of those who own them, and of those who trade in them.
//!
//! The shares of lives are weights: a mix that fixes the share of one of them scales the others. No source
//! counts what becomes of items with codes, so most weights are assumed from how common the event itself is.

use super::facts::Fact;

/// Share of genuine cases. Chosen, so that the rates of each kind can be measured; it says nothing of
/// reality, where counterfeits are some 2.3 % of world trade ("Mapping Global Trade in Fakes", OECD/EUIPO,
/// 2025).
pub(super) const GENUINE: f64 = 0.6;
/// Share of diverted cases. Chosen; the grey market is 5 to 30 % of IT sales (KPMG/AGMA, 2008) and 8 to 10 %
/// of luxury sales ("Luxury gray market", In Practise, undated).
pub(super) const DIVERTED: f64 = 0.2;

/// Share of items that may be sold in one country only; the others in a region. Assumed.
pub(super) const ONE_COUNTRY_MARKET: Fact = Fact::new(0.35, 0.5);
/// How far people go across a border for work or shopping, in kilometres. Assumed from the cities of the
/// atlas, which lie farther apart than the towns along a border.
pub(super) const BORDER_KM: f64 = 300.0;

/// Owned by one person: the most common life. Assumed.
pub(super) const OWNER: Fact = Fact::new(30.0, 24.0).crowd(14.0);
/// Scanned by several of a household; households have 2.3 members in the EU (Eurostat, 2016) and 2.5 in the
/// US (Census Bureau, 2023). Assumed that in one of three another member scans too.
pub(super) const FAMILY: Fact = Fact::new(14.0, 14.0).crowd(20.0);
/// Scanned again and again, for points or care. Nearly half of people scan codes on food and drink regularly
/// (Appinio for spiritsEUROPE, 2022), 7 to 8 % of people several times a week, but 50 % in China (SIG, 2019).
pub(super) const ENGAGED: Fact = Fact::new(10.0, 12.0).crowd(25.0);
/// Owned by somebody whose VPN is certain; others have one by chance. Assumed, to have a group to measure.
pub(super) const VPN_OWNER: Fact = Fact::new(4.0, 8.0).crowd(4.0);
/// Owned by somebody who works across a border: 1.1 % of the employed in the EU (Eurostat, 2022), 32 % in the
/// Belgian province of Luxembourg. Unfavourable: assumed four times as many, for shops near a border.
pub(super) const COMMUTER: Fact = Fact::new(1.1, 4.0).crowd(1.1);
/// Owned by a frequent traveller who takes it along. Assumed: 27 % of 3 yearly trips go abroad (Eurostat,
/// 2024), few goods are scanned there.
pub(super) const TRAVELLER: Fact = Fact::new(8.0, 14.0).crowd(8.0);
/// Taken along in a move to another country: 3.7 % of people live outside of their country of birth (UN DESA,
/// 2024); fewer move within an item's life.
pub(super) const EXPAT: Fact = Fact::new(1.0, 2.0);
/// Given away in the country: gifts are 10 % of retail (Unity Marketing, 2006).
pub(super) const GIFT_NEAR: Fact = Fact::new(8.5, 8.0);
/// Given to somebody abroad. Assumed: a sixth of the gifts.
pub(super) const GIFT_ABROAD: Fact = Fact::new(1.5, 3.0);
/// Sold on in the country: second-hand goods are 3 to 5 % of fashion's sector (BCG/Vestiaire Collective,
/// 2022); unfavourable: 14 % of people bought used electronics and 31 % used clothes within a year (Statista
/// in Retail Leader, undated).
pub(super) const RESOLD_NEAR: Fact = Fact::new(4.5, 9.0).crowd(6.0);
/// Sold on to another country. 19 % of online buyers bought from another EU country, 51 % at home (Eurostat,
/// 2022): a quarter of all; assumed less for used goods.
pub(super) const RESOLD_ABROAD: Fact = Fact::new(1.0, 3.0);
/// Scanned on the shelf by several people before it is bought. 8.85 million scans of product tags in 16
/// months (Bitly, undated); the share of goods is assumed.
pub(super) const SHELF: Fact = Fact::new(5.0, 5.0).crowd(8.0);
/// Returned after a scan and sold again: 16.9 % of retail sales are returned (NRF/Happy Returns, 2024);
/// assumed that a fifth of them was scanned first.
pub(super) const RETURNED: Fact = Fact::new(3.4, 4.5);
/// A display piece, tagged as the documentation asks for. Assumed: one piece of a hundred.
pub(super) const DISPLAY: Fact = Fact::new(1.5, 1.5).crowd(3.0);
/// A display piece that nobody tagged. Assumed: a quarter of the tagged ones; a third in bad practice.
pub(super) const UNTAGGED: Fact = Fact::new(0.4, 0.8).crowd(0.6);
/// Refurbished by a firm, with a second owner. Assumed: a quarter of the used electronics that people buy.
pub(super) const REFURBISHED: Fact = Fact::new(1.5, 2.0);
/// Seen by a service centre. Assumed from usual warranty claims of 2 to 5 % of electronic goods.
pub(super) const SERVICED: Fact = Fact::new(3.0, 3.0).crowd(7.0);
/// Passed round at an event, untagged. Assumed.
pub(super) const EVENT: Fact = Fact::new(0.3, 0.5).crowd(4.0);
/// Bought by a tourist and taken home. Assumed: abroad for 6 of 365 nights (Eurostat, 2024) with a multiple
/// of the usual shopping.
pub(super) const TOURIST: Fact = Fact::new(2.0, 4.0);
/// Share that tourists buy in their mix: given by it.
pub(super) const TOURIST_SHARE: f64 = 0.06;
/// Share of untagged display pieces in their mix: 3 to 5 %, given by it.
pub(super) const UNTAGGED_SHARE: f64 = 0.04;

/// Visits of an owner over the life of an item. Assumed: most scan once, when they unpack it; rates of
/// packaging campaigns (14 % of packs, Mobile Marketing Magazine, undated) tell of first scans only.
pub(super) const OWNER_VISITS: Fact = Fact::new(2.2, 3.0).crowd(5.0);
/// Visits of an engaged owner. Assumed: about one in a month.
pub(super) const ENGAGED_VISITS: Fact = Fact::new(14.0, 18.0).crowd(36.0);
/// Members of a family who scan. Assumed from households of 2.3 to 2.5.
pub(super) const FAMILY_MEMBERS: (usize, usize) = (2, 4);
/// Visitors who scan a display piece: from to, by order of magnitude. Assumed.
pub(super) const DISPLAY_VISITORS: (f64, f64) = (6.0, 150.0);
/// Share of the visitors of a shop who are from abroad. Assumed for city centres; tax-free shopping is one of
/// the main drivers of luxury sales in Europe (Altagamma/Global Blue, 2018).
pub(super) const FOREIGN_VISITORS: Fact = Fact::new(0.08, 0.25);
/// People who scan at an event. Assumed.
pub(super) const EVENT_VISITORS: (f64, f64) = (8.0, 60.0);
/// Days from the commissioning until something is bought: from to, by order of magnitude. Assumed: weeks of
/// transport and months in stock.
pub(super) const STOCK_DAYS: (f64, f64) = (14.0, 240.0);
/// Share of items offered for resale whose code strangers scan from the pictures. Assumed; listings show
/// labels.
pub(super) const SCANNED_FROM_LISTING: Fact = Fact::new(0.10, 0.20);
/// Share of service centres in another country. Assumed: brands have hubs for a region.
pub(super) const SERVICE_ABROAD: Fact = Fact::new(0.15, 0.30);

/// Share of items that the factory scans before the commissioning. Assumed.
pub(super) const FACTORY_SCANS: f64 = 0.4;
/// Share of items checked by a phone right after it. Assumed.
pub(super) const FACTORY_CHECK: f64 = 0.08;
/// Share of items that a warehouse reports. Assumed: aggregation is more common than scans of single items.
pub(super) const WAREHOUSE_SCANS: f64 = 0.2;
/// Countries of factories and their weights. Assumed after the great exporters of consumer goods.
pub(super) const FACTORIES: &[(&str, f64)] = &[
    ("CN", 40.0),
    ("IT", 12.0),
    ("IN", 10.0),
    ("TR", 8.0),
    ("DE", 8.0),
    ("PL", 6.0),
    ("MX", 6.0),
    ("US", 10.0),
];

/// Share of diverted goods of importers who buy from wholesale. These four weights are assumed: sources name
/// the ways (broken distribution agreements, KPMG/AGMA, 2008; wholesalers to platforms, In Practise, undated)
/// but no shares.
pub(super) const IMPORTER: Fact = Fact::new(32.0, 32.0);
/// Share of parallel trade between near countries with different prices; 6 to 18 % of pharmacies' sales in
/// northern Europe (EFPIA in EAEPC, 2002).
pub(super) const PARALLEL: Fact = Fact::new(26.0, 26.0);
/// Share of travel retail and buyers by order (daigou), who bring goods home to sell: 15 to 20 % of luxury
/// sales in China are grey (In Practise, undated).
pub(super) const TRAVEL_RETAIL: Fact = Fact::new(18.0, 18.0);
/// Share of sellers on marketplaces who send single new items abroad.
pub(super) const MARKETPLACE: Fact = Fact::new(24.0, 24.0);
/// Share of diverted goods that were scanned inside of their market first. Assumed from the 14 % of packs
/// that are scanned at best, and traders who check; all of them in the mix that is about it.
pub(super) const TRIED_INSIDE: Fact = Fact::new(0.2, 0.4);
/// Share of importers who scan what comes in. Assumed.
pub(super) const IMPORTER_CHECKS: f64 = 0.25;

/// Weights of copies on market stalls of one city, with some tourists among the buyers. These four are
/// assumed: stalls and shops as against small parcels, of which 80 % of seizures consist (OECD/EUIPO, 2025).
pub(super) const STALLS: Fact = Fact::new(22.0, 22.0);
/// Weight of copies sold online within one country.
pub(super) const ONE_COUNTRY: Fact = Fact::new(28.0, 28.0);
/// Weight of copies sent to many countries.
pub(super) const MANY_COUNTRIES: Fact = Fact::new(30.0, 30.0);
/// Weight of a few copies while the owner of the genuine item scans it.
pub(super) const BESIDE_GENUINE: Fact = Fact::new(20.0, 20.0);
/// Copies of one code, from to, by order of magnitude. Given: 3 to more than 500; a printer repeats what is
/// on his plate (Scantrust, "QR code solutions for anti-counterfeiting", 2022), one example has 50,000
/// (Traciqo, undated).
pub(super) const COPIES: (f64, f64) = (3.0, 700.0);
/// Copies beside a genuine item that is scanned, from to. Assumed: a reseller of single pieces.
pub(super) const FEW_COPIES: (f64, f64) = (3.0, 60.0);
/// Share of copies that are offered without regard to the original's country. Assumed.
pub(super) const SOLD_ELSEWHERE: f64 = 0.5;
/// Share of sold copies that anybody scans.
///
/// Packs reach 0.1 to 10 % (Packaging Impressions, undated), campaigns 14 % (Mobile Marketing Magazine,
/// undated); nearly 40 % of Europeans have wondered whether something was genuine, and 13 % bought fakes on
/// purpose (EUIPO, 2023) and will not look. Unfavourable is the lower end here.
pub(super) const COPY_SCANNED: Fact = Fact::new(0.06, 0.02).crowd(0.14);
/// Share of owners who scan again, of those who scanned a copy. Assumed lower than for genuine goods.
pub(super) const COPY_SCANNED_AGAIN: f64 = 0.25;
/// Share of sellers of copies who show buyers that the code works. Assumed.
pub(super) const SELLER_SHOWS: f64 = 0.15;
/// Share of forgers who scan the original, in their own country. Assumed.
pub(super) const FORGER_SCANS: f64 = 0.5;
/// Where forgers work: China, Hong Kong, Turkey, Singapore and the Emirates make up 90 % of seizures ("Global
/// Trade in Fakes", OECD/EUIPO, 2021); the weights are assumed.
pub(super) const FORGERS: &[(&str, f64)] =
    &[("CN", 70.0), ("TR", 15.0), ("AE", 4.0), ("SG", 3.0), ("IT", 4.0), ("IN", 4.0)];
/// Days over which copies are sold, from to, by order of magnitude. Assumed.
pub(super) const SALE_DAYS: (f64, f64) = (10.0, 400.0);
/// Share of buyers at a stall who are tourists. Assumed: such stalls are where tourists are.
pub(super) const TOURISTS_AT_STALLS: f64 = 0.35;
/// Share of forged goods whose genuine original is scanned by its owner: as many as of other packs, see
/// above.
pub(super) const ORIGINAL_SCANNED: f64 = 0.10;
