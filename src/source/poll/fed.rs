//! What feeds a main thread beside PyTorch's loaders, as its stacks show.
//!
//! Knows what stacks mean, nothing of waits or time counted.

use std::time::Duration;

use super::beats::Doing;
use super::blocked::Blocked;
use crate::source::python::{Asks, InLoader, MainStack};

/// A loader that was not met for so long feeds the trainer no more, or never did: a validation's, say.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// Stacks that must have met it.
const MET: u32 = 2;

#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// How it is known, and when and how often it was met.
    asks: Option<(Asks, Duration, u32)>,
    /// A loader of PyTorch's was met.
    pytorch: bool,
    /// A queue in its memory feeds it.
    by_queue: bool,
    /// The queue that feeds it is filled ahead of time: it was not waited for.
    ahead: bool,
    /// A loader that is known by its name shares batches with other ranks.
    shares: bool,
    unclear: Option<Unclear>,
    /// At the last stack it waited for another thread.
    for_thread: bool,
    /// At the last stack: what it waited for that is no batch.
    pub(super) not_data: Option<&'static str>,
    /// At the last stack: it waited for a batch that another rank sends.
    pub(super) dispatched: bool,
}

/// At the last stack it may have asked for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unclear {
    /// It waited for another thread, or for what is read, outside of the place where it asks.
    Waits,
    /// The place where it asks is not known.
    Goes,
}

impl Fed {
    /// Takes a stack in. Yes where it is the first that shows such a loader: what was seen before may have been in it. A
    /// loader by its name beside PyTorch's is another one, of a validation, say; a place in the loop is asked for its
    /// batches, too.
    pub(super) fn stack(&mut self, now: Duration, stack: &MainStack, blocked: Blocked) -> bool {
        let nothing_met = self.asks.is_none() && !self.ahead;
        let another = self.pytorch && stack.asks != Some(Asks::Site);
        self.take(now, stack);
        let outside = stack.loader == InLoader::Outside && stack.not_data.is_none();
        self.for_thread = stack.for_thread;
        self.unclear = if outside && (stack.for_thread || reads(blocked)) {
            Some(Unclear::Waits)
        } else {
            stack.unclear.then_some(Unclear::Goes)
        };
        nothing_met && self.asks.is_some() && !another
    }

    fn take(&mut self, now: Duration, stack: &MainStack) {
        self.by_queue = stack.queue.is_some();
        self.ahead = stack.queue.is_some_and(|queue| queue.ahead);
        self.not_data = stack.not_data;
        self.dispatched = stack.dispatched;
        self.shares |= stack.dispatched && matches!(stack.asks, Some(Asks::Loader(_)));
        let Some(asks) = stack.asks else {
            self.pytorch |= stack.loader != InLoader::Outside;
            return;
        };
        self.asks = match self.asks {
            Some((known, _, met)) if known == asks => Some((asks, now, met.saturating_add(1))),
            // The place in the loop is met, too, where a loader has more functions than are known.
            Some((known @ Asks::Loader(_), at, met)) if asks == Asks::Site => {
                Some((known, at, met))
            }
            _ => Some((asks, now, 1)),
        };
    }

    /// It was met at all.
    pub(super) fn is_met(&self) -> bool {
        self.asks.is_some()
    }

    /// How it is known; `None` where nothing but PyTorch's loaders was met.
    pub(super) fn seen(&self, now: Duration) -> Option<Asks> {
        let lately = |at: Duration| now.saturating_sub(at) < FORGOTTEN;
        let met = self.asks.filter(|(_, at, met)| *met >= MET && lately(*at));
        met.map(|(asks, ..)| asks)
    }

