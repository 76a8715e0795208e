//! Where the training loop asks for its next batch, learned from many stacks of the main thread.
//!
//! The training loop is the outermost function that nearly all stacks have in common and that takes turns between
//! asking for a batch and doing something else. A call asks for a batch where the function called is an iterator's or
//! a generator's, or where the standard library hands something over in nearly all of its time; a call in which a
//! model is trained does not, whatever its name. Pure: knows functions by number, not how stacks are read.

use crate::loaders::Meaning;

/// One function on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Tells the function from others.
    pub(super) code: usize,
    pub(super) meaning: Meaning,
    /// It yields items; a generator expression is one, too, but mostly of a sum or a list.
    pub(super) generator: bool,
    pub(super) expression: bool,
    /// The instruction that it runs, and so where it calls the next; `None` where that is not known.
    pub(super) instruction: Option<usize>,
}

/// What a stack says of the main thread's place in the training loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// There is no training loop that is known.
    Unknown,
    /// Outside of it.
    Elsewhere,
    /// In it, and asking for a batch.
    Data,
    /// In it, with a batch at hand.
    Step,
}

/// Stacks from which on a loop can be told, and in which a wait, a step and the change from one to the other must have
/// been seen.
const STACKS: u32 = 20;
const OF_EACH: u32 = 3;
/// The loop is in at least this share of the stacks; once found, it is kept down to the lesser share.
const COVERS: f64 = 0.9;
const STILL_COVERS: f64 = 0.7;
/// Of the time in a call: hands over, and nothing else to speak of.
const NEARLY_ALL: f64 = 0.9;
/// In one of so many of the loop's stacks something is handed over at a second place, too: enough to matter.
const ALSO_HANDS_OVER: u32 = 20;
/// Places of one call that are told apart.
const PLACES: usize = 8;
/// After so many stacks older ones count half; where they have shown no loop, they count no more.
const REMEMBERED: u32 = 2000;
/// Functions that are remembered, and stacks are followed to this depth.
const NODES: usize = 1024;
const DEEPEST: usize = 64;

/// The stacks so far, as a tree of calls.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// The first stands for all stacks; none before the first stack.
    nodes: Vec<Node>,
    /// The training loop, once found.
    found: Option<usize>,
    /// How often one was found around the one that was known; the first counts, too.
    widened: u32,
}

/// One function, called along one path.
#[derive(Debug, Default)]
struct Node {
    code: usize,
    parent: usize,
    children: Vec<usize>,
    stacks: u32,
    /// It asks for a batch, as its caller sees it, by what it is.
    asks: bool,
    /// Of its stacks: something is handed over, a model is trained.
    hands_over: u32,
    trains: u32,
    /// The instructions that called it, and how often it was seen called so.
    called_at: Vec<(usize, u32)>,
    /// It was in the middle of `for` itself, with no Python function called.
    iterates: u32,
    /// Changes between asking and not, and what was last.
    turns: u32,
    asked: bool,
}

impl Node {
    /// Takes in that it was called by this instruction.
    fn called(&mut self, instruction: Option<usize>) {
        let Some(at) = instruction else { return };
        if let Some((_, times)) = self.called_at.iter_mut().find(|(known, _)| *known == at) {
            *times += 1;
        } else if self.called_at.len() < PLACES {
            self.called_at.push((at, 1));
        }
    }

    /// Places from which it is called so often; one where they are not known.
    fn places(&self, often: u32) -> usize {
        let known = self.called_at.iter().filter(|(_, times)| *times >= often);
        known.count().max(usize::from(self.stacks >= often))
    }

    fn is_asking(&self) -> bool {
        let hands_over = f64::from(self.hands_over) >= NEARLY_ALL * f64::from(self.stacks);
        self.trains == 0 && (self.asks || (hands_over && self.stacks >= OF_EACH))
    }
}

