//! A job whose figures differ from sample to sample, with all figures that benchmarks need.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use pipetop::sample::{
    BatchClock, BatchCount, BatchLoad, DiskSample, GpuProcess, GpuSample, HostSample, IoSample,
    JobSample, LoaderKind, LoaderSample, LoaderSettings, MainTally, OwnSample, PollTrace,
    PressureSample, ProcessPlace, ProcessSample, QueueSource, QueueTally, RankSample, Sample,
    SlotState, Tail, Tier, TrainerNow, UnderWay, Wait, WorkerLoads, WorkerNow, WorkerSample,
    WorkerTally,
};
use pipetop::units::{Bytes, Moment, Pid, ProcessKey};

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Figures that grow like counters, by a different amount every second.
pub struct Noise {
    chance: fastrand::Rng,
    workers: u32,
    gpus: u32,
    pub ranks: u32,
    /// Batches per second of each rank.
    pub batches_per_s: u64,
    /// Workers change their state at every poll.
    pub restless: bool,
}

impl Noise {
    pub fn of(workers: u32, gpus: u32) -> Self {
        Self {
            chance: fastrand::Rng::with_seed(1),
            workers,
            gpus,
            ranks: 1,
            batches_per_s: 10,
            restless: false,
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        self.chance.u64(0..most)
    }

    /// Returns the polls of this second and the one before it, 50 ms apart, each with one of these states at random.
    fn polls<T: SlotState>(&mut self, second: u64, what: &[T]) -> PollTrace {
        let mut polls = PollTrace::default();
        for poll in 20 * second.saturating_sub(2)..20 * second {
            let seen = what[usize::try_from(self.below(what.len() as u64)).unwrap_or(0)];
            polls.record(micros(50_000 * poll), seen, 800);
        }
        polls
    }

    fn percent(&mut self) -> f64 {
        self.chance.u32(0..=100).into()
    }

    fn process(&mut self, at: u64) -> ProcessSample {
        ProcessSample {
            state: Some('S'),
            cpu: Some(micros(at * 900_000 + self.below(10) * 10_000)),
            children_cpu: Some(Duration::ZERO),
            main_cpu: Some(Duration::from_nanos(
                at * 900_000_000 + self.below(1_000_000),
            )),
            main_run_delay: Some(Duration::from_nanos(at * 9_000_000 + self.below(1_000_000))),
            io: Some(IoSample {
                rchar: Bytes(at * 50_000_000 + self.below(1_000_000)),
                wchar: Bytes(at * 1000 + self.below(1000)),
                read_bytes: Bytes(at * 20_000_000 + self.below(5000) * 4096),
                write_bytes: Bytes(0),
            }),
            major_faults: Some(at / 10),
            threads: Some(4),
            cpus_allowed: Some(64),
            rss: Some(Bytes((1 << 30) + self.below(1000) * 4096)),
        }
    }

    fn activity(&mut self, at: u64) -> BTreeMap<String, u64> {
        let names = [
            "Image.resize (PIL/Image.py)",
            "ImageFile.load (PIL/ImageFile.py)",
            "default_collate (torch/utils/data/_utils/collate.py)",
            "__getitem__ (train.py)",
        ];
        names
            .map(|name| (name.to_owned(), at * 25 + self.below(25)))
            .into()
    }

    fn now(&mut self) -> WorkerNow {
        if !self.restless {
            return WorkerNow::Cpu;
        }
        match self.below(10) {
            0..6 => WorkerNow::Cpu,
            6..8 => WorkerNow::Read,
            _ => WorkerNow::Idle,
        }
    }

    fn worker(&mut self, at: u64, rank: u32, id: u32) -> WorkerSample {
        let (cpu, idle) = (at * 22 + self.below(3), at * 3 + self.below(3));
        WorkerSample {
            key: key(5000 + 100 * rank + id),
            id,
            thread: false,
            process: self.process(at),
            tally: Some(WorkerTally {
                polls: cpu + idle + at * 5,
                idle,
                cpu,
                disk: at * 5,
                now: self.now(),
                ..WorkerTally::default()
            }),
            batches: Some(at / 2 + self.below(2)),
            activity: self.activity(at),
            loads: Some(self.loads(at, id)),
            polls: self.polls(
                at,
                &[
                    WorkerNow::Cpu,
                    WorkerNow::Read,
                    WorkerNow::Idle,
                    WorkerNow::Sleep,
                ],
            ),
        }
    }

    /// Returns two finished batches and one in progress.
    fn loads(&mut self, at: u64, id: u32) -> WorkerLoads {
        let batch = 32 * at + u64::from(id);
        let mut ms = |most| u32::try_from(self.below(most)).unwrap();
        let ended = [0, 16].map(|by| BatchLoad {
            batch: batch + by,
            low_ms: 350 + ms(50),
            high_ms: 450 + ms(50),
            ended: None,
        });
        WorkerLoads {
            ended: Tail::new(2 * at, ended),
            short: 0,
            under_way: Some(UnderWay {
                batch: batch + 32,
                for_ms: ms(400),
            }),
        }
    }

    fn gpu(&mut self, at: Moment, index: u32) -> GpuSample {
        let driver = u64::try_from(at.since_start.as_micros()).unwrap();
        GpuSample {
            index,
            uuid: Some(format!("GPU-8f2a3c4d-1234-5678-9abc-00000000000{index}")),
            name: Some("NVIDIA H200".to_owned()),
            read_at: Some(at),
            util_percent: Some(self.percent()),
            mem_util_percent: Some(self.percent()),
            util_samples: Tail::new(
                driver / 166_000 + 6,
                (0..6).map(|part| (driver + part * 166_000, self.percent())),
            ),
            mem_used: Some(Bytes(20 << 30)),
            mem_total: Some(Bytes(140 << 30)),
            power_watts: Some(300.0 + self.percent() * 1.001),
            power_limit_watts: Some(700.0),
            temperature_c: Some(50.0),
            sm_clock_mhz: Some(1980.0),
            mem_clock_mhz: Some(3201.0),
            throttle: Some(vec![]),
            processes: Some(vec![GpuProcess {
                pid: Pid(4000 + (index % self.ranks).cast_signed()),
                mem: Some(Bytes(20 << 30)),
                sm_percent: Some(self.percent()),
                sm_at: None,
                place: ProcessPlace::Here,
            }]),
            gap: None,
            visible_to_job: Some(true),
            ..GpuSample::default()
        }
    }

    fn rank(&mut self, second: u64, rank: u32) -> RankSample {
        let rate = self.batches_per_s;
        let begin = second.saturating_sub(1) * 1_000_000;
        let wait = |step: u64, late: u64| Wait {
            from: micros(begin + step * 100_000),
            to: micros(begin + step * 100_000 + 60_000 + late),
            batch: Some(second * rate + step),
            first: None,
            begins: false,
        };
        RankSample {
            rank: Some(rank),
            world_size: Some(self.ranks),
            process: self.process(second),
            main: Some(MainTally {
                polls: second * 100,
                waiting: second * 60,
                running: second * 40,
                ..MainTally::default()
            }),
            waits: Tail::new(
                10 * second,
                (0..10).map(|step| wait(step, self.below(5000))),
            ),
            activity: self.activity(second),
            loaders: vec![LoaderSample {
                id: 1,
                kind: LoaderKind::PytorchProcesses,
                name: None,
                settings: LoaderSettings {
                    num_workers: Some(self.workers),
                    prefetch_factor: Some(2),
                    ..LoaderSettings::default()
                },
                workers: (0..self.workers)
                    .map(|id| self.worker(second, rank, id))
                    .collect(),
                workers_started: self.workers.into(),
                queue: Some(QueueTally {
                    polls: second * 100,
                    empty: second * 50 + self.below(50),
                    ready_sum: second * 100 + self.below(50),
                    ready: 3,
                    capacity: Some(2 * self.workers),
                    source: QueueSource::Pipe,
                    gone: 0,
                }),
                batches: Some(BatchCount {
                    count: second * rate,
                    source: BatchClock::Iterator,
                }),
                waits: Some(second * 30),
                dataset: None,
                nested: false,
                queue_polls: self.polls(second, &[0, 1, 2, 3, 2 * self.workers]),
            }],
            polls: self.polls(second, &[TrainerNow::Waiting, TrainerNow::Stepping]),
            ..RankSample::new(key(4000 + rank))
        }
    }

    /// Returns the sample of this second, counted from 1.
    pub fn sample(&mut self, second: u64) -> Sample {
        let since_start = micros(second * 1_000_000 + self.below(1000));
        let at = Moment {
            since_start,
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + since_start,
        };
        Sample {
            host: HostSample {
                cpus: 64,
                cpu_busy: Some(micros(second * 20_000_000 + self.below(1000) * 10_000)),
                cpu_stolen: Some(micros(second * 10_000)),
                mem_total: Some(Bytes(256 << 30)),
                mem_available: Some(Bytes((200 << 30) + self.below(1 << 20) * 4096)),
                swapped_in: Some(0),
                pressure: Some(PressureSample {
                    cpu: Some(micros(second * 1000 + self.below(1000))),
                    io: Some(micros(second * 500 + self.below(100))),
                    memory: Some(Duration::ZERO),
                }),
                boot_ticks_at_start: Some(1_000_000),
                ticks_per_second: Some(100),
                others: vec![],
            },
            disks: vec![DiskSample {
                device: "nvme0n1".to_owned(),
                reads: second * 100 + self.below(100),
                read_bytes: Bytes((second * 100 + self.below(100)) * 131_072),
                read_time: micros((second * 20 + self.below(20)) * 1000),
                writes: second,
                write_bytes: Bytes(second * 4096),
                write_time: micros(second * 1000),
                busy: micros((second * 100 + self.below(50)) * 1000),
                queued: micros((second * 300 + self.below(50)) * 1000),
                holds_job_files: true,
            }],
            gpus: (0..self.gpus).map(|index| self.gpu(at, index)).collect(),
            job: Some(JobSample {
                ranks: (0..self.ranks)
                    .map(|rank| self.rank(second, rank))
                    .collect(),
                cpus_allowed: Some(64),
                ..JobSample::new(key(4000), "/usr/bin/python3 train.py --epochs 90", Tier::T2)
            }),
            own: OwnSample {
                cpu: Some(micros(second * 5000 + self.below(100))),
                rss: Some(Bytes(20 << 20)),
                late: 0,
            },
            ..Sample::new(at)
        }
    }
}

fn key(pid: u32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid.cast_signed()),
        start_ticks: 900_000,
    }
}
