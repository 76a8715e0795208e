//! `--web.listen-address`: serves the metrics of the watched job.

use std::sync::Arc;

use crate::error::Hinted;
use crate::options::WatchArgs;
use crate::serve::{Board, Prepared, Server};
use crate::source::sampler::{Options, Tee};

/// Options for what is watched, and the board that the server reads.
pub(crate) struct Served {
    pub options: Options,
    pub board: Arc<Board>,
    /// Serves until it is dropped. `None` = no address was given.
    pub server: Option<Server>,
}

/// Takes the requested addresses and reads the web configuration; `None` = no address was given.
///
/// # Errors
/// Returns an error if an address or the configuration cannot be used.
pub(crate) fn prepared(watch: &WatchArgs) -> Result<Option<Prepared>, Hinted> {
    let wanted = !watch.web.listen.is_empty();
    wanted.then(|| Prepared::new(watch.web.clone())).transpose()
}

/// Starts a server in the background if one was requested.
///
/// # Errors
/// Returns an error if it cannot serve.
pub(crate) fn served(options: Options, web: Option<Prepared>) -> Result<Served, Hinted> {
    let board = Arc::<Board>::default();
    let Some(web) = web else {
        return Ok(Served {
            options,
            board,
            server: None,
        });
    };
    // Announced on standard error, because standard output is used for reports.
    let server = Server::start(web, Arc::clone(&board))?;
    server.announce(std::io::stderr());
    let seen = Arc::clone(&board);
    let tee = Some(Tee(Arc::new(move |sample| seen.take(sample))));
    Ok(Served {
        options: Options { tee, ..options },
        board,
        server: Some(server),
    })
}
