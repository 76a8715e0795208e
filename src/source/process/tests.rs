use proptest::prelude::*;
use support::fuzz;

use super::*;
use crate::source::file::Failure;

#[test]
fn a_name_may_hold_parentheses_spaces_and_escapes() {
    let text = "42 (a) R (b) \x1b[31m) S 1 42 42 0 -1 4194304 10 0 7 0 250 50 30 4 20 0 9 0 12345 0 2048 0";
    let stat = Stat::parse(text).unwrap();
    assert_eq!(
        stat.key,
        ProcessKey {
            pid: Pid(42),
            start_ticks: 12345
        }
    );
    assert_eq!(stat.comm, "a) R (b) \u{fffd}[31m");
    assert_eq!((stat.state, stat.parent, stat.kernel), ('S', Pid(1), false));
    assert_eq!(
        (
            stat.cpu_ticks,
            stat.children_cpu_ticks,
            stat.major_faults,
            stat.threads
        ),
        (300, 34, 7, 9)
    );
}

#[test]
fn malformed_text_is_no_process() {
    for text in [
        "",
        "42",
        "42 (x",
        "42 (x)",
        "42 (x) S",
        "x (y) S 1 2 3",
        "42 (x) S a b c d e f",
    ] {
        assert_eq!(Stat::parse(text), None, "{text:?}");
    }
    assert_eq!(io_counters("rchar: 1\nwchar: x\n"), None);
}

#[test]
fn a_tree_is_read_as_far_as_it_is_there() {
    let root = tempfile::tempdir().unwrap();
    let process = root.path().join("42");
    fs::create_dir_all(process.join("task/42")).unwrap();
    let stat = "42 (x) S 1 42 42 0 -1 0 10 0 7 0 250 50 0 0 20 0 9 0 99 0 2048 0";
    fs::write(process.join("stat"), stat).unwrap();
    fs::write(process.join("schedstat"), "1000 2000 3").unwrap();
    fs::write(process.join("environ"), "A=1\0RANK=3\0B=\0").unwrap();
    fs::write(
        process.join("status"),
        "Name:\tx\nCpus_allowed:\tff,00000003\n",
    )
    .unwrap();
    fs::write(process.join("cmdline"), "python3\0a\nb.py\0").unwrap();
    fs::write(process.join("task/42/children"), "43 44 ").unwrap();
    let mut reader = ProcessReader::new(root.path());

    let key = ProcessKey {
        pid: Pid(42),
        start_ticks: 99,
    };
    let sample = reader.sample(key);
    assert_eq!(sample.main_run_delay, Some(Duration::from_micros(2)));
    assert_eq!(sample.io, None, "no io file is not zero bytes");
    let reused = ProcessKey {
        start_ticks: 98,
        ..key
    };
    assert_eq!(
        reader.sample(reused),
        ProcessSample::default(),
        "another process of that number"
    );

    assert_eq!(reader.all().unwrap(), [Pid(42)]);
    assert_eq!(
        reader.environment(Pid(42), ["RANK", "NO"]),
        Some([Some("3".into()), None])
    );
    assert_eq!(reader.cpus_allowed(Pid(42)), Some(10));
    assert_eq!(
        reader.command(Pid(42)).as_deref(),
        Some("python3 a\u{fffd}b.py")
    );
    assert_eq!(reader.children(Pid(42)).unwrap(), [Pid(43), Pid(44)]);
    let none = reader.children(Pid(43)).unwrap_err();
    assert_eq!(Failure::of(&none), Failure::Gone);
    assert_eq!(reader.descriptors(Pid(42)), None, "denied is not empty");
    assert_eq!(reader.environment(Pid(1), ["RANK"]), None);
}

#[test]
fn pipe_ends_know_their_direction() {
    let (read, write) = io::pipe().unwrap();
    let own = Pid(i32::try_from(std::process::id()).unwrap());
    let ends = ProcessReader::new(Path::new("/proc"))
        .descriptors(own)
        .unwrap()
        .0;
    let fd = |end: &dyn std::os::fd::AsRawFd| end.as_raw_fd();
    let find = |fd| ends.iter().find(|end| end.fd == fd).unwrap();
    assert!(!find(fd(&read)).write);
    assert!(find(fd(&write)).write);
    assert_eq!(find(fd(&read)).inode, find(fd(&write)).inode);
}

proptest! {
    #![proptest_config(fuzz::cases())]

    #[test]
    fn fuzzed_files_of_a_process(text in fuzz::text([
        "42 (a) R (b)) S 1 42 42 0 -1 4194304 10 0 7 0 250 50 0 0 20 0 9 0 12345 0 2048 0",
        "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 0\nwrite_bytes: 1\ncancelled_write_bytes: 0\n",
        "1000 2000 3\n",
        "43 44 ",
        "Name:\tx\nUmask:\t0022\nCpus_allowed:\tff,00000003\nCpus_allowed_list:\t0-9\n",
    ])) {
        let _ = Stat::parse(&text);
        let _ = io_counters(&text);
        let _ = schedstat(&text);
        let _ = cpus_in_mask(&text);
        let _ = pids(&text).count();
    }

    #[test]
    fn a_name_never_hides_the_fields(name in "[ -~]{0,20}") {
        let stat = Stat::parse(&format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 99 0 5 0"));
        prop_assert_eq!(stat.map(|stat| (stat.comm, stat.key.start_ticks)), Some((name, 99)));
    }
}
