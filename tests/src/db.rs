//! A fresh database for each test, on SQLite and on Postgres.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::Context;
use catalog::store::blobs::Blobs;
use control::{
    composition::{Parts, compose},
    service::{base_urls::UrlSettings, prepare},
    state::ApiState,
};
use events::egress::{EgressClient, SystemLookup};
use kernel::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        role,
    },
    service::{Random, RandomUnavailable, access::Caller, capacity::Capacity},
    store::{Ctx, Db, StoreError},
};
use mail::MailSettings;
use printing::service::PrintLimits;
use push::edge_keys::EdgeKeys;
use redirects::writer::WriterTask;
use secrets::keys::SecretKeys;
use serde_json::json;
use shared::{
    geo::CityDatabase,
    id::{AccountId, OperatorId},
    short_url::{Scheme, ShortDomain},
    time::{Clock, UnixMillis},
};
use tenants::store::accounts;
use web::limiter::{Limits, Ticks};

use crate::{clickhouse::ClickHouse, mmdb};

mod postgres;

/// Where `tests/run` put its Postgres: a URL with the name of a database, of somebody who may make more of them.
pub const POSTGRES_URL: &str = "WAYMARK_TEST_DATABASE_URL";

/// The engines that every store test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file in a temporary folder.
    Sqlite,
    /// A database of its own.
    Postgres,
    /// A database of Postgres of its own, and scans in ClickHouse.
    ClickHouse,
}

/// A migrated database that goes with the test.
pub struct TestDb {
    /// The database.
    pub db: Db,
    /// Path or URL, to open it again.
    pub location: Location,
    dir: tempfile::TempDir,
}

impl TestDb {
    /// The folder of the blobs of a test's API.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }
}

/// How to open a test's database again.
#[derive(Debug, Clone)]
pub enum Location {
    /// A file.
    Sqlite(PathBuf),
    /// A URL.
    Postgres(String),
}

impl Location {
    /// Opens the database without migrating it.
    pub async fn open(&self) -> Result<Db, StoreError> {
        match self {
            Self::Sqlite(path) => Db::open_sqlite(path).await,
            Self::Postgres(url) => Db::connect_postgres(url).await,
        }
    }
}

impl TestDb {
    /// Makes and migrates a fresh database.
    ///
    /// # Errors
    /// The engine does not run: then the test fails, it does not skip.
    pub async fn new(engine: Engine) -> anyhow::Result<Self> {
        match engine {
            Engine::Sqlite => {
                let dir = tempfile::tempdir()?;
                let path = dir.path().join("test.db");
                copy_migrated(&path).await?;
                Self::open(Location::Sqlite(path), dir).await
            }
            Engine::Postgres | Engine::ClickHouse => {
                let url = std::env::var(POSTGRES_URL)
                    .with_context(|| format!("{POSTGRES_URL} is not set: run the tests by tests/run"))?;
                Self::in_server(url).await
            }
        }
    }

    /// Makes a fresh database in a server, with the schema of this build.
    pub async fn in_server(url: String) -> anyhow::Result<Self> {
        let own = postgres::copy_of_migrated(&url).await?;
        Self::open(Location::Postgres(own), tempfile::tempdir()?).await
    }

    async fn open(location: Location, dir: tempfile::TempDir) -> anyhow::Result<Self> {
        // A copy of what is migrated: to look for migrations takes longer than the copy.
        Ok(Self { db: location.open().await?, location, dir })
    }
}

/// Puts an empty database of SQLite with the schema of this build into a folder, which is made if it is missing; both are for
/// their owner alone. Starts on nothing are tests of `waymark up` itself.
pub(crate) async fn copy_migrated(to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    fs::copy(migrated().await?, to)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o600))?)
}

/// An empty database of SQLite with the schema of this build, beside the binary. The first test of a binary makes it: fifty
/// migrations take longer than most tests, which start on copies.
async fn migrated() -> anyhow::Result<PathBuf> {
    let built = built()?;
    let folder = std::env::current_exe()?.with_extension("schema");
    fs::create_dir_all(&folder)?;
    let lock = fs::File::create(folder.join("lock"))?;
    // Each test is a process: the others wait.
    lock.lock()?;
    let done = folder.join(format!("{built}.db"));
    if !done.exists() {
        // What is there is of an earlier build, or was interrupted.
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if !path.ends_with("lock") {
                fs::remove_file(path)?;
            }
        }
        let making = folder.join("making.db");
        let db = Db::open_sqlite(&making).await?;
        db.migrate().await?;
        // The last connection leaves everything in the one file.
        db.close().await;
        fs::rename(making, &done)?;
    }
    Ok(done)
}

/// When this binary was built: what it makes for its tests is not for another build.
fn built() -> anyhow::Result<u128> {
    let own = std::env::current_exe()?;
    Ok(own.metadata()?.modified()?.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
}

/// Random bits of the system.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable> {
        getrandom::fill(out).map_err(|_| RandomUnavailable)
    }
}

/// A clock that moves on by one millisecond at each look, from a fixed start.
#[derive(Debug)]
pub struct StepClock(AtomicI64);

impl Default for StepClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_760_000_000_000))
    }
}

impl StepClock {
    /// Moves the clock on.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for StepClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// Largest file of a test's API: 12 MiB.
pub const MAX_TEST_FILE_BYTES: u64 = 12 << 20;

/// An [`ApiState`] over a fresh database with one account and the short domain `tn.gg`.
pub struct TestApp {
    /// The service.
    pub app: Arc<ApiState>,
    /// The account.
    pub account: AccountId,
    /// Its operator.
    pub operator: OperatorId,
    /// The database.
    pub db: TestDb,
    /// Its clock.
    pub clock: Arc<StepClock>,
    /// The writer, until a test runs it.
    pub writer: Option<WriterTask>,
    /// The server of scans, on [`Engine::ClickHouse`].
    pub clickhouse: Option<ClickHouse>,
}

impl TestApp {
    /// Makes the account and runs the writer and the change stream until the runtime ends.
    pub async fn new(engine: Engine) -> anyhow::Result<Self> {
        Self::with(engine, |_| {}).await
    }

