//! The blocks of the README and of the guides: each is run by a test, as it stands.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};
use kernel::domain::access::{ActorKind, EDGE_KEY_PREFIX, key_from_random};
use reqwest::Method;
use serde_json::{Value, json};
use tests::product::{Options, Product, binary, built, root};

/// A fenced block.
pub(crate) struct Block {
    /// The file that it stands in, from the root of the repository.
    pub(crate) document: String,
    /// The heading of the section that it stands in.
    pub(crate) heading: String,
    /// The language that it names; empty for a drawing.
    pub(crate) language: String,
    /// Its lines.
    pub(crate) text: String,
}

/// The README and every guide, by name.
pub(crate) fn documents() -> Result<Vec<String>> {
    let mut guides = Vec::new();
    for file in fs::read_dir(root().join("deploy/guide"))? {
        let name = file?.file_name().into_string().ok().context("a name that is no text")?;
        ensure!(name.ends_with(".md"), "deploy/guide/{name} is no guide");
        guides.push(format!("deploy/guide/{name}"));
    }
    guides.sort();
    guides.insert(0, "README.md".to_owned());
    Ok(guides)
}

/// Every block of the README and of the guides, in its order.
pub(crate) fn blocks() -> Result<Vec<Block>> {
    let mut found = Vec::new();
    for document in documents()? {
        let text = fs::read_to_string(root().join(&document))?;
        let (mut heading, mut open): (String, Option<Block>) = (String::new(), None);
        for line in text.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (Some(_), Some(_)) => found.extend(open.take()),
                (Some(block), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, Some(language)) => {
                    let (document, heading, language) =
                        (document.clone(), heading.clone(), language.to_owned());
                    open = Some(Block { document, heading, language, text: String::new() });
                }
                (None, None) => {
                    if let Some(title) = line.strip_prefix("## ") {
                        heading = title.to_owned();
                    }
                }
            }
        }
        ensure!(open.is_none(), "{document}: a block is not closed");
    }
    Ok(found)
}

/// The lines of a document that stand in no block.
pub(crate) fn prose(text: &str) -> Vec<&str> {
    let mut inside = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    });
    outside.collect()
}

/// The text of the only block of a language.
pub(crate) fn block(language: &str) -> Result<String> {
    let mut found = blocks()?.into_iter().filter(|block| block.language == language);
    let text = found.next().with_context(|| format!("no {language} block"))?.text;
    ensure!(found.next().is_none(), "more than one {language} block: each needs a test");
    Ok(text)
}

/// A block of another kind or in another place needs a test of its own, and a line here.
#[test]
fn no_block_is_without_a_test() -> Result<()> {
    for Block { document, heading, language, text } in blocks()? {
        let guide = document.strip_prefix("deploy/guide/").and_then(|name| name.strip_suffix(".md"));
        let test = match (language.as_str(), guide, heading.as_str()) {
            ("sh", None, "Two commands") if text.starts_with("deploy/run ") => {
                "walk::a_new_user_walks_line_by_line"
            }
            ("sh", None, "Two commands") if text.starts_with("tests/run ") => "it is what runs this",
            ("sh", None, "A walk by curl") => "walk::a_new_user_walks_line_by_line",
            ("", None, "Architecture") => "a drawing",
            ("sh", Some("fleet"), "Start one on this machine") => "walk::the_fleet_of_the_guide_comes_up",
            ("sh", Some(name), _) if name != "fleet" => {
                "guides::the_examples_of_every_guide_run_as_they_stand"
            }
            ("regex", Some("keys"), "Find keys that leaked") => {
                "the_expression_for_scanners_finds_every_kind_of_key"
            }
            ("jsonc", Some("reactions"), "Effects") => "the_effects_of_reactions_are_accepted",
            ("sql", Some("export"), _) => "export::duckdb_counts_what_the_api_counts",
            ("csv", Some("operators-tool"), "Import a file") => "the_file_with_things_is_imported",
            ("toml", Some("settings"), "A file") => "guides::the_file_of_settings_starts_the_product",
            _ => "",
        };
        ensure!(
            !test.is_empty(),
            "{document}: nothing runs this block of {heading:?}:\n```{language}\n{text}```"
        );
    }
    Ok(())
}

