use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;

use proptest::prelude::*;

use super::*;

const SMALL: Plan = Plan {
    images: 24,
    side: 32,
};

fn quietly(root: &Path, plan: Plan) -> Result<Dataset, DatasetError> {
    prepare(root, plan, |_, _| ())
}

/// Every file below `root` with its content, by name.
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

fn unfinished(dataset: &Path) -> usize {
    let names = files(dataset);
    let is_new = |path: &Path| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(".new-")
    };
    names.iter().filter(|(path, _)| is_new(path)).count()
}

#[test]
fn a_set_is_made_once_and_told_of() {
    let root = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    let made = prepare(root.path(), SMALL, |done, total| told.push((done, total))).unwrap();
    let expected: Vec<_> = (0..=24).map(|done| (done, 24)).collect();
    assert_eq!(told, expected);
    assert_eq!((made.images(), made.side()), (24, 32));
    let images = (0..24).map(|index| fs::metadata(made.path(index)).unwrap().len());
    assert_eq!(made.bytes(), Bytes(images.sum()));
    assert_eq!(
        made.path(24),
        made.path(0),
        "after the last the first follows"
    );
    assert_eq!(unfinished(root.path()), 0);

    let before = files(root.path());
    let again = prepare(root.path(), SMALL, |_, _| panic!("nothing is made")).unwrap();
    assert_eq!(again, made);
    assert_eq!(Dataset::open(made.folder()).unwrap(), made);
    assert_eq!(files(root.path()), before);
}

#[test]
fn plans_do_not_mix() {
    let root = tempfile::tempdir().unwrap();
    let sets: Vec<_> = [(3, 32), (4, 32), (3, 48)]
        .map(|(images, side)| quietly(root.path(), Plan::new(images, side)).unwrap())
        .into();
    for (at, set) in sets.iter().enumerate() {
        assert!(
            sets[..at]
                .iter()
                .all(|other| other.folder() != set.folder())
        );
        assert_eq!(Dataset::open(set.folder()).unwrap(), *set);
    }
}

#[test]
fn the_size_asked_for_is_about_the_size_made() {
    assert_eq!(Plan::of_size(Bytes(0)).images(), 1);
    assert_eq!(Plan::of_size(Bytes(u64::MAX)).images(), u32::MAX);
    let root = tempfile::tempdir().unwrap();
    let wanted = Bytes(1 << 20);
    let made = quietly(root.path(), Plan::of_size(wanted)).unwrap();
    let ratio = made.bytes().0 as f64 / wanted.0 as f64;
    assert!((0.9..1.1).contains(&ratio), "{} for {wanted}", made.bytes());
    for index in 0..made.images() {
        let length = fs::metadata(made.path(index)).unwrap().len();
        assert!((25_000..60_000).contains(&length), "{length} bytes");
    }
}

#[test]
fn a_killed_run_is_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let made = quietly(root.path(), SMALL).unwrap();
    let whole = files(root.path());
    // As a kill leaves it: no manifest, images missing, and some under their temporary names; after a power
    // failure also files that are there and cut off or empty.
    fs::remove_file(made.folder().join("manifest.json")).unwrap();
    fs::write(made.folder().join(".new-dead"), [0xff, 0xd8, 0xff]).unwrap();
    fs::remove_file(made.path(3)).unwrap();
    fs::write(made.path(5), []).unwrap();
    let half = fs::read(made.path(7)).unwrap();
    fs::write(made.path(7), &half[..half.len() / 2]).unwrap();
    assert!(matches!(
        Dataset::open(made.folder()),
        Err(DatasetError::Missing { .. })
    ));
    let mut told = Vec::new();
    let again = prepare(root.path(), SMALL, |done, _| told.push(done)).unwrap();
    assert_eq!(told, [21, 22, 23, 24]);
    assert_eq!(again, made);
    assert_eq!(
        files(root.path()),
        whole,
        "the same images again, and nothing else"
    );
}

