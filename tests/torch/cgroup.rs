//! A separate cgroup (version 1) for a job with limited CPU or disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::sleep;

/// What a job may use.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Cpus(f64),
    /// On the device that holds the job's files.
    ReadBytesPerSecond(u64),
}

/// A cgroup, removed when dropped; its processes must have ended before.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a cgroup with `limit`, or returns why that is impossible. `files` are on the device to limit.
    pub(crate) fn new(name: &str, limit: Limit, files: &Path) -> Result<Self, String> {
        let controller = match limit {
            Limit::Cpus(_) => "cpu",
            Limit::ReadBytesPerSecond(_) => "blkio",
        };
        let group = Self(hierarchy(controller)?.join(name));
        fs::create_dir(&group.0)
            .map_err(|error| format!("cannot make a cgroup below {controller}: {error}"))?;
        match limit {
            Limit::Cpus(cpus) => {
                #[expect(clippy::cast_possible_truncation, reason = "a few CPUs")]
                let quota = (cpus * 100_000.0) as i64;
                group.set("cpu.cfs_period_us", "100000")?;
                group.set("cpu.cfs_quota_us", &quota.to_string())?;
            }
            Limit::ReadBytesPerSecond(bytes) => {
                let rule = format!("{} {bytes}", disk_of(files)?);
                group.set("blkio.throttle.read_bps_device", &rule)?;
            }
        }
        Ok(group)
    }

    /// Returns why such a limit is not available here, if so.
    pub(crate) fn unavailable(name: &str, limit: Limit) -> Option<String> {
        let name = format!("pipetop-probe-{name}-{}", std::process::id());
        Self::new(&name, limit, Path::new(env!("CARGO_TARGET_TMPDIR"))).err()
    }

    /// Returns the file to which a process writes its PID to join.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        fs::write(self.0.join(file), value)
            .map_err(|error| format!("cannot write {value} to {file}: {error}"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A killed process leaves its cgroup a moment after it is reaped.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// Returns where the controller's version 1 hierarchy is mounted.
fn hierarchy(controller: &str) -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, path, kind, options, ..] = fields[..] else {
                return None;
            };
            let found = kind == "cgroup" && options.split(',').any(|option| option == controller);
            found.then(|| PathBuf::from(path))
        })
        .ok_or_else(|| format!("no cgroup v1 {controller} controller"))
}

/// Returns `major:minor` of the whole disk that holds `path`.
fn disk_of(path: &Path) -> Result<String, String> {
    let device = fs::metadata(path).map_err(|error| error.to_string())?.dev();
    let number = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let block = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .map_err(|_| format!("{} lies on no block device", path.display()))?;
    if !block.join("partition").exists() {
        return Ok(number);
    }
    fs::read_to_string(block.join("../dev"))
        .map(|number| number.trim().to_owned())
        .map_err(|error| error.to_string())
}
