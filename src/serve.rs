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
#[cfg(test)]
mod tests;
mod textfile;
mod totals;

use std::future::pending;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::Hinted;
use crate::source::sampler::Options;
use board::Board;
use exposition::Format;
use http::Site;
use search::Search;
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
    /// `HOST:PORT`; without a host, all addresses.
    pub listen: Vec<String>,
    pub metrics: String,
    pub textfile: Option<PathBuf>,
}

impl Exporter {
    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// Where an address cannot be listened on, the file cannot be written, or no thread can be started.
    pub(crate) fn run(self) -> Result<(), Hinted> {
        let listeners = self.listen.iter().map(|address| listen(address));
        let listeners: Vec<TcpListener> = listeners.collect::<Result<_, _>>()?;
        let board = Arc::new(Board::default());
        let file = self.textfile.map(Textfile::new);
        if let Some(file) = &file {
            written(file, &board)?;
        }
        let _search = Search::start(self.options, self.all, Arc::clone(&board))?;
        let site = Arc::new(Site::new(Arc::clone(&board), self.metrics));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| no_runtime(&error))?;
        runtime.block_on(async {
            let mut all = JoinSet::new();
            for listener in listeners {
                announce(&listener, &site.metrics);
                let listener = listener.set_nonblocking(true).and_then(|()| {
                    // The runtime's own.
                    tokio::net::TcpListener::from_std(listener)
                });
                all.spawn(Arc::clone(&site).serve(listener.map_err(|error| no_runtime(&error))?));
            }
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

fn listen(address: &str) -> Result<TcpListener, Hinted> {
    let whole = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    TcpListener::bind(&whole).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another exporter may be running: give another port with --web.listen-address"
            }
            _ => "--web.listen-address needs an address of this machine, as in 127.0.0.1:9977",
        };
        Hinted::new(format!("cannot listen on {address}: {error}"), hint)
    })
}

/// Says where the metrics are.
fn announce(listener: &TcpListener, metrics: &str) {
    if let Ok(address) = listener.local_addr() {
        // Nobody reads it: nothing to do about that.
        let _ = writeln!(std::io::stdout(), "serving http://{address}{metrics}");
    }
}

fn no_runtime(error: &std::io::Error) -> Hinted {
    Hinted::new(
        format!("cannot serve: {error}"),
        "raise the limit of open files (ulimit -n)",
    )
}
