//! What is drawn, on ratatui's test backend: whole screens of known situations, and the layout at every size.

mod bytes;
mod layout;
mod situations;
