//! A run without a screen: lines or one report, while what the command prints passes through.

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;

use super::command::{exit_code, log, lost, name, start};
use super::printed::Printed;
use super::summary::Summary;
use crate::cli::Run;
use crate::error::Hinted;
use crate::headless::{Observation, Observer, RecordingWatch};
use crate::launch::{Ending, ExitTracker, LaunchSpec, OutputTarget, Running, SupervisorEvent};
use crate::options::Watch;
use crate::output;
use crate::sample::Sample;
use crate::setup::{complain, finish};
use crate::source::sampler::{Options, Sampler};

enum Heard {
    Sample(Box<Sample>),
    Event(SupervisorEvent),
}

pub(super) fn run(args: &Run, spec: LaunchSpec, mut options: Options) -> Result<ExitCode, Hinted> {
    let watch = &args.watch;
    let log = log(args)?;
    let writer = log.as_ref().map(crate::launch::Log::writer).transpose();
    let writer = writer.map_err(|error| {
        Hinted::new(
            format!("cannot open the log twice: {error}"),
            "raise the limit of open files (ulimit -n)",
        )
    })?;
    let output = match writer {
        Some(file) => OutputTarget::File(file),
        None if watch.json => OutputTarget::Errors,
        None => OutputTarget::Through,
    };
    let name = name(&spec.command);
    let (send, heard) = mpsc::channel();
    let events = send.clone();
    let events = move |event| events.send(Heard::Event(event)).is_ok();
    let running = match start(spec, args.stdin, output, &mut options, events) {
        Ok(running) => running,
        Err(code) => return Ok(code),
    };
    for gap in &options.lacking {
        note(&Hinted::new(&gap.reason, &gap.hint));
    }
    let printed = log.map(|log| Printed::follow(log, watch.json));
    let printed = printed
        .transpose()
        .map_err(|error| Hinted::no_thread(&error))?;
    let how = Observation {
        once: watch.once,
        json: watch.json,
        span: watch.span,
        steady: true,
    };
    let observer = Observer::new(how, options.interval);
    let recorder = options.recorder.clone();
    let sampler = Sampler::start(options, None, move |sample| {
        send.send(Heard::Sample(Box::new(sample))).is_ok()
    });
    let mut session = Session {
        sampler: Some(sampler.map_err(|error| Hinted::no_thread(&error))?),
        observer,
        summary: Summary::new(),
        ended: None,
        reported: false,
        stopped: false,
        lost: false,
        recording: RecordingWatch::default(),
        unwritten: None,
    };
    let pid = running.pid();
    session.run(heard, &running, args);
    session.sampler = None;
    running.release();
    drop(printed);
    if session.lost {
        return Err(lost(pid));
    }
    let code = session.close(&name, watch)?;
    finish(recorder)?;
    Ok(code)
}

/// Says what is no error of the command.
fn note(said: &Hinted) {
    let lines = format!("note: {}\nhint: {}\n", said.message, said.hint);
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

struct Session {
    /// `None` once nothing more is to be seen.
    sampler: Option<Sampler>,
    observer: Observer,
    summary: Summary,
    ended: Option<Ending>,
    reported: bool,
    /// We have ended the command.
    stopped: bool,
    /// It may go on without us, unasked.
    lost: bool,
    recording: RecordingWatch,
    /// Why something that was to be printed was not.
    unwritten: Option<Hinted>,
}

impl Session {
    /// Until the command has ended, and what trains below it.
    fn run(&mut self, heard: mpsc::Receiver<Heard>, running: &Running, args: &Run) {
        let mut exit = ExitTracker::default();
        for heard in heard {
            match heard {
                Heard::Sample(sample) if !self.reported => {
                    let trains = sample.job.as_ref().is_some_and(|job| !job.ended);
                    exit.seen(sample.at.since_start, trains);
                    self.summary.apply(&sample);
                    self.recording.check(&sample);
                    let over = self.observer.take(*sample, &mut std::io::stdout());
                    // Where nobody reads, the command still goes on to its end.
                    if over.unwrap_or_else(|error| self.failed(&error)) {
                        self.report(&args.watch, false);
                        exit.forget();
                        self.sampler = None;
                        if args.stop {
                            self.stopped = true;
                            running.handle().end();
                        }
                    }
                }
                Heard::Event(SupervisorEvent::Ended(ending)) => {
                    self.ended = Some(ending);
                    exit.ended();
                }
                Heard::Event(SupervisorEvent::Gone) => {
                    self.lost = self.ended.is_none();
                    break;
                }
                Heard::Sample(_) | Heard::Event(_) => {}
            }
            if exit.is_over() {
                break;
            }
        }
    }

    /// Says what was seen, once.
    fn report(&mut self, watch: &Watch, early: bool) {
        self.reported = true;
        self.summary.close();
        let mut out = std::io::stdout();
        let written = if watch.once {
            // Where it ended before its time: what was seen of its training.
            match early.then(|| self.summary.report()).flatten() {
                Some(report) if watch.json => output::json::page(&mut out, &report),
                Some(report) => out.write_all(output::text(&report).as_bytes()),
                None => self.observer.write(&mut out),
            }
        } else if watch.json {
            Ok(())
        } else {
            let page = self.summary.report().as_ref().map(output::text);
            out.write_all(page.unwrap_or_default().as_bytes())
        };
        if let Err(error) = written.and_then(|()| out.flush()) {
            self.failed(&error);
        }
    }

    /// Keeps why nothing more can be written, which is so from now on.
    fn failed(&mut self, error: &std::io::Error) -> bool {
        self.unwritten = self.unwritten.take().or_else(|| Hinted::unwritten(error));
        true
    }

    fn close(mut self, name: &str, watch: &Watch) -> Result<ExitCode, Hinted> {
        self.summary.close();
        let kind = if watch.once {
            self.observer.kind()
        } else {
            self.summary.kind()
        };
        let failed = self
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
            } else if let Some(ended) = failed {
                said = true;
                complain(&Hinted::new(
                    format!("{name} {ended} before training was seen"),
                    "see its own output for the reason",
                ));
            } else if watch.once {
                return Err(self.summary.nothing());
            } else {
                note(&self.summary.nothing());
            }
        }
        if let Some(ended) = failed.filter(|_| !said) {
            let _ = writeln!(std::io::stderr(), "{name} {ended}");
        }
        match self.unwritten {
            // The command's own failure shows in the exit code.
            Some(error) if failed.is_none() => Err(error),
            Some(error) => {
                complain(&error);
                Ok(exit_code(self.ended, self.stopped, kind, watch))
            }
            None => Ok(exit_code(self.ended, self.stopped, kind, watch)),
        }
    }
}
