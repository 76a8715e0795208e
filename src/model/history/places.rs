//! Maps workers to slots of a point.
//!
//! A slot takes a byte in each point, so their number is limited: when all are taken, a new process gets the slot of
//! the worker that has been away longest.

use std::collections::BTreeMap;

use super::point::{Reading, WorkerPlace};

/// Maximum number of workers whose past is kept.
pub(super) const MAX_WORKERS: usize = 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    known: BTreeMap<WorkerPlace, usize>,
    /// By slot: when its worker was last seen, in seconds since pipetop started.
    seen: Vec<f64>,
    /// The workers of the newest reading with their slots: usually the next reading has the same.
    newest: Vec<(WorkerPlace, Option<usize>)>,
}

/// The slots of one reading.
#[derive(Debug)]
pub(super) struct Taken {
    /// One per worker; `None` if there are more workers than slots.
    pub(super) slots: Vec<Option<usize>>,
    /// Slots that belonged to another worker until now.
    pub(super) freed: Vec<usize>,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn slot(&self, place: WorkerPlace) -> Option<usize> {
        self.known.get(&place).copied()
    }

    /// Assigns a slot to each worker in the reading, while there are any.
    pub(super) fn take(&mut self, reading: &Reading) -> Taken {
        let now = reading.to;
        let mut slots = Vec::with_capacity(reading.workers.len());
        for (number, (place, _)) in reading.workers.iter().enumerate() {
            let same = self
                .newest
                .get(number)
                .filter(|(before, _)| before == place);
            let slot = match same {
                Some((_, slot)) => *slot,
                None => self.slot(*place),
            };
            if let Some(slot) = slot {
                self.seen[slot] = now;
            }
            slots.push(slot);
        }
        let mut freed = Vec::new();
        let new = reading.workers.iter().zip(&mut slots);
        for ((place, _), slot) in new.filter(|(_, slot)| slot.is_none()) {
            // The same place may be in the reading twice.
            *slot = self
                .slot(*place)
                .or_else(|| self.next(*place, now, &mut freed));
            if slot.is_none() {
                break;
            }
        }
        let places = reading.workers.iter().map(|(place, _)| *place);
        self.newest.clear();
        self.newest.extend(places.zip(slots.iter().copied()));
        Taken { slots, freed }
    }

    /// Returns an unused slot, else the one whose owner has been absent longest; `None` if all are present.
    fn next(&mut self, place: WorkerPlace, now: f64, freed: &mut Vec<usize>) -> Option<usize> {
        let slot = if self.seen.len() < MAX_WORKERS {
            self.seen.push(now);
            self.seen.len() - 1
        } else {
            let away = self
                .known
                .iter()
                .filter(|(_, slot)| self.seen[**slot] < now);
            let longest = away.min_by(|a, b| self.seen[*a.1].total_cmp(&self.seen[*b.1]));
            let (&longest, &slot) = longest?;
            self.known.remove(&longest);
            self.seen[slot] = now;
            freed.push(slot);
            slot
        };
        self.known.insert(place, slot);
        Some(slot)
    }
}
