//! The command line: what can be asked for, and what is refused with one line and one hint.
//!
//! Knows only what was typed; whether a process, a file or a theme exists is for others to find out.

mod demo;
mod experiments;
mod replay;
mod run;
mod simulate;
mod value;
mod workload;

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::error::Hinted;
use crate::verdict::Kind;

pub use demo::Demo;
pub use experiments::{Headspace, Own, Sweep};
pub use replay::Replay;
pub use run::{Run, Words};
pub use simulate::Simulate;
pub use value::{GpuChoice, Target};
pub use workload::{Extent, Inner, InnerWorker, Workers, Workload};

const EXAMPLES: &str =
    "  pipetop demo                  start a training job made for looking at, and watch it
  pipetop                       find the training job and watch it
  pipetop run -- python train.py    start your own training and watch it
  pipetop 48213                 watch this process
  pipetop train.py --once       observe, print one report, exit
  pipetop --once --json --fail-if data-bound    for scripts and CI
  pipetop --record run.rec      watch and record; pipetop replay run.rec shows it again";
const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 error, 2 wrong usage, 3 the verdict is one of --fail-if.";

/// Is my training waiting for data, or is it computing, and what should I change?
///
/// pipetop attaches to a running, unmodified PyTorch training and says so. Where standard output is no
/// terminal it prints one plain line per interval.
#[derive(Debug, Parser)]
#[command(name = "pipetop", version, after_help = format!("{EXIT_CODES}\n\n{EXAMPLES}"))]
#[command(max_term_width = 100)]
pub struct Args {
    /// What to watch: a PID, or a word of a command line. Found by itself when omitted.
    ///
    /// A word that is also the name of a command is taken as the command; `pipetop -- config` watches
    /// the process with `config` in its command line.
    #[arg(value_parser = value::target)]
    pub target: Option<Target>,

    #[command(flatten)]
    pub watch: Watch,

    #[command(flatten)]
    pub places: Places,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How to watch.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Watch {
    /// Observe, print one report and exit
    #[arg(long)]
    pub once: bool,

    /// Print JSON: with --once one document, else one line per interval
    #[arg(long)]
    pub json: bool,

    /// How long to observe, as in `14s` or `2min`
    #[arg(long = "for", value_name = "DURATION", value_parser = value::span)]
    pub span: Option<Duration>,

    /// Time between two readings, as in `1s` or `500ms`
    #[arg(long, value_name = "DURATION", value_parser = value::interval)]
    pub interval: Option<Duration>,

    /// GPUs to show: indices or UUIDs, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::gpu)]
    pub gpu: Vec<GpuChoice>,

    /// Colours, by the name of a theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,

    /// Exit with code 3 when the verdict is one of these
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = value::kinds())]
    pub fail_if: Vec<Kind>,

    /// Write every reading to a new file, for `pipetop replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// From this size on the recording goes on in a new file, and the full one is kept as FILE.1 [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = value::file_size)]
    pub record_size: Option<u64>,

    /// Leave command lines out of the recording
    #[arg(long, requires = "record")]
    pub no_command_lines: bool,
}

/// Where to read from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where to read from")]
pub struct Places {
    /// Configuration file to use in place of the user's own
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// Read processes from here in place of /proc
    #[arg(long, value_name = "DIR", default_value = "/proc", global = true)]
    pub proc_root: PathBuf,

    /// Read devices and control groups from here in place of /sys
    #[arg(long, value_name = "DIR", default_value = "/sys", global = true)]
    pub sys_root: PathBuf,

    /// Load this NVML library in place of the system's
    #[arg(long, value_name = "PATH", global = true)]
    pub nvml_lib: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<Run>),
    Demo(Box<Demo>),
    Sweep(Box<Sweep>),
    Headspace(Box<Headspace>),
    Simulate(Box<Simulate>),
    Replay(Box<Replay>),
    /// The trainer of the built-in job
    #[command(hide = true)]
    BuiltinTrainer(Box<Inner>),
    /// A loader worker of the built-in job
    #[command(hide = true)]
    BuiltinWorker(Box<InnerWorker>),
    /// The process between pipetop and a command that it runs
    #[command(hide = true)]
    BuiltinGuard {
        /// Descriptor of the socket that connects it with pipetop
        #[arg(long)]
        control: i32,
    },
    /// Say what can be seen here, what cannot, why, and the command that would change it
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        shell: Shell,
    },
    /// Print the manual page
    Man,
    /// Print the default configuration file, or say whether yours is right
    Config {
        /// Check this file, or the one that is in use, and print nothing else
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        check: Option<Option<PathBuf>>,
    },
}

