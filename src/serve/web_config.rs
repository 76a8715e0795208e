//! The web configuration file, in the format of other exporters: a certificate to serve with, and the users that have
//! access.
//!
//! Reads files; does not depend on connections.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::users::BasicAuth;
use crate::error::Hinted;
use crate::regular_file;

/// Maximum size of a file in bytes: more than any certificate chain.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Permission bit with which every user can read the file.
const WORLD_READABLE: u32 = 0o004;

/// Encryption, and which clients have access. By default, all clients have access, in plain text.
#[derive(Default)]
pub(super) struct WebConfig {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) users: BasicAuth,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WebConfigFile {
    tls_server_config: Option<Certificate>,
    basic_auth_users: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    cert_file: PathBuf,
    key_file: PathBuf,
}

impl WebConfig {
    /// # Errors
    /// Returns an error if a file cannot be read or used, or if other users can read a secret in it.
    pub(super) fn read(path: &Path) -> Result<Self, Hinted> {
        let (bytes, mode) = read(path)?;
        let content: Option<WebConfigFile> = serde_saphyr::from_slice(&bytes).map_err(|error| {
            // The error must not quote lines of the file: they hold secrets.
            let error = error.without_snippet().to_string();
            let error = error.lines().next().unwrap_or_default().to_owned();
            let hint = "of Prometheus' web configuration, `tls_server_config` (`cert_file`, `key_file`) and \
                        `basic_auth_users` are supported";
            Hinted::new(format!("{}: {error}", path.display()), hint)
        })?;
        let content = content.unwrap_or_default();
        if !content.basic_auth_users.is_empty() {
            secret(path, mode, "passwords")?;
        }
        let users = BasicAuth::new(content.basic_auth_users).map_err(|(user, why)| {
            let message = format!("{}: user `{user}`: {why}", path.display());
            Hinted::new(message, "make a hash with `htpasswd -nB USER`")
        })?;
        // A relative name is resolved from the folder of this file.
        let folder = path.parent().unwrap_or(Path::new(""));
        let tls = content.tls_server_config;
        let tls = tls.map(|tls| acceptor(&folder.join(tls.cert_file), &folder.join(tls.key_file)));
        Ok(Self {
            tls: tls.transpose()?,
            users,
        })
    }
}

fn read(path: &Path) -> Result<(Vec<u8>, u32), Hinted> {
    let read = || {
        let file = regular_file::open(path)?;
        let mode = file.metadata()?.mode();
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok((bytes, mode))
    };
    read().map_err(|error: std::io::Error| {
        let message = format!("cannot read {}: {error}", path.display());
        Hinted::new(
            message,
            "--web.config.file and the files that it names must be readable",
        )
    })
}

fn secret(path: &Path, mode: u32, what: &str) -> Result<(), Hinted> {
    if mode & WORLD_READABLE == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(Hinted::new(
        format!("{path} holds {what}, and every user can read it"),
        format!("chmod o-r {path}"),
    ))
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Hinted> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        let hint = "use a certificate and its private key in PEM format";
        Hinted::new(format!("{}: {why}", path.display()), hint)
    };
    let (bytes, _) = read(certificate)?;
    let chain = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"no certificate"));
    }
    let (bytes, mode) = read(key)?;
    secret(key, mode, "a private key")?;
    let private = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            let config = config.with_no_client_auth();
            config.with_single_cert(chain, private)
        });
    let config = config.map_err(|error| wrong(key, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
