//! A schema of a run's own, by `psql`.

use std::{process::Command, time::SystemTime};

use anyhow::{Context, Result, ensure};

/// A schema, removed with everything in it when dropped.
#[derive(Debug)]
pub(crate) struct Schema {
    database: String,
    /// Its name.
    pub(crate) name: String,
}

impl Schema {
    /// Makes an empty one in a database.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub(crate) fn create(database: &str) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let schema = Self { database: database.to_owned(), name: format!("bench{now}") };
        schema.sql(&format!("CREATE SCHEMA {}", schema.name))?;
        Ok(schema)
    }

    /// The URL by which ours use it.
    pub(crate) fn url(&self) -> String {
        format!("{}?options[search_path]={}", self.database, self.name)
    }

    /// `psql` in it, without ornament; ends at the first error.
    pub(crate) fn psql(&self) -> Command {
        let mut command = Command::new("psql");
        // It reads the schema from the environment and not from the URL.
        command.env("PGOPTIONS", format!("-c search_path={}", self.name));
        command.args(["-qXAt", "-v", "ON_ERROR_STOP=1", "-d", &self.database]);
        command
    }

    /// Runs SQL in it; gives what it tells.
    pub(crate) fn sql(&self, text: &str) -> Result<String> {
        let output = self.psql().args(["-c", text]).output().context("psql")?;
        ensure!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // What is left is a schema in a database for tests.
        let _ = self.sql(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}