#[test]
fn images_that_were_lost_or_cut_after_the_end_are_made_again() {
    let root = tempfile::tempdir().unwrap();
    let made = quietly(root.path(), SMALL).unwrap();
    let whole = files(root.path());
    fs::remove_file(made.path(0)).unwrap();
    fs::write(made.path(1), b"cut").unwrap();
    assert_eq!(quietly(root.path(), SMALL).unwrap(), made);
    assert_eq!(files(root.path()), whole);
}

#[test]
fn a_damaged_manifest_is_an_error_to_workers_and_made_again_by_the_next_run() {
    let root = tempfile::tempdir().unwrap();
    let made = quietly(root.path(), SMALL).unwrap();
    let manifest = made.folder().join("manifest.json");
    let good = fs::read(&manifest).unwrap();
    for bad in [
        "",
        "{",
        r#"{"format":1,"images":24,"side":32}"#,
        r#"{"format":1,"images":0,"side":32,"bytes":9}"#,
        r#"{"format":2,"images":24,"side":32,"bytes":9}"#,
    ] {
        fs::write(&manifest, bad).unwrap();
        let error = Dataset::open(made.folder()).unwrap_err();
        assert!(
            matches!(error, DatasetError::Damaged { .. }),
            "{bad}: {error}"
        );
        assert!(!error.to_string().contains('\n') && !error.hint().contains('\n'));
        assert_eq!(quietly(root.path(), SMALL).unwrap(), made);
        assert_eq!(fs::read(&manifest).unwrap(), good);
    }
}

#[test]
fn a_manifest_of_another_set_does_not_pass() {
    let root = tempfile::tempdir().unwrap();
    let made = quietly(root.path(), SMALL).unwrap();
    let other = quietly(root.path(), Plan::new(12, 32)).unwrap();
    let manifest = |set: &Dataset| set.folder().join("manifest.json");
    fs::copy(manifest(&other), manifest(&made)).unwrap();
    assert_eq!(quietly(root.path(), SMALL).unwrap(), made);
    assert_eq!(Dataset::open(made.folder()).unwrap(), made);
}

#[test]
fn two_at_once_make_one_set() {
    let alone = tempfile::tempdir().unwrap();
    let expected = quietly(alone.path(), SMALL).unwrap();
    let root = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        let runs = [(); 3].map(|()| scope.spawn(|| quietly(root.path(), SMALL)));
        for run in runs {
            let made = run.join().unwrap().unwrap();
            assert_eq!(made.bytes(), expected.bytes());
        }
    });
    assert_eq!(unfinished(root.path()), 0);
    let contents = |root| files(root).into_iter().map(|(_, content)| content);
    assert!(contents(root.path()).eq(contents(alone.path())));
}

#[test]
fn the_unfinished_files_of_a_living_writer_stay() {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::of(root.path(), SMALL);
    let writer = folder.begin().unwrap();
    let file = folder.path().join(".new-alive");
    fs::write(&file, "half").unwrap();
    quietly(root.path(), SMALL).unwrap();
    assert!(file.exists());
    let busy = remove(root.path()).unwrap_err();
    assert!(matches!(busy, DatasetError::Busy { .. }), "{busy}");
    assert!(file.exists());
    drop(writer);
    drop(folder.begin().unwrap());
    assert!(!file.exists());
}

