//! A run without a screen: prints lines or one report, while the command's output passes through.

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;

use super::command::{exit_code, failed, log, name, note_unread_input, start, supervisor_lost};
use super::printed::follow;
use super::summary::Summary;
use crate::cli::RunArgs;
use crate::error::{Explain as _, Hinted, write_error};
use crate::headless::{Observer, Warnings};
use crate::launch::{Ending, ExitTracker, LaunchSpec, OutputTarget, Running, SupervisorEvent};
use crate::options::WatchArgs;
use crate::output;
use crate::sample::Sample;
use crate::setup::{finish, observation, print_error};
use crate::source::sampler::{Options, Sampler};

enum RunEvent {
    Sample(Box<Sample>),
    Event(SupervisorEvent),
}

pub(super) fn run(
    args: &RunArgs,
    spec: LaunchSpec,
    mut options: Options,
) -> Result<ExitCode, Hinted> {
    let watch = &args.watch;
    let log = log(args)?;
    let writer = log.as_ref().map(crate::launch::Log::writer).transpose();
    let writer = writer.explain(
        "cannot open the log twice",
        "raise the limit of open files (ulimit -n)",
    )?;
    let output = match writer {
        Some(file) => OutputTarget::File(file),
        None if watch.json => OutputTarget::Errors,
        None => OutputTarget::Inherit,
    };
    let name = name(&spec.command);
    let (send, heard) = mpsc::channel();
    let events = send.clone();
    let events = move |event| events.send(RunEvent::Event(event)).is_ok();
    let running = match start(spec, args.stdin, output, &mut options, events) {
        Ok(running) => running,
        Err(code) => return Ok(code),
    };
    for gap in &options.lacking {
        write_error(Hinted::new(&gap.reason, &gap.hint).note());
    }
    let printed = log.map(|log| follow(log, watch.json));
    let printed = printed
        .transpose()
        .map_err(|error| Hinted::no_thread(&error))?;
    let observer = Observer::new(observation(watch, true), options.interval);
    let recorder = options.recorder.clone();
    let sampler = Sampler::start(options, None, move |sample| {
        send.send(RunEvent::Sample(Box::new(sample))).is_ok()
    });
    let mut session = Session::new(observer);
    session.sampler = Some(sampler.map_err(|error| Hinted::no_thread(&error))?);
    let pid = running.pid();
    session.run(heard, &running, args);
    session.sampler = None;
    running.release();
    drop(printed);
    session.summary.close();
    note_unread_input(args, &session.summary);
    if session.lost {
        return Err(supervisor_lost(pid));
    }
    let code = session.close(&name, watch)?;
    finish(recorder)?;
    Ok(code)
}

struct Session {
    /// `None` once nothing more is to be observed.
    sampler: Option<Sampler>,
    observer: Observer,
    summary: Summary,
    ended: Option<Ending>,
    reported: bool,
    /// Whether pipetop has ended the command.
    stopped: bool,
    /// Whether the supervisor is gone although the command may still run.
    lost: bool,
    warnings: Warnings,
    /// The error that kept output from being written.
    unwritten: Option<Hinted>,
}

impl Session {
    fn new(observer: Observer) -> Self {
        Self {
            sampler: None,
            observer,
            summary: Summary::new(),
            ended: None,
            reported: false,
            stopped: false,
            lost: false,
            warnings: Warnings::default(),
            unwritten: None,
        }
    }

