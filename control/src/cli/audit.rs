//! `control audit`: checks the audit trail.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use kernel::store::{Db, audit::platform_trail};
use shared::id::AccountId;
use tenants::{service::audit, store::accounts};

use super::{connect, failed, say};
use crate::{
    config::{ConfigError, Place, SecretKeyFile},
    failure::Failure,
    secret_key_file, serve,
};

/// Arguments of `control audit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that no entry of the audit trail was changed, moved or removed; exit code 1 if one was.
    ///
    /// Entries are part of the check from seconds after they were made.
    Verify {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        file: SecretKeyFile,
    },
}

/// Whose trail is checked.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Id of the account [default: every account, and the platform itself]
    #[arg(long, value_name = "ID")]
    account: Option<String>,
}

pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let Command::Verify { which, place, file } = args.command;
    let path = place.secret_key_file(file)?;
    secret_key_file::read(&path)?;
    let db = connect(place).await?;
    let code = verify(&db, &path, which).await?;
    db.close().await;
    Ok(code)
}

/// Checks trails and says for each one what was found.
///
/// # Errors
/// There is no such account, or the key file cannot be used.
pub async fn verify(db: &Db, path: &Path, which: Which) -> Result<ExitCode, Failure> {
    let account = which.account.as_deref().map(str::parse::<AccountId>).transpose();
    let account = account.map_err(|error| ConfigError::new("--account", error.to_string()))?;
    let keys = secret_key_file::read(path)?;
    let mut conn = db.read().await.map_err(failed)?;
    let accounts = match account {
        Some(account) if accounts::exists(&mut conn, account).await.map_err(failed)? => vec![account],
        Some(_) => return Err(ConfigError::new("--account", "there is no such account").into()),
        None => {
            let mut all = accounts::list_ids(&mut conn).await.map_err(failed)?;
            all.push(platform_trail());
            all
        }
    };
    let key = ::secrets::find(&mut conn, &keys, "audit").await;
    drop(conn);
    let Some(key) = key.map_err(|error| serve::refused_secrets(path, error))? else {
        say("No server of this release has run with this database: there is no audit trail.");
        return Ok(ExitCode::SUCCESS);
    };
    let mut code = ExitCode::SUCCESS;
    for account in accounts {
        let whose = if account == platform_trail() { "platform".to_owned() } else { account.to_string() };
        match audit::verify(db, &key, account).await.map_err(failed)? {
            Ok(entries) => say(&format!("{whose}  {entries} entries, none changed or missing")),
            Err(broken) => {
                say(&format!("{whose}  {broken}"));
                code = ExitCode::from(1);
            }
        }
    }
    for (seq, fault) in audit::rejects(db).await.map_err(failed)? {
        say(&format!("entry {seq} of audit_rejects is in no trail, because it cannot be read: {fault}"));
        code = ExitCode::from(1);
    }
    Ok(code)
}
