//! What the sampler reads only while it is on the screen: the job's processes, and the open files of one worker.

use super::{App, Effect};
use crate::source::sampler::Request;
use crate::ui::{Page, opened_worker};

impl App {
    /// Requests for what is shown now, once each, and once more when it is shown no longer.
    pub(super) fn requests(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let opened = &self.state.tree.opened;
        let processes = (self.state.page == Page::Tree).then(|| opened.clone());
        if processes != self.looked_at {
            if processes.is_none() {
                self.engine.forget_processes();
            }
            self.looked_at.clone_from(&processes);
            effects.push(Effect::Sampler(Request::Processes(processes)));
        }
        let worker = opened_worker(&self.view());
        // A recording holds no open files.
        if worker != self.asked && self.state.replay.is_none() {
            self.asked = worker;
            effects.push(Effect::Sampler(Request::Files(worker)));
        }
        effects
    }
}
