//! `pipetop simulate`: as numbers, as JSON, or drawn as it moves.

use std::io::Write;
use std::process::ExitCode;

use super::{can_draw, config, print};
use crate::app;
use crate::cli::{Places, Simulate, Watch};
use crate::error::Hinted;
use crate::experiment::simulate::{Study, json, text};

pub(super) fn run(asked: &Simulate, places: &Places) -> Result<ExitCode, Hinted> {
    let settings = asked.settings()?;
    let look = Watch {
        theme: asked.theme.clone(),
        ascii: asked.ascii,
        ..Watch::default()
    };
    let config = config(&look, places)?;
    let mut out = std::io::stdout();
    if asked.animate && can_draw() {
        let ended = app::animate(&settings, asked.seed, config);
        return match ended {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Hinted::new(
                format!("cannot use this terminal: {error:#}"),
                "without --animate the same is printed as numbers",
            )),
        };
    }
    if asked.animate {
        // Nobody reads it: nothing to do about that.
        let _ = writeln!(
            std::io::stderr(),
            "note: standard output is no terminal that can be drawn on, so here are numbers and no animation"
        );
    }
    let study = Study::of(&settings, asked.seed, asked.runs(&settings));
    let page = if asked.json {
        format!("{:#}\n", json(&study))
    } else {
        text(&study, config.ascii)
    };
    print(&mut out, page.as_bytes())
}
