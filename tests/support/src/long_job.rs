//! A recording of a job that has trained for long: two ranks with a GPU each, whose figures are steady or noisy.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pipetop::sample::{
    BatchClock, BatchCount, BatchLoad, DiskSample, GpuSample, HostSample, IoSample, JobSample,
    LoaderKind, LoaderSample, LoaderSettings, MainTally, OwnSample, PollTrace, ProcessSample,
    QueueSource, QueueTally, RankSample, Sample, Tail, Tier, UnderWay, WorkerLoads, WorkerNow,
    WorkerSample, WorkerTally,
};
use pipetop::testing::record::{RecordOptions, Writer};
use pipetop::units::{Bytes, Moment, Pid, ProcessKey};

const RANKS: u32 = 2;

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).expect("a length of time")
}

/// The job so far: what it has used up of everything.
pub struct LongJob {
    at: u32,
    workers: u32,
    /// How far a figure may lie from its mean, as a part of it.
    noise: f64,
    seed: u64,
    /// By what is counted.
    batches_per_s: f64,
    counts: BTreeMap<(u32, u32, &'static str), f64>,
}

impl LongJob {
    pub fn new(workers: u32, noise: f64) -> Self {
        Self {
            at: 0,
            workers,
            noise,
            seed: 1,
            batches_per_s: 10.0,
            counts: BTreeMap::new(),
        }
    }

    /// The batches that each rank takes in a second, in the mean.
    #[must_use]
    pub fn at_rate(self, batches_per_s: f64) -> Self {
        Self {
            batches_per_s,
            ..self
        }
    }

    /// Records so many seconds of it.
    pub fn record(mut self, seconds: u32, path: &Path) {
        let options = RecordOptions {
            path: path.to_owned(),
            size: 1 << 30,
            command_lines: true,
            interval: Duration::from_secs(1),
        };
        let mut writer = Writer::create(&options).expect("the folder is ours");
        for _ in 0..=seconds {
            writer.write(&self.sample()).expect("there is room");
        }
        writer.finish().expect("there is room");
    }

