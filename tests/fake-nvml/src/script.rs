//! Reads the script and returns the value of a key at a given time. Of NVML it knows only the error numbers.

#![expect(
    clippy::disallowed_methods,
    reason = "a driver has a clock of its own, and hangs when it hangs"
)]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use nvml_wrapper_sys::bindings::*;

/// The current script, and the time in it.
pub struct Script {
    lines: Vec<Line>,
    /// Seconds.
    pub now: f64,
    /// Driver time at second 0, in microseconds since 1970; 0 if a file sets the time.
    pub epoch_us: u64,
}

struct Line {
    from: f64,
    subject: Subject,
    pairs: Vec<(String, String)>,
}

/// What a line is about: the driver, all GPUs, a GPU by its number, or an instance of a divided GPU by [`instance`].
#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Driver,
    Gpu(u32),
    EveryGpu,
}

/// Lowest number of an instance.
const INSTANCES: u32 = 1000;
/// Most instances of a GPU, the same for every card that can be divided.
pub const MAX_INSTANCES: u32 = 7;

/// Returns the number of an instance of a GPU.
pub fn instance(gpu: u32, place: u32) -> u32 {
    INSTANCES + 10 * gpu + place
}

/// Returns the GPU that a number belongs to: an instance's parent, or the GPU itself.
pub fn parent(number: u32) -> u32 {
    number.checked_sub(INSTANCES).map_or(number, |at| at / 10)
}

pub fn is_instance(number: u32) -> bool {
    number >= INSTANCES
}

