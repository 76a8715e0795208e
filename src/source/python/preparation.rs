//! Whether a thread may be making a batch outside its loader: between its request for a batch and its model, or in functions
//! that read or transform samples.
//!
//! For each function, the instructions are known at which it led to a model, to training or to a request for a batch. Does
//! not know how stacks are read, nor what a loader is.

use std::collections::HashMap;
use std::ops::Range;

use super::call::Call;

/// Minimum number of stacks that show a request at a place. A model may be seen rarely, so one stack is enough for it.
const REQUESTS: u32 = 3;
/// Maximum number of places kept of a function, of functions kept, and of functions of a stack that are looked at.
const MAX_PLACES: usize = 16;
const MAX_FUNCTIONS: usize = 1024;
const MAX_DEPTH: usize = 64;

/// A place counts if at least one in this many stacks of its kind shows it. Frames are read one after another, so a few
/// stacks mix two moments.
const ONE_OF: u32 = 50;

/// A function makes samples if at least one in this many of its other stacks shows that.
const MUCH: u32 = 4;

/// What a thread may be doing for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// It works on one, if it works; if it sleeps, that may be its step.
    Works,
    /// It works on one, or sleeps until there is one: it is in a function that makes samples, in a module that may be a
    /// transform, or between two requests.
    WorksOrSleeps,
}

/// Where a thread is in the functions on its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceInLoop {
    BeforeModel,
    /// Between two requests, before the model.
    BetweenRequests,
    /// Asleep in a loop that ends before the model: probably until something is there.
    Polling,
    /// After a request that comes after the last model.
    AfterRequest,
    /// Before the loop that requests batches and runs the model on them, which may be once in an epoch.
    BeforeLoop,
    Other,
}

/// Where a function led to something.
#[derive(Debug, Clone, Copy)]
struct Place {
    instruction: usize,
    stacks: u32,
    /// Whether a model was seen there, and not training alone.
    model: bool,
    /// Number of these stacks that showed a layer of a model.
    layers: u32,
}

/// What one function led to.
#[derive(Debug, Default)]
struct Leads {
    /// Where it led to requests for batches, and to a model or to training.
    requests: Vec<Place>,
    computes: Vec<Place>,
    /// Number of stacks in which a library read or transformed samples for it, and of those without any of these.
    samples: u32,
    others: u32,
}

/// What the stacks so far have shown of each function, by its code.
#[derive(Debug, Default)]
pub(super) struct Preparation {
    functions: HashMap<usize, Leads>,
    knows_loader: bool,
}

