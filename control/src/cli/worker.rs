//! `control worker`: runs jobs, draws print orders, and serves no requests.

use std::{
    io::{self, Write as _},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use ::printing::worker::{Part, run_part};
use events::egress::{EgressClient, SystemLookup};
use kernel::service::capacity::Capacity;
use platform::settings::{Log, check_plain, listen_or_off};
use push::edge_keys::EdgeKeys;
use shared::client_address::TrustedProxies;
use tokio_util::sync::CancellationToken;
use web::limiter::{Limits, Ticks};

use super::{failed, stop_on_signal};
use crate::{
    composition::{Parts, compose},
    config::{FileStore, LimitSettings, Place, PrintLimits, ScanServer, SecretKeyFile, parse::printing},
    failure::Failure,
    http::{WorkerAdmin, run_admin},
    secret_key_file, serve,
    system::{SystemClock, SystemRandom},
    telemetry,
    worker::{run_jobs, write_probe},
};

/// Arguments of `control worker`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Where the content of files is kept: as of `control serve` (required)
    #[arg(long, env = "WAYMARK_FILES_URL", value_name = "DIR|URL")]
    files_url: Option<String>,
    #[command(flatten)]
    secret_key_file: SecretKeyFile,
    /// Most codes of a print order: as of `control serve` [default: 1000000]
    #[arg(long, env = "WAYMARK_PRINT_CODES", value_name = "COUNT")]
    print_codes: Option<String>,
    /// Days for which files of print orders are kept: as of `control serve`; 0 is for ever [default: 30]
    #[arg(long, env = "WAYMARK_PRINT_FILES_DAYS", value_name = "DAYS")]
    print_files_days: Option<String>,
    /// Where /live, /ready and /metrics are, such as 127.0.0.1:8092 [default: off]
    #[arg(long, env = "WAYMARK_WORKER_ADMIN_LISTEN", value_name = "ADDR:PORT|off")]
    admin_listen: Option<String>,
    #[command(flatten)]
    logging: Log,
}

/// What a worker has before it opens the database.
struct Started {
    files: FileStore,
    key_file: PathBuf,
    scans: Option<ScanServer>,
    printing: PrintLimits,
    admin: Option<(TcpListener, SocketAddr)>,
    telemetry: telemetry::Telemetry,
}

/// Checks the settings and begins the log.
fn start(args: &Args) -> Result<Started, Failure> {
    let files = args.place.files(args.files_url.clone())?;
    let key_file = args.place.secret_key_file(args.secret_key_file.clone())?;
    secret_key_file::read(&key_file)?;
    let scans = args.place.scans()?;
    let printing = printing(&LimitSettings {
        print_codes: args.print_codes.clone(),
        print_files_days: args.print_files_days.clone(),
        ..LimitSettings::default()
    })?;
    let format = args.logging.form()?;
    let key = "WAYMARK_WORKER_ADMIN_LISTEN";
    let admin = listen_or_off(key, args.admin_listen.as_deref(), None)?;
    if let Some(address) = admin {
        check_plain(key, address, false)?;
    }
    let admin = admin.map(|address| serve::bind(key, address)).transpose()?;
    let telemetry = telemetry::start(&telemetry::Settings {
        filter: args.logging.filter(),
        format,
        otlp_url: None,
        service: "control-worker",
    })?;
    Ok(Started { files, key_file, scans, printing, admin, telemetry })
}

/// Works until it is asked to stop; what is under way is let go of, and others go on.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let Started { files, key_file, scans, printing, admin, telemetry } =
        start(&args).inspect_err(|error| super::explain_refusal("control", error))?;
    super::warn_of_unknown_variables();
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    let blobs = serve::blobs(&files)?;
    let db = serve::connect_patiently(&args.place.database_url()?, &shutdown).await?;
    let prepared = serve::prepare(&db, "", &key_file).await?;
    let (app, _writer) = compose(Parts {
        db,
        secrets: prepared.secrets,
        clock: Arc::new(SystemClock),
        // Nobody sends requests here.
        ticks: Ticks::new(Duration::default),
        random: Arc::new(SystemRandom),
        blobs,
        geo_ip: None,
        trusted_proxies: TrustedProxies::default(),
        // Nothing is sent from here: `control serve` does.
        egress: EgressClient::new(false, Arc::new(SystemLookup::default()))
            .map_err(|error| Failure::failed("the client of webhooks", error))?,
        dns_server: None,
        acme: None,
        limits: Limits::default(),
        capacity: Capacity::default(),
        // Replicas do the upkeep.
        jobs_kept: None,
        printing,
        mail: None,
        oidc: None,
        scans,
        edge_keys: EdgeKeys::default(),
        contact: None,
        docs_url: String::new(),
        urls: crate::service::base_urls::UrlSettings::default(),
    })
    .await
    .map_err(failed)?;
    let stop_admin = CancellationToken::new();
    let (mut at, mut shown) = (String::new(), None);
    if let Some((listener, address)) = admin {
        at = format!("  Admin         http://{address}\n");
        let worker = WorkerAdmin::new(app.clone());
        let answer = move |method: &::http::Method, path: &str| worker.answer(method, path);
        shown = Some(tokio::spawn(run_admin(listener, answer, stop_admin.clone())));
    }
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "Waymark's worker is up.\n{at}Ctrl-C stops it.");
    // Without systemd there is nobody to notify.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let probing = tokio::spawn(write_probe::run(app.clone(), shutdown.clone()));
    let drawing = tokio::spawn(run_part(app.printing.clone(), Part::Drawing, shutdown.clone()));
    run_jobs::run(app.jobs.clone(), shutdown).await;
    if let Err(error) = drawing.await {
        tracing::error!(%error, "the worker of print orders ended");
    }
    probing.abort();
    stop_admin.cancel();
    if let Some(task) = shown {
        match task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the admin listener ended"),
            Err(error) => tracing::error!(%error, "the admin listener ended"),
        }
    }
    app.actions.scans.close().await;
    app.core.db.close().await;
    telemetry.finish().await;
    Ok(ExitCode::SUCCESS)
}