    /// A poll at the main thread outside of a loader may have been in one. Where batches are ready in a queue, that is not
    /// the one that it waits for: but there may be another.
    pub(super) fn is_unclear(&self, has_workers: bool) -> bool {
        let known = matches!(self.asks, Some((Asks::Loader(_), ..)));
        let unclear = match self.unclear {
            None => false,
            // With workers, it receives from them.
            Some(Unclear::Waits) if !self.for_thread => {
                self.by_queue || self.asks.is_some() || !has_workers
            }
            Some(Unclear::Waits) => true,
            Some(Unclear::Goes) => !self.ahead && (self.asks.is_some() || !has_workers),
        };
        unclear && !self.pytorch && !known
    }

    /// It takes batches from a loader of its own, as `yields` says or as was seen, and sends none to other ranks.
    pub(super) fn reads_for_itself(&self, yields: bool) -> bool {
        !self.shares && (yields || self.pytorch || self.ahead)
    }

    /// A loader of PyTorch's was met.
    pub(super) fn is_pytorch(&self) -> bool {
        self.pytorch
    }
}

/// What a main thread outside of a loader waits for, by what it is blocked in alone: who reads what it prints.
pub(super) fn not_data(blocked: Blocked) -> Option<&'static str> {
    (blocked == Blocked::PipeWrite).then_some("logging")
}

/// A thread that is blocked so waits for what it reads, perhaps a batch.
fn reads(blocked: Blocked) -> bool {
    matches!(
        blocked,
        Blocked::Poll | Blocked::PipeRead | Blocked::Unix | Blocked::Network | Blocked::Disk
    )
}

/// A main thread that asks for a batch: what it is blocked in tells whether it waits for another or makes it itself.
pub(super) fn asking(blocked: Blocked) -> Doing {
    match blocked {
        Blocked::Running | Blocked::Disk | Blocked::Network | Blocked::Timer => Doing::Loading,
        _ => Doing::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::python::QueueSeen;

    fn after(stack: &MainStack, blocked: Blocked, has_workers: bool) -> bool {
        let mut fed = Fed::default();
        fed.stack(Duration::ZERO, stack, blocked);
        fed.is_unclear(has_workers)
    }

    #[test]
    fn a_wait_may_be_for_a_batch_wherever_no_loader_is_known() {
        let step = MainStack::default();
        assert!(!after(&step, Blocked::Timer, false));
        assert!(after(&step, Blocked::PipeRead, false));
        // With workers, it receives from them.
        assert!(!after(&step, Blocked::PipeRead, true));
        let for_thread = MainStack {
            for_thread: true,
            ..MainStack::default()
        };
        assert!(after(&for_thread, Blocked::Lock, false));
        // With workers as well: the thread may be the trainer.
        assert!(after(&for_thread, Blocked::Lock, true));
        let pytorch = MainStack {
            loader: InLoader::Waiting,
            ..MainStack::default()
        };
        let mut fed = Fed::default();
        fed.stack(Duration::ZERO, &pytorch, Blocked::Poll);
        fed.stack(Duration::ZERO, &for_thread, Blocked::Lock);
        assert!(!fed.is_unclear(true));
        let communicates = MainStack {
            not_data: Some("communication"),
            ..for_thread
        };
        assert!(!after(&communicates, Blocked::Lock, false));
    }

    #[test]
    fn where_batches_are_ready_in_a_queue_the_rest_is_a_step() {
        let unclear = MainStack {
            unclear: true,
            ..MainStack::default()
        };
        assert!(after(&unclear, Blocked::Timer, false));
        let queue = QueueSeen {
            taken: 5,
            ready: Some(2),
            capacity: None,
            ahead: true,
        };
        let ready = MainStack {
            queue: Some(queue),
            ..unclear
        };
        assert!(!after(&ready, Blocked::Timer, false));
        assert!(after(&ready, Blocked::Network, false));
    }

    #[test]
    fn a_rank_that_shares_its_batches_does_not_read_for_itself() {
        let mut fed = Fed::default();
        assert!(!fed.reads_for_itself(false) && fed.reads_for_itself(true));
        let named = MainStack {
            asks: Some(Asks::Loader("Accelerate's dispatcher")),
            dispatched: true,
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, &named, Blocked::Lock);
        assert!(!fed.reads_for_itself(true));
    }
}
