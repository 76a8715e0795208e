//! What is known about loaders from the names of their functions: `config/loaders.toml`, and the user's own file.
//!
//! Does not depend on stacks, processes or verdicts.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::folders;
use crate::plain_toml::{Wrong, plain};
use crate::regular_file;
use crate::units::printable;

/// The names that are compiled in.
const OWN: &str = include_str!("../config/loaders.toml");
/// Maximum size of a file in bytes: a longer one is not a list of names.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The name of the user's file, beside the configuration.
pub(crate) const FILE: &str = "loaders.toml";

/// Suffix of the name of a function that runs in the sampler of a loader, which picks the samples of the next batch.
pub(crate) const IN_SAMPLER: &str = ", sampler";
/// Name of the wait of a thread that puts what it took into a full queue.
pub(crate) const FULL_QUEUE: &str = "a full queue";

/// All known names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Names {
    #[serde(default, rename = "loader")]
    pub loaders: Vec<KnownLoader>,
    #[serde(default)]
    not_data: Vec<NotData>,
    #[serde(default)]
    data_site: DataSite,
}

/// A loader, and what to change on it, in the loader's own terms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownLoader {
    pub name: String,
    #[expect(
        dead_code,
        reason = "for who reads the file; only its values are checked"
    )]
    source: NameSource,
    #[serde(default)]
    waits: Vec<Pattern>,
    #[serde(default)]
    gets: Vec<Pattern>,
    /// Methods that `pipetop run` times.
    #[serde(default)]
    hand_over: Vec<Method>,
    pub more: Option<String>,
    /// Kinds of workers whose number no setting changes: they only pass on what others load.
    #[serde(default)]
    fixed: Vec<Unit>,
    pub buffer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Processes,
    Threads,
}

impl KnownLoader {
    /// Returns whether no setting changes the number of processes or, with `threads`, of threads.
    pub(crate) fn is_fixed(&self, threads: bool) -> bool {
        let unit = if threads {
            Unit::Threads
        } else {
            Unit::Processes
        };
        self.fixed.contains(&unit)
    }
}

/// How reliable the names are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum NameSource {
    #[serde(rename = "measured")]
    Measured,
    #[serde(rename = "read in source")]
    Read,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotData {
    means: String,
    #[serde(default)]
    frames: Vec<Pattern>,
    /// Names of functions and methods written in C. They count only in a program that uses a device.
    #[serde(default)]
    calls: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DataSite {
    calls: Vec<Pattern>,
    hands_over: Vec<Pattern>,
    results: Vec<Pattern>,
    queues: Vec<Pattern>,
    takes: Vec<Pattern>,
    reads: Vec<Pattern>,
    weights: Vec<Pattern>,
    waits: Vec<Pattern>,
    sent: Vec<Pattern>,
    layers: Vec<Pattern>,
    modules: Vec<Pattern>,
    transforms: Vec<Pattern>,
    trains: Vec<Pattern>,
}

/// `FUNCTION@FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Pattern {
    function: String,
    /// Whether `function` is only the beginning of the name.
    open: bool,
    file: String,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some((function, file)) = text.split_once('@') else {
            return Err(format!("`{text}` is not of the form FUNCTION@FILE"));
        };
        let (function, open) = match function.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (function, false),
        };
        if function.contains('*') || (function.is_empty() && file.is_empty()) {
            return Err(format!(
                "`{text}` matches too much: `*` may only end a function"
            ));
        }
        Ok(Self {
            function: function.to_owned(),
            open,
            file: file.to_owned(),
        })
    }
}

/// `MODULE:CLASS.METHOD`: `*` may end the module's name, or stand for every class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Method(String);

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_name = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !text.is_empty() && text.chars().all(allowed)
        };
        let is_module = |text: &str| {
            let whole = text.strip_suffix(".*").unwrap_or(text);
            whole.split('.').all(is_name)
        };
        let parts = text.split_once(':');
        let parts = parts.and_then(|(module, rest)| Some((module, rest.split_once('.')?)));
        let right = parts.is_some_and(|(module, (class, method))| {
            is_module(module) && (class == "*" || is_name(class)) && is_name(method)
        });
        if right {
            Ok(Self(text))
        } else {
            Err(format!("`{text}` is not of the form MODULE:CLASS.METHOD"))
        }
    }
}

