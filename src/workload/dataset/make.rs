//! Makes images on all CPUs that this process may use.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::folder::Folder;
use super::{DatasetError, Plan, draw};

/// Makes those of `missing`. At the first failure all threads stop; where it was a full disk, what was made
/// is removed again.
pub(super) fn images(
    folder: &Folder,
    plan: Plan,
    missing: &[u32],
    progress: &mut impl FnMut(u32, u32),
) -> Result<(), DatasetError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let work = |made: &mpsc::Sender<_>| {
        while !stop.load(Ordering::Relaxed) {
            let Some(&index) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let written = draw::jpeg(index, plan.side)
                .and_then(|content| folder.write(&folder.image(index), &content));
            // Nobody listens any more only where the listener panicked.
            let _ = made.send(written.map(|()| index));
        }
    };
    let mut made = Vec::new();
    let mut failed = None;
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.min(missing.len()) {
            let sender = sender.clone();
            scope.spawn(move || work(&sender));
        }
        drop(sender);
        let mut there = plan.images - u32::try_from(missing.len()).unwrap_or(plan.images);
        progress(there, plan.images);
        for result in results {
            match result {
                Ok(index) => {
                    made.push(index);
                    there += 1;
                    progress(there, plan.images);
                }
                Err(why) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(why);
                }
            }
        }
    });
    let Some(why) = failed else { return Ok(()) };
    let error = folder.failed_to_write(why);
    if let DatasetError::Full { folder: path, .. } = error {
        for index in made {
            let _ = fs::remove_file(folder.image(index));
        }
        return Err(DatasetError::Full {
            folder: path,
            needed: plan.size_of(missing.len()),
            free: folder.free(),
        });
    }
    Err(error)
}
