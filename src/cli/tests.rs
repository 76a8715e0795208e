#[cfg(feature = "lab")]
mod lab;

use std::time::Duration;

use super::*;
use crate::config::ThemeName;
use crate::units::Pid;
use crate::verdict::Kind;

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
fn the_command_line_definition_is_valid() {
    Args::command().debug_assert();
}

#[test]
fn the_help_of_a_command_begins_with_a_whole_sentence() {
    for command in Args::command().get_subcommands() {
        let Some(long) = command.get_long_about().map(ToString::to_string) else {
            continue;
        };
        let first = long.lines().next().unwrap_or_default();
        assert!(
            first.ends_with(['.', '?']),
            "{}: {first}",
            command.get_name()
        );
    }
}

#[test]
fn no_arguments_means_find_the_job() {
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
    assert!(refused("99999999999").0.contains("not a valid PID"));
    let empty = parse(["pipetop", ""].map(OsString::from));
    assert!(matches!(empty, Err(Stop::Usage(_))));
}

#[test]
fn the_habits_of_other_tools_are_understood() {
    let pid = Some(Target::Pid(Pid(48213)));
    assert_eq!(typed("-p 48213").unwrap().target, pid);
    assert_eq!(typed("--pid 48213 --once").unwrap().target, pid);
    assert_eq!(
        refused("-p train.py").0,
        "invalid value 'train.py' for '--pid <PID>': not a PID"
    );
    assert!(typed("-p 1 2").is_err());
    for (line, instead) in [
        ("-d 5", "--interval"),
        ("-b", "--once"),
        ("-C", "mono"),
        ("-u root", "PID"),
        ("--user=root", "PID"),
        ("-i 2", "--interval"),
        ("-H", "process tree"),
    ] {
        assert!(refused(line).1.contains(instead), "{line}");
    }
    let span = |text: &str| typed(text).unwrap().watch.span;
    assert_eq!(span("--for 5"), Some(Duration::from_secs(5)));
    assert_eq!(span("--for 2.5"), Some(Duration::from_millis(2500)));
    for span in ["0.1", "1e308", "NaN", "inf", "-1"] {
        let refused = refused(&format!("--for {span}")).0;
        assert!(refused.contains("out of range"), "{refused}");
    }
}

#[test]
fn every_option_is_read() {
    let args = typed(
        "train.py --once --json --for 14s --interval 500ms --gpu 0,GPU-8f2a --theme mono --ascii \
         --fail-if data-bound,stalled --config c.toml --proc-root p --sys-root s --nvml-lib n",
    )
    .unwrap();
    let watch = args.watch;
    assert!(watch.once && watch.json && watch.look.ascii);
    assert_eq!(watch.span, Some(Duration::from_secs(14)));
    assert_eq!(watch.interval, Some(Duration::from_millis(500)));
    assert_eq!(watch.gpu, ["0", "GPU-8f2a"]);
    assert_eq!(watch.look.theme, Some(ThemeName::Mono));
    assert_eq!(watch.fail_if, [Kind::DataBound, Kind::Stalled]);
    let places = args.places;
    assert_eq!(places.config, Some(PathBuf::from("c.toml")));
    assert_eq!(places.proc_root, PathBuf::from("p"));
    assert_eq!(places.sys_root, PathBuf::from("s"));
    assert_eq!(places.nvml_lib, Some(PathBuf::from("n")));
}

#[test]
fn an_address_is_checked_when_it_is_read() {
    for address in ["127.0.0.1:9977", ":9977", "[::1]:0", "localhost:80"] {
        let args = typed(&format!("--web.listen-address {address}")).unwrap();
        assert_eq!(args.watch.web.listen, [address]);
    }
    for address in [
        "9977",
        "nowhere",
        "127.0.0.1:",
        "a:65536",
        "a:-1",
        "[::1",
        "[::1:80",
        "[a]:80",
    ] {
        let (error, hint) = refused(&format!("--web.listen-address {address}"));
        assert!(error.contains("not an address"), "{error}");
        assert!(hint.contains("127.0.0.1:9977"), "{hint}");
    }
    for line in ["--web.telemetry-path /m", "run --web.config.file w -- true"] {
        assert!(refused(line).0.contains("need an address"), "{line}");
    }
    assert!(typed("serve --web.telemetry-path /m").is_ok());
}

