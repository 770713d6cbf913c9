//! Takes the demo away: what is scoped to its project and marked, and what happened to its items. Each step can be
//! repeated; the project goes last, so that a removal that was cut short is found again.

use serde_json::Value;

use super::{
    background, counts,
    mark::{Demo, is_marked, list, text},
    shown::{Shown, note},
};
use crate::tools::client::{Client, RequestError};

/// Ids of one request.
const BULK: usize = 100;

/// How often a list is looked at until nothing is left: others may be at work.
const LOOKS: usize = 3;

/// An application in the demo's project that is not the demo's: it would go with the project.
pub(super) async fn foreign_application(
    client: &Client,
    demo: &Demo,
) -> Result<Option<String>, RequestError> {
    let path = ["projects", demo.project.as_str(), "applications"];
    let there: Vec<Value> = list(client, &path, &[]).await?;
    Ok(there.iter().find(|one| !is_marked(one)).map(|one| text(one, "name").to_owned()))
}

/// Removes everything of the demo.
pub(super) async fn run(client: &Client, demo: &Demo, shown: &Shown) -> Result<(), RequestError> {
    remove_all(client, demo, shown, "webhooks").await?;
    background::remove(client, demo).await?;
    remove_all(client, demo, shown, "redirections").await?;
    let things = demo.list(client, &["thngs"]).await?;
    let requests = things.iter().map(|thing| remove_actions(client, text(thing, "id")));
    shown.run("items without what happened to them", things.len(), requests).await?;
    for kind in ["thngs", "products", "places"] {
        remove_all(client, demo, shown, kind).await?;
    }
    // Once the project is gone, its counts cannot be told from others.
    if !counts::remove(client, demo).await? {
        note("its scans stay in the statistics: the key is of no owner or admin");
    }
    // Its application, with its keys, goes with it.
    client.remove(&client.url(&["projects", &demo.project], [])).await
}

/// Removes the actions of an item, whoever made them.
async fn remove_actions(client: &Client, thing: &str) -> Result<usize, RequestError> {
    let actions: Vec<Value> = match list(client, &["thngs", thing, "actions", "all"], &[]).await {
        // Somebody removed it meanwhile.
        Err(RequestError::Refused { status: reqwest::StatusCode::NOT_FOUND, .. }) => Vec::new(),
        other => other?,
    };
    for action in actions {
        client.remove(&client.url(&["actions", "all", text(&action, "id")], [])).await?;
    }
    Ok(1)
}

/// Removes the demo's resources of a type.
async fn remove_all(client: &Client, demo: &Demo, shown: &Shown, kind: &str) -> Result<(), RequestError> {
    for _ in 0..LOOKS {
        let there = demo.list(client, &[kind]).await?;
        if there.is_empty() {
            return Ok(());
        }
        let requests = groups(kind, &there).into_iter().map(async |(domain, ids)| {
            let joined = ids.join(",");
            let query = [("ids", joined.as_str())].into_iter().chain(domain.map(|domain| ("domain", domain)));
            client.remove(&client.url(&[kind], query)).await?;
            Ok(ids.len())
        });
        shown.run(&format!("{kind} to remove"), there.len(), requests).await?;
    }
    Err(RequestError::Unreachable(format!("some {kind} of the demo are still there")))
}

/// The ids that one request names each; links of one domain each, which it names, too.
fn groups<'a>(kind: &str, there: &'a [Value]) -> Vec<(Option<&'a str>, Vec<&'a str>)> {
    let is_link = kind == "redirections";
    let domain = |one: &'a Value| is_link.then(|| text(one, "shortDomain"));
    let id = |one: &'a Value| text(one, if is_link { "shortId" } else { "id" });
    let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for one in there {
        match groups.last_mut() {
            Some((of, ids)) if *of == domain(one) && ids.len() < BULK => ids.push(id(one)),
            Some(_) | None => groups.push((domain(one), vec![id(one)])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_names_links_of_one_domain() {
        let link =
            |domain: &str, id: usize| json!({"shortDomain": domain, "shortId": id.to_string(), "id": "x"});
        let mut links: Vec<Value> = (0..BULK + 1).map(|id| link("a.example", id)).collect();
        links.push(link("b.example", 7));
        let found = groups("redirections", &links);
        let sizes: Vec<_> = found.iter().map(|(domain, ids)| (*domain, ids.len())).collect();
        assert_eq!(sizes, [(Some("a.example"), BULK), (Some("a.example"), 1), (Some("b.example"), 1)]);
        assert_eq!(found[2].1, ["7"]);
        assert_eq!(groups("thngs", &links)[0], (None, vec!["x"; BULK]));
    }
}
