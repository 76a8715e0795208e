//! Shortens a command line: the script replaces the interpreter.
//!
//! Pure. Words are separated by spaces, so a word that contains a space looks like two.

use std::ffi::OsString;

/// Python's long option that takes the next word as its value.
const HASH_CHECK: &str = "--check-hash-based-pycs";

/// Returns `train.py --lr 1` for `/usr/bin/python3 -u /home/me/train.py --lr 1`: without the folder of the program, and
/// for Python without the interpreter and its options. Returns the whole line if Python runs neither a script nor a
/// module.
pub fn script(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let Some((program, arguments)) = words.split_first() else {
        return line.to_owned();
    };
    let program = file_name(program);
    if program == "pipetop" && arguments.first() == Some(&"builtin-trainer") {
        return "pipetop demo".to_owned();
    }
    if !program.starts_with("python") {
        return joined(program, arguments);
    }
    match after_options(arguments, |_| {}) {
        PythonTarget::Script(script, arguments) => joined(file_name(script), arguments),
        PythonTarget::Module(module, arguments) => joined(module, arguments),
        PythonTarget::Code => joined(program, arguments),
        PythonTarget::Nothing => line.to_owned(),
    }
}

/// Returns the script or module that Python runs; a later start of the same job has the same one.
pub fn script_name(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let (program, arguments) = words.split_first()?;
    let python = file_name(program).starts_with("python");
    match after_options(python.then_some(arguments)?, |_| {}) {
        PythonTarget::Script(script, _) => Some(file_name(script).to_owned()),
        PythonTarget::Module(module, _) => Some(module.to_owned()),
        PythonTarget::Code | PythonTarget::Nothing => None,
    }
}

/// Returns the option that keeps the hook out of a Python command: `S` in `python -uS` skips `site`, `E` and `I` ignore
/// `PYTHONPATH`. `None` if the command has no such option or is not a Python.
pub fn keeps_hook_out(command: &[OsString]) -> Option<char> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let mut option = None;
    if let Some((program, arguments)) = words.split_first()
        && file_name(program).starts_with("python")
    {
        after_options(arguments, |letters| {
            option = letters.chars().find(|c| "SEI".contains(*c)).or(option);
        });
    }
    option
}

/// What Python runs, with its arguments.
enum PythonTarget<'a> {
    Script(&'a str, &'a [&'a str]),
    Module(&'a str, &'a [&'a str]),
    /// `-c`: the end of the code and the start of the arguments are not known.
    Code,
    /// Code from its standard input.
    Nothing,
}

/// Skips Python's own options, as listed by `python --help-all`: letters can be combined, and `W`, `X`, `c` and `m`
/// take the rest of their word, or else the next word. `letters` is called with the other letters of each word.
fn after_options<'a>(mut words: &'a [&'a str], mut letters: impl FnMut(&str)) -> PythonTarget<'a> {
    while let [word, rest @ ..] = words {
        match word.strip_prefix('-') {
            None => return PythonTarget::Script(word, rest),
            Some("") => break,
            Some("-") => {
                return match rest {
                    [script, rest @ ..] => PythonTarget::Script(script, rest),
                    [] => PythonTarget::Nothing,
                };
            }
            Some(_) => words = rest,
        }
        if word.starts_with("--") {
            if *word == HASH_CHECK {
                words = words.get(1..).unwrap_or_default();
            }
            continue;
        }
        let Some((before, value)) = word.split_once(['W', 'X', 'c', 'm']) else {
            letters(word);
            continue;
        };
        letters(before);
        let option = word.as_bytes().get(before.len());
        if option == Some(&b'c') {
            return PythonTarget::Code;
        }
        let value = if value.is_empty() {
            let Some((value, rest)) = words.split_first() else {
                break;
            };
            words = rest;
            value
        } else {
            value
        };
        if option == Some(&b'm') {
            return PythonTarget::Module(value, words);
        }
    }
    PythonTarget::Nothing
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn joined(first: &str, rest: &[&str]) -> String {
    let words: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{keeps_hook_out, script, script_name};

    #[test]
    fn the_next_start_of_a_job_has_the_script_or_module_of_the_last() {
        for (line, name) in [
            (
                "/usr/bin/python3 -u /home/me/train.py --lr 1",
                Some("train.py"),
            ),
            ("python -m package.train train.py", Some("package.train")),
            ("python3 -c import train", None),
            ("python3", None),
            ("pipetop builtin-trainer {}", None),
        ] {
            assert_eq!(script_name(line).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn a_python_that_loads_no_hook_is_known_by_its_own_options() {
        let option = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            keeps_hook_out(&words)
        };
        for (line, letter) in [
            ("python -S t.py", 'S'),
            ("/usr/bin/python3 -u -OS t.py", 'S'),
            ("python3 -W x -S t.py", 'S'),
            ("python3 -I t.py", 'I'),
            ("python3 -uE -s t.py", 'E'),
        ] {
            assert_eq!(option(line), Some(letter), "{line}");
        }
        for line in [
            "python t.py -S",
            "python -m S -S",
            "python -c S",
            "python -W S t.py",
            "python -XS t.py",
            "torchrun -S",
            "python",
        ] {
            assert_eq!(option(line), None, "{line}");
        }
    }

    #[test]
    fn the_script_stands_for_the_command() {
        for (line, expected) in [
            (
                "/usr/bin/python3 -u /home/me/train.py --lr 1",
                "train.py --lr 1",
            ),
            ("python3", "python3"),
            ("/usr/bin/python3 -q", "/usr/bin/python3 -q"),
            ("./bench", "bench"),
            ("pipetop builtin-trainer --parent=7", "pipetop demo"),
            (
                "/opt/torchrun --nproc 2 a/train.py",
                "torchrun --nproc 2 a/train.py",
            ),
            ("", ""),
            // Options with a value: in the next word, or joined.
            ("python3 -W ignore train.py 6", "train.py 6"),
            ("python3 -Wignore train.py 6", "train.py 6"),
            (
                "python3 -X dev -W error::UserWarning train.py -m x",
                "train.py -m x",
            ),
            ("python3 -Xfrozen_modules=off -OO train.py", "train.py"),
            ("python3 -uW ignore train.py", "train.py"),
            ("python3 -BuWignore train.py", "train.py"),
            (
                "python3 --check-hash-based-pycs always train.py",
                "train.py",
            ),
            (
                "python3 -m torch.distributed.run t.py",
                "torch.distributed.run t.py",
            ),
            (
                "python3 -Im torch.distributed.run t.py",
                "torch.distributed.run t.py",
            ),
            ("python3 -mrun t.py", "run t.py"),
            ("python3 -X dev -m run -W x", "run -W x"),
            (
                "/usr/bin/python3 -u -c import x; x.main() 1",
                "python3 -u -c import x; x.main() 1",
            ),
            ("python3 -cprint(1)", "python3 -cprint(1)"),
            // The end of the options.
            ("python3 -u -- -odd.py 1", "-odd.py 1"),
            ("python3 - 1", "python3 - 1"),
            ("python3 python_train.py", "python_train.py"),
            ("python3 -W", "python3 -W"),
            ("python3 --", "python3 --"),
            (
                "python3 --check-hash-based-pycs",
                "python3 --check-hash-based-pycs",
            ),
        ] {
            assert_eq!(script(line), expected, "{line}");
        }
    }
}
