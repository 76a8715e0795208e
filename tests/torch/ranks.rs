//! Ranks that wait for one that comes last.

use std::process::Command;

use crate::job::Start;
use crate::machine::note;
use crate::report::Report;
use crate::trial::{PIPETOP, Situation, about, ensure, last_python, light};

const LATE_RANK: Situation = light("late-rank").start(Start::Torchrun);
/// A verdict takes ten.
const SECONDS: u32 = 12;

#[test]
fn the_rank_that_comes_last_is_named_by_the_one_that_waits_for_it() {
    last_python(LATE_RANK, |python| {
        let job = LATE_RANK.job(python)?;
        let report = Report::of(Command::new(PIPETOP), job.pid(), SECONDS)?;
        let words = report.fact("collectives").unwrap_or_default();
        let rank = report.rank();
        note(&format!(
            "torch {}: rank {rank:?}: {} {words}",
            python.torch,
            report.kind()
        ));
        about(
            &report,
            ensure(
                report.kind() == "communication-bound" && rank == Some(0),
                || "rank 0 waits for rank 1".into(),
            ),
        )?;
        about(
            &report,
            ensure(
                words.contains("rank 1 ") && words.contains("comes last"),
                || "does not name rank 1".into(),
            ),
        )
    });
}
