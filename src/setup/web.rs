//! `--web.listen-address`: serves the metrics of what a live mode watches.

use std::sync::Arc;

use crate::error::Hinted;
use crate::options::{Watch, Web};
use crate::serve::{Board, Endpoints, Server};
use crate::source::sampler::{Options, Tee};

pub(crate) fn endpoints(web: Web) -> Endpoints {
    Endpoints {
        listen: web.listen,
        metrics: web.metrics,
        config: web.config_file,
    }
}

/// What is watched is served for as long as this is held.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub board: Arc<Board>,
    _server: Option<Server>,
}

/// The options, and a server where one was asked for.
///
/// # Errors
/// Where it cannot serve.
pub(crate) fn served(options: Options, watch: &Watch) -> Result<(Options, Served), Hinted> {
    let web = &watch.web;
    if web.listen.is_empty() {
        if *web == Web::default() {
            return Ok((options, Served::default()));
        }
        return Err(Hinted::new(
            "--web.telemetry-path and --web.config.file need an address to listen on",
            "add one, as in --web.listen-address 127.0.0.1:9977",
        ));
    }
    let board = Arc::new(Board::default());
    // Reports are on standard output.
    let server = endpoints(web.clone()).serve(Arc::clone(&board))?;
    server.announce(std::io::stderr());
    let taken = Arc::clone(&board);
    let tee = Some(Tee(Arc::new(move |sample| taken.take(sample))));
    let served = Served {
        board,
        _server: Some(server),
    };
    Ok((Options { tee, ..options }, served))
}
