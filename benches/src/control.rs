//! A control of a benchmark's own over Postgres.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tests::{
    killed::Killed,
    product::{DEADLINE, free_ports, random_key, spawn_up, value_of},
};

use crate::{
    args::{DatabaseArgs, given_or_built},
    postgres::Schema,
};

/// Which control, and over what.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ControlArgs {
    /// The control binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// A control of its own, ended when dropped, with its schema.
pub(crate) struct Control {
    _child: Killed,
    /// Where its API listens.
    pub(crate) api: SocketAddr,
    /// Where edges reach it.
    pub(crate) internal: SocketAddr,
    /// The operator's key.
    pub(crate) key: String,
    place: Place,
}

impl Control {
    /// Starts it on a schema of its own, with the account of the domain `tn.gg`.
    pub(crate) fn start(args: &ControlArgs) -> Result<Self> {
        let place = Place {
            binary: given_or_built(args.control.as_deref(), "control", "control")?,
            schema: Schema::create(&args.database.database)?,
            folder: tempfile::tempdir()?,
        };
        let key = random_key()?;
        place.run(&["secrets", "new-key"])?;
        place.run(&["migrate"])?;
        place.run(&["accounts", "create", "--domains", "tn.gg", "--operator-key", &key])?;
        let mut serve = place.command();
        serve
            .arg("serve")
            .envs([("RUST_LOG", "warn"), ("WAYMARK_REQUESTS_PER_KEY", "0")])
            // Nobody reads the view here, and Redis is in nothing's way.
            .env("REDIS_URL", "redis://127.0.0.1:1")
            .env("WAYMARK_FILES_URL", place.folder.path().join("files"))
            .envs(free_ports(["API", "INTERNAL", "ADMIN"]))
            .stdin(Stdio::null());
        let (child, said) = spawn_up(&mut serve, DEADLINE)?;
        let address = |label: &str| -> Result<SocketAddr> {
            Ok(value_of(&said, label)?.trim_start_matches("http://").parse()?)
        };
        Ok(Self { _child: Killed(child), api: address("API ")?, internal: address("Internal ")?, key, place })
    }

    /// Makes the key of an edge.
    pub(crate) fn edge_key(&self, name: &str) -> Result<String> {
        self.place.run(&["edge-keys", "create", name])
    }

    /// Makes a key of the platform.
    pub(crate) fn platform_key(&self) -> Result<String> {
        self.place.run(&["platform", "keys", "create"])
    }

    /// Its schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.place.schema
    }
}

/// The binary, and what it works on: files and the keys of its secrets are in the folder.
struct Place {
    binary: PathBuf,
    schema: Schema,
    folder: tempfile::TempDir,
}

impl Place {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env("DATABASE_URL", self.schema.url())
            .env("WAYMARK_SECRET_KEY_FILE", self.folder.path().join("secret.key"));
        command
    }

    /// Runs a command that must succeed; gives what it prints.
    fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.command().args(args).output();
        let output = output.with_context(|| self.binary.display().to_string())?;
        ensure!(output.status.success(), "control {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}