impl Pattern {
    fn names(&self, function: &str, file: &str) -> bool {
        let function = if self.open {
            function.starts_with(&self.function)
        } else {
            function == self.function
        };
        function && file.contains(&self.file)
    }
}

/// What a function means, judged by its name and its file.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Meaning {
    pub loader: Option<InKnown>,
    /// What the thread waits for, if that is not a batch: `communication`.
    pub not_data: Option<&'static str>,
    /// Whether a loop that calls it asks for a batch there.
    pub asks: bool,
    /// Whether the standard library hands something over here.
    pub hands_over: bool,
    /// Whether what it hands over is the result of a call that was submitted before.
    pub result: bool,
    /// Whether it takes from a queue.
    pub queue: bool,
    /// Whether a function of the program's own hands over a batch here while it waits, in a thread that trains.
    pub takes: bool,
    /// Whether a library reads samples from files here, in a thread that trains.
    pub reads: bool,
    /// Whether it may also read the weights of a module.
    pub weights: bool,
    /// Whether a thread waits for another here, in the standard library.
    pub waits: bool,
    /// Whether a rank receives here what another rank sends.
    pub sent: bool,
    /// Whether it is a layer of a model.
    pub layer: bool,
    /// Whether it calls a module, which may be a model or a transform.
    pub module: bool,
    /// Whether it is a transform of samples.
    pub transform: bool,
    /// Whether only training does this.
    pub trains: bool,
}

/// A function of a known loader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InKnown {
    pub loader: &'static KnownLoader,
    /// Whether it certainly waits, even if it sleeps and polls.
    pub waits: bool,
}

impl PartialEq for InKnown {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.loader, other.loader) && self.waits == other.waits
    }
}

impl Eq for InKnown {}

