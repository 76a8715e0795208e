//! HTTP client of a Prometheus: sends queries, returns series.
//!
//! Uses the interface `/api/v1`; does not depend on the queries.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use super::answer::{Answer, parse};
use super::read::QueryServer;
use crate::error::Hinted;

/// Timeout of one query: a server that is slower than this is of no use to a screen.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of an answer in bytes: ten thousand ranks need a fifth of it.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

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
            .tls_config(tls.build())
            .user_agent(concat!("pipetop/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: agent.into(),
            url: url.trim_end_matches('/').to_owned(),
            credentials,
        }
    }

    /// Returns the body of the answer to a query.
    fn ask(&self, query: &str) -> Result<String, Hinted> {
        let mut request = self.agent.post(format!("{}/api/v1/query", self.url));
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
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
        let body = body.read_to_string();
        body.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &ureq::Error) -> Hinted {
        let error = error.to_string();
        let why = error.strip_prefix("io: ").unwrap_or(&error);
        Hinted::new(
            format!("cannot read {}: {why}", self.url),
            "give the address of a running Prometheus, as in --prometheus http://HOST:9090",
        )
    }

    /// Returns the error for an answer that is not usable.
    fn refused(&self, error: Option<String>) -> Hinted {
        match error {
            Some(error) => Hinted::new(
                format!("{} refuses a query: {error}", self.url),
                "pipetop fleet needs Prometheus 2.26 or newer, or a server that speaks its language",
            ),
            None => Hinted::new(
                format!("{} does not answer as a Prometheus does", self.url),
                "give the address that its /api/v1 lies below, as in --prometheus http://HOST:9090",
            ),
        }
    }
}

impl QueryServer for Client {
    fn series(&self, query: &str) -> Result<Answer, Hinted> {
        parse(&self.ask(query)?).map_err(|error| self.refused(error))
    }
}
