//! What an assessment and a list of states cost, by how much there is. On SQLite, or with `WAYMARK_TEST_DATABASE_URL`
//! on Postgres.

mod callers;
mod many;
mod size;

use std::{
    io::{Write, stdout},
    sync::Arc,
    time::{Duration, Instant},
};

use ::actions::{
    domain::context::Origin,
    store::{
        action_lists,
        actions::{self, NewAction},
    },
};
use ::assessment::service::assessment;
use ::commissioning::{domain::commissioning_body::CommissionDraft, service::commissioning};
use anyhow::{Context, Result, bail, ensure};
use catalog::domain::resource::{Product, ProductDetails, Thng, ThngDetails};
use control::http::{ApiListeners, run as serve};
use kernel::{
    domain::{common::Stamp, grant::Limit, listing::ListRequest, page::PageRequest},
    service::access::Caller,
    store::{Ctx, documents, listing::Selection},
};
use serde_json::{Value, json};
use shared::{
    id::{ActionId, ProductId, ThngId},
    time::UnixMillis,
};
use tests::{
    db::{Engine, POSTGRES_URL, TestApp, random16},
    product,
};
use tokio_util::sync::CancellationToken;
use verdicts::domain::assessment::trigger::Asked;

use self::many::Many;

/// Keys of the operator, which callers share.
const KEYS: usize = 16;

/// Ratios above these are a failure: the time must not depend on the length of the history.
const MOST_BY_SCANS: f64 = 1.5;
const MOST_BY_PAIRS: f64 = 5.0;

/// Measures assessments and lists of states: a long history against a short one, unless another form is asked for.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Args {
    /// On Postgres: among a million Thngs with 20 million scans, or as many as are given, which take some 1.2 KB each
    /// while it runs; it ends where there is no room for them
    #[arg(long, num_args = 0..=2, value_names = ["THNGS", "SCANS"])]
    many: Option<Vec<usize>>,
    /// Assess over HTTP, so many at a time
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    callers: Option<u16>,
    /// On SQLite: how large the database gets by scans and results
    #[arg(long)]
    size: bool,
}

impl Args {
    fn form(&self) -> Result<Form> {
        Ok(match (&self.many, self.callers) {
            (Some(many), _) => Form::Many(match many.as_slice() {
                [] => Many::default(),
                [thngs, scans] => {
                    Many::new(*thngs, *scans).context("--many: 1 to 999 scans for each Thng")?
                }
                _ => bail!("--many takes the numbers of Thngs and of scans, or neither"),
            }),
            (None, Some(callers)) => Form::Callers(callers.into()),
            (None, None) if self.size => Form::Size,
            (None, None) => Form::Plain,
        })
    }
}

/// Runs the benchmark and prints its figures; `false` when a time depends on the length of a history or list.
///
/// # Errors
/// Something could not be started, or an answer was wrong.
pub(crate) fn run(args: &Args, is_smoke: bool) -> Result<bool> {
    let form = if is_smoke { Form::Smoke } else { args.form()? };
    tokio::runtime::Runtime::new()?.block_on(measure(form))
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Smoke,
    Plain,
    Many(Many),
    Callers(usize),
    Size,
}

