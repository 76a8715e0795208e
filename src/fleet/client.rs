//! HTTP client of a Prometheus server: sends queries, returns series.
//!
//! Uses the API below `/api/v1`; does not depend on the queries.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ureq::http::StatusCode;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Error};

use super::answer::{Answer, parse};
use crate::error::Hinted;

/// Timeout of one query: a server that is slower than this is of no use to a screen.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of an answer in bytes: that of ten thousand ranks needs two fifths of it. A dozen answers are read in
/// parallel.
const MAX_ANSWER_BYTES: u64 = 32 << 20;
/// Path of the API for instant queries.
const QUERY: &str = "/api/v1/query";
/// Maximum length in bytes of the target of a redirect that a hint repeats.
const MAX_ADDRESS: usize = 200;

/// Credentials for the server. They come from the environment or from a file, because every user can read command
/// lines.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A token.
    Bearer(String),
    /// `USER:PASSWORD`.
    Basic(String),
}

impl Credentials {
    /// Returns the value of the header.
    fn header(&self) -> String {
        match self {
            Self::Bearer(token) => format!("Bearer {token}"),
            Self::Basic(pair) => format!("Basic {}", BASE64_STANDARD.encode(pair)),
        }
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    /// Without a slash at the end.
    url: String,
    credentials: Option<Credentials>,
}

impl Client {
    pub(super) fn new(url: &str, credentials: Option<Credentials>) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // Following a redirect would lose the query or the credentials.
            .max_redirects(0)
            .tls_config(tls.build())
            .user_agent(concat!("pipetop/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: agent.into(),
            url: url.trim_end_matches('/').to_owned(),
            credentials,
        }
    }

    /// Returns the series of a query.
    ///
    /// # Errors
    /// Returns an error if the server does not answer the query.
    pub(super) fn series(&self, query: &str) -> Result<Answer, Hinted> {
        let (status, body) = self.ask(query)?;
        parse(&body).map_err(|error| self.refused(status, error))
    }

    /// Returns status and body of the answer to a query.
    fn ask(&self, query: &str) -> Result<(StatusCode, String), Hinted> {
        let mut request = self.agent.post(format!("{}{QUERY}", self.url));
        if let Some(credentials) = &self.credentials {
            request = request.header("Authorization", credentials.header());
        }
        let mut response = request
            .send_form([("query", query)])
            .map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(Hinted::new(
                format!("{} refuses the request: {status}", self.url),
                "set PIPETOP_PROMETHEUS_TOKEN, or PIPETOP_PROMETHEUS_BASIC to USER:PASSWORD",
            ));
        }
        if status.is_redirection() {
            let to = response.headers().get("location");
            let to = to.map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
            return Err(self.redirected(to.as_deref()));
        }
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
        let body = body.read_to_string();
        let body = body.map_err(|error| self.unreachable(&error))?;
        Ok((status, body))
    }

    /// Returns the error for a redirect to `to`.
    fn redirected(&self, to: Option<&str>) -> Hinted {
        let message = format!("{} redirects to another address", self.url);
        // A target outside this API is something else, such as a login page.
        let address = to.and_then(|to| to.strip_suffix(QUERY));
        match address.filter(|to| to.starts_with("http") && to.len() < MAX_ADDRESS) {
            Some(address) => Hinted::new(message, format!("use --prometheus {address}")),
            None => Hinted::new(
                message,
                "use the address of the Prometheus behind it, as in --prometheus http://HOST:9090",
            ),
        }
    }

    fn unreachable(&self, error: &Error) -> Hinted {
        let why = match error {
            Error::Timeout(_) => format!("no answer within {} s", TIMEOUT.as_secs()),
            Error::BodyExceedsLimit(limit) => format!("an answer is longer than {limit} bytes"),
            Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        Hinted::new(
            format!("cannot read {}: {why}", self.url),
            "use the address of a running Prometheus, as in --prometheus http://HOST:9090",
        )
    }

    /// Returns the error for an unusable answer; `error` is the server's own message, if it sent one.
    fn refused(&self, status: StatusCode, error: Option<String>) -> Hinted {
        if let Some(error) = error {
            return Hinted::new(
                format!("{} refuses a query: {error}", self.url),
                "pipetop fleet needs Prometheus 2.26 or newer, or a PromQL-compatible server",
            );
        }
        let mut message = format!("{} does not answer like a Prometheus server", self.url);
        if !status.is_success() {
            message.extend([": ", status.to_string().as_str()]);
        }
        let hint = "use the address that has /api/v1 below it, as in --prometheus http://HOST:9090";
        Hinted::new(message, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_the_server_did() {
        let client = Client::new("http://here/", None);
        for (error, message) in [
            (
                Error::Timeout(ureq::Timeout::Global),
                "no answer within 10 s",
            ),
            (
                Error::BodyExceedsLimit(100),
                "an answer is longer than 100 bytes",
            ),
            (
                Error::Io(std::io::ErrorKind::ConnectionRefused.into()),
                "connection refused",
            ),
        ] {
            let message = format!("cannot read http://here: {message}");
            assert_eq!(client.unreachable(&error).message, message);
        }
    }
}
