//! No cyclic uses between files: reads the paths that every source file names, finds the file of each item, and fails
//! on files that use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The words of a path: `["crate", "model", "Rates"]`.
type Words = Vec<String>;

/// Most re-exports to follow to an item or a module; only cyclic names are deeper.
const MAX_DEPTH: usize = 10;

struct Import {
    path: Words,
    /// Whether it is a `pub use`.
    offered: bool,
}

/// The names in one source file.
#[derive(Default)]
struct SourceFile {
    /// The imported paths, by the name in this file.
    imports: BTreeMap<String, Import>,
    /// Paths of two or more words in the code.
    paths: BTreeSet<Words>,
    /// All words in the code.
    words: BTreeSet<String>,
}

/// All files, by the words of their module: `["source", "nvml"]`.
struct Sources(BTreeMap<Words, SourceFile>);

/// Flattens the code to words and signs, without comments and tests.
fn flat(code: TokenStream, flattened: &mut Words) {
    for token in code {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                };
                flattened.push(open.to_owned());
                flat(group.stream(), flattened);
                flattened.push(close.to_owned());
            }
            TokenTree::Punct(sign)
                if sign.as_char() == ':' && flattened.ends_with(&[":".into()]) =>
            {
                flattened.pop();
                flattened.push("::".to_owned());
            }
            TokenTree::Literal(_) => flattened.push("\"\"".to_owned()),
            token => flattened.push(token.to_string()),
        }
    }
}

/// Returns the number of words of the item that begins here, up to its `;` or its last brace.
fn item_length(code: &[String]) -> usize {
    let mut depth = 0;
    for (at, word) in code.iter().enumerate() {
        match word.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (word == ";" || word == "}") {
            return at + 1;
        }
    }
    code.len()
}

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

impl SourceFile {
    fn read(text: &str) -> Self {
        let mut code = Words::new();
        flat(TokenStream::from_str(text).unwrap(), &mut code);
        let mut file = Self::default();
        let mut at = 0;
        while at < code.len() {
            let rest = &code[at..];
            at += if rest.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"].map(Into::into)) {
                item_length(rest)
            } else if rest[0] == "use" {
                let length = item_length(rest);
                let offered = at > 0 && ["pub", ")"].contains(&code[at - 1].as_str());
                file.import(&rest[1..length], &[], offered);
                length
            } else if rest[0] == "mod" {
                // The name that is defined here, which is not a use.
                2
            } else if rest[0] == "." {
                // A field or a method follows.
                2
            } else {
                file.path(rest)
            };
        }
        file
    }

    /// Reads the path that begins here, and returns its number of words.
    fn path(&mut self, code: &[String]) -> usize {
        let mut path = Words::new();
        let mut rest = code;
        while let Some(word) = rest.first().filter(|word| is_word(word)) {
            path.push(word.clone());
            rest = &rest[1..];
            match rest {
                [colons, next, ..] if colons == "::" && is_word(next) => rest = &rest[1..],
                _ => break,
            }
        }
        self.words.extend(path.first().cloned());
        if path.len() > 1 {
            self.paths.insert(path);
        }
        (code.len() - rest.len()).max(1)
    }

    /// Reads the words between `use` and `;`, or one branch of them.
    fn import(&mut self, code: &[String], above: &[String], offered: bool) {
        let mut path = above.to_owned();
        for (at, word) in code.iter().enumerate() {
            match word.as_str() {
                "{" => {
                    let mut branches = &code[at + 1..];
                    while !branches.is_empty() {
                        let mut depth = 0;
                        let ends = |word: &String| {
                            depth += i32::from(word == "{") - i32::from(word == "}");
                            depth < 0 || depth == 0 && word == ","
                        };
                        let length = branches.iter().position(ends).unwrap_or(branches.len());
                        self.import(&branches[..length], &path, offered);
                        branches = branches.get(length + 1..).unwrap_or_default();
                    }
                    return;
                }
                "as" => {
                    let name = code[at + 1].clone();
                    self.imports.insert(name, Import { path, offered });
                    return;
                }
                "self" if !path.is_empty() => {}
                // Clippy forbids glob imports, except in tests and in what the library exports to test programs.
                "*" => return,
                word if is_word(word) => path.push(word.to_owned()),
                _ => {}
            }
        }
        let named = path.len() > above.len() || code.first().is_some_and(|word| word == "self");
        if let Some(name) = path.last().filter(|_| named).cloned() {
            self.imports.insert(name, Import { path, offered });
        }
    }
}

