//! Torch versions unknown to the hook, simulated by a stand-in of its module.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::stand::{HookSession, Run, each_python};

/// Writes a stand-in of torch to a directory on the path.
fn stub(folder: &Path, dataloader: &str) {
    let data = folder.join("torch/utils/data");
    fs::create_dir_all(&data).expect("a folder");
    for package in ["torch", "torch/utils"] {
        fs::write(folder.join(package).join("__init__.py"), "").expect("written");
    }
    fs::write(data.join("__init__.py"), "def get_worker_info(): pass\n").expect("written");
    fs::write(data.join("dataloader.py"), dataloader).expect("written");
    let cuda = include_str!("fake_cuda.py");
    fs::create_dir(folder.join("torch/cuda")).expect("a folder");
    fs::write(folder.join("torch/cuda/__init__.py"), cuda).expect("written");
}

/// Runs `script` after `import torch.utils.data.dataloader as d`, with this stand-in of that module.
pub(crate) fn with_stub(python: &str, dataloader: &str, script: &str) -> Run {
    with_stub_as(python, &[], dataloader, script)
}

/// Runs the same with these options of Python.
fn with_stub_as(python: &str, options: &[&str], dataloader: &str, script: &str) -> Run {
    let stand = HookSession::new();
    let folder = stand.folder.path().join("stub");
    stub(&folder, dataloader);
    let script = format!(
        "import sys\nsys.path.insert(0, '{}')\nimport torch.utils.data.dataloader as d\n{script}",
        folder.display()
    );
    let mut command = Command::new(python);
    stand.run(command.args(options).args(["-c", &script]))
}

pub(crate) const ITERATOR: &str = "
class _BaseDataLoaderIter:
    def __init__(self, batches): self.batches = batches
    def __next__(self):
        if not self.batches: raise StopIteration
        return self.batches.pop()
    def __iter__(self): return self
class DataLoader:
    def __init__(self, batches): self.batches = batches
    def __iter__(self): return _BaseDataLoaderIter(self.batches)
";

#[test]
fn an_unknown_torch_is_left_alone_and_reported() {
    each_python(|python| {
        let run = with_stub(python, "it = 7\n", "print(d.it)");
        assert_eq!(
            run.words(),
            (Some(0), "7\n".to_owned(), String::new()),
            "{python}"
        );
        let notice = run.notice().expect("it says why");
        assert!(notice.contains("_BaseDataLoaderIter"), "{notice}");

        // The first batch fails: such an iterator does not support weak references.
        let slots = ITERATOR.replace(
            "    def __init__",
            "    __slots__ = ['batches']\n    def __init__",
        );
        let script = "print(list(d._BaseDataLoaderIter([1, 2])), list(d._BaseDataLoaderIter([3])))";
        let run = with_stub(python, &slots, script);
        assert_eq!(
            run.words(),
            (Some(0), "[2, 1] [3]\n".to_owned(), String::new())
        );
        let report = run.report();
        assert_eq!(report.totals.steps, 0);
        let notice = report.notice.as_deref().expect("it says why");
        assert!(notice.contains("after an error: TypeError"), "{notice}");

        // Without an error, the stand-in is timed.
        let run = with_stub(python, ITERATOR, script);
        assert_eq!(
            run.words(),
            (Some(0), "[2, 1] [3]\n".to_owned(), String::new())
        );
        let report = run.report();
        assert_eq!((report.totals.steps, &report.notice), (3, &None));
    });
}

#[test]
fn python_without_pythonpath_or_site_runs_unwatched() {
    let script = "print(list(d._BaseDataLoaderIter([1, 2])), 'pipetop_hook' in sys.modules)";
    each_python(|python| {
        for option in ["-I", "-E", "-S"] {
            let run = with_stub_as(python, &[option], ITERATOR, script);
            let expected = (Some(0), "[2, 1] False\n".to_owned(), String::new());
            assert_eq!(run.words(), expected, "{python} {option}");
            assert!(run.reports.is_empty());
        }
        // A script that replaces PYTHONPATH is not timed either.
        let child = format!(
            "import os, subprocess; run = [sys.executable, '-c', {inner:?}, sys.path[0]]
print(subprocess.run(run, env=dict(os.environ, PYTHONPATH='/none'), stdout=-1).stdout)",
            inner = "import sys; sys.path.insert(0, sys.argv[1]); import torch.utils.data.dataloader as d
print(list(d._BaseDataLoaderIter([1, 2])))"
        );
        let run = with_stub(python, ITERATOR, &child);
        let expected = (Some(0), "b'[2, 1]\\n'\n".to_owned(), String::new());
        assert_eq!(run.words(), expected, "{python}");
        assert!(run.reports.is_empty());
    });
}

#[test]
fn a_module_looks_unchanged_by_the_hook() {
    each_python(|python| {
        let script = "
c = d._BaseDataLoaderIter.__next__
print(type(d.__loader__).__name__, d.__spec__.loader is d.__loader__, 'exec_module' in vars(d.__loader__))
print(c.__name__, c.__qualname__, c.__module__)
try: d._BaseDataLoaderIter(None).__next__(7)
except TypeError as error: print(error)
import importlib
importlib.reload(d)
print(list(d._BaseDataLoaderIter([5])), hasattr(d._BaseDataLoaderIter.__next__, 'timed_by_pipetop'))";
        let run = with_stub(python, ITERATOR, script);
        let (code, text, errors) = run.words();
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "SourceFileLoader True False");
        let name = "__next__ _BaseDataLoaderIter.__next__ torch.utils.data.dataloader";
        assert_eq!(lines[1], name);
        assert!(lines[2].contains("positional argument"), "{text}");
        assert_eq!(lines[3], "[5] True");
    });
}
