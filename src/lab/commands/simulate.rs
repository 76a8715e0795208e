//! `pipetop simulate`: as numbers, as JSON, or drawn as it moves.

use std::io::Write;
use std::process::ExitCode;

use crate::error::Hinted;
use crate::lab::animation;
use crate::lab::cli::SimulateArgs;
use crate::lab::experiments::simulate::{Study, json, text};
use crate::options::{Places, Watch};
use crate::setup::{can_draw, config, print};

pub(super) fn run(args: &SimulateArgs, places: &Places) -> Result<ExitCode, Hinted> {
    let settings = args.settings()?;
    let look = Watch {
        theme: args.theme.clone(),
        ascii: args.ascii,
        ..Watch::default()
    };
    let config = config(&look, places)?;
    let mut out = std::io::stdout();
    if args.animate && can_draw() {
        let ended = animation::animate(&settings, args.seed, config);
        return match ended {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Hinted::new(
                format!("cannot use this terminal: {error:#}"),
                "omit --animate to print numbers instead",
            )),
        };
    }
    if args.animate {
        // Nobody reads it: nothing to do about that.
        let _ = writeln!(
            std::io::stderr(),
            "note: standard output is not a terminal: printing numbers instead of an animation"
        );
    }
    let study = Study::of(&settings, args.seed, args.runs(&settings));
    let page = if args.json {
        format!("{:#}\n", json(&study))
    } else {
        text(&study, config.ascii)
    };
    print(&mut out, page.as_bytes())
}
