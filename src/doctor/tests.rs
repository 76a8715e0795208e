use super::facts::OwnProcess;
use super::{Check, CheckState, Facts, Terminal, checks, json, text};
use crate::config::Environment;
use crate::sample::{Absent, CgroupSample, Gap, GpuSample, HostSample, PressureSample};
use crate::units::{Bytes, Pid};

/// Facts of a machine on which everything can be seen.
fn open() -> Facts {
    Facts {
        gpus: Ok(vec![GpuSample {
            name: Some("NVIDIA H200".into()),
            ..GpuSample::default()
        }]),
        process: OwnProcess {
            pid: Some(Pid(42)),
            cap_sys_ptrace: Some(false),
            reads_all_files: Some(false),
            cpus_allowed: Some(64),
        },
        ptrace_scope: Some(0),
        hidepid: None,
        mounts_known: true,
        process_files: vec![("schedstat", true), ("wchan", true)],
        no_reports_reason: None,
        delay_accounting: Some(true),
        system: Some("Linux (Debian GNU/Linux 12), kernel 6.1.0, x86_64".into()),
        host: HostSample {
            cpus: 64,
            pressure: Some(PressureSample::default()),
            ..HostSample::default()
        },
        host_gaps: Vec::new(),
        cgroup_version: Some("version 2"),
        cgroup: Some(CgroupSample {
            path: "/user.slice".into(),
            ..CgroupSample::default()
        }),
        cgroup_gaps: Vec::new(),
        disks: vec!["nvme0n1".into()],
        disk_gaps: Vec::new(),
        container: None,
        inner_pid_namespace: Some(false),
        loaders: Ok(vec!["SPDL".into(), "Grain".into()]),
        terminal: Terminal {
            is_tty: true,
            environment: Environment {
                term: Some("xterm-256color".into()),
                locale: Some("en_GB.UTF-8".into()),
                no_color: false,
            },
            size: Some((120, 40)),
            ..Terminal::default()
        },
    }
}

fn check(id: &str, facts: &Facts) -> Check {
    checks(facts)
        .into_iter()
        .find(|check| check.id == id)
        .unwrap()
}

fn gap(source: &str, reason: &str, hint: &str) -> Gap {
    Gap {
        source: source.into(),
        reason: reason.into(),
        hint: hint.into(),
    }
}

#[test]
fn an_open_machine_is_all_ok_and_gives_no_advice() {
    for check in checks(&open()) {
        assert_eq!(
            (check.state, &check.hint),
            (CheckState::Ok, &None),
            "{check:?}"
        );
    }
}

#[test]
fn the_right_to_attach_follows_yama_and_the_capability() {
    let table = [
        (None, false, CheckState::Ok, ""),
        (Some(0), false, CheckState::Ok, ""),
        (Some(1), false, CheckState::Limited, "ptrace_scope=0"),
        (Some(1), true, CheckState::Ok, ""),
        (Some(2), false, CheckState::Limited, "setcap"),
        (Some(2), true, CheckState::Ok, ""),
        (Some(3), true, CheckState::Missing, "reboot"),
    ];
    for (scope, capable, state, hint) in table {
        let mut facts = open();
        facts.ptrace_scope = scope;
        facts.process.cap_sys_ptrace = Some(capable);
        let attach = check("attach", &facts);
        assert_eq!(attach.state, state, "{scope:?} {capable}");
        assert!(attach.hint.unwrap_or_default().contains(hint));
        assert_eq!(check("python", &facts).state, state);
    }
}

#[test]
fn other_users_processes_need_two_capabilities() {
    let mut facts = open();
    facts.process.cap_sys_ptrace = Some(true);
    for (reads_all_files, found) in [(false, "CAP_DAC_READ_SEARCH"), (true, "any process")] {
        facts.process.reads_all_files = Some(reads_all_files);
        let attach = check("attach", &facts);
        assert!(attach.found.contains(found), "{}", attach.found);
    }
}

#[test]
fn where_nothing_of_proc_can_be_read_it_is_unknown_what_is_hidden() {
    let mut facts = open();
    facts.mounts_known = false;
    let processes = check("processes", &facts);
    assert_eq!(processes.state, CheckState::Limited);
    assert!(processes.found.starts_with("unknown"), "{processes:?}");
}

#[test]
fn where_no_process_can_be_read_it_is_unknown_whether_any_can_be_attached_to() {
    let mut facts = open();
    facts.process.pid = None;
    for id in ["attach", "python"] {
        assert_eq!(check(id, &facts).state, CheckState::Limited, "{id}");
    }
    assert!(check("attach", &facts).found.starts_with("unknown"));
}

