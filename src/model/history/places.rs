//! Which slot of a point belongs to which worker.
//!
//! A slot is a byte in each point, so there is a limit to them: who comes when all are taken gets that of the
//! worker that was away for the longest time.

use std::collections::BTreeMap;

use super::WorkerPlace;
use super::point::Reading;

/// Workers whose past is kept at most.
pub(super) const MOST: usize = 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// With the slot, and when it was last seen, in seconds since pipetop started.
    known: BTreeMap<WorkerPlace, (usize, f64)>,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Slots that there are, each below this number.
    pub(super) fn slots(&self) -> usize {
        // None is given back but to the next who comes.
        self.known.len()
    }

    pub(super) fn slot(&self, place: WorkerPlace) -> Option<usize> {
        self.known.get(&place).map(|(slot, _)| *slot)
    }

    /// Gives everyone in the reading a slot, as far as there are any; says which of them were another's.
    pub(super) fn take(&mut self, reading: &Reading) -> Vec<usize> {
        let mut freed = Vec::new();
        for (place, _) in &reading.workers {
            if let Some((_, seen)) = self.known.get_mut(place) {
                *seen = reading.to;
                continue;
            }
            let slot = if self.known.len() < MOST {
                self.known.len()
            } else {
                let away = self.known.iter().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
                let Some((&longest, &(slot, seen))) = away else {
                    continue;
                };
                if seen >= reading.to {
                    // More workers than slots.
                    continue;
                }
                self.known.remove(&longest);
                freed.push(slot);
                slot
            };
            self.known.insert(*place, (slot, reading.to));
        }
        freed
    }
}
