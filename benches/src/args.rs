//! Options that several scenarios have.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// How long is measured; each scenario says its own defaults by `mut_arg`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Length {
    /// Rounds of each case, alternated between what is compared
    #[arg(long, required = false)]
    pub(crate) rounds: usize,
    /// Measured seconds of one case in one round
    #[arg(long, required = false)]
    pub(crate) seconds: f64,
}

/// Which `waymark` is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WaymarkArgs {
    /// The waymark binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) waymark: Option<PathBuf>,
}

impl WaymarkArgs {
    /// Where it is; it is built unless it was given.
    pub(crate) fn binary(&self) -> Result<PathBuf> {
        given_or_built(self.waymark.as_deref(), "standalone", "waymark")
    }
}

/// What is asked for by scenarios that compare redirects.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RedirectArgs {
    /// Redirections that are asked for at random
    #[arg(long, default_value_t = 10_000)]
    pub(crate) links: usize,
    #[command(flatten)]
    pub(crate) length: Length,
    /// Ask by GET, so that scans are recorded, and stored meanwhile
    #[arg(long)]
    pub(crate) get: bool,
    #[command(flatten)]
    pub(crate) waymark: WaymarkArgs,
}

impl RedirectArgs {
    /// Refuses sizes that no scenario can measure.
    ///
    /// # Errors
    /// There are no redirections or too many, or no rounds.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!((1..=10_000).contains(&self.links) && self.length.rounds >= 1, "sizes are out of range");
        Ok(())
    }
}

/// Which Postgres is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// A Postgres database in which a schema of its own is made and removed again
    #[arg(long, env = "WAYMARK_TEST_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database: String,
}

/// The binary that was given, or that of a package, built in the profile of this program.
pub(crate) fn given_or_built(given: Option<&Path>, package: &str, name: &str) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
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
