//! Display pieces: one that nobody tagged is named, one call tags it, and others at its place are named by it.

use anyhow::{Context, Result};
use assessment::service::assessment::displays::learn_unknown;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api,
    authentication::{BERN, Brand, HOUR, TOKYO, check, id, scanned, statuses, trigger, with},
};

const AWAY: [(&str, &str, (f64, f64)); 3] =
    [("Tokyo", "JP", TOKYO), ("Sydney", "AU", (-33.87, 151.21)), ("Lima", "PE", (-12.05, -77.04))];

/// A commissioned Thng that 24 visitors of a shop scan, and three more whose phones roam.
async fn shown(brand: &Brand<'_>, serial: &str, city: &str) -> Result<String> {
    let thng = brand.thng(serial).await?;
    for n in 0..24_i64 {
        let place = Some((city, "CH", BERN));
        scanned(brand.api, &thng, 10 + n, &format!("Visitor{}/1", letters(n)), place).await?;
    }
    for (n, place) in (24_i64..).zip(AWAY) {
        scanned(brand.api, &thng, 10 + n, &format!("Visitor{}/1", letters(n)), Some(place)).await?;
    }
    Ok(thng)
}

/// A number without digits, which would be a version.
fn letters(n: i64) -> String {
    let letter = |n: i64| char::from(b'A' + u8::try_from(n % 26).unwrap_or_default());
    [letter(n / 26), letter(n)].iter().collect()
}

async fn judged(brand: &Brand<'_>, thng: &str) -> Result<Value> {
    brand.judge(with(trigger(Some(thng), BERN), "timestamp", json!(99 * HOUR))).await
}

/// What is said of the display pieces near an item that is suspected: by its reason, and by its certainty.
fn nearby(result: &Value) -> (bool, Value) {
    assert_eq!(statuses(result), ["suspicious", "suspected", "none"], "{result}");
    let (_, reason) = check(result, "duplicateChecks");
    assert!(reason.contains("LOOKS_LIKE_DISPLAY"), "{reason}");
    let certainty = &result["customFields"]["childActions"]["duplicateChecks"]["certainty"];
    assert_eq!(certainty["settles"][0]["code"], "TAG_DISPLAY", "{certainty}");
    (reason.contains("DISPLAYS_NEARBY"), certainty["displaysNearby"].clone())
}

pub(super) async fn a_tag_names_others_at_its_place_and_clears_none_of_them(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let [first, second] = [shown(&brand, "A", "Bern").await?, shown(&brand, "B", "Bern").await?];
    let elsewhere = shown(&brand, "C", "Basel").await?;
    for thng in [&first, &second, &elsewhere] {
        assert_eq!(nearby(&judged(&brand, thng).await?), (false, Value::Null));
    }
    // One call dismisses the case and tags the item.
    let uri = format!("/authentication/cases?filter=thng={first}");
    let case = id(&api.get(&uri).await?.json()[0]);
    let body = json!({"status": "dismissed", "reason": "In the shop of Bern.", "display": true});
    api.put(&format!("/authentication/cases/{case}"), body).await?.must_be(200)?;
    assert_eq!(statuses(&judged(&brand, &first).await?), ["positive", "none", "none"]);
    // Another one that looks like it there is named, and stays suspected: a copy may be sold beside it.
    let result = judged(&brand, &second).await?;
    assert_eq!(nearby(&result), (true, json!(1)), "{result}");
    assert!(
        check(&result, "duplicateChecks")
            .1
            .contains("1 more that are tagged display or demo are mostly seen in CH-Bern"),
        "{result}"
    );
    let stored = api.get(&format!("/actions/authenticationResults/{}", id(&result))).await?.json();
    assert_eq!(nearby(&stored), (true, json!(1)), "as it is stored: {stored}");
    assert_eq!(nearby(&judged(&brand, &elsewhere).await?), (false, Value::Null), "in another region");
    // A tag that is set by itself counts as well, and one that is taken away no more.
    let tag = async |thng: &str, tags: Value| -> Result<()> {
        let answer = api.put(&format!("/thngs/{thng}"), json!({"tags": tags})).await?;
        answer.status.is_success().then_some(()).with_context(|| format!("{answer:?}"))
    };
    let third = shown(&brand, "D", "Bern").await?;
    tag(&third, json!(["demo"])).await?;
    assert_eq!(nearby(&judged(&brand, &second).await?), (true, json!(2)));
    tag(&first, json!([])).await?;
    assert_eq!(nearby(&judged(&brand, &second).await?), (true, json!(1)));
    let gone = api.delete(&format!("/thngs/{third}")).await?;
    assert!(gone.status.is_success(), "{gone:?}");
    assert_eq!(nearby(&judged(&brand, &second).await?), (false, Value::Null), "none is left");
    Ok(())
}

/// One that is tagged from the beginning teaches once its scans say where it is.
pub(super) async fn a_piece_that_is_created_as_one_is_learned_later(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let other = shown(&brand, "A", "Bern").await?;
    let piece = id(&api.create("/thngs", json!({"name": "P", "tags": ["display"]})).await?);
    let app = &api.made.app;
    assert_eq!(learn_unknown(&app.assessment, &mut String::new()).await?, 0, "nobody scanned it");
    for n in 0..3 {
        let place = Some(("Bern", "CH", BERN));
        scanned(&api, &piece, 10 + n, &format!("Visitor{}/1", letters(n)), place).await?;
    }
    assert_eq!(nearby(&judged(&brand, &other).await?), (false, Value::Null));
    assert_eq!(learn_unknown(&app.assessment, &mut String::new()).await?, 1);
    assert_eq!(nearby(&judged(&brand, &other).await?), (true, json!(1)));
    assert_eq!(learn_unknown(&app.assessment, &mut String::new()).await?, 0, "it is known by now");
    Ok(())
}

crate::on_both_engines!(
    a_tag_names_others_at_its_place_and_clears_none_of_them,
    a_piece_that_is_created_as_one_is_learned_later,
);
