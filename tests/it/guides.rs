//! The guides for users: each is served as HTML, its links resolve, and its examples run as they stand.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use reqwest::header;
use tests::product::{Options, Product, binary, root};

use crate::{
    readme::{self, Block},
    walk::{Up, at_home, bash, deploy_run},
};

/// The index holds what all examples need.
const INDEX: &str = "deploy/guide/README.md";

/// Its blocks need servers of their own: `walk::the_fleet_of_the_guide_comes_up`.
const FLEET: &str = "deploy/guide/fleet.md";

/// Each guide by itself behind the blocks of the index, against one product with the settings that guides name.
#[test]
fn the_examples_of_every_guide_run_as_they_stand() -> Result<()> {
    let home = tempfile::tempdir()?;
    let cities = home.path().join("cities.mmdb");
    let made = Command::new(root().join("deploy/tour")).arg("--database").arg(&cities).status()?;
    ensure!(made.success(), "deploy/tour --database");
    let mut command = deploy_run(home.path(), ["0", "0", "0"])?;
    command.envs([
        ("WAYMARK_MQTT_LISTEN", "127.0.0.1:0"),
        ("WAYMARK_WEBHOOKS_LOOPBACK", "true"),
        ("WAYMARK_GEOIP_DB", "cities.mmdb"),
        ("WAYMARK_TRUSTED_PROXIES", "127.0.0.1"),
    ]);
    let up = Up::start(&mut command)?;
    let mqtt = up.line("MQTT")?.rsplit(':').next().context("no port")?.to_owned();
    let binaries = binary()?.parent().context("no folder")?.display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH")?);
    let env = [
        ("API", up.line("API")?),
        ("ADMIN", up.line("Admin")?),
        ("KEY", up.line("Operator key")?),
        ("MQTT_PORT", &mqtt),
        ("PATH", &path),
    ];

    let blocks: Vec<Block> = readme::blocks()?.into_iter().filter(|block| block.language == "sh").collect();
    let of = |document: &str| -> Vec<&str> {
        let own = blocks.iter().filter(|block| block.document == document);
        own.map(|block| block.text.as_str()).filter(|text| !text.starts_with("export API=")).collect()
    };
    let first = of(INDEX).concat();
    let mut count = 0;
    for document in readme::documents()? {
        if [INDEX, FLEET, "README.md"].contains(&document.as_str()) {
            continue;
        }
        let own = of(&document);
        ensure!(!own.is_empty(), "{document} has no example");
        count += own.len();
        let said = bash(home.path(), &format!("{first}{}", own.concat()), &env).context(document.clone())?;
        if document.ends_with("connected-things.md") {
            ensure!(said.contains("temp_celsius"), "mosquitto_sub got nothing: {said}");
        }
    }
    ensure!(count >= 28, "only {count} examples");
    Ok(())
}

/// The example of a file, with free ports in the place of those that it names.
#[test]
fn the_file_of_settings_starts_the_product() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut text = readme::block("toml")?;
    let mut ports = Vec::new();
    for written in ["127.0.0.1:9080", "127.0.0.1:9081", "127.0.0.1:9082"] {
        ensure!(text.contains(written), "{written} is not in the file");
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        text = text.replace(written, &free);
        ports.push(free);
    }
    let start = |text: &str| -> Result<Command> {
        fs::write(home.path().join("waymark.toml"), text)?;
        let mut command = at_home(&binary()?, home.path(), ["0"; 3]);
        for name in ["WAYMARK_API_LISTEN", "WAYMARK_EDGE_LISTEN", "WAYMARK_ADMIN_LISTEN"] {
            command.env_remove(name);
        }
        command.args(["up", "--config", "waymark.toml"]);
        Ok(command)
    };
    let up = Up::start(&mut start(&text)?)?;
    for (label, at) in [("API", 0), ("Short URLs", 1), ("Edge", 1), ("Admin", 2)] {
        ensure!(up.line(label)? == format!("http://{}", ports[at]), "{label}: {:?}", up.line(label));
    }
    ensure!(home.path().join("other-data/waymark.db").is_file());
    drop(up);
    // The guide says so of an unknown key.
    let refused = start(&format!("{text}colour = \"red\"\n"))?.output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(64) && said.contains("colour"), "{refused:?}");
    Ok(())
}