impl Script {
    pub fn read() -> Self {
        static STARTED: OnceLock<(Instant, SystemTime)> = OnceLock::new();
        let (start, wall) = STARTED.get_or_init(|| (Instant::now(), SystemTime::now()));
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let mut script = Self {
            lines: text.lines().filter_map(line).collect(),
            now: start.elapsed().as_secs_f64(),
            epoch_us: wall
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_micros() as u64),
        };
        if let Some(clock) = script.raw(None, "clock", f64::MAX) {
            let text = std::fs::read_to_string(clock).unwrap_or_default();
            script.now = text.trim().parse().unwrap_or(0.0);
            script.epoch_us = 0;
        }
        script
    }

    /// Returns the text of a key of a GPU, or of the driver.
    pub fn text(&self, gpu: Option<u32>, key: &str) -> Option<String> {
        self.raw(gpu, key, self.now)
            .map(|text| text.replace('_', " "))
    }

    /// Returns the current number of a key, `without` if the script does not set it; `Err` if it sets `none`.
    pub fn number(&self, gpu: Option<u32>, key: &str, without: f64) -> Result<f64, nvmlReturn_t> {
        self.number_at(gpu, key, without, self.now)
    }

    pub fn number_at(
        &self,
        gpu: Option<u32>,
        key: &str,
        without: f64,
        at: f64,
    ) -> Result<f64, nvmlReturn_t> {
        match self.raw(gpu, key, at) {
            None => Ok(without),
            Some("none") => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
            Some(text) => Ok(wave(text, at)),
        }
    }

    /// Returns the integral of a key since second 0, for a key that is a rate per second.
    pub fn integral(&self, gpu: Option<u32>, key: &str, without: f64) -> Result<f64, nvmlReturn_t> {
        self.integral_to(gpu, key, without, self.now)
    }

    /// Returns the integral until `to`. If the script changes the key meanwhile, sums in steps of 10 ms, or of a
    /// 20,000th of the time.
    pub fn integral_to(
        &self,
        gpu: Option<u32>,
        key: &str,
        without: f64,
        to: f64,
    ) -> Result<f64, nvmlReturn_t> {
        let text = self.raw(gpu, key, to);
        if self.raw(gpu, key, f64::NEG_INFINITY) == text && !self.changes(key) {
            return match text {
                None => Ok(without * to),
                Some("none") => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
                Some(text) => Ok(wave_sum(text, to)),
            };
        }
        let steps = (to / 0.01).ceil().clamp(1.0, 20_000.0);
        let step = to / steps;
        (0..steps as u32).try_fold(0.0, |sum, at| {
            let at = (f64::from(at) + 0.5) * step;
            Ok(sum + self.number_at(gpu, key, without, at)? * step)
        })
    }

    /// Whether a line sets this key from some second on.
    fn changes(&self, key: &str) -> bool {
        let mut later = self.lines.iter().filter(|line| line.from.is_finite());
        later.any(|line| line.pairs.iter().any(|(name, _)| name == key))
    }

    /// Returns every past value of a key, ordered by time.
    pub fn events(&self, gpu: u32, key: &str) -> Vec<String> {
        let subject = Subject::Gpu(gpu);
        let mut past: Vec<_> = self
            .lines
            .iter()
            .filter(|line| line.from <= self.now)
            .filter(|line| line.subject == subject || line.subject == Subject::EveryGpu)
            .flat_map(|line| {
                let values = line.pairs.iter().filter(|(name, _)| name == key);
                values.map(|(_, value)| (line.from, value.clone()))
            })
            .collect();
        past.sort_by(|one, other| one.0.total_cmp(&other.0));
        past.into_iter().map(|(_, value)| value).collect()
    }

    /// Whether a line names this number; `*` does not count.
    pub fn names(&self, number: u32) -> bool {
        self.lines
            .iter()
            .any(|line| line.subject == Subject::Gpu(number))
    }

    /// Returns the driver time of a second of the script, in microseconds.
    pub fn driver_us(&self, at: f64) -> u64 {
        self.epoch_us + (at * 1e6) as u64
    }

    /// Applies what the script sets for a call of `symbol`: its cost, a hang, an error. Logs the call if requested.
    pub fn check_call(gpu: Option<u32>, symbol: &str) -> Result<Self, nvmlReturn_t> {
        let began = Instant::now();
        let mut script = Self::read();
        let cost_ms = script.cost_ms(gpu, symbol);
        if script.raw(None, "log", script.now).is_some() {
            crate::log::write(script.now, gpu, symbol, cost_ms);
        }
        if cost_ms > 0.0 {
            std::thread::sleep(Duration::from_micros((cost_ms * 1000.0) as u64));
        }
        while began.elapsed().as_secs_f64() < script.hang(gpu, symbol) {
            std::thread::sleep(Duration::from_millis(5));
            script = Self::read();
        }
        let one = format!("fail.{symbol}");
        let all = gpu.map(|_| (gpu, "fail"));
        let error = [all, Some((gpu, &one)), Some((None, &one))]
            .into_iter()
            .flatten()
            .filter_map(|(subject, key)| script.raw(subject, key, script.now))
            .find(|error| *error != "no");
        match error {
            Some(error) => Err(error_number(error)),
            None => Ok(script),
        }
    }

    fn cost_ms(&self, gpu: Option<u32>, symbol: &str) -> f64 {
        let one = format!("cost.{symbol}");
        let at = |gpu| self.number(gpu, &one, 0.0).unwrap_or(0.0);
        gpu.map_or(0.0, |gpu| at(Some(gpu))).max(at(None))
    }

    fn hang(&self, gpu: Option<u32>, symbol: &str) -> f64 {
        let one = format!("hang.{symbol}");
        let at = |gpu, key: &str| self.number(gpu, key, 0.0).unwrap_or(0.0);
        let all = gpu.map_or(0.0, |_| at(gpu, "hang"));
        all.max(at(gpu, &one)).max(at(None, &one))
    }

    fn raw(&self, gpu: Option<u32>, key: &str, at: f64) -> Option<&str> {
        let subject = gpu.map_or(Subject::Driver, Subject::Gpu);
        self.lines
            .iter()
            .rev()
            .filter(|line| line.from <= at)
            .filter(|line| {
                let every =
                    gpu.is_some_and(|gpu| !is_instance(gpu)) && line.subject == Subject::EveryGpu;
                line.subject == subject || every
            })
            .find_map(|line| line.pairs.iter().find(|(name, _)| name == key))
            .map(|(_, value)| value.as_str())
    }
}

