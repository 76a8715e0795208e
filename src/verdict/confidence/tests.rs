//! The confidence against the runs of docs/accuracy.csv: the factors are fitted to two thirds of them, and checked with
//! the last third.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;

/// One run that ended with a verdict.
struct MeasuredRun {
    number: u32,
    access: String,
    recognised: String,
    kind: Kind,
    /// The wait share: as the job measured it itself, and as estimated.
    waited: f64,
    wait: Estimate,
    chance: f64,
    stated: f64,
    right: bool,
}

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    fs::read_to_string(path).expect("it is in the tree")
}

fn kind(word: &str) -> Option<Kind> {
    match word {
        "data-bound" => Some(Kind::DataBound),
        "balanced" => Some(Kind::Balanced),
        "compute-bound" => Some(Kind::ComputeBound),
        "stalled" => Some(Kind::Stalled),
        _ => None,
    }
}

fn kind_of(waited: f64) -> Kind {
    match waited {
        ..SLIGHT => Kind::ComputeBound,
        SLIGHT..MODERATE => Kind::Balanced,
        _ => Kind::DataBound,
    }
}

/// Returns the runs that ended with a verdict, and the number of all runs by access and way of recognition.
fn runs() -> (Vec<MeasuredRun>, BTreeMap<String, usize>) {
    let text = docs("accuracy.csv");
    let mut all = BTreeMap::new();
    let mut runs = vec![];
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [
            number,
            access,
            recognised,
            verdict,
            waited,
            share,
            low,
            high,
            ..,
        ] = fields[..]
        else {
            panic!("not a run: {line}");
        };
        *all.entry(format!("{access}, {recognised}")).or_default() += 1;
        let Some(kind) = kind(verdict) else { continue };
        let figure = |text: &str| text.parse::<f64>().expect("a number");
        let wait = Estimate {
            share: Share(figure(share)),
            low: Share(figure(low)),
            high: Share(figure(high)),
            polls: 1,
            unknown: Share::ZERO,
            unclear: Share::ZERO,
            early: None,
        };
        let tier = if access == "T1" { Tier::T1 } else { Tier::T2 };
        let loader = match recognised {
            "by name" => (LoaderKind::Other, true),
            "by its place" => (LoaderKind::Other, false),
            _ => (LoaderKind::PytorchProcesses, false),
        };
        let chance = side_probability(kind, wait, off(tier));
        runs.push(MeasuredRun {
            number: number.parse().expect("a number"),
            access: access.to_owned(),
            recognised: recognised.to_owned(),
            kind,
            waited: figure(waited),
            wait,
            chance,
            stated: MAX_CONFIDENCE * measured(tier, Some(loader)) * chance,
            right: kind == kind_of(figure(waited)),
        });
    }
    (runs, all)
}

/// Minimum number of runs that can raise a factor.
const ENOUGH: usize = 30;

fn is_held_out(run: &MeasuredRun) -> bool {
    run.number % 3 == 2
}

#[test]
fn the_factors_are_those_that_the_runs_give() {
    let (runs, _) = runs();
    let fitted = |access: &str, recognised: Option<&str>| {
        let same = |run: &&MeasuredRun| {
            !is_held_out(run)
                && run.access == access
                && recognised.is_none_or(|recognised| run.recognised == recognised)
        };
        let runs: Vec<_> = runs.iter().filter(same).collect();
        let right = runs.iter().filter(|run| run.right).count() as f64;
        let chance: f64 = runs.iter().map(|run| run.chance).sum();
        // Counts one more right run and one more wrong run, since few runs show little.
        let factor = (right + 1.0) / (chance + 2.0) / MAX_CONFIDENCE;
        (factor.min(1.0), runs.len())
    };
    for (factor, access, recognised) in [
        (T1, "T1", None),
        (PYTORCH, "T2", Some("PyTorch")),
        (BY_NAME, "T2", Some("by name")),
        (BY_ITS_PLACE, "T2", Some("by its place")),
    ] {
        let (fitted, count) = fitted(access, recognised);
        // Few runs can lower a factor, but not raise it.
        let is_lower = count < ENOUGH && factor < fitted;
        assert!(
            is_lower || (factor - fitted).abs() < 0.005,
            "{access} {recognised:?}: {factor}, but the runs give {fitted:.4}"
        );
    }
}

#[test]
fn in_the_third_that_was_held_out_the_confidence_is_the_frequency() {
    let (runs, _) = runs();
    let mut bands: BTreeMap<u32, Vec<&MeasuredRun>> = BTreeMap::new();
    for run in runs.iter().filter(|run| is_held_out(run)) {
        bands.entry(ten(run)).or_default().push(run);
    }
    for (band, runs) in bands {
        let count = runs.len() as f64;
        let right = runs.iter().filter(|run| run.right).count() as f64 / count;
        let stated = runs.iter().map(|run| run.stated).sum::<f64>() / count;
        // Two standard deviations, but at least five points.
        let chance = 2.0 * (stated * (1.0 - stated) / count).sqrt();
        assert!(
            (right - stated).abs() <= chance.max(0.05),
            "{band}0 %: stated {stated:.2}, right {right:.2} of {count}"
        );
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 9"
)]
fn ten(run: &MeasuredRun) -> u32 {
    (10.0 * run.stated) as u32
}

