//! The command line: commands, options, and usage errors with one line and one hint.
//!
//! Parses the arguments only; does not check whether a process or a file exists.

mod commands;
mod files;
mod ignored;

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::error::Hinted;
use crate::job::Target;
#[cfg(feature = "lab")]
use crate::lab::cli::Lab;
use crate::options::{PathArgs, WatchArgs, Web, value};
use crate::plain_toml::similar;

pub(crate) use commands::{DiffArgs, FleetArgs, ReplayArgs, RunArgs, ServeArgs};
pub(crate) use files::{NamedFile, WRITTEN};
use ignored::built;

/// Example of a command that is not in every build; empty in the others.
const DEMO: &str = if cfg!(feature = "lab") {
    "  pipetop demo                      start a demo training job and watch it\n"
} else {
    ""
};
const EXAMPLES: &str = "  pipetop                           find the training job and watch it
  pipetop 48213                     watch this process
  pipetop run -- python train.py    start a training script and watch it
  pipetop train.py --once           print one report and exit
  pipetop --once --json --fail-if data-bound
                                    for scripts and CI
  pipetop --record run.rec          record while watching
  pipetop replay run.rec            play the recording back
  pipetop diff old.rec new.rec      see whether a change made it faster
  pipetop serve --all               serve metrics of all jobs to Prometheus
  pipetop fleet --prometheus URL    show what Prometheus knows of all runs";
const EXIT_CODES: &str =
    "Exit codes: 0 success, 1 error, 2 usage error, 3 the verdict matches --fail-if.";

/// See whether your PyTorch training is waiting for data or computing, and what to change.
///
/// pipetop attaches to a running job: no code changes, no restart. If standard output is not a
/// terminal, it prints one line per interval.
#[derive(Debug, Parser)]
#[command(name = "pipetop", version, after_help = format!("{EXIT_CODES}\n\nExamples:\n{DEMO}{EXAMPLES}"))]
#[command(max_term_width = 100)]
pub(crate) struct Args {
    /// The job to watch: a PID, or text from its command line. Omit it to find the job automatically.
    ///
    /// If the text is also the name of a command, put `--` before it: `pipetop -- config` watches
    /// the process with `config` in its command line.
    #[arg(value_parser = value::target)]
    pub target: Option<Target>,

    /// The process to watch; the same as TARGET
    #[arg(short, long, value_name = "PID", value_parser = value::pid, conflicts_with = "target")]
    pid: Option<Target>,

    #[command(flatten)]
    pub watch: WatchArgs,

    #[command(flatten)]
    pub places: PathArgs,

    /// Append a log to this file; `PIPETOP_LOG` sets the level [default: info]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Log")]
    pub log_file: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Option<Command>,

    /// All paths above, and those of the command.
    #[arg(skip)]
    pub files: Vec<NamedFile>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(Lab),
    Replay(Box<ReplayArgs>),
    Diff(DiffArgs),
    Serve(ServeArgs),
    Fleet(FleetArgs),
    /// The process between pipetop and the command it runs
    #[command(hide = true)]
    BuiltinSupervisor {
        /// Descriptor of the socket that connects it to pipetop
        #[arg(long)]
        control: i32,
    },
    /// Check what pipetop can see on this machine, and how to see more
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print recording rules and alerts for Prometheus
    Rules,
    /// Print a dashboard for Grafana
    Dashboards,
    /// Print a shell completion script
    Completions {
        shell: Shell,
    },
    /// Print the man page
    Man,
    /// Print the default configuration file, or check yours
    Config {
        /// Check this file, or the one in use, instead of printing the defaults
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        #[expect(
            clippy::option_option,
            reason = "so clap reads an option whose value may be omitted"
        )]
        check: Option<Option<PathBuf>>,
    },
}

impl Command {
    /// Whether it is a command that pipetop uses to start its own processes.
    pub(crate) fn is_hidden(&self) -> bool {
        match self {
            #[cfg(feature = "lab")]
            Self::Lab(lab) => lab.is_hidden(),
            Self::BuiltinSupervisor { .. } => true,
            _ => false,
        }
    }
}

/// Why the program ends after parsing.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Help or version: print it and exit with 0.
    Show(String),
    /// A usage error: exit with 2.
    Usage(Hinted),
}

