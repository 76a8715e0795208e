//! The report that the binary prints, as a test reads it. Depends on the command line, not on the library.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clock::{now, sleep};
use crate::trial::PIPETOP;

use serde_json::Value;

/// One run of `pipetop PID --once --json --for ..`, and when it ended.
pub(crate) struct Report {
    pub(crate) document: Value,
    pub(crate) ended: f64,
}

impl Report {
    /// Runs `command` with the job's `pid` until it has printed its report.
    pub(crate) fn of(mut command: Command, pid: u32, seconds: u32) -> Result<Self, String> {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        // A pipetop of another user must be able to write to it.
        let for_all = Permissions::from_mode(0o777);
        std::fs::set_permissions(scratch.path(), for_all).map_err(|error| error.to_string())?;
        let recording = scratch.path().join("run.rec");
        let (output, errors) = (scratch.path().join("report"), scratch.path().join("errors"));
        let file = |path| std::fs::File::create(path).map_err(|error| error.to_string());
        let mut child = command
            .args([
                "--once",
                &pid.to_string(),
                "--json",
                "--for",
                &format!("{seconds}s"),
                "--record",
            ])
            .arg(&recording)
            .stdin(Stdio::null())
            .stdout(file(&output)?)
            .stderr(file(&errors)?)
            .spawn()
            .map_err(|error| format!("cannot start pipetop: {error}"))?;
        let deadline = now() + f64::from(seconds) + 10.0;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "pipetop did not end within {seconds} s and 10 more"
                ));
            }
            sleep(Duration::from_millis(10));
        };
        let ended = now();
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        if !status.success() {
            return Err(format!("pipetop: {status}\n{}", read(&errors)));
        }
        let document = serde_json::from_str(&read(&output))
            .map_err(|error| format!("no JSON document: {error}"))?;
        says_the_same_again(&recording, &document)?;
        Ok(Self { document, ended })
    }

    /// Returns the text at a JSON pointer; empty for null.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.document
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn number(&self, pointer: &str) -> Option<f64> {
        self.document.pointer(pointer).and_then(Value::as_f64)
    }

    /// Returns the elements of the array at a JSON pointer.
    pub(crate) fn list(&self, pointer: &str) -> &[Value] {
        self.document
            .pointer(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("/verdict/kind")
    }

    /// Returns the rank that the verdict is about.
    pub(crate) fn rank(&self) -> Option<u64> {
        self.document.pointer("/verdict/rank")?.as_u64()
    }

    /// Returns the process that the verdict is about.
    pub(crate) fn pid(&self) -> Option<u64> {
        self.document.pointer("/verdict/pid")?.as_u64()
    }

    pub(crate) fn advice(&self) -> impl Iterator<Item = &str> {
        self.list("/verdict/advice")
            .iter()
            .filter_map(Value::as_str)
    }

    /// Returns the text of the fact with this id, if present.
    pub(crate) fn fact(&self, id: &str) -> Option<&str> {
        let mut facts = self.list("/verdict/evidence").iter();
        let fact = facts.find(|fact| fact.get("id").and_then(Value::as_str) == Some(id))?;
        fact.get("text")?.as_str()
    }

    /// Returns the hints for what is missing or could not be read.
    pub(crate) fn hints(&self) -> impl Iterator<Item = &str> {
        let lists = self
            .list("/verdict/missing")
            .iter()
            .chain(self.list("/gaps"));
        lists
            .filter_map(|part| part.get("hint")?.as_str())
            .filter(|hint| !hint.is_empty())
    }

    /// Returns the functions that the workers were seen in, and the texts of the evidence.
    pub(crate) fn what_workers_do(&self) -> Vec<&str> {
        let ranks = self.list("/job/ranks").iter();
        let workers = ranks
            .filter_map(|rank| rank.get("workers")?.as_array())
            .flatten();
        let activities = workers
            .filter_map(|worker| worker.get("activity")?.as_array())
            .flatten();
        let names = activities.filter_map(|activity| activity.get("name")?.as_str());
        let evidence = self.list("/verdict/evidence").iter();
        names
            .chain(evidence.filter_map(|part| part.get("text")?.as_str()))
            .collect()
    }

    /// Whether any advice, or the advised number, asks for more workers.
    pub(crate) fn asks_for_more_workers(&self) -> bool {
        let now = self.number("/verdict/workers/now");
        let advised = self.number("/verdict/workers/advised");
        advised.zip(now).is_some_and(|(advised, now)| advised > now)
            || self.advice().any(asks_for_more_workers)
    }
}

fn asks_for_more_workers(advice: &str) -> bool {
    let advice = advice.to_lowercase().replace("num_workers", "workers");
    let mut numbers = advice
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse::<u32>().ok());
    let raised =
        advice.contains("workers") && advice.contains("->") && numbers.next() < numbers.next();
    let denied = ["not ", "no more", "n't", "instead of"]
        .iter()
        .any(|word| advice.contains(word));
    let asked = [
        "more workers",
        "add workers",
        "add a worker",
        "increase workers",
        "raise workers",
    ];
    raised || (!denied && asked.iter().any(|word| advice.contains(word)))
}

/// Checks that the recording of a real job replays to the same report, to the last digit.
fn says_the_same_again(recording: &Path, document: &Value) -> Result<(), String> {
    let replayed = Command::new(PIPETOP)
        .arg("replay")
        .arg(recording)
        .args(["--once", "--json"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start pipetop: {error}"))?;
    let again: Value = serde_json::from_slice(&replayed.stdout).map_err(|error| {
        let errors = String::from_utf8_lossy(&replayed.stderr);
        format!("no JSON document from the recording: {error}\n{errors}")
    })?;
    if again == *document {
        return Ok(());
    }
    Err(format!(
        "replayed, it says otherwise:\n{again:#}\n{document:#}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Report, asks_for_more_workers};

    fn report() -> Report {
        let document = json!({
            "window": { "seconds": 13.5, "access": "T1" },
            "job": { "ranks": [{ "workers": [{ "activity": [{ "name": "decode_jpeg", "share": 0.8 }] }] }] },
            "verdict": {
                "kind": "data-bound", "cause": null, "workers": { "now": 4, "advised": 11 },
                "advice": ["num_workers 4 -> 11"], "evidence": [{ "text": "queue empty" }],
                "missing": [{ "hint": "run as root" }, { "hint": "" }],
            },
            "gaps": [{ "hint": "install a driver" }],
        });
        Report {
            document,
            ended: 0.0,
        }
    }

    #[test]
    fn reads_the_contract() {
        let report = report();
        assert_eq!(report.kind(), "data-bound");
        assert_eq!(report.text("/verdict/cause"), "");
        assert_eq!(report.number("/window/seconds"), Some(13.5));
        assert_eq!(report.number("/verdict/wait_share"), None);
        assert_eq!(report.what_workers_do(), ["decode_jpeg", "queue empty"]);
        assert_eq!(
            report.hints().collect::<Vec<_>>(),
            ["run as root", "install a driver"]
        );
        assert!(report.asks_for_more_workers());
    }

    #[test]
    fn advice_that_asks_for_more_workers() {
        for advice in [
            "num_workers 4 -> 11",
            "add workers",
            "Use more workers: up to 8",
            "raise num_workers",
        ] {
            assert!(asks_for_more_workers(advice), "{advice}");
        }
        for advice in [
            "more workers will not help",
            "num_workers 8 -> 2",
            "in_order=False",
            "prefetch_factor 2 -> 4",
        ] {
            assert!(!asks_for_more_workers(advice), "{advice}");
        }
    }
}
