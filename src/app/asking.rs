//! What the sampler is asked for only while it is looked at: the open files of one worker.

use super::{App, Flow};
use crate::source::sampler::Request;
use crate::ui::opened_worker;

impl App {
    /// Asks for the files of the worker that is shown now; once, and once more that nobody looks.
    pub(super) fn ask_for_files(&mut self, flow: Flow) -> Flow {
        // A recording holds none.
        if flow != Flow::Draw || self.state.replay.is_some() {
            return flow;
        }
        let wanted = opened_worker(&self.view());
        if wanted == self.asked {
            return flow;
        }
        self.asked = wanted;
        Flow::Ask(Request::Files(wanted))
    }
}
