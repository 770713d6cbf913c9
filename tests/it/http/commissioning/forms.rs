//! Forms in which a request names a Thng and a time.

use anyhow::Result;
use serde_json::json;
use tests::db::Engine;

use super::{super::Api, Factory, WHEN, WHEN_MS};
use crate::on_both_engines;

/// "The final `:` separates key from value"; any identifier key names a Thng, raw or percent-encoded.
pub(super) async fn a_thng_is_named_by_any_of_its_identifiers(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    for (serial, reference) in [
        ("S1", "own:key:2:S1"),
        ("S2", "own%3Akey%3A2%3AS2"),
        ("S3", "gs1:21:S3"),
        ("a b/ü", "gs1:21:a%20b%2F%C3%BC"),
    ] {
        let thng = factory.thng(serial).await?;
        let answer = factory.commission(reference).await?;
        assert_eq!(answer.status, 201, "{reference}: {answer:?}");
        assert_eq!(answer.json()["thng"], json!(thng), "{reference}");
        for name in [reference, &thng] {
            assert_eq!(factory.state(name).await?["state"], "commissioned", "{name}");
        }
    }
    Ok(())
}

/// `Z`, `+01:00`, `+0100` and `+01` are offsets; what was written is kept.
async fn every_form_of_utc_offset_is_accepted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    for (at, written) in ["2026-11-22T07:15:30Z", WHEN, "2026-11-22T08:15:30+0100", "2026-11-22T08:15:30+01"]
        .iter()
        .enumerate()
    {
        let thng = factory.thng(&format!("O{at}")).await?;
        let body = factory.body_with("occurredAt", json!(written));
        let answer = factory.step(&thng, "commissions", body).await?;
        assert_eq!(answer.status, 201, "{written}: {answer:?}");
        assert_eq!(answer.json()["timestamp"], WHEN_MS, "{written}");
        assert_eq!(answer.json()["customFields"]["occurredAt"], *written);
    }
    Ok(())
}

on_both_engines!(a_thng_is_named_by_any_of_its_identifiers, every_form_of_utc_offset_is_accepted);
