//! Python starts as it does without the hook, and any iterable can be watched.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::stand::{HookSession, each_python, short, spawn};
use pipetop::testing::launch::LoaderOverrides;
use support::waiting::{ToEnd, ended};

/// Runs the command with and without the hook, with `before` on `PYTHONPATH`; both outputs must agree.
fn same_with_and_without(python: &str, arguments: &[&str], before: Option<&Path>) -> String {
    let stand = HookSession::new();
    let command = || {
        let mut command = Command::new(python);
        command.args(arguments).env_remove("PYTHONPATH");
        command
    };
    let mut without = command();
    let mut with = command();
    let environment = stand
        .hook
        .environment(stand.listener.address(), &LoaderOverrides::default());
    with.envs(environment);
    // Variables of this test's own environment must not affect the script.
    let mut path = stand.hook.path().as_os_str().to_owned();
    if let Some(before) = before {
        without.env("PYTHONPATH", before);
        path.push(":");
        path.push(before);
    }
    with.env("PYTHONPATH", path);
    let finish = |mut command: Command| {
        let mut child = spawn(&mut command);
        let output = child.to_end();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (without, with) = (finish(without), finish(with));
    assert_eq!(with, without, "{python} {arguments:?}");
    assert!(stand.heard().is_empty(), "no step, no word");
    with.1 + &with.2
}

const LOOK: &str = "import sys; own = sys.modules.get('sitecustomize')
print(own and (own.__file__, own.__spec__.name, own.mark), [p for p in sys.path if 'pipetop-' in p])
print(sys.path, sorted(name for name in sys.modules if 'sitecustomize' in name))
try: import sitecustomize
except ImportError as error: print(error, error.name)
else: print(sitecustomize.__file__)";

#[test]
fn the_sitecustomize_of_the_user_is_run_in_its_own_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |text: &str| fs::write(folder.path().join("sitecustomize.py"), text).expect("written");
    each_python(|python| {
        write(
            "import sys\nmark = 'mine'\nprint('run', __name__, sys.modules[__name__].__file__)\n",
        );
        let text = same_with_and_without(python, &["-c", LOOK], Some(folder.path()));
        assert_eq!(text.matches("run sitecustomize").count(), 1, "{text}");
        assert!(text.contains("'mine'"), "{text}");

        write("mark = undefined\n");
        let text = same_with_and_without(python, &["-c", "print('goes on')"], Some(folder.path()));
        assert!(
            text.contains("goes on") && text.contains("Error in sitecustomize"),
            "{text}"
        );

        write("import a_module_that_is_not_there\n");
        same_with_and_without(python, &["-c", "print('goes on')"], Some(folder.path()));
    });
}

#[test]
fn python_without_any_sitecustomize_or_without_site_starts_as_ever() {
    each_python(|python| {
        let script = LOOK.replace("own.mark", "0");
        same_with_and_without(python, &["-c", &script], None);
        for flags in ["-S", "-I", "-E", "-s"] {
            // If Python reads PYTHONPATH but not site, it has our folder on its path, and nothing else changes.
            same_with_and_without(python, &[flags, "-c", "print('runs')"], None);
        }
    });
}

const WATCHED: &str = "
import time
try:
    from pipetop_hook import watch
except ImportError:
    watch = iter
def batches():
    for number in range(20):
        time.sleep(0.004)
        yield number
seen = []
for batch in watch(batches()):
    seen.append(batch)
    time.sleep(0.001)
for batch in watch([20, 21]):
    seen.append(batch)
print(seen == list(range(22)))";

#[test]
fn any_iterable_can_be_watched_and_without_pipetop_the_script_runs_as_well() {
    each_python(|python| {
        let stand = HookSession::new();
        let run = stand.run(&mut short(python, WATCHED));
        assert_eq!(run.words(), (Some(0), "True\n".to_owned(), String::new()));
        let totals = &run.report().totals;
        assert_eq!((totals.steps, totals.lost), (22, 0));
        assert!(totals.waited >= Duration::from_millis(80), "{totals:?}");
        assert!(totals.stepped >= Duration::from_millis(20), "{totals:?}");
        let alone = spawn(&mut short(python, WATCHED)).wait_with_output();
        assert_eq!(alone.expect("our child").stdout, b"True\n");
    });
}

#[test]
fn nothing_is_left_behind() {
    each_python(|python| {
        let HookSession {
            listener,
            hook,
            folder,
        } = HookSession::new();
        let mut command = short(python, WATCHED);
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        command.envs(hook.environment(listener.address(), &LoaderOverrides::default()));
        let mut child = spawn(&mut command);
        assert!(ended(&mut child).success());
        assert!(
            hook.path().join("__pycache__").exists(),
            "Python keeps what it compiles"
        );
        drop(hook);
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    });
}
