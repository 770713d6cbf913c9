//! A fleet of real processes: replicas of control over one Postgres schema, on free ports.

use std::{
    collections::HashMap,
    path::PathBuf,
    process::{Command, ExitStatus, Output},
};

use anyhow::{Result, bail, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    db::{Engine, Location, TestDb},
    json,
    killed::Killed,
    product::{DEADLINE, built, client, metrics_of, random_key, spawn_up, value_of},
    redis::RedisServer,
};

/// A fleet; its processes are killed when it is dropped.
pub struct Fleet {
    /// The replicas.
    pub controls: Vec<Control>,
    /// The operator's key.
    pub key: String,
    /// A client that follows no redirect.
    pub http: reqwest::Client,
    /// The region's Redis.
    pub redis: RedisServer,
    /// How controls that are started from now on find Redis.
    pub redis_settings: Vec<(&'static str, String)>,
    /// The folder of everything that the fleet keeps.
    pub dir: PathBuf,
    db: kernel::store::Db,
    database: String,
    _dir: tempfile::TempDir,
}

/// A replica of control.
pub struct Control {
    /// Base of the API: `http://127.0.0.1:port`.
    pub api: String,
    /// MQTT without TLS, as `127.0.0.1:port`.
    pub mqtt: String,
    /// Base of the listener of edges.
    pub internal: String,
    /// Base of the admin listener.
    pub admin: String,
    child: Killed,
}

impl Fleet {
    /// Starts so many replicas over a fresh database with one account and the short domain `tn.gg`.
    pub async fn start(controls: usize) -> Result<Self> {
        let db = TestDb::new(Engine::Postgres).await?;
        let Location::Postgres(url) = &db.location else { bail!("a fleet is on Postgres") };
        Self::start_on(url.clone(), db.db.clone(), controls).await
    }

    /// Starts so many replicas over an empty database, with one account and the short domain `tn.gg`.
    pub async fn start_on(database: String, db: kernel::store::Db, controls: usize) -> Result<Self> {
        // The second call finds the provider there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir()?;
        let redis = RedisServer::start().await?;
        let mut fleet = Self {
            redis_settings: vec![("REDIS_URL", redis.url())],
            controls: Vec::new(),
            key: random_key()?,
            http: client()?,
            redis,
            dir: folder.path().to_owned(),
            db,
            database,
            _dir: folder,
        };
        fleet.control_ok(&["secrets", "new-key"])?;
        fleet.control_ok(&["migrate"])?;
        let key = fleet.key.clone();
        fleet.control_ok(&["accounts", "create", "--domains", "tn.gg", "--operator-key", &key])?;
        for _ in 0..controls {
            fleet.add_control()?;
        }
        Ok(fleet)
    }

    /// Starts one more replica.
    pub fn add_control(&mut self) -> Result<()> {
        let control = self.spawn_control(["127.0.0.1:0"; 3])?;
        self.controls.push(control);
        Ok(())
    }

    /// Starts a replica again, on the ports it had.
    pub fn restart_control(&mut self, at: usize) -> Result<()> {
        let host = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
        let Control { api, internal, admin, .. } = &self.controls[at];
        let ports = [host(api), host(internal), host(admin)];
        self.controls[at] = self.spawn_control(ports.each_ref().map(String::as_str))?;
        Ok(())
    }

    fn spawn_control(&self, [api, internal, admin]: [&str; 3]) -> Result<Control> {
        let mut command = self.control_command()?;
        command
            .arg("serve")
            .env("WAYMARK_API_LISTEN", api)
            .env("WAYMARK_MQTT_LISTEN", "127.0.0.1:0")
            .env("WAYMARK_INTERNAL_LISTEN", internal)
            .env("WAYMARK_ADMIN_LISTEN", admin)
            .env("WAYMARK_FILES_URL", self.dir.join("files"))
            .envs(self.redis_settings.iter().map(|(name, value)| (name, value)));
        let (child, said) = spawn_up(&mut command, DEADLINE)?;
        let must = |label: &str| value_of(&said, label);
        let mqtt = must("MQTT ")?.trim_start_matches("mqtt://").to_owned();
        Ok(Control {
            api: must("API ")?,
            mqtt,
            internal: must("Internal ")?,
            admin: must("Admin ")?,
            child: Killed(child),
        })
    }

