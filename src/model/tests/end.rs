//! Tests of a job that has ended.

use std::time::Duration;

use crate::model::Model;
use crate::model::literals::{machine, moment, training};
use crate::units::{Pid, Share};

#[test]
fn findings_of_a_job_stay_after_its_end() {
    for length in [Duration::from_secs(10), Duration::MAX] {
        let mut model = Model::new(length);
        for at in 0..=20 {
            model.apply(training(f64::from(at)));
        }
        let mut window = model.window().cloned().unwrap();
        let mut job = model.latest().cloned().unwrap().job.unwrap();
        let progress = model.progress();
        for at in 21..=80 {
            let mut last = training(20.0);
            last.at = moment(f64::from(at));
            last.host.cpu_busy = machine(f64::from(at)).host.cpu_busy;
            last.job.iter_mut().for_each(|job| job.ended = true);
            model.apply(last);
        }
        window.job.iter_mut().for_each(|job| job.ended = true);
        job.ended = true;
        assert_eq!(model.window(), Some(&window));
        assert_eq!(model.latest().unwrap().job, Some(job));
        assert_eq!(model.progress(), progress);
        let cpu = model.latest().unwrap().host.cpu;
        assert_eq!(cpu, Some(Share(0.5)), "the machine goes on");
        let history = model.history();
        let axis = history.axis(None, 60.0, 60).unwrap();
        let waits = history.means(&axis, |point| point.rank(0)?.wait.get());
        assert_eq!(waits, [None; 60]);

        let mut next = training(90.0);
        next.job.iter_mut().for_each(|job| job.key.pid = Pid(7));
        model.apply(next);
        assert_eq!(model.window(), None, "another job, another window");
    }
}
