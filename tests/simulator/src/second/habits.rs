//! How long things take and how often small things happen. No public source measures any of these for goods with
//! codes: all are assumed, and their comments say why so.
//!
//! Pairs are from and to, in days where the name says so.

/// Days until a new thing is unpacked and scanned. Assumed: within the week.
pub(super) const UNPACKING_DAYS: f64 = 4.0;
/// Later scans are denser at first: the power of an even draw. Assumed: interest wears off.
pub(super) const WEARING_OFF: f64 = 1.6;
/// Days of a parcel or of the way home. Assumed from usual delivery times.
pub(super) const PARCEL_DAYS: f64 = 5.0;
/// Days from a purchase to a move abroad. Assumed: any time in a year and a half.
pub(super) const MOVE_AFTER_DAYS: (f64, f64) = (30.0, 530.0);
/// Days that a gift lies before it is given. Assumed: hours to two months.
pub(super) const GIFT_DAYS: (f64, f64) = (1.0, 60.0);
/// Share of givers who scan a gift. Assumed: less than half, as it is wrapped.
pub(super) const GIVER_SCANS: f64 = 0.4;
/// Share of gifts within a town. Assumed: most relatives and friends live near.
pub(super) const GIFT_IN_TOWN: f64 = 0.6;
/// Days from a purchase to a resale. Assumed: weeks to two years.
pub(super) const RESALE_DAYS: (f64, f64) = (20.0, 600.0);
/// Share of resales within a town. Assumed: platforms send parcels; some buyers fetch things.
pub(super) const RESALE_IN_TOWN: f64 = 0.3;
/// Days that an offer of a used thing is open. Assumed.
pub(super) const LISTING_DAYS: f64 = 10.0;
/// Strangers who scan a code from the picture of an offer. Assumed: very few.
pub(super) const STRANGERS: (usize, usize) = (1, 3);
/// Share of those who look at an offer who live in the seller's country. Assumed.
pub(super) const STRANGERS_NEAR: f64 = 0.7;
/// Days until a purchase is returned. Assumed from usual terms of 14 to 30 days.
pub(super) const RETURN_DAYS: (f64, f64) = (3.0, 28.0);
/// Days until a returned or refurbished thing is sold again. Assumed.
pub(super) const SOLD_AGAIN_DAYS: (f64, f64) = (5.0, 60.0);
/// Share of returned things that are sold again in the same town. Assumed: shops do, online sellers do not.
pub(super) const SOLD_AGAIN_IN_TOWN: f64 = 0.5;
/// Days that a thing lies on the shelf after its first scan, on average. Assumed.
pub(super) const SHELF_DAYS: f64 = 20.0;
/// People who scan it there beside the first one, on average. Assumed.
pub(super) const SHELF_VISITORS: f64 = 3.0;
/// Share of a shop's visitors from the country who live in its town. Assumed.
pub(super) const VISITORS_OF_TOWN: f64 = 0.8;
/// Days that a piece is on display. Assumed: from a campaign to a model year.
pub(super) const DISPLAY_DAYS: (f64, f64) = (20.0, 300.0);
/// Scans by the staff who show it. Assumed.
pub(super) const STAFF_SCANS: (usize, usize) = (0, 4);
/// Share of display pieces that go on to a second shop. Assumed.
pub(super) const SECOND_SHOP: f64 = 0.2;
/// Share of events of one evening. Assumed; the others last two days more.
pub(super) const ONE_EVENING: f64 = 0.7;
/// Days of the longer events. Assumed: fairs and weekends.
pub(super) const EVENT_DAYS: f64 = 2.0;
/// Days from a purchase to a repair. Assumed: any time within the warranty.
pub(super) const REPAIR_AFTER_DAYS: (f64, f64) = (20.0, 500.0);
/// Days on the way to the service centre. Assumed.
pub(super) const TO_CENTRE_DAYS: (f64, f64) = (2.0, 7.0);
/// Days there and on the way back. Assumed.
pub(super) const REPAIR_DAYS: (f64, f64) = (6.0, 20.0);
/// Scans by the service centre, two days apart: arrival, work, dispatch. Assumed.
pub(super) const CENTRE_SCANS: (usize, usize) = (1, 3);
/// Share of service centres whose staff scan with a phone, not at a bench. Assumed.
pub(super) const CENTRE_BY_PHONE: f64 = 0.5;
/// Share of owners who scan what came back. Assumed: to see the repair in its record.
pub(super) const SCANNED_AFTER_REPAIR: f64 = 0.7;
/// Share of tourists who scan a purchase before they are back home. Assumed.
pub(super) const TOURIST_SCANS_THERE: f64 = 0.5;
/// Days until they fly home. Assumed from journeys of a week.
pub(super) const FLIGHT_DAYS: (f64, f64) = (1.0, 7.0);

