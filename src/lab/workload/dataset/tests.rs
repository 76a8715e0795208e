use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use super::*;

/// The size of 24 images.
const SMALL: Bytes = Bytes(24 * draw::USUAL_BYTES);

const UNWRITABLE: &str = "cannot create a data set in ";

fn quietly(root: &Path, size: Bytes) -> Result<Dataset, Hinted> {
    prepare(root, size, |_, _| ())
}

/// Returns every file below `root` with its content, by name.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_dataset_is_created_once_and_announced() {
    let root = tempfile::tempdir().unwrap();
    let mut progress = Vec::new();
    let made = prepare(root.path(), SMALL, |done, total| {
        progress.push((done, total));
    })
    .unwrap();
    let expected: Vec<_> = (0..=24).map(|done| (done, 24)).collect();
    assert_eq!(progress, expected);
    assert_eq!(made.images, 24);
    assert_eq!(
        made.path(24),
        made.path(0),
        "after the last the first follows"
    );
    let before = files(root.path());
    assert_eq!(before.len(), 24 + 1, "the images and a lock");
    let again = prepare(root.path(), SMALL, |_, _| panic!("nothing is made")).unwrap();
    assert_eq!(again, made);
    assert_eq!(files(root.path()), before);
}

#[test]
fn the_size_asked_for_is_about_the_size_made() {
    let root = tempfile::tempdir().unwrap();
    let images = |size| Dataset::of_size(root.path(), Bytes(size)).images;
    assert_eq!((images(0), images(u64::MAX)), (1, u32::MAX));
    let wanted = 1 << 20;
    let made = quietly(root.path(), Bytes(wanted)).unwrap();
    let ratio = size(&made.folder).unwrap() as f64 / wanted as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let last = Dataset::of_size(root.path(), Bytes(u64::MAX)).path(2_999_999);
    assert!(last.ends_with("2999/999.jpg"), "{}", last.display());
}

#[test]
fn a_killed_run_is_resumed() {
    let root = tempfile::tempdir().unwrap();
    let made = quietly(root.path(), SMALL).unwrap();
    let whole = files(root.path());
    // Images are missing and one is unfinished, as after a kill; one is empty, as after a power failure.
    fs::remove_file(made.path(3)).unwrap();
    fs::write(made.path(3).with_extension("new"), [0xff, 0xd8, 0xff]).unwrap();
    fs::remove_file(made.path(5)).unwrap();
    fs::write(made.path(7), []).unwrap();
    let mut progress = Vec::new();
    let again = prepare(root.path(), SMALL, |done, _| progress.push(done)).unwrap();
    assert_eq!(progress, [21, 22, 23, 24]);
    assert_eq!(again, made);
    assert_eq!(
        files(root.path()),
        whole,
        "the same images again, and nothing else"
    );
}

#[test]
fn two_at_once_make_one_set() {
    let alone = tempfile::tempdir().unwrap();
    quietly(alone.path(), SMALL).unwrap();
    let root = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        let runs = [(); 3].map(|()| scope.spawn(|| quietly(root.path(), SMALL)));
        for run in runs {
            run.join().unwrap().unwrap();
        }
    });
    let contents = |root| files(root).into_iter().map(|(_, content)| content);
    assert!(contents(root.path()).eq(contents(alone.path())));
}

#[test]
fn removal_frees_every_set_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(remove(&root.path().join("none")).unwrap(), Bytes(0));
    let sets = [SMALL, Bytes(0)].map(|size| quietly(root.path(), size).unwrap());
    let total = size(root.path()).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("theirs"), "x").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), root.path().join("dataset-link")).unwrap();
    fs::write(root.path().join("recording"), "theirs").unwrap();
    assert_eq!(remove(root.path()).unwrap(), Bytes(total));
    assert!(sets.iter().all(|set| !set.folder.exists()));
    assert!(root.path().join("recording").exists());
    assert!(elsewhere.path().join("theirs").exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_one_line_and_a_hint() {
    let root = tempfile::tempdir().unwrap();
    // Root may write into any folder, but nobody can create a file inside a file.
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = quietly(&file, SMALL).unwrap_err();
    assert!(error.message.starts_with(UNWRITABLE), "{error}");
    assert!(error.hint.contains("XDG_CACHE_HOME"), "{}", error.hint);
    let whole = quietly(root.path(), SMALL).unwrap();
    if !rustix::process::getuid().is_root() {
        let closed = root.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        let error = quietly(&closed, SMALL).unwrap_err();
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
    // A complete set can be used from a folder that is not writable.
    fs::remove_file(whole.folder.join("lock")).unwrap();
    fs::set_permissions(&whole.folder, fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(quietly(root.path(), SMALL).unwrap(), whole);
    assert!(!whole.folder.join("lock").exists());
    fs::set_permissions(&whole.folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_write_that_fails_in_the_middle_stops_and_keeps_what_was_made() {
    let root = tempfile::tempdir().unwrap();
    let set = Dataset::of_size(root.path(), SMALL);
    // A folder has the name of a file that is to be written.
    let in_the_way = set.path(9).with_extension("new");
    fs::create_dir_all(&in_the_way).unwrap();
    let error = quietly(root.path(), SMALL).unwrap_err();
    assert!(error.message.starts_with(UNWRITABLE), "{error}");
    fs::remove_dir(in_the_way).unwrap();
    let mut first = None;
    prepare(root.path(), SMALL, |done, _| first = first.or(Some(done))).unwrap();
    assert!(first > Some(0), "images from before are used: {first:?}");
}

#[test]
fn every_error_is_one_line_and_has_a_hint() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let errors = [
        quietly(&file, SMALL).unwrap_err(),
        no_space(&file, SMALL, None),
        no_space(&file, SMALL, Some(Bytes(0))),
        remove(&file).unwrap_err(),
    ];
    let name = file.display().to_string();
    for Hinted { message, hint, .. } in errors {
        assert!(message.contains(&name), "{message}");
        for text in [message, hint] {
            assert!(
                !text.contains('\n') && !text.ends_with('.') && !text.is_empty(),
                "{text}"
            );
        }
    }
}
