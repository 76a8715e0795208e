//! What pipetop draws, on ratatui's test backend: whole screens in known situations, and the layout at every size.

mod bytes;
mod layout;
mod situations;
