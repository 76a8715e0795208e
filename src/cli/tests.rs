use super::*;
use crate::experiment::simulate::{Order, Settings};
use crate::units::Pid;

fn typed(line: &str) -> Result<Args, Stop> {
    parse(
        std::iter::once("pipetop")
            .chain(line.split_whitespace())
            .map(OsString::from),
    )
}

fn refused(line: &str) -> (String, String) {
    match typed(line) {
        Err(Stop::Usage(error)) => (error.message, error.hint),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn nothing_typed_means_find_the_job() {
    let args = typed("").unwrap();
    assert_eq!(args.target, None);
    assert!(args.command.is_none() && !args.watch.once && args.watch.span.is_none());
    assert_eq!(args.places.proc_root, PathBuf::from("/proc"));
}

#[test]
fn a_target_is_a_number_or_a_word() {
    assert_eq!(
        typed("48213").unwrap().target,
        Some(Target::Pid(Pid(48213)))
    );
    let word = |text: &str| Some(Target::Word(text.to_owned()));
    assert_eq!(typed("train.py").unwrap().target, word("train.py"));
    assert_eq!(typed("-- config").unwrap().target, word("config"));
    assert!(typed("config").unwrap().command.is_some());
    assert!(refused("0").1.contains("pgrep"));
    assert!(
        refused("99999999999")
            .0
            .contains("no process has this number")
    );
    let empty = parse(["pipetop", ""].map(OsString::from));
    assert!(matches!(empty, Err(Stop::Usage(_))));
}

#[test]
fn every_option_is_read() {
    let args = typed(
        "train.py --once --json --for 14s --interval 500ms --gpu 0,GPU-8f2a --theme mono --ascii \
         --fail-if data-bound,stalled --config c.toml --proc-root p --sys-root s --nvml-lib n",
    )
    .unwrap();
    let watch = args.watch;
    assert!(watch.once && watch.json && watch.ascii);
    assert_eq!(watch.span, Some(Duration::from_secs(14)));
    assert_eq!(watch.interval, Some(Duration::from_millis(500)));
    let uuid = GpuChoice::Uuid("GPU-8f2a".to_owned());
    assert_eq!(watch.gpu, [GpuChoice::Index(0), uuid]);
    assert_eq!(watch.theme.as_deref(), Some("mono"));
    assert_eq!(watch.fail_if, [Kind::DataBound, Kind::Stalled]);
    let places = args.places;
    assert_eq!(places.config, Some(PathBuf::from("c.toml")));
    assert_eq!(places.proc_root, PathBuf::from("p"));
    assert_eq!(places.sys_root, PathBuf::from("s"));
    assert_eq!(places.nvml_lib, Some(PathBuf::from("n")));
}

#[test]
fn every_kind_can_fail() {
    let kinds = [
        Kind::DataBound,
        Kind::Balanced,
        Kind::ComputeBound,
        Kind::HostBound,
        Kind::CommunicationBound,
        Kind::WarmingUp,
        Kind::Stalled,
        Kind::Unknown,
    ];
    for kind in kinds {
        let name = serde_json::to_value(kind).unwrap();
        let args = typed(&format!("--fail-if {}", name.as_str().unwrap())).unwrap();
        assert_eq!(args.watch.fail_if, [kind]);
    }
}

#[test]
fn commands_take_their_own_options_and_the_places() {
    let args = typed("doctor --json --proc-root p").unwrap();
    assert!(matches!(args.command, Some(Command::Doctor { json: true })));
    assert_eq!(args.places.proc_root, PathBuf::from("p"));
    let args = typed("completions bash").unwrap();
    assert!(matches!(
        args.command,
        Some(Command::Completions { shell: Shell::Bash })
    ));
    assert!(matches!(typed("man").unwrap().command, Some(Command::Man)));
    for line in ["--once doctor", "train.py doctor", "--json doctor"] {
        assert!(refused(line).0.contains("takes no target"), "{line}");
    }
    let args = typed("--proc-root p doctor").unwrap();
    assert_eq!(args.places.proc_root, PathBuf::from("p"));
    refused("completions");
}

#[test]
fn a_simulation_has_its_own_options() {
    let simulation = |line: &str| match typed(line).unwrap().command {
        Some(Command::Simulate(asked)) => *asked,
        other => panic!("{line}: {other:?}"),
    };
    let asked = simulation("simulate");
    let settings = asked.settings().unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!(asked.runs(&settings), 1);
    let asked = simulation(
        "simulate --workers 4 --load-ms 0.5 --step-ms 20 --load-jitter 0.05 --prefetch-factor 3 \
         --any-order --clock-ms 10 --desync --for 2min --seed 5 --json --ascii --theme mono",
    );
    let ms = Duration::from_millis;
    let expected = Settings {
        workers: 4,
        prefetch_factor: 3,
        load: Duration::from_micros(500),
        load_jitter: 0.05,
        step: ms(20),
        order: Order::AnyOrder,
        clock: Some(ms(10)),
        desync: true,
        span: Duration::from_mins(2),
    };
    assert_eq!(asked.settings().unwrap(), expected);
    assert_eq!((asked.seed, asked.runs(&expected)), (5, 10));
    assert!(asked.json && asked.ascii && asked.theme.as_deref() == Some("mono"));
    assert!(typed("simulate --for 1s --json").is_ok());
    assert!(refused("--json simulate").0.contains("takes no target"));
    let refusals = [
        ("--workers 0", "workers", "between 1 and 1024"),
        ("--workers -1", "'-1'", "--help"),
        ("--load-ms -5", "no such time", "milliseconds"),
        ("--load-ms nan", "no such time", "milliseconds"),
        ("--step-ms 1e99", "no such time", "milliseconds"),
        ("--step-ms 1e12", "too long", "at most"),
        ("--load-jitter -1", "cannot vary so", "0.05"),
        ("--load-jitter inf", "cannot vary so", "0.05"),
        ("--prefetch-factor 0", "prefetch factor", "PyTorch"),
        ("--clock-ms 100 --for 50ms", "not shorter than --for", "30s"),
        ("--clock-ms 0", "needs ticks", "exact"),
        ("--load-ms 0 --step-ms 0", "too many batches", "longer"),
        (
            "--step-ms 0 --load-ms 1 --for 1h --runs 50",
            "too many",
            "--runs",
        ),
        ("--for 0s", "out of range", "between"),
        ("--runs 0", "0 is not in", "--help"),
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
fn an_experiment_takes_a_command_or_the_built_in_job() {
    let words = |own: &Own| own.words().map(|words| words.parts().1);
    let Some(Command::Sweep(sweep)) =
        typed("sweep --workers 0,2 --prefetch-factors 2,4 --pin-memory --steps 9 --log l -- A=1 x --for 2").unwrap().command
    else {
        panic!("no sweep");
    };
    assert_eq!(words(&sweep.own).unwrap(), ["x", "--for", "2"]);
    assert_eq!(
        (&sweep.counts[..], &sweep.prefetch_factors[..]),
        (&[0, 2][..], &[2, 4][..])
    );
    assert!(sweep.compares_memory() && sweep.steps == Some(9));
    assert_eq!(sweep.own.log, Some(PathBuf::from("l")));
    let Some(Command::Headspace(headspace)) = typed("headspace --patience 2min").unwrap().command
    else {
        panic!("no headspace");
    };
    assert_eq!(words(&headspace.own), None);
    assert_eq!(headspace.own.patience, Duration::from_mins(2));
    let refusals = [
        (
            "sweep --workers 1,0",
            "one worker at least",
            "-- python train.py",
        ),
        (
            "sweep --load-ms 5 -- x",
            "for the built-in job",
            "sweep --help",
        ),
        (
            "sweep --no-pin-memory -- x",
            "for the built-in job",
            "sweep --help",
        ),
        (
            "headspace --workers 4 -- x",
            "for the built-in job",
            "headspace --help",
        ),
        (
            "headspace -- A=1",
            "no command to run",
            "pipetop headspace --",
        ),
        (
            "headspace x",
            "unexpected argument 'x'",
            "behind the options",
        ),
        ("sweep --steps 5", "were not provided", "behind the options"),
        ("sweep --steps 1 -- x", "1 is not in", "--help"),
    ];
    for (line, message, hint) in refusals {
        let (said, hinted) = refused(line);
        assert!(said.contains(message), "{line}: {said}");
        assert!(hinted.contains(hint), "{line}: {hinted}");
    }
}

#[test]
fn what_is_refused_has_one_line_and_one_hint() {
    let refusals = [
        ("--for 14", "time unit needed", "14s"),
        ("--interval 1ms", "out of range", "between 100ms and 1m"),
        (
            "--for 5s --interval 10s",
            "shorter than --interval",
            "--for 14s",
        ),
        ("--gpu zero", "neither an index nor a UUID", "nvidia-smi -L"),
        ("--fail-if slow", "invalid value 'slow'", "data-bound"),
        ("--onec", "unexpected argument '--onec'", "--once"),
        ("--record f --record-size 9KB", "out of range", "512MiB"),
        (
            "--no-command-lines",
            "were not provided: --record",
            "--help",
        ),
        ("replay", "were not provided: <FILE>", "--help"),
        (
            "replay f --from 10s --to 5s",
            "--to is not behind --from",
            "--from 10min",
        ),
        ("replay f --speed 0", "out of range", "as in 10"),
        (
            "demo --calibrate --record f",
            "cannot be used with",
            "--help",
        ),
        ("a b", "unexpected argument 'b'", "--help"),
        ("--for", "a value is required", "--help"),
    ];
    for (line, message, hint) in refusals {
        let (said, hinted) = refused(line);
        assert!(said.contains(message), "{line}: {said}");
        assert!(hinted.contains(hint), "{line}: {hinted}");
        assert!(!said.contains('\n') && !hinted.contains('\n'));
        assert!(!said.starts_with("error"));
    }
}

#[test]
fn help_version_completions_and_manual_are_there() {
    let shown = |line| match typed(line) {
        Err(Stop::Show(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(shown("--help").contains("--fail-if"));
    assert_eq!(
        shown("--version").trim(),
        concat!("pipetop ", env!("CARGO_PKG_VERSION"))
    );
    let script = String::from_utf8(completions(Shell::Bash)).unwrap();
    assert!(script.contains("--fail-if") && script.contains("data-bound"));
    let page = String::from_utf8(manual().unwrap()).unwrap();
    assert!(page.contains(".TH pipetop"));
}

#[test]
fn the_words_of_a_command_are_its_own() {
    let run = |line: &str| match typed(line).unwrap().command {
        Some(Command::Run(run)) => run,
        other => panic!("{line}: {other:?}"),
    };
    let words = |line: &str| {
        let (environment, command) = run(line).words.parts();
        let text = |word: OsString| word.into_string().unwrap();
        let environment = environment.into_iter();
        let environment: Vec<_> = environment
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let command: Vec<_> = command.into_iter().map(text).collect();
        (environment, command.join(" "))
    };
    for (line, command) in [
        (
            "run python train.py --once --json",
            "python train.py --once --json",
        ),
        ("run -- --odd -x", "--odd -x"),
        ("run --once -- sh -c -- x", "sh -c -- x"),
        ("run python A=1", "python A=1"),
        ("run =1", "=1"),
    ] {
        assert_eq!(words(line), (vec![], command.to_owned()), "{line}");
    }
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        words("run --stdin A=1 B= env C=3"),
        (vec![pair("A", "1"), pair("B", "")], "env C=3".to_owned())
    );
    let asked = run("run --once --for 20s --stop --no-hook --log out x --stop");
    assert!(asked.watch.once && asked.stop && asked.no_hook && !asked.stdin);
    assert_eq!(asked.log, Some(PathBuf::from("out")));
    assert_eq!(refused("run --stop x").0, "--stop needs to know when");
    assert_eq!(refused("run A=1").0, "there is no command to run");
    assert_eq!(
        refused("run --for 1s --interval 2s x").0,
        "--for is shorter than --interval"
    );
}