#[test]
fn removal_frees_every_set_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(remove(&root.path().join("none")).unwrap(), Bytes(0));
    let sets = [SMALL, Plan::new(2, 16)].map(|plan| quietly(root.path(), plan).unwrap());
    let total: u64 = files(root.path())
        .iter()
        .map(|(_, content)| content.len() as u64)
        .sum();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("theirs"), "x").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), root.path().join("dataset-link")).unwrap();
    fs::write(root.path().join("recording"), "theirs").unwrap();
    assert_eq!(remove(root.path()).unwrap(), Bytes(total));
    assert!(sets.iter().all(|set| !set.folder().exists()));
    assert!(root.path().join("recording").exists());
    assert!(elsewhere.path().join("theirs").exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_one_line_and_a_hint() {
    let root = tempfile::tempdir().unwrap();
    // Root may write into any folder, but nobody into a file.
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = quietly(&file, SMALL).unwrap_err();
    assert!(matches!(error, DatasetError::Unwritable { .. }), "{error}");
    let hint = error.hint();
    assert!(hint.contains("XDG_CACHE_HOME"), "{hint}");
    let missing = quietly(root.path(), SMALL).unwrap();
    if !rustix::process::getuid().is_root() {
        let closed = root.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        let error = quietly(&closed, SMALL).unwrap_err();
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
    // A whole set may be used from a folder that cannot be written.
    fs::remove_file(missing.folder().join("lock")).unwrap();
    fs::set_permissions(missing.folder(), fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(quietly(root.path(), SMALL).unwrap(), missing);
    assert!(!missing.folder().join("lock").exists());
    fs::set_permissions(missing.folder(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_write_that_fails_in_the_middle_stops_and_keeps_what_was_made() {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::of(root.path(), SMALL);
    // Something that is no file stands where an image should be.
    fs::create_dir_all(folder.image(9).join("in-the-way")).unwrap();
    let error = quietly(root.path(), SMALL).unwrap_err();
    assert!(matches!(error, DatasetError::Unwritable { .. }), "{error}");
    assert_eq!(unfinished(root.path()), 0);
    assert!(folder.path().exists());
    fs::remove_dir_all(folder.image(9)).unwrap();
    let mut first = None;
    prepare(root.path(), SMALL, |done, _| first = first.or(Some(done))).unwrap();
    assert!(first > Some(0), "images from before are used: {first:?}");
}

/// Where `ON_SMALL_DISK` names a disk that is mounted for it, the test below runs in itself.
const ON_SMALL_DISK: &str = "PIPETOP_TEST_SMALL_DISK";

/// Runs one test of this file in a process that sees a disk with `options`, or says why that cannot be.
fn on_small_disk(test: &str, options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o {options} none \"$0\" || exit 77; exec \"$@\"");
    let ran = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &mount])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("workload::dataset::tests::{test}"),
            "--nocapture",
        ])
        .env(ON_SMALL_DISK, folder.path())
        .output();
    match ran {
        Ok(ran) if ran.status.success() => {
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(ran) if ran.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&ran.stderr))
        }
        Ok(ran) => eprintln!(
            "SKIPPED {test}: no file system can be mounted here: {}",
            String::from_utf8_lossy(&ran.stderr).trim()
        ),
        Err(error) => eprintln!("SKIPPED {test}: no `unshare` here: {error}"),
    }
}

#[test]
fn a_disk_that_gets_full_is_left_as_it_was() {
    let Some(disk) = std::env::var_os(ON_SMALL_DISK) else {
        // Bytes enough, but not for so many files: what free space does not tell before.
        return on_small_disk(
            "a_disk_that_gets_full_is_left_as_it_was",
            "size=8m,nr_inodes=20",
        );
    };
    let disk = PathBuf::from(disk);
    let few = quietly(&disk, Plan::new(3, 32)).unwrap();
    let before = files(few.folder());
    let mut most = 0;
    let error = prepare(&disk, SMALL, |done, _| most = most.max(done)).unwrap_err();
    assert!(matches!(error, DatasetError::Full { .. }), "{error}");
    assert!(error.hint().contains("--dataset-size"), "{}", error.hint());
    assert!(most > 0, "some were made before");
    assert!(
        !Folder::of(&disk, SMALL).path().exists(),
        "nothing is left of it"
    );
    assert_eq!(files(few.folder()), before, "what was there before stays");
}

