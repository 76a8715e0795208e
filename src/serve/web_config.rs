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
use serde_saphyr::{Error, Location};
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

impl Certificate {
    /// Resolves relative names from the folder of the configuration.
    fn beside(self, path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new(""));
        Self {
            cert_file: folder.join(self.cert_file),
            key_file: folder.join(self.key_file),
        }
    }
}

/// Returns the files that a web configuration names, each with its field. None if it cannot be used.
pub(crate) fn files(path: &Path) -> Vec<(&'static str, PathBuf)> {
    let bytes = read(path).map_or_else(|_| vec![], |(bytes, _)| bytes);
    let content = serde_saphyr::from_slice::<Option<WebConfigFile>>(&bytes);
    let tls = content.ok().flatten().and_then(|it| it.tls_server_config);
    tls.map_or_else(Vec::new, |tls| {
        let Certificate {
            cert_file,
            key_file,
        } = tls.beside(path);
        vec![("cert_file", cert_file), ("key_file", key_file)]
    })
}

impl WebConfig {
    /// # Errors
    /// Returns an error if a file cannot be read or used, or if other users can read a secret in it.
    pub(super) fn read(path: &Path) -> Result<Self, Hinted> {
        let (bytes, mode) = read(path)?;
        let content: Option<WebConfigFile> =
            serde_saphyr::from_slice(&bytes).map_err(|error| malformed(path, &bytes, &error))?;
        let content = content.unwrap_or_default();
        if !content.basic_auth_users.is_empty() {
            secret(path, mode, "passwords")?;
        }
        let users = BasicAuth::new(content.basic_auth_users).map_err(|(user, why)| {
            let message = format!("{}: user `{user}`: {why}", path.display());
            Hinted::new(message, "make a hash with `htpasswd -nB USER`")
        })?;
        let tls = content.tls_server_config.map(|tls| tls.beside(path));
        let tls = tls.map(|tls| acceptor(&tls.cert_file, &tls.key_file));
        Ok(Self {
            tls: tls.transpose()?,
            users,
        })
    }
}

/// Says what is wrong with the file, in plain words instead of the parser's. Must not quote values: they are secrets.
fn malformed(path: &Path, bytes: &[u8], error: &Error) -> Hinted {
    const FIELDS: &str = "of Prometheus' web configuration, `tls_server_config` (`cert_file`, `key_file`) and \
                          `basic_auth_users` (`USER: HASH`) are supported";
    let at = error.location();
    let place = at.map_or_else(String::new, |at| format!(": line {}", at.line()));
    let key = at.and_then(|at| key_of(bytes, at));
    let (what, hint) = match (error.without_snippet(), key) {
        (Error::SerdeUnknownField { field, .. }, _) => (format!("unknown field `{field}`"), FIELDS),
        (Error::SerdeMissingField { field, .. }, _) => {
            (format!("field `{field}` is missing"), FIELDS)
        }
        (Error::DuplicateMappingKey { key: Some(key), .. }, _) => {
            (format!("`{key}` is there twice"), "leave one of them")
        }
        (Error::Unexpected { .. } | Error::NullIntoString { .. }, Some(key)) => {
            (format!("unexpected value of `{key}`"), FIELDS)
        }
        (Error::Unexpected { .. }, None) => ("expected fields with values".to_owned(), FIELDS),
        (Error::InvalidUtf8Input, _) => ("not a text file".to_owned(), FIELDS),
        _ => (
            "not valid YAML".to_owned(),
            "indent with spaces, close quotes and brackets, and put values with special characters in quotes",
        ),
    };
    Hinted::new(format!("{}{place}: {what}", path.display()), hint)
}

/// Returns the key whose value stands at a place of the file.
fn key_of(bytes: &[u8], at: Location) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let line = text
        .lines()
        .nth(usize::try_from(at.line()).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(at.column()).ok()?.checked_sub(1)?;
    let (end, _) = line.char_indices().nth(column).unwrap_or((line.len(), ' '));
    let (before, rest) = line.split_at(end);
    // A value that is missing is at the colon.
    let key = before.trim_end();
    let key = key
        .strip_suffix(':')
        .or_else(|| rest.starts_with(':').then_some(key))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    let key = key.rsplit(|c| !is_name(c)).next()?;
    (!key.is_empty()).then_some(key)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_in_plain_words_and_quotes_no_value() {
        for (text, said) in [
            (
                "http_server_config: {}",
                "line 1: unknown field `http_server_config`",
            ),
            (
                "tls_server_config:\n  cert_file: secret\n",
                "line 2: field `key_file` is missing",
            ),
            (
                "basic_auth_users: secret",
                "line 1: unexpected value of `basic_auth_users`",
            ),
            (
                "basic_auth_users: {anna: [secret]}",
                "line 1: unexpected value of `anna`",
            ),
            (
                "basic_auth_users:\n  anna:\n",
                "line 2: unexpected value of `anna`",
            ),
            (
                "basic_auth_users:\n  b: x\n  b: secret\n",
                "line 3: `b` is there twice",
            ),
            ("secret", "line 1: expected fields with values"),
            ("- secret", "line 1: expected fields with values"),
            (
                "basic_auth_users:\n\tanna: secret\n",
                "line 2: not valid YAML",
            ),
            (
                "basic_auth_users:\n  anna: \"secret\n",
                "line 2: not valid YAML",
            ),
            ("basic_auth_users: *secret", "line 1: not valid YAML"),
            ("\u{0}", ": not valid YAML"),
        ] {
            let error = serde_saphyr::from_slice::<Option<WebConfigFile>>(text.as_bytes());
            let error = error.err().expect("it is wrong");
            let Hinted { message, hint, .. } =
                malformed(Path::new("web.yml"), text.as_bytes(), &error);
            assert!(message.ends_with(said), "{message}");
            assert!(
                !message.contains("secret") && !hint.contains("secret"),
                "{message}"
            );
        }
        let error = serde_saphyr::from_slice::<Option<WebConfigFile>>(b"\xff").err();
        let wrong = malformed(Path::new("web.yml"), b"\xff", &error.expect("it is wrong"));
        assert_eq!(wrong.message, "web.yml: not a text file");
    }
}
