//! What a stack means: whether it is inside a PyTorch loader, and which function to name.
//!
//! Pure functions on the names and files of frames, innermost first. Depends on the file names of PyTorch and Python,
//! not on how frames are read.

use crate::loaders::IN_SAMPLER;
use crate::sample::{CELLS, EVENTS};
use crate::units::printable;

/// The function that a frame runs, qualified if Python knows the qualified name (3.11 and newer), and its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CodeLocation {
    pub(super) name: String,
    pub(super) file: String,
}

impl CodeLocation {
    fn is_in(&self, files: &[&str]) -> bool {
        files.iter().any(|file| self.file.ends_with(file))
    }

    /// Returns the name without classes and enclosing functions: all that Python before 3.11 has.
    pub(super) fn function(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// How the main thread of a trainer uses the loader at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InLoader {
    /// Not in a PyTorch loader.
    #[default]
    Outside,
    /// In the loader, blocked or about to block until a worker hands over a batch, or resumes for the next epoch.
    Waiting,
    /// In the loader with a batch at hand: unpickling it, mapping its memory, sending the next index.
    Receiving,
    /// Making the batch itself: `num_workers=0`.
    Loading,
    /// Asking a loader other than PyTorch's for a batch: waiting for it or making it.
    Asking,
    /// Starting the workers, or stopping them.
    Starting,
}

/// What a worker's main thread does at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WorkerPhase {
    /// Importing or unpickling the dataset, before its work begins.
    #[default]
    Starting,
    /// In its loop, before it is ready for the first index: seeding, `worker_init_fn`.
    Preparing,
    /// Waits for an index: nothing to do.
    Idle,
    /// Makes a batch.
    Busy,
    /// Hands a batch over to the thread that writes it to the pipe.
    Handover,
}

/// PyTorch's loader, and torchdata's variant of it, whose state can be saved.
const DATALOADER: &[&str] = &[
    "torch/utils/data/dataloader.py",
    "torchdata/stateful_dataloader/stateful_dataloader.py",
];
/// How the files of the import system begin.
pub(super) const IMPORTS: &str = "<frozen importlib";
const WORKER: &[&str] = &[
    "torch/utils/data/_utils/worker.py",
    "torchdata/stateful_dataloader/worker.py",
];
const COLLATE: &str = "torch/utils/data/_utils/collate.py";
const FETCH: &str = "torch/utils/data/_utils/fetch.py";
const QUEUES: &[&str] = &["multiprocessing/queues.py", "/queue.py"];
/// Files of the functions that rebuild a batch from what came through the pipe.
const RECEIVING: &[&str] = &[
    "multiprocessing/reductions.py",
    "multiprocessing/reduction.py",
    "multiprocessing/resource_sharer.py",
];

/// Returns the index of the innermost frame inside the loader's own file.
pub(super) fn loader_frame(places: &[&CodeLocation]) -> Option<usize> {
    places.iter().position(|place| place.is_in(DATALOADER))
}

/// Returns the index of the frame of an outer loader: its dataset takes batches from the loader of [`loader_frame`]. If
/// there are several, that of the outermost.
pub(super) fn outer_loader(places: &[&CodeLocation]) -> Option<usize> {
    let is_next = |place: &&CodeLocation| place.is_in(DATALOADER) && place.function() == "__next__";
    let outermost = places.iter().rposition(is_next)?;
    // A `__next__` that it calls directly is its superclass's.
    let called = outermost.checked_sub(1)?;
    places[..called].iter().any(is_next).then_some(outermost)
}

