//! A rotation while requests are under way.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ::secrets::keys::key_of;
use anyhow::{Result, ensure};
use tests::{
    db::Engine,
    fleet::Fleet,
    product::{Options, Product},
};

use super::{Holdings, keys_of, rows, waymark};
use crate::on_both_engines;

on_both_engines!(a_rotation_loses_no_request);

async fn a_rotation_loses_no_request(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let held = Arc::new(Holdings::new(&product).await?);
    let location = product.location();
    let mut product = Arc::new(product);
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let working: Vec<_> = (0..4)
        .map(|_| {
            let (product, held, stop, done) = (product.clone(), held.clone(), stop.clone(), done.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    held.work(&product).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    let path = product.data.join("secret.key");
    for round in 1..=5 {
        let begun = done.load(Ordering::Relaxed);
        let (code, said) = waymark(&product.data, &location, &["secrets", "new-key"])?;
        ensure!(code == Some(0), "{said}");
        let keys = keys_of(&path)?;
        ensure!(keys.ids().count() == round + 1 && said.contains(&keys.current().to_string()), "{said}");
        for says in ["10 secrets were encrypted", "0 secrets were encrypted"] {
            let (code, said) = waymark(&product.data, &location, &["secrets", "rotate"])?;
            ensure!(code == Some(0) && said.contains(says), "{said}");
            for line in std::fs::read_to_string(&path)?.lines() {
                ensure!(!said.contains(line), "shows a key");
            }
        }
        for (name, value) in rows(&location).await? {
            ensure!(key_of(&value) == Some(keys.current()), "{name}");
        }
        while done.load(Ordering::Relaxed) < begun + 4 && working.iter().all(|task| !task.is_finished()) {
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for task in working {
        task.await??;
    }
    ensure!(done.load(Ordering::Relaxed) >= 20);
    // And the next start takes the first key alone.
    let product = Arc::get_mut(&mut product).ok_or_else(|| anyhow::anyhow!("in use"))?;
    ensure!(product.stop()?.success());
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(&path, text.lines().next().unwrap_or_default())?;
    product.start_again()?;
    held.work(product).await
}

/// A replica that starts while the file is exchanged and the database rotated comes up, or would say why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_start_while_keys_are_rotated() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let (stop, file) = (Arc::new(AtomicBool::new(false)), fleet.secret_key_file());
    let rotating = {
        let (stop, file, url) = (stop.clone(), file.clone(), fleet.database_url().to_owned());
        let control = tests::product::built("control")?;
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for args in [["secrets", "new-key"], ["secrets", "rotate"]] {
                    let mut command = Command::new(&control);
                    command.args(args).env("DATABASE_URL", &url).env("WAYMARK_SECRET_KEY_FILE", &file);
                    let output = command.output()?;
                    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                }
            }
            Ok(())
        })
    };
    let started = (0..5).try_for_each(|_| fleet.add_control());
    stop.store(true, Ordering::Relaxed);
    rotating.join().map_err(|_| anyhow::anyhow!("panicked"))??;
    started?;
    // What one replica derives, the others take.
    let product = fleet.create_product(0).await?;
    for at in 1..fleet.controls.len() {
        let (status, body) =
            fleet.call(at, reqwest::Method::GET, &format!("/products/{product}"), None).await?;
        ensure!(status.is_success(), "{status} {body}");
    }
    Ok(())
}