/// Parses a command line, the program's name first.
pub(crate) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, Stop> {
    let line: Vec<OsString> = line.into_iter().collect();
    let mut args = parsed(&line).map_err(|error| stop(&error, &line))?;
    args.target = args.target.or(args.pid.take());
    files::check(&args.files).map_err(Stop::Usage)?;
    if args.command.is_some() && (args.target.is_some() || args.watch != WatchArgs::default()) {
        return Err(Stop::Usage(Hinted::new(
            "a command takes no target, and its options come after it",
            "to watch a process named like a command, put `--` first",
        )));
    }
    if let Some(Target::Word(unit)) = &args.target
        && (args.watch.span.is_some() || args.watch.interval.is_some())
        && value::is_unit(unit)
    {
        return Err(Stop::Usage(Hinted::new(
            format!("`{unit}` is read as the job to watch"),
            "write a duration without a space, as in --for 14s",
        )));
    }
    match &args.command {
        Some(Command::Run(args)) => args.check(),
        #[cfg(feature = "lab")]
        Some(Command::Lab(args)) => args.check(),
        Some(Command::Replay(args)) => args.check(),
        Some(Command::Fleet(args)) => args.check(),
        _ => Ok(()),
    }
    .map_err(Stop::Usage)?;
    let watch = match &args.command {
        Some(Command::Run(run)) => &run.watch,
        #[cfg(feature = "lab")]
        Some(Command::Lab(Lab::Demo(demo))) => &demo.watch,
        _ => &args.watch,
    };
    if watch.web.listen.is_empty() && watch.web != Web::default() {
        return Err(Stop::Usage(Hinted::new(
            "--web.telemetry-path and --web.config.file need an address to listen on",
            "add one, as in --web.listen-address 127.0.0.1:9977",
        )));
    }
    if let (Some(span), Some(interval)) = (watch.span, watch.interval)
        && span < interval
    {
        let hint = "watch for at least two intervals, as in --for 14s --interval 1s";
        let message = "--for is shorter than --interval";
        return Err(Stop::Usage(Hinted::new(message, hint)));
    }
    Ok(args)
}

/// Returns a completion script.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut built(public()), "pipetop", &mut script);
    script
}

/// Returns the man pages in roff: the program's, then each command's.
pub(crate) fn manual() -> std::io::Result<Vec<u8>> {
    let mut pages = Vec::new();
    let program = built(public());
    let main = clap_mangen::Man::new(program.clone());
    main.render_title(&mut pages)?;
    main.render_name_section(&mut pages)?;
    main.render_synopsis_section(&mut pages)?;
    main.render_description_section(&mut pages)?;
    main.render_options_section(&mut pages)?;
    main.render_subcommands_section(&mut pages)?;
    // `.nf` keeps the line breaks of the examples.
    writeln!(
        pages,
        ".SH EXIT STATUS\n{EXIT_CODES}\n.SH EXAMPLES\n.nf\n{DEMO}{EXAMPLES}\n.fi"
    )?;
    for command in program
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        clap_mangen::Man::new(command.clone()).render(&mut pages)?;
    }
    Ok(pages)
}

/// Returns the program without its hidden commands.
fn public() -> clap::Command {
    let all = Args::command();
    let shown: Vec<_> = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let text =
        |text: Option<&StyledStr>| text.cloned().map_or(Resettable::Reset, Resettable::Value);
    clap::Command::new("pipetop")
        .version(env!("CARGO_PKG_VERSION"))
        .about(text(all.get_about()))
        .long_about(text(all.get_long_about()))
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}