/// Returns how the loader is in use. `iterator_type` is the class of `self` in the frame of [`loader_frame`].
pub(super) fn in_loader(places: &[&CodeLocation], iterator_type: Option<&str>) -> InLoader {
    let Some(innermost) = loader_frame(places) else {
        return InLoader::Outside;
    };
    let loader: Vec<&str> = places
        .iter()
        .filter(|place| place.is_in(DATALOADER))
        .map(|place| place.function())
        .collect();
    let any = |names: &[&str]| loader.iter().any(|name| names.contains(name));
    // Also at the start of an epoch, when some samplers pick all samples of the epoch.
    if in_sampler(places) {
        return InLoader::Loading;
    }
    if any(&[
        "__init__",
        "_reset",
        "_get_iterator",
        "__iter__",
        "_shutdown_workers",
        "__del__",
    ]) {
        // A `DataLoader` that is only being constructed has no workers yet.
        let makes_or_ends = any(&["__init__", "_shutdown_workers", "__del__"]);
        return match iterator_type {
            Some("DataLoader" | "StatefulDataLoader") if loader[0] == "__init__" => {
                InLoader::Outside
            }
            Some(name) if name.contains("SingleProcess") => InLoader::Loading,
            Some(name) if name.contains("MultiProcess") && makes_or_ends => InLoader::Starting,
            _ => InLoader::Waiting,
        };
    }
    if !any(&["__next__", "_next_data"]) {
        return InLoader::Outside;
    }
    if iterator_type.is_some_and(|name| name.contains("SingleProcess")) {
        return InLoader::Loading;
    }
    let callees = &places[..innermost];
    let has_batch = callees.iter().any(|place| place.is_in(RECEIVING) || place.function().starts_with("_recv"))
        // Unpickling runs in C under the queue's `get`.
        || callees.first().is_some_and(|place| place.function() == "get" && place.is_in(&QUEUES[..1]));
    if any(&["_get_data", "_try_get_data"]) && !has_batch {
        InLoader::Waiting
    } else {
        InLoader::Receiving
    }
}

/// Whether the stack is in a sampler, which picks the samples of the next batch. The main thread does that even if the
/// loader has workers.
fn in_sampler(places: &[&CodeLocation]) -> bool {
    let innermost = loader_frame(places).filter(|index| *index > 0);
    innermost.is_some_and(|index| places[index].function() == "_next_index")
}

/// Returns what the main thread does while it makes a batch itself: the most specific function in the loader.
pub(super) fn loading(places: &[&CodeLocation]) -> Option<String> {
    let inside = &places[..loader_frame(places).unwrap_or(places.len())];
    let of_sampler = if in_sampler(places) { IN_SAMPLER } else { "" };
    Some(format!("{}{of_sampler}", activity(inside)?))
}

/// Returns the index of the frame of `_worker_loop`.
pub(super) fn worker_frame(places: &[&CodeLocation]) -> Option<usize> {
    places
        .iter()
        .position(|place| place.function() == "_worker_loop" && place.is_in(WORKER))
}

/// Returns the index of the frame in which a process of `multiprocessing` starts its function.
pub(super) fn process_frame(places: &[&CodeLocation]) -> Option<usize> {
    places
        .iter()
        .position(|place| place.function() == "run" && place.is_in(&["multiprocessing/process.py"]))
}

/// Returns what a worker does. `has_index`: the loop holds the number of a batch.
pub(super) fn worker_phase(places: &[&CodeLocation], has_index: bool) -> WorkerPhase {
    let Some(worker) = worker_frame(places) else {
        return phase_elsewhere(places);
    };
    let callee = worker.checked_sub(1).map(|index| places[index]);
    match callee {
        Some(place) if place.is_in(QUEUES) && place.function() == "get" => WorkerPhase::Idle,
        Some(place) if place.is_in(QUEUES) && place.function() == "put" => WorkerPhase::Handover,
        Some(place) if place.is_in(WORKER) => WorkerPhase::Idle,
        Some(place) if has_index || place.is_in(&[FETCH]) => WorkerPhase::Busy,
        None if has_index => WorkerPhase::Busy,
        _ => WorkerPhase::Preparing,
    }
}

/// Returns what a worker outside PyTorch's loader does. The function that such a process runs takes work from a queue,
/// and the functions that it calls do the work.
fn phase_elsewhere(places: &[&CodeLocation]) -> WorkerPhase {
    // A forked worker still has its trainer's frames around its own, and these may be of an import.
    let Some(run) = process_frame(places) else {
        let starts = |it: &&CodeLocation| {
            it.is_in(&["multiprocessing/spawn.py"]) || it.file.starts_with(IMPORTS)
        };
        return if places.iter().any(starts) {
            WorkerPhase::Starting
        } else {
            WorkerPhase::Busy
        };
    };
    let callee = run.checked_sub(2).map(|index| places[index]);
    match callee
        .filter(|place| place.is_in(QUEUES))
        .map(CodeLocation::function)
    {
        Some("get") => WorkerPhase::Idle,
        Some("put") => WorkerPhase::Handover,
        _ => WorkerPhase::Busy,
    }
}