    /// A part from 0 to 1, the same in every run.
    fn random(&mut self) -> f64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) as f64 / f64::from(1_u32 << 31)
    }

    fn noisy(&mut self, mean: f64) -> f64 {
        let part = 2.0 * self.random() - 1.0;
        mean * (1.0 + self.noise * part)
    }

    /// What has come together of something that grows by `mean` each second.
    fn counted(&mut self, rank: u32, who: u32, what: &'static str, mean: f64) -> f64 {
        let more = self.noisy(mean);
        let count = self.counts.entry((rank, who, what)).or_default();
        *count += more;
        *count
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts that are small enough for that"
    )]
    fn whole(&mut self, rank: u32, who: u32, what: &'static str, mean: f64) -> u64 {
        self.counted(rank, who, what, mean).round() as u64
    }

    /// A second further on.
    pub fn sample(&mut self) -> Sample {
        let at = self.at;
        self.at += 1;
        let cpu = self.counted(RANKS, 0, "cpu", 6.0);
        let ranks = (0..RANKS).map(|rank| self.rank(rank)).collect::<Vec<_>>();
        let first = ranks[0].key;
        Sample {
            host: HostSample {
                cpus: 16,
                cpu_busy: Some(seconds(cpu)),
                mem_total: Some(Bytes(64 << 30)),
                mem_available: Some(Bytes(32 << 30)),
                boot_ticks_at_start: Some(1_000_000),
                ticks_per_second: Some(100),
                ..HostSample::default()
            },
            disks: vec![DiskSample {
                device: "nvme0n1".to_owned(),
                reads: self.whole(RANKS, 1, "reads", 400.0),
                read_bytes: Bytes(self.whole(RANKS, 1, "bytes", 200e6)),
                read_time: seconds(self.counted(RANKS, 1, "time", 0.1)),
                writes: 0,
                write_bytes: Bytes(0),
                write_time: Duration::ZERO,
                busy: seconds(self.counted(RANKS, 1, "busy", 0.2)),
                queued: seconds(self.counted(RANKS, 1, "queued", 0.3)),
                holds_job_files: true,
            }],
            gpus: (0..RANKS).map(|rank| self.gpu(rank, at)).collect(),
            job: Some(JobSample {
                ranks,
                cpus_allowed: Some(16),
                ..JobSample::new(first, "python train.py --epochs 90", Tier::T2)
            }),
            own: OwnSample {
                cpu: Some(seconds(0.004 * f64::from(at))),
                rss: Some(Bytes(20 << 20)),
                late: 0,
            },
            ..Sample::new(Moment {
                since_start: Duration::from_secs(at.into()),
                wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + u64::from(at)),
            })
        }
    }

    fn gpu(&mut self, rank: u32, at: u32) -> GpuSample {
        GpuSample {
            index: rank,
            name: Some("NVIDIA H200".to_owned()),
            read_at: Some(Moment {
                since_start: Duration::from_secs(at.into()),
                wall: SystemTime::UNIX_EPOCH + Duration::from_secs(at.into()),
            }),
            util_percent: Some(self.noisy(40.0).round()),
            mem_total: Some(Bytes(140 << 30)),
            mem_used: Some(Bytes(21 << 30)),
            visible_to_job: Some(true),
            ..GpuSample::default()
        }
    }

    fn process(&mut self, rank: u32, who: u32, cores: f64) -> ProcessSample {
        let cpu = seconds(self.counted(rank, who, "cpu", cores));
        ProcessSample {
            state: Some('S'),
            cpu: Some(cpu),
            main_cpu: Some(cpu),
            main_run_delay: Some(seconds(self.counted(rank, who, "delay", 0.02))),
            io: Some(IoSample {
                rchar: Bytes(self.whole(rank, who, "rchar", 60e6)),
                wchar: Bytes(self.whole(rank, who, "wchar", 1e4)),
                read_bytes: Bytes(self.whole(rank, who, "read", 50e6)),
                write_bytes: Bytes(0),
            }),
            major_faults: Some(0),
            threads: Some(3),
            cpus_allowed: Some(16),
            rss: Some(Bytes(700 << 20)),
        }
    }

    fn key(pid: u32) -> ProcessKey {
        ProcessKey {
            pid: Pid(pid.cast_signed()),
            start_ticks: 900_000,
        }
    }

    fn rank(&mut self, rank: u32) -> RankSample {
        let waiting = self.whole(rank, 0, "waiting", 60.0);
        let running = self.whole(rank, 0, "running", 40.0);
        let polls = self.whole(rank, 0, "queue", 100.0);
        let workers = (0..self.workers).map(|id| self.worker(rank, id)).collect();
        RankSample {
            rank: Some(rank),
            world_size: Some(RANKS),
            process: self.process(rank, 0, 0.4),
            main: Some(MainTally {
                polls: waiting + running,
                waiting,
                running,
                ..MainTally::default()
            }),
            activity: BTreeMap::from([("Tensor.item".to_owned(), running)]),
            nccl: true,
            loaders: vec![LoaderSample {
                settings: LoaderSettings {
                    num_workers: Some(self.workers),
                    prefetch_factor: Some(2),
                    ..LoaderSettings::default()
                },
                workers,
                queue: Some(QueueTally {
                    polls,
                    empty: polls * 3 / 4,
                    ready_sum: polls / 2,
                    ready: 1,
                    capacity: Some(2 * self.workers),
                    source: QueueSource::Pipe,
                }),
                batches: Some(BatchCount {
                    count: self.whole(rank, 0, "batches", self.batches_per_s),
                    source: BatchClock::Iterator,
                }),
                ..LoaderSample::new(0, LoaderKind::PytorchProcesses)
            }],
            ..RankSample::new(Self::key(1000 + rank))
        }
    }

    /// Two loads and a half a second.
    fn loads(&self, batches: u64, id: u32) -> WorkerLoads {
        let batch = batches * 4 + u64::from(id);
        let some = (37 * self.at + 11 * id) % 50;
        let ended = [4, 0].map(|before| BatchLoad {
            batch: batch.saturating_sub(before),
            low_ms: 350 + some,
            high_ms: 450 + some,
            ended: None,
        });
        WorkerLoads {
            ended: Tail::new(batches, ended),
            short: 0,
            under_way: Some(UnderWay {
                batch: batch + 4,
                for_ms: 5 * some,
            }),
        }
    }

    fn worker(&mut self, rank: u32, id: u32) -> WorkerSample {
        let who = id + 1;
        let cpu = self.whole(rank, who, "looks", 90.0);
        let idle = self.whole(rank, who, "idle", 10.0);
        let now = match self.random() {
            _ if self.noise == 0.0 => WorkerNow::Cpu,
            chance if chance < 0.6 => WorkerNow::Cpu,
            chance if chance < 0.8 => WorkerNow::Read,
            _ => WorkerNow::Idle,
        };
        let process = self.process(rank, who, 0.9);
        let batches = self.whole(rank, who, "batches", 2.5);
        WorkerSample {
            key: Self::key(2000 + 100 * rank + id),
            id,
            thread: false,
            process,
            tally: Some(WorkerTally {
                polls: cpu + idle,
                idle,
                cpu,
                now,
                ..WorkerTally::default()
            }),
            batches: Some(batches),
            activity: BTreeMap::from([("Image.resize".to_owned(), cpu)]),
            loads: Some(self.loads(batches, id)),
            polls: PollTrace::default(),
        }
    }
}
