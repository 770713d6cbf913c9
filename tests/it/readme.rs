//! The blocks of the README: each is run by a test, as it stands.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::product::{Options, Product, binary, built, root};

/// A fenced block.
pub(crate) struct Block {
    /// The heading of the section that it stands in.
    pub(crate) heading: String,
    /// The language that it names; empty for a drawing.
    pub(crate) language: String,
    /// Its lines.
    pub(crate) text: String,
}

/// Every block of the README, in its order.
pub(crate) fn blocks() -> Result<Vec<Block>> {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let mut found = Vec::new();
    let (mut heading, mut open): (String, Option<Block>) = (String::new(), None);
    for line in readme.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(language)) => {
                let (heading, language) = (heading.clone(), language.to_owned());
                open = Some(Block { heading, language, text: String::new() });
            }
            (None, None) => {
                if let Some(title) = line.strip_prefix("## ") {
                    heading = title.to_owned();
                }
            }
        }
    }
    ensure!(open.is_none(), "a block is not closed");
    Ok(found)
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
    for Block { heading, language, text } in blocks()? {
        let test = match (language.as_str(), heading.as_str()) {
            ("sh", "Two commands") if text.starts_with("deploy/run ") => {
                "walk::a_new_user_walks_line_by_line"
            }
            ("sh", "Two commands") if text.starts_with("tests/run ") => "it is what runs this",
            ("sh", "A fleet") => "walk::the_fleet_of_the_readme_comes_up",
            ("sh", "A walk by curl" | "Things that are connected" | "Events") => {
                "walk::a_new_user_walks_line_by_line"
            }
            ("jsonc", "Events") => "the_effects_of_reactions_are_accepted",
            ("sql", "Events") => "export::duckdb_counts_what_the_api_counts",
            ("csv", "The operator's tool") => "the_file_with_things_is_imported",
            ("", "Architecture") => "a drawing",
            _ => "",
        };
        ensure!(!test.is_empty(), "nothing runs this block of {heading:?}:\n```{language}\n{text}```");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_effects_of_reactions_are_accepted() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let make = async |path: &str, body: Value| -> Result<Value> {
        let (status, made) = product.call(Method::POST, path, Some(body)).await?;
        ensure!(status == 201, "{path}: {status} {made}");
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
    let (status, made) = product.call(Method::POST, "/products", Some(bag)).await?;
    ensure!(status == 201, "{status} {made}");
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
            _ => ensure!(line.starts_with("  "), "what does this line do? {line}"),
        }
    }
    ensure!(exports == 4 && commands == 4, "{exports} settings, {commands} commands");
    Ok(())
}
