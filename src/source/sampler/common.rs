//! The state that several samplers share, so that the machine is read once.

use std::sync::Arc;

use super::Options;
use crate::source::clock::Clock;
use crate::source::gpu::Gpus;

/// The state that the samplers of one process share: each GPU is read once for all of them.
#[derive(Clone)]
pub struct Common {
    pub(super) clock: Clock,
    pub(super) gpus: Arc<Gpus>,
}

impl Common {
    pub fn start(options: &Options) -> Self {
        let clock = Clock::start();
        let gpus = Gpus::start(
            options.nvml_lib.clone(),
            options.gpus.clone(),
            options.interval,
            move || clock.now(),
        );
        Self {
            clock,
            gpus: Arc::new(gpus),
        }
    }
}
