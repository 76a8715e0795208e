//! Who may use whom: reads the sources and fails on an arrow that is not in the table, on a foreign crate
//! outside its place, and on a file that has grown too long to be read at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with the modules that it may name. Data flows from the top to the bottom.
const ARROWS: [(&str, &[&str]); 33] = [
    ("units", &[]),
    ("regular_file", &[]),
    ("last_lines", &["units"]),
    ("error", &["units"]),
    ("action", &[]),
    ("foreign", &[]),
    ("loaders", &[]),
    ("logging", &["error"]),
    ("sample", &["units"]),
    ("job", &["units"]),
    ("probe", &["units"]),
    ("record", &["regular_file", "sample", "units"]),
    (
        "source",
        &[
            "error",
            "foreign",
            "job",
            "loaders",
            "probe",
            "record",
            "regular_file",
            "sample",
            "units",
        ],
    ),
    ("launch", &["job", "probe", "units"]),
    ("model", &["sample", "units"]),
    ("verdict", &["loaders", "model", "sample", "units"]),
    ("report", &["model", "sample", "units", "verdict"]),
    ("engine", &["model", "report", "sample", "units", "verdict"]),
    ("output", &["job", "report", "units"]),
    ("diff", &["report", "units"]),
    ("config", &["action", "regular_file", "units"]),
    (
        "ui",
        &[
            "action",
            "config",
            "job",
            "last_lines",
            "model",
            "sample",
            "units",
            "verdict",
        ],
    ),
    ("options", &["error", "units", "verdict"]),
    ("doctor", &["loaders", "sample", "source", "units"]),
    ("terminal", &["foreign"]),
    (
        "headless",
        &[
            "engine", "error", "job", "output", "record", "report", "sample", "source", "verdict",
        ],
    ),
    (
        "serve",
        &[
            "engine",
            "error",
            "job",
            "model",
            "regular_file",
            "report",
            "sample",
            "source",
            "units",
            "verdict",
        ],
    ),
    (
        "app",
        &[
            "action",
            "config",
            "engine",
            "job",
            "last_lines",
            "launch",
            "model",
            "output",
            "record",
            "report",
            "sample",
            "serve",
            "source",
            "terminal",
            "ui",
            "units",
            "verdict",
        ],
    ),
    (
        "fleet",
        &[
            "action", "app", "config", "error", "terminal", "ui", "units",
        ],
    ),
    (
        "setup",
        &[
            "app", "config", "error", "headless", "job", "launch", "options", "record", "serve",
            "source", "units", "verdict",
        ],
    ),
    (
        "lab",
        &[
            "action",
            "app",
            "config",
            "engine",
            "error",
            "foreign",
            "job",
            "last_lines",
            "launch",
            "model",
            "options",
            "probe",
            "sample",
            "setup",
            "source",
            "terminal",
            "ui",
            "units",
            "verdict",
        ],
    ),
    ("cli", &["error", "lab", "options", "units", "verdict"]),
    (
        "start",
        &[
            "app",
            "cli",
            "config",
            "diff",
            "doctor",
            "engine",
            "error",
            "fleet",
            "headless",
            "job",
            "lab",
            "launch",
            "loaders",
            "logging",
            "options",
            "output",
            "record",
            "regular_file",
            "report",
            "sample",
            "serve",
            "setup",
            "source",
            "units",
            "verdict",
        ],
    ),
];

