//! Example settings: every variable of the binaries with its default, and a start with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tests::product::{DEADLINE, built, free_ports, root, spawn_until};

use crate::ops::waits_for_postgres;

/// A line `NAME=value` of an example, also behind the sign of a comment.
struct Setting {
    value: String,
    is_default: bool,
}

/// The settings of an example in `deploy`.
fn example(path: &str) -> Result<BTreeMap<String, Setting>> {
    let path = root().join("deploy").join(path);
    let mut found = BTreeMap::new();
    for line in std::fs::read_to_string(&path)?.lines() {
        let is_default = line.starts_with('#');
        let Some((variable, value)) = line.trim_start_matches('#').split_once('=') else { continue };
        if variable.is_empty() || !variable.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            continue;
        }
        let setting = Setting { value: value.to_owned(), is_default };
        ensure!(found.insert(variable.to_owned(), setting).is_none(), "{variable} stands twice");
    }
    Ok(found)
}

/// What `--help` says of each variable: its default, if it has one.
fn documented(name: &str, args: &[&str]) -> Result<BTreeMap<String, Option<String>>> {
    let output = Command::new(built(name)?).args(args).arg("--help").output()?;
    ensure!(output.status.success(), "{name} --help");
    let help = String::from_utf8(output.stdout)?;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = BTreeMap::new();
    // What stands before a variable is the text of its own flag.
    let mut rest = words.as_str();
    while let Some((before, after)) = rest.split_once("[env: ") {
        let end = after.find(['=', ']']).context("no end")?;
        // The last flag with a value; a text may name others, as "with --dev-tls".
        let takes_value = |at: usize| before[at..].split_whitespace().take(2).any(|word| word.contains('<'));
        let starts = before.match_indices(" --").map(|(at, _)| at).filter(|at| takes_value(*at));
        let flag = starts.last().map_or(before, |at| &before[at..]);
        // A default that the parser itself fills in stands behind the variable.
        let behind = after.split_once(']').and_then(|(_, behind)| behind.split(" --").next());
        let default = |text: &str| {
            let (_, text) = text.rsplit_once("[default: ")?;
            Some(text.split([']', ';']).next()?.to_owned())
        };
        found.insert(after[..end].to_owned(), default(flag).or_else(|| default(behind?)));
        rest = &after[end..];
    }
    Ok(found)
}

