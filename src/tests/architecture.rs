//! Which folder may use which: reads the sources, and fails on a dependency that is not in the table, on an external
//! crate outside its place, on two types with the same name, and on a file that is too long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with the modules that it may name. Data flows from the top to the bottom.
const ARROWS: [(&str, &[&str]); 37] = [
    ("units", &[]),
    ("background", &[]),
    ("plain_toml", &[]),
    ("regular_file", &[]),
    ("folders", &[]),
    ("last_lines", &["units"]),
    ("untrusted", &["units"]),
    ("error", &["units"]),
    ("action", &[]),
    ("foreign", &[]),
    (
        "loaders",
        &["folders", "plain_toml", "regular_file", "units"],
    ),
    ("logging", &["error"]),
    ("sample", &["units"]),
    ("job", &["units"]),
    ("probe", &["units"]),
    (
        "record",
        &[
            "background",
            "folders",
            "regular_file",
            "sample",
            "units",
            "untrusted",
        ],
    ),
    (
        "source",
        &[
            "background",
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
    (
        "launch",
        &["background", "folders", "job", "loaders", "probe", "units"],
    ),
    ("model", &["sample", "units"]),
    ("verdict", &["loaders", "model", "sample", "units"]),
    ("report", &["model", "sample", "units", "verdict"]),
    ("engine", &["model", "report", "sample", "units", "verdict"]),
    ("output", &["job", "report", "units"]),
    ("diff", &["report", "units"]),
    (
        "config",
        &["action", "folders", "plain_toml", "regular_file", "units"],
    ),
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
    ("options", &["config", "error", "job", "units", "verdict"]),
    (
        "doctor",
        &["config", "loaders", "sample", "source", "units"],
    ),
    ("terminal", &["background", "foreign"]),
    (
        "headless",
        &[
            "engine", "error", "job", "output", "record", "report", "sample", "source", "units",
            "verdict",
        ],
    ),
    (
        "serve",
        &[
            "background",
            "engine",
            "error",
            "folders",
            "job",
            "model",
            "options",
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
            "background",
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
            "action",
            "app",
            "background",
            "config",
            "error",
            "terminal",
            "ui",
            "units",
            "untrusted",
            "verdict",
        ],
    ),
    (
        "setup",
        &[
            "app", "config", "error", "headless", "job", "launch", "loaders", "options", "record",
            "serve", "source", "units", "verdict",
        ],
    ),
    (
        "lab",
        &[
            "action",
            "app",
            "background",
            "config",
            "engine",
            "error",
            "folders",
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
    (
        "cli",
        &[
            "config",
            "error",
            "job",
            "lab",
            "options",
            "plain_toml",
            "units",
            "verdict",
        ],
    ),
    (
        "start",
        &[
            "app",
            "background",
            "cli",
            "config",
            "diff",
            "doctor",
            "engine",
            "error",
            "fleet",
            "folders",
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
            "untrusted",
            "verdict",
        ],
    ),
];

/// Crates that only one part may use, with the modules of that part.
const PLACES: [(&str, &[&str]); 33] = [
    ("zstd", &["record"]),
    ("libc", &["launch", "source"]),
    ("nix", &["source"]),
    ("nvml_wrapper", &["source"]),
    ("nvml_wrapper_sys", &["source"]),
    ("procfs", &["lab", "launch", "source"]),
    ("sysinfo", &["doctor", "launch"]),
    ("py_spy", &["source"]),
    ("remoteprocess", &["source"]),
    ("console", &["last_lines"]),
    ("signal_hook", &["lab", "launch"]),
    ("signal_hook_registry", &["terminal"]),
    ("terminal_colorsaurus", &["terminal"]),
    (
        "ratatui",
        &["app", "config", "fleet", "lab", "terminal", "ui"],
    ),
    (
        "crossterm",
        &["app", "config", "doctor", "fleet", "lab", "terminal"],
    ),
    ("tokio", &["app", "background", "fleet", "serve"]),
    ("hyper", &["serve"]),
    ("hyper_util", &["serve"]),
    ("http_body_util", &["serve"]),
    ("ureq", &["fleet"]),
    ("base64", &["fleet", "serve"]),
    ("bcrypt", &["serve"]),
    ("serde_saphyr", &["serve"]),
    ("tokio_rustls", &["serve"]),
    ("clap", &["cli", "config", "lab", "options"]),
    ("cudarc", &["lab"]),
    ("memmap2", &["lab"]),
    ("zune_jpeg", &["lab"]),
    ("jpeg_encoder", &["lab"]),
    ("fastrand", &["lab"]),
    ("indicatif", &["lab"]),
    ("rand_chacha", &["lab"]),
    ("rand_distr", &["lab"]),
];

/// Most lines of a file, without its inline tests.
const MAX_LINES: usize = 400;

/// Returns every source file with the top module that it belongs to.
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

/// Returns the words after `crate::`, including those in `crate::{a, b}`.
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

/// Returns the file's code without its inline tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}

/// Whether the file holds only tests.
fn is_test(path: &Path) -> bool {
    ["tests.rs", "literals.rs", "scenarios.rs"]
        .iter()
        .any(|name| path.ends_with(name))
}

/// Returns the name of the type, trait or type alias whose definition begins on this line.
fn defined_type(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => code,
    };
    let (keyword, rest) = code.trim_start().split_once(' ')?;
    let defines = match keyword {
        "struct" | "enum" | "union" | "trait" => true,
        // The associated types of a trait are indented.
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (defines && !name.is_empty()).then_some(name)
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
    // Each module may only name modules above it, so the order of the table proves that there is no cycle.
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
            // `unix::` is not `nix::`.
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
        let is_test = is_test(&path);
        assert!(
            is_test || text.starts_with("//! "),
            "{} has no //! line",
            path.display()
        );
        let lines = without_tests(&text).lines().count();
        assert!(
            is_test || lines <= MAX_LINES,
            "{} has {lines} lines, more than {MAX_LINES}",
            path.display()
        );
    }
}

#[test]
fn no_two_types_have_one_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, path, text) in sources().iter().filter(|(_, path, _)| !is_test(path)) {
        for (number, line) in (1..).zip(without_tests(text).lines()) {
            if let Some(name) = defined_type(line) {
                let place = format!("src/{}:{number}", path.display());
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(!places.is_empty());
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(
        shared.is_empty(),
        "types that share a name:\n{}",
        shared.join("\n")
    );
}

#[test]
fn type_definitions_are_found_in_every_form() {
    let lines = [
        "struct One;",
        "pub(in crate::ui) enum Two<'a> {",
        "    type Item = u8;",
        "pub trait Three: Sync {",
        "    pub struct Four(u8);",
        "pub type Five = u8;",
        "// struct Comment",
        "let structure = 1;",
    ];
    let names: Vec<_> = lines.into_iter().filter_map(defined_type).collect();
    assert_eq!(names, ["One", "Two", "Three", "Four", "Five"]);
}

#[test]
fn named_modules_are_found_in_every_form() {
    let text =
        "use crate::model::Rates;\nuse crate::{sample, units::Share};\nlet a = crate::job::x();";
    let names: Vec<_> = named_modules(text).into_iter().collect();
    assert_eq!(names, ["job", "model", "sample", "units"]);
}
