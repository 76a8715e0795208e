//! Where the training loop asks for its next batch, learned from many stacks of the main thread.
//!
//! The training loop is the outermost function that nearly all stacks share and that alternates between asking for a
//! batch and doing something else. A call asks for a batch if the called function is an iterator's or a generator's, if
//! the standard library hands something over for nearly all of its time, or if it spends half of its time or more
//! reading something that its caller keeps, reading and transforming samples, or building what a model gets. A call in
//! which a model is trained or run never asks for a batch, whatever its name, nor does one whose value no model may use, nor, between two models, one
//! that may answer to what the first gave. Items that the loop goes
//! through after its step are not batches. A function that the loop calls may train on batches of its own.
//!
//! Pure: functions are numbers. Does not depend on how stacks are read.

use super::call::Call;
use super::call_node::{CallNode, FIRST, OF_EACH};
use super::flow::User;

mod of_step;

/// What a stack says of the main thread's place in the training loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// No training loop is known, or the call may bring something other than a batch.
    Unknown,
    /// No training loop is known, and the thread is in a generator, which may be making the next batch.
    Generator,
    /// Outside the training loop.
    Elsewhere,
    /// In the training loop, getting something that no model may use.
    Other,
    /// In the training loop, asking for a batch.
    Data,
    /// In the training loop, with a batch at hand.
    Step,
}

/// Minimum number of stacks before a loop is recognised.
const STACKS: u32 = 20;
/// A loop must be in at least this share of the stacks. Once found, it is kept while its share is at least the lower
/// one.
const MIN_COVERAGE: f64 = 0.9;
const MIN_COVERAGE_KEPT: f64 = 0.7;
/// A second place at which something is handed over counts if at least one in this many of the loop's stacks shows it.
const ALSO_HANDS_OVER: u32 = 20;
/// After this many stacks, the counts are halved; if no loop was found by then, they are dropped.
const REMEMBERED: u32 = 2000;
/// Maximum number of functions in the tree, and maximum depth to which a stack is followed.
const MAX_NODES: usize = 1024;
const MAX_DEPTH: usize = 64;

/// The stacks so far, as a tree of calls.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// The first node is the root, which counts all stacks; empty before the first stack.
    nodes: Vec<CallNode>,
    /// The training loop, once found.
    found: Option<usize>,
    /// How often a loop was found outside the known one; the first loop found counts, too.
    pub(super) widened: u32,
    /// Whether a stack has shown that the thread trains.
    pub(super) trains: bool,
    /// Whether a stack has shown a call that takes a batch if the thread trains ([`Call::takes`]).
    takes: bool,
    /// Whether the thread takes batches from a loader of PyTorch, even if no stack has shown where the loop asks it for
    /// one.
    pub(super) pytorch: bool,
}

impl Sites {
    /// Adds a stack, outermost function first, and returns what it means. `in_for` tells whether the function at a
    /// depth takes the next item of a `for` loop, `iterates` whether it holds an iterator that may give batches, and
    /// `users` which statements may use what the call at an instruction gives, its present one by default, if that is
    /// known. They are called only where the answer matters.
    pub(super) fn poll(
        &mut self,
        stack: &[Call],
        in_for: impl Fn(usize) -> bool,
        iterates: impl FnOnce(usize) -> bool,
        mut users: impl FnMut(usize, Option<usize>) -> Option<Vec<User>>,
    ) -> Site {
        if self.nodes.len() > MAX_NODES || stack.is_empty() {
            self.nodes.clear();
            self.found = None;
        }
        // A thread has no Python function while its interpreter starts or ends.
        if stack.is_empty() {
            return Site::Unknown;
        }
        if self.nodes.is_empty() {
            self.nodes.push(CallNode::default());
        }
        self.forget();
        self.learn_who_trains(stack);
        let path = self.count(stack, &in_for);
        self.count_feeding(&path, stack, &mut users);
        self.record_turns(&path, stack.len(), in_for);
        self.find_loop(&path);
        let Some(found) = self.found else {
            return self.site_without_loop(&path, stack);
        };
        let Some(at) = path.iter().position(|node| *node == found) else {
            return Site::Elsewhere;
        };
        if !self.nodes[found].asked {
            let is_data = self.asks_within(&path[at..], &stack[at - 1..])
                || self.completes(found, &stack[at - 1..], |at_call| {
                    users(at - 1, Some(at_call))
                });
            return if is_data {
                Site::Data
            } else if self.may_be_other_work(found, &path[at..], stack) {
                Site::Unknown
            } else {
                Site::Step
            };
        }
        // Unless the called function is an iterator's, it may bring something other than a batch.
        let may_be_other =
            || self.is_ambiguous(found) || (self.may_be_result(found, stack) && iterates(at - 1));
        let called = path.get(at + 1).copied();
        match called {
            Some(called) if self.is_not_for_model(found, called, stack, || users(at - 1, None)) => {
                Site::Other
            }
            // In the rest of its time, it may compute on a batch.
            Some(called) if self.nodes[called].only_feeds() && !stack[at].builds => Site::Unknown,
            Some(called) if !self.nodes[called].is_known_to_ask() && may_be_other() => {
                Site::Unknown
            }
            _ if self.is_of_step(found, called, stack[at - 1].instruction, |model| {
                users(at - 1, Some(model))
            }) =>
            {
                Site::Unknown
            }
            _ => Site::Data,
        }
    }

