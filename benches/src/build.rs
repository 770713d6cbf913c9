//! The binaries that are measured: built in the profile of this program, unless they are given.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// Builds `waymark`, and says where it is.
pub(crate) fn build() -> Result<PathBuf> {
    build_binary("standalone", "waymark")
}

/// Builds a binary of a package, and says where it is.
pub(crate) fn build_binary(package: &str, name: &str) -> Result<PathBuf> {
    let own = env::current_exe()?;
    let folder = own.parent().context("this program has no folder")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "-p", package, "--bin", name]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies nowhere")?;
    let status = command.current_dir(root).status()?;
    ensure!(status.success(), "building {name}: {status}");
    Ok(folder.join(name))
}
