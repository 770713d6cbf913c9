//! A backup from before a rotation, and a restore without its key.

use anyhow::{Context, Result, ensure};
use tests::product::{Options, Product};

use super::{Holdings, keys_of, waymark};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_from_before_a_rotation_is_restored_with_both_keys() -> Result<()> {
    let mut product = Product::start(Options::default()).await?;
    let held = Holdings::new(&product).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("waymark.backup");
    let (path, backup) = (product.data.join("secret.key"), file.to_str().context("path")?);
    let older = keys_of(&path)?.current().to_string();
    let text = std::fs::read_to_string(&path)?;
    let (code, said) = waymark(&product.data, &product.location(), &["backup", backup])?;
    ensure!(code == Some(0), "{said}");
    let last = said.lines().last().unwrap_or_default();
    ensure!(last.contains("key file is not in it") && last.contains("secret.key"), "{said}");
    let bytes = std::fs::read(&file)?;
    let key = text.trim().as_bytes();
    ensure!(!bytes.windows(key.len()).any(|window| window == key), "the key is in the backup");
    for args in [["secrets", "new-key"], ["secrets", "rotate"]] {
        let (code, said) = waymark(&product.data, &product.location(), &args)?;
        ensure!(code == Some(0), "{said}");
    }
    ensure!(product.stop()?.success());

    let restore = ["restore", backup, "--replace"];
    let (code, said) = waymark(&product.data, &product.location(), &restore)?;
    ensure!(code == Some(0) && !said.contains("cannot be used yet"), "{said}");
    product.start_again()?;
    held.work(&product).await?;
    ensure!(product.stop()?.success());

    // Without the older line the restore says so, and the start refuses.
    let both = std::fs::read_to_string(&path)?;
    std::fs::write(&path, both.lines().next().unwrap_or_default())?;
    let (code, said) = waymark(&product.data, &product.location(), &restore)?;
    let last = said.lines().last().unwrap_or_default();
    ensure!(code == Some(0) && last.contains("cannot be used yet") && last.contains(&older), "{said}");
    let (code, said) = waymark(&product.data, &product.location(), &["up"])?;
    ensure!(code == Some(64) && said.contains(&older), "{said}");
    std::fs::write(&path, both)?;
    product.start_again()?;
    held.work(&product).await?;

    // A folder without any key file gets none, so that it stays clear which one is missing.
    let empty = folder.path().join("data");
    let location = tests::db::Location::Sqlite(empty.join("waymark.db"));
    let (code, said) = waymark(&empty, &location, &["restore", backup])?;
    ensure!(code == Some(0) && said.contains("cannot be used yet") && said.contains(&older), "{said}");
    let (code, said) = waymark(&empty, &location, &["up"])?;
    ensure!(code == Some(64) && said.contains(&older) && said.contains("is not there"), "{said}");
    ensure!(!empty.join("secret.key").exists());
    Ok(())
}