/// Crates that only one part may know, with the modules that make it up.
const PLACES: [(&str, &[&str]); 31] = [
    ("zstd", &["record"]),
    ("nix", &["source"]),
    ("nvml_wrapper", &["source"]),
    ("nvml_wrapper_sys", &["source"]),
    ("procfs", &["launch", "source"]),
    ("sysinfo", &["doctor", "launch"]),
    ("py_spy", &["source"]),
    ("remoteprocess", &["source"]),
    ("console", &["last_lines"]),
    ("signal_hook", &["launch"]),
    ("terminal_colorsaurus", &["terminal"]),
    (
        "ratatui",
        &["app", "config", "fleet", "lab", "terminal", "ui"],
    ),
    (
        "crossterm",
        &["app", "config", "doctor", "fleet", "lab", "terminal"],
    ),
    ("tokio", &["app", "fleet", "lab", "serve"]),
    ("hyper", &["serve"]),
    ("hyper_util", &["serve"]),
    ("http_body_util", &["serve"]),
    ("ureq", &["fleet"]),
    ("base64", &["fleet", "serve"]),
    ("bcrypt", &["serve"]),
    ("serde_saphyr", &["serve"]),
    ("tokio_rustls", &["serve"]),
    ("clap", &["cli", "config", "lab", "options", "setup"]),
    ("cudarc", &["lab"]),
    ("memmap2", &["lab"]),
    ("zune_jpeg", &["lab"]),
    ("jpeg_encoder", &["lab"]),
    ("fastrand", &["lab"]),
    ("indicatif", &["lab"]),
    ("rand_chacha", &["lab"]),
    ("rand_distr", &["lab"]),
];

/// Lines of a file, its inline tests not counted.
const LONGEST: usize = 400;

/// Every source file with the top module that it belongs to.
fn sources() -> Vec<(String, PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(&root).unwrap();
            let top = inside.iter().next().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            (
                top.trim_end_matches(".rs").to_owned(),
                inside.to_owned(),
                text,
            )
        })
        .filter(|(top, path, _)| {
            let is_test = path.iter().any(|folder| folder == "tests");
            top != "main" && top != "lib" && top != "tests" && !is_test
        })
        .collect()
}

/// Words that follow `crate::`, also in `crate::{a, b}`.
fn named_modules(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let list = rest.strip_prefix('{').and_then(|list| list.split_once('}'));
        let names = list.map_or(rest, |(names, _)| names);
        let names = if list.is_some() {
            names.split(',').collect()
        } else {
            vec![names]
        };
        for name in names {
            let name: String = name
                .trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            found.insert(name);
        }
    }
    found
}

#[test]
fn modules_name_only_what_the_table_allows() {
    for (top, path, text) in sources() {
        let allowed = ARROWS.iter().find(|(module, _)| *module == top);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{top} is not in the table"));
        for name in named_modules(&text) {
            let inside = name == top || allowed.contains(&name.as_str());
            assert!(
                inside,
                "{} names crate::{name}: an arrow against the flow",
                path.display()
            );
        }
    }
}

#[test]
fn the_table_has_no_circle() {
    // Each module may only name modules that stand above it, so the order of the table is the proof.
    for (at, (module, allowed)) in ARROWS.iter().enumerate() {
        for name in *allowed {
            let above = ARROWS[..at].iter().any(|(known, _)| known == name);
            assert!(
                above,
                "{module} may name {name}, which does not stand above it"
            );
        }
    }
}

#[test]
fn foreign_crates_stay_in_their_places() {
    for (top, path, text) in sources() {
        for (name, places) in PLACES {
            // `unix::` is no `nix::`.
            let begins =
                |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let path_of_it = format!("{name}::");
            let used = text.match_indices(&path_of_it).any(|(at, _)| begins(at));
            let inside = places.contains(&top.as_str());
            assert!(
                !used || inside,
                "{} uses {name}, which belongs to {places:?}",
                path.display()
            );
        }
    }
}

#[test]
fn every_file_says_what_it_holds_and_stays_readable() {
    for (_, path, text) in sources() {
        let is_test = ["tests.rs", "literals.rs", "scenarios.rs"]
            .iter()
            .any(|name| path.ends_with(name));
        assert!(
            is_test || text.starts_with("//! "),
            "{} has no //! line",
            path.display()
        );
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let lines = code.lines().count();
        assert!(
            is_test || lines <= LONGEST,
            "{} has {lines} lines, more than {LONGEST}",
            path.display()
        );
    }
}

#[test]
fn named_modules_are_found_in_every_form() {
    let text =
        "use crate::model::Rates;\nuse crate::{sample, units::Share};\nlet a = crate::job::x();";
    let names: Vec<_> = named_modules(text).into_iter().collect();
    assert_eq!(names, ["job", "model", "sample", "units"]);
}
