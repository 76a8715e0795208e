//! What the functions on the main thread's stack do for their callers. Does not know the training loop.

use super::Stacks;
use super::brings::{brings, computes, drops_result, gives, is_given_in_c};
use super::call::{Call, Innermost};
use super::frame::Frame;
use super::frames::Walked;
use super::main_stack::{AsleepIn, ThreadContext, is_known};

impl Stacks {
    /// Whether a thread that trains reads something that may be a batch, although no name shows that. False if the thread has
    /// a loader of its own or a queue: what it reads may then be anything.
    fn may_bring(&self, walked: &Walked, context: ThreadContext) -> bool {
        matches!(context.asleep, AsleepIn::Receiving | AsleepIn::Reading)
            && self.is_unnamed_work(walked)
            && !context.reads
            && !self.queues.has_any()
    }

    /// Whether a thread that trains is at work without the framework, so that it cannot be computing on a batch. On an
    /// accelerator, any instruction of the program's own may wait for a computation.
    fn may_build(&self, walked: &Walked, context: ThreadContext) -> bool {
        let waits_for_device = match context.asleep {
            AsleepIn::Lock | AsleepIn::Other => context.accelerated,
            AsleepIn::Receiving | AsleepIn::Reading | AsleepIn::Sleeping => false,
        };
        let own = walked
            .frames
            .first()
            .is_none_or(|frame| !frame.code.library);
        self.is_unnamed_work(walked) && !(own && waits_for_device)
    }

    /// Whether the innermost function waits for one that is written in C and builds something for it, in a thread that trains.
    /// Where that waits for a lock, it waits for threads of its own, or for the interpreter's lock to go on.
    fn builds_in_c(&self, walked: &Walked) -> bool {
        let in_c = || {
            let innermost = walked.frames.first();
            innermost.is_some_and(|it| is_given_in_c(it, &self.memory).unwrap_or(false))
        };
        self.is_unnamed_work(walked) && *walked.gives_in_c.get_or_init(in_c)
    }

    /// Whether a thread that trains does something of which no name says what it is.
    fn is_unnamed_work(&self, walked: &Walked) -> bool {
        let means = |frame: &Frame| {
            let meaning = frame.code.meaning;
            meaning.hands_over || meaning.loader.is_some() || meaning.not_data.is_some()
        };
        self.sites.trains && walked.device.is_none() && !walked.frames.iter().any(means)
    }

    /// Returns the functions of a stack, outermost first, with what the search for the training loop must know of each.
    pub(super) fn calls(
        &self,
        walked: &Walked,
        context: ThreadContext,
        takes: Option<usize>,
    ) -> Vec<Call> {
        let frames = &walked.frames;
        let without_frame = match context.asleep {
            _ if frames.iter().any(is_known) => None,
            AsleepIn::Receiving => Some(Call::receives()),
            _ => walked.takes.then(Call::takes_in_c),
        };
        let stack = frames.iter().rev().map(Frame::call);
        let mut stack: Vec<Call> = stack.chain(without_frame).collect();
        if let Some(takes) = takes {
            stack[frames.len() - 1 - takes].takes = true;
        }
        let memory = self.memory;
        if drops_result(frames, &memory) {
            for call in &mut stack {
                call.meaning.hands_over = false;
            }
        }
        if !stack.iter().any(|call| call.takes) && self.may_bring(walked, context) {
            for called in brings(frames, &memory) {
                stack[frames.len() - 1 - called].brings = true;
            }
        }
        let builds = self.may_build(walked, context);
        if let Some(innermost) = frames.first() {
            stack[frames.len() - 1].innermost = match walked.device {
                None if builds => Innermost::Works,
                None if !computes(innermost) => Innermost::MayWait,
                _ => Innermost::Computes,
            };
        }
        if builds {
            let gives = || gives(frames, &memory).collect();
            for called in walked.gives.get_or_init(gives) {
                stack[frames.len() - 1 - called].builds = true;
            }
        }
        if stack.len() == frames.len() && self.builds_in_c(walked) {
            let instruction = stack.last().and_then(|call| call.instruction);
            stack.extend(instruction.map(Call::builds_in_c));
        }
        stack
    }
}