async fn measure(form: Form) -> Result<bool> {
    let is_smoke = form == Form::Smoke;
    let engine = if std::env::var_os(POSTGRES_URL).is_some() { Engine::Postgres } else { Engine::Sqlite };
    let (many, rounds) = if is_smoke { (200, 3) } else { (100_000, 300) };
    let bench = Arc::new(Bench::new(engine).await?);
    let mut out = stdout();
    writeln!(out, "{engine:?}, {rounds} rounds")?;
    match form {
        Form::Callers(callers) => {
            return callers::measure(&bench, callers, callers::MEASURED, &mut out).await.map(|()| true);
        }
        Form::Size => return size::measure(&bench, size::RESULTS, &mut out).await.map(|()| true),
        Form::Smoke => {
            callers::measure(&bench, 4, Duration::from_millis(500), &mut out).await?;
            if engine == Engine::Sqlite {
                size::measure(&bench, 50, &mut out).await?;
            }
        }
        Form::Plain | Form::Many(_) => {}
    }
    let much = match form {
        Form::Many(many) => Some(many),
        Form::Smoke if engine == Engine::Postgres => Some(Many::SMOKE),
        Form::Smoke | Form::Plain | Form::Callers(_) | Form::Size => None,
    };
    let measured = match much {
        Some(much) => much.measure(&bench, rounds, &mut out).await,
        None => Ok(()),
    };
    let compared = match measured {
        Ok(()) => bench.compare(rounds, many, if is_smoke { 20 } else { 1_000 }, &mut out).await,
        Err(error) => Err(error),
    };
    if much.is_some() {
        // Gigabytes: they go whatever happened.
        many::clean_up(&bench).await?;
    }
    // So few rounds say nothing about time: the smoke form checks the answers only.
    Ok(compared? || is_smoke)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn told(times: &mut [Duration]) -> String {
    let middle = median(times);
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    let rate = times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64();
    format!("p50 {middle:.2?}, p99 {p99:.2?}, {rate:.0}/s of one caller")
}

struct Bench {
    made: TestApp,
    caller: Caller,
    product: ProductId,
    http: reqwest::Client,
    /// Where lists of states are asked for, and keys of the operator: one alone may make 400 requests a second.
    states: String,
    /// Where assessments are asked for.
    authentication: String,
    keys: Vec<String>,
}

impl Bench {
    async fn new(engine: Engine) -> Result<Self> {
        let made = TestApp::new(engine).await?;
        let caller = made.caller();
        let product = Product {
            id: ProductId::new(1, random16()?),
            stamp: Stamp::new(UnixMillis(1)),
            name: "Bag".to_owned(),
            details: serde_json::from_value::<ProductDetails>(json!({"identifiers": {"gs1:01": "1"},
                "customFields": {"permittedCountries": ["CH"]}}))
            .context("details")?,
            properties: std::collections::BTreeMap::new(),
        };
        let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
        let product = documents::insert(&mut tx, made.account, product).await?.id;
        let keys = (0..KEYS).map(|_| product::random_key()).collect::<Result<Vec<String>>>()?;
        tx.commit().await?;
        for key in &keys {
            made.add_key(key).await?;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let at = format!("http://{}", listener.local_addr()?);
        let (states, authentication) =
            (format!("{at}/thngs/commissionStateList"), format!("{at}/authentication"));
        let listeners = ApiListeners { plain: vec![listener], tls: None };
        tokio::spawn(serve(listeners, made.app.clone(), CancellationToken::new()));
        Ok(Self { made, caller, product, http: product::client()?, states, authentication, keys })
    }

    /// Few scans against many, and few pairs against many; whether both ratios are as they must be.
    async fn compare(&self, rounds: usize, many: usize, pairs: usize, out: &mut impl Write) -> Result<bool> {
        let few = self.scanned(10).await?;
        let much = self.scanned(many).await?;
        let (mut of_few, mut of_much) = (Vec::new(), Vec::new());
        // Alternated, so that a slow moment of the machine affects both.
        for _ in 0..rounds {
            of_few.push(self.assess(few).await?);
            of_much.push(self.assess(much).await?);
        }
        let by_scans = median(&mut of_much).as_secs_f64() / median(&mut of_few).as_secs_f64();
        writeln!(out, "assessment of 10 scans: {}", told(&mut of_few))?;
        writeln!(out, "assessment of {many} scans: {}; ratio {by_scans:.2}", told(&mut of_much))?;

        let pairs = self.commissioned(pairs).await?;
        // A list of a thousand costs most where it is the first: the connection, and the plan of the statement.
        self.states(&pairs).await?;
        let (mut of_ten, mut of_all) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            of_ten.push(self.states(&pairs[..10]).await?);
            of_all.push(self.states(&pairs).await?);
        }
        let by_pairs = median(&mut of_all).as_secs_f64() / median(&mut of_ten).as_secs_f64();
        writeln!(out, "states of 10 pairs: {}", told(&mut of_ten))?;
        writeln!(out, "states of {} pairs: {}; ratio {by_pairs:.2}", pairs.len(), told(&mut of_all))?;
        Ok(by_scans <= MOST_BY_SCANS && by_pairs <= MOST_BY_PAIRS)
    }

    async fn thng(&self, serial: &str) -> Result<ThngId> {
        let details: ThngDetails =
            serde_json::from_value(json!({"identifiers": {"gs1:21": serial}})).context("details")?;
        let id = ThngId::new(1, random16()?);
        let thng = Thng::new(id, serial.to_owned(), None, details, UnixMillis(1));
        let encoding = self.action(id, "encodings", 1, json!({}))?;
        let mut tx = self.made.app.core.db.begin(&Ctx::default()).await?;
        documents::insert(&mut tx, self.made.account, thng).await?;
        actions::insert(&mut tx, UnixMillis(1), &[encoding]).await?;
        tx.commit().await?;
        let body = json!({"product": self.product, "occurredAt": "1970-01-01T00:00:00.001Z",
            "location": {"position": {"type": "Point", "coordinates": [8.5, 47.5]}}});
        let draft = CommissionDraft::parse(&body).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        commissioning::commission(
            &self.made.app.actions,
            &self.caller,
            id.as_str(),
            &draft,
            Origin::default(),
        )
        .await?;
        Ok(id)
    }

    fn action(&self, thng: ThngId, kind: &str, at: i64, doc: Value) -> Result<NewAction> {
        Ok(NewAction {
            id: ActionId::new(at, random16()?),
            account: self.made.account,
            kind: kind.to_owned(),
            thng: Some(thng),
            product: None,
            timestamp: UnixMillis(at),
            doc,
        })
    }

    /// A Thng with so many scans, an hour apart.
    async fn scanned(&self, count: usize) -> Result<(ThngId, i64)> {
        self.scanned_as(&format!("scanned {count}"), count).await
    }

    /// The scans of a Thng.
    async fn scans_of(&self, thng: ThngId) -> Result<Vec<ActionId>> {
        let request = ListRequest {
            page: PageRequest { per_page: 100, ..PageRequest::default() },
            ..ListRequest::default()
        };
        let id = thng.to_string();
        let within = [("thng", id.as_str()), ("type", "implicitScans")];
        let (account, limit) = (self.made.account, &Limit::Account);
        let selection = Selection { account, limit, request: &request, within: &within };
        let mut conn = self.made.app.core.db.read().await?;
        let found = action_lists::list(&mut conn, &selection).await?;
        Ok(found.items.iter().map(|action| action.id).collect())
    }

    /// The same of a serial.
    async fn scanned_as(&self, serial: &str, count: usize) -> Result<(ThngId, i64)> {
        let thng = self.thng(serial).await?;
        let mut made = Vec::with_capacity(count);
        for n in 0..count {
            let doc = json!({"locationSource": "geoIp", "location": {"latitude": 46.9, "longitude": 7.4},
                "context": {"userAgent": format!("Phone{}/1", ["A", "B", "C"][n % 3]), "city": "Bern",
                    "region": "Bern", "countryCode": "CH", "entryUrl": "https://tn.gg/X"}});
            made.push(self.action(thng, "implicitScans", 1_000 + n as i64 * 3_600_000, doc)?);
        }
        for step in made.chunks(1_000) {
            let mut tx = self.made.app.core.db.begin(&Ctx::default()).await?;
            actions::insert(&mut tx, UnixMillis(1), step).await?;
            let sources = self.made.app.assessment.sources();
            let (of, none) = ((self.made.account, UnixMillis(1)), std::collections::HashMap::new());
            assessment::observe::record(sources, &mut tx, of, step, &none).await?;
            tx.commit().await?;
        }
        Ok((thng, 1_000 + count as i64 * 3_600_000))
    }

    /// An assessment an hour after the last scan.
    async fn assess(&self, (thng, at): (ThngId, i64)) -> Result<Duration> {
        let body = json!({"timestamp": at, "id": ActionId::new(1, random16()?), "type": "scans", "locationSource": "sensor",
            "thng": thng, "location": {"latitude": 46.9, "longitude": 7.4,
                "position": {"type": "Point", "coordinates": [7.4, 46.9]}}});
        let request = Asked::parse(&body).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let begun = Instant::now();
        let found =
            assessment::authenticate(&self.made.app.assessment, &self.caller, &request, Origin::default())
                .await?;
        let took = begun.elapsed();
        let status = &found.members["customFields"]["authenticationStatus"];
        ensure!(*status == "positive", "{status}");
        Ok(took)
    }

    async fn commissioned(&self, count: usize) -> Result<Vec<String>> {
        let mut serials = Vec::with_capacity(count);
        for n in 0..count {
            let serial = format!("pair {n}");
            self.thng(&serial).await?;
            serials.push(serial);
        }
        Ok(serials)
    }

    /// A list of states over HTTP; the answer is read after the time was taken.
    async fn states(&self, serials: &[String]) -> Result<Duration> {
        let pairs = serials.iter().map(
            |serial| json!({"thngIdentifier": format!("gs1:21:{serial}"), "productIdentifier": "gs1:01:1"}),
        );
        let body = Value::Array(pairs.collect()).to_string();
        let request = self.http.post(&self.states).header("authorization", self.key(0));
        let request = request.header("content-type", "application/json").body(body);
        let begun = Instant::now();
        let answer = request.send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?;
        let took = begun.elapsed();
        let states: Vec<Value> = serde_json::from_slice(&bytes)
            .with_context(|| format!("{status}: {}", String::from_utf8_lossy(&bytes)))?;
        ensure!(
            states.len() == serials.len() && states.iter().all(|one| one["state"] == "commissioned"),
            "{status}: {states:?}"
        );
        Ok(took)
    }
}