#[test]
fn a_disk_that_is_too_small_is_not_filled() {
    let Some(disk) = std::env::var_os(ON_SMALL_DISK) else {
        return on_small_disk("a_disk_that_is_too_small_is_not_filled", "size=1m");
    };
    let disk = PathBuf::from(disk);
    let plan = Plan::of_size(Bytes(4 << 20));
    let error = prepare(&disk, plan, |_, _| panic!("nothing is made")).unwrap_err();
    let DatasetError::Full { free, needed, .. } = &error else {
        panic!("{error}");
    };
    assert!(*needed > Bytes(3 << 20) && free.unwrap() <= Bytes(1 << 20));
    assert!(error.to_string().contains("needed"), "{error}");
    assert!(!Folder::of(&disk, plan).path().exists());
}

#[test]
fn the_folder_follows_the_environment() {
    let of = |cache: Option<&str>, home: Option<&str>| {
        root_of(
            cache.map(Into::into),
            home.map(Into::into),
            "/tmp/pipetop-7".into(),
        )
    };
    assert_eq!(of(Some("/c"), Some("/h")), Path::new("/c/pipetop"));
    assert_eq!(of(None, Some("/h")), Path::new("/h/.cache/pipetop"));
    assert_eq!(
        of(Some("relative"), Some("/h")),
        Path::new("/h/.cache/pipetop")
    );
    assert_eq!(of(Some(""), Some("")), Path::new("/tmp/pipetop-7"));
    assert_eq!(of(None, None), Path::new("/tmp/pipetop-7"));
}

#[test]
fn a_set_of_many_is_opened_without_a_look_at_its_images() {
    let root = tempfile::tempdir().unwrap();
    let plan = Plan::new(3_000_000, 256);
    let folder = Folder::of(root.path(), plan);
    fs::create_dir_all(folder.path()).unwrap();
    folder.end(plan, Bytes(1 << 40)).unwrap();
    let set = Dataset::open(folder.path()).unwrap();
    assert_eq!(set.images(), 3_000_000);
    let last = set.path(2_999_999);
    assert!(last.ends_with("2999/999.jpg"), "{}", last.display());
    // But it does not pass for whole.
    assert_eq!(folder.whole(plan), None);
}

#[test]
fn every_error_is_one_line_and_has_a_hint() {
    let folder = || PathBuf::from("/cache/dataset");
    let why = || File::open("/nowhere/at/all").unwrap_err();
    let errors = [
        DatasetError::Unwritable {
            folder: folder(),
            why: why(),
        },
        DatasetError::Full {
            folder: folder(),
            needed: Bytes(64 << 20),
            free: None,
        },
        DatasetError::Missing { folder: folder() },
        DatasetError::Unreadable {
            path: folder(),
            why: why(),
        },
        DatasetError::Damaged {
            path: folder(),
            why: "cut off".to_owned(),
        },
        DatasetError::Busy { folder: folder() },
        DatasetError::NotRemoved {
            folder: folder(),
            why: why(),
        },
    ];
    for error in errors {
        let (line, hint) = (error.to_string(), error.hint());
        assert!(line.contains("/cache/dataset"), "{line}");
        for text in [line, hint] {
            assert!(
                !text.contains('\n') && !text.ends_with('.') && !text.is_empty(),
                "{text}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_is_lost_comes_back(lost in proptest::collection::vec((0_u32..9, 0_usize..3), 0..9)) {
        let root = tempfile::tempdir().unwrap();
        let plan = Plan::new(9, 16);
        let made = quietly(root.path(), plan).unwrap();
        let whole = files(root.path());
        fs::remove_file(made.folder().join("manifest.json")).unwrap();
        for (index, how) in lost {
            match how {
                0 => drop(fs::remove_file(made.path(index))),
                1 => fs::write(made.path(index), [0; 300]).unwrap(),
                _ => fs::write(made.path(index), []).unwrap(),
            }
        }
        prop_assert_eq!(quietly(root.path(), plan).unwrap(), made);
        prop_assert_eq!(files(root.path()), whole);
    }
}
