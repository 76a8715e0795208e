//! Real Python and real `PyTorch`: what is seen of a job from outside, what its hook reports and what is measured with
//! it, against what each job says of itself.
//!
//! The tests run with every interpreter of `PIPETOP_TORCH_PYTHONS` (separated by colons; `python3` by default) that has
//! torch, but for what does not depend on its version. What cannot run says so; where `PIPETOP_REQUIRE_ALL=1` it fails.
//! Every test takes its place on the machine: up to four jobs that sleep run at a time, or one that computes. The
//! test runner takes tests by name: those of `alone` come first, and the machine is not emptied for each of them.

mod accuracy;
mod alone;
mod cgroup;
mod clock;
mod diff;
mod experiments;
mod gil;
mod hook;
mod job;
mod loaders;
mod loads;
mod marks;
mod nvml_binding;
mod probe;
mod prometheus;
mod python;
mod ranks;
mod report;
mod run;
mod side_by_side;
mod timeline;
mod trial;
mod truth;
