//! The training script's own log: when it waited for data.

use std::path::Path;

/// The script's marks in order: from each moment (seconds of `CLOCK_MONOTONIC`) on, it either waits or steps.
pub(crate) struct Truth {
    marks: Vec<(f64, State)>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Wait,
    Step,
}

impl Truth {
    /// Returns the marks so far; none if the script has not begun.
    pub(crate) fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mark = |line: &str| {
            let (state, at) = line.split_once(' ')?;
            let state = match state {
                "wait" => State::Wait,
                "step" => State::Step,
                _ => return None,
            };
            Some((at.parse().ok()?, state))
        };
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Self {
            marks: whole.lines().filter_map(mark).collect(),
        }
    }

    /// Returns the moment of the first mark; `None` if the script has not begun.
    pub(crate) fn began(&self) -> Option<f64> {
        self.marks.first().map(|(at, _)| *at)
    }

    pub(crate) fn batches(&self) -> usize {
        self.begun().count()
    }

    /// Returns batches per second from the first to the last batch between the two moments. `None` = fewer than two.
    pub(crate) fn rate(&self, from: f64, to: f64) -> Option<f64> {
        let came: Vec<f64> = self.begun().filter(|at| (from..to).contains(at)).collect();
        let (first, last) = (came.first()?, came.last()?);
        (last > first).then(|| (came.len() - 1) as f64 / (last - first))
    }

    /// Returns the mean seconds of the whole steps between the two moments. `None` = there was none.
    pub(crate) fn step(&self, from: f64, to: f64) -> Option<f64> {
        let pairs = self.marks.iter().zip(self.marks.iter().skip(1));
        let whole = pairs.filter(|((begun, state), (end, _))| {
            *state == State::Step && *begun >= from && *end <= to
        });
        let steps: Vec<f64> = whole.map(|((begun, _), (end, _))| end - begun).collect();
        (!steps.is_empty()).then(|| steps.iter().sum::<f64>() / steps.len() as f64)
    }

    /// Returns when each batch arrived.
    fn begun(&self) -> impl Iterator<Item = f64> {
        let steps = self.marks.iter().filter(|(_, state)| *state == State::Step);
        steps.map(|(at, _)| *at)
    }

    /// Returns the share of the time between the two moments in which the script waited for its loader.
    pub(crate) fn wait_share(&self, from: f64, to: f64) -> f64 {
        let ends = self.marks.iter().skip(1).map(|(at, _)| *at);
        let waited: f64 = self
            .marks
            .iter()
            .zip(ends.chain([to]))
            .filter(|((_, state), _)| *state == State::Wait)
            .map(|((begin, _), end)| (end.min(to) - begin.max(from)).max(0.0))
            .sum();
        waited / (to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::Truth;

    const MARKS: &str = "wait 10.0\nstep 11.0\nwait 11.5\nstep 13.0\nwait 14.0\n";

    #[test]
    fn wait_share_is_cut_at_both_ends_and_goes_on_after_the_last_mark() {
        let truth = Truth::parse(MARKS);
        for (from, to, share) in [
            (10.0, 14.0, 0.625),
            (10.5, 11.5, 0.5),
            (12.0, 12.5, 1.0),
            (11.0, 11.5, 0.0),
            (14.0, 20.0, 1.0),
            (0.0, 10.0, 0.0),
        ] {
            assert!(
                (truth.wait_share(from, to) - share).abs() < 1e-9,
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn a_rate_is_that_of_whole_periods() {
        let truth = Truth::parse("step 1\nstep 2\nwait 2.5\nstep 3\nstep 4\n");
        assert_eq!(truth.rate(1.5, 4.5), Some(1.0));
        assert_eq!(truth.rate(1.5, 2.5), None);
    }

    #[test]
    fn a_step_is_that_of_the_whole_ones() {
        let truth = Truth::parse(MARKS);
        assert_eq!(truth.step(10.0, 14.0), Some(0.75));
        assert_eq!(truth.step(10.0, 13.5), Some(0.5));
        assert_eq!(truth.step(11.2, 13.5), None);
    }

    #[test]
    fn a_half_written_line_does_not_count() {
        assert_eq!(Truth::parse("wait 1.0\nstep 2.0\nwait 3").batches(), 1);
        assert_eq!(Truth::parse("wait 1.0\nstep 2").batches(), 0);
        assert_eq!(Truth::parse("").batches(), 0);
    }
}
