//! The figures of the built-in job that a Python job has in its memory: its settings are on its command line, and its
//! batches are counted from the bytes that its workers write.

use serde::Deserialize;

use crate::job::BUILTIN_MESSAGE;
use crate::sample::{BatchClock, BatchCount, LoaderSettings, ProcessSample, WorkerSample};

/// The loader's settings on the trainer's command line, as JSON.
#[derive(Default, Deserialize)]
struct Settings {
    workers: Option<u32>,
    prefetch_factor: Option<u32>,
    batch_size: Option<u32>,
    pin_memory: Option<bool>,
    in_order: Option<bool>,
}

/// Returns the settings of the loader, from the trainer's command line.
pub(super) fn settings(command: &str) -> LoaderSettings {
    let json = command.find('{').map(|at| &command[at..]);
    let said = json.and_then(|json| serde_json::from_str(json).ok());
    let said: Settings = said.unwrap_or_default();
    LoaderSettings {
        num_workers: said.workers,
        prefetch_factor: said.prefetch_factor,
        pin_memory: said.pin_memory,
        persistent_workers: Some(true),
        in_order: said.in_order,
        start_method: None,
        batch_size: said.batch_size,
    }
}

/// Returns the batches that a worker has made: it writes one message for each, and nothing else.
pub(super) fn made(worker: &ProcessSample) -> Option<u64> {
    Some(worker.io?.wchar.0 / BUILTIN_MESSAGE as u64)
}

/// Returns the batches of all workers; `None` if the count of one is not known.
pub(super) fn batches(workers: &[WorkerSample]) -> Option<BatchCount> {
    let made: Option<u64> = workers.iter().map(|worker| worker.batches).sum();
    made.map(|count| BatchCount {
        count,
        source: BatchClock::Messages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_the_command_line() {
        let command = r#"pipetop builtin-trainer --parent=1 {"workers":7,"batch_size":16,"seed":0,"in_order":false,"pin_memory":true}"#;
        let settings = settings(command);
        assert_eq!(
            (settings.num_workers, settings.batch_size),
            (Some(7), Some(16))
        );
        assert_eq!(settings.prefetch_factor, None, "not said");
        assert_eq!(
            (settings.in_order, settings.pin_memory),
            (Some(false), Some(true))
        );
    }
}