impl Preparation {
    /// Adds a stack, outermost function first, and returns what the thread may be doing for a batch. `requests`: it requests
    /// one. `knows_loader`: it has a loader of PyTorch. When that becomes known, earlier requests are forgotten: a loop that
    /// has a loader iterates over other things after its step, and these may have been taken for requests. `sleeps`: the thread
    /// sleeps in a timer. `loops` returns the instructions of each loop of the function at a depth; none if they are not
    /// known.
    pub(super) fn poll<'a>(
        &mut self,
        stack: &[Call],
        requests: bool,
        knows_loader: bool,
        sleeps: bool,
        loops: impl Fn(usize) -> &'a [Range<usize>],
    ) -> Option<Preparing> {
        if knows_loader && !self.knows_loader {
            self.knows_loader = true;
            self.functions.clear();
        }
        let first = |is: fn(&Call) -> bool| stack.iter().position(is);
        let model = first(|call| call.meaning.module)
            .filter(|model| !stack[*model..].iter().any(Call::makes_samples_in_module));
        let training = first(|call| call.meaning.trains);
        if requests {
            self.record(stack, false, false, |function| &mut function.requests);
        } else if let (None, Some(samples)) = (model, stack.iter().position(Call::makes_samples)) {
            for call in stack[..samples].iter().take(MAX_DEPTH) {
                let function = self.function(call.code);
                function.samples = function.samples.saturating_add(1);
            }
            return Some(Preparing::WorksOrSleeps);
        } else if let Some(computes) = model.or(training) {
            let model = model.is_some();
            let (callers, within) = stack.split_at(computes);
            let layer = within.iter().any(|call| call.meaning.layer);
            self.record(callers, model, layer, |function| &mut function.computes);
            // A module without layers that runs before the model may be a transform of the program's own.
            let may_prepare = training.is_none() && !layer;
            let before =
                may_prepare && self.position(callers, false, |_| &[]) == PlaceInLoop::BeforeModel;
            return before.then_some(Preparing::WorksOrSleeps);
        } else {
            let makes = self.count_other(stack);
            return match self.position(stack, sleeps, loops) {
                _ if makes => Some(Preparing::WorksOrSleeps),
                PlaceInLoop::BeforeModel | PlaceInLoop::AfterRequest | PlaceInLoop::BeforeLoop => {
                    Some(Preparing::Works)
                }
                PlaceInLoop::BetweenRequests | PlaceInLoop::Polling => {
                    Some(Preparing::WorksOrSleeps)
                }
                PlaceInLoop::Other => None,
            };
        }
        None
    }

    /// Counts a stack that shows nothing else, and says whether one of its functions makes samples.
    fn count_other(&mut self, stack: &[Call]) -> bool {
        let mut makes = false;
        for call in stack.iter().take(MAX_DEPTH) {
            let Some(function) = self.functions.get_mut(&call.code) else {
                continue;
            };
            function.others = function.others.saturating_add(1);
            makes |= function.makes_samples();
        }
        makes
    }

    fn function(&mut self, code: usize) -> &mut Leads {
        if self.functions.len() > MAX_FUNCTIONS {
            self.functions.clear();
        }
        self.functions.entry(code).or_default()
    }

    fn record(
        &mut self,
        stack: &[Call],
        model: bool,
        layer: bool,
        places: impl Fn(&mut Leads) -> &mut Vec<Place>,
    ) {
        for call in stack.iter().take(MAX_DEPTH) {
            let Some(instruction) = call.instruction else {
                continue;
            };
            let places = places(self.function(call.code));
            let known = places
                .iter_mut()
                .find(|place| place.instruction == instruction);
            if let Some(known) = known {
                known.stacks = known.stacks.saturating_add(1);
                known.model |= model;
                known.layers = known.layers.saturating_add(layer.into());
            } else if places.len() < MAX_PLACES {
                places.push(Place {
                    instruction,
                    stacks: 1,
                    model,
                    layers: layer.into(),
                });
            }
        }
    }

    /// Follows the stack from outside while each function is at the place where it first led to a model. The first function
    /// that is elsewhere decides.
    fn position<'a>(
        &self,
        stack: &[Call],
        sleeps: bool,
        loops: impl Fn(usize) -> &'a [Range<usize>],
    ) -> PlaceInLoop {
        let polls = |depth, before| {
            let at = stack.get(depth).and_then(|call: &Call| call.instruction);
            let is_in = |at| {
                let mut loops = loops(depth).iter();
                loops.any(|units| units.contains(&at) && units.end <= before)
            };
            sleeps && at.is_some_and(is_in)
        };
        for (depth, call) in stack.iter().take(MAX_DEPTH).enumerate() {
            let function = self.functions.get(&call.code);
            let (Some(at), Some(function)) = (call.instruction, function) else {
                return PlaceInLoop::Other;
            };
            let Some((first, last)) = function.computes() else {
                return PlaceInLoop::Other;
            };
            let asks = |from: usize, to: usize| {
                let mut requests = known(&function.requests, REQUESTS);
                requests.any(|place| from < place.instruction && place.instruction < to)
            };
            if at < first {
                let within = depth + 1..stack.len();
                if polls(depth, first) || within.into_iter().any(|depth| polls(depth, usize::MAX)) {
                    return PlaceInLoop::Polling;
                }
                return match (asks(0, at), asks(at, first)) {
                    (_, false) => PlaceInLoop::BeforeModel,
                    (true, true) => PlaceInLoop::BetweenRequests,
                    (false, true) if is_before_loop(loops(depth), at, first) => {
                        PlaceInLoop::BeforeLoop
                    }
                    (false, true) => PlaceInLoop::Other,
                };
            }
            if at != first {
                let after_request = at > last && asks(last, at);
                return if after_request {
                    PlaceInLoop::AfterRequest
                } else {
                    PlaceInLoop::Other
                };
            }
        }
        PlaceInLoop::Other
    }
}

