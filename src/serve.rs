//! The exporter: watches training jobs of this machine and serves their metrics and reports, over HTTP and in a file.
//!
//! Uses the state of an engine for each job. Does not depend on the screen.

mod board;
mod exposition;
mod http;
mod job;
mod metrics;
mod search;
mod server;
#[cfg(test)]
mod tests;
mod textfile;
mod totals;
mod users;
mod web_config;

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::{Explain as _, Hinted, write_error};
use crate::source::sampler::{Common, Options};
pub(crate) use board::Board;
use exposition::Format;
pub(crate) use search::search;
use server::no_runtime;
pub(crate) use server::{Prepared, Server};
use textfile::Textfile;
pub(crate) use web_config::files as files_of_web_config;

/// Default address to listen on: only this machine can reach it, though any user who is logged in there can.
pub(crate) const ADDRESS: &str = "127.0.0.1:9977";
/// Time between two updates of the file.
const PAUSE: Duration = Duration::from_secs(5);

/// Watches one job at a time, or `all` of the machine, and serves their metrics until a signal ends it.
///
/// # Errors
/// Returns an error if a file cannot be used or no thread can be started.
pub(crate) fn run(
    options: Options,
    all: bool,
    prepared: Prepared,
    textfile: Option<PathBuf>,
) -> Result<(), Hinted> {
    let board = Arc::new(Board::default());
    let server = Server::start(prepared, Arc::clone(&board))?;
    let mut file = textfile.map(Textfile::new);
    if let Some(file) = &mut file {
        write_file(file, &board)?;
    }
    server.announce(std::io::stdout());
    let common = Common::start(&options);
    let _machine = search::machine(&common, &options, Arc::clone(&board))?;
    let _search = search(options, common, all, Arc::clone(&board))?;
    let ended = server.handle.block_on(async {
        let mut typed = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = typed.recv() => {}
            _ = terminate.recv() => {}
            () = keep(file.as_mut(), &board) => {}
        }
        Ok(())
    });
    ended.map_err(|error| no_runtime(&error))
}

/// Keeps the file up to date while it is polled.
async fn keep(file: Option<&mut Textfile>, board: &Board) {
    let Some(file) = file else {
        return pending().await;
    };
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = false;
    loop {
        ticks.tick().await;
        let result = write_file(file, board);
        if let (Err(error), false) = (&result, failed) {
            write_error(format_args!("warning: {error}"));
        }
        failed = result.is_err();
    }
}

fn write_file(file: &mut Textfile, board: &Board) -> Result<(), Hinted> {
    let written = file.write(&board.metrics(Format::Text));
    written.explain(
        format_args!("cannot write {}", file.path().display()),
        "--textfile needs a file of its own in a folder where new files can be made",
    )
}
