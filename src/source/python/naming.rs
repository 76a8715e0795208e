//! What a stack means: whether it is inside a PyTorch loader, and which function to name.
//!
//! Pure functions on the names and files of frames, innermost first. Knows PyTorch's and Python's own
//! files by name, nothing of how frames are read.

use crate::loaders::IN_SAMPLER;
use crate::units::printable;

/// The function that a frame runs, qualified where Python knows (3.11 and newer), and its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) file: String,
}

impl Place {
    fn is_in(&self, files: &[&str]) -> bool {
        files.iter().any(|file| self.file.ends_with(file))
    }

    /// The name without classes and enclosing functions: Python before 3.11 gives no more.
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
    /// In the loader, blocked or about to block until a worker hands a batch over.
    Waiting,
    /// In the loader with a batch at hand: unpickling it, mapping its memory, sending the next index.
    Receiving,
    /// Making the batch itself: `num_workers=0`.
    Loading,
    /// Asking for a batch in another way than PyTorch's loaders: waiting for it or making it.
    Asking,
    /// Making the workers, waking those of the epoch before, or ending them.
    Starting,
}

/// What a worker's main thread does at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WorkerPhase {
    /// Not yet, or no more, in its loop: importing, unpickling the dataset, ending.
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

const DATALOADER: &str = "torch/utils/data/dataloader.py";
const WORKER: &str = "torch/utils/data/_utils/worker.py";
const COLLATE: &str = "torch/utils/data/_utils/collate.py";
const FETCH: &str = "torch/utils/data/_utils/fetch.py";
const QUEUES: &[&str] = &["multiprocessing/queues.py", "/queue.py"];
/// Where a batch is put together again from what came through the pipe.
const RECEIVING: &[&str] = &[
    "multiprocessing/reductions.py",
    "multiprocessing/reduction.py",
    "multiprocessing/resource_sharer.py",
];

/// The index of the innermost frame inside the loader's own file.
pub(super) fn loader_frame(places: &[&Place]) -> Option<usize> {
    places.iter().position(|place| place.is_in(&[DATALOADER]))
}