/// As `grep -P` reads it; SECURITY.md has the same expression.
#[test]
fn the_expression_for_scanners_finds_every_kind_of_key() -> Result<()> {
    let expression = block("regex")?.trim().to_owned();
    let security = fs::read_to_string(root().join("SECURITY.md"))?;
    ensure!(security.contains(&format!("`{expression}`")), "SECURITY.md lacks {expression}");
    let random: Vec<u8> = (0..160).collect();
    let key = |prefix: &str| key_from_random(prefix, &random).context("a key");
    let prefixes = ActorKind::ALL.map(ActorKind::key_prefix).into_iter().chain([EDGE_KEY_PREFIX]);
    let keys = prefixes.map(key).collect::<Result<Vec<_>>>()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("leak.txt");
    let others = [key("")?, format!("x{}", keys[0]), format!("{}x", keys[0]), keys[0][..79].to_owned()];
    let lines: Vec<String> = keys.iter().map(|key| format!("KEY=\"{key}\"")).chain(others).collect();
    fs::write(&file, lines.join("\n"))?;
    let found = Command::new("grep").args(["-oP", &expression]).arg(&file).output()?;
    ensure!(String::from_utf8(found.stdout)?.lines().eq(keys.iter()), "{lines:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_effects_of_reactions_are_accepted() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let make = async |path: &str, body: Value| -> Result<Value> {
        let made = product.must_answer(201, Method::POST, path, Some(body)).await?;
        Ok(made)
    };
    make("/actions", json!({"name": "_alert"})).await?;
    let hook = json!({"name": "h", "url": "https://example.com/", "types": ["reaction"]});
    let hook = make("/webhooks", hook).await?;
    let hook = hook["id"].as_str().context("id")?;
    let mut count = 0;
    for line in block("jsonc")?.lines() {
        let effect = line.split_once("//").map_or(line, |(effect, _)| effect).trim().replace("<id>", hook);
        if effect.is_empty() {
            continue;
        }
        let effect: Value = serde_json::from_str(&effect).with_context(|| effect.clone())?;
        let sent = json!({"name": "r", "types": ["action.implicitScans"], "effect": effect});
        let made = make("/reactions", sent).await?;
        ensure!(made["effect"]["type"] == effect["type"], "{made}");
        count += 1;
    }
    ensure!(count == 3, "{count} effects");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_with_things_is_imported() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let bag = json!({"name": "Canvas bag", "identifiers": {"gs1:01": "09501101020917"}});
    product.must_answer(201, Method::POST, "/products", Some(bag)).await?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("things.csv"), block("csv")?)?;
    let mut command = Command::new(binary()?);
    command
        .args(["import", "things.csv"])
        .current_dir(folder.path())
        .env("WAYMARK_API_URL", &product.api)
        .env("WAYMARK_OPERATOR_KEY", &product.key);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && said.starts_with("1 created, 0 rejected, 1 Things made"),
        "{output:?}"
    );
    Ok(())
}

/// The commands in the head of the Compose file: settings that it reads, files and commands that there are.
#[test]
fn the_commands_of_the_compose_file_are_those_that_there_are() -> Result<()> {
    let compose = fs::read_to_string(root().join("deploy/compose.yaml"))?;
    let (mut exports, mut commands) = (0, 0);
    for line in compose.lines().filter_map(|line| line.strip_prefix("#   ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["export", ref settings @ ..] => {
                for setting in settings {
                    let name = setting.split('=').next().unwrap_or_default();
                    ensure!(compose.contains(&format!("${{{name}:?}}")), "{name} is not read");
                    exports += 1;
                }
            }
            [program, ref words @ ..] if program.starts_with("deploy/") => {
                ensure!(root().join(program).is_file(), "{program}");
                let hosts = words[1..].iter().take_while(|word| !word.starts_with('('));
                for host in hosts {
                    ensure!(compose.contains(&format!("\n  {host}:\n")), "{host} is no service");
                }
                commands += 1;
            }
            ["docker", "compose", "-f", file, ref rest @ ..] => {
                ensure!(root().join(file).is_file(), "{file}");
                if let ["run", "--rm", "control-1", ref args @ ..] = *rest {
                    let args = args.iter().take_while(|word| **word != "…");
                    let output = Command::new(built("control")?).args(args).arg("--help").output()?;
                    ensure!(output.status.success(), "{line}: {output:?}");
                }
                commands += 1;
            }
            [program @ "openssl", ref words @ ..] => {
                let args = words.iter().take_while(|word| **word != ">");
                let output = Command::new(program).args(args).output()?;
                let key = String::from_utf8(output.stdout)?;
                ensure!(::secrets::keys::SecretKeys::parse(&key).is_ok(), "{line}: no key");
                let file = words.iter().skip_while(|word| **word != ">").nth(1).copied().unwrap_or_default();
                let mounted = file.strip_prefix("deploy/").unwrap_or_default();
                ensure!(compose.contains(&format!("- ./{mounted}:/secret.key:ro")), "{file} is not mounted");
                commands += 1;
            }
            _ => ensure!(line.starts_with("  "), "what does this line do? {line}"),
        }
    }
    ensure!(exports == 4 && commands == 6, "{exports} settings, {commands} commands");
    Ok(())
}
