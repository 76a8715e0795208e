//! Which process uses which GPU: which of the driver's PIDs are processes visible here, and which rank of the job uses
//! which GPU, with the evidence for it.
//!
//! Only reads `/proc`. In a container a PID of the driver may be the host's: it counts as a process here only if that
//! process has a device file of the driver open.
//!
//! Mappings are not read: a process that maps a device file of the driver also keeps it open, and a user who may not
//! list the descriptors may not read the mappings either. Reading mappings would also take the job's lock on its
//! address space (before Linux 6.17, for as long as a piece is written), and with 10 000 mappings it takes 2.6 ms,
//! while reading descriptors takes 0.1 ms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::naming::{Named, Visible, any, visible};
use crate::sample::{GpuSample, GpuUser, ProcessPlace, UsedBy};
use crate::source::process::ProcessReader;
use crate::units::{Pid, ProcessKey};

/// Pause between two reads: what a process has open seldom changes once it trains.
const REREAD_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(in crate::source) struct Users {
    proc_root: PathBuf,
    reader: ProcessReader,
    /// Whether the driver's PIDs are those of `/proc` here. `None` = not known.
    first_namespace: Option<bool>,
    /// `None` if it could not be read.
    ranks: BTreeMap<ProcessKey, Option<RankEnvironment>>,
    /// Keyed by PID: processes listed by the driver, and ranks.
    files: BTreeMap<Pid, (Duration, Files)>,
}

/// Environment that a rank was started with. The program may have changed it since.
#[derive(Debug)]
struct RankEnvironment {
    /// `CUDA_VISIBLE_DEVICES`; `None` = not set.
    visible: Option<String>,
    local_rank: Option<usize>,
    /// `CUDA_DEVICE_ORDER=PCI_BUS_ID`
    by_bus: bool,
}

/// Device files of the driver that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Files {
    NoProcess,
    Denied,
    Open {
        /// The N of each `/dev/nvidiaN`.
        gpus: BTreeSet<u32>,
        /// Whether any device file of the driver is open, including those that are not a GPU's.
        any: bool,
    },
}

impl Users {
    pub(in crate::source) fn new(proc_root: &Path, first_namespace: Option<bool>) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            reader: ProcessReader::new(proc_root),
            first_namespace,
            ranks: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// Records for each GPU which of its processes are here, which of `ranks` use it and whether they may.
    pub(in crate::source) fn annotate(
        &mut self,
        now: Duration,
        ranks: &[ProcessKey],
        gpus: &mut [GpuSample],
    ) {
        self.files
            .retain(|_, (asked, _)| now.saturating_sub(*asked) < REREAD_AFTER);
        self.ranks.retain(|key, _| ranks.contains(key));
        for gpu in gpus.iter_mut() {
            let parts = gpu
                .instances
                .iter_mut()
                .flat_map(|part| &mut part.processes);
            let lists = gpu.processes.iter_mut().chain(parts);
            for process in lists.flatten() {
                process.place = self.place(now, process.pid);
            }
        }
        if ranks.is_empty() {
            return;
        }
        let views: Vec<_> = ranks.iter().map(|rank| self.view(*rank, gpus)).collect();
        for (place, gpu) in gpus.iter_mut().enumerate() {
            gpu.visible_to_job = any(views.iter().map(|view| match view {
                Some(view) => view.answers.get(place).copied().flatten(),
                None => None,
            }));
        }
        let uses: Vec<_> = ranks
            .iter()
            .zip(&views)
            .flat_map(|(rank, view)| self.uses(now, *rank, view.as_ref(), gpus))
            .collect();
        for (place, gpu) in gpus.iter_mut().enumerate() {
            let mine = uses.iter().filter(|(at, _)| *at == place);
            gpu.users = Some(mine.map(|(_, user)| user.clone()).collect());
        }
    }

    fn place(&mut self, now: Duration, pid: Pid) -> ProcessPlace {
        if self.first_namespace == Some(true) {
            // A process that is no longer here has ended.
            let here = self.proc_root.join(pid.to_string()).exists();
            return if here {
                ProcessPlace::Here
            } else {
                ProcessPlace::Unknown
            };
        }
        match self.files(now, pid) {
            // Without a device file it is another process with the same number.
            Files::NoProcess | Files::Open { any: false, .. } => ProcessPlace::Outside,
            Files::Open { any: true, .. } => ProcessPlace::Here,
            Files::Denied => ProcessPlace::Unknown,
        }
    }

