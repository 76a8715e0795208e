//! Which calls of the training loop belong to its step, although they give it something.
//!
//! Does not know how the loop was found.

use super::{ALSO_HANDS_OVER, Sites};
use crate::source::python::call::{Call, Innermost};
use crate::source::python::call_node::{CallNode, OF_EACH, ONE_OF};
use crate::source::python::flow::User;

/// Whether the call at `here` may give the answer to what the call of a model at `model` gave, which `users` may use: it
/// gets that, or another thread or process was sent it before.
fn answers(here: usize, model: usize, users: &[User]) -> bool {
    let mut users = users.iter();
    users.any(|user| {
        let sent = user.sends && model < user.at.end && user.at.end <= here;
        sent || user.at.contains(&here)
    })
}

impl Sites {
    /// Whether the loop, at instruction `here`, takes items of something within its step or after it. Within: it has run a
    /// model, and trains without running another, or gets the answer to what that model gave. After: it has asked for a
    /// batch and trained or run a model on it, and does no more of that before its next request. Such items are probably
    /// not batches, but results to evaluate, for example. `users`: the statements that may use what the call at an
    /// instruction gives; `None` if not known.
    pub(super) fn is_of_step(
        &self,
        found: usize,
        called: Option<usize>,
        here: Option<usize>,
        mut users: impl FnMut(usize) -> Option<Vec<User>>,
    ) -> bool {
        let Some(here) = here else { return false };
        let others = || {
            let called = called.map(|called| &self.nodes[called]);
            let is_other =
                move |child: &&CallNode| !called.is_some_and(|it| std::ptr::eq(it, *child));
            self.children(found).filter(is_other)
        };
        let called = called.map(|called| &self.nodes[called]);
        if called.is_some_and(|called| called.pytorch > 0) {
            return false;
        }
        let requests = || {
            let asking =
                others().filter(|child| child.pytorch > 0 || (child.is_asking() && child.asks()));
            asking.flat_map(CallNode::called_at)
        };
        let any = |is: fn(&CallNode) -> bool, after: usize, before: usize| {
            let such = others().filter(|child| is(child));
            let mut places = such.flat_map(CallNode::called_at);
            places.any(|place| after < place && place < before)
        };
        let end = usize::MAX;
        if any(CallNode::only_runs_model, 0, here)
            && any(CallNode::trains, here, end)
            && (!any(CallNode::runs_model, here, end) || {
                let models = others().filter(|child| child.only_runs_model());
                let mut models = models.flat_map(CallNode::called_at);
                models.any(|model| {
                    model < here && users(model).is_some_and(|users| answers(here, model, &users))
                })
            })
        {
            return true;
        }
        let hands_over = called.is_some_and(|called| called.hands_over > 0);
        let makes = called.is_some_and(CallNode::only_makes_samples);
        let before = requests().filter(|place| *place < here).min();
        let after = requests().filter(|place| *place > here).min();
        let is_last = after.is_none() && (makes || (self.pytorch && !hands_over));
        let from = before.or_else(|| is_last.then_some(0));
        from.is_some_and(|from| any(CallNode::computes, from, here))
            && !any(CallNode::computes, here, after.unwrap_or(end))
    }

    /// Whether the loop gets something from `called` that no model it runs may use, such as the result of a command. Items of an
    /// iterator and of a queue are batches even so. `users`: the statements that may use it; `None` if not known.
    pub(super) fn is_not_for_model(
        &self,
        found: usize,
        called: usize,
        stack: &[Call],
        users: impl FnOnce() -> Option<Vec<User>>,
    ) -> bool {
        let called = &self.nodes[called];
        let is_known = called.is_iterator() || called.pytorch > 0;
        if is_known || stack.iter().any(|call| call.meaning.queue) {
            return false;
        }
        let models = self.places(found, CallNode::runs_model);
        let models = if models.is_empty() {
            self.places(found, CallNode::trains)
        } else {
            models
        };
        !models.is_empty() && users().is_some_and(|users| !reach(&users, &models))
    }