impl Names {
    /// Parses a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be used: the line number, from 1, and the reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().map_or("", |span| &text[..span.start]);
            let line = 1 + before.matches('\n').count();
            let Wrong { message, hint } = plain(error.message());
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            printable(&format!("{line}: {message}{hint}"))
        })
    }

    /// Reads the names of a file.
    ///
    /// Returns what is wrong with the file, with its name.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = printable(&path.display().to_string());
        let text = regular_file::read_text(path, MAX_FILE_BYTES);
        let text = text.map_err(|error| format!("cannot read {name}: {error}"))?;
        Self::parse(&text).map_err(|trouble| format!("{name}:{trouble}"))
    }

    /// Reads the names of the user's own file. `None` if there is no such file.
    fn of_user() -> Option<Result<Self, String>> {
        let path = user_file()?;
        path.exists().then(|| Self::read(&path))
    }

    /// Returns what is wrong with the user's own file. `None` if nothing is, or if there is no such file.
    pub(crate) fn trouble() -> Option<String> {
        Self::of_user()?.err()
    }

    /// Returns the names of the user's file, followed by the built-in ones. A user's file that cannot be used was
    /// already refused at the start.
    pub(crate) fn known() -> &'static Self {
        static KNOWN: OnceLock<Names> = OnceLock::new();
        KNOWN.get_or_init(|| {
            let mut names = Self::of_user().and_then(Result::ok).unwrap_or_default();
            let own = Self::parse(OWN).expect("the built-in names are tested");
            names.loaders.extend(own.loaders);
            names.not_data.extend(own.not_data);
            names.data_site.calls.extend(own.data_site.calls);
            names.data_site.hands_over.extend(own.data_site.hands_over);
            names.data_site.results.extend(own.data_site.results);
            names.data_site.queues.extend(own.data_site.queues);
            names.data_site.takes.extend(own.data_site.takes);
            names.data_site.reads.extend(own.data_site.reads);
            names.data_site.weights.extend(own.data_site.weights);
            names.data_site.waits.extend(own.data_site.waits);
            names.data_site.sent.extend(own.data_site.sent);
            names.data_site.layers.extend(own.data_site.layers);
            names.data_site.modules.extend(own.data_site.modules);
            names.data_site.transforms.extend(own.data_site.transforms);
            names.data_site.trains.extend(own.data_site.trains);
            names
        })
    }

    /// Returns what a function (named without its class) in this file means.
    pub(crate) fn meaning(&'static self, function: &str, file: &str) -> Meaning {
        let any = |patterns: &[Pattern]| patterns.iter().any(|known| known.names(function, file));
        let mut loaders = self.loaders.iter();
        let loader = loaders.find_map(|loader| {
            let waits = any(&loader.waits);
            (waits || any(&loader.gets)).then_some(InKnown { loader, waits })
        });
        let mut others = self.not_data.iter();
        let not_data = others.find(|other| any(&other.frames));
        Meaning {
            loader,
            not_data: not_data.map(|other| other.means.as_str()),
            asks: any(&self.data_site.calls),
            hands_over: any(&self.data_site.hands_over),
            result: any(&self.data_site.results),
            queue: any(&self.data_site.queues),
            takes: any(&self.data_site.takes),
            reads: any(&self.data_site.reads),
            weights: any(&self.data_site.weights),
            waits: any(&self.data_site.waits),
            sent: any(&self.data_site.sent),
            layer: any(&self.data_site.layers),
            module: any(&self.data_site.modules),
            transform: any(&self.data_site.transforms),
            trains: any(&self.data_site.trains),
        }
    }

    /// Whether a function written in C, called by this name, hands over a batch while the thread sleeps in it.
    pub(crate) fn takes(&'static self, name: &str) -> bool {
        let mut patterns = self.data_site.takes.iter();
        patterns.any(|known| known.names(name, ""))
    }

    /// Returns the meaning of a function written in C that a program with a device calls by this name.
    pub(crate) fn device_call(&'static self, name: &str) -> Option<&'static str> {
        let mut means = self.not_data.iter();
        let found = means.find(|means| means.calls.iter().any(|call| call == name));
        found.map(|found| found.means.as_str())
    }

    /// Returns the methods that hand over a batch: `MODULE:CLASS.METHOD`.
    pub(crate) fn hand_over(&self) -> impl Iterator<Item = &str> {
        let loaders = self.loaders.iter();
        loaders.flat_map(|loader| loader.hand_over.iter().map(|method| method.0.as_str()))
    }

    /// Returns the loader of this name.
    pub(crate) fn loader(&self, name: &str) -> Option<&KnownLoader> {
        self.loaders.iter().find(|loader| loader.name == name)
    }
}