/// Days of a shipment out of the market. Assumed: from air freight to sea freight and customs.
pub(super) const DIVERSION_DAYS: (f64, f64) = (3.0, 60.0);
/// Days until an importer sells it, on average. Assumed.
pub(super) const IMPORTER_STOCK_DAYS: f64 = 25.0;
/// Share of importers who scan with a phone, not at a desk. Assumed.
pub(super) const IMPORTER_BY_PHONE: f64 = 0.5;
/// Share of buyers of diverted goods in the trader's town. Assumed: the others order from it.
pub(super) const BUYER_IN_TOWN: f64 = 0.5;
/// Share of diverted goods that a family scans. Assumed as for other goods.
pub(super) const DIVERTED_TO_FAMILY: f64 = 0.2;
/// Members of such a family who scan. Assumed from households of 2.3 to 2.5.
pub(super) const DIVERTED_FAMILY: (usize, usize) = (2, 3);
/// Share of scans inside of the market in the town that the goods were sent to. Assumed.
pub(super) const TRIED_IN_TOWN: f64 = 0.6;
/// Share of things tried inside by one person only; by two otherwise. Assumed.
pub(super) const TRIED_BY_ONE: f64 = 0.75;
/// When they are tried, as a part of the time until they leave. Assumed: in the later part of it, in shops.
pub(super) const TRIED_FROM: f64 = 0.4;
/// Share of travel retail that ends in China. Assumed after the share of Chinese customers in grey luxury sales.
pub(super) const TO_CHINA: f64 = 0.6;

/// Days until a forger who bought the original scans it. Assumed: at once.
pub(super) const FORGER_DAYS: f64 = 10.0;
/// Days from the purchase of the original to the sale of the first copy. Assumed: printing, production, transport.
pub(super) const FORGING_DAYS: (f64, f64) = (15.0, 120.0);
/// Scans by a seller who shows that the code works. Assumed.
pub(super) const SHOWN_TIMES: (usize, usize) = (2, 12);
/// Share of the tourists at a stall who come from abroad. Assumed: Europeans make a quarter of their journeys
/// abroad, but stalls are at the sights.
pub(super) const STALL_FOREIGNERS: f64 = 0.5;
/// Share of copies beside a genuine item that are sold in the same country. Assumed.
pub(super) const BESIDE_IN_COUNTRY: f64 = 0.6;
/// Share of buyers who scan at the stall and not at home. Assumed.
pub(super) const SCANNED_AT_STALL: f64 = 0.5;
/// Days until the owner of a copy scans again, on average, a week after the purchase. Assumed.
pub(super) const COPY_AGAIN_DAYS: f64 = 60.0;

/// Scans by a factory before the commissioning. Assumed: printing, labelling, quality, packing.
pub(super) const FACTORY_STEPS: (usize, usize) = (1, 4);
/// Days that they lie before it, on average. Assumed.
pub(super) const FACTORY_DAYS: f64 = 2.0;
/// Minutes until a worker checks the code. Assumed: within half a shift.
pub(super) const CHECK_MINUTES: (usize, usize) = (1, 240);
/// Days until a warehouse reports an item, on average after three, at most nine more. Assumed.
pub(super) const WAREHOUSE_DAYS: (f64, f64) = (3.0, 9.0);
/// Seconds until a page has the place of the phone. Assumed: the question must be answered.
pub(super) const SENSOR_SECONDS: (usize, usize) = (4, 40);
/// Repeated scans of one visit. Assumed.
pub(super) const RESCAN_TIMES: (usize, usize) = (1, 2);
/// Minutes until them, on average. Assumed.
pub(super) const RESCAN_MINUTES: f64 = 6.0;
/// Share of cases that are judged by their last scan; the others by any. Chosen: verdicts are given at each scan.
pub(super) const JUDGED_LAST: f64 = 0.5;
/// Share of second devices that are computers or tablets. Assumed.
pub(super) const SECOND_IS_DESKTOP: f64 = 0.5;
/// The spread of a phone's life around its mean. Assumed.
pub(super) const PHONE_LIFE: (f64, f64) = (0.6, 1.4);
/// Share of commuters abroad who are on Wi-Fi at work; the others roam. Assumed.
pub(super) const WORK_WIFI: f64 = 0.5;
