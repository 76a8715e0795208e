//! The readers, on trees that stand for a machine and on scripted drivers.

mod gpu;
mod gpu_figures;
mod host;
