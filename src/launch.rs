//! Launching the user's own training command so that it tells of its own steps: for `pipetop run`, which is to come.
//!
//! Holds what the command gets that it would not have had without us. Knows nothing of what is made of the
//! reports, or of how it is shown.

mod hook;

pub use hook::{Cache, Hook, Overrides};
