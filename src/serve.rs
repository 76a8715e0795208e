//! The exporter: watches training jobs of this machine and serves metrics and reports of them, over HTTP and in a file.
//!
//! Reads the state of an engine for each job. Knows nothing of the command line and of the screen.

mod board;
mod exposition;
mod http;
mod job;
mod metrics;
mod rank_metrics;
mod search;
mod server;
#[cfg(test)]
mod tests;
mod textfile;
mod totals;
mod users;
mod web_config;

use std::future::pending;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::Hinted;
use crate::source::sampler::{Common, Options};
pub(crate) use board::Board;
use exposition::Format;
pub(crate) use search::Search;
use server::no_runtime;
pub(crate) use server::{Endpoints, Server};
use textfile::Textfile;

/// Where to listen if nothing is said: on this machine alone, as others may log in to it too.
pub(crate) const ADDRESS: &str = "127.0.0.1:9977";
/// Between two writings of a file.
const PAUSE: Duration = Duration::from_secs(5);

/// What to watch, and where to offer it.
#[derive(Debug)]
pub(crate) struct Exporter {
    pub options: Options,
    /// Every job of the machine, not one at a time.
    pub all: bool,
    pub endpoints: Endpoints,
    pub textfile: Option<PathBuf>,
}

impl Exporter {
    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// Where an address cannot be listened on, a file cannot be used, or no thread can be started.
    pub(crate) fn run(self) -> Result<(), Hinted> {
        let board = Arc::new(Board::default());
        let server = self.endpoints.serve(Arc::clone(&board))?;
        let file = self.textfile.map(Textfile::new);
        if let Some(file) = &file {
            written(file, &board)?;
        }
        server.announce(std::io::stdout());
        let common = Common::start(&self.options);
        let _machine = search::machine(&common, &self.options, Arc::clone(&board))?;
        let _search = Search::start(self.options, common, self.all, Arc::clone(&board))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| no_runtime(&error))?;
        runtime.block_on(async {
            let mut ends = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
            let [typed, asked] = &mut ends;
            let typed = typed.as_mut().map_err(|error| no_runtime(error))?;
            let asked = asked.as_mut().map_err(|error| no_runtime(error))?;
            tokio::select! {
                _ = typed.recv() => {}
                _ = asked.recv() => {}
                () = keep(file.as_ref(), &board) => {}
            }
            Ok(())
        })
    }
}

/// Keeps the file up to date, for as long as it is polled.
async fn keep(file: Option<&Textfile>, board: &Board) {
    let Some(file) = file else {
        return pending().await;
    };
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = false;
    loop {
        ticks.tick().await;
        let result = written(file, board);
        if let (Err(error), false) = (&result, failed) {
            // Nobody reads it: nothing to do about that.
            let _ = writeln!(std::io::stderr(), "warning: {error}");
        }
        failed = result.is_err();
    }
}

fn written(file: &Textfile, board: &Board) -> Result<(), Hinted> {
    file.write(&board.metrics(Format::Text)).map_err(|error| {
        Hinted::new(
            format!("cannot write {}: {error}", file.path().display()),
            "--textfile needs a file in a folder where new files can be made",
        )
    })
}
