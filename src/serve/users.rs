//! Authenticates clients: basic authentication against bcrypt hashes.
//!
//! Such a hash is slow on purpose. So that neither a scraper nor someone who guesses passwords costs the watched
//! machine much, only one hash is computed at a time (after a wrong password, at most one per second), and a correct
//! password is remembered.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr as _;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bcrypt::HashParts;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::background::lock;

/// Pause after a wrong password.
const PAUSE: Duration = Duration::from_secs(1);
/// Highest accepted cost: a hash of this cost takes about a second.
const MAX_COST: u32 = 14;

#[derive(Default)]
pub(super) struct BasicAuth {
    hashes: BTreeMap<String, String>,
    /// Correct credentials by user, hashed with a secret.
    right: Mutex<BTreeMap<String, u64>>,
    secret: RandomState,
    turn: tokio::sync::Mutex<()>,
}

impl BasicAuth {
    /// # Errors
    /// Returns the first user whose hash is not usable, and why.
    pub(super) fn new(hashes: BTreeMap<String, String>) -> Result<Self, (String, String)> {
        for (user, hash) in &hashes {
            let why = match HashParts::from_str(hash) {
                Err(_) => "not a bcrypt hash".to_owned(),
                Ok(parts) if parts.get_cost() > MAX_COST => {
                    format!("a hash of cost {} takes too long", parts.get_cost())
                }
                Ok(_) => continue,
            };
            return Err((user.clone(), why));
        }
        Ok(Self {
            hashes,
            ..Self::default()
        })
    }

    /// Returns whether a client with this `Authorization` header has access: if no users are configured, every client
    /// has.
    pub(super) async fn authenticate(&self, authorization: Option<&[u8]>) -> bool {
        if self.hashes.is_empty() {
            return true;
        }
        let Some((user, password)) = authorization.and_then(credentials) else {
            return false;
        };
        let sent = self.secret.hash_one((&user, &password));
        if self.is_known(&user, sent) {
            return true;
        }
        let _turn = self.turn.lock().await;
        if self.is_known(&user, sent) {
            return true;
        }
        // Verify a hash for an unknown user too, so that the response time does not show whether the user exists.
        let known = self.hashes.get(&user);
        let hash = known.or_else(|| self.hashes.values().next()).cloned();
        let matches = spawn_blocking(move || bcrypt::verify(password, &hash.unwrap_or_default()));
        let matches = matches!(matches.await, Ok(Ok(true)));
        if matches && known.is_some() {
            lock(&self.right).insert(user, sent);
            return true;
        }
        sleep(PAUSE).await;
        false
    }

    fn is_known(&self, user: &str, sent: u64) -> bool {
        lock(&self.right).get(user) == Some(&sent)
    }
}

/// Returns user and password of a `Basic ...` header.
fn credentials(authorization: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(authorization).ok()?;
    let (scheme, pair) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(BASE64_STANDARD.decode(pair.trim()).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pair: &str) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(pair))
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_correct_user_and_password_are_accepted() {
        let hash = bcrypt::hash_with_salt("secret", 4, *b"sixteen bytes...");
        let hash = hash.unwrap().format_for_version(bcrypt::Version::TwoY);
        let users = [("anna".to_owned(), hash)].into_iter().collect();
        let users = BasicAuth::new(users).unwrap();
        for (header, expected) in [
            (sent("anna:secret"), true),
            (sent("anna:secret"), true),
            (sent("anna:Secret"), false),
            (sent("ben:secret"), false),
            (sent("anna"), false),
            ("Bearer secret".to_owned(), false),
            ("Basic !".to_owned(), false),
        ] {
            let let_in = users.authenticate(Some(header.as_bytes())).await;
            assert_eq!(let_in, expected, "{header}");
        }
        assert!(!users.authenticate(None).await);
        assert!(BasicAuth::default().authenticate(None).await);
    }

    #[test]
    fn invalid_or_too_slow_hashes_are_rejected() {
        let refused = |hash: &str| {
            let users = [("anna".to_owned(), hash.to_owned())];
            BasicAuth::new(users.into_iter().collect()).err().unwrap().1
        };
        assert_eq!(refused("secret"), "not a bcrypt hash");
        let costly = "$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
        assert_eq!(refused(costly), "a hash of cost 31 takes too long");
    }
}