#[test]
fn every_missing_item_has_a_reason_and_a_remedy() {
    let mut facts = open();
    facts.gpus = Err(gap("nvml", "libnvidia-ml.so.1 not found", "--gpus all"));
    facts.inner_pid_namespace = Some(true);
    facts.hidepid = Some("hidepid=2".into());
    facts.process_files = vec![("schedstat", true), ("wchan", false)];
    facts.delay_accounting = Some(false);
    facts.host.pressure = None;
    facts.host_gaps = vec![gap("host", "x", ""), gap("psi", "switched off", "psi=1")];
    facts.cgroup_gaps = vec![gap("cgroup", "not mounted", "mount it")];
    facts.disks.clear();
    facts.disk_gaps = vec![gap("disk", "no such file", "mount it")];
    facts.terminal = Terminal::default();
    let expected = [
        ("nvml", CheckState::Missing, "libnvidia-ml.so.1 not found"),
        (
            "pid-namespace",
            CheckState::Limited,
            "not shared with the host: the driver may report GPU processes with host PIDs",
        ),
        (
            "processes",
            CheckState::Limited,
            "only your own processes are visible (/proc has hidepid=2)",
        ),
        (
            "process-files",
            CheckState::Limited,
            "no wchan: less detail on why processes wait",
        ),
        (
            "delay-accounting",
            CheckState::Limited,
            "off: disk wait times are sampled",
        ),
        ("pressure", CheckState::Missing, "switched off"),
        ("cgroup", CheckState::Limited, "not mounted"),
        ("disks", CheckState::Missing, "no such file"),
        (
            "terminal",
            CheckState::Limited,
            "output is not a terminal: one line per interval",
        ),
        (
            "characters",
            CheckState::Limited,
            "plain ASCII: no locale set",
        ),
        ("colour", CheckState::Limited, "none"),
    ];
    for (id, state, found) in expected {
        let check = check(id, &facts);
        assert_eq!((check.state, &*check.found), (state, found));
        assert!(check.hint.is_some(), "{id} gives no way out");
    }
}

#[test]
fn the_probe_check_shows_whether_jobs_can_report() {
    let mut facts = open();
    assert_eq!(check("probe", &facts).state, CheckState::Ok);
    facts.no_reports_reason = Some("permission denied".into());
    let no_reports_reason = check("probe", &facts);
    assert_eq!(no_reports_reason.state, CheckState::Missing);
    assert!(no_reports_reason.found.ends_with("permission denied"));
}

#[test]
fn limits_are_shown_and_are_not_failures() {
    let mut facts = open();
    facts.process.cpus_allowed = Some(8);
    facts.cgroup = Some(CgroupSample {
        path: "/job_7".into(),
        cpu_quota: Some(7.5),
        mem_limit: Some(Bytes(64 << 30)),
        ..CgroupSample::default()
    });
    assert_eq!(check("cpus", &facts).found, "8 allowed of 64 online");
    let group = check("cgroup", &facts);
    assert_eq!(
        group.found,
        "version 2, /job_7: quota 7.5 CPUs, memory 64.0 GiB"
    );
    assert_eq!(group.state, CheckState::Ok);
}

#[test]
fn a_gpu_in_trouble_is_named() {
    let mut facts = open();
    facts.gpus = Ok(vec![
        GpuSample::default(),
        GpuSample {
            index: 1,
            name: Some("H200".into()),
            gap: Some("lost".into()),
            ..GpuSample::default()
        },
        GpuSample {
            index: 2,
            absent: vec![Absent {
                figure: "process_sm".into(),
                reason: "no permission".into(),
            }],
            ..GpuSample::default()
        },
    ]);
    let check = check("nvml", &facts);
    assert_eq!(check.state, CheckState::Limited);
    assert_eq!(
        check.found,
        "0 unnamed, 1 H200 (lost), 2 unnamed (no permission: process_sm)"
    );
}

#[test]
fn the_text_is_aligned_and_the_json_has_its_schema() {
    let checks = [
        Check {
            id: "nvml",
            state: CheckState::Missing,
            found: "libnvidia-ml.so.1 not found".into(),
            hint: Some("`docker run --gpus all`".into()),
        },
        Check {
            id: "attach",
            state: CheckState::Ok,
            found: "may\tattach".into(),
            hint: None,
        },
    ];
    let expected = "\
missing  nvml    libnvidia-ml.so.1 not found
                 -> `docker run --gpus all`
ok       attach  may\u{fffd}attach

1 ok, 0 limited, 1 missing
";
    assert_eq!(text(&checks), expected);
    let json = json(&checks);
    assert_eq!(json["schema"], "pipetop.doctor/1");
    assert_eq!(json["checks"][0]["state"], "missing");
    assert_eq!(json["checks"][1]["hint"], serde_json::Value::Null);
}

#[test]
fn loaders_are_listed_and_an_unusable_file_is_named() {
    let mut facts = open();
    assert_eq!(check("loaders", &facts).found, "PyTorch, SPDL, Grain");
    facts.loaders = Err("/home/me/.config/pipetop/loaders.toml:3: unknown field".into());
    let wrong = check("loaders", &facts);
    assert_eq!(wrong.state, CheckState::Limited);
    assert!(wrong.found.contains("loaders.toml:3"), "{}", wrong.found);
}
