//! Whether a thread is between its request for a batch and its model: it may be making the batch that the model gets.
//!
//! Each function is known by the places, in the order of its instructions, at which it led to a model, to training or to a
//! request for a batch. Does not know how stacks are read, nor what a loader is.

use std::collections::HashMap;

use super::call::Call;

/// Number of stacks that must have shown a request at a place. A model may be seen seldom, and counts at once.
const REQUESTS: u32 = 3;
/// Maximum number of places of a function, of functions, and of functions of a stack.
const MAX_PLACES: usize = 16;
const MAX_FUNCTIONS: usize = 1024;
const MAX_DEPTH: usize = 64;

/// A place counts if it was in one of so many stacks of its kind: frames are read one after another, so a few show what
/// never was.
const ONE_OF: u32 = 50;

/// Where a function led to something.
#[derive(Debug, Clone, Copy)]
struct Place {
    instruction: usize,
    stacks: u32,
    /// Whether a model was seen there, and not training alone.
    model: bool,
}

/// Where one function led to requests for batches, and to a model or to training.
#[derive(Debug, Default)]
struct Leads {
    requests: Vec<Place>,
    computes: Vec<Place>,
}

/// What the stacks so far have shown of each function, by its code.
#[derive(Debug, Default)]
pub(super) struct Preparation {
    functions: HashMap<usize, Leads>,
}

impl Preparation {
    /// Takes a stack in, outermost function first, and says whether it is between a request and the model. `requests`: it is
    /// where a batch is requested.
    pub(super) fn poll(&mut self, stack: &[Call], requests: bool) -> bool {
        let first = |is: fn(&Call) -> bool| stack.iter().position(is);
        let model = first(|call| call.meaning.module)
            .filter(|model| !stack[*model..].iter().any(|call| call.meaning.transform));
        let training = first(|call| call.meaning.trains);
        if requests {
            self.record(stack, false, |function| &mut function.requests);
        } else if model.is_none() && stack.iter().any(|call| call.meaning.transform) {
            return true;
        } else if let Some(computes) = model.or(training) {
            let model = model.is_some();
            self.record(&stack[..computes], model, |function| &mut function.computes);
        } else {
            return self.is_between(stack);
        }
        false
    }

    fn record(
        &mut self,
        stack: &[Call],
        model: bool,
        places: impl Fn(&mut Leads) -> &mut Vec<Place>,
    ) {
        if self.functions.len() > MAX_FUNCTIONS {
            self.functions.clear();
        }
        for call in stack.iter().take(MAX_DEPTH) {
            let Some(instruction) = call.instruction else {
                continue;
            };
            let places = places(self.functions.entry(call.code).or_default());
            let known = places
                .iter_mut()
                .find(|place| place.instruction == instruction);
            if let Some(known) = known {
                known.stacks = known.stacks.saturating_add(1);
                known.model |= model;
            } else if places.len() < MAX_PLACES {
                places.push(Place {
                    instruction,
                    stacks: 1,
                    model,
                });
            }
        }
    }

    /// Follows the stack while each function is where it first led to a model.
    fn is_between(&self, stack: &[Call]) -> bool {
        for call in stack.iter().take(MAX_DEPTH) {
            let function = self.functions.get(&call.code);
            let (Some(at), Some(function)) = (call.instruction, function) else {
                return false;
            };
            let Some((first, last)) = function.computes() else {
                return false;
            };
            let asks = |after: usize, before: usize| {
                let mut requests = known(&function.requests, REQUESTS);
                requests.any(|place| after < place.instruction && place.instruction < before)
            };
            if at != first {
                return (at < first && !asks(at, first)) || (at > last && asks(last, at));
            }
        }
        false
    }
}

impl Leads {
    /// Returns the first and the last instruction that lead to a model or to training. `None` if that is not known, or if the
    /// first leads to no model: then a model may be in what comes before.
    fn computes(&self) -> Option<(usize, usize)> {
        let first = known(&self.computes, 1).min_by_key(|place| place.instruction)?;
        let last = known(&self.computes, 1).max_by_key(|place| place.instruction)?;
        first.model.then_some((first.instruction, last.instruction))
    }
}