    /// The `control` binary over the fleet's schema, without a subcommand.
    pub fn control_command(&self) -> Result<Command> {
        let mut command = Command::new(built("control")?);
        command.env("DATABASE_URL", &self.database).env("RUST_LOG", "warn");
        command.env("WAYMARK_SECRET_KEY_FILE", self.secret_key_file());
        Ok(command)
    }

    /// The keys that encrypt the secrets in the database.
    #[must_use]
    pub fn secret_key_file(&self) -> PathBuf {
        self.dir.join("secret.key")
    }

    /// URL of the fleet's schema.
    #[must_use]
    pub fn database_url(&self) -> &str {
        &self.database
    }

    /// Goes on with another database; replicas that run stay with the one before.
    pub fn move_to(&mut self, database: String, db: kernel::store::Db) {
        (self.database, self.db) = (database, db);
    }

    /// The fleet's database, to look behind the API.
    #[must_use]
    pub fn db(&self) -> &kernel::store::Db {
        &self.db
    }

    /// Runs a command of `control` to its end.
    pub fn control(&self, args: &[&str]) -> Result<Output> {
        Ok(self.control_command()?.args(args).output()?)
    }

    /// Runs a command of `control` that must succeed; gives what it says.
    pub fn control_ok(&self, args: &[&str]) -> Result<String> {
        let output = self.control(args)?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "control {}: {error}", args.join(" "));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Makes a key of an edge.
    pub fn edge_key(&self, edge: &str) -> Result<String> {
        self.control_ok(&["edge-keys", "create", edge])
    }

    /// Calls the API of a replica with the operator's key; gives status and JSON (`null` for an empty body).
    pub async fn call(
        &self,
        at: usize,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Value)> {
        let url = format!("{}{path}", self.controls[at].api);
        let request = self
            .http
            .request(method, url)
            .header(header::AUTHORIZATION, &self.key)
            .header(header::ACCEPT, "application/json");
        json::send(request, body).await
    }

    /// Creates a product; gives its id.
    pub async fn create_product(&self, at: usize) -> Result<String> {
        let (status, body) = self.call(at, Method::POST, "/products", Some(json!({"name": "Bag"}))).await?;
        ensure!(status == StatusCode::CREATED, "{status}: {body}");
        Ok(body["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates a redirection; `query` is empty or such as `?wait=edges`. Gives status and record.
    pub async fn create_redirection(
        &self,
        at: usize,
        product: &str,
        short_id: Option<&str>,
        query: &str,
    ) -> Result<(StatusCode, Value)> {
        let body = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/",
            "shortId": short_id});
        self.call(at, Method::POST, &format!("/redirections{query}"), Some(body)).await
    }

    /// Creates so many redirections in arrays.
    pub async fn create_many(&self, at: usize, product: &str, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let some = left.min(1_000);
            let item = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"});
            let (status, body) =
                self.call(at, Method::POST, "/redirections", Some(json!(vec![item; some]))).await?;
            ensure!(status.is_success(), "{status}: {body}");
            left -= some;
        }
        Ok(())
    }
}

impl Control {
    /// Reads its metrics: name and value of each line.
    pub async fn metrics(&self, http: &reqwest::Client) -> Result<HashMap<String, f64>> {
        metrics_of(http, &self.admin).await
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it: no time to tidy up.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to drain and stop.
    pub fn terminate(&self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.pid().to_string()]).status()?;
        Ok(())
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        self.child.ended().await
    }
}
