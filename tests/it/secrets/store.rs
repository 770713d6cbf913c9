//! The secrets of a database: encrypted in place, created, rotated and refused, by one process and by two at once.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use control::service::{Prepared, prepare};
use kernel::{service::Secrets, store::Db};
use secrets::{
    Rotated, SecretsError,
    keys::{SecretKeys, key_of, line_of},
    rotate,
};
use tests::db::{Engine, Location, StepClock, SystemRandom, TestDb};

use super::{put, rows, set_back};
use crate::on_both_engines;

on_both_engines!(
    plain_secrets_are_encrypted_in_place,
    two_processes_encrypt_at_once,
    two_processes_create_at_once,
    what_does_not_decrypt_is_refused_and_stays,
    a_rotation_changes_each_value_once,
    rotations_at_once_leave_every_value_readable,
);

fn keys(bytes: &[u8]) -> SecretKeys {
    let lines: Vec<String> = bytes.iter().map(|byte| line_of(&[*byte; 32])).collect();
    SecretKeys::parse(&lines.join("\n")).unwrap()
}

async fn start(db: &Db, keys: &SecretKeys) -> Result<Prepared, SecretsError> {
    prepare(db, &StepClock::default(), &SystemRandom, "history", keys).await
}

fn all(secrets: &Secrets) -> [[u8; 32]; 10] {
    [
        secrets.page_token,
        secrets.scan_id,
        secrets.file_url,
        secrets.api_key,
        secrets.webhook,
        secrets.kept_answer,
        secrets.mail,
        secrets.sign_in,
        secrets.certificate,
        secrets.audit,
    ]
}

/// Whether a file, or the log beside it, holds these bytes.
fn file_holds(path: &Path, bytes: &[u8]) -> Result<bool> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let content = [std::fs::read(path)?, std::fs::read(log).unwrap_or_default()].concat();
    Ok(content.windows(bytes.len()).any(|window| window == bytes))
}

async fn plain_secrets_are_encrypted_in_place(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let before = all(&start(&made.db, &keys(&[1])).await?.secrets);
    let plain = set_back(&made.location, &keys(&[1])).await?;
    if let Location::Sqlite(path) = &made.location {
        ensure!(plain.iter().all(|(_, value)| file_holds(path, value).unwrap_or(false)), "they are plain");
    }
    made.db.migrate().await?;
    let after = all(&start(&made.db, &keys(&[2])).await?.secrets);
    ensure!(before[..5] == after[..5], "the secrets stay");
    ensure!(before[5] != after[5] && before[6] != after[6], "these are new");
    for (name, value) in rows(&made.location).await? {
        ensure!(value.len() == 65 && key_of(&value) == Some(keys(&[2]).current()), "{name}");
    }
    if let Location::Sqlite(path) = &made.location {
        for (name, value) in &plain {
            ensure!(!file_holds(path, value)?, "{name} is in the file still");
        }
    }
    ensure!(all(&start(&made.db, &keys(&[2])).await?.secrets) == after);
    Ok(())
}

async fn two_processes_encrypt_at_once(engine: Engine) -> Result<()> {
    for second in [1, 2] {
        let made = TestDb::new(engine).await?;
        let before = all(&start(&made.db, &keys(&[9])).await?.secrets);
        set_back(&made.location, &keys(&[9])).await?;
        let other = made.location.open().await?;
        let (mine, yours) = (keys(&[1]), keys(&[second]));
        let starts = tokio::join!(start(&made.db, &mine), start(&other, &yours));
        let winners: Vec<_> = [starts.0, starts.1].into_iter().filter_map(Result::ok).collect();
        // With a key of its own the second does not start, whichever that is.
        ensure!(winners.len() == if second == 1 { 2 } else { 1 }, "{second}: {}", winners.len());
        let last = winners.iter().map(|prepared| all(&prepared.secrets)).collect::<Vec<_>>();
        ensure!(last.iter().all(|secrets| secrets[..5] == before[..5] && *secrets == last[0]), "{second}");
        let used: Vec<_> =
            rows(&made.location).await?.iter().filter_map(|(_, value)| key_of(value)).collect();
        ensure!(used.len() == 10 && used.iter().all(|id| *id == used[0]), "{used:?}");
    }
    Ok(())
}