/// How the loader is in use. `iterator_type` is the class of `self` in the frame of [`loader_frame`].
pub(super) fn in_loader(places: &[&Place], iterator_type: Option<&str>) -> InLoader {
    let Some(innermost) = loader_frame(places) else {
        return InLoader::Outside;
    };
    let loader: Vec<&str> = places
        .iter()
        .filter(|place| place.is_in(&[DATALOADER]))
        .map(|place| place.function())
        .collect();
    let any = |names: &[&str]| loader.iter().any(|name| names.contains(name));
    if any(&[
        "__init__",
        "_reset",
        "_get_iterator",
        "__iter__",
        "_shutdown_workers",
        "__del__",
    ]) {
        // A `DataLoader` that is only being built has no workers yet.
        return if iterator_type == Some("DataLoader") && loader[0] == "__init__" {
            InLoader::Outside
        } else {
            InLoader::Starting
        };
    }
    if !any(&["__next__", "_next_data"]) {
        return InLoader::Outside;
    }
    if iterator_type.is_some_and(|name| name.contains("SingleProcess")) || in_sampler(places) {
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

/// A sampler works out which samples the next batch is made of, which the loader's main thread does, whatever its workers do.
fn in_sampler(places: &[&Place]) -> bool {
    let innermost = loader_frame(places).filter(|index| *index > 0);
    innermost.is_some_and(|index| places[index].function() == "_next_index")
}

/// What the main thread that makes a batch does: the function in the loader that tells most.
pub(super) fn loading(places: &[&Place]) -> Option<String> {
    let inside = &places[..loader_frame(places).unwrap_or(places.len())];
    let of_sampler = if in_sampler(places) { IN_SAMPLER } else { "" };
    Some(format!("{}{of_sampler}", activity(inside)?))
}

/// The index of the frame of `_worker_loop`.
pub(super) fn worker_frame(places: &[&Place]) -> Option<usize> {
    places
        .iter()
        .position(|place| place.function() == "_worker_loop" && place.is_in(&[WORKER]))
}

/// What a worker does; `has_index` = the loop holds the number of a batch.
pub(super) fn worker_phase(places: &[&Place], has_index: bool) -> WorkerPhase {
    let Some(worker) = worker_frame(places) else {
        return WorkerPhase::Starting;
    };
    let callee = worker.checked_sub(1).map(|index| places[index]);
    match callee {
        Some(place) if place.is_in(QUEUES) && place.function() == "get" => WorkerPhase::Idle,
        Some(place) if place.is_in(QUEUES) && place.function() == "put" => WorkerPhase::Handover,
        Some(place) if place.is_in(&[WORKER]) => WorkerPhase::Idle,
        Some(place) if has_index || place.is_in(&[FETCH]) => WorkerPhase::Busy,
        None if has_index => WorkerPhase::Busy,
        _ => WorkerPhase::Preparing,
    }
}

/// A checkpoint is being written, by the functions that PyTorch and safetensors have for it.
pub(super) fn saves(places: &[&Place]) -> bool {
    let distributed = |place: &Place| place.file.contains("torch/distributed/checkpoint/");
    places.iter().any(|place| match place.function() {
        "save" | "_save" | "_legacy_save" => {
            place.is_in(&["torch/serialization.py"]) || distributed(place)
        }
        "async_save" => distributed(place),
        "save_file" | "save_model" => place.is_in(&["safetensors/torch.py"]),
        _ => false,
    })
}

/// Files that only carry a call on: naming them would say nothing about where the time goes.
const CARRIERS: &[&str] = &[
    "torch/utils/data/dataloader.py",
    "torch/utils/data/_utils/worker.py",
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
const CARRIER_PARTS: &[&str] = &["/multiprocessing/", "<frozen ", "/importlib/"];
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
const LONGEST_NAME: usize = 60;

/// The innermost function that tells something, as `Image.resize (PIL)` or `decode (train.py)`.
/// `None` where every frame only carries a call on.
pub(super) fn activity(places: &[&Place]) -> Option<String> {
    places
        .iter()
        .find(|place| tells_something(place))
        .map(|place| {
            if place.is_in(&[COLLATE]) {
                return "collate (torch)".to_owned();
            }
            let name = place.name.rsplit("<locals>.").next().unwrap_or(&place.name);
            format!("{} ({})", shown(name), shown(&module(&place.file)))
        })
}

fn tells_something(place: &Place) -> bool {
    !CARRIER_NAMES.contains(&place.function())
        // What `python -c` runs: the start of a spawned process.
        && place.file != "<string>"
        && !place.is_in(CARRIERS)
        && !CARRIER_PARTS.iter().any(|part| place.file.contains(part))
}

/// The package that a file belongs to; the file's own name where it is in none.
fn module(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let is_library = |part: &&str| matches!(*part, "site-packages" | "dist-packages");
    let is_standard = |part: &&str| {
        part.strip_prefix("python3.")
            .is_some_and(|minor| minor.parse::<u8>().is_ok())
    };
    let home = parts.iter().rposition(is_library).or_else(|| {
        let standard = parts.iter().rposition(is_standard)?;
        (standard > 0 && matches!(parts[standard - 1], "lib" | "lib64")).then_some(standard)
    });
    let package = home.and_then(|home| parts.get(home + 1));
    match package {
        Some(package) => package.trim_end_matches(".py").to_owned(),
        None => parts.last().copied().unwrap_or_default().to_owned(),
    }
}

/// Without what a terminal would obey, and not longer than a column bears.
fn shown(text: &str) -> String {
    printable(text)
        .chars()
        .filter(|c| *c != char::REPLACEMENT_CHARACTER)
        .take(LONGEST_NAME)
        .collect()
}

#[cfg(test)]
mod tests;