/// Why nothing is to be done after parsing.
#[derive(Debug)]
pub enum Stop {
    /// Help or version was asked for: print it and exit with 0.
    Show(String),
    /// What was typed cannot be understood: exit with 2.
    Usage(Hinted),
}

/// Reads a command line, the program's name first.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, Stop> {
    let args = Args::try_parse_from(line).map_err(|error| stop(&error))?;
    if args.command.is_some() && (args.target.is_some() || args.watch != Watch::default()) {
        return Err(Stop::Usage(Hinted::new(
            "a command takes no target and no options for watching before it",
            "put `--` before a target that is named like a command, and a command's options after it",
        )));
    }
    match &args.command {
        Some(Command::Simulate(asked)) => asked.settings().map(drop),
        Some(Command::Run(asked)) => asked.check(),
        Some(Command::Demo(asked)) => asked.settings().map(drop),
        Some(Command::Sweep(asked)) => asked.check(),
        Some(Command::Headspace(asked)) => asked.check(),
        Some(Command::Replay(asked)) => asked.check(),
        _ => Ok(()),
    }
    .map_err(Stop::Usage)?;
    let watch = match &args.command {
        Some(Command::Demo(demo)) => &demo.watch,
        Some(Command::Run(run)) => &run.watch,
        _ => &args.watch,
    };
    if let (Some(span), Some(interval)) = (watch.span, watch.interval)
        && span < interval
    {
        let hint = "observe at least two intervals, as in --for 14s --interval 1s";
        let message = "--for is shorter than --interval";
        return Err(Stop::Usage(Hinted::new(message, hint)));
    }
    Ok(args)
}

/// A completion script.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut public(), "pipetop", &mut script);
    script
}

/// The manual pages in roff, one behind the other: the program's, then each command's.
pub fn manual() -> std::io::Result<Vec<u8>> {
    let mut pages = Vec::new();
    let mut program = public();
    program.build();
    let main = clap_mangen::Man::new(program.clone());
    main.render_title(&mut pages)?;
    main.render_name_section(&mut pages)?;
    main.render_synopsis_section(&mut pages)?;
    main.render_description_section(&mut pages)?;
    main.render_options_section(&mut pages)?;
    main.render_subcommands_section(&mut pages)?;
    // Lines that stay as they are.
    writeln!(
        pages,
        ".SH EXIT STATUS\n{EXIT_CODES}\n.SH EXAMPLES\n.nf\n{EXAMPLES}\n.fi"
    )?;
    for command in program
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        clap_mangen::Man::new(command.clone()).render(&mut pages)?;
    }
    Ok(pages)
}

/// The program without the commands by which the built-in job's processes start each other.
fn public() -> clap::Command {
    let all = Args::command();
    let shown: Vec<_> = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let mut public = clap::Command::new("pipetop")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown);
    if let Some(about) = all.get_about() {
        public = public.about(about.clone());
    }
    if let Some(about) = all.get_long_about() {
        public = public.long_about(about.clone());
    }
    public
}

/// Turns clap's paragraphs into one line and one hint.
fn stop(error: &clap::Error) -> Stop {
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
    // Words that belong to a command, or that need one.
    let option = message.starts_with("unexpected argument '-");
    let command = (text.contains("-- <COMMAND>") && !option).then(|| {
        "a command of your own stands behind the options and `--`, as in `-- python train.py`"
            .to_owned()
    });
    let hint = hint.or(command);
    let hint = hint.unwrap_or_else(|| "pipetop --help lists what can be asked for".to_owned());
    Stop::Usage(Hinted::new(message, hint))
}