/// Whether an instruction is before the innermost loop around another one.
fn is_before_loop(loops: &[Range<usize>], instruction: usize, other: usize) -> bool {
    let around = loops.iter().filter(|units| units.contains(&other));
    let innermost = around.map(|units| units.start).max();
    innermost.is_some_and(|start| instruction < start)
}

impl Place {
    fn has_layers(&self) -> bool {
        self.layers > 0 && self.layers >= self.stacks / ONE_OF
    }
}

impl Leads {
    /// Returns the first and the last instruction that lead to a model or to training; as first, one that leads to layers if
    /// any does. `None` if none is known, or if the first leads to training without a model: a model that was not seen may run
    /// before it.
    fn computes(&self) -> Option<(usize, usize)> {
        let computes = || known(&self.computes, 1);
        let has_layers = computes().any(Place::has_layers);
        let models = computes().filter(|place| !has_layers || !place.model || place.has_layers());
        let first = models.min_by_key(|place| place.instruction)?;
        let last = computes().max_by_key(|place| place.instruction)?;
        first.model.then_some((first.instruction, last.instruction))
    }

    /// Whether the function is there to make samples: then so is the rest of its work.
    fn makes_samples(&self) -> bool {
        let only = self.requests.is_empty() && self.computes.is_empty();
        only && self.samples >= REQUESTS && self.others / MUCH <= self.samples
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

    /// Functions by letters, outermost first, each with the place where it is, from 0: `h` a module, `l` a layer, `v` a
    /// transform, `d` a read of samples, `w` one that may be
    /// of weights, `b` a backward pass.
    fn stack(text: &str) -> Vec<Call> {
        let calls = text.split_whitespace().map(|call| {
            let (letter, at) = call.split_at(1);
            Call {
                code: letter.as_bytes()[0].into(),
                meaning: Meaning {
                    module: letter == "h",
                    layer: letter == "l",
                    transform: letter == "v",
                    reads: letter == "d" || letter == "w",
                    weights: letter == "w",
                    trains: letter == "b",
                    ..Meaning::default()
                },
                instruction: at.parse().ok(),
                ..Call::default()
            }
        });
        calls.collect()
    }

    /// Returns a stack, and whether it requests a batch: its text then ends with `?`.
    fn parsed(text: &str) -> (Vec<Call>, bool) {
        (stack(text.trim_end_matches('?')), text.ends_with('?'))
    }

    /// What becomes of each of these after all were seen ten times in turns.
    fn seen<const N: usize>(stacks: [&str; N]) -> [bool; N] {
        let mut preparation = Preparation::default();
        let mut poll = |text: &str| {
            let (stack, requests) = parsed(text);
            preparation
                .poll(&stack, requests, false, false, |_| &[])
                .is_some()
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
        let after = ["m0 t1 n0?", "m0 t0 o0", "m0 t3 h0", "m0 t4 b0", "m0 t5 o0"];
        assert_eq!(seen(after), [false; 5]);
        // The request may come last in the loop.
        let last = [
            "m0 t5 n0?",
            "m0 t6 a0",
            "m0 t1 h0",
            "m0 t2 b0",
            "m0 t3 o0",
            "m0 t0 a0",
        ];
        assert_eq!(seen(last), [false, true, false, false, false, true]);
    }

    #[test]
    fn a_sleep_in_a_loop_before_the_model_may_be_a_wait() {
        let mut preparation = Preparation::default();
        let mut poll = |text: &str| {
            let (stack, requests) = parsed(text);
            let loops = |depth: usize| match stack[depth].code {
                code if code == usize::from(b'm') => std::slice::from_ref(&(1..4)),
                code if code == usize::from(b'u') => std::slice::from_ref(&(0..9)),
                _ => &[],
            };
            preparation.poll(&stack, requests, false, true, loops)
        };
        for text in ["m0 t3 n0?", "m5 h0", "m6 b0"] {
            for _ in 0..10 {
                poll(text);
            }
        }
        assert_eq!(poll("m2"), Some(Preparing::WorksOrSleeps));
        assert_eq!(poll("m2 u7 a0"), Some(Preparing::WorksOrSleeps));
        // After the model.
        assert_eq!(poll("m6"), None);
        assert_eq!(poll("m7 u7"), None);
    }

    #[test]
    fn work_before_the_loop_over_batches_may_prepare_them() {
        let mut preparation = Preparation::default();
        // A loop over batches, in one over epochs.
        let mut poll = |text: &str| {
            let (stack, requests) = parsed(text);
            let loops = |depth| if depth == 1 { &[1..9, 4..8][..] } else { &[] };
            preparation.poll(&stack, requests, false, false, loops)
        };
        for text in ["m0 t4 n0?", "m0 t6 h0", "m0 t7 b0"] {
            for _ in 0..10 {
                poll(text);
            }
        }
        assert_eq!(poll("m0 t2 a0"), Some(Preparing::Works));
        assert_eq!(poll("m0 t2"), Some(Preparing::Works));
        // After the step, and after the loop.
        assert_eq!(poll("m0 t7 a0"), None);
        assert_eq!(poll("m0 t8 a0"), None);
    }

    #[test]
    fn a_sleep_between_two_requests_may_be_a_wait() {
        let mut preparation = Preparation::default();
        let mut poll = |text: &str| {
            let (stack, requests) = parsed(text);
            preparation.poll(&stack, requests, false, false, |_| &[])
        };
        for text in ["m0 t2 n0?", "m0 t4 n0?", "m0 t6 h0", "m0 t7 b0"] {
            for _ in 0..10 {
                poll(text);
            }
        }
        assert_eq!(poll("m0 t3 a0"), Some(Preparing::WorksOrSleeps));
        assert_eq!(poll("m0 t5 a0"), Some(Preparing::Works));
        // After the step, before the next request.
        assert_eq!(poll("m0 t1 a0"), None);
        assert_eq!(poll("m0 t8 a0"), None);
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
    fn a_module_without_layers_before_the_model_may_be_a_transform() {
        let loops = [
            "m0 t1 n0?",
            "m0 t2 h0 f0",
            "m0 t3 s1 h0 l0",
            // A part of the model that has no layers, and a loss.
            "m0 t3 s1 h0 f1",
            "m0 t4 h0 f0",
            "m0 t5 b0",
        ];
        assert_eq!(seen(loops), [false, true, false, false, false, false]);
        // In a generator around the loader.
        let loops = ["m0 t1 g1 n0?", "m0 t1 g2 h0 f0", "m0 t3 h0 l0", "m0 t5 b0"];
        assert_eq!(seen(loops), [false, true, false, false]);
        // Where no module has layers, any of them may be the model.
        let loops = ["m0 t1 n0?", "m0 t2 h0 f0", "m0 t3 h0 f0", "m0 t5 b0"];
        assert_eq!(seen(loops), [false; 4]);
    }

    #[test]
    fn what_reads_samples_makes_a_batch_wherever_that_is() {
        let loops = [
            "m0 t1 n0?",
            "m0 t2 h0",
            "m0 t3 s0 d0",
            // What a function that reads them does with them; not what else the loop does.
            "m0 t3 s1 a0",
            "m0 t4 a0",
            "m0 t5 h0",
            "m0 t6 b0",
        ];
        let made = [false, false, true, true, false, false, false];
        assert_eq!(seen(loops), made);
        // A model may read its weights, or its images.
        let loops = ["m0 t1 n0?", "m0 t2 h0 w0", "m0 t3 h0 d0", "m0 t5 b0"];
        assert_eq!(seen(loops), [false, false, true, false]);
    }

    #[test]
    fn what_was_taken_for_a_request_before_the_loader_was_known_is_none() {
        let mut preparation = Preparation::default();
        let mut poll = |text: &str, knows_loader: bool| {
            let (stack, requests) = parsed(text);
            preparation
                .poll(&stack, requests, knows_loader, false, |_| &[])
                .is_some()
        };
        for text in ["m0 t2 h0", "m0 t3 b0", "m0 t6 n0?"] {
            for _ in 0..10 {
                poll(text, false);
            }
        }
        assert!(poll("m0 t7 a0", false));
        for text in ["m0 t1 o0?", "m0 t2 h0", "m0 t3 b0", "m0 t6 n0"] {
            for _ in 0..10 {
                poll(text, true);
            }
        }
        assert!(!poll("m0 t7 a0", true));
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
        let mut poll = |text| {
            preparation
                .poll(&stack(text), false, false, false, |_| &[])
                .is_some()
        };
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
            preparation.poll(&[same, other], true, false, false, |_| &[]);
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
