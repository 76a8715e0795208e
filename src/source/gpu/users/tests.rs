use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::sample::{GpuInstance, GpuProcess};

/// A `/proc` with processes that have open files and an environment.
struct Proc(TempDir);

impl Proc {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn process(self, pid: i32, files: &[&str], environment: &[&str]) -> Self {
        let process = self.0.path().join(pid.to_string());
        fs::create_dir_all(process.join("fd")).unwrap();
        for (number, file) in files.iter().enumerate() {
            symlink(file, process.join("fd").join(number.to_string())).unwrap();
        }
        fs::write(process.join("environ"), environment.join("\0")).unwrap();
        self
    }

    /// Assigns users to GPUs for which the driver lists these processes.
    fn annotate(&self, ranks: &[i32], first: Option<bool>, listed: &[&[i32]]) -> Vec<GpuSample> {
        let mut gpus: Vec<_> = (0..)
            .zip(listed)
            .map(|(index, pids)| GpuSample {
                index,
                minor: Some(index),
                processes: Some(pids.iter().copied().map(process).collect()),
                ..GpuSample::default()
            })
            .collect();
        let ranks: Vec<_> = ranks.iter().copied().map(key).collect();
        Users::new(self.0.path(), first).annotate(Duration::ZERO, &ranks, &mut gpus);
        gpus
    }
}

fn process(pid: i32) -> GpuProcess {
    GpuProcess {
        pid: Pid(pid),
        mem: None,
        sm_percent: None,
        sm_at: None,
        place: ProcessPlace::Unknown,
    }
}

fn key(pid: i32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid),
        start_ticks: 1,
    }
}

fn places(gpu: &GpuSample) -> Vec<ProcessPlace> {
    let list = gpu.processes.iter().flatten();
    list.map(|process| process.place).collect()
}

fn users(gpu: &GpuSample) -> Vec<(i32, UsedBy)> {
    let users = gpu.users.iter().flatten();
    users.map(|user| (user.pid.0, user.by)).collect()
}

#[test]
fn in_the_first_namespace_a_number_is_a_number() {
    let proc = Proc::new().process(7, &[], &[]);
    let gpus = proc.annotate(&[7], Some(true), &[&[7, 9]]);
    assert_eq!(
        places(&gpus[0]),
        [ProcessPlace::Here, ProcessPlace::Unknown]
    );
    assert_eq!(users(&gpus[0]), [(7, UsedBy::Listed)]);
}

#[test]
fn in_a_container_a_number_alone_joins_nothing() {
    for first in [Some(false), None] {
        let proc = Proc::new()
            .process(7, &["/dev/null", "/dev/nvidia-uvm", "/dev/nvidia0"], &[])
            .process(8, &["/dev/null", "socket:[1]"], &[]);
        // 8 is also a PID of the host, 4242 does not exist here.
        let gpus = proc.annotate(&[8], first, &[&[7, 8, 4242]]);
        let (here, outside) = (ProcessPlace::Here, ProcessPlace::Outside);
        assert_eq!(places(&gpus[0]), [here, outside, outside]);
        assert_eq!(
            users(&gpus[0]),
            [(8, UsedBy::OnlyVisible)],
            "by its environment alone"
        );
    }
}

#[test]
fn an_open_device_file_is_used_where_the_driver_gives_nothing() {
    let proc = Proc::new().process(7, &["/dev/nvidiactl", "/dev/nvidia1"], &["LOCAL_RANK=0"]);
    let gpus = proc.annotate(&[7], Some(false), &[&[4242], &[]]);
    assert_eq!(users(&gpus[0]), []);
    assert_eq!(users(&gpus[1]), [(7, UsedBy::DeviceFile)]);
    // If a process has all GPUs open, as CUDA leaves them, the position among the visible ones decides.
    let all = ["/dev/nvidia0", "/dev/nvidia1"];
    let proc = Proc::new().process(7, &all, &["LOCAL_RANK=0"]);
    let gpus = proc.annotate(&[7], Some(false), &[&[], &[]]);
    assert_eq!(users(&gpus[0]), [(7, UsedBy::LocalRank)]);
}

#[test]
fn each_rank_has_its_gpu_by_its_own_environment() {
    let proc = Proc::new()
        .process(1, &[], &["CUDA_VISIBLE_DEVICES=2", "LOCAL_RANK=0"])
        .process(2, &[], &["CUDA_VISIBLE_DEVICES=3,1", "LOCAL_RANK=1"])
        .process(3, &[], &["CUDA_VISIBLE_DEVICES="]);
    let gpus = proc.annotate(&[1, 2, 3], Some(true), &[&[], &[], &[], &[]]);
    let visible: Vec<_> = gpus.iter().map(|gpu| gpu.visible_to_job).collect();
    assert_eq!(visible, [Some(false), Some(true), Some(true), Some(true)]);
    assert_eq!(users(&gpus[1]), [(2, UsedBy::LocalRank)]);
    assert_eq!(users(&gpus[2]), [(1, UsedBy::OnlyVisible)]);
    assert_eq!((users(&gpus[0]), users(&gpus[3])), (vec![], vec![]));
}

#[test]
fn an_unreadable_environment_gives_no_gpu() {
    let gpus = Proc::new().annotate(&[1], Some(true), &[&[]]);
    assert_eq!(gpus[0].visible_to_job, None);
    assert_eq!(users(&gpus[0]), []);
}

#[test]
fn a_mig_instance_is_used_by_its_assigned_process() {
    let proc = Proc::new().process(1, &[], &["CUDA_VISIBLE_DEVICES=MIG-77"]);
    let part = GpuInstance {
        uuid: Some("MIG-77".to_owned()),
        gpu_instance: Some(5),
        processes: Some(vec![process(1), process(4242)]),
        ..GpuInstance::default()
    };
    let mut gpus = [GpuSample {
        instances: vec![part],
        ..GpuSample::default()
    }];
    let mut users = Users::new(proc.0.path(), Some(false));
    users.annotate(Duration::ZERO, &[key(1)], &mut gpus);
    let user = &gpus[0].users.as_ref().unwrap()[0];
    assert_eq!((user.by, user.instance), (UsedBy::OnlyVisible, Some(5)));
    let processes = gpus[0].instances[0].processes.as_ref().unwrap();
    assert_eq!(processes[1].place, ProcessPlace::Outside);
}
