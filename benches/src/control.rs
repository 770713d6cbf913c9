//! A control of a benchmark's own over Postgres.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};

/// Which control, and over what.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ControlArgs {
    /// The control binary
    #[arg(long, value_name = "FILE", default_value = "target/release/control")]
    control: PathBuf,
    /// A Postgres database in which a schema of its own is made and removed again
    #[arg(long, env = "WAYMARK_TEST_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database: String,
}

/// A control of its own, ended when dropped, with its schema.
pub(crate) struct Control {
    child: Child,
    binary: PathBuf,
    /// Where its API listens.
    pub(crate) api: SocketAddr,
    /// Where edges reach it.
    pub(crate) internal: SocketAddr,
    /// The operator's key.
    pub(crate) key: String,
    /// The URL of its database, with the schema.
    pub(crate) database: String,
    schema: String,
}

impl Control {
    /// Starts it on a schema of its own, with the account of the domain `tn.gg`.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(args: &ControlArgs) -> Result<Self> {
        let ControlArgs { control: binary, database } = args;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let schema = format!("bench{now}");
        sql(database, &format!("CREATE SCHEMA {schema}"))?;
        let database = format!("{database}?options[search_path]={schema}");
        // Eighty characters, new for each run; it opens nothing but this run's schema.
        let key: String = format!("{now:0>40}").repeat(2);
        let keys = key_file(&database);
        command(binary, &database, &["secrets", "new-key"])?;
        command(binary, &database, &["migrate"])?;
        let create = ["accounts", "create", "--domains", "tn.gg", "--operator-key", &key];
        command(binary, &database, &create)?;
        let mut child = Command::new(binary)
            .arg("serve")
            .envs([("DATABASE_URL", &*database), ("RUST_LOG", "warn"), ("WAYMARK_REQUESTS_PER_KEY", "0")])
            // Nobody reads the view here, and Redis is in nothing's way.
            .env("REDIS_URL", "redis://127.0.0.1:1")
            .env("WAYMARK_SECRET_KEY_FILE", keys)
            .env("WAYMARK_FILES_URL", std::env::temp_dir().join(&schema))
            .envs(["API", "INTERNAL", "ADMIN"].map(|name| (format!("WAYMARK_{name}_LISTEN"), "127.0.0.1:0")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let mut address = |label: &str| -> Result<SocketAddr> {
            for line in lines.by_ref() {
                if let Some(url) = line?.trim().strip_prefix(label) {
                    return Ok(url.trim().trim_start_matches("http://").parse()?);
                }
            }
            bail!("control did not come up")
        };
        let (api, internal) = (address("API ")?, address("Internal ")?);
        // The rest of what it says goes nowhere, and must not fill the pipe.
        std::thread::spawn(move || lines.by_ref().for_each(drop));
        Ok(Self { child, binary: binary.clone(), api, internal, key, database, schema })
    }

    /// Makes the key of an edge.
    ///
    /// # Errors
    /// The command fails.
    pub(crate) fn edge_key(&self, name: &str) -> Result<String> {
        command(&self.binary, &self.database, &["edge-keys", "create", name])
    }

    /// `psql` in its schema.
    pub(crate) fn psql(&self) -> Command {
        psql(&self.database)
    }

    /// Runs SQL in its schema; gives what it tells.
    ///
    /// # Errors
    /// It fails.
    pub(crate) fn sql(&self, text: &str) -> Result<String> {
        sql(&self.database, text)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // It may have ended already; what is left is a schema in a database for tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(key_file(&self.database));
        let url = self.database.split('?').next().unwrap_or_default();
        let _ = sql(url, &format!("DROP SCHEMA {} CASCADE", self.schema));
    }
}

/// The keys that encrypt the secrets in a database of ours.
fn key_file(database: &str) -> PathBuf {
    let schema = database.rsplit('=').next().unwrap_or_default();
    std::env::temp_dir().join(format!("{schema}.key"))
}

/// Runs a command of control that must succeed; gives what it prints.
fn command(control: &Path, database: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(control);
    command.env("DATABASE_URL", database).env("WAYMARK_SECRET_KEY_FILE", key_file(database));
    let output = command.args(args).output();
    let output = output.with_context(|| control.display().to_string())?;
    ensure!(output.status.success(), "control {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// `psql` on a database of ours, whose schema it reads from the environment and not from the URL.
fn psql(url: &str) -> Command {
    let (url, schema) = url.split_once("?options[search_path]=").unwrap_or((url, "public"));
    let mut command = Command::new("psql");
    command.env("PGOPTIONS", format!("-c search_path={schema}"));
    command.args(["-qXAt", "-v", "ON_ERROR_STOP=1", "-d", url]);
    command
}

/// Runs SQL; gives what it tells, without ornament.
fn sql(url: &str, text: &str) -> Result<String> {
    let output = psql(url).args(["-c", text]).output().context("psql")?;
    ensure!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