async fn two_processes_create_at_once(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let other = made.location.open().await?;
    let keys = keys(&[1]);
    let (first, second) = tokio::join!(start(&made.db, &keys), start(&other, &keys));
    ensure!(all(&first?.secrets) == all(&second?.secrets));
    Ok(())
}

async fn what_does_not_decrypt_is_refused_and_stays(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    start(&made.db, &keys(&[1])).await?;
    let good = rows(&made.location).await?;
    let value = |name: &str| good.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let moved = value("webhook").unwrap_or_default();
    let mut changed = value("api-key").unwrap_or_default();
    changed[40] ^= 1;
    let newer = [&[2][..], &changed[1..]].concat();
    for (why, put_there, held) in [
        ("another key", None, 2),
        ("moved from another name", Some(moved), 1),
        ("changed", Some(changed), 1),
        ("of a newer form", Some(newer), 1),
        ("plain among encrypted ones", Some(vec![7; 32]), 1),
        ("cut off", Some(vec![1; 10]), 1),
        ("empty", Some(Vec::new()), 1),
    ] {
        if let Some(value) = &put_there {
            put(&made.location, "api-key", value).await?;
        }
        let before = rows(&made.location).await?;
        let refused = [
            start(&made.db, &keys(&[held])).await.err(),
            rotate(&made.db, &keys(&[held]), &SystemRandom, 1).await.err(),
        ];
        for error in refused {
            let Some(error) = error else { bail!("{why}: taken") };
            let is_as_meant = match &error {
                SecretsError::MissingKeys { missing, held } => {
                    put_there.is_none()
                        && *missing == [keys(&[1]).current()]
                        && *held == [keys(&[2]).current()]
                        && error.to_string().contains(&missing[0].to_string())
                }
                SecretsError::Invalid(name) => put_there.is_some() && name == "api-key",
                SecretsError::Store(_) | SecretsError::Random(_) => false,
            };
            ensure!(is_as_meant, "{why}: {error}");
        }
        ensure!(rows(&made.location).await? == before, "{why}: nothing was written");
        put(&made.location, "api-key", &value("api-key").unwrap_or_default()).await?;
    }
    start(&made.db, &keys(&[1])).await?;
    Ok(())
}

async fn a_rotation_changes_each_value_once(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let before = all(&start(&made.db, &keys(&[1])).await?.secrets);
    for expected in [Rotated { changed: 10, unchanged: 0 }, Rotated { changed: 0, unchanged: 10 }] {
        let done = rotate(&made.db, &keys(&[2, 1]), &SystemRandom, 1).await?;
        ensure!(done == expected, "{done:?}");
    }
    ensure!(start(&made.db, &keys(&[1])).await.is_err(), "the older key is of no use");
    for held in [&[2][..], &[2, 1], &[1, 2]] {
        ensure!(all(&start(&made.db, &keys(held)).await?.secrets) == before, "{held:?}");
    }
    // One that was broken off goes on.
    let one = rows(&made.location).await?.swap_remove(0);
    let value = keys(&[2]).open(&one.0, &one.1).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    put(&made.location, &one.0, &keys(&[1]).seal(&one.0, &value, [1; 12]).unwrap_or_default()).await?;
    ensure!(all(&start(&made.db, &keys(&[2, 1])).await?.secrets) == before);
    let done = rotate(&made.db, &keys(&[2, 1]), &SystemRandom, 1).await?;
    ensure!(done == Rotated { changed: 1, unchanged: 9 }, "{done:?}");
    Ok(())
}

async fn rotations_at_once_leave_every_value_readable(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    let before = all(&start(&made.db, &keys(&[1])).await?.secrets);
    let other = made.location.open().await?;
    for (mine, yours) in [([2, 1, 3], [2, 1, 3]), ([3, 2, 1], [1, 2, 3])] {
        let (mine, yours) = (keys(&mine), keys(&yours));
        let (first, second) =
            tokio::join!(rotate(&made.db, &mine, &SystemRandom, 1), rotate(&other, &yours, &SystemRandom, 1));
        first?;
        second?;
        ensure!(all(&start(&made.db, &keys(&[1, 2, 3])).await?.secrets) == before);
    }
    Ok(())
}