#[test]
fn the_address_of_a_prometheus_is_checked_when_it_is_read() {
    for host in [
        "prometheus",
        "p:9090/x",
        "[::1]",
        "[::1]:9090",
        "10.0.0.1:80",
    ] {
        assert!(
            typed(&format!("fleet --prometheus http://{host}")).is_ok(),
            "{host}"
        );
    }
    for host in [":9090", "a:", "a:99999", "[::1", "[a]:80", ""] {
        let (error, _) = refused(&format!("fleet --prometheus http://{host}"));
        assert_eq!(error, "--prometheus needs an address", "{host}");
    }
    let line = ["pipetop", "fleet", "--prometheus", "http://p", "--run", " "];
    match parse(line.map(OsString::from)) {
        Err(Stop::Usage(error)) => assert_eq!(error.message, "--run needs the name of a run"),
        other => panic!("{other:?}"),
    }
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
fn a_path_of_metrics_is_free_and_begins_with_a_slash() {
    let of = |path| refused(&format!("serve --web.telemetry-path {path}"));
    let (error, hint) = of("m");
    assert!(error.contains("not a path"), "{error}");
    assert!(hint.contains("begin it with /"), "{hint}");
    assert!(of("/report").0.contains("serves something else"));
}

#[test]
fn what_a_command_would_ignore_is_refused_and_not_in_its_help() {
    let read = [
        ("replay f", "--config"),
        ("fleet --prometheus http://p", "--config"),
        ("config", "--config"),
        ("doctor", "--proc-root --sys-root --nvml-lib"),
        ("diff a b", ""),
        ("rules", ""),
        ("dashboards", ""),
        ("completions bash", ""),
        ("man", ""),
        ("run -- true", "--config --proc-root --sys-root --nvml-lib"),
        ("serve", "--config --proc-root --sys-root --nvml-lib"),
        #[cfg(feature = "lab")]
        ("simulate", "--config"),
        #[cfg(feature = "lab")]
        ("demo", "--config --proc-root --sys-root --nvml-lib"),
    ];
    for (line, read) in read {
        let command = line.split(' ').next().unwrap();
        let help = match typed(&format!("{command} --help")) {
            Err(Stop::Show(text)) => text,
            other => panic!("{other:?}"),
        };
        for option in ["--config", "--proc-root", "--sys-root", "--nvml-lib"] {
            let is_read = read.contains(option);
            assert_eq!(help.contains(&format!("{option} <")), is_read, "{help}");
            let rest = line.strip_prefix(command).unwrap();
            for line in [
                format!("{option} p {line}"),
                format!("{command} {option} p{rest}"),
            ] {
                if is_read {
                    assert!(typed(&line).is_ok(), "{line}");
                } else {
                    let (error, hint) = refused(&line);
                    assert_eq!(error, format!("{option} cannot be used with `{command}`"));
                    assert!(hint.contains("omit it"), "{hint}");
                }
            }
        }
    }
    for line in ["--speed 3 --once", "--json --speed 3"] {
        let (error, _) = refused(&format!("replay f {line}"));
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[cfg(feature = "lab")]
#[test]
fn what_demo_would_ignore_is_refused() {
    for line in ["--list --json", "--once --remove-dataset"] {
        let (error, _) = refused(&format!("demo {line}"));
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn usage_errors_have_one_line_and_one_hint() {
    let refusals = [
        (
            "--for 14x",
            "'14x' for '--for <DURATION>': not a duration",
            "14s",
        ),
        ("--interval 1ms", "out of range", "between 100ms and 1min"),
        ("--for 8d", "out of range", "between 1s and 7d"),
        (
            "replay f --from 400d",
            "out of range",
            "between 0s and 365d",
        ),
        (
            "--for 5s --interval 10s",
            "shorter than --interval",
            "--for 14s",
        ),
        ("--for 14 s", "`s` is read as the job to watch", "14s"),
        ("--gpu zero", "not a GPU index or UUID", "nvidia-smi -L"),
        ("--fail-if slow", "invalid value 'slow'", "data-bound"),
        ("--onec", "unexpected argument '--onec'", "--once"),
        ("--record f --record-size 9KB", "out of range", "512MiB"),
        ("--record f --record-size 9PB", "not a size", "or TiB"),
        #[cfg(feature = "lab")]
        ("demo --dataset-size 100TiB", "out of range", "at most 1TiB"),
        (
            "--no-command-lines",
            "were not provided: --record",
            "--help",
        ),
        ("replay", "were not provided: <FILE>", "--help"),
        (
            "replay f --from 10s --to 5s",
            "--to must be later than --from",
            "--from 10min",
        ),
        ("replay f --speed 0", "out of range", "such as 10"),
        (
            "--once -1",
            "unexpected argument '-1'",
            "`--once` prints one report",
        ),
        (
            "-1",
            "unexpected argument '-1'",
            "`--once` prints one report",
        ),
        ("-1", "unexpected argument '-1'", "a PID has no sign"),
        ("-48213", "unexpected argument '-4'", "a PID has no sign"),
        ("a 9", "unexpected argument '9'", "--help"),
        (
            "repaly a.rec",
            "unexpected argument 'a.rec'",
            "did you mean `pipetop replay`?",
        ),
        ("help servr", "unknown command 'servr'", "`pipetop serve`?"),
        ("help 9", "unknown command '9'", "see `pipetop --help`"),
        ("help run x", "unknown command 'x'", "see `pipetop --help`"),
        ("--config= x", "a value is required", "see `pipetop --help`"),
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
fn a_negative_number_is_out_of_range_however_it_is_typed() {
    let lines = [
        ("--for", "-5s", "between 1s and 7d"),
        ("--interval", "-1", "between 100ms and 1min"),
        ("serve --interval", "-1s", "between 100ms and 1min"),
        ("replay f --from", "-5min", "between 0s and 365d"),
        ("replay f --speed", "-1", "from 0.01 to 1000"),
        ("diff a b --fail-if-slower", "-1%", "from 0 to 100"),
        #[cfg(feature = "lab")]
        ("demo --workers", "-1", "from 1 to 256"),
        #[cfg(feature = "lab")]
        ("demo --copy-ms", "-0.5", "from 0 to 3600000"),
        #[cfg(feature = "lab")]
        ("sweep --workers", "-1,2", "from 0 to 256"),
        #[cfg(feature = "lab")]
        ("simulate --seed", "-1", "of 0 or more"),
        #[cfg(feature = "lab")]
        ("headspace --rounds", "-3", "from 1 to 100"),
    ];
    for (option, value, hint) in lines {
        for line in [format!("{option} {value}"), format!("{option}={value}")] {
            let (said, hinted) = refused(&line);
            assert!(said.starts_with("invalid value '-"), "{line}: {said}");
            assert!(said.ends_with(": out of range"), "{line}: {said}");
            assert!(hinted.contains(hint), "{line}: {hinted}");
        }
    }
    assert!(refused("-p -1").0.ends_with("not a valid PID"));
    assert!(typed("fleet --prometheus http://p --run -1").is_ok());
    assert!(typed("run -- python train.py --lr -1").is_ok());
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
    for page in [shown("run --help"), page] {
        let words: Vec<&str> = page.split_whitespace().collect();
        let said = "one that never trains is stopped after 1 to 5 minutes";
        assert!(words.join(" ").contains(said), "{page}");
    }
}

#[test]
fn arguments_of_the_launched_command_are_not_parsed() {
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
        words("run A=1 B= -- env -- x"),
        (vec![pair("A", "1"), pair("B", "")], "env -- x".to_owned())
    );
    assert_eq!(
        words("run --stdin A=1 B= env C=3"),
        (vec![pair("A", "1"), pair("B", "")], "env C=3".to_owned())
    );
    let asked = run("run --once --for 20s --stop --no-hook --log out x --stop");
    assert!(asked.watch.once && asked.stop && asked.no_hook && !asked.stdin);
    assert_eq!(asked.log, Some(PathBuf::from("out")));
    assert_eq!(refused("run --stop x").0, "--stop needs --once or --for");
    assert_eq!(refused("run A=1").0, "no command given");
    assert_eq!(
        refused("run").1,
        "put your command after `--`, as in `-- python train.py`"
    );
    assert_eq!(
        refused("run --for 1s --interval 2s x").0,
        "--for is shorter than --interval"
    );
}

#[test]
fn a_dash_is_no_file() {
    for line in [
        "--record -",
        "rules --log-file -",
        "replay -",
        "diff a -",
        "run --log - -- true",
        "serve --textfile -",
        "config --check -",
    ] {
        let (error, hint) = refused(line);
        assert!(error.ends_with(": `-` names no file"), "{line}: {error}");
        assert!(hint.contains("`./-`"), "{line}: {hint}");
    }
    assert!(typed("--record ./-").is_ok());
    assert!(typed("run -- cat -").is_ok());
}

#[test]
fn a_file_to_write_is_not_named_like_a_folder() {
    for line in [
        "--record d/",
        "rules --log-file d/",
        "run --log d/ -- true",
        "serve --textfile d/",
    ] {
        let (error, hint) = refused(line);
        assert!(error.ends_with(": `d/` names a folder"), "{line}: {error}");
        assert!(hint.contains("name of a file"), "{line}: {hint}");
    }
    assert!(typed("--proc-root p/ --record d/f").is_ok());
}

#[test]
fn an_address_of_prometheus_has_no_password() {
    for user in ["u:p", "u"] {
        let (error, hint) = refused(&format!("fleet --prometheus http://{user}@h:9090"));
        let said = "--prometheus takes an address without a user or password";
        assert_eq!(error, said);
        assert!(hint.contains("PIPETOP_PROMETHEUS_BASIC"), "{hint}");
    }
}

#[test]
fn an_address_of_prometheus_has_no_query() {
    for rest in ["/?tenant=a", "?tenant=a", "/#a"] {
        let (error, hint) = refused(&format!("fleet --prometheus http://h:9090{rest}"));
        assert_eq!(error, "--prometheus takes an address without `?` and `#`");
        assert!(hint.contains("http://prometheus:9090"), "{hint}");
    }
}
