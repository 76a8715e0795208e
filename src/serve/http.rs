//! The endpoints over HTTP. One request per connection, so that one deadline limits everything that a client can do.
//!
//! Does not depend on jobs; each answer is built from the board at the time of the request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::board::Board;
use super::exposition::Format;
use super::web_config::WebConfig;

/// Time limit of a request and its answer, however slowly the client sends and reads.
const DEADLINE: Duration = Duration::from_secs(30);
/// Time limit until the whole request is there, and before it the handshake: who sends nothing holds a descriptor.
const REQUEST: Duration = Duration::from_secs(10);
/// Maximum number of clients at a time. A further one ends the oldest: clients that send nothing must not keep others
/// out.
const CLIENTS: usize = 256;
/// Pause after a client could not be accepted because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// The endpoints: what they serve, and to whom.
pub(super) struct HttpService {
    board: Arc<Board>,
    /// Path of the metrics, usually `/metrics`.
    metrics: String,
    config: WebConfig,
}

impl HttpService {
    pub(super) fn new(board: Arc<Board>, metrics: String, config: WebConfig) -> Self {
        Self {
            board,
            metrics,
            config,
        }
    }

    /// Answers requests while it is polled.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut clients: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let accepted = listener.accept().await;
            clients.retain(|client| !client.is_finished());
            if clients.len() == CLIENTS || accepted.is_err() {
                let oldest = clients.pop_front();
                oldest.inspect(AbortHandle::abort);
            }
            match accepted {
                Ok((client, _)) => {
                    let served = tokio::spawn(Arc::clone(&self).serve_client(client));
                    clients.push_back(served.abort_handle());
                }
                Err(error) => {
                    tracing::warn!("cannot accept a client: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve_client(self: Arc<Self>, client: TcpStream) {
        let served = async {
            match &self.config.tls {
                None => self.serve_http(client).await,
                Some(tls) => {
                    // A client that does not speak TLS gets no answer.
                    if let Ok(Ok(client)) = timeout(REQUEST, tls.accept(client)).await {
                        self.serve_http(client).await;
                    }
                }
            }
        };
        let _ = timeout(DEADLINE, served).await;
    }

    async fn serve_http(self: &Arc<Self>, client: impl AsyncRead + AsyncWrite + Unpin) {
        let answer = |request| {
            let site = Arc::clone(self);
            async move { Ok::<_, Infallible>(site.answer(&request).await) }
        };
        let mut http = http1::Builder::new();
        http.keep_alive(false);
        http.timer(TokioTimer::new()).header_read_timeout(REQUEST);
        let served = http.serve_connection(TokioIo::new(client), service_fn(answer));
        // An error means that the client has left: nothing to report.
        let _ = served.await;
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let proof = request.headers().get(AUTHORIZATION);
        let proof = proof.map(HeaderValue::as_bytes);
        if !self.config.users.authenticate(proof).await {
            let refused = text_response(StatusCode::UNAUTHORIZED, "unauthorized\n");
            return with(refused, WWW_AUTHENTICATE, "Basic realm=\"pipetop\"");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let refused = text_response(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            return with(refused, ALLOW, "GET, HEAD");
        }
        match request.uri().path() {
            path if path == self.metrics => {
                let accept = request.headers().get_all(ACCEPT).into_iter();
                let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
                let format = Format::wanted(&accept.join(","));
                let text = self.board.metrics(format);
                response(StatusCode::OK, format.content_type(), text)
            }
            "/report" => self.report(request.uri().query()),
            "/-/healthy" => text_response(StatusCode::OK, "healthy\n"),
            "/-/ready" if self.board.is_ready() => text_response(StatusCode::OK, "ready\n"),
            "/-/ready" => text_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/" => {
                let metrics = &self.metrics;
                let text = format!("pipetop: {metrics} /report /-/healthy /-/ready\n");
                text_response(StatusCode::OK, text)
            }
            _ => text_response(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    /// Returns all reports, or the one of the job with the trainer `?pid=`.
    fn report(&self, query: Option<&str>) -> Response<Full<Bytes>> {
        let mut pairs = query.into_iter().flat_map(|query| query.split('&'));
        let pid = pairs.find_map(|pair| pair.strip_prefix("pid="));
        let Ok(pid) = pid.map(str::parse::<i32>).transpose() else {
            return text_response(StatusCode::BAD_REQUEST, "pid must be a number\n");
        };
        let reports = self.board.reports(pid);
        let text = match (pid, reports.first()) {
            (Some(_), None) => return text_response(StatusCode::NOT_FOUND, "no job of this pid\n"),
            (Some(_), Some(report)) => serde_json::to_string(report),
            (None, _) => serde_json::to_string(&reports),
        };
        match text {
            Ok(text) => response(StatusCode::OK, JSON, text),
            Err(error) => text_response(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}

fn text_response(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    response(status, PLAIN, text)
}

fn response(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, content_type)
}

fn with(
    mut response: Response<Full<Bytes>>,
    name: HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_no_whole_request_is_closed_soon() {
        let service = Arc::new(HttpService::new(
            Arc::default(),
            "/metrics".to_owned(),
            WebConfig::default(),
        ));
        for sent in ["", "GET /metrics HTTP/1.1\r\nHost:"] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            ours.write_all(sent.as_bytes()).unwrap();
            let begun = Instant::now();
            let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
            let _ = timeout(DEADLINE, service.serve_http(theirs)).await;
            assert!(begun.elapsed() < DEADLINE / 2, "{sent:?}");
            let mut answer = vec![];
            ours.read_to_end(&mut answer).unwrap();
            assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
        }
    }
}
