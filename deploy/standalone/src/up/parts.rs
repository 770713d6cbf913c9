//! The running parts of the process: they start together and end in an order.

use std::sync::Arc;

use control::{failure::Failure, run::Tasks, state::ApiState};
use edge::{GeoDatabase, Listeners, TlsCerts};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Addresses, Sockets};
use crate::{admin, config::Config, data_dir::DataDir, serve};

/// What is read from files that may be exchanged while the process runs.
pub(super) struct Files {
    pub(super) certificates: Option<TlsCerts>,
    pub(super) geo: Option<GeoDatabase>,
}

/// The running parts, each with its own stop: they end in an order.
pub(super) struct Parts {
    edge: (JoinHandle<Result<(), Failure>>, CancellationToken),
    api: (JoinHandle<Result<(), Failure>>, CancellationToken),
    broker: (JoinHandle<Result<(), Failure>>, CancellationToken),
    tasks: Tasks,
}

impl Parts {
    #[expect(clippy::too_many_arguments, reason = "called once, with what was just made")]
    pub(super) async fn start(
        config: &Config,
        data_dir: &DataDir,
        app: &Arc<ApiState>,
        mut tasks: Tasks,
        edge_key: &str,
        sockets: Sockets,
        addresses: &Addresses,
        files: Files,
    ) -> Result<Self, Failure> {
        let [stop_edge, stop_api, stop_broker] = std::array::from_fn(|_| CancellationToken::new());
        if let Some(geo) = files.geo {
            tasks.spawn(geo.follow(tasks.stopping()));
        }
        let certificates = files.certificates.as_ref();
        let Sockets { api, api_tls, mqtt, mqtt_tls, edge, edge_tls, admin } = sockets;
        let api = serve::api(app, api, api_tls.zip(certificates), stop_api.clone())?;
        let broker = serve::broker(app, mqtt, mqtt_tls.zip(certificates), stop_broker.clone())?;
        let listeners = Listeners { plain: vec![edge], tls: edge_tls.into_iter().collect(), admin: None };
        let upstream = serve::Upstream { api: addresses.api, key: edge_key };
        let (edge, handle) =
            serve::edge(config, data_dir, app, &upstream, listeners, certificates, stop_edge.clone())?;
        serve::ready(&handle).await?;
        tasks.spawn(admin::run(app.clone(), handle, admin, tasks.stopping()));
        Ok(Self { edge: (edge, stop_edge), api: (api, stop_api), broker: (broker, stop_broker), tasks })
    }

    /// Waits for the stop, or for a part that ends by itself; then stops the rest in order.
    ///
    /// The edge drains first and hands over its scans while control still takes them; then the API, whose
    /// requests need the writer; then the writer; the change stream and the database last.
    pub(super) async fn supervise(
        mut self,
        data_dir: DataDir,
        shutdown: CancellationToken,
    ) -> Result<(), Failure> {
        let mut ended = None;
        let mut result = Ok(());
        tokio::select! {
            () = shutdown.cancelled() => {}
            end = &mut self.edge.0 => {
                ended = Some("the edge");
                result = unasked("the edge", end);
            }
            end = &mut self.api.0 => {
                ended = Some("the API");
                result = unasked("the API", end);
            }
            end = &mut self.broker.0 => {
                ended = Some("the broker");
                result = unasked("the broker", end);
            }
            failure = self.tasks.failed() => result = Err(failure),
        }
        tracing::info!("stopping: the edge drains");
        self.edge.1.cancel();
        if ended != Some("the edge") {
            result = result.and(joined("the edge", self.edge.0.await));
        }
        self.broker.1.cancel();
        if ended != Some("the broker") {
            result = result.and(joined("the broker", self.broker.0.await));
        }
        self.api.1.cancel();
        if ended != Some("the API") {
            result = result.and(joined("the API", self.api.0.await));
        }
        result = result.and(self.tasks.stop().await);
        // The lock of the folder outlives the database.
        drop(data_dir);
        tracing::info!("stopped");
        result
    }
}

/// A part that ended though nobody asked it to.
fn unasked(part: &str, ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    joined(part, ended).and_then(|()| Err(Failure::Failed(format!("{part} ended unasked"))))
}

fn joined(part: &str, ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::failed(part, error)),
        Err(error) => Err(Failure::failed(part, error)),
    }
}