    /// Whether the stack asks for a batch inside a function that the loop calls and that trains on batches of its own:
    /// it takes the next item of an iterator, and trains only after that. If a loader of PyTorch was asked before the
    /// call, the function may only divide that batch, so the answer is no. `path` and `stack` begin with the loop.
    fn asks_within(&self, path: &[usize], stack: &[Call]) -> bool {
        let called = path.get(1).zip(stack[0].instruction);
        let Some((_, here)) = called.filter(|(called, _)| self.nodes[**called].computes()) else {
            return false;
        };
        let loaders = self.children(path[0]).filter(|child| child.pytorch > 0);
        let first = loaders.flat_map(CallNode::called_at).min();
        if self.pytorch && first.is_none_or(|first| first < here) {
            return false;
        }
        let functions = path.windows(2).zip(stack).skip(1);
        let mut asking = functions.take_while(|(pair, _)| self.nodes[pair[0]].computes());
        asking.any(|(pair, call)| {
            let asks = self.nodes[pair[1]].is_asking() && self.nodes[pair[1]].asks();
            let computing = self.children(pair[0]).filter(|child| child.computes());
            let mut places = computing.flat_map(CallNode::called_at).peekable();
            let after = |here| places.peek().is_some() && places.all(|place| place > here);
            asks && call.instruction.is_some_and(after)
        })
    }

    fn children(&self, node: usize) -> impl Iterator<Item = &CallNode> {
        self.nodes[node]
            .children
            .iter()
            .map(|child| &self.nodes[*child])
    }

    /// Looks for the training loop along this path. The outermost loop replaces one within it that was found earlier.
    fn find_loop(&mut self, path: &[usize]) {
        let known = self.found;
        let mut outermost = path.iter().copied();
        let outermost = outermost.find(|node| self.is_loop(*node, MIN_COVERAGE, OF_EACH));
        if let Some(outermost) = outermost
            && known.map_or(self.widened == 0, |known| self.is_called(known, outermost))
        {
            self.widened += 1;
        }
        self.found =
            outermost.or_else(|| known.filter(|known| self.is_loop(*known, MIN_COVERAGE_KEPT, 1)));
    }

    /// Returns what a stack means while no loop is known. A generator in which a model is trained or run makes no
    /// batch: it is the loop itself.
    fn site_without_loop(&self, path: &[usize], stack: &[Call]) -> Site {
        let mut functions = path.iter().skip(1).zip(stack);
        let makes = functions.any(|(node, call)| {
            call.generator && !call.expression && !self.nodes[*node].computes()
        });
        if makes {
            return Site::Generator;
        }
        Site::Unknown
    }

    /// Whether the object handed over may be the result of a step, in a loop that also holds an iterator which may give
    /// the batches. If no model is trained in the loop, the step may be made elsewhere. If one is, a queue almost
    /// always brings batches, but a pipe, or a call known only by its name or by what its caller keeps, may bring
    /// anything.
    fn may_be_result(&self, found: usize, stack: &[Call]) -> bool {
        let brings = |call: &Call| call.takes || call.brings || *call == Call::receives();
        stack.iter().any(brings) || self.nodes[found].trains == 0
    }

    /// Whether the loop has a place at which something is handed over and nothing else shows that it is a batch, and
    /// another place at which it may ask for batches. The object may be the result of a step that another thread makes.
    fn is_ambiguous(&self, found: usize) -> bool {
        let node = &self.nodes[found];
        let often = OF_EACH.max(node.stacks / ALSO_HANDS_OVER);
        let children = || self.children(found);
        let asks =
            children().any(|child| child.is_asking() && child.asks() && child.stacks >= OF_EACH);
        let others = children().filter(|child| child.is_asking() && !child.asks());
        let places: usize = others.map(|child| child.places(often)).sum();
        // A few stacks may show a `for` loop over a range.
        places + usize::from(asks || node.iterates >= often) > 1
    }

    /// Whether `node` is called from `by`, directly or not.
    fn is_called(&self, node: usize, by: usize) -> bool {
        let mut callers =
            std::iter::successors(Some(node), |at| (*at != 0).then(|| self.nodes[*at].parent));
        node != by && callers.any(|caller| caller == by)
    }

    fn forget(&mut self) {
        if self.nodes[0].stacks < REMEMBERED {
            return;
        }
        if self.found.is_none() {
            self.nodes.truncate(1);
            self.nodes[0] = CallNode::default();
            self.trains = false;
            return;
        }
        for node in &mut self.nodes {
            for count in [
                &mut node.stacks,
                &mut node.hands_over,
                &mut node.draws,
                &mut node.brings,
                &mut node.feeds,
                &mut node.makes_samples,
                &mut node.pytorch,
                &mut node.runs_model,
                &mut node.iterates,
                &mut node.turns,
            ] {
                *count = count.div_ceil(2);
            }
            for (_, times) in &mut node.called_at {
                *times = times.div_ceil(2);
            }
        }
    }

    /// Records whether the thread trains. Until then, calls that take batches do not count, so the first stack that
    /// shows training discards the earlier ones if such a call was seen and no loop was found.
    fn learn_who_trains(&mut self, stack: &[Call]) {
        self.takes |= stack.iter().any(|call| call.takes);
        let trains = stack.iter().any(|call| call.meaning.trains);
        if trains && !self.trains && self.takes && self.found.is_none() {
            self.nodes.truncate(1);
            self.nodes[0] = CallNode::default();
        }
        self.trains |= trains;
    }