fn line(text: &str) -> Option<Line> {
    let mut words = text.split('#').next()?.split_whitespace().peekable();
    let from = match words.peek()?.strip_prefix('@') {
        Some(seconds) => {
            words.next();
            seconds.parse().ok()?
        }
        None => f64::NEG_INFINITY,
    };
    let subject = match words.next()? {
        "sys" => Subject::Driver,
        _ => match words.next()? {
            "*" => Subject::EveryGpu,
            number => Subject::Gpu(match number.split_once('.') {
                Some((gpu, place)) => instance(gpu.parse().ok()?, place.parse().ok()?),
                None => number.parse().ok()?,
            }),
        },
    };
    let pairs = words
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Some(Line {
        from,
        subject,
        pairs,
    })
}

/// Returns a number, or the value of a square wave `A~B/P` at a time.
fn wave(text: &str, at: f64) -> f64 {
    let Some((first, rest)) = text.split_once('~') else {
        return number(text);
    };
    let (second, period) = rest.split_once('/').unwrap_or((rest, "1"));
    let in_first_half = (at / number(period)).rem_euclid(1.0) < 0.5;
    number(if in_first_half { first } else { second })
}

/// Returns the integral of a number, or of a square wave `A~B/P`, from second 0 to `to`.
fn wave_sum(text: &str, to: f64) -> f64 {
    let Some((first, rest)) = text.split_once('~') else {
        return number(text) * to;
    };
    let (second, period) = rest.split_once('/').unwrap_or((rest, "1"));
    let (first, second, period) = (number(first), number(second), number(period));
    let half = period / 2.0;
    let whole = (to / period).floor();
    let rest = to - whole * period;
    whole * half * (first + second) + rest.min(half) * first + (rest - half).max(0.0) * second
}

/// Parses a number with an optional binary multiple.
pub fn number(text: &str) -> f64 {
    let multiple = match text.chars().last() {
        Some('K') => 1024.0,
        Some('M') => 1024.0_f64.powi(2),
        Some('G') => 1024.0_f64.powi(3),
        _ => 1.0,
    };
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    digits.parse().unwrap_or(0.0) * multiple
}

pub fn error_number(name: &str) -> nvmlReturn_t {
    match name {
        "not-supported" => nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        "no-permission" => nvmlReturn_enum_NVML_ERROR_NO_PERMISSION,
        "not-found" => nvmlReturn_enum_NVML_ERROR_NOT_FOUND,
        "not-loaded" => nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED,
        "timeout" => nvmlReturn_enum_NVML_ERROR_TIMEOUT,
        "lost" => nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST,
        "reset" => nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED,
        "mismatch" => nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        number => number.parse().unwrap_or(nvmlReturn_enum_NVML_ERROR_UNKNOWN),
    }
}

/// Returns `$FAKE_NVML`, or else `nvml.script` beside the file that this code was loaded from.
pub fn path() -> PathBuf {
    if let Some(script) = std::env::var_os("FAKE_NVML") {
        return script.into();
    }
    static BESIDE: OnceLock<PathBuf> = OnceLock::new();
    BESIDE
        .get_or_init(|| {
            let here = path as fn() -> PathBuf as usize;
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            maps.lines()
                .find_map(|line| {
                    let (from, rest) = line.split_once('-')?;
                    let (to, rest) = rest.split_once(' ')?;
                    let range = usize::from_str_radix(from, 16).ok()?
                        ..usize::from_str_radix(to, 16).ok()?;
                    let library = PathBuf::from(&rest[rest.find('/')?..]);
                    range.contains(&here).then_some(library)
                })
                .map_or_else(
                    || "nvml.script".into(),
                    |library| library.with_file_name("nvml.script"),
                )
        })
        .clone()
}