    /// [`Self::new`] with other parts.
    pub async fn with(engine: Engine, adapt: impl FnOnce(&mut Parts)) -> anyhow::Result<Self> {
        let mut made = Self::make(engine, adapt).await?;
        if let Some(task) = made.writer.take() {
            let shutdown = tokio_util::sync::CancellationToken::new();
            tokio::spawn(task.run(made.app.core.db.clone(), made.app.core.readers.clone(), shutdown.clone()));
            tokio::spawn(made.app.hub.clone().run(shutdown.clone()));
            tokio::spawn(made.app.events.feed.clone().run(shutdown));
        }
        Ok(made)
    }

    /// Makes the account and leaves the tasks to the test.
    pub async fn without_tasks(engine: Engine) -> anyhow::Result<Self> {
        Self::make(engine, |_| {}).await
    }

    async fn make(engine: Engine, adapt: impl FnOnce(&mut Parts)) -> anyhow::Result<Self> {
        let db = TestDb::new(engine).await?;
        let clickhouse = (engine == Engine::ClickHouse).then(ClickHouse::start).transpose()?;
        let clock = Arc::new(StepClock::default());
        let prepared = prepare(&db.db, &*clock, &SystemRandom, "history", &secret_keys()?).await?;
        let account = AccountId::new(clock.now().0, random16()?);
        let operator = OperatorId::new(clock.now().0, random16()?);
        let mut tx = db.db.begin(&Ctx::default()).await?;
        accounts::insert(&mut tx, account, "Test", true, clock.now().0).await?;
        accounts::insert_operator(&mut tx, operator, account, "o@example.com", ("O", "P"), clock.now().0)
            .await?;
        accounts::insert_domain(&mut tx, account, &ShortDomain::new(Scheme::Https, "tn.gg")?).await?;
        tx.commit().await?;
        keep_everything(&db.db, account).await?;
        let mut parts = Parts {
            db: db.db.clone(),
            secrets: prepared.secrets,
            clock: clock.clone(),
            ticks: Ticks::new(Duration::default),
            random: Arc::new(SystemRandom),
            blobs: Blobs::in_folder(&db.files(), MAX_TEST_FILE_BYTES)?,
            geo_ip: Some(Arc::new(bern()?)),
            // Networks for documentation (RFC 5737): no test connects from there unasked.
            trusted_proxies: "192.0.2.0/24".parse()?,
            egress: egress()?,
            // Nobody answers there: a test that proves a domain has a server of its own.
            dns_server: Some(([127, 0, 0, 1], 9).into()),
            acme: None,
            limits: Limits::default(),
            capacity: Capacity::default(),
            jobs_kept: None,
            printing: PrintLimits::default(),
            // Mails wait: no test runs the worker unasked.
            mail: Some(MailSettings::parse("smtps://mail.invalid", "noreply@example.com")?),
            oidc: None,
            scans: clickhouse.as_ref().map(ClickHouse::server).transpose()?,
            edge_keys: EdgeKeys::with_own("edge-token", "e1"),
            contact: "abuse@example.com".parse().ok(),
            docs_url: "https://api.example/docs".to_owned(),
            urls: UrlSettings::default(),
        };
        adapt(&mut parts);
        let (app, task) = compose(parts).await?;
        Ok(Self { app, account, operator, db, clock, writer: Some(task), clickhouse })
    }

    /// Its operator, as whoever calls the service.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller::plain(Actor {
            account: self.account,
            kind: ActorKind::Operator,
            project: None,
            app: None,
            id: self.operator.to_string(),
            enterprise: true,
            user_rights: UserRights::default(),
            permissions: role::of_owner(),
            confined_to: Vec::new(),
        })
    }
}

/// Most tests look at what came; those of personal data set what is kept.
async fn keep_everything(db: &Db, account: AccountId) -> anyhow::Result<()> {
    const SQL: &str = "UPDATE accounts SET personal_data = 'full' WHERE id = $1";
    match db {
        Db::Pg(pool) => sqlx::query(SQL).bind(account.as_str()).execute(pool).await.map(|_| ())?,
        Db::Sqlite { write, .. } => {
            sqlx::query(SQL).bind(account.as_str()).execute(write).await.map(|_| ())?;
        }
    }
    Ok(())
}

/// The keys that encrypt the secrets in the database of a test's API.
///
/// # Errors
/// None: the text holds a key.
pub fn secret_keys() -> anyhow::Result<SecretKeys> {
    Ok(SecretKeys::parse(&"5a".repeat(32))?)
}

/// What goes out goes to this machine alone.
pub fn egress() -> anyhow::Result<EgressClient> {
    // The second call finds the provider there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    EgressClient::new(true, Arc::new(SystemLookup::default())).map_err(anyhow::Error::msg)
}

/// A geography in which 203.0.113.0/24 is Bern (RFC 5737), and nothing is anywhere else.
fn bern() -> anyhow::Result<CityDatabase> {
    let record = json!({"city": "Bern", "state1": "Bern", "country_code": "CH", "timezone": "Europe/Zurich",
        "latitude": 46.5, "longitude": 7.5});
    Ok(CityDatabase::parse(mmdb::database(6, &[("203.0.113.0/24", record)]))?)
}

/// 128 random bits.
pub fn random16() -> anyhow::Result<[u8; 16]> {
    let mut out = [0; 16];
    getrandom::fill(&mut out).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(out)
}
