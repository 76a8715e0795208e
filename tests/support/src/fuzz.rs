//! Almost valid inputs: valid ones that were cut, mixed, repeated and changed.
//!
//! Tests that use them are named `fuzzed_...` and have `PROPTEST_CASES` cases, so that one command runs all of them for
//! as long as wanted.

pub use fastrand::Rng;
use proptest::prelude::{ProptestConfig, Strategy, any};

/// Default number of cases per test, which take about a second, even without optimisation.
const CASES: u32 = 4_000;
/// Inputs that break parsers: ends of number ranges, separators, bytes that are not text, and control characters.
const WORDS: [&[u8]; 22] = [
    b"",
    b" ",
    b"\n",
    b"\0",
    b"\t",
    b":",
    b"=",
    b"-",
    b",",
    b"/",
    b"(",
    b")",
    b"\\",
    b"\"",
    b"-1",
    b"0",
    b"4294967296",
    b"9223372036854775808",
    b"18446744073709551615",
    b"1e999",
    b"\xff\xfe",
    "\u{1b}[2J\u{e9}\u{202e}".as_bytes(),
];

pub fn cases() -> ProptestConfig {
    cases_or(CASES)
}

/// Returns the configuration of a test whose cases are so slow or so fast that it has another default number of them.
pub fn cases_or(few: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(few),
    }
}

/// Returns bytes made from one or several of `valid`.
pub fn bytes<T: AsRef<[u8]>, const N: usize>(valid: [T; N]) -> impl Strategy<Value = Vec<u8>> {
    any::<u64>().prop_map(move |seed| hurt(&valid, &mut Rng::with_seed(seed)))
}

/// Returns text made from one or several of `valid`.
pub fn text<T: AsRef<[u8]>, const N: usize>(valid: [T; N]) -> impl Strategy<Value = String> {
    bytes(valid).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn hurt<T: AsRef<[u8]>>(valid: &[T], rng: &mut Rng) -> Vec<u8> {
    let any = |rng: &mut Rng| valid[rng.usize(0..valid.len())].as_ref();
    let mut bytes = any(rng).to_vec();
    for _ in 0..rng.usize(0..8) {
        let (from, to) = range(bytes.len(), rng);
        match rng.u8(0..7) {
            0 => drop(bytes.drain(from..to)),
            1 => bytes.truncate(from),
            2 => drop(bytes.splice(from..from, WORDS[rng.usize(0..WORDS.len())].iter().copied())),
            // Replaces the word between two separators.
            3 => {
                let mark = |byte: &u8| !byte.is_ascii_alphanumeric();
                let to = bytes[from..]
                    .iter()
                    .position(mark)
                    .map_or(bytes.len(), |length| from + length);
                let from = bytes[..from]
                    .iter()
                    .rposition(mark)
                    .map_or(0, |before| before + 1);
                bytes.splice(from..to, WORDS[rng.usize(0..WORDS.len())].iter().copied());
            }
            4 => {
                let other = any(rng);
                let (first, last) = range(other.len(), rng);
                bytes.splice(from..to, other[first..last].iter().copied());
            }
            5 => bytes.extend_from_within(from..to),
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte = if rng.bool() {
                        rng.u8(..)
                    } else {
                        *byte ^ 1 << rng.u8(0..8)
                    };
                }
            }
        }
    }
    bytes
}

fn range(length: usize, rng: &mut Rng) -> (usize, usize) {
    let (one, other) = (rng.usize(0..=length), rng.usize(0..=length));
    (one.min(other), one.max(other))
}
