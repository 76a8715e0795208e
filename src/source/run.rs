//! The identity of a job: read once, from the environment, the control group and the owner of its first trainer.
//!
//! Depends on the names that Slurm, Kubernetes and torchrun use; must not depend on what the job does.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::file;
use super::process::ProcessReader;
use crate::sample::{Run, RunSource};
use crate::units::{Pid, ProcessKey, printable};

/// Maximum length of a name in characters: metrics carry it as a label.
const MAX_NAME: usize = 128;
/// Number of digits of a pod's UID that are part of the run's id.
const SHORT_UID: usize = 8;
/// Length of a UID with dashes, and without: that of a static pod is a hash.
const UID: [usize; 2] = [36, 32];

/// Environment variables that identify the job.
const VARIABLES: [&str; 10] = [
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_JOB_USER",
    "POD_UID",
    "POD_NAME",
    "POD_NAMESPACE",
    "KUBERNETES_SERVICE_HOST",
    "HOSTNAME",
    "TORCHELASTIC_RUN_ID",
    "USER",
];

/// Returns the variables that are set, not empty, and readable.
fn variables(reader: &mut ProcessReader, pid: Pid) -> BTreeMap<&'static str, String> {
    let values = reader.environment(pid, VARIABLES).unwrap_or_default();
    let kept = |value: String| value.chars().take(MAX_NAME).collect::<String>();
    let set = VARIABLES
        .into_iter()
        .zip(values)
        .filter_map(|(name, value)| Some((name, kept(value?))));
    set.filter(|(_, value)| !value.is_empty()).collect()
}

/// Identifiers found in the names of control groups.
#[derive(Debug, Default, PartialEq, Eq)]
struct CgroupIds {
    slurm_job: Option<String>,
    slurm_step: Option<String>,
    pod_uid: Option<String>,
}

impl CgroupIds {
    /// Parses the lines of `/proc/PID/cgroup`.
    fn of(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let Some(path) = line.splitn(3, ':').nth(2) else {
                continue;
            };
            let mut in_slurm = false;
            for group in path.split('/') {
                in_slurm |= group.contains("slurm");
                if in_slurm {
                    keep(&mut found.slurm_job, group.strip_prefix("job_"));
                    keep(&mut found.slurm_step, group.strip_prefix("step_"));
                }
                let uid = path.contains("kubepods").then(|| pod_uid(group)).flatten();
                keep(&mut found.pod_uid, uid.as_deref());
            }
        }
        found
    }
}

/// Sets a value, unless there is already one.
fn keep(kept: &mut Option<String>, value: Option<&str>) {
    if kept.is_none() {
        *kept = value.map(|value| printable(value).chars().take(MAX_NAME).collect());
    }
}

/// Returns the UID in `kubepods-burstable-pod1d2c...slice` (dashes as underscores) and `pod1d2c...`.
fn pod_uid(group: &str) -> Option<String> {
    let (_, uid) = group.rsplit_once("pod")?;
    let uid = uid.strip_suffix(".slice").unwrap_or(uid).replace('_', "-");
    let of_uid = |c: char| c.is_ascii_hexdigit() || c == '-';
    (UID.contains(&uid.len()) && uid.chars().all(of_uid)).then_some(uid)
}

/// Returns the name in `/etc/passwd`. Directory services are not queried: they may be slow.
fn user_name(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let mut users = passwd.lines().map(|line| line.split(':'));
    let found = users.find_map(|mut user| {
        let name = user.next()?;
        (user.nth(1) == Some(uid.as_str())).then_some(name)
    });
    found.map(printable)
}

/// Returns the identity of the job whose first trainer this is.
pub(super) fn read(proc_root: &Path, reader: &mut ProcessReader, first: ProcessKey) -> Run {
    let folder = proc_root.join(first.pid.to_string());
    let environment = variables(reader, first.pid);
    let groups = CgroupIds::of(&file::read(&folder.join("cgroup")).unwrap_or_default());
    let owner = fs::metadata(&folder).ok().map(|metadata| metadata.uid());
    let passwd = file::read(Path::new("/etc/passwd")).unwrap_or_default();
    let by_owner = owner.map(|uid| user_name(&passwd, uid).unwrap_or_else(|| uid.to_string()));
    let uname = rustix::system::uname();
    let host = printable(&uname.nodename().to_string_lossy());
    named(environment, groups, by_owner, &host, first)
}

