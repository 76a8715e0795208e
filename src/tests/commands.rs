//! Checks that each command shown in a document parses.

use std::fs;
use std::path::Path;

use crate::cli::{self, Stop};

/// Words that end a command.
const ENDS: [&str; 6] = ["|", "||", "&&", "&", ">", ";"];

/// Returns the Markdown files of the root and of `docs`.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [root.to_owned(), root.join("docs")]
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
    let paths = files.map(|entry| entry.path());
    let markdown = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    markdown
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

/// Returns what a user could type: lines of code blocks, and text in code font.
fn typed(document: &str) -> Vec<&str> {
    let (mut found, mut in_block) = (Vec::new(), false);
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            found.push(line.trim_start().trim_start_matches("$ "));
        } else {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// Returns the arguments of pipetop in a line that starts it, directly or with cargo.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().peekable();
    match words.next()? {
        "pipetop" => {}
        "sudo" if words.next() == Some("pipetop") => {}
        "cargo" if words.next() == Some("run") => drop(words.by_ref().find(|word| *word == "--")?),
        _ => return None,
    }
    let end = |word: &&str| !ENDS.contains(word) && !word.starts_with('#');
    Some(words.take_while(end).collect())
}

#[test]
fn every_command_that_a_document_shows_is_one() {
    let (mut count, mut mistakes) = (0, Vec::new());
    for (document, text) in documents() {
        for line in typed(&text) {
            let Some(arguments) = arguments(line) else {
                continue;
            };
            count += 1;
            // In a text of two words, the second may be just a subcommand, without its required arguments.
            let help = (arguments.len() == 1).then_some("--help");
            let words = ["pipetop"].into_iter().chain(arguments).chain(help);
            let parsed = cli::parse(words.map(Into::into));
            if let Err(Stop::Usage(wrong)) = parsed {
                mistakes.push(format!("{document}: {line}: {wrong}"));
            }
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(count > 50, "only {count} commands were found");
}
