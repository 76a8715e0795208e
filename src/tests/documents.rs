//! Checks that each test named in a document exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DOCUMENTS: [&str; 2] = ["docs/reliability.md", "docs/security.md"];

/// Adds the names of all functions in the Rust files below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| {
                let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                name.map(str::to_owned).next()
            });
            found.extend(names);
        }
    }
}

/// Returns words in code font with at least three underscores, which are names of tests.
fn named(document: &str) -> impl Iterator<Item = &str> {
    let spans = document.split('`').skip(1).step_by(2);
    spans.filter(|span| span.matches('_').count() >= 3 && !span.contains(['/', ' ', '-']))
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for folder in ["src", "tests"] {
        functions(&root.join(folder), &mut found);
    }
    let scenarios = fs::read_dir(root.join("tests/scenarios")).unwrap();
    found.extend(scenarios.map(|file| file.unwrap().file_name().display().to_string()));
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let (mut count, mut absent) = (0, Vec::new());
        for name in named(&text) {
            count += 1;
            if !found.contains(name) {
                absent.push(name);
            }
        }
        assert!(count > 0, "{document} names no test");
        assert!(absent.is_empty(), "{document}: no such test: {absent:?}");
    }
}