    /// Returns what the rank may use according to its environment; `None` if that cannot be read.
    fn view(&mut self, rank: ProcessKey, gpus: &[GpuSample]) -> Option<Visible> {
        let reader = &mut self.reader;
        let environment = self
            .ranks
            .entry(rank)
            .or_insert_with(|| ask(reader, rank.pid));
        let environment = environment.as_ref()?;
        let named: Vec<_> = gpus.iter().map(name).collect();
        Some(visible(
            &named,
            environment.visible.as_deref(),
            environment.by_bus,
        ))
    }

    /// Returns the positions of the GPUs that a rank uses, from the most reliable evidence available.
    fn uses(
        &mut self,
        now: Duration,
        rank: ProcessKey,
        view: Option<&Visible>,
        gpus: &[GpuSample],
    ) -> Vec<(usize, GpuUser)> {
        let user = |by, instance| GpuUser {
            pid: rank.pid,
            by,
            instance,
        };
        let listed = listed(rank.pid, gpus);
        if !listed.is_empty() {
            let joined = |(place, instance)| (place, user(UsedBy::Listed, instance));
            return listed.into_iter().map(joined).collect();
        }
        if let Some((place, instance)) = view.and_then(|view| view.instance) {
            return vec![(place, user(UsedBy::OnlyVisible, Some(instance)))];
        }
        if let Files::Open { gpus: open, .. } = self.files(now, rank.pid)
            && open.len() == 1
        {
            let place = gpus
                .iter()
                .position(|gpu| gpu.minor.is_some_and(|minor| open.contains(&minor)));
            return place
                .map(|place| (place, user(UsedBy::DeviceFile, None)))
                .into_iter()
                .collect();
        }
        let local_rank = self
            .ranks
            .get(&rank)
            .and_then(|known| known.as_ref()?.local_rank);
        let place = view.and_then(|view| match (view.order.as_slice(), local_rank) {
            ([only], _) => Some((*only, UsedBy::OnlyVisible)),
            (several, Some(rank)) => Some((*several.get(rank)?, UsedBy::LocalRank)),
            _ => None,
        });
        place
            .map(|(place, by)| (place, user(by, None)))
            .into_iter()
            .collect()
    }

    fn files(&mut self, now: Duration, pid: Pid) -> Files {
        let root = &self.proc_root;
        let known = self.files.entry(pid);
        known
            .or_insert_with(|| (now, device_files(root, pid)))
            .1
            .clone()
    }
}

fn name(gpu: &GpuSample) -> Named<'_> {
    Named {
        index: gpu.index,
        uuid: gpu.uuid.as_deref(),
        model: gpu.name.as_deref(),
        instances: &gpu.instances,
    }
}

fn ask(reader: &mut ProcessReader, rank: Pid) -> Option<RankEnvironment> {
    let names = ["CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "CUDA_DEVICE_ORDER"];
    let [visible, local_rank, order] = reader.environment(rank, names)?;
    Some(RankEnvironment {
        visible,
        local_rank: local_rank.and_then(|rank| rank.trim().parse().ok()),
        by_bus: order.is_some_and(|order| order.trim() == "PCI_BUS_ID"),
    })
}

/// Returns the GPUs on which the driver lists this process, if its PID there is known to mean this process: their
/// positions, and the instance.
fn listed(pid: Pid, gpus: &[GpuSample]) -> Vec<(usize, Option<u32>)> {
    let mut found = Vec::new();
    for (place, gpu) in gpus.iter().enumerate() {
        let parts = gpu.instances.iter();
        let parts = parts.map(|part| (part.gpu_instance, &part.processes));
        for (instance, list) in parts.chain([(None, &gpu.processes)]) {
            let mut list = list.iter().flatten();
            let it = list.any(|process| process.pid == pid && process.place == ProcessPlace::Here);
            if it && found.last().is_none_or(|(last, _)| *last != place) {
                found.push((place, instance));
            }
        }
    }
    found
}

fn device_files(proc_root: &Path, pid: Pid) -> Files {
    let process = proc_root.join(pid.to_string());
    let open = match fs::read_dir(process.join("fd")) {
        Ok(open) => open,
        Err(error) if error.kind() == ErrorKind::NotFound => return Files::NoProcess,
        Err(_) => return Files::Denied,
    };
    let mut gpus = BTreeSet::new();
    let mut any = false;
    for file in open.flatten() {
        // Skips files that were closed meanwhile.
        let Ok(target) = fs::read_link(file.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let Some(rest) = target.strip_prefix("/dev/nvidia") else {
            continue;
        };
        any = true;
        gpus.extend(rest.parse::<u32>().ok());
    }
    Files::Open { gpus, any }
}

#[cfg(test)]
mod tests;
