//! The server: a thread that answers on the given addresses until it is dropped.
//!
//! Does not depend on what is watched.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::board::Board;
use super::http::HttpService;
use super::web_config::WebConfig;
use crate::background::{Joined, runtime};
use crate::error::Hinted;
use crate::options::Web;

/// Default path of the metrics.
const METRICS: &str = "/metrics";

/// What a server needs: its addresses are taken and its configuration is read, but it does not answer yet.
pub(crate) struct Prepared {
    listeners: Vec<TcpListener>,
    config: WebConfig,
    metrics: String,
}

impl Prepared {
    /// # Errors
    /// Returns an error if an address cannot be listened on or the configuration cannot be used.
    pub(crate) fn new(web: Web) -> Result<Self, Hinted> {
        let config = web
            .config_file
            .as_deref()
            .map(WebConfig::read)
            .transpose()?;
        let listeners = web.listen.iter().map(|address| listen(address));
        Ok(Self {
            listeners: listeners.collect::<Result<_, _>>()?,
            config: config.unwrap_or_default(),
            metrics: web.metrics.unwrap_or_else(|| METRICS.to_owned()),
        })
    }
}

/// A running server. It answers until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Addresses of the metrics.
    addresses: Vec<String>,
    /// The async runtime of its thread.
    pub(super) handle: Handle,
    _stop: oneshot::Sender<()>,
    _thread: Joined,
}

impl Server {
    /// Serves the metrics and reports of the board.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(crate) fn start(prepared: Prepared, board: Arc<Board>) -> Result<Self, Hinted> {
        let Prepared {
            listeners,
            config,
            metrics,
        } = prepared;
        let scheme = if config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let addresses = listeners.iter().filter_map(|it| it.local_addr().ok());
        let addresses = addresses.map(|address| format!("{scheme}://{address}{metrics}"));
        let addresses = addresses.collect();
        let site = Arc::new(HttpService::new(board, metrics, config));
        let runtime = runtime().map_err(|error| no_runtime(&error))?;
        let handle = runtime.handle().clone();
        for listener in listeners {
            let _entered = runtime.enter();
            let listener = listener.set_nonblocking(true).and_then(|()| {
                // Convert to the runtime's type.
                tokio::net::TcpListener::from_std(listener)
            });
            let listener = listener.map_err(|error| no_runtime(&error))?;
            runtime.spawn(Arc::clone(&site).serve(listener));
        }
        let (stop, stopped) = oneshot::channel();
        let thread = Joined::start("http", move || {
            // Returns when the sender is dropped.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        });
        Ok(Self {
            addresses,
            handle,
            _stop: stop,
            _thread: thread.map_err(|error| Hinted::no_thread(&error))?,
        })
    }

    /// Prints where the metrics are.
    pub(crate) fn announce(&self, mut out: impl Write) {
        for address in &self.addresses {
            // If the output is closed, the address is not needed.
            let _ = writeln!(out, "serving {address}");
        }
    }
}

fn listen(address: &str) -> Result<TcpListener, Hinted> {
    let whole = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    TcpListener::bind(&whole).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another exporter may be running: use another port with --web.listen-address"
            }
            std::io::ErrorKind::PermissionDenied => {
                "ports below 1024 are for root: use another port with --web.listen-address"
            }
            _ => "--web.listen-address needs an address of this machine, as in 127.0.0.1:9977",
        };
        Hinted::new(format!("cannot listen on {address}: {error}"), hint)
    })
}

pub(super) fn no_runtime(error: &std::io::Error) -> Hinted {
    Hinted::new(
        format!("cannot serve: {error}"),
        "raise the limit of open files (ulimit -n)",
    )
}