/// Turns clap's paragraphs into one line and one hint.
fn stop(error: &clap::Error, line: &[OsString]) -> Stop {
    let text = error.render().to_string();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return Stop::Show(text);
    }
    let mut lines = text.lines().map(str::trim);
    let message = lines.next().unwrap_or_default();
    let mut message = message
        .strip_prefix("error: ")
        .unwrap_or(message)
        .to_owned();
    if message.ends_with(':') {
        for word in lines.by_ref().take_while(|line| !line.is_empty()) {
            message.push(' ');
            message.push_str(word);
        }
    }
    let ours = error
        .source()
        .and_then(|source| source.downcast_ref::<Hinted>());
    let hint = ours.map(|ours| ours.hint.clone()).or_else(|| {
        lines.find_map(|line| {
            let values = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'));
            line.strip_prefix("tip: ")
                .filter(|tip| !tip.starts_with("to pass"))
                .or(values)
                .map(str::to_owned)
        })
    });
    // An unexpected argument may be a command that belongs after `--`.
    let option = message.starts_with("unexpected argument '-");
    let conflict = message.contains("cannot be used with");
    let help = error.kind() == ErrorKind::InvalidSubcommand;
    let command = (text.contains("<COMMAND>") && !option && !conflict && !help)
        .then(|| "put your command after `--`, as in `-- python train.py`".to_owned());
    let name = command_of(line);
    let habit = habit(&message).filter(|_| name == "pipetop");
    let see = format!("see `{name} --help`");
    let hint = hint.or(command).or(habit).or_else(|| meant(line));
    let message = message.replace("unrecognized subcommand", "unknown command");
    Stop::Usage(Hinted::new(message, hint.unwrap_or(see)))
}

/// Returns pipetop's equivalent if the unexpected argument is an option of top, htop or nvitop.
fn habit(message: &str) -> Option<String> {
    let option = message.strip_prefix("unexpected argument '")?;
    let known = match option.split('\'').next()? {
        "-d" => "`--interval 2s` sets the time between samples",
        "-n" | "-b" => "`--once` prints one report and exits",
        "-1" => "`--once` prints one report and exits; a PID has no sign",
        "-s" => "on the screen, `o` sorts by the next column",
        "-u" | "--user" => "name a job by its PID or a word of its command line",
        "-i" => "`--interval 2s` sets the time between samples, `--gpu 0` shows one GPU",
        "-t" | "-H" => "on the screen, `t` shows the process tree",
        "-C" => "`--theme mono` uses no colours",
        number if number.starts_with('-') && number.ends_with(char::is_numeric) => {
            "a PID has no sign"
        }
        _ => return None,
    };
    Some(known.to_owned())
}

/// Parses a command line that may have a negative number as the value of an option, such as `--for -5s`. Clap takes it
/// for an option of its own unless it is joined to the option: only then does the option say what is wrong with it.
fn parsed(line: &[OsString]) -> Result<Args, clap::Error> {
    let error = match read(line) {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidArg) else {
        return Err(error);
    };
    let negative = value.starts_with('-') && value.ends_with(char::is_numeric);
    let of = |pair: &[OsString]| {
        let [option, word] = [0, 1].map(|place| pair[place].to_string_lossy());
        option.starts_with('-') && word.starts_with(value)
    };
    let Some(place) = line.windows(2).position(of).filter(|_| negative) else {
        return Err(error);
    };
    let mut joined = line[place].clone();
    joined.push("=");
    joined.push(&line[place + 1]);
    let mut line = line.to_vec();
    line.splice(place..place + 2, [joined]);
    match read(&line) {
        Err(other) if other.kind() != ErrorKind::ValueValidation => Err(error),
        parsed => parsed,
    }
}

fn read(line: &[OsString]) -> Result<Args, clap::Error> {
    let mut program = built(Args::command());
    let mut matches = program.try_get_matches_from_mut(line)?;
    let files = files::named(&program, &matches);
    ignored::check(&mut program, &matches, &files)?;
    let args = Args::from_arg_matches_mut(&mut matches);
    let args = args.map_err(|error| error.format(&mut program))?;
    Ok(Args { files, ..args })
}

/// Returns the command that is probably meant by the first word of a line, or by the word after `help`.
fn meant(line: &[OsString]) -> Option<String> {
    let mut words = line.iter().skip(1).filter(|word| *word != "help");
    let word = words.next()?.to_str()?;
    if word.starts_with('-') {
        return None;
    }
    let known = public();
    let known: Vec<&str> = known
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    let name = similar(word, &known).filter(|name| *name != word)?;
    Some(format!("did you mean `pipetop {name}`?"))
}

/// Returns `pipetop replay` for a line that begins so, and `pipetop` for one without a command.
fn command_of(line: &[OsString]) -> String {
    let word = line.get(1).and_then(|word| word.to_str());
    let known = word.filter(|word| Args::command().find_subcommand(word).is_some());
    known.map_or_else(|| "pipetop".to_owned(), |word| format!("pipetop {word}"))
}
