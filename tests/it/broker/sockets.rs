//! Plain WebSockets on the paths of the API, driven by Node, which has a client of its own.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::{db::Engine, product::root};

use super::Broker;

/// Runs a script with the broker's addresses and keys.
async fn run(broker: &Broker, thng: &str, thng_key: &str) -> Result<()> {
    let mut command = Command::new("node");
    command
        .arg("socket.mjs")
        .current_dir(root().join("tests/clients"))
        .env("WAYMARK_WS_URL", broker.api.replacen("http", "ws", 1))
        .env("WAYMARK_API_URL", &broker.api)
        .env("WAYMARK_OPERATOR_KEY", &broker.key)
        .env("WAYMARK_OTHER_KEY", &broker.other_key)
        .env("WAYMARK_THNG", thng)
        .env("WAYMARK_THNG_KEY", thng_key);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && said.trim_end().ends_with("done"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

async fn paths_are_sockets(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    run(&broker, &thng, &key).await?;
    broker.until_connected(&thng, &[true, false]).await
}

crate::on_both_engines!(paths_are_sockets);
