//! The script of the driver, from the environment.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;

#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) devices: i32,
    pub(crate) pools: bool,
    /// Nanoseconds.
    pub(crate) late: u64,
    faults: Vec<Fault>,
    log: Option<File>,
}

#[derive(Debug)]
struct Fault {
    symbol: String,
    code: i32,
    /// Calls that still succeed before the fault.
    spared: u64,
}

impl Script {
    pub(crate) fn read() -> Self {
        let log = env::var_os("FAKE_CUDA_LOG").map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.expect("the log can be written")
        });
        let faults = env::var("FAKE_CUDA_FAIL").unwrap_or_default();
        Self {
            devices: number("FAKE_CUDA_DEVICES", 1),
            pools: number("FAKE_CUDA_POOLS", 1) != 0,
            late: u64::from(number("FAKE_CUDA_LATE_US", 5).unsigned_abs()) * 1000,
            faults: faults
                .split(',')
                .filter(|f| !f.is_empty())
                .map(Fault::read)
                .collect(),
            log,
        }
    }

    pub(crate) fn steps_the_clock() -> bool {
        env::var_os("FAKE_CUDA_CLOCK").is_some_and(|clock| clock == "stepped")
    }

    /// Returns the error code that the script sets for this call.
    pub(crate) fn fault(&mut self, symbol: &str) -> Option<i32> {
        let fault = self
            .faults
            .iter_mut()
            .find(|fault| fault.symbol == symbol)?;
        if fault.spared > 0 {
            fault.spared -= 1;
            return None;
        }
        Some(fault.code)
    }

    pub(crate) fn log(&mut self, line: &str) {
        if let Some(log) = &mut self.log {
            log.write_all(format!("{line}\n").as_bytes())
                .expect("the log can be written");
        }
    }
}

impl Fault {
    fn read(text: &str) -> Self {
        let (symbol, rest) = text.split_once('=').expect("SYMBOL=CODE");
        let (code, nth) = rest.split_once('@').unwrap_or((rest, "1"));
        let nth: u64 = nth.parse().expect("SYMBOL=CODE@N");
        Self {
            symbol: symbol.to_owned(),
            code: code.parse().expect("a code is a number"),
            spared: nth - 1,
        }
    }
}

fn number(variable: &str, without: i32) -> i32 {
    env::var(variable).map_or(without, |text| text.parse().expect("a number"))
}