impl Sites {
    /// Takes a stack in, outermost function first, and says what it means. `in_for` tells whether the innermost
    /// function is about to take the next item of a `for` loop; it is asked only where that matters.
    pub(super) fn poll(&mut self, stack: &[Call], in_for: impl FnOnce() -> bool) -> Site {
        if self.nodes.len() > NODES || stack.is_empty() {
            self.nodes.clear();
            self.found = None;
        }
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        self.forget();
        let path = self.count(stack);
        self.take_turns(&path, stack.len(), in_for);
        // The outermost, also where one within it was found first.
        let known = self.found;
        let mut outermost = path.iter().copied();
        let outermost = outermost.find(|node| self.is_loop(*node, COVERS, OF_EACH));
        if let Some(outermost) = outermost
            && known.map_or(self.widened == 0, |known| self.is_called(known, outermost))
        {
            self.widened += 1;
        }
        self.found =
            outermost.or_else(|| known.filter(|known| self.is_loop(*known, STILL_COVERS, 1)));
        let Some(found) = self.found else {
            return Site::Unknown;
        };
        let Some(at) = path.iter().position(|node| *node == found) else {
            return Site::Elsewhere;
        };
        let asks = path.get(at + 1).is_some_and(|node| self.nodes[*node].asks);
        match self.nodes[found].asked {
            true if path.len() > at + 1 && !asks && self.is_ambiguous(found) => Site::Unknown,
            true => Site::Data,
            false => Site::Step,
        }
    }

    /// Something is handed over at a place of the loop where nothing else says that it is a batch, and batches may come
    /// from elsewhere: the loop asks there, too. It may be the result of a step that another thread makes.
    fn is_ambiguous(&self, found: usize) -> bool {
        let node = &self.nodes[found];
        let often = OF_EACH.max(node.stacks / ALSO_HANDS_OVER);
        let children = || node.children.iter().map(|child| &self.nodes[*child]);
        let asks =
            children().any(|child| child.is_asking() && child.asks && child.stacks >= OF_EACH);
        let others = children().filter(|child| child.is_asking() && !child.asks);
        let places: usize = others.map(|child| child.places(often)).sum();
        places + usize::from(asks || node.iterates >= OF_EACH) > 1
    }

    /// How often the training loop turned out to be around the one that was taken for it; 1 with the first, 0 before.
    pub(super) fn widened(&self) -> u32 {
        self.widened
    }

