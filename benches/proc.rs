//! The cost of reading `/proc`, in CPU time of this thread: files kept open compared with files opened each time, and
//! our own parser of `stat` compared with that of procfs. `cargo bench --bench proc [-- PID]`.
//!
//! Only the ratios within one run matter: they show which files are worth keeping open.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pipetop::testing::source::clock::thread_cpu;
use pipetop::testing::source::process::{ProcessReader, Stat};
use pipetop::units::Pid;
use procfs::process::Process;

const READINGS: u32 = 1000;
/// Number of runs; the shortest counts.
const RUNS: usize = 7;

/// Returns the microseconds of one read.
fn cost(name: &str, mut read: impl FnMut()) -> f64 {
    let mut run = || {
        let from = thread_cpu();
        (0..READINGS).for_each(|_| read());
        thread_cpu().saturating_sub(from) / READINGS
    };
    let shortest = (0..RUNS).map(|_| run()).min().unwrap();
    let micros = shortest.as_secs_f64() * 1e6;
    println!("{name:<36} {micros:6.2} us");
    micros
}

fn main() {
    let asked = std::env::args().find_map(|word| word.parse().ok());
    let pid = asked.unwrap_or_else(|| i32::try_from(std::process::id()).unwrap());
    let process = Process::new(pid).unwrap();
    let kept = |name: &str| File::open(format!("/proc/{pid}/{name}")).unwrap();
    let mut buffer = [0; 1024];

    let stat = kept("stat");
    let own = cost("stat: kept open, own parser", || {
        let length = stat.read_at(&mut buffer, 0).unwrap();
        black_box(Stat::parse(str::from_utf8(&buffer[..length]).unwrap()));
    });
    let mut reader = ProcessReader::new(Path::new("/proc"));
    let opened = cost("stat: opened, own parser", || {
        black_box(reader.stat(Pid(pid)).unwrap());
    });
    let procfs = cost("stat: procfs", || {
        black_box(Process::new(pid).unwrap().stat().unwrap());
    });
    println!(
        "opened {:.1}, procfs {:.1} times",
        opened / own,
        procfs / own
    );
    for name in ["schedstat", "wchan"] {
        let file = kept(name);
        let own = cost(&format!("{name}: kept open, unparsed"), || {
            black_box(file.read_at(&mut buffer, 0).unwrap());
        });
        let procfs = cost(&format!("{name}: procfs, folder kept open"), || {
            if name == "wchan" {
                black_box(process.wchan().unwrap());
            } else {
                black_box(process.schedstat().unwrap());
            }
        });
        println!("procfs {:.1} times", procfs / own);
    }
}
