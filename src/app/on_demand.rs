//! Requests for data that the sampler reads only while it is shown: the job's processes with their threads, and the
//! open files of one worker.

use super::{App, Effect};
use crate::source::sampler::Request;
use crate::ui::{Page, opened_worker};

impl App {
    /// Returns a request each time the data that the screen needs changes, including when it is no longer needed.
    pub(super) fn requests(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let opened = &self.state.tree.opened;
        let processes = (self.state.page == Page::Tree).then(|| opened.clone());
        if processes != self.requested_threads {
            if processes.is_none() {
                self.engine.drop_processes();
            }
            self.requested_threads.clone_from(&processes);
            effects.push(Effect::Sampler(Request::Processes(processes)));
        }
        let worker = opened_worker(&self.view());
        // A recording contains no open files.
        if worker != self.requested_files && self.state.replay.is_none() {
            self.requested_files = worker;
            effects.push(Effect::Sampler(Request::Files(worker)));
        }
        effects
    }
}