    /// Counts for each function along the stack whether it builds something that a model may use which its caller runs
    /// itself or by a function that asks for no batch, and that is no answer to what a model gave. `users`: the statements
    /// that may use what the call at an instruction of the function at a depth gives, its present one by default; `None` if
    /// not known.
    pub(super) fn count_feeding(
        &mut self,
        path: &[usize],
        stack: &[Call],
        mut users: impl FnMut(usize, Option<usize>) -> Option<Vec<User>>,
    ) {
        for (depth, pair) in path.windows(2).enumerate().skip(1) {
            let (caller, called) = (pair[0], pair[1]);
            let is_rare = self.nodes[called].stacks < self.nodes[caller].stacks / ONE_OF;
            if !stack[depth].builds || self.nodes[called].computes() || is_rare {
                continue;
            }
            let only_computes =
                |child: &CallNode| child.runs_model() && !self.is_asking_within(child);
            let models = self.places(caller, only_computes);
            let Some(here) = stack[depth - 1].instruction.filter(|_| !models.is_empty()) else {
                continue;
            };
            let mut is_answer = |model: &usize| {
                let of_model = users(depth - 1, Some(*model));
                of_model.is_some_and(|users| answers(here, *model, &users))
            };
            if !models.iter().any(&mut is_answer)
                && users(depth - 1, None).is_some_and(|users| reach(&users, &models))
            {
                self.nodes[called].feeds += 1;
            }
        }
    }

    /// Whether the loop itself, which is first on `stack`, is at work on what a function has built for a model: in a
    /// statement that may use it, whose value the model may get, and in which no model runs. `users`: the statements that
    /// may use what the call at an instruction gives, first its own; `None` if not known.
    pub(super) fn completes(
        &self,
        found: usize,
        stack: &[Call],
        mut users: impl FnMut(usize) -> Option<Vec<User>>,
    ) -> bool {
        let [
            Call {
                instruction: Some(here),
                innermost: Innermost::Works,
                ..
            },
        ] = stack
        else {
            return false;
        };
        let models = self.places(found, CallNode::runs_model);
        let runs_model = |own: &User| models.iter().any(|model| own.at.contains(model));
        let is_for_model = |users: Vec<User>| {
            users.first().is_some_and(|own| !runs_model(own)) && reach(&users, &models)
        };
        let mut built = self.places(found, CallNode::feeds).into_iter();
        built.any(|built| users(built).is_some_and(|users| reach(&users, &[*here])))
            && users(*here).is_some_and(is_for_model)
    }

    /// Whether this may be neither a step nor work on a batch, such as an environment's. A loop that is known only by the
    /// functions that build its batches may do other things. `path` begins with the loop.
    pub(super) fn may_be_other_work(&self, found: usize, path: &[usize], stack: &[Call]) -> bool {
        let innermost = stack
            .last()
            .map_or(Innermost::Computes, |call| call.innermost);
        let computes = path
            .get(1)
            .is_some_and(|called| self.nodes[*called].computes());
        let node = &self.nodes[found];
        let is_rare = node.iterates < OF_EACH.max(node.stacks / ALSO_HANDS_OVER);
        let mut asking = self.children(found).filter(|child| child.is_asking());
        !computes && innermost != Innermost::Computes && is_rare && asking.all(CallNode::only_feeds)
    }

    fn is_asking_within(&self, node: &CallNode) -> bool {
        let mut children = node.children.iter().map(|child| &self.nodes[*child]);
        children.any(|child| child.pytorch > 0 || child.is_asking() || self.is_asking_within(child))
    }

    /// Returns the instructions at which a function makes calls of a kind.
    fn places(&self, caller: usize, is: impl Fn(&CallNode) -> bool) -> Vec<usize> {
        let such = self.children(caller).filter(|child| is(child));
        such.flat_map(CallNode::called_at).collect()
    }
}

/// Whether one of these statements calls a model at one of these places.
fn reach(users: &[User], models: &[usize]) -> bool {
    let mut models = models.iter();
    models.any(|model| users.iter().any(|user| user.at.contains(model)))
}
