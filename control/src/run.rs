//! Background tasks of every control process: the writer and the workers.

use std::{io, sync::Arc, thread};

use kernel::store::Db;
use push::hub::Ended;
use redirects::writer::WriterTask;
use tokio::{runtime, sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{failure::Failure, state::ApiState, worker};

/// The writer and the background tasks of a process; they end in an order.
pub struct Tasks {
    app: Arc<ApiState>,
    /// The end of its thread; nothing comes where that panicked.
    writer: Option<(oneshot::Receiver<()>, CancellationToken)>,
    background: JoinSet<Result<(), Failure>>,
    stop_background: CancellationToken,
}

impl Tasks {
    /// Starts the writer, the change stream, the feed of subscribers, the lease of connections, the last use of keys, the
    /// upkeep, the move of older scans, the workers of jobs, deleted applications, erasures, print orders, certificates, changes of links, webhooks, mails and
    /// reactions, the backfill of statistics, the end of take-downs, and the probe of writes.
    ///
    /// # Errors
    /// The system has no thread for the writer.
    pub fn start(app: &Arc<ApiState>, writer_task: WriterTask) -> Result<Self, Failure> {
        let [stop_writer, stop_background] = [CancellationToken::new(), CancellationToken::new()];
        let (db, readers, stop) = (app.core.db.clone(), app.core.readers.clone(), stop_writer.clone());
        let writer = on_own_thread(async move {
            // Connections of its own: it never waits for others. Two, because one that comes back is asked whether it answers: a server
            // that is gone without a word would keep the only one.
            let own = db.with_own_pool(2);
            writer_task.run(own.clone(), readers, stop).await;
            match own {
                Db::Pg(pool) => pool.close().await,
                // The connections of all.
                Db::Sqlite { .. } => {}
            }
        })
        .map_err(|error| Failure::failed("the thread of the writer", error))?;
        let mut tasks = Self {
            app: app.clone(),
            writer: Some((writer, stop_writer)),
            background: JoinSet::new(),
            stop_background: stop_background.clone(),
        };
        let stream = app.hub.clone().run(stop_background.clone());
        tasks.background.spawn(async move {
            match stream.await {
                Ended::Stopped => Ok(()),
                // Revisions of this history may be used twice: only a start under a new epoch is safe.
                Ended::OtherHistory => Err(Failure::StartAgain(
                    "the change log has another history (a restore or a failover): start again, under a new epoch"
                        .to_owned(),
                )),
            }
        });
        tasks.spawn(app.events.feed.clone().run(stop_background.clone()));
        tasks.spawn(worker::connections::run(app.events.clone(), stop_background.clone()));
        tasks.spawn(worker::key_uses::run(app.clone(), stop_background.clone()));
        tasks.spawn(worker::audit::run(app.core.clone(), stop_background.clone()));
        tasks.spawn(worker::upkeep::run(app.clone(), stop_background.clone()));
        tasks.spawn(worker::rebuild_profiles::run(app.clone(), stop_background.clone()));
        tasks.spawn(worker::move_scans::run(app.clone(), stop_background.clone()));
        tasks.spawn(redirects::fill_words::run(app.core.db.clone(), stop_background.clone()));
        tasks.spawn(worker::run_jobs::run(app.jobs.clone(), stop_background.clone()));
        tasks.spawn(applications::worker::run(
            app.core.clone(),
            app.privacy.metrics.removals_given_up.clone(),
            stop_background.clone(),
        ));
        tasks.spawn(privacy::worker::run(app.privacy.clone(), stop_background.clone()));
        tasks.spawn(printing::worker::run(app.printing.clone(), stop_background.clone()));
        tasks.spawn(domains::worker::run(app.domains.clone(), stop_background.clone()));
        tasks.spawn(certificates::worker::run(app.domains.certificates.clone(), stop_background.clone()));
        tasks.spawn(digital_links::worker::run(app.core.clone(), stop_background.clone()));
        tasks.spawn(link_changes::worker::run(app.link_changes.clone(), stop_background.clone()));
        tasks.spawn(worker::webhooks::run(app.events.clone(), stop_background.clone()));
        tasks.spawn(worker::mails::run(
            app.users.outbox.clone(),
            app.core.db.clone(),
            stop_background.clone(),
        ));
        tasks.spawn(worker::reactions::run(app.events.clone(), stop_background.clone()));
        tasks.spawn(statistics::worker::backfill::run(app.statistics.clone(), stop_background.clone()));
        tasks.spawn(hosting::worker::run(app.core.clone(), stop_background.clone()));
        tasks.spawn(worker::write_probe::run(app.clone(), stop_background));
        Ok(tasks)
    }

    /// Adds a task that runs until [`Self::stopping`] is cancelled.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn(async {
            task.await;
            Ok(())
        });
    }

    /// Cancelled when the background should stop.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop_background.clone()
    }

    /// Waits until a part ends by itself, which none should; gives why. Cancel-safe.
    pub async fn failed(&mut self) -> Failure {
        let writer = async {
            match &mut self.writer {
                Some((task, _)) => {
                    let ended = task.await;
                    self.writer = None;
                    ended
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = writer => match ended {
                Ok(()) => Failure::Failed("the writer ended unasked".to_owned()),
                Err(_) => Failure::Failed("the writer panicked".to_owned()),
            },
            Some(ended) = self.background.join_next() => match ended {
                Ok(Ok(())) => Failure::Failed("a background task ended unasked".to_owned()),
                Ok(Err(failure)) => failure,
                Err(error) => Failure::failed("a background task", error),
            },
        }
    }

    /// Stops the writer after its pending requests, then the background, then closes the database.
    ///
    /// Callers of the writer must have stopped before.
    ///
    /// # Errors
    /// A part failed while it stopped.
    pub async fn stop(mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        if let Some((writer, stop)) = self.writer.take() {
            stop.cancel();
            result = result.and(writer.await.map_err(|_| Failure::Failed("the writer panicked".to_owned())));
        }
        self.stop_background.cancel();
        while let Some(ended) = self.background.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Failure::failed("a background task", error)));
            result = result.and(ended);
        }
        self.app.actions.scans.close().await;
        self.app.core.db.close().await;
        result
    }
}

/// Runs a future on a thread and a runtime of its own.
///
/// On a thread of requests each statement of the writer would wait until the tasks of that thread had their turn, and everybody
/// waits for the writer.
fn on_own_thread(work: impl Future<Output = ()> + Send + 'static) -> io::Result<oneshot::Receiver<()>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (done, ended) = oneshot::channel();
    let run = move || {
        runtime.block_on(work);
        // Who does not wait for it is stopping.
        let _ = done.send(());
    };
    thread::Builder::new().name("writer".to_owned()).spawn(run)?;
    Ok(ended)
}
