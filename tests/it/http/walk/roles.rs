//! Every operation of the route table with the key of each role: on the whole account, confined to a project, and of another
//! account.
//!
//! What a role allows is what the API says of it (`GET /accessPolicies`); which permissions an operation needs stands in
//! [`TABLE`].

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use axum::http::Method;
use kernel::domain::subject::Permissions;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{super::Api, Fixture, TABLE, operations, rows_of, text};

/// A role with what it allows, and the key of an operator who has it.
struct Played {
    name: String,
    allowed: Permissions,
    key: String,
}

/// An operator for each role of every account, made by an owner and confined to a project if one is given.
async fn cast(api: &Api, owner: &str, project: Option<&str>) -> Result<Vec<Played>> {
    let create = async |uri: &str, body: Value| {
        let answer = api.call_as(owner, Method::POST, uri, Some(body)).await?.must_be(201)?;
        anyhow::Ok(answer.json())
    };
    let uri = "/accessPolicies?filter=name~evt:";
    let policies = api.call_as(owner, Method::GET, uri, None).await?.json();
    let conditions: Vec<String> = project.iter().map(|id| format!("project={id}")).collect();
    let mut cast = Vec::new();
    for policy in policies.as_array().context("policies")? {
        let name = text(policy, "id")?;
        let body = json!({"name": name, "policies": [name], "conditions": conditions});
        let made = create("/accessTokens", body).await?;
        let texts: Vec<&str> =
            policy["permissions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let allowed = Permissions::parse(&texts.join(" "))?;
        cast.push(Played { name, allowed, key: text(&made, "apiKey")? });
    }
    assert_eq!(cast.len(), 9);
    // Reading is not listing: a role that has the one lacks the other.
    let policies = policies.as_array().into_iter().flatten();
    let permissions: Vec<&str> = policies
        .flat_map(|policy| policy["permissions"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    for verb in ["read", "list"] {
        let texts: BTreeSet<String> = permissions
            .iter()
            .filter_map(|text| text.split_once(':'))
            .filter(|(_, verbs)| verbs.split(',').any(|one| one == verb))
            .map(|(subject, _)| format!("{subject}:{verb}"))
            .collect();
        assert!(texts.len() > 10, "{texts:?}");
        let name = format!("{verb} {}", project.unwrap_or("everywhere"));
        let policy = create("/accessPolicies", json!({"name": name, "permissions": texts})).await?;
        let body = json!({"name": name, "policies": [policy["id"]], "conditions": conditions});
        let made = create("/accessTokens", body).await?;
        let allowed = Permissions::parse(&texts.into_iter().collect::<Vec<_>>().join(" "))?;
        cast.push(Played { name, allowed, key: text(&made, "apiKey")? });
    }
    Ok(cast)
}

/// The letters of the kinds of key, and what a role must allow; `None` if there is nothing that it must.
fn row(operation: &(Method, String)) -> Result<(&'static str, Option<Permissions>)> {
    let name = format!("{} {}", operation.0, operation.1);
    let (_, cells, needs) = TABLE.iter().find(|(line, ..)| *line == name).context(name)?;
    let needs = match *needs {
        "" | "own" | "x" => None,
        text => Some(Permissions::parse(text)?),
    };
    Ok((cells, needs))
}

pub(in super::super) async fn every_role_does_what_it_allows(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let cast = cast(&api, &api.key, None).await?;
    let before = api.fingerprint().await?;
    let operations = operations()?;
    let mut wrong = Vec::new();
    for operation in &operations {
        let (cells, needs) = row(operation)?;
        for Played { name, allowed, key } in &cast {
            let is_refused = cells.starts_with('-') || needs.is_some_and(|needs| !allowed.cover(&needs));
            for known in [true, false].into_iter().filter(|_| is_refused) {
                let answer = fixture.call(&api, key, operation, known).await?;
                if answer.status != 403 || answer.json()["code"] != 40301 {
                    wrong.push(format!("{operation:?} as {name}: {} instead of 403", answer.status));
                }
            }
        }
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    for operation in &operations {
        let (cells, needs) = row(operation)?;
        for Played { name, allowed, key } in &cast {
            if cells.starts_with('-') || needs.is_some_and(|needs| !allowed.cover(&needs)) {
                continue;
            }
            let is_read = operation.0 == Method::GET;
            let answer = fixture.call(&api, key, operation, is_read).await?;
            // An operator who may not see others sees itself alone, and there is nothing of its own in the fixture.
            let is_own = TABLE.iter().any(|(line, _, needs)| {
                *line == format!("{} {}", operation.0, operation.1) && *needs == "own"
            });
            let fits = if is_read && !is_own && cells.starts_with('y') {
                answer.status.is_success()
            } else {
                // An admin may not make an owner; who has a role may not give more than that.
                answer.status != 401 && answer.status != 403
            };
            if !fits {
                wrong.push(format!("{operation:?} as {name}: {} {:?}", answer.status, answer.json()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

pub(in super::super) async fn a_role_of_a_project_stays_in_it(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let own = cast(&api, &api.key, Some(&fixture.ids["projects"])).await?;
    let elsewhere = text(&api.create("/projects", json!({"name": "elsewhere"})).await?, "id")?;
    let others = cast(&api, &api.key, Some(&elsewhere)).await?;
    let before = api.fingerprint().await?;
    let operations = operations()?;
    let mut wrong = Vec::new();
    // What a secret key may not do is refused, and what the role does not allow.
    for operation in &operations {
        let (cells, needs) = row(operation)?;
        let is_key = TABLE
            .iter()
            .any(|(line, _, needs)| *line == format!("{} {}", operation.0, operation.1) && *needs == "own");
        for Played { name, allowed, key } in own.iter().filter(|_| !is_key) {
            // An operator of a project changes many links of it; a secret key does not.
            let of_project = operation.1.starts_with("/jobs/redirections")
                || cells.chars().nth(1) != Some('-') && !operation.1.starts_with("/auth/all");
            let is_refused = !of_project || needs.is_some_and(|needs| !allowed.cover(&needs));
            if is_refused {
                let answer = fixture.call(&api, key, operation, true).await?;
                if answer.status != 403 {
                    wrong.push(format!(
                        "{operation:?} as {name} of the project: {} instead of 403",
                        answer.status
                    ));
                }
            } else if operation.0 == Method::GET && cells.chars().nth(1) == Some('y') {
                let answer = fixture.call(&api, key, operation, true).await?;
                let is_of_app = operation.1 == "/applications/me";
                if !answer.status.is_success() && !is_of_app {
                    wrong.push(format!("{operation:?} as {name} of the project: {}", answer.status));
                }
            }
        }
        for Played { name, key, .. } in &others {
            let answer = fixture.call(&api, key, operation, true).await?;
            let names_one = operation.1.replace("{type}", "").replace("{key}", "").contains('{');
            let status = answer.status.as_u16();
            // Who made its own key is no secret.
            let maker = format!("\"createdBy\":\"{}\"", fixture.ids["operators"]);
            let told = String::from_utf8_lossy(&answer.bytes).replace(&maker, "");
            let leaks = answer.status.is_success()
                && fixture
                    .ids
                    .iter()
                    .any(|(kind, id)| *kind != "accounts" && id.len() > 11 && told.contains(id));
            if names_one && status != 404 && status != 403 || leaks {
                wrong.push(format!("{operation:?} as {name} of another project: {status} {told}"));
            }
        }
    }
    // What they created belongs to their own project.
    let after = api.fingerprint().await?;
    for (table, rows) in before.iter().filter(|(table, _)| *table != "sqlite_sequence") {
        let gone: Vec<_> = rows.iter().filter(|row| !after[table].contains(row)).collect();
        assert!(gone.is_empty(), "a role of another project changed {table}: {gone:#?} {:#?}", after[table]);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

pub(in super::super) async fn a_role_of_another_account_reaches_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let others = cast(&api, &api.other_key, None).await?;
    let account = api.made.account.to_string();
    let before = rows_of(&api, &account).await?;
    let mut wrong = Vec::new();
    for operation in &operations()? {
        let names_one = operation.1.replace("{type}", "").replace("{key}", "").contains('{');
        for Played { name, key, .. } in &others {
            let answer = fixture.call(&api, key, operation, true).await?;
            let status = answer.status.as_u16();
            let told = String::from_utf8_lossy(&answer.bytes);
            let leaks = answer.status.is_success()
                && fixture.ids.values().any(|id| id.len() > 11 && told.contains(id.as_str()));
            if names_one && status != 404 && status != 403 || leaks {
                wrong.push(format!("{operation:?} as {name} of another account: {status} {told}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows_of(&api, &account).await?, before, "a role of another account changed something");
    Ok(())
}

crate::on_both_engines!(
    every_role_does_what_it_allows,
    a_role_of_a_project_stays_in_it,
    a_role_of_another_account_reaches_nothing,
);
