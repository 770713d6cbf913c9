//! Starts with a key file that is missing, open, wrong or older than the database.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use anyhow::{Result, ensure};
use tests::{
    db::Engine,
    fleet::Fleet,
    product::{Options, Product, free_ports},
};

use super::{Holdings, keys_of, rows, waymark};
use crate::on_both_engines;

on_both_engines!(a_start_without_the_right_key_is_refused);

async fn a_start_without_the_right_key_is_refused(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let held = Holdings::new(&product).await?;
    ensure!(product.stop()?.success());
    let (path, location) = (product.data.join("secret.key"), product.location());
    ensure!(fs::metadata(&path)?.permissions().mode() & 0o777 == 0o600);
    let (right, stored) = (fs::read_to_string(&path)?, rows(&location).await?);
    let id = keys_of(&path)?.current().to_string();
    let key = right.trim();
    for (why, text, mode, says) in [
        ("missing", None, 0o600, &[&*id, "is not there: put the key file back"][..]),
        ("another key", Some("7e".repeat(32)), 0o600, &[&id, "put the line of the missing key back"]),
        ("open to its group", Some(right.clone()), 0o640, &["mode 640", "chmod 600"]),
        ("open to others", Some(right.clone()), 0o604, &["mode 604", "chmod 600"]),
        ("empty", Some(String::new()), 0o600, &["holds no key"]),
        ("too short", Some(key[2..].to_owned()), 0o600, &["line 1 is no key of 64"]),
        ("malformed", Some(format!("{right}secret=1\n")), 0o600, &["line 2 is no key of 64"]),
    ] {
        fs::remove_file(&path)?;
        if let Some(text) = &text {
            fs::write(&path, text)?;
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        for args in [&["up"][..], &["secrets", "rotate"]] {
            let (code, said) = waymark(&product.data, &location, args)?;
            ensure!(code == Some(64), "{why} {args:?}: {code:?} {said}");
            let line = said.lines().last().unwrap_or_default();
            ensure!(line.starts_with("waymark: WAYMARK_SECRET_KEY_FILE: "), "{why}: {said}");
            // A tool does not look into the database for the name of a key whose file is missing.
            let looks = why != "missing" || args == ["up"];
            ensure!(!looks || says.iter().all(|part| line.contains(part)), "{why} {args:?}: {said}");
            for secret in [&key[2..], &"7e".repeat(32), "secret=1"] {
                ensure!(!said.contains(secret), "{why}: shows a key");
            }
        }
        ensure!(path.exists() == text.is_some(), "{why}: no file was made");
        ensure!(rows(&location).await? == stored, "{why}: the database is as it was");
        fs::write(&path, &right)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    }
    fs::rename(&path, product.data.join("kept"))?;
    fs::create_dir(&path)?;
    let (code, said) = waymark(&product.data, &location, &["up"])?;
    ensure!(code == Some(64) && said.contains("is no file"), "{said}");
    fs::remove_dir(&path)?;
    fs::rename(product.data.join("kept"), &path)?;
    product.start_again()?;
    held.work(&product).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_need_the_key_file_of_the_fleet() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let stored = rows_of(&fleet).await?;
    let other = fleet.dir.join("other.key");
    ensure!(
        fleet
            .control_command()?
            .args(["secrets", "new-key", "--secret-key-file"])
            .arg(&other)
            .status()?
            .success()
    );
    let right = keys_of(&fleet.secret_key_file())?.current().to_string();
    let files = fleet.dir.join("files");
    for args in [&["serve"][..], &["worker"], &["migrate"], &["secrets", "rotate"]] {
        for (file, says) in [
            (String::new(), "control secrets new-key"),
            (fleet.dir.join("none").display().to_string(), "is not there"),
            (other.display().to_string(), &*right),
        ] {
            let mut command = fleet.control_command()?;
            command.args(args).env("WAYMARK_SECRET_KEY_FILE", &file).env("WAYMARK_FILES_URL", &files);
            command.envs(fleet.redis_settings.iter().map(|(name, value)| (name, value)));
            command.envs(free_ports(["API", "INTERNAL", "ADMIN"]));
            let output = command.output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.code() == Some(64), "{args:?} {file}: {said}");
            let line = said.lines().last().unwrap_or_default();
            ensure!(line.starts_with("control: WAYMARK_SECRET_KEY_FILE: ") && line.contains(says), "{said}");
        }
    }
    ensure!(rows_of(&fleet).await? == stored, "the database is as it was");
    // The one that runs goes on.
    fleet.create_product(0).await?;
    Ok(())
}

async fn rows_of(fleet: &Fleet) -> Result<Vec<(String, Vec<u8>)>> {
    Ok(::secrets::store::list(&mut fleet.db().read().await?).await?)
}