/// Values of the attribute `name` in a page.
fn values<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guide_is_served_and_its_links_resolve() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let get = async |url: &reqwest::Url| -> Result<String> {
        let answer = product.http.get(url.clone()).send().await?;
        ensure!(answer.status() == 200, "{url}: {}", answer.status());
        let header =
            |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ensure!(header(header::CONTENT_TYPE) == "text/html; charset=utf-8", "{url}");
        ensure!(header(header::CONTENT_SECURITY_POLICY).contains("default-src 'none'"), "{url}");
        Ok(answer.text().await?)
    };
    for prefix in ["", "/v2"] {
        let root = reqwest::Url::parse(&format!("{}{prefix}/docs/guide/", product.api))?;
        let mut seen = BTreeSet::from([root.clone()]);
        let mut open = vec![root];
        let mut links = 0;
        while let Some(url) = open.pop() {
            let page = get(&url).await?;
            for outside in ["<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "=\"//"] {
                ensure!(!page.contains(outside), "{url} holds {outside}");
            }
            let ids = values(&page, "id");
            let distinct: BTreeSet<&str> = ids.iter().copied().collect();
            ensure!(distinct.len() == ids.len(), "{url}: two headings have one anchor: {ids:?}");
            for link in values(&page, "href") {
                let target = url.join(link)?;
                if target.host_str() != url.host_str() {
                    ensure!(["https", "mailto"].contains(&target.scheme()), "{url}: {link}");
                    continue;
                }
                links += 1;
                let text = get(&target).await?;
                if let Some(anchor) = target.fragment() {
                    ensure!(values(&text, "id").contains(&anchor), "{url}: {link} leads to no heading");
                }
                let mut target = target.clone();
                target.set_fragment(None);
                if target.path().contains("/docs/guide/") && seen.insert(target.clone()) {
                    open.push(target);
                }
            }
        }
        // The list, and each file of the folder; every one is reached by links.
        let files = readme::documents()?.iter().filter(|file| file.starts_with("deploy/guide/")).count();
        ensure!(seen.len() == files && files >= 14 && links > 40, "{seen:?}, {files} files, {links} links");
    }

    let answer = product.http.get(format!("{}/docs/guide", product.api)).send().await?;
    let location = answer.headers().get(header::LOCATION).context("no location")?;
    ensure!(answer.status() == 308 && location == "/docs/guide/", "{location:?}");
    for name in ["nothing", "events.md", "README", "README.md", "events/", "..%2fevents", "%FF"] {
        let answer = product.http.get(format!("{}/docs/guide/{name}", product.api)).send().await?;
        let (status, body) = (answer.status(), answer.json::<serde_json::Value>().await?);
        ensure!(status == 404 && body["code"] == 40_402, "{name}: {status} {body}");
    }
    Ok(())
}

/// Links of the repository's own documents lead to files and headings that there are.
#[test]
fn links_in_documents_lead_to_files_and_headings() -> Result<()> {
    let mut count = 0;
    for document in readme::documents()?.into_iter().chain(["CONTRIBUTING.md".to_owned()]) {
        let file = root().join(&document);
        let folder = file.parent().context("no folder")?;
        for line in readme::prose(&fs::read_to_string(&file)?) {
            // What stands in backticks is no link.
            let line: String = line.split('`').step_by(2).collect();
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.starts_with("https://") {
                    continue;
                }
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if path.is_empty() { file.clone() } else { folder.join(path) };
                // Pictures have no headings.
                let Ok(bytes) = fs::read(&target) else { bail!("{document}: {link} leads nowhere") };
                let text = String::from_utf8_lossy(&bytes);
                ensure!(
                    anchor.is_empty() || headings(&text).contains(anchor),
                    "{document}: {link}: no heading"
                );
                count += 1;
            }
        }
    }
    ensure!(count > 40, "only {count} links");
    Ok(())
}

/// Anchors as code hosts make them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = readme::prose(text).into_iter().filter(|line| line.starts_with('#'));
    titles
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .map(|line| line.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect())
        .collect()
}

/// Folders and files that a document names in backticks, such as `tests/it/tidy.rs`.
#[test]
fn paths_that_documents_name_exist() -> Result<()> {
    let tops = ["benches/", "control/", "deploy/", "edge/", "shared/", "tests/"];
    let mut count = 0;
    for document in readme::documents()?.into_iter().chain(["CONTRIBUTING.md".to_owned()]) {
        for line in readme::prose(&fs::read_to_string(root().join(&document))?) {
            for word in line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace) {
                let path = word.trim_end_matches([',', ':']);
                // A path with `…` or a brace stands for several.
                if tops.iter().any(|top| path.starts_with(top)) && !path.contains(['{', '*', '…']) {
                    ensure!(root().join(path).exists(), "{document} names {path}, which is not there");
                    count += 1;
                }
            }
        }
    }
    ensure!(count > 60, "only {count} paths");
    Ok(())
}
