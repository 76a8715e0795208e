use super::*;
use crate::lab::cli::CommandArgs;
use crate::lab::experiments::simulate::SimulationSettings;

#[test]
fn a_simulation_has_its_own_options() {
    let simulation = |line: &str| match typed(line).unwrap().command {
        Some(Command::Lab(Lab::Simulate(asked))) => *asked,
        other => panic!("{line}: {other:?}"),
    };
    let asked = simulation("simulate");
    let ms = Duration::from_millis;
    let expected = SimulationSettings {
        workers: 7,
        prefetch_factor: 2,
        load: ms(2000),
        load_jitter: 0.0,
        step: ms(100),
        default_order: false,
        in_order: true,
        clock: None,
        desync: false,
        span: Duration::from_secs(30),
    };
    assert_eq!(*asked.settings().unwrap(), expected);
    assert_eq!(SimulationSettings::default(), expected);
    assert_eq!(asked.runs(), 1);
    let asked = simulation(
        "simulate --workers 4 --load-ms 0.5 --step-ms 20 --load-jitter 0.05 --prefetch-factor 3 \
         --any-order --clock-ms 10 --desync --for 2min --seed 5 --json --ascii",
    );
    let expected = SimulationSettings {
        workers: 4,
        prefetch_factor: 3,
        load: Duration::from_micros(500),
        load_jitter: 0.05,
        step: ms(20),
        default_order: false,
        in_order: false,
        clock: Some(ms(10)),
        desync: true,
        span: Duration::from_mins(2),
    };
    assert_eq!(*asked.settings().unwrap(), expected);
    assert_eq!((asked.seed, asked.runs()), (5, 10));
    assert!(asked.json && asked.look.ascii);
    assert!(typed("simulate --for 1s --json").is_ok());
    assert!(refused("--json simulate").0.contains("takes no target"));
    let refusals = [
        ("--workers 0", "workers", "from 1 to 1024"),
        ("--load-ms -5", "out of range", "milliseconds"),
        ("--load-ms nan", "not a number", "milliseconds"),
        ("--step-ms 1e99", "out of range", "milliseconds"),
        ("--step-ms 1e12", "out of range", "milliseconds"),
        ("--load-jitter -1", "out of range", "0.05"),
        ("--load-jitter inf", "not a number", "0.05"),
        ("--prefetch-factor 0", "prefetch-factor", "from 1 to 100"),
        (
            "--clock-ms 100 --for 50ms",
            "must be shorter than --for",
            "30s",
        ),
        ("--clock-ms 0", "must not be 0", "exact"),
        ("--load-ms 0 --step-ms 0", "too many batches", "longer"),
        (
            "--step-ms 0 --load-ms 1 --for 1h --runs 50",
            "too many",
            "--runs",
        ),
        ("--for 0s", "out of range", "between"),
        (
            "--seed 99999999999999999999",
            "out of range",
            "of 0 or more",
        ),
        ("--runs 0", "out of range", "from 1 to 1000"),
        ("--in-order --any-order", "cannot be used with", "--help"),
        ("--json --animate", "cannot be used with", "--help"),
    ];
    for (line, message, hint) in refusals {
        let (said, hinted) = refused(&format!("simulate {line}"));
        assert!(said.contains(message), "{line}: {said}");
        assert!(hinted.contains(hint), "{line}: {hinted}");
        assert!(!said.contains('\n') && !hinted.contains('\n'));
    }
}

#[test]
fn each_run_of_a_simulation_has_a_seed() {
    let last = "simulate --load-jitter 1 --seed 18446744073709551615";
    assert!(typed(&format!("{last} --runs 1")).is_ok());
    assert!(typed(&format!("{last} --animate")).is_ok());
    let (error, hint) = refused(last);
    assert_eq!(error, "--seed is too large for the number of runs");
    assert!(hint.contains("--runs 1"), "{hint}");
}

#[test]
fn a_simulation_refuses_what_it_would_ignore() {
    let (error, _) = refused("simulate --animate --runs 3");
    assert!(error.contains("cannot be used with"), "{error}");
    let (error, hint) = refused("simulate --theme mono");
    assert_eq!(error, "--theme needs --animate");
    assert!(hint.contains("omit --theme"), "{hint}");
    assert!(typed("simulate --animate --theme mono").is_ok());
}

#[test]
fn an_experiment_takes_a_command_or_the_built_in_job() {
    let words = |own: &CommandArgs| own.words().map(|words| words.parts().1);
    let Some(Command::Lab(Lab::Sweep(sweep))) =
        typed("sweep --workers 0,2 --prefetch-factors 2,4 --pin-memory --steps 9 --log l -- A=1 x --for 2").unwrap().command
    else {
        panic!("no sweep");
    };
    assert_eq!(words(&sweep.own).unwrap(), ["x", "--for", "2"]);
    assert_eq!(
        (&sweep.counts[..], &sweep.prefetch_factors[..]),
        (&[0, 2][..], &[2, 4][..])
    );
    assert!(sweep.compares_memory() && sweep.bound.steps == Some(9));
    assert_eq!(sweep.own.log, Some(PathBuf::from("l")));
    let Some(Command::Lab(Lab::Headspace(headspace))) =
        typed("headspace --patience 2min").unwrap().command
    else {
        panic!("no headspace");
    };
    assert_eq!(words(&headspace.own), None);
    assert_eq!(headspace.own.patience, Duration::from_mins(2));
    let refusals = [
        (
            "sweep --workers 1,0",
            "at least one worker",
            "-- python train.py",
        ),
        (
            "sweep --load-ms 5 -- x",
            "options of the built-in job",
            "sweep --help",
        ),
        (
            "sweep --no-pin-memory -- x",
            "options of the built-in job",
            "sweep --help",
        ),
        (
            "headspace --workers 4 -- x",
            "options of the built-in job",
            "headspace --help",
        ),
        (
            "headspace -- A=1",
            "no command given",
            "pipetop headspace --",
        ),
        (
            "headspace x",
            "unexpected argument 'x'",
            "put your command after",
        ),
        (
            "sweep --steps 5",
            "were not provided",
            "put your command after",
        ),
        (
            "sweep --json --csv",
            "cannot be used with",
            "see `pipetop sweep --help`",
        ),
        ("sweep --steps 1 -- x", "out of range", "from 2 to"),
        (
            "demo --calibrate --record f",
            "cannot be used with",
            "--help",
        ),
    ];
    for (line, message, hint) in refusals {
        let (said, hinted) = refused(line);
        assert!(said.contains(message), "{line}: {said}");
        assert!(hinted.contains(hint), "{line}: {hinted}");
    }
}
