//! `pipetop fleet`: reads the credentials, then the server.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use crate::cli;
use crate::error::{Explain as _, Hinted};
use crate::fleet::{Credentials, Fleet, show, text};
use crate::options::{PathArgs, WatchArgs};
use crate::regular_file;
use crate::setup::{can_draw, config, no_screen, print};

const TOKEN: &str = "PIPETOP_PROMETHEUS_TOKEN";
const BASIC: &str = "PIPETOP_PROMETHEUS_BASIC";
/// Maximum size of a token file in bytes: more than any token needs.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// Runs the command.
pub(super) fn run(args: cli::FleetArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let look = WatchArgs {
        look: args.look,
        ..WatchArgs::default()
    };
    let config = config(&look, places)?;
    let mut fleet = Fleet {
        credentials: credentials(args.token_file.as_deref())?,
        url: args.prometheus,
        run: args.run,
    };
    if can_draw() && !args.once && !args.json {
        let command = show(fleet, config).map_err(|error| no_screen(&error))?;
        let line = command.map_or_else(String::new, |command| command + "\n");
        return print(line);
    }
    let report = fleet.read()?;
    if report.runs.is_empty()
        && let Some(run) = fleet.run.take()
    {
        let hint = if fleet.read()?.runs.is_empty() {
            "this Prometheus has no pipetop metrics: let it scrape `pipetop serve` on each node"
        } else {
            "omit --run to see them all"
        };
        return Err(Hinted::new(format!("no run `{run}` is known"), hint));
    }
    let page = if args.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Hinted::new(error.to_string(), "this is a bug in pipetop"))? + "\n"
    } else {
        text(&report, config.ascii)
    };
    print(page)
}

fn credentials(file: Option<&Path>) -> Result<Option<Credentials>, Hinted> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (token, basic) = (set(TOKEN), set(BASIC));
    let other = file
        .map(|_| "--token-file")
        .or(token.as_ref().map(|_| TOKEN));
    if let Some(other) = other.filter(|_| basic.is_some()) {
        return Err(Hinted::new(
            format!("{other} and {BASIC} are two ways to log in"),
            format!("use one of them; `env -u {BASIC} pipetop fleet ...` leaves it out"),
        ));
    }
    if let Some(path) = file {
        let mut bytes = Vec::new();
        regular_file::read(path, MAX_TOKEN_BYTES, &mut bytes).explain(
            format_args!("cannot read {}", path.display()),
            "--token-file needs a file with a token in it",
        )?;
        let text = String::from_utf8_lossy(&bytes);
        return secret(path.as_os_str(), text.trim().to_owned()).map(Some);
    }
    if let Some(token) = token {
        return secret(TOKEN.as_ref(), token).map(Some);
    }
    match basic {
        Some(pair) if !pair.contains(':') => Err(Hinted::new(
            format!("{BASIC} is not USER:PASSWORD"),
            "put a colon between the user's name and the password",
        )),
        pair => Ok(pair.map(Credentials::Basic)),
    }
}

/// Checks that a token can be used in a header.
fn secret(from: &OsStr, token: String) -> Result<Credentials, Hinted> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Hinted::new(
            format!("{} holds no token", from.display()),
            "a token is one line of letters, digits and symbols",
        ));
    }
    Ok(Credentials::Bearer(token))
}
