//! Ranks that wait for the slowest rank.

use std::process::Command;

use crate::job::Start;
use crate::report::Report;
use crate::trial::{OBSERVED, PIPETOP, Situation, about, ensure, last_python, light};
use support::machine::note;
use support::measured::two_of_three_at_once;

const LATE_RANK: Situation = light("late-rank").start(Start::Torchrun);

#[test]
fn the_last_rank_is_named_by_the_rank_waiting_for_it() {
    last_python(LATE_RANK, |python| {
        let job = LATE_RANK.job(python)?;
        two_of_three_at_once(|| {
            let report = Report::of(Command::new(PIPETOP), job.pid(), OBSERVED)?;
            let words = report.fact("collectives").unwrap_or_default();
            let rank = report.rank();
            note(&format!(
                "torch {}: rank {rank:?}: {} {words}",
                python.torch,
                report.kind()
            ));
            let kind = ensure(
                report.kind() == "communication-bound" && rank == Some(0),
                || "rank 0 waits for rank 1".into(),
            );
            let named = words.contains("rank 1 ") && words.contains("the last to arrive");
            let named = ensure(named, || "does not name rank 1".into());
            about(&report, kind.and(named))
        })
    });
}