/// Returns the path of `loaders.toml` in the usual folder of the configuration.
pub(crate) fn user_file() -> Option<PathBuf> {
    folders::config().map(|folder| folder.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join(FILE);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        for path in [&fifo, Path::new("/dev/zero")] {
            let trouble = Names::read(path).unwrap_err();
            assert!(trouble.ends_with("not a regular file"), "{trouble}");
        }
    }

    fn meaning(function: &str, file: &str) -> Meaning {
        Names::known().meaning(function, &format!("/usr/lib/python3/site-packages/{file}"))
    }

    fn loader(function: &str, file: &str) -> Option<(&'static str, bool)> {
        let known = meaning(function, file).loader?;
        Some((known.loader.name.as_str(), known.waits))
    }

    #[test]
    fn what_puts_into_a_queue_waits_for_room_in_it() {
        for file in ["queue.py", "multiprocessing/queues.py"] {
            assert_eq!(meaning("put", file).not_data, Some(FULL_QUEUE), "{file}");
        }
    }

    #[test]
    fn functions_of_known_loaders_are_named() {
        for (function, file, expected) in [
            (
                "_get_item_mirrored_queue",
                "spdl/pipeline/_pipeline.py",
                Some(("SPDL", true)),
            ),
            (
                "__next__",
                "spdl/pipeline/_pipeline.py",
                Some(("SPDL", false)),
            ),
            (
                "next",
                "torchdata/nodes/loader.py",
                Some(("torchdata.nodes", false)),
            ),
            ("get", "queue.py", None),
            ("_get_item", "train.py", None),
        ] {
            assert_eq!(loader(function, file), expected, "{function}@{file}");
        }
        assert_eq!(
            meaning("all_reduce", "torch/distributed/distributed_c10d.py").not_data,
            Some("communication")
        );
        let device_call = |name| Names::known().device_call(name);
        assert_eq!(device_call("item"), Some("synchronize"));
        assert_eq!(device_call("to"), Some("copies to the device"));
        assert_eq!(device_call("append"), None);
        assert_eq!(
            meaning("synchronize", "torch/cuda/__init__.py").not_data,
            Some("synchronize")
        );
        assert!(Names::known().takes("recv_into") && !Names::known().takes("append"));
        assert!(meaning("__getitem__", "h5py/_hl/dataset.py").reads);
        assert!(!meaning("__getitem__", "torch/_tensor.py").reads);
        assert!(meaning("__getitem__", "numpy/lib/_npyio_impl.py").reads);
        assert!(!meaning("__getitem__", "numpy/lib/index_tricks.py").reads);
        assert!(meaning("loads", "/usr/lib/python3.11/json/__init__.py").reads);
        // Images are also written while a model trains.
        assert!(
            meaning("load", "PIL/ImageFile.py").reads && !meaning("save", "PIL/Image.py").reads
        );
        let collective = |name| meaning(name, "torch/distributed/distributed_c10d.py").sent;
        assert!(collective("broadcast_object_list") && !collective("all_reduce"));
        assert!(meaning("__next__", "mine.py").asks);
        assert!(!meaning("get_loss", "mine.py").asks);
        assert!(meaning("get_minibatch", "mine.py").asks);
        // They work on the results of a batch.
        for of_results in ["get_batch_logps", "get_batch_statistics", "next_token_loss"] {
            assert!(!meaning(of_results, "mine.py").asks, "{of_results}");
        }
        assert!(meaning("get_batch", "mine.py").asks && meaning("next_batch", "mine.py").asks);
        assert!(meaning("named_parameters", "torch/nn/modules/module.py").layer);
        assert!(meaning("backward", "torch/_tensor.py").trains);
        assert!(meaning("get", "queue.py").hands_over);
        assert!(!meaning("get", "queue.py").result);
        assert!(meaning("result", "concurrent/futures/_base.py").result);
        assert!(meaning("wait", "threading.py").waits && !meaning("wait", "mine.py").waits);
    }

    #[test]
    fn a_file_that_names_too_much_or_nothing_is_refused() {
        let with = |place: &str| {
            let text = format!(
                "[[loader]]\nname = \"mine\"\nsource = \"measured\"\nwaits = [\"{place}\"]"
            );
            Names::parse(&text).map(|names| names.loaders.len())
        };
        assert_eq!(with("_wait*@mine/loader.py"), Ok(1));
        for wrong in ["_wait", "*@", "_*t@mine/loader.py"] {
            assert!(with(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
        assert!(Names::parse("[[loaders]]\nname = \"mine\"").is_err());
    }

    #[test]
    fn hand_over_methods_must_be_plain_names() {
        let with = |method: &str| {
            let text = format!(
                "[[loader]]\nname = \"mine\"\nsource = \"measured\"\nhand_over = ['{method}']"
            );
            Names::parse(&text).map(|_| ())
        };
        for right in ["mine.loader:Loader.__next__", "mine.*:*.__iter__"] {
            assert_eq!(with(right), Ok(()));
        }
        for wrong in [
            "mine.loader",
            "mine:Loader",
            ":Loader.__next__",
            "*:*.__next__",
            "mi*:Loader.__next__",
            "mine:Lo*.__next__",
            "mine:Loader.a.b",
            "mine:Loader.\"]",
        ] {
            assert!(with(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    proptest::proptest! {
        #![proptest_config(support::fuzz::cases_or(400))]

        #[test]
        fn fuzzed_names_of_loaders(text in support::fuzz::text([
            OWN,
            "[[loader]]\nname = \"own\"\nsource = \"measured\"\nwaits = [\"get*@own/\"]\nmore = \"threads\"\n",
        ])) {
            if let Err(error) = Names::parse(&text) {
                let line = error.split_once(':').and_then(|(line, _)| line.parse::<usize>().ok());
                proptest::prop_assert!(line.is_some_and(|line| line <= text.lines().count() + 1), "{error:?}");
            }
        }
    }
}