/// Returns what the thread waits for if it is in an event loop of `asyncio`, outside every function of the program. The
/// program may be awaiting anything there, even a batch that another thread takes. A notebook's kernel is there between
/// two cells, too.
pub(super) fn idles(places: &[&CodeLocation]) -> Option<&'static str> {
    let [select, within, outside @ ..] = places else {
        return None;
    };
    let by_loop = within.function() == "_run_once" && within.is_in(&["asyncio/base_events.py"]);
    let waits = by_loop && select.function() == "select" && select.is_in(&["/selectors.py"]);
    let is_kernel = |place: &&CodeLocation| place.file.contains("/ipykernel/");
    let cells = outside.iter().any(is_kernel);
    waits.then_some(if cells { CELLS } else { EVENTS })
}

/// Whether a checkpoint is being written by functions of PyTorch or safetensors.
pub(super) fn saves(places: &[&CodeLocation]) -> bool {
    let distributed = |place: &CodeLocation| place.file.contains("torch/distributed/checkpoint/");
    places.iter().any(|place| match place.function() {
        "save" | "_save" | "_legacy_save" => {
            place.is_in(&["torch/serialization.py"]) || distributed(place)
        }
        "async_save" => distributed(place),
        "save_file" | "save_model" => place.is_in(&["safetensors/torch.py"]),
        _ => false,
    })
}

/// Files that only pass a call on: naming them would not show where the time goes.
const CARRIERS: &[&str] = &[
    "torch/utils/data/_utils/fetch.py",
    "torch/utils/data/dataset.py",
    "torch/nn/modules/module.py",
    "torch/utils/_contextlib.py",
    "torch/autograd/grad_mode.py",
    "torch/autograd/graph.py",
    "torch/autograd/profiler.py",
    "torch/autograd/__init__.py",
    "torch/_ops.py",
    "/threading.py",
    "/queue.py",
    "/selectors.py",
    "/functools.py",
    "/contextlib.py",
    "/runpy.py",
];
const CARRIER_PARTS: &[&str] = &[
    "/multiprocessing/",
    "/concurrent/futures/",
    "/asyncio/",
    "<frozen ",
    "/importlib/",
];
const CARRIER_NAMES: &[&str] = &[
    "<listcomp>",
    "<genexpr>",
    "<dictcomp>",
    "<setcomp>",
    "wrapper",
    "_wrapper",
    "wrapped",
    "inner",
    "decorate_context",
];
const MAX_NAME: usize = 60;

/// Returns the innermost specific function, such as `Image.resize (PIL)` or `decode (train.py)`. `None` if every frame
/// only passes a call on.
pub(super) fn activity(places: &[&CodeLocation]) -> Option<String> {
    places.iter().find(|place| is_specific(place)).map(|place| {
        if place.is_in(&[COLLATE]) {
            return "collate (torch)".to_owned();
        }
        let name = place.name.rsplit("<locals>.").next().unwrap_or(&place.name);
        format!("{} ({})", shown(name), shown(&module(&place.file)))
    })
}

fn is_specific(place: &CodeLocation) -> bool {
    !CARRIER_NAMES.contains(&place.function())
        // The code of `python -c`: the start of a spawned process.
        && place.file != "<string>"
        && ![DATALOADER, WORKER, CARRIERS].iter().any(|files| place.is_in(files))
        && !CARRIER_PARTS.iter().any(|part| place.file.contains(part))
}

/// Returns the package that a file belongs to, or the file's own name if it is in none.
fn module(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let package = home(&parts).and_then(|home| parts.get(home + 1));
    match package {
        Some(package) => package.trim_end_matches(".py").to_owned(),
        None => parts.last().copied().unwrap_or_default().to_owned(),
    }
}

/// Whether a file belongs to the standard library or to an installed package.
pub(super) fn is_library(file: &str) -> bool {
    home(&file.split('/').collect::<Vec<_>>()).is_some()
}

/// Returns which part of a path is the folder of the standard library or of installed packages.
fn home(parts: &[&str]) -> Option<usize> {
    let is_library = |part: &&str| matches!(*part, "site-packages" | "dist-packages");
    let is_standard = |part: &&str| {
        part.strip_prefix("python3.")
            .is_some_and(|minor| minor.parse::<u8>().is_ok())
    };
    parts.iter().rposition(is_library).or_else(|| {
        let standard = parts.iter().rposition(is_standard)?;
        (standard > 0 && matches!(parts[standard - 1], "lib" | "lib64")).then_some(standard)
    })
}

/// Removes what a terminal would interpret, and shortens the text to the width of a column.
fn shown(text: &str) -> String {
    printable(text)
        .chars()
        .filter(|c| *c != char::REPLACEMENT_CHARACTER)
        .take(MAX_NAME)
        .collect()
}

#[cfg(test)]
mod tests;
