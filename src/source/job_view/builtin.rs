//! What the built-in job shows from outside that a Python job shows in its memory: its settings on its command
//! line, and its batches in the bytes that its workers write.

use crate::job::BUILTIN_MESSAGE;
use crate::sample::{BatchClock, BatchCount, LoaderSettings, ProcessSample, WorkerSample};

/// The settings of the loader, from the trainer's command line.
pub(super) fn settings(command: &str) -> LoaderSettings {
    let words = || command.split(' ');
    let has = |flag: &str| words().any(|word| word == flag);
    let either = |yes: &str, no: &str| has(yes).then_some(true).or(has(no).then_some(false));
    let number = |flag: &str| words().find_map(|word| word.strip_prefix(flag)?.parse().ok());
    LoaderSettings {
        num_workers: number("--workers="),
        prefetch_factor: number("--prefetch-factor="),
        pin_memory: either("--pin-memory", "--no-pin-memory"),
        persistent_workers: Some(true),
        in_order: either("--in-order", "--any-order"),
        start_method: None,
        batch_size: number("--batch-size="),
    }
}

/// Batches that a worker has made: it writes one message for each, and nothing else.
pub(super) fn made(worker: &ProcessSample) -> Option<u64> {
    Some(worker.io?.wchar.0 / BUILTIN_MESSAGE as u64)
}

/// Batches of all workers; `None` where one cannot be asked.
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
    fn settings_stand_on_the_command_line() {
        let command = "pipetop builtin-trainer --parent=1 --workers=7 --batch-size=16 --any-order --pin-memory";
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