#[test]
fn examples_hold_every_variable_with_its_default() -> Result<()> {
    for (path, name, args) in [
        ("systemd/edge.env.example", "edge", &[][..]),
        ("systemd/control.env.example", "control", &["serve"]),
        ("systemd/worker.env.example", "control", &["worker"]),
        ("env.example", "waymark", &["up"]),
    ] {
        let (mut shown, known) = (example(path)?, documented(name, args)?);
        if name == "waymark" {
            // What the tools read beside them.
            for variable in ["WAYMARK_API_URL", "WAYMARK_CA"] {
                ensure!(shown.remove(variable).is_some(), "{path} lacks {variable}");
            }
        }
        let names = |keys: &mut dyn Iterator<Item = &String>| keys.cloned().collect::<BTreeSet<_>>();
        let (have, must) = (names(&mut shown.keys()), names(&mut known.keys()));
        ensure!(have == must, "{path}: {:?}", have.symmetric_difference(&must).collect::<Vec<_>>());
        for (variable, setting) in &shown {
            let default = known.get(variable).context("checked above")?;
            ensure!(setting.is_default == default.is_some(), "{path}: {variable} is required, or it is not");
            if setting.is_default && !setting.value.is_empty() {
                ensure!(*default == Some(setting.value.clone()), "{path}: {variable}: {default:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_guide_to_settings_names_every_variable() -> Result<()> {
    let guide = std::fs::read_to_string(root().join("deploy/guide/settings.md"))?;
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    let known = documented("waymark", &["up"])?;
    for variable in known.keys() {
        ensure!(rows.iter().any(|row| row.contains(&format!("`{variable}`"))), "no row for {variable}");
    }
    let mut named = rows
        .iter()
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2));
    ensure!(named.all(|name| known.contains_key(name)), "a row names a variable that there is not");
    Ok(())
}

/// The command with everything that its example says, defaults too, but on free ports.
fn loaded(name: &str, args: &[&str]) -> Result<Command> {
    let mut command = Command::new(built(name)?);
    command.args(args);
    let path = format!("systemd/{name}.env.example");
    for (variable, setting) in example(&path)?.into_iter().filter(|(_, setting)| !setting.value.is_empty()) {
        let is_address = variable.ends_with("_LISTEN") && setting.value != "off";
        command.env(variable, if is_address { "127.0.0.1:0".to_owned() } else { setting.value });
    }
    Ok(command)
}

#[test]
fn the_binaries_take_their_examples() -> Result<()> {
    // A folder in the place of a bucket, and a server that refuses at once.
    let folder = tempfile::tempdir()?;
    let secret_key_file = folder.path().join("secret.key");
    tests::product::write_key(&secret_key_file, &"5e".repeat(32))?;
    let mut control = loaded("control", &["serve"])?;
    control
        .env("WAYMARK_SECRET_KEY_FILE", &secret_key_file)
        .env("WAYMARK_FILES_URL", folder.path().join("files"))
        .env("DATABASE_URL", "postgres://waymark:PASSWORD@127.0.0.1:1/waymark");
    // Not the end with 64: the settings are right, but nobody is there.
    let mut child = waits_for_postgres(&mut control)?;
    child.kill()?;
    child.wait()?;

    let key_file = folder.path().join("key");
    tests::product::write_key(&key_file, &tests::product::random_key()?)?;
    let mut edge = loaded("edge", &[])?;
    edge.env("WAYMARK_EDGE_KEY_FILE", key_file).env("WAYMARK_DATA_DIR", folder.path().join("data"));
    let (mut child, _) = spawn_until(&mut edge, "Edge", DEADLINE)?;
    child.kill()?;
    child.wait()?;
    Ok(())
}

#[test]
fn every_variable_of_the_sources_is_a_known_name() -> Result<()> {
    let mut found = BTreeSet::new();
    let mut folders = ["edge/src", "control", "deploy/standalone/src", "shared/platform/src"]
        .map(|name| root().join(name))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let names =
                text.split("env = \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
            found.extend(names.filter(|name| name.starts_with("WAYMARK_")));
        }
    }
    let known: BTreeSet<String> = platform::variables::NAMES.iter().map(|name| (*name).to_owned()).collect();
    let differ: Vec<_> = known.symmetric_difference(&found).collect();
    ensure!(
        differ.is_empty(),
        "NAMES in shared/platform/src/variables.rs and the settings differ: {differ:?}"
    );
    Ok(())
}

#[test]
fn misspelt_variables_are_named_at_the_start_of_each_process() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut edge = Command::new(built("edge")?);
    let key_file = folder.path().join("key");
    tests::product::write_key(&key_file, &tests::product::random_key()?)?;
    edge.env("WAYMARK_EDGE_ID", "e").env("WAYMARK_EDGE_KEY_FILE", &key_file);
    edge.env("WAYMARK_CONTROL_URLS", "http://127.0.0.1:1").env("WAYMARK_API_URLS", "http://127.0.0.1:1");
    edge.env("REDIS_URL", "redis://127.0.0.1:1");
    let mut control = Command::new(built("control")?);
    control.arg("serve").env("DATABASE_URL", "postgres://waymark@127.0.0.1:1/waymark");
    control.env("REDIS_URL", "redis://127.0.0.1:1");
    let mut up = Command::new(built("waymark")?);
    up.arg("up");
    for mut command in [edge, control, up] {
        command
            .env("WAYMARK_DATA_DIR", folder.path().join("data"))
            .env("WAYMARK_FILES_URL", folder.path().join("files"))
            .env("WAYMARK_TRUSTED_PROXY", "127.0.0.1")
            .env("RUST_LOG", "warn");
        command.envs(free_ports(["API", "EDGE", "INTERNAL", "ADMIN"]));
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn()?;
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().context("stderr")?));
        let meant =
            "WAYMARK_TRUSTED_PROXY is not a setting and has no effect; did you mean WAYMARK_TRUSTED_PROXIES?";
        let is_named = lines.map_while(Result::ok).any(|line| line.contains(meant));
        child.kill()?;
        child.wait()?;
        ensure!(is_named, "{command:?} does not name the variable");
    }
    Ok(())
}

/// Whatever else is refused, a flag or another setting, each command names the misspelt variable before it.
#[test]
fn misspelt_variables_are_named_where_another_setting_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = [("WAYMARK_API_LISTENN", "127.0.0.1:0"), ("RUST_LOG", "waymark=loud")];
    let listen = [("WAYMARK_API_LISTENN", "127.0.0.1:0"), ("WAYMARK_API_LISTEN", "nowhere")];
    let required = [("WAYMARK_API_LISTENN", "127.0.0.1:0"), ("HOME", "/")];
    for (name, args, variables, refused) in [
        ("edge", &[][..], &required, "edge: WAYMARK_EDGE_ID: "),
        ("edge", &["--nothing"], &required, "error: unexpected argument '--nothing'"),
        ("control", &["serve"], &required, "control: DATABASE_URL: "),
        ("control", &["worker"], &required, "control: WAYMARK_FILES_URL: "),
        ("control", &["migrate"], &required, "control: DATABASE_URL: "),
        ("control", &["secrets", "rotate"], &required, "control: WAYMARK_SECRET_KEY_FILE: "),
        ("control", &["serve", "--nothing"], &required, "control: unexpected argument '--nothing'"),
        ("waymark", &["up"], &listen, "waymark: WAYMARK_API_LISTEN: "),
        ("waymark", &["up"], &log, "waymark: RUST_LOG: "),
        ("waymark", &["status", "--nothing"], &listen, "waymark: unexpected argument '--nothing'"),
    ] {
        let mut command = Command::new(built(name)?);
        command.env_clear().args(args).env("WAYMARK_DATA_DIR", folder.path().join("data"));
        let output = command.envs(variables.iter().copied()).output()?;
        let text = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(64), "{command:?}: {text}");
        let named = format!(
            "{name}: WAYMARK_API_LISTENN is not a setting and has no effect; did you mean WAYMARK_API_LISTEN?"
        );
        ensure!(text.lines().filter(|line| *line == named).count() == 1, "{command:?}: {text}");
        ensure!(text.lines().any(|line| line.starts_with(refused)), "{command:?}: {text}");
    }
    Ok(())
}
