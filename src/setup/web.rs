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

/// The options with a server beside, where one was asked for: what is watched is served until it is dropped.
///
/// # Errors
/// Where it cannot serve.
pub(crate) fn served(options: Options, watch: &Watch) -> Result<(Options, Option<Server>), Hinted> {
    let web = &watch.web;
    if web.listen.is_empty() {
        if *web == Web::default() {
            return Ok((options, None));
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
    let tee = Some(Tee(Arc::new(move |sample| board.take(sample))));
    Ok((Options { tee, ..options }, Some(server)))
}
