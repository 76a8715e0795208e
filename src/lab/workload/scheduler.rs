//! Decides which worker makes which batch, and which batch comes next, like PyTorch's `DataLoader`.
//!
//! Requests go out in turn, as many to each worker as it may have under way. In order, taking a batch allows a request
//! to the next worker in turn, whichever made the batch, and batches that are ready early wait for their turn. In any
//! order, the batch that is ready first is taken, and its worker gets the next request. Pure: does not depend on
//! processes or pipes.

use std::collections::BTreeMap;

use super::message::BatchMessage;

#[derive(Debug)]
pub(in crate::lab) struct Scheduler {
    in_order: bool,
    workers: u32,
    /// The worker whose turn it is.
    turn: u32,
    next_request: u64,
    next_taken: u64,
    arrivals: u64,
    free: Vec<u32>,
    /// The batches that have arrived and were not taken: by batch number in order, otherwise by arrival.
    ready: BTreeMap<u64, BatchMessage>,
}

impl Scheduler {
    /// Creates a scheduler for `slots` batches.
    pub(in crate::lab) fn new(in_order: bool, workers: u32, slots: u32) -> Self {
        Self {
            in_order,
            workers,
            turn: 0,
            next_request: 0,
            next_taken: 0,
            arrivals: 0,
            free: (0..slots).rev().collect(),
            ready: BTreeMap::new(),
        }
    }

    /// Returns the next request for the worker whose turn it is. `None` if no slot is free.
    pub(in crate::lab) fn request(&mut self) -> Option<BatchMessage> {
        let request = self.request_of(self.turn)?;
        self.turn = (self.turn + 1) % self.workers;
        Some(request)
    }

    fn request_of(&mut self, worker: u32) -> Option<BatchMessage> {
        let slot = self.free.pop()?;
        let batch = self.next_request;
        self.next_request += 1;
        Some(BatchMessage {
            batch,
            slot,
            worker,
        })
    }

    /// Records that a batch has arrived.
    pub(in crate::lab) fn arrived(&mut self, ready: BatchMessage) {
        let place = if self.in_order {
            ready.batch
        } else {
            self.arrivals
        };
        self.arrivals += 1;
        self.ready.insert(place, ready);
    }

    /// Returns the number of batches that were taken.
    pub(in crate::lab) fn taken(&self) -> u64 {
        self.next_taken
    }

    /// Returns the number of batches that can be taken: in order, without those whose turn has not come.
    pub(in crate::lab) fn available(&self) -> usize {
        if !self.in_order {
            return self.ready.len();
        }
        let places = (self.next_taken..).zip(self.ready.keys());
        places.take_while(|(turn, place)| turn == *place).count()
    }

    /// Returns the number of batches that have arrived and were not taken.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Takes the next batch, if it has arrived, with the request that this allows.
    pub(in crate::lab) fn take(&mut self) -> Option<(BatchMessage, Option<BatchMessage>)> {
        let taken = if self.in_order {
            self.ready.remove(&self.next_taken)?
        } else {
            self.ready.pop_first()?.1
        };
        self.next_taken += 1;
        let next = if self.in_order {
            self.request()
        } else {
            self.request_of(taken.worker)
        };
        Some((taken, next))
    }

    /// Frees the slot of a batch that was taken.
    pub(in crate::lab) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primed(in_order: bool) -> (Scheduler, Vec<BatchMessage>) {
        let mut order = Scheduler::new(in_order, 2, 4 + 2);
        let sent = (0..4).filter_map(|_| order.request()).collect();
        (order, sent)
    }

    #[test]
    fn in_order_a_batch_that_is_early_waits_for_its_turn() {
        let (mut order, sent) = primed(true);
        let workers: Vec<u32> = sent.iter().map(|request| request.worker).collect();
        assert_eq!(workers, [0, 1, 0, 1]);
        order.arrived(sent[1]);
        assert_eq!((order.waiting(), order.take()), (1, None));
        order.arrived(sent[0]);
        let (taken, next) = order.take().unwrap();
        assert_eq!((taken.batch, next.map(|next| next.worker)), (0, Some(0)));
        let (taken, next) = order.take().unwrap();
        assert_eq!((taken.batch, next.map(|next| next.worker)), (1, Some(1)));
    }

    #[test]
    fn unordered_the_first_ready_batch_is_taken_and_its_worker_continues() {
        let (mut order, sent) = primed(false);
        order.arrived(sent[1]);
        let (taken, next) = order.take().unwrap();
        assert_eq!((taken.batch, next.unwrap().worker), (1, 1));
        assert_eq!(next.unwrap().batch, 4);
    }

    #[test]
    fn a_place_is_used_again_only_once_it_is_released() {
        let (mut order, sent) = primed(false);
        order.arrived(sent[0]);
        order.arrived(sent[2]);
        order.arrived(sent[1]);
        let taken: Vec<_> = (0..3).filter_map(|_| order.take()).collect();
        assert_eq!(taken.len(), 3);
        assert_eq!(taken[2].1, None, "all places are in use");
        order.release(taken[0].0.slot);
        assert_eq!(order.request().unwrap().slot, taken[0].0.slot);
    }
}
