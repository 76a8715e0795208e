//! A run without a screen: lines or one report, while what the command prints passes through.

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;

use super::printed::Printed;
use super::summary::Summary;
use super::{complain, exit_code, log, lost, name, start};
use crate::cli::{Run, Watch};
use crate::error::Hinted;
use crate::launch::{Ending, News, Output, Request, Rest, Running};
use crate::observe::{Observation, Observer, no_thread};
use crate::sample::Sample;
use crate::source::sampler::{Options, Sampler};

enum Heard {
    Sample(Box<Sample>),
    News(News),
}

pub(super) fn run(asked: &Run, request: Request, mut options: Options) -> Result<ExitCode, Hinted> {
    let watch = &asked.watch;
    let log = log(asked)?;
    let writer = log.as_ref().map(crate::launch::Log::writer).transpose();
    let writer = writer.map_err(|error| {
        Hinted::new(
            format!("cannot open the log twice: {error}"),
            "raise the limit of open files (ulimit -n)",
        )
    })?;
    let output = match writer {
        Some(file) => Output::File(file),
        None if watch.json => Output::Errors,
        None => Output::Through,
    };
    let name = name(&request.command);
    let (send, heard) = mpsc::channel();
    let news = send.clone();
    let news = move |told| news.send(Heard::News(told)).is_ok();
    let running = match start(request, asked.stdin, output, &mut options, news) {
        Ok(running) => running,
        Err(code) => return Ok(code),
    };
    for gap in &options.lacking {
        complain(&Hinted::new(&gap.reason, &gap.hint));
    }
    let printed = log.map(|log| Printed::follow(log, watch.json));
    let printed = printed.transpose().map_err(|error| no_thread(&error))?;
    let how = Observation {
        once: watch.once,
        json: watch.json,
        span: watch.span,
        steady: true,
    };
    let observer = Observer::new(how, options.interval);
    let sampler = Sampler::start(options, None, move |sample| {
        send.send(Heard::Sample(Box::new(sample))).is_ok()
    });
    let mut session = Session {
        sampler: Some(sampler.map_err(|error| no_thread(&error))?),
        observer,
        summary: Summary::new(),
        ended: None,
        reported: false,
        stopped: false,
        lost: false,
    };
    let pid = running.pid();
    session.run(heard, &running, asked);
    session.sampler = None;
    running.release();
    drop(printed);
    if session.lost {
        return Err(lost(pid));
    }
    session.close(&name, watch)
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
}

impl Session {
    /// Until the command has ended, and what trains below it.
    fn run(&mut self, heard: mpsc::Receiver<Heard>, running: &Running, asked: &Run) {
        let mut rest = Rest::default();
        for heard in heard {
            match heard {
                Heard::Sample(sample) if !self.reported => {
                    let trains = sample.job.as_ref().is_some_and(|job| !job.ended);
                    rest.seen(sample.at.since_start, trains);
                    self.summary.apply(&sample);
                    // Where nobody reads, the command still goes on to its end.
                    let over = self.observer.take(*sample, &mut std::io::stdout());
                    if over.unwrap_or(true) {
                        self.report(&asked.watch, false);
                        rest.forget();
                        self.sampler = None;
                        if asked.stop {
                            self.stopped = true;
                            running.end();
                        }
                    }
                }
                Heard::News(News::Ended(ending)) => {
                    self.ended = Some(ending);
                    rest.ended();
                }
                Heard::News(News::Gone) => {
                    self.lost = self.ended.is_none();
                    break;
                }
                Heard::Sample(_) | Heard::News(_) => {}
            }
            if rest.is_over() {
                break;
            }
        }
    }

    /// Says what was seen, once.
    fn report(&mut self, watch: &Watch, early: bool) {
        self.reported = true;
        self.summary.close();
        let mut out = std::io::stdout();
        // Nobody who reads it: nothing to do about that.
        let _ = if watch.once {
            // Where it ended before its time: what was seen of its training.
            let page = early.then(|| self.summary.page(watch.json)).flatten();
            match page {
                Some(page) => out.write_all(page.as_bytes()),
                None => self.observer.write(&mut out),
            }
        } else if watch.json {
            Ok(())
        } else {
            let page = self.summary.page(false).unwrap_or_default();
            out.write_all(page.as_bytes())
        };
    }

    fn close(mut self, name: &str, watch: &Watch) -> Result<ExitCode, Hinted> {
        self.summary.close();
        let kind = if watch.once {
            self.observer.kind()
        } else {
            self.summary.kind()
        };
        if !self.reported {
            let seen = if watch.once {
                self.summary.kind().is_some() && self.observer.has_seen_a_job()
            } else {
                self.summary.page(false).is_some()
            };
            if seen {
                self.report(watch, true);
            } else if self.ended.is_some_and(|ended| ended.code() != 0) || !watch.once {
                complain(&self.summary.nothing());
            } else {
                return Err(self.summary.nothing());
            }
        }
        if let Some(ended) = self
            .ended
            .filter(|ended| ended.code() != 0 && !self.stopped)
        {
            let _ = writeln!(std::io::stderr(), "{name} {ended}");
        }
        Ok(exit_code(self.ended, self.stopped, kind, watch))
    }
}