    /// Counts a stack. Returns the nodes along it, from the root down to the first call that is too rare to matter for
    /// the loop.
    fn count(&mut self, stack: &[Call], in_for: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut path = vec![0];
        let mut at = 0;
        self.nodes[0].stacks += 1;
        let all = self.nodes[0].stacks;
        // The depth of the innermost call of each kind: all calls outside it contain it.
        let last = |is: fn(&Call) -> bool| stack.iter().rposition(is);
        let takes = last(|call| call.takes).filter(|_| self.trains);
        let hands_over = last(|call| call.meaning.hands_over).or(takes);
        let trains = last(|call| call.meaning.trains);
        let layer = last(|call| call.meaning.layer);
        let model = last(|call| call.meaning.module)
            .filter(|model| !stack[*model..].iter().any(Call::makes_samples_in_module));
        let makes_samples = last(Call::makes_samples).filter(|_| self.trains && !self.pytorch);
        let pytorch = last(|call| call.pytorch);
        let iterator = last(Call::gives_items);
        for (depth, call) in stack.iter().take(MAX_DEPTH).enumerate() {
            let known = |child: &&usize| self.nodes[**child].code == call.code;
            let child = self.nodes[at].children.iter().find(known).copied();
            let Some(child) = child.or_else(|| {
                let is_common = all < STACKS || 4 * self.nodes[at].stacks >= all;
                is_common.then(|| self.add(at, call))
            }) else {
                break;
            };
            let node = &mut self.nodes[child];
            if node.stacks < FIRST {
                node.in_for += u32::from(depth.checked_sub(1).is_some_and(&in_for));
            }
            node.stacks += 1;
            node.hands_over += u32::from(hands_over.is_some_and(|found| found >= depth));
            // The handover is inside an iterator that this call calls.
            let draws = hands_over
                .zip(iterator)
                .is_some_and(|(found, iterator)| found > iterator && iterator > depth);
            node.draws += u32::from(draws);
            node.brings += u32::from(call.brings);
            node.makes_samples += u32::from(makes_samples.is_some_and(|found| found >= depth));
            node.pytorch += u32::from(pytorch.is_some_and(|found| found >= depth));
            node.trains += u32::from(trains.is_some_and(|found| found >= depth));
            node.runs_layer |= layer.is_some_and(|found| found >= depth);
            node.runs_model += u32::from(model.is_some_and(|found| found >= depth));
            let caller = depth.checked_sub(1).and_then(|depth| stack.get(depth));
            node.called(caller.and_then(|caller| caller.instruction));
            path.push(child);
            at = child;
        }
        path
    }

    fn add(&mut self, parent: usize, call: &Call) -> usize {
        let at = self.nodes.len();
        self.nodes.push(CallNode {
            code: call.code,
            parent,
            asks: call.gives_items(),
            ..CallNode::default()
        });
        self.nodes[parent].children.push(at);
        at
    }

    /// Records for each function along the stack whether it is asking for a batch.
    fn record_turns(&mut self, path: &[usize], depth: usize, in_for: impl Fn(usize) -> bool) {
        let all = self.nodes[0].stacks;
        for pair in path.windows(2) {
            let asks = self.nodes[pair[1]].is_asking();
            self.turn(pair[0], asks);
        }
        let Some(innermost) = path.last().copied().filter(|_| path.len() == depth + 1) else {
            return;
        };
        if 2 * self.nodes[innermost].stacks >= all {
            let iterates = in_for(depth - 1);
            self.nodes[innermost].iterates += u32::from(iterates);
            self.turn(innermost, iterates);
        }
    }

    fn turn(&mut self, at: usize, asks: bool) {
        let node = &mut self.nodes[at];
        node.turns += u32::from(node.asked != asks);
        node.asked = asks;
    }

