//! Edges of a fleet as processes, each with its own key, data folder and name.

use std::{
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use reqwest::{StatusCode, header};
use serde_json::Value;

use crate::{
    fleet::Fleet,
    killed::Killed,
    product::{DEADLINE, PHONE, built, spawn_until, value_of},
    redis::signal,
};

/// An edge of a fleet; killed when dropped.
pub struct FleetEdge {
    /// Its name.
    pub name: String,
    /// Base of short URLs: `http://127.0.0.1:port`.
    pub url: String,
    /// Base of the admin listener.
    pub admin: String,
    settings: Vec<(&'static str, String)>,
    child: Killed,
}

impl Fleet {
    /// Starts an edge that knows every replica there is now.
    pub fn add_edge(&self, name: &str) -> Result<FleetEdge> {
        self.add_edge_with(name, self.redis_settings.clone())
    }

    /// Starts an edge that finds Redis by settings of its own.
    pub fn add_edge_with(&self, name: &str, redis: Vec<(&'static str, String)>) -> Result<FleetEdge> {
        let mut settings = self.edge_settings(name)?;
        settings.extend(redis);
        let (child, url, admin) = spawn(&settings, ["127.0.0.1:0"; 2])?;
        Ok(FleetEdge { name: name.to_owned(), url, admin, settings, child: Killed(child) })
    }

    /// The settings of an edge that knows every replica there is now, and not yet Redis; it gets a key.
    pub fn edge_settings(&self, name: &str) -> Result<Vec<(&'static str, String)>> {
        let folder: PathBuf = self.dir.join(name);
        std::fs::create_dir_all(&folder)?;
        let key_file = folder.join("key");
        crate::product::write_key(&key_file, &self.edge_key(name)?)?;
        let all = |of: fn(&crate::fleet::Control) -> &String| {
            self.controls.iter().map(|control| of(control).clone()).collect::<Vec<_>>().join(",")
        };
        Ok(vec![
            ("WAYMARK_EDGE_ID", name.to_owned()),
            ("WAYMARK_DATA_DIR", folder.join("data").display().to_string()),
            ("WAYMARK_EDGE_KEY_FILE", key_file.display().to_string()),
            ("WAYMARK_CONTROL_URLS", all(|control| &control.internal)),
            ("WAYMARK_API_URLS", all(|control| &control.api)),
            ("RUST_LOG", "error".to_owned()),
        ])
    }
}

fn spawn(settings: &[(&'static str, String)], [plain, admin]: [&str; 2]) -> Result<(Child, String, String)> {
    let mut command = Command::new(built("edge")?);
    command
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .env("WAYMARK_EDGE_LISTEN", plain)
        .env("WAYMARK_ADMIN_LISTEN", admin);
    let (child, said) = spawn_until(&mut command, "Ready", DEADLINE)?;
    Ok((child, value_of(&said, "Edge ")?, value_of(&said, "Admin ")?))
}

impl FleetEdge {
    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder of what it keeps.
    pub fn data_dir(&self) -> Result<PathBuf> {
        let found = self.settings.iter().find(|(name, _)| *name == "WAYMARK_DATA_DIR");
        Ok(found.context("no folder")?.1.clone().into())
    }

    /// Kills it: no time to tidy up.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to drain and stop, and waits until it has.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        signal(self.pid(), "TERM")?;
        self.child.ended().await.with_context(|| self.name.clone())
    }

    /// Starts it again on the same ports and folder.
    pub fn start_again(&mut self) -> Result<()> {
        let host = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
        let ports = [host(&self.url), host(&self.admin)];
        let (child, ..) = spawn(&self.settings, ports.each_ref().map(String::as_str))?;
        self.child = Killed(child);
        Ok(())
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value.to_owned()));
    }

    /// What `/ready` says.
    pub async fn ready(&self, http: &reqwest::Client) -> Result<Value> {
        Ok(http.get(format!("{}/ready", self.admin)).send().await?.json().await?)
    }

    /// Waits until it follows the stream and has applied everything up to `rev`.
    pub async fn until_live(&self, http: &reqwest::Client, rev: u64) -> Result<()> {
        let (begun, mut last) = (Instant::now(), None);
        while begun.elapsed() < DEADLINE {
            let ready = self.ready(http).await?;
            if ready["state"] == "LIVE" && ready["applied"].as_u64() >= Some(rev) {
                return Ok(());
            }
            last = Some(ready);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("{} is not live at {rev}: {last:?}", self.name)
    }

    /// Scans a short id as a phone; gives status and `Location`.
    pub async fn scan(&self, http: &reqwest::Client, short_id: &str) -> Result<(StatusCode, Option<String>)> {
        let request = http
            .get(format!("{}/{short_id}", self.url))
            .header(header::HOST, "tn.gg")
            .header(header::USER_AGENT, PHONE);
        let response = request.send().await?;
        let location =
            response.headers().get(header::LOCATION).map(|value| value.to_str().map(str::to_owned));
        Ok((response.status(), location.transpose()?))
    }
}