    /// `node` is called, by whatever way, from `by`.
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
            self.nodes[0] = Node::default();
            return;
        }
        for node in &mut self.nodes {
            for count in [
                &mut node.stacks,
                &mut node.hands_over,
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

    /// Counts a stack; gives the nodes along it, as far as they can be a part of the loop or called by it.
    fn count(&mut self, stack: &[Call]) -> Vec<usize> {
        let mut path = vec![0];
        let mut at = 0;
        self.nodes[0].stacks += 1;
        let all = self.nodes[0].stacks;
        // What lies below each call is known from the innermost outwards.
        let last = |is: fn(&Call) -> bool| stack.iter().rposition(is);
        let hands_over = last(|call| call.meaning.hands_over);
        let trains = last(|call| call.meaning.trains);
        for (depth, call) in stack.iter().take(DEEPEST).enumerate() {
            let known = |child: &&usize| self.nodes[**child].code == call.code;
            let child = self.nodes[at].children.iter().find(known).copied();
            let Some(child) = child.or_else(|| {
                let is_common = all < STACKS || 2 * self.nodes[at].stacks >= all;
                is_common.then(|| self.add(at, call))
            }) else {
                break;
            };
            let node = &mut self.nodes[child];
            node.stacks += 1;
            node.hands_over += u32::from(hands_over.is_some_and(|found| found >= depth));
            node.trains += u32::from(trains.is_some_and(|found| found >= depth));
            let caller = depth.checked_sub(1).and_then(|depth| stack.get(depth));
            node.called(caller.and_then(|caller| caller.instruction));
            path.push(child);
            at = child;
        }
        path
    }

    fn add(&mut self, parent: usize, call: &Call) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Node {
            code: call.code,
            parent,
            asks: (call.generator && !call.expression) || call.meaning.asks,
            ..Node::default()
        });
        self.nodes[parent].children.push(at);
        at
    }

    /// Notes for each function along the stack whether it asks for a batch now.
    fn take_turns(&mut self, path: &[usize], depth: usize, in_for: impl FnOnce() -> bool) {
        let all = self.nodes[0].stacks;
        for pair in path.windows(2) {
            let asks = self.nodes[pair[1]].is_asking();
            self.turn(pair[0], asks);
        }
        let Some(innermost) = path.last().copied().filter(|_| path.len() == depth + 1) else {
            return;
        };
        if 2 * self.nodes[innermost].stacks >= all {
            let iterates = in_for();
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
        let children = node.children.iter().map(|child| &self.nodes[*child]);
        let asking = children.filter(|child| child.is_asking());
        let data = node.iterates + asking.map(|child| child.stacks).sum::<u32>();
        data >= of_each && node.stacks.saturating_sub(data) >= of_each
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions by letters, outermost first: `g` a generator, `n` an iterator's `__next__`, `q` a queue's `get`, `b` a
    /// backward pass, `e` a generator expression.
    fn stack(letters: &str) -> Vec<Call> {
        let call = |letter: char| Call {
            code: letter as usize,
            meaning: Meaning {
                asks: letter == 'n',
                hands_over: letter == 'q',
                trains: letter == 'b',
                ..Meaning::default()
            },
            generator: matches!(letter, 'g' | 'e'),
            expression: letter == 'e',
            instruction: Some(0),
        };
        letters.chars().map(call).collect()
    }

    /// What each of these means once all were seen a hundred times in turns.
    fn learned(stacks: &[&str]) -> Vec<Site> {
        let mut sites = Sites::default();
        let mut seen = vec![];
        for _ in 0..100 {
            let poll = |letters: &&str| {
                let in_for = letters.ends_with('!');
                sites.poll(&stack(letters.trim_end_matches('!')), || in_for)
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
            // An iterator that runs no Python.
            ("mt!", "mts"),
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
    fn without_turns_between_asking_and_working_nothing_is_known() {
        for stacks in [
            &["mts", "mtsb"][..],
            &["mtnw"],
            // Training or another half: neither asks.
            &["mtnw", "mts", "mv", "mv"],
            // A function that works, too.
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
    fn what_is_handed_over_at_two_places_may_be_a_batch_or_not() {
        let mut sites = Sites::default();
        let mut poll = |letters: &str, line| {
            let mut stack = stack(letters);
            // Where the loop, the second function, calls the third.
            stack[1].instruction = Some(line);
            sites.poll(&stack, || false)
        };
        let mut seen = vec![];
        for _ in 0..100 {
            seen = vec![poll("mtqw", 1), poll("mtqw", 2), poll("mts", 3)];
        }
        assert_eq!(seen, [Site::Unknown, Site::Unknown, Site::Step]);
        // Hardly any time passes at the second.
        for _ in 0..5000 {
            poll("mtqw", 1);
            poll("mts", 3);
        }
        assert_eq!(poll("mtqw", 1), Site::Data);
        // An iterator is asked; what is handed over besides may be the result of a step.
        assert_eq!(
            learned(&["mtnw", "mtqw", "mts"]),
            [Site::Data, Site::Unknown, Site::Step]
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

    #[test]
    fn the_outermost_loop_takes_the_place_of_one_within_it() {
        let mut sites = Sites::default();
        for _ in 0..30 {
            sites.poll(&stack("mtgnw"), || false);
            assert_ne!(
                sites.poll(&stack("mtgc"), || false),
                Site::Data,
                "unknown or a step"
            );
        }
        for _ in 0..10 {
            sites.poll(&stack("mtgc"), || false);
            sites.poll(&stack("mts"), || false);
        }
        assert_eq!(sites.poll(&stack("mtgc"), || false), Site::Data);
        assert_eq!(sites.poll(&stack("mts"), || false), Site::Step);
        assert_eq!(
            sites.widened(),
            2,
            "the generator's own, and that around it"
        );
    }

    #[test]
    fn a_long_validation_is_elsewhere() {
        let mut sites = Sites::default();
        for _ in 0..500 {
            sites.poll(&stack("mtnw"), || false);
            sites.poll(&stack("mts"), || false);
        }
        for _ in 0..50 {
            assert_eq!(sites.poll(&stack("mvnw"), || false), Site::Elsewhere);
        }
        assert_eq!(sites.poll(&stack("mtnw"), || false), Site::Data);
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
            sites.poll(&deep, || false);
        }
        assert!(sites.nodes.len() <= NODES + DEEPEST + 1);
    }
}
