//! `pipetop simulate`: prints numbers or JSON, or replays the run on the screen.

use std::process::ExitCode;

use crate::app;
use crate::error::{Explain as _, Hinted, write_error};
use crate::lab::cli::SimulateArgs;
use crate::lab::experiments::simulate::{Study, json, samples, text};
use crate::options::{PathArgs, WatchArgs};
use crate::setup::{can_draw, config, print};

pub(super) fn run(args: &SimulateArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let settings = args.settings()?;
    let look = WatchArgs {
        look: args.look,
        ..WatchArgs::default()
    };
    let config = config(&look, places)?;
    if args.animate && can_draw() {
        let ended = app::replay_samples(samples(settings, args.seed), config);
        return ended.map(|_| ExitCode::SUCCESS).explain(
            "cannot use this terminal",
            "omit --animate to print numbers instead",
        );
    }
    if args.animate {
        write_error(
            "note: standard output is not a terminal: printing numbers instead of an animation",
        );
    }
    let study = Study::of(settings, args.seed, args.runs());
    let page = if args.json {
        format!("{:#}\n", json(&study))
    } else {
        text(&study, config.ascii)
    };
    print(page)
}
