//! The verdict on real `PyTorch` jobs, against what each job says of itself.
//!
//! Every test runs for every interpreter with torch that there is. What cannot run says so; where
//! `PIPETOP_REQUIRE_TORCH=1` it fails. At most two jobs run at a time. The test runner takes tests by name, so the
//! jobs of `alone` come first and do not wait for those of `in_pairs`.

mod alone;
mod cgroup;
mod clock;
mod gil;
mod in_pairs;
mod job;
mod machine;
mod report;
mod trial;
mod truth;