/// Returns a table of the runs in groups, in the form that docs/accuracy.md has.
fn table(
    title: &str,
    all: &BTreeMap<String, usize>,
    runs: &[MeasuredRun],
    name: impl Fn(&MeasuredRun) -> String,
) -> String {
    let mut groups: BTreeMap<String, Vec<&MeasuredRun>> = BTreeMap::new();
    for name in all.keys() {
        groups.entry(name.clone()).or_default();
    }
    for run in runs {
        groups.entry(name(run)).or_default().push(run);
    }
    let mut lines = vec![
        format!(
            "| {title} | runs | of these silent | stated | right | wait share off, median | 95 % |"
        ),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for (name, runs) in groups {
        let count = runs.len();
        let in_all = all.get(&name).copied().unwrap_or(count);
        let percent = |sum: f64| match count {
            0 => "n/a".to_owned(),
            count => format!("{:.0} %", 100.0 * sum / count as f64),
        };
        let mut off: Vec<f64> = runs
            .iter()
            .map(|run| (run.wait.share.0 - run.waited).abs())
            .collect();
        off.sort_by(f64::total_cmp);
        let at = |part: usize| match off.get(count.saturating_sub(1) * part / 100) {
            Some(off) => format!("{off:.3}"),
            None => "n/a".to_owned(),
        };
        lines.push(format!(
            "| {name} | {in_all} | {} | {} | {} | {} | {} |",
            in_all - count,
            percent(runs.iter().map(|run| run.stated).sum()),
            percent(runs.iter().filter(|run| run.right).count() as f64),
            at(50),
            at(95)
        ));
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_tables_of_the_page_are_those_of_the_runs() {
    let (runs, all) = runs();
    let page = docs("accuracy.md");
    let none = BTreeMap::new();
    for table in [
        table("access, recognised", &all, &runs, |run| {
            format!("{}, {}", run.access, run.recognised)
        }),
        table("stated confidence", &none, &runs, |run| {
            format!("{0}0 to {0}9 %", ten(run))
        }),
        table("verdict", &none, &runs, |run| {
            let kind = serde_json::to_value(run.kind).expect("a word");
            kind.as_str().unwrap_or_default().to_owned()
        }),
    ] {
        assert!(page.contains(&table), "docs/accuracy.md lacks\n\n{table}");
    }
}

fn wait(low: f64, share: f64, high: f64) -> Estimate {
    Estimate {
        share: Share(share),
        low: Share(low),
        high: Share(high),
        polls: 800,
        unknown: Share::ZERO,
        unclear: Share::ZERO,
        early: None,
    }
}

#[test]
fn a_share_at_a_threshold_is_one_of_two_kinds() {
    let chance = |kind, share| side_probability(kind, wait(share, share, share), OFF);
    for kind in [Kind::DataBound, Kind::Balanced] {
        assert!(chance(kind, 0.1) < 0.51, "{kind:?}");
    }
    assert!(chance(Kind::DataBound, 0.15) > 0.99);
    assert!(chance(Kind::ComputeBound, 0.0) > 0.99);
    assert!((0.8..0.9).contains(&chance(Kind::Balanced, 0.06)));
}

#[test]
fn an_interval_counts_on_the_side_of_the_threshold() {
    let chance = |kind, wait| side_probability(kind, wait, OFF);
    assert!(chance(Kind::ComputeBound, wait(0.0, 0.01, 0.4)) < 0.7);
    assert!(chance(Kind::DataBound, wait(0.2, 0.25, 0.9)) > 0.99);
    assert!(chance(Kind::DataBound, wait(0.0, 0.25, 0.3)) < 0.9);
}

#[test]
fn reported_values_have_no_error() {
    let near = wait(0.104, 0.107, 0.11);
    assert!(side_probability(Kind::DataBound, near, OFF) < 0.8);
    assert!(side_probability(Kind::DataBound, near, 0.0) > 0.99);
}

#[test]
fn compute_bound_is_a_guess_where_unclear_time_could_change_it() {
    let probability = |share, unclear| {
        let wait = Estimate {
            unclear: Share(unclear),
            ..wait(share - 0.01, share, share + unclear + 0.01)
        };
        side_probability(Kind::ComputeBound, wait, OFF)
    };
    assert!((probability(0.03, 0.09) - 0.5).abs() < f64::EPSILON);
    // A third of it could.
    assert!((0.55..0.7).contains(&probability(0.01, 0.06)));
    assert!(probability(0.01, 0.01) > 0.7);
}

#[test]
fn waits_that_a_gpu_may_hide_are_less_surely_lost() {
    let probability = |low, high| {
        let stall = Interval {
            share: Share(f64::midpoint(low, high)),
            low: Share(low),
            high: Share(high),
        };
        lost_probability(Kind::DataBound, wait(0.6, 0.63, 0.66), stall)
    };
    assert!((0.75..0.85).contains(&probability(0.0, 0.5)));
    assert!((probability(0.0, 0.2) - 0.5).abs() < f64::EPSILON);
    assert!((probability(0.2, 0.6) - 1.0).abs() < f64::EPSILON);
}
