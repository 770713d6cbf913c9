//! `deploy/run` and `tests/run`: which build they start, and that it prints its progress.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Result, ensure};
use tests::product::root;

/// In the place of cargo: notes what it was asked, and makes a program in the place of the product.
const CARGO: &str = r#"#!/bin/sh
echo "$*" > "$CARGO_TARGET_DIR/asked"
for profile; do :; done
[ "$profile" = dev ] && profile=debug
mkdir -p "$CARGO_TARGET_DIR/$profile"
printf '#!/bin/sh\necho "started $*"\n' > "$CARGO_TARGET_DIR/$profile/waymark"
chmod +x "$CARGO_TARGET_DIR/$profile/waymark"
"#;

#[test]
fn it_builds_the_quick_profile_aloud_and_says_how_long_it_took() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    fs::write(scratch.path().join("cargo"), CARGO)?;
    fs::set_permissions(scratch.path().join("cargo"), fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH")?);
    for (asked, profile) in [(None, "quick"), (Some("release"), "release"), (Some("dev"), "dev")] {
        let mut command = Command::new(root().join("deploy/run"));
        command.arg("--lan").env("PATH", &path).env("CARGO_TARGET_DIR", scratch.path());
        command.env_remove("WAYMARK_BUILD_PROFILE");
        if let Some(asked) = asked {
            command.env("WAYMARK_BUILD_PROFILE", asked);
        }
        let output = command.output()?;
        let (out, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success() && out == "started up --lan\n", "{out}{said}");
        ensure!(said.contains(&format!("building waymark ({profile})")), "{said}");
        ensure!(said.contains("built in 0 min "), "{said}");
        let asked = fs::read_to_string(scratch.path().join("asked"))?;
        let words: Vec<&str> = asked.split_whitespace().collect();
        ensure!(words[0] == "build" && asked.contains("-p standalone --bin waymark"), "{asked}");
        ensure!(words.ends_with(&["--profile", profile]), "{asked}");
        ensure!(!words.iter().any(|word| ["-q", "--quiet"].contains(word)), "{asked}");
    }
    // The profile is one that is there, and leaves out what takes long.
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    ensure!(manifest.contains("[profile.quick]"), "no profile quick");
    Ok(())
}

#[test]
fn its_help_comes_without_a_build() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    fs::write(scratch.path().join("cargo"), CARGO)?;
    fs::set_permissions(scratch.path().join("cargo"), fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH")?);
    let help = |arguments: &[&str], binary: Option<&Path>| -> Result<String> {
        let mut command = Command::new(root().join("deploy/run"));
        command.args(arguments).env("PATH", &path).env("CARGO_TARGET_DIR", scratch.path());
        command.env_remove("WAYMARK_BUILD_PROFILE").env_remove("WAYMARK_BINARY");
        command.envs(binary.map(|binary| ("WAYMARK_BINARY", binary)));
        let output = command.output()?;
        let (out, notes) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success() && notes.is_empty(), "{arguments:?}: {out}{notes}");
        for word in ["Usage: deploy/run ", "--lan ", "WAYMARK_BUILD_PROFILE ", "WAYMARK_BINARY "] {
            ensure!(out.contains(word), "{arguments:?}, {word}: {out}");
        }
        ensure!(!scratch.path().join("asked").exists(), "{arguments:?}: it was built");
        Ok(out)
    };
    let settings = root().join("deploy/guide/settings.md").display().to_string();
    for arguments in [&["--help"][..], &["-h"], &["--lan", "--help"]] {
        let out = help(arguments, None)?;
        ensure!(out.contains(&settings) && out.contains("waymark up --help"), "{out}");
    }
    // A binary that is there shows its own help behind it.
    let binary = scratch.path().join("quick/waymark");
    fs::create_dir(scratch.path().join("quick"))?;
    fs::write(&binary, "#!/bin/sh\necho \"started $*\"\n")?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755))?;
    for (argument, binary) in [("--help", None), ("-h", None), ("--help", Some(&*binary))] {
        let out = help(&[argument], binary)?;
        ensure!(out.ends_with(&format!("\nstarted up {argument}\n")), "{out}");
    }
    Ok(())
}

/// What builds for minutes shows cargo's progress.
#[test]
fn no_build_of_the_tests_is_silent() -> Result<()> {
    let script = fs::read_to_string(root().join("tests/run"))?;
    for line in script.lines() {
        let builds = ["cargo build", "cargo clippy", "cargo doc", "cargo check"];
        let is_build = builds.iter().any(|command| line.contains(command));
        ensure!(!is_build || !line.contains("--quiet"), "{line}");
    }
    Ok(())
}
