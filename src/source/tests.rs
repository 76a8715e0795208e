//! Tests of the readers, on directory trees that imitate a machine and on scripted drivers.

mod gpu;
mod gpu_figures;
mod host;