fn known(places: &[Place], at_least: u32) -> impl Iterator<Item = &Place> {
    let all = places
        .iter()
        .fold(0, |all: u32, place| all.saturating_add(place.stacks));
    let least = at_least.max(all / ONE_OF);
    places.iter().filter(move |place| place.stacks >= least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loaders::Meaning;

    /// Functions by letters, outermost first, each with the place where it is, from 0: `h` a model, `v` a transform, `b` a
    /// backward pass.
    fn stack(text: &str) -> Vec<Call> {
        let calls = text.split_whitespace().map(|call| {
            let (letter, at) = call.split_at(1);
            Call {
                code: letter.as_bytes()[0].into(),
                meaning: Meaning {
                    module: letter == "h",
                    transform: letter == "v",
                    trains: letter == "b",
                    ..Meaning::default()
                },
                instruction: at.parse().ok(),
                ..Call::default()
            }
        });
        calls.collect()
    }

    /// What becomes of each of these after all were seen ten times in turns. A request ends with `?`.
    fn seen<const N: usize>(stacks: [&str; N]) -> [bool; N] {
        let mut preparation = Preparation::default();
        let mut poll = |text: &str| {
            let requests = text.ends_with('?');
            preparation.poll(&stack(text.trim_end_matches('?')), requests)
        };
        for _ in 0..10 {
            for text in stacks {
                poll(text);
            }
        }
        stacks.map(poll)
    }

    #[test]
    fn what_is_done_between_the_request_and_the_model_may_make_the_batch() {
        // In the loop itself, and in a function that the loop calls.
        let loops = [
            "m0 t1 n0?",
            "m0 t2 a0",
            "m0 t2",
            "m0 t3 s1 a0",
            "m0 t3 s2 h0 f0",
            "m0 t3 s3 b0",
        ];
        assert_eq!(seen(loops), [false, true, true, true, false, false]);
        // After the model and before the next request, it is a part of the step.
        let after = ["m0 t1 n0?", "m0 t0 l0", "m0 t3 h0", "m0 t4 b0", "m0 t5 l0"];
        assert_eq!(seen(after), [false; 5]);
        // The request may come last in the loop.
        let last = [
            "m0 t5 n0?",
            "m0 t6 a0",
            "m0 t1 h0",
            "m0 t2 b0",
            "m0 t3 l0",
            "m0 t0 a0",
        ];
        assert_eq!(seen(last), [false, true, false, false, false, true]);
    }

    #[test]
    fn a_transform_is_no_model() {
        let loops = ["m0 t1 n0?", "m0 t2 h0 v0", "m0 t3 h0 f0", "m0 t4 b0"];
        assert_eq!(seen(loops), [false, true, false, false]);
        // It may make a part of a batch after the first model, too.
        let loops = ["m0 t1 n0?", "m0 t2 h0", "m0 t3 v0", "m0 t4 h0", "m0 t5 b0"];
        assert_eq!(seen(loops), [false, false, true, false, false]);
    }

    #[test]
    fn where_no_model_is_seen_before_the_backward_pass_nothing_is_known() {
        assert_eq!(seen(["m0 t1 n0?", "m0 t2 a0", "m0 t4 b0"]), [false; 3]);
        assert_eq!(seen(["m0 t1 n0?", "m0 t2 a0"]), [false; 2]);
        // Nor where the instructions are not known.
        assert_eq!(seen(["m t n?", "m t a", "m t h f"]), [false; 3]);
    }

    #[test]
    fn a_place_that_one_stack_of_many_shows_is_none() {
        let mut preparation = Preparation::default();
        let mut poll = |text| preparation.poll(&stack(text), false);
        poll("m0 t3 h0");
        assert!(poll("m0 t2 a0"));
        // Frames of two moments.
        poll("m0 t1 h0");
        assert!(!poll("m0 t2 a0"));
        for _ in 0..200 {
            poll("m0 t3 h0");
        }
        assert!(poll("m0 t2 a0"));
    }

    #[test]
    fn memory_stays_bounded_however_stacks_change() {
        let mut preparation = Preparation::default();
        let first = stack("m0")[0];
        for code in 0..100_000 {
            let other = Call {
                code,
                instruction: Some(code),
                ..first
            };
            let same = Call {
                instruction: Some(code),
                ..first
            };
            preparation.poll(&[same, other], true);
        }
        let functions = &preparation.functions;
        assert!(functions.len() <= MAX_FUNCTIONS + 2);
        assert!(
            functions
                .values()
                .all(|function| function.requests.len() <= MAX_PLACES)
        );
    }
}