fn named(
    mut environment: BTreeMap<&'static str, String>,
    groups: CgroupIds,
    owner: Option<String>,
    host: &str,
    first: ProcessKey,
) -> Run {
    // From Slurm 26.05 on the name of the group is not the job's number.
    let numbered = |job: &String| job.bytes().all(|byte| byte.is_ascii_digit());
    let slurm_job_id = groups.slurm_job.filter(numbered);
    let slurm_job_id = slurm_job_id.or_else(|| environment.remove("SLURM_JOB_ID"));
    let k8s_pod_uid = groups.pod_uid.or_else(|| environment.remove("POD_UID"));
    // The host name of a container in a pod is the pod's name, unless it uses the node's network.
    let in_pod = environment.remove("KUBERNETES_SERVICE_HOST");
    let host_of_pod = in_pod.and(environment.remove("HOSTNAME"));
    let k8s_pod_name = environment.remove("POD_NAME").or(host_of_pod);
    // The id that torchrun sets if none was given.
    let torchrun_id = environment.remove("TORCHELASTIC_RUN_ID");
    let torchrun_id = torchrun_id.filter(|id| id != "none");
    let pod = k8s_pod_uid
        .as_ref()
        .map(|uid| uid.chars().take(SHORT_UID).collect());
    let pod: Option<String> = pod.or_else(|| k8s_pod_name.clone());
    let (id, source) = match (&slurm_job_id, &pod, &torchrun_id) {
        (Some(job), ..) => (format!("slurm-{job}"), RunSource::Slurm),
        (None, Some(pod), _) => (format!("pod-{pod}"), RunSource::Kubernetes),
        (None, None, Some(id)) => (format!("torchrun-{id}"), RunSource::Torchrun),
        (None, None, None) => {
            let id = format!("{host}-{}-{}", first.pid, first.start_ticks);
            (id, RunSource::Process)
        }
    };
    Run {
        id,
        source,
        host: host.to_owned(),
        user: ["SLURM_JOB_USER", "USER"]
            .into_iter()
            .find_map(|name| environment.remove(name))
            .or(owner),
        slurm_step_id: groups
            .slurm_step
            .or_else(|| environment.remove("SLURM_STEP_ID"))
            .filter(|_| slurm_job_id.is_some()),
        slurm_job_id,
        k8s_pod_uid,
        k8s_pod_name,
        k8s_namespace_name: environment.remove("POD_NAMESPACE"),
        torchrun_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ProcessKey = ProcessKey {
        pid: Pid(70),
        start_ticks: 900,
    };
    const UID: &str = "1d2c3b4a-0011-2233-4455-66778899aabb";

    fn set(name: &'static str, value: &str) -> BTreeMap<&'static str, String> {
        [(name, value.to_owned())].into()
    }

    fn run(cgroup: &str, environment: BTreeMap<&'static str, String>) -> Run {
        named(
            environment,
            CgroupIds::of(cgroup),
            Some("anna".to_owned()),
            "gpu-03",
            FIRST,
        )
    }

    #[test]
    fn slurm_names_it_by_its_group_or_its_environment() {
        for group in [
            "11:cpuset:/slurm/uid_0/job_4711/step_0\n",
            "4:memory:/slurm_gpu-03/uid_1000/job_4711/step_0/task_0\n",
            "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3\n",
            "0::/system.slice/gpu-03_slurmstepd.scope/job_4711/step_0/user/task_3\n",
        ] {
            let run = run(group, BTreeMap::default());
            assert_eq!(run.id, "slurm-4711", "{group}");
            assert_eq!(run.source, RunSource::Slurm);
            assert_eq!(run.slurm_step_id.as_deref(), Some("0"));
        }
        let environment = || set("SLURM_JOB_ID", "4711");
        // A SLUID instead of the number.
        for group in [
            "0::/system.slice/slurmstepd.scope/job_s0123456789ABC/step_1\n",
            "0::/\n",
        ] {
            assert_eq!(run(group, environment()).id, "slurm-4711", "{group}");
        }
        // A folder that happens to have such a name.
        assert_eq!(
            run("0::/job_4711/step_0\n", BTreeMap::default()).source,
            RunSource::Process
        );
    }

    #[test]
    fn a_pod_is_named_by_its_uid_and_else_by_its_name() {
        let underscored = UID.replace('-', "_");
        for group in [
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{underscored}.slice/cri-containerd-00ff.scope"
            ),
            format!("3:memory:/kubepods/besteffort/pod{UID}/00ff"),
            format!("0::/kubelet/kubepods/pod{UID}"),
        ] {
            let run = run(&group, BTreeMap::default());
            assert_eq!(
                (run.id.as_str(), run.source),
                ("pod-1d2c3b4a", RunSource::Kubernetes)
            );
            assert_eq!(run.k8s_pod_uid.as_deref(), Some(UID));
        }
        // A private namespace of control groups hides the UID.
        let pod = set("POD_NAME", "train-0");
        assert_eq!(run("0::/", pod).id, "pod-train-0");
        for group in [
            "0::/user.slice/podman-12.scope",
            "0::/kubepods/podx",
            "0::/kubepods/pod1234",
        ] {
            assert_eq!(
                run(group, BTreeMap::default()).source,
                RunSource::Process,
                "{group}"
            );
        }
    }

    #[test]
    fn an_unnamed_run_is_named_after_its_process() {
        let torchrun = set("TORCHELASTIC_RUN_ID", "exp-7");
        assert_eq!(run("", torchrun).id, "torchrun-exp-7");
        let plain = run("garbage\n0::\n", BTreeMap::default());
        assert_eq!(plain.id, "gpu-03-70-900");
        assert_eq!(plain.user.as_deref(), Some("anna"));
        assert_eq!(plain.slurm_step_id, None);
    }

    #[test]
    fn the_environment_of_a_tree_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("70");
        fs::create_dir(&folder).unwrap();
        let long = "x".repeat(10_000);
        let environment = format!(
            "USER=berta\0KUBERNETES_SERVICE_HOST=10.0.0.1\0HOSTNAME=train-0\0POD_NAMESPACE={long}\0\
             TORCHELASTIC_RUN_ID=none\0SLURM_JOB_ID=\0"
        );
        fs::write(folder.join("environ"), environment).unwrap();
        let mut reader = ProcessReader::new(tree.path());
        let run = read(tree.path(), &mut reader, FIRST);
        assert_eq!(
            (run.id.as_str(), run.source),
            ("pod-train-0", RunSource::Kubernetes)
        );
        assert_eq!(run.user.as_deref(), Some("berta"));
        assert_eq!(run.torchrun_id, None);
        assert_eq!(
            run.k8s_namespace_name.map(|name| name.len()),
            Some(MAX_NAME)
        );
    }

    #[test]
    fn names_of_users_are_those_of_the_file() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:\nbroken\n";
        assert_eq!(user_name(passwd, 1000).as_deref(), Some("anna"));
        assert_eq!(user_name(passwd, 0).as_deref(), Some("root"));
        assert_eq!(user_name(passwd, 7), None);
    }
}
