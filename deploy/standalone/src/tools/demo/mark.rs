//! How a demo is told from everything else: its project, and the mark on each of its resources.

use reqwest::Url;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
pub(super) use statistics::domain::demo::{FIELD, Mark, State, TAG};

use crate::tools::client::{Client, RequestError};

/// Name of the project.
const PROJECT: &str = "Waymark demo";

/// A demo that is there.
#[derive(Debug, Clone)]
pub(super) struct Demo {
    /// Id of its project.
    pub(super) project: String,
    /// Another one in each run: a refusal is not given again to a run that goes on.
    run: u64,
    pub(super) mark: Mark,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    id: String,
    created_at: i64,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    custom_fields: serde_json::Map<String, Value>,
}

/// The demos of the account, oldest first: more than one if two runs began at once.
pub(super) async fn find(client: &Client) -> Result<Vec<Demo>, RequestError> {
    // Not by the name: people change it.
    let mut projects: Vec<Project> = list(client, &["projects"], &[]).await?;
    projects.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    let mut demos = Vec::new();
    for mut project in projects {
        let kept = project.custom_fields.remove(FIELD);
        match kept.and_then(|kept| serde_json::from_value(kept).ok()) {
            Some(mark) => demos.push(Demo { project: project.id, run: random()?, mark }),
            None if project.tags.iter().any(|tag| tag == TAG) => {
                return Err(RequestError::Unreachable(format!(
                    "the project {} has the tag {TAG}, and its customFields.{FIELD} cannot be read; put it back, take the \
                     tag away, or delete the project",
                    project.id
                )));
            }
            None => {}
        }
    }
    Ok(demos)
}

/// Begins a demo.
pub(super) async fn create(client: &Client, mark: Mark) -> Result<Demo, RequestError> {
    // Another key each time: after a removal, a day must not pass before there can be a demo again.
    let run = random()?;
    let about = "A brand to look at, made by `waymark demo`. `waymark demo --remove` takes all of it away.";
    let body = json!({"name": PROJECT, "description": about, "tags": [TAG], "customFields": {FIELD: mark}});
    let url = client.url(&["projects"], []);
    let project: Project =
        client.post_once(&url, &format!("demo-{run:016x}"), body.to_string().into()).await?;
    Ok(Demo { project: project.id, run, mark })
}

/// A number that nobody else has.
pub(super) fn random() -> Result<u64, RequestError> {
    getrandom::u64().map_err(|error| RequestError::Unreachable(error.to_string()))
}

impl Demo {
    /// Notes how far it is.
    pub(super) async fn note(&mut self, client: &Client, state: State) -> Result<(), RequestError> {
        self.mark.state = state;
        let body = json!({"customFields": {FIELD: self.mark}});
        let url = client.url(&["projects", &self.project], []);
        client.put(&url, None, body.to_string().into()).await
    }

    /// Posts a document of the demo. A repeat in the same run is answered as before.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        client: &Client,
        url: &Url,
        body: &Value,
    ) -> Result<T, RequestError> {
        let body = body.to_string();
        client.post_once(url, &self.key(url, &body), body.into()).await
    }

    /// The key of a request that is carried out once: of this run, and of what it asks for.
    pub(super) fn key(&self, url: &Url, body: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.run.to_be_bytes());
        hasher.update(url.as_str().as_bytes()).update(&[0]).update(body.as_bytes());
        format!("demo-{}-{}", self.project, hasher.finalize().to_hex())
    }

    /// The URL of a list, or of what is made in it, with the demo's project.
    pub(super) fn url(&self, client: &Client, path: &[&str]) -> Url {
        client.url(path, [("project", self.project.as_str())])
    }

    /// The resources of a type that are the demo's: scoped to its project, and marked.
    pub(super) async fn list(&self, client: &Client, path: &[&str]) -> Result<Vec<Value>, RequestError> {
        let mut all: Vec<Value> = list(client, path, &[("project", self.project.as_str())]).await?;
        all.retain(is_marked);
        Ok(all)
    }
}

/// Whether a resource carries the mark. One of the two is enough: people edit tags and custom fields.
pub(super) fn is_marked(resource: &Value) -> bool {
    let has_tag = resource["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == TAG));
    has_tag || !resource["customFields"][FIELD].is_null()
}

/// All rows of a list.
pub(super) async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    query: &[(&str, &str)],
) -> Result<Vec<T>, RequestError> {
    let mut next = Some(client.url(path, query.iter().copied().chain([("perPage", "100")])));
    let mut all = Vec::new();
    while let Some(url) = next {
        let (page, following): (Vec<T>, _) = client.read_page(&url).await?;
        all.extend(page);
        next = following;
    }
    Ok(all)
}

/// A text member of a resource; empty if it has none.
pub(super) fn text<'a>(resource: &'a Value, member: &str) -> &'a str {
    resource[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_resources_are_of_the_demo() {
        for (resource, expected) in [
            (json!({"tags": ["waymark-demo"], "customFields": {}}), true),
            (json!({"tags": [], "customFields": {"waymarkDemo": "DM1"}}), true),
            (json!({"tags": ["recalled", "waymark-demo"]}), true),
            (json!({"tags": ["demo"], "customFields": {"demo": true}}), false),
            (json!({"name": "waymark-demo"}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_marked(&resource), expected, "{resource}");
        }
    }

    #[test]
    fn a_mark_comes_back_as_it_was_kept() {
        let mark =
            Mark { seed: 7, items: 60, target: "https://e.com".to_owned(), end: 1, state: State::Filling };
        let kept = json!(mark);
        assert_eq!(kept["state"], "filling");
        assert_eq!(serde_json::from_value::<Mark>(kept).unwrap(), mark);
    }
}