impl Sources {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![root.clone()];
        let mut found = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                if ["tests", "literals", "scenarios", "main"].contains(&name) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                if path.extension().is_none_or(|extension| extension != "rs") {
                    continue;
                }
                let inside = path.strip_prefix(&root).unwrap().with_extension("");
                let words = inside.iter().map(|word| word.to_str().unwrap().to_owned());
                let module = words.filter(|word| word != "lib").collect();
                let text = fs::read_to_string(&path).unwrap();
                found.insert(module, SourceFile::read(&text));
            }
        }
        Self(found)
    }

    /// Returns the module that contains the item of this path. `None` for other crates, and for modules.
    fn place(&self, from: &[String], path: &[String], depth: usize) -> Option<Words> {
        let mut module = from.to_owned();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            first => {
                while rest.first().is_some_and(|word| word == "super") {
                    module.pop();
                    rest = &rest[1..];
                }
                let known = self.child(&module, first).is_some()
                    || self.0[&module].imports.contains_key(first);
                if rest.len() == path.len() && !known {
                    return None;
                }
            }
        }
        while let [word, behind @ ..] = rest {
            let import = self.0[&module].imports.get(word);
            let child = self.child(&module, word);
            match (import, child) {
                (_, Some(child)) if !behind.is_empty() || import.is_none() => module = child,
                (Some(import), _) if depth < MAX_DEPTH => {
                    let path = [import.path.as_slice(), behind].concat();
                    return self.place(&module, &path, depth + 1);
                }
                _ => return Some(module),
            }
            rest = behind;
        }
        None
    }

    fn child(&self, module: &[String], name: &str) -> Option<Words> {
        let child = [module, &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }

    /// Returns the files that a file uses, each with the paths that name it.
    fn uses(&self, module: &Words) -> BTreeMap<Words, BTreeSet<String>> {
        let file = &self.0[module];
        let imports = file.imports.iter();
        let needed = imports.filter(|(name, import)| !import.offered || file.words.contains(*name));
        let imported = needed.map(|(_, import)| &import.path);
        let mut uses = BTreeMap::new();
        for path in imported.chain(&file.paths) {
            if let Some(place) = self.place(module, path, 0).filter(|place| place != module) {
                let paths: &mut BTreeSet<_> = uses.entry(place).or_default();
                paths.insert(path.join("::"));
            }
        }
        uses
    }
}

/// The rule: a file uses another if it names an item in it, in a `use` or in a path, through any number of re-exports.
/// A `mod child;` is not a use, and neither is a `pub use child::Item` of a name that the file itself does not need:
/// so a parent may re-export the items of its children, and one child may use another's through it. Code under
/// `#[cfg(test)]` does not count.
#[test]
fn files_use_each_other_in_one_direction() {
    let sources = Sources::read();
    let modules = sources.0.keys();
    let uses: BTreeMap<_, _> = modules
        .map(|module| (module, sources.uses(module)))
        .collect();
    let reached_from = |module| {
        let mut reached = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            next.extend(uses[module].keys().filter(|used| reached.insert(*used)));
        }
        reached
    };
    let reached: BTreeMap<_, _> = uses
        .keys()
        .map(|module| (*module, reached_from(*module)))
        .collect();
    let pairs = uses
        .iter()
        .flat_map(|(module, used)| used.iter().map(move |used| (*module, used)));
    let circles: Vec<_> = pairs
        .filter(|(module, (other, _))| reached[*other].contains(*module))
        .map(|(module, (other, paths))| (module.join("::"), other.join("::"), paths))
        .collect();
    assert!(
        circles.is_empty(),
        "files that need each other: {circles:#?}"
    );
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "
        pub use child::{Offered, deep::{self, Deeper as Renamed}};
        use crate::model::Rates;
        /// Not crate::comment::Comment.
        fn f(a: &super::Above) -> [u8; child::LENGTH] { deep::run(\"crate::text\") }
        #[cfg(test)]
        mod tests { use crate::sample::Sample; }
    ";
    let file = SourceFile::read(text);
    let imports = file
        .imports
        .iter()
        .map(|(name, import)| format!("{name} {} {}", import.path.join("::"), import.offered));
    assert_eq!(
        imports.collect::<Vec<_>>(),
        [
            "Offered child::Offered true",
            "Rates crate::model::Rates false",
            "Renamed child::deep::Deeper true",
            "deep child::deep true",
        ]
    );
    let paths = file.paths.iter().map(|path| path.join("::"));
    assert_eq!(
        paths.collect::<Vec<_>>(),
        ["child::LENGTH", "deep::run", "super::Above"]
    );
}