    /// Runs until the command and its training job have ended.
    fn run(&mut self, heard: mpsc::Receiver<RunEvent>, running: &Running, args: &RunArgs) {
        let mut exit = ExitTracker::default();
        for heard in heard {
            match heard {
                RunEvent::Sample(sample) if !self.reported => {
                    let trains = sample.job.as_ref().is_some_and(|job| !job.ended);
                    exit.seen(sample.at.since_start, trains);
                    self.summary.apply(&sample);
                    self.warnings.check(&sample);
                    let over = self.observer.take(*sample, &mut std::io::stdout());
                    let closed = over.is_err();
                    // If the output is closed, the command still runs to its end.
                    if over.unwrap_or_else(|error| self.failed(&error)) {
                        let nothing = self.report(&args.watch, false);
                        if let Some(nothing) = nothing.filter(|_| !closed) {
                            write_error(nothing.note());
                        }
                        exit.forget();
                        self.sampler = None;
                        if args.stop {
                            self.stopped = true;
                            running.handle().end();
                        }
                    }
                }
                RunEvent::Event(SupervisorEvent::Ended(ending)) => {
                    self.ended = Some(ending);
                    exit.ended();
                }
                RunEvent::Event(SupervisorEvent::Gone) => {
                    self.lost = self.ended.is_none();
                    break;
                }
                RunEvent::Sample(_) | RunEvent::Event(_) => {}
            }
            if exit.is_over() {
                break;
            }
        }
    }

    /// Prints the report, once. Returns why there is none, unless the report itself says so.
    fn report(&mut self, watch: &WatchArgs, early: bool) -> Option<Hinted> {
        self.reported = true;
        self.summary.close();
        let mut out = std::io::stdout();
        let mut nothing = None;
        // With --once, the whole training is reported on only if the job ended before the time was over.
        let whole = (early || !watch.once).then(|| self.summary.report());
        let written = match whole.flatten() {
            Some(report) if watch.json && watch.once => output::json::page(&mut out, &report),
            Some(_) if watch.json => Ok(()),
            Some(report) => out.write_all(output::text(&report).as_bytes()),
            None if watch.once => self.observer.write(&mut out),
            None => {
                nothing = Some(self.summary.nothing());
                Ok(())
            }
        };
        if let Err(error) = written.and_then(|()| out.flush()) {
            self.failed(&error);
        }
        nothing
    }

    /// Keeps the first write error, after which nothing more can be written.
    fn failed(&mut self, error: &std::io::Error) -> bool {
        self.unwritten = self.unwritten.take().or_else(|| Hinted::unwritten(error));
        true
    }

    fn close(mut self, name: &str, watch: &WatchArgs) -> Result<ExitCode, Hinted> {
        self.summary.close();
        let kind = if watch.once {
            self.observer.kind()
        } else {
            self.summary.kind()
        };
        let failure = self
            .ended
            .filter(|ended| ended.code() != 0 && !self.stopped);
        let mut said = false;
        if !self.reported {
            let seen = if watch.once {
                self.summary.kind().is_some() && self.observer.has_seen_a_job()
            } else {
                self.summary.report().is_some()
            };
            if seen {
                self.report(watch, true);
            } else if let Some(ended) = failure {
                said = true;
                print_error(&failed(
                    name,
                    format_args!("{ended} before training was seen"),
                ));
            } else if watch.once {
                return Err(self.summary.nothing());
            } else {
                write_error(self.summary.nothing().note());
            }
        }
        if let Some(ended) = failure.filter(|_| !said) {
            print_error(&failed(name, ended));
        }
        if let Some(error) = self.unwritten {
            // If the command failed as well, its exit code takes precedence.
            if failure.is_none() {
                return Err(error);
            }
            print_error(&error);
        }
        Ok(exit_code(self.ended, self.stopped, kind, watch))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::Gap;
    use crate::sample::literals::training;

    #[test]
    fn a_span_without_training_ends_with_what_was_seen() {
        let watch = WatchArgs::default();
        let mut sample = training(1.0);
        sample.job = None;
        sample.gaps = vec![Gap::new("job", "no Python was seen", "name the script")];
        let observation = observation(&watch, true);
        let mut session = Session::new(Observer::new(observation, Duration::from_secs(1)));
        session.summary.apply(&sample);
        let said = session.report(&watch, false).map(|said| said.message);
        assert_eq!(said.as_deref(), Some("no Python was seen"));
    }
}
