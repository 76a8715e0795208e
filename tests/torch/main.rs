//! The verdict on real `PyTorch` jobs, against what each job says of itself.
//!
//! Every test runs for every interpreter with torch that there is. What cannot run says so; where
//! `PIPETOP_REQUIRE_TORCH=1` it fails. Up to four jobs that sleep run at a time, or one that does not. The test
//! runner takes tests by name, so the jobs of `alone` come first and do not wait for those of `side_by_side`.

mod alone;
mod cgroup;
mod clock;
mod gil;
mod job;
mod loads;
mod machine;
mod marks;
mod ranks;
mod report;
mod side_by_side;
mod trial;
mod truth;