    fn is_loop(&self, at: usize, covers: f64, of_each: u32) -> bool {
        let node = &self.nodes[at];
        let all = self.nodes[0].stacks;
        let covered = f64::from(node.stacks) >= covers * f64::from(all);
        if at == 0 || all < STACKS || !covered || node.turns < of_each {
            return false;
        }
        let asking = self.children(at).filter(|child| child.is_asking());
        let data = node.iterates + asking.map(|child| child.stacks).sum::<u32>();
        data >= of_each && node.stacks.saturating_sub(data) >= of_each
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::loaders::Meaning;
    use crate::source::python::call::Innermost;

    /// Builds a stack from letters, one for each function, outermost first: `g` a generator, `e` a generator
    /// expression, `n` an iterator's `__next__`, `q` a queue's `get`, `k` a function of the program that waits for a
    /// batch, `l` one that reads something that its caller keeps (`L`: the same one while it does not read), `y` one
    /// written in C that hands over a batch, `c` one that builds something for its caller (`C`: the same one while it may
    /// be computing), `V` one outside the framework, `r` a wait for a pipe, `b` a backward pass, `h` a layer of a model, `o` a call of a module, `x` a
    /// transform, `d` a read of samples. Other letters have no meaning.
    fn stack(letters: &str) -> Vec<Call> {
        let call = |letter: char| Call {
            code: letter.to_ascii_lowercase() as usize,
            meaning: Meaning {
                asks: letter == 'n',
                hands_over: letter == 'q',
                queue: letter == 'q',
                trains: letter == 'b',
                layer: letter == 'h',
                module: letter == 'o',
                transform: letter == 'x',
                reads: letter == 'd',
                ..Meaning::default()
            },
            generator: matches!(letter, 'g' | 'e'),
            expression: letter == 'e',
            takes: letter == 'k',
            pytorch: false,
            brings: letter == 'l',
            builds: letter == 'c',
            innermost: if letter == 'V' {
                Innermost::Works
            } else {
                Innermost::Computes
            },
            instruction: Some(0),
        };
        let call = |letter| match letter {
            'r' => Call::receives(),
            'y' => Call::takes_in_c(),
            letter => call(letter),
        };
        letters.chars().map(call).collect()
    }

    /// Polls a stack on which nothing iterates, and of which it is not known where its values go.
    fn poll(sites: &mut Sites, letters: &str) -> Site {
        sites.poll(&stack(letters), |_| false, |_| false, |_, _| None)
    }

    /// Returns the site of each stack after all were polled a hundred times in turn.
    fn learned(stacks: &[&str]) -> Vec<Site> {
        learned_where(false, stacks)
    }

    fn learned_where(iterates: bool, stacks: &[&str]) -> Vec<Site> {
        let mut sites = Sites::default();
        let mut seen = vec![];
        for _ in 0..100 {
            let poll = |letters: &&str| {
                // `!` follows a function that takes the next item of a `for` loop.
                let in_for = letters.find('!').map(|at| at - 1);
                let stack = stack(&letters.replace('!', ""));
                sites.poll(
                    &stack,
                    |depth| Some(depth) == in_for,
                    |_| iterates,
                    |_, _| None,
                )
            };
            seen = stacks.iter().map(poll).collect();
        }
        seen
    }

    #[test]
    fn a_loop_over_an_iterator_a_generator_or_a_queue_is_found() {
        for (asks, steps) in [
            ("mtnw", "mts"),
            ("mtgfw", "mtsb"),
            ("mtqw", "mts"),
            // A function around the queue.
            ("mtfqw", "mt"),
            // An iterator that runs no Python, and one that calls a function, such as `map`.
            ("mt!", "mts"),
            ("mt!fw", "mts"),
            ("mt!ew", "mts"),
        ] {
            assert_eq!(learned(&[asks, steps]), [Site::Data, Site::Step], "{asks}");
            assert_eq!(
                learned(&[
                    asks, steps, asks, steps, asks, steps, asks, steps, asks, steps, "mtv"
                ])[10],
                Site::Step
            );
        }
    }

    #[test]
    fn a_thread_that_trains_waits_for_batches_in_a_buffer_of_its_own() {
        assert_eq!(learned(&["mtkw", "mts"]), [Site::Unknown; 2]);
        let mut sites = Sites::default();
        let mut poll = |letters| poll(&mut sites, letters);
        for _ in 0..500 {
            poll("mtkw");
            poll("mts");
        }
        // Only now does a stack show that the thread trains.
        for _ in 0..20 {
            poll("mtsb");
            poll("mtkw");
        }
        assert_eq!(poll("mtkw"), Site::Data);
        assert_eq!(poll("mts"), Site::Step);
    }

    #[test]
    fn what_is_read_and_kept_is_a_batch_for_a_thread_that_trains() {
        let stacks = ["mtlw", "mtl", "mtsb", "mts"];
        let seen = |iterates| learned_where(iterates, &stacks);
        assert_eq!(seen(false)[..2], [Site::Data, Site::Data]);
        assert_eq!(seen(false)[2..], [Site::Step, Site::Step]);
        // If the loop also holds an iterator, what is read may be anything.
        assert_eq!(seen(true)[0], Site::Unknown);
        // The function may do something else for half of its time, but not for more.
        assert_eq!(learned(&["mtl", "mtL", "mtsb", "mts"])[1], Site::Data);
        let little = learned(&["mtl", "mtL", "mtL", "mtsb", "mts"]);
        assert_eq!(little, [Site::Unknown; 5]);
        // If a model is trained in it, it is part of the step.
        let trains = learned(&["mtlw", "mtlb", "mts"]);
        assert_eq!(trains, [Site::Unknown; 3]);
    }

    #[test]
    fn that_a_thread_trains_is_forgotten_with_the_stacks_that_showed_it() {
        let mut sites = Sites::default();
        poll(&mut sites, "mtsb");
        assert!(sites.trains);
        for _ in 0..=REMEMBERED {
            poll(&mut sites, "mts");
        }
        assert!(!sites.trains);
    }

    #[test]
    fn a_function_in_c_hands_over_batches_to_a_thread_that_trains() {
        assert_eq!(learned(&["mty", "mts"]), [Site::Unknown; 2]);
        assert_eq!(learned(&["mty", "mtsb"]), [Site::Data, Site::Step]);
        // If the loop also holds an iterator, this may be the result of a step that is made elsewhere, or an answer.
        assert_eq!(
            learned_where(true, &["mty", "mtsb"]),
            [Site::Unknown, Site::Step]
        );
        let seen = learned_where(true, &["mty", "mtnw", "mtsb", "mts"]);
        assert_eq!(seen[..2], [Site::Unknown, Site::Data]);
    }

    #[test]
    fn until_the_loop_is_found_a_generator_may_make_the_next_batch() {
        let mut sites = Sites::default();
        let mut poll = |letters| poll(&mut sites, letters);
        assert_eq!(poll("mtgf"), Site::Generator);
        assert_eq!(poll("mts"), Site::Unknown);
        // A generator expression, which mostly serves a sum; then a generator that is the loop itself.
        assert_eq!(poll("mte"), Site::Unknown);
        assert_eq!(poll("mtgb"), Site::Unknown);
        assert_eq!(poll("mtgf"), Site::Unknown);
    }

    #[test]
    fn a_thread_without_a_function_is_nowhere() {
        let mut sites = Sites::default();
        for letters in ["", "mtnw", "", "m", ""] {
            sites.poll(&stack(letters), |_| true, |_| true, |_, _| None);
        }
        assert_eq!(
            sites.poll(&[], |_| true, |_| true, |_, _| None),
            Site::Unknown
        );
        assert_eq!(learned(&["mtnw", "mts"]), [Site::Data, Site::Step]);
    }

    #[test]
    fn no_loop_is_found_without_alternating_requests_and_work() {
        for stacks in [
            &["mts", "mtsb"][..],
            &["mtnw"],
            // The function that asks is in only half of the stacks.
            &["mtnw", "mts", "mv", "mv"],
            // A function that does other work besides waiting.
            &["mtfqw", "mtfx", "mts", "mts"],
            // A sum over a generator expression.
            &["mte", "mts"],
        ] {
            let seen = learned(stacks);
            assert!(
                seen.iter().all(|site| *site == Site::Unknown),
                "{stacks:?}: {seen:?}"
            );
        }
    }

    #[test]
    fn items_handed_over_at_two_places_are_ambiguous() {
        let mut sites = Sites::default();
        let mut poll = |letters: &str, line| {
            let mut stack = stack(letters);
            // Where the loop, the second function, calls the third.
            stack[1].instruction = Some(line);
            sites.poll(&stack, |_| false, |_| false, |_, _| None)
        };
        let mut seen = vec![];
        for _ in 0..100 {
            seen = vec![poll("mtqw", 1), poll("mtqw", 2), poll("mts", 3)];
        }
        assert_eq!(seen, [Site::Unknown, Site::Unknown, Site::Step]);
        // The second place is not seen any more, so it no longer counts.
        for _ in 0..5000 {
            poll("mtqw", 1);
            poll("mts", 3);
        }
        assert_eq!(poll("mtqw", 1), Site::Data);
        // The loop asks an iterator; what a queue hands over besides may be the result of a step.
        assert_eq!(
            learned(&["mtnw", "mtqw", "mts"]),
            [Site::Data, Site::Unknown, Site::Step]
        );
    }

    /// The frames of a stack are read one after another, and the loop may go on between them.
    #[test]
    fn a_single_stack_does_not_show_what_a_for_loop_calls() {
        let mut sites = Sites::default();
        let mut poll = |letters, in_for| {
            sites.poll(
                &stack(letters),
                |depth| in_for && depth == 1,
                |_| false,
                |_, _| None,
            )
        };
        for _ in 0..30 {
            poll("mtqw", false);
            poll("mts", false);
        }
        // Now and then, a stack shows the loop at the head of a `for` over a range together with a call from the loop's
        // body.
        for _ in 0..3 {
            poll("mtz", true);
            poll("mt", true);
            for _ in 0..30 {
                poll("mtz", false);
                assert_eq!(poll("mtqw", false), Site::Data);
            }
        }
        assert_eq!(poll("mtz", false), Site::Step);
    }

    #[test]
    fn what_an_iterator_hands_over_within_a_function_is_its_next_item() {
        // `f` takes the next item of the generator `g`; the loop holds an iterator, too.
        let seen = learned_where(true, &["mtfgqw", "mts"]);
        assert_eq!(seen, [Site::Data, Site::Step]);
        // `f` takes from a queue, without any iterator.
        let seen = learned_where(true, &["mtfqw", "mts"]);
        assert_eq!(seen, [Site::Unknown, Site::Step]);
    }

    #[test]
    fn a_handover_may_be_the_result_of_a_step() {
        // Whether the loop holds an iterator, whether a model is trained in it, and the site of a wait for a queue and
        // for a pipe.
        for (iterates, trains, queue, pipe) in [
            (false, false, Site::Data, Site::Data),
            (false, true, Site::Data, Site::Data),
            (true, false, Site::Unknown, Site::Unknown),
            (true, true, Site::Data, Site::Unknown),
        ] {
            let step = if trains { "mtsb" } else { "mts" };
            for (asks, means) in [("mtfq", queue), ("mtr", pipe), ("mtfr", pipe)] {
                let seen = learned_where(iterates, &[asks, step]);
                assert_eq!(seen, [means, Site::Step], "{asks} {iterates} {trains}");
            }
        }
        // A handover inside the iterator that the loop asks is no result.
        assert_eq!(
            learned_where(true, &["mtnr", "mts"]),
            [Site::Data, Site::Step]
        );
    }

    #[test]
    fn a_generator_that_trains_is_the_loop_and_not_its_loader() {
        assert_eq!(
            learned(&[
                "mgnw", "mgsb", "mgs", "mgnw", "mgs", "mgs", "mgs", "mgs", "mgs", "mgs", "m"
            ])[..5],
            [Site::Data, Site::Step, Site::Step, Site::Data, Site::Step]
        );
    }

    /// Of a thread that trains and has no loader of PyTorch.
    #[test]
    fn a_function_that_makes_samples_for_half_of_its_time_asks_for_a_batch() {
        use Site::{Data, Step, Unknown};
        for makes in ["mtfd", "mtfx"] {
            // Whether or not the loop holds another iterator: this is no result.
            for iterates in [false, true] {
                let seen = learned_where(iterates, &[makes, makes, "mtfa", "mtsb"]);
                assert_eq!(seen[1..], [Data, Data, Step], "{makes}");
            }
            let seen = learned(&[makes, "mtfa", "mtfa", "mtfa", "mtsb"]);
            assert_eq!(seen[..2], [Unknown; 2], "{makes}");
            assert_ne!(learned(&[makes, makes, "mtfa", "mts"])[0], Data, "{makes}");
            let train = ("mtsb", [2, 0]);
            assert_eq!(learned_at(false, &[(makes, [1, 0]), train]), [Data, Step]);
            // After the step, it may be about the results.
            assert_eq!(
                learned_at(false, &[train, (makes, [3, 0])]),
                [Step, Unknown]
            );
            assert_ne!(learned_at(true, &[(makes, [1, 0]), train])[0], Data);
        }
    }

    #[test]
    fn a_call_in_which_a_model_runs_asks_for_no_batch() {
        // `n` may be a function such as `next_token(model, tokens)`, which runs a model.
        assert_eq!(learned(&["mn", "mb"]), [Site::Data, Site::Step]);
        assert_eq!(learned(&["mnh", "mb"]), [Site::Unknown; 2]);
        // The same for a generator that runs a model, and for a function that runs one only now and then.
        assert_eq!(learned(&["mgh", "mb"]), [Site::Unknown; 2]);
        assert_eq!(learned(&["mn", "mnh", "mb"]), [Site::Unknown; 3]);
        // The layers may be the program's own, or compiled: then only the call of the module shows the model.
        assert_eq!(learned(&["mgo", "mb"]), [Site::Unknown; 2]);
        assert_eq!(learned(&["mgox", "mb"]), [Site::Data, Site::Step]);
        let on_the_way = ["mgox"; 30].into_iter().chain(["mgo", "mb", "mb", "mb"]);
        let on_the_way = learned(&on_the_way.collect::<Vec<_>>());
        assert_eq!(on_the_way[0], Site::Data);
        // In a loop that also asks a loader, such a call is part of the step.
        let beside = learned(&["mnh", "mq", "mb"]);
        assert_eq!(beside, [Site::Step, Site::Data, Site::Step]);
    }

    /// Like `learned`, with the instructions of the loop (the second function) and of the function that it calls. `p`
    /// is a loader of PyTorch.
    fn learned_at(pytorch: bool, stacks: &[(&str, [usize; 2])]) -> Vec<Site> {
        let mut sites = Sites {
            pytorch,
            ..Sites::default()
        };
        let mut seen = vec![];
        for _ in 0..100 {
            let poll = |(letters, places): &(&str, [usize; 2])| {
                let in_for = letters.find('!').map(|at| at - 1);
                let mut stack = stack(&letters.replace('!', ""));
                for (call, place) in stack.iter_mut().skip(1).zip(places) {
                    call.instruction = Some(*place);
                }
                if let Some(innermost) = stack.last_mut() {
                    innermost.pytorch = letters.ends_with('p');
                }
                sites.poll(
                    &stack,
                    |depth| Some(depth) == in_for,
                    |_| false,
                    |_, _| None,
                )
            };
            seen = stacks.iter().map(poll).collect();
        }
        seen
    }

    fn user(at: Range<usize>, sends: bool) -> User {
        User { at, sends }
    }

    /// Returns the site of `asks` in a loop that calls its model at 2 and trains at 3, and that may use at `users` what it
    /// gets.
    fn site_of(asks: &str, users: Option<[usize; 2]>) -> Site {
        let mut sites = Sites::default();
        let mut seen = Site::Unknown;
        for _ in 0..100 {
            for (letters, place) in [("mtsh", 2), ("mtb", 3), (asks, 1)] {
                let mut stack = stack(letters);
                stack[1].instruction = Some(place);
                let users = users.map(|[from, to]| vec![user(from..to, false)]);
                seen = sites.poll(&stack, |_| false, |_| false, |_, _| users.clone());
            }
        }
        seen
    }

    #[test]
    fn what_no_model_may_use_is_no_batch() {
        for asks in ["mtr", "mtk", "mtl", "mtfx"] {
            assert_eq!(site_of(asks, None), Site::Data, "{asks}");
            assert_eq!(site_of(asks, Some([2, 3])), Site::Data, "{asks}");
            // It may go into the loss, or into a log.
            assert_eq!(site_of(asks, Some([3, 9])), Site::Other, "{asks}");
        }
        // An iterator and a queue give batches, whether or not it is seen what uses them.
        for asks in ["mtn", "mtgw", "mtq"] {
            assert_eq!(site_of(asks, Some([3, 9])), Site::Data, "{asks}");
        }
    }

    /// `samples = [read(name) for name in names]; batch = stack(samples)`
    #[test]
    fn what_the_loop_makes_of_what_a_function_built_is_a_batch() {
        use Site::{Data, Step, Unknown};
        // The first statement is from 1 to 4, with the call that builds at 2, and the second one from 4 to 6.
        let learned = |here: usize, model: usize, innermost: Innermost| {
            let mut sites = Sites::default();
            let mut seen = vec![];
            for _ in 0..100 {
                let poll = |(letters, place): (&str, usize)| {
                    let mut stack = stack(letters);
                    stack[1].instruction = Some(place);
                    if letters != "mtsb" {
                        stack.last_mut().unwrap().innermost = innermost;
                    }
                    let places = [1..4, 4..6, model..model + 1];
                    let users = |_, at: Option<usize>| {
                        let at = at.unwrap_or(place);
                        let first = places.iter().position(|units| units.contains(&at))?;
                        let later = places[first..].iter().cloned();
                        (at < 6 || at == model)
                            .then(|| later.map(|units| user(units, false)).collect())
                    };
                    sites.poll(&stack, |_| false, |_| false, users)
                };
                let calls = [("mtc", 2), ("mtsh", model), ("mtsb", model), ("mt", here)];
                seen = calls.map(poll).to_vec();
            }
            seen
        };
        let works = Innermost::Works;
        assert_eq!(learned(3, 6, works), [Data, Step, Step, Data]);
        assert_eq!(learned(5, 6, works), [Data, Step, Step, Data]);
        // It may belong to the call of the model, be for something else, wait for an accelerator, or compute.
        assert_eq!(learned(5, 4, works), [Data, Step, Step, Unknown]);
        assert_eq!(learned(7, 6, works), [Data, Step, Step, Unknown]);
        let waits = learned(5, 6, Innermost::MayWait);
        assert_eq!(waits, [Data, Step, Step, Unknown]);
        let computes = learned(5, 6, Innermost::Computes);
        assert_eq!(computes, [Data, Step, Step, Step]);
    }

    #[test]
    fn what_is_built_for_a_model_is_a_batch() {
        use Site::{Data, Step, Unknown};
        // The loop builds at 1, and calls its model at 2, which trains.
        let learned = |asks: &[&str], steps: &[&str], users: Option<[usize; 2]>| {
            let mut sites = Sites::default();
            let mut seen = vec![];
            for _ in 0..100 {
                let calls = asks.iter().map(|letters| (*letters, 1));
                let calls = calls.chain(steps.iter().map(|letters| (*letters, 2)));
                let poll = |(letters, place): (&str, usize)| {
                    let mut stack = stack(letters);
                    stack[1].instruction = Some(place);
                    let users = users.map(|[from, to]| vec![user(from..to, false)]);
                    sites.poll(&stack, |_| false, |_| false, |_, _| users.clone())
                };
                seen = calls.map(poll).collect();
            }
            seen
        };
        let steps = ["mtsh", "mtsb"];
        assert_eq!(learned(&["mtc"], &steps, Some([2, 3])), [Data, Step, Step]);
        // It is not known whether the model may use it, or the model may not.
        assert_eq!(learned(&["mtc"], &steps, None), [Unknown; 3]);
        assert_eq!(learned(&["mtc"], &steps, Some([3, 9])), [Unknown; 3]);
        // For a part of its time, for most of it, or in a model, it may be computing.
        assert_eq!(
            learned(&["mtc", "mtc", "mtC"], &steps, Some([2, 3])),
            [Data, Data, Unknown, Step, Step]
        );
        assert_eq!(
            learned(&["mtc", "mtC", "mtC"], &steps, Some([2, 3])),
            [Unknown; 5]
        );
        assert_eq!(
            learned(&["mtc", "mtch"], &steps, Some([2, 3])),
            [Unknown; 4]
        );
        // A stack that is seen seldom may mix two moments.
        let many: Vec<&str> = ["mtsh"; 60].into_iter().chain(["mtsb"]).collect();
        assert_eq!(learned(&["mtc"], &many, Some([2, 3]))[0], Unknown);
        // What the loop does besides may be neither, unless another function shows where it asks.
        assert_eq!(
            learned(&["mtc", "mtV"], &steps, Some([2, 3])),
            [Data, Unknown, Step, Step]
        );
        assert_eq!(
            learned(&["mtc", "mtV", "mtnw"], &steps, Some([2, 3])),
            [Data, Step, Data, Step, Step]
        );
        // It may be an answer to what the model gave, such as the next state of an environment.
        assert_eq!(learned(&["mtc"], &steps, Some([1, 3])), [Unknown; 3]);
        // What the function that runs the model asks for is the batch.
        assert_eq!(
            learned(&["mtc"], &["mtsh", "mtsb", "mtsnw"], Some([2, 3])),
            [Unknown; 4]
        );
    }

    /// Such as a reward, or the result of an action.
    #[test]
    fn an_answer_to_what_a_model_gave_is_no_batch() {
        // The loop runs a model at 2 and trains at 5, with another run of the model.
        let site_at_4 = |users: Option<&User>| {
            let mut sites = Sites::default();
            let mut seen = Site::Unknown;
            for _ in 0..100 {
                for (letters, place) in [("mtvh", 2), ("mtsh", 5), ("mtsb", 5), ("mtqw", 4)] {
                    let mut stack = stack(letters);
                    stack[1].instruction = Some(place);
                    let of_model =
                        |_, at| (at == Some(2)).then(|| users.cloned().into_iter().collect());
                    seen = sites.poll(&stack, |_| false, |_| false, of_model);
                }
            }
            seen
        };
        assert_eq!(site_at_4(None), Site::Data);
        // The call itself gets it, or another one that sends it to somebody; but a log gets it, or it is sent later.
        assert_eq!(site_at_4(Some(&user(4..5, false))), Site::Unknown);
        assert_eq!(site_at_4(Some(&user(3..4, true))), Site::Unknown);
        assert_eq!(site_at_4(Some(&user(3..4, false))), Site::Data);
        assert_eq!(site_at_4(Some(&user(6..7, true))), Site::Data);
    }

    #[test]
    fn a_function_of_the_loop_may_train_on_batches_of_its_own() {
        use Site::{Data, Step};
        // The function goes through a shard, or through one epoch while the loop itself validates.
        let within = [("mtsgw", [2, 1]), ("mtsb", [2, 2])];
        let of_shards = [&[("mtnw", [1, 0])], &within[..]].concat();
        assert_eq!(learned_at(false, &of_shards), [Data, Data, Step]);
        let beside = [&within[..], &[("mtnp", [3, 0]), ("mth", [4, 0])]].concat();
        assert_eq!(learned_at(true, &beside), [Data, Step, Data, Step]);
        // The function divides the batch of PyTorch's loader, or evaluates after training.
        let divides = [&[("mtnp", [1, 0])], &within[..]].concat();
        assert_eq!(learned_at(true, &divides), [Data, Step, Step]);
        let evaluates = [("mtnw", [1, 0]), ("mtsb", [2, 1]), ("mtsgw", [2, 2])];
        assert_eq!(learned_at(false, &evaluates), [Data, Step, Step]);
    }

    /// For example, results that are decoded or evaluated one by one.
    #[test]
    fn what_is_gone_through_after_the_step_is_no_batch() {
        use Site::{Data, Step, Unknown};
        let learned = |pytorch, stacks: &[(&str, usize)]| {
            let places = stacks.iter().map(|(letters, line)| (*letters, [*line, 0]));
            learned_at(pytorch, &places.collect::<Vec<_>>())
        };
        let (train, validate) = (("mtsb", 2), ("mtvh", 4));
        // A generator, `map`, and an iterator without a frame, in a loop that asks a loader of PyTorch or another
        // iterator.
        for after in ["mtgf", "mt!f", "mt!"] {
            for (pytorch, asks) in [(true, "mtnp"), (false, "mtnw")] {
                let seen = learned(pytorch, &[(asks, 1), train, (after, 3)]);
                assert_eq!(seen, [Data, Step, Unknown], "{asks} {after}");
            }
            // Before the step, it makes the batch; before another run of a model, it may be a loader for validation.
            let seen = learned(true, &[("mtnp", 1), (after, 1), ("mtsb", 2)]);
            assert_eq!(seen, [Data, Data, Step], "{after}");
            let seen = learned(true, &[("mtnp", 1), train, (after, 3), validate]);
            assert_eq!(seen, [Data, Step, Data, Step], "{after}");
        }
        let two = [("mtnp", 1), train, ("mtgf", 3), ("mt!f", 4)];
        assert_eq!(learned(true, &two), [Data, Step, Unknown, Unknown]);
        // The loop may request its batch last, unless its batches are known to come from a loader of PyTorch.
        assert_eq!(learned(false, &[train, ("mtgf", 3)]), [Step, Data]);
        assert_eq!(learned(true, &[train, ("mtgf", 3)]), [Step, Unknown]);
        // Between a model and its training; but another model may run on it.
        let model = ("mtvh", 2);
        for within in ["mtgf", "mt!f", "mtqw"] {
            let seen = learned(false, &[model, (within, 3), ("mtsb", 4)]);
            assert_eq!(seen, [Step, Unknown, Step], "{within}");
            let another = ("mtzh", 4);
            let seen = learned(false, &[model, (within, 3), another, ("mtsb", 5)]);
            assert_eq!(seen, [Step, Data, Step, Step], "{within}");
        }
        // Another thread may take batches from that loader and hand them over here.
        assert_eq!(learned(true, &[train, ("mtgq", 3)]), [Step, Data]);
    }

    #[test]
    fn the_outermost_loop_takes_the_place_of_one_within_it() {
        let mut sites = Sites::default();
        for _ in 0..30 {
            poll(&mut sites, "mtgnw");
            assert_ne!(poll(&mut sites, "mtgc"), Site::Data, "unknown or a step");
        }
        for _ in 0..10 {
            poll(&mut sites, "mtgc");
            poll(&mut sites, "mts");
        }
        assert_eq!(poll(&mut sites, "mtgc"), Site::Data);
        assert_eq!(poll(&mut sites, "mts"), Site::Step);
        assert_eq!(sites.widened, 2, "the generator's own, and that around it");
    }

    #[test]
    fn a_long_validation_is_elsewhere() {
        let mut sites = Sites::default();
        for _ in 0..500 {
            poll(&mut sites, "mtnw");
            poll(&mut sites, "mts");
        }
        for _ in 0..50 {
            assert_eq!(poll(&mut sites, "mvnw"), Site::Elsewhere);
        }
        assert_eq!(poll(&mut sites, "mtnw"), Site::Data);
    }

    #[test]
    fn memory_stays_bounded_however_stacks_change() {
        let mut sites = Sites::default();
        for code in 0..100_000 {
            let mut deep = stack("mt");
            let other = deep[0];
            deep.extend((0..100).map(|depth| Call {
                code: code * 100 + depth,
                ..other
            }));
            sites.poll(&deep, |_| false, |_| false, |_, _| None);
        }
        assert!(sites.nodes.len() <= MAX_NODES + MAX_DEPTH + 1);
    }
}
