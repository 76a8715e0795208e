use super::*;
use crate::units::{Pid, ProcessKey};

/// A process `pid` below `parent`. Processes start in the order of their PIDs.
fn process(pid: i32, parent: i32, comm: &str, command: &str) -> Process {
    Process {
        key: key(pid),
        parent: Pid(parent),
        comm: comm.into(),
        command: command.into(),
        state: 'S',
        framework: Some(false),
        pipes: Some(vec![]),
        ..Process::default()
    }
}

fn key(pid: i32) -> ProcessKey {
    ProcessKey {
        pid: Pid(pid),
        start_ticks: u64::try_from(pid).unwrap() * 10,
    }
}

/// Adds pipe ends: `fd:inode` is a reading end, `fd:inode!` a writing one.
fn with_pipes(mut process: Process, ends: &str) -> Process {
    process.pipes = Some(
        ends.split_whitespace()
            .map(|end| {
                let (fd, inode) = end.trim_end_matches('!').split_once(':').unwrap();
                PipeEnd {
                    fd: fd.parse().unwrap(),
                    inode: inode.parse().unwrap(),
                    write: end.ends_with('!'),
                }
            })
            .collect(),
    );
    process
}

/// What a forking loader with two workers really holds: result queue 100, index queues 101 and 104, `Popen` pipes 102,
/// 103, 105 and 106.
fn forked() -> Vec<Process> {
    vec![
        process(1, 0, "bash", "bash"),
        with_pipes(
            process(10, 1, "python3", "python3 train.py"),
            "3:100 4:100! 5:101 6:101! 7:102 11:103! 8:104 9:104! 12:105 15:106!",
        ),
        with_pipes(
            process(11, 10, "pt_data_worker", "python3 train.py"),
            "3:100 4:100! 5:101 6:101! 8:102! 9:103",
        ),
        with_pipes(
            process(12, 10, "pt_data_worker", "python3 train.py"),
            "3:100 4:100! 5:101 6:101! 7:102 8:104 9:104! 13:105! 14:106",
        ),
    ]
}

#[test]
fn workers_that_share_a_result_pipe_are_one_loader() {
    let processes = forked();
    let tree = Tree::new(&processes);
    let trainer = tree.get(Pid(10)).unwrap();
    let found = loaders(trainer, &tree.workers(trainer), &[]);
    assert_eq!(
        found,
        vec![Loader {
            pipe: Some(loaders::ResultPipe { inode: 100, fd: 3 }),
            pipe_is_seen: false,
            workers: vec![key(11), key(12)]
        }]
    );
}

/// Spare are named workers, and copies after the first sixteen; not a copy that has started others, nor another
/// program.
#[test]
fn of_many_copies_a_few_show_what_all_are() {
    let mut processes = forked();
    processes.push(process(13, 10, "python3", "python3 other.py"));
    processes.push(process(14, 10, "python3", "python3 train.py"));
    processes.push(process(15, 14, "python3", "python3 other.py"));
    processes.push(process(16, 1, "python3", "python3 train.py"));
    let others = (17..37).map(|pid| process(pid, 16, "python3", "python3 train.py"));
    processes.extend(others);
    let spare: Vec<_> = Tree::new(&processes).spare_copies().into_iter().collect();
    assert_eq!(spare, [11, 12, 33, 34, 35, 36].map(key));
}

#[test]
fn a_second_loader_with_inherited_pipes_is_distinguished() {
    let mut processes = forked();
    processes[1] = with_pipes(
        processes[1].clone(),
        "3:100 4:100! 5:101 6:101! 8:104 9:104! 20:200 21:200! 22:201 23:201! 24:202",
    );
    processes.push(with_pipes(
        process(13, 10, "pt_data_worker", "python3 train.py"),
        "3:100 4:100! 5:101 6:101! 8:104 9:104! 20:200 21:200! 22:201 23:201! 30:202!",
    ));
    let tree = Tree::new(&processes);
    let trainer = tree.get(Pid(10)).unwrap();
    let found = loaders(trainer, &tree.workers(trainer), &[]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].pipe.map(|pipe| pipe.inode), Some(200));
    assert_eq!(found[1].workers, vec![key(13)]);
}

#[test]
fn pipes_that_were_open_before_the_loader_are_not_its_queue() {
    let mut processes = forked();
    for (at, fds) in [
        (1, "1:90 2:90! 40:91 41:91!"),
        (2, "1:90 2:90! 40:91 41:91!"),
        (3, "1:90 2:90! 40:91 41:91!"),
    ] {
        let ours = with_pipes(processes[at].clone(), fds).pipes.unwrap();
        processes[at].pipes.as_mut().unwrap().extend(ours);
    }
    let tree = Tree::new(&processes);
    let trainer = tree.get(Pid(10)).unwrap();
    let found = loaders(trainer, &tree.workers(trainer), &[3]);
    assert_eq!(
        found[0].pipe.map(|pipe| pipe.inode),
        Some(100),
        "seen to be polled"
    );

    // Without `polled`, descriptors decide: pipes that were opened earlier usually have lower ones.
    for process in &mut processes {
        process.pipes.as_mut().unwrap().retain(|end| end.fd < 40);
    }
    let tree = Tree::new(&processes);
    let trainer = tree.get(Pid(10)).unwrap();
    let found = loaders(trainer, &tree.workers(trainer), &[]);
    assert_eq!(found[0].pipe.map(|pipe| pipe.inode), Some(100));
    assert_eq!(found[0].workers.len(), 2);
}

#[test]
fn without_descriptors_the_workers_are_one_loader_without_a_pipe() {
    let mut processes = forked();
    for process in &mut processes {
        process.pipes = None;
    }
    let tree = Tree::new(&processes);
    let trainer = tree.get(Pid(10)).unwrap();
    let found = loaders(trainer, &tree.workers(trainer), &[]);
    assert_eq!(
        found,
        vec![Loader {
            pipe: None,
            pipe_is_seen: false,
            workers: vec![key(11), key(12)]
        }]
    );
}

#[test]
fn older_pytorch_workers_are_known_by_their_pipes() {
    let mut processes = forked();
    processes[2].comm = "python3".into();
    processes[3].comm = "python3".into();
    // A copy of the trainer that shares nothing with it is not a worker.
    processes.push(process(14, 10, "python3", "python3 train.py"));
    let tree = Tree::new(&processes);
    let workers = tree.workers(tree.get(Pid(10)).unwrap());
    assert_eq!(
        workers.iter().map(|worker| worker.key).collect::<Vec<_>>(),
        [key(11), key(12)]
    );
}

#[test]
fn workers_of_a_fork_server_are_grandchildren() {
    let server = "python3 -c from multiprocessing.forkserver import main; main(5, 6)";
    let tracker = "python3 -c from multiprocessing.resource_tracker import main; main(7)";
    let mut processes = forked();
    processes.truncate(2);
    processes.push(process(20, 10, "python3", server));
    processes.push(process(21, 10, "python3", tracker));
    processes.push(with_pipes(
        process(22, 20, "pt_data_worker", server),
        "4:100! 5:101",
    ));
    let tree = Tree::new(&processes);
    let workers = tree.workers(tree.get(Pid(10)).unwrap());
    assert_eq!(
        workers.iter().map(|worker| worker.key).collect::<Vec<_>>(),
        [key(22)]
    );
    assert_eq!(tree.trainer_of(&processes[4]).unwrap().key, key(10));
}

const FORK_SERVER: &str =
    "python3 -c import sys; from multiprocessing.forkserver import main; main(5, 6)";

#[test]
fn a_fork_server_that_has_loaded_the_script_does_not_train() {
    // A fork server is the default of Python 3.14. It has no worker yet, and none of the trainer's queues.
    let trainer = with_pipes(process(10, 1, "python3", "python3 train.py"), "20:200!");
    let server = with_pipes(process(20, 10, "python3", FORK_SERVER), "5:300");
    let processes = [with_framework(trainer), with_framework(server)];
    assert_eq!(ranks_of(&processes), [key(10)]);
}

#[test]
fn what_a_fork_server_started_may_train_and_start_workers() {
    let launcher = with_pipes(process(10, 1, "python3", "python3 train.py"), "20:200!");
    let server = with_pipes(process(20, 10, "python3", FORK_SERVER), "5:300");
    let trainer = with_pipes(process(21, 20, "python3", FORK_SERVER), "7:400 8:400!");
    let worker = process(22, 21, "pt_data_worker", FORK_SERVER);
    let processes = [launcher, server, trainer, worker].map(with_framework);
    let job = resolve(&processes, &Target::Any, &[]).unwrap().unwrap();
    assert_eq!((job.ranks, job.workers), (vec![key(21)], 1));
}

#[test]
fn a_worker_or_a_launcher_stands_for_its_job() {
    let processes = forked();
    for pid in [1, 10, 12] {
        let job = resolve(&processes, &Target::Pid(Pid(pid)), &[])
            .unwrap()
            .unwrap();
        assert_eq!(job.ranks, vec![key(10)], "target {pid}");
        assert_eq!(job.workers, 2);
    }
    let job = resolve(&processes, &Target::Word("train.py".into()), &[])
        .unwrap()
        .unwrap();
    assert_eq!(job.ranks, vec![key(10)]);
    assert_eq!(
        resolve(&processes, &Target::Any, &[])
            .unwrap()
            .unwrap()
            .ranks,
        vec![key(10)]
    );
}

#[test]
fn ranks_of_one_launcher_are_one_job_in_their_order() {
    let mut processes = vec![process(
        5,
        1,
        "python3",
        "python3 -m torch.distributed.run t.py",
    )];
    for (pid, rank) in [(8, 1), (9, 0)] {
        let mut trainer = process(pid, 5, "python3", "python3 -u t.py");
        trainer.rank = Some(rank);
        trainer.world_size = Some(2);
        trainer.framework = Some(true);
        processes.push(trainer);
    }
    processes[0].framework = Some(true);
    for target in [Target::Pid(Pid(5)), Target::Pid(Pid(8)), Target::Any] {
        let job = resolve(&processes, &target, &[]).unwrap().unwrap();
        assert_eq!(job.ranks, vec![key(9), key(8)], "{target:?}");
    }
}

#[test]
fn each_bad_target_has_its_own_reason() {
    let mut processes = forked();
    processes.push(Process {
        kernel: true,
        ..process(2, 0, "kthreadd", "")
    });
    processes.push(process(30, 1, "sleep", "sleep 100"));
    processes.push(process(31, 1, "python3", "python3 -m http.server"));
    processes.push(Process {
        state: 'Z',
        ..process(32, 1, "python3", "")
    });
    let of = |target| resolve(&processes, &target, &[]).unwrap_err();
    assert_eq!(of(Target::Pid(Pid(999))), NoTarget::NoProcess(Pid(999)));
    assert_eq!(of(Target::Pid(Pid(2))), NoTarget::Kernel(Pid(2)));
    assert_eq!(
        of(Target::Pid(Pid(30))),
        NoTarget::NoPython(Pid(30), "sleep".into())
    );
    assert_eq!(
        of(Target::Pid(Pid(31))),
        NoTarget::NoFramework(Pid(31), "python3".into())
    );
    assert_eq!(
        of(Target::Pid(Pid(32))),
        NoTarget::Zombie(Pid(32), "python3".into())
    );
    assert_eq!(
        of(Target::Word("nothing".into())),
        NoTarget::NoMatch("nothing".into())
    );
    assert_eq!(
        of(Target::Word("http.server".into())),
        NoTarget::NoFramework(Pid(31), "python3".into())
    );
}

#[test]
fn several_jobs_are_listed_with_the_most_workers_first() {
    let mut processes = forked();
    processes.push(Process {
        framework: Some(true),
        ..process(40, 1, "python3", "python3 b.py")
    });
    let Err(NoTarget::Several(jobs)) = resolve(&processes, &Target::Any, &[]) else {
        panic!("two jobs must not be taken for one");
    };
    assert_eq!(
        jobs.iter().map(|job| job.workers).collect::<Vec<_>>(),
        [2, 0]
    );
}

const SPAWNED: &str = "python3 -c from multiprocessing.spawn import spawn_main; spawn_main(5, 6)";

#[test]
fn processes_that_joblib_starts_are_fresh_children() {
    let child = |command: &str| Process {
        command: command.to_owned(),
        ..Process::default()
    };
    let worker = "python3 -m joblib.externals.loky.backend.popen_loky_posix --process-name LokyProcess-1 --pipe 14";
    assert!(child(worker).is_fresh_child());
    assert!(child(SPAWNED).is_fresh_child());
    let tracker = "python3 -B -c from joblib.externals.loky.backend.resource_tracker import main; main(3, False)";
    assert!(!child(tracker).is_fresh_child());
}

fn with_framework(process: Process) -> Process {
    Process {
        framework: Some(true),
        ..process
    }
}

fn ranks_of(processes: &[Process]) -> Vec<ProcessKey> {
    resolve(processes, &Target::Any, &[])
        .unwrap()
        .unwrap()
        .ranks
}

#[test]
fn a_trainer_that_renamed_itself_is_known_by_its_program() {
    let mut processes = forked();
    for process in &mut processes[1..] {
        process.command = "epoch 3 of my run".into();
        process.comm = "epoch 3 of my r".into();
        process.runs_python = Some(true);
    }
    assert_eq!(ranks_of(&processes), [key(10)]);
    assert_eq!(
        resolve(&processes, &Target::Any, &[])
            .unwrap()
            .unwrap()
            .workers,
        2
    );
}

#[test]
fn spawned_children_that_load_for_themselves_or_have_a_gpu_are_the_ranks() {
    // The pipes by which the ranks were spawned: 102 and 103, 105 and 106.
    let launcher = with_pipes(
        with_framework(process(10, 1, "python3", "python3 spawn.py")),
        "3:102 4:103! 5:105 6:106!",
    );
    let rank = |pid, ends| with_pipes(with_framework(process(pid, 10, "python3", SPAWNED)), ends);
    let mut processes = vec![launcher, rank(11, "3:102! 4:103"), rank(12, "3:105! 4:106")];
    let job = resolve(&processes, &Target::Any, &[]).unwrap().unwrap();
    assert_eq!(job.ranks, [key(11), key(12)], "handed no queue");
    assert_eq!(job.command, "python3 spawn.py");
    let of_rank = resolve(&processes, &Target::Pid(Pid(12)), &[])
        .unwrap()
        .unwrap();
    assert_eq!(of_rank, job);

    // They work for it, for example as simulated environments.
    let mut works = processes.clone();
    works[0].only_waits = Some(false);
    assert_eq!(ranks_of(&works), [key(10)]);

    // A queue for the results of both.
    for process in &mut processes {
        let ends = with_pipes(process.clone(), "20:200 21:200!").pipes.unwrap();
        process.pipes.as_mut().unwrap().extend(ends);
    }
    assert_eq!(ranks_of(&processes), [key(10)], "they could be its workers");
    let mut on_gpus = processes.clone();
    for process in &mut on_gpus[1..] {
        process.gpu = Some(true);
    }
    assert_eq!(ranks_of(&on_gpus), [key(11), key(12)]);
    for (pid, rank) in [(13, 11), (14, 12)] {
        // A rank passes its number to the processes that it starts.
        let worker = process(pid, rank, "pt_data_worker", SPAWNED);
        let tracker = "python3 -c from multiprocessing.resource_tracker import main; main(7)";
        for child in [worker, process(pid + 10, rank, "python3", tracker)] {
            processes.push(Process {
                rank: Some(0),
                ..child
            });
        }
    }
    let job = resolve(&processes, &Target::Any, &[]).unwrap().unwrap();
    assert_eq!((job.ranks, job.workers), (vec![key(11), key(12)], 2));
}

#[test]
fn other_children_of_a_trainer_are_not_ranks() {
    let mut processes = forked();
    processes[1].framework = Some(true);
    processes.push(with_framework(process(20, 10, "python3", SPAWNED)));
    processes.push(with_framework(process(
        21,
        10,
        "python3",
        "python3 train.py",
    )));
    assert_eq!(ranks_of(&processes), [key(10)]);
}

#[test]
fn what_started_the_only_rank_through_multiprocessing_may_be_the_trainer() {
    let starter = with_framework(process(10, 1, "python3", "python3 train.py"));
    let worker = process(12, 11, "pt_data_worker", "python3 train.py");
    let starter_of = |command: &str| {
        let rank = with_framework(process(11, 10, "python3", command));
        let processes = [starter.clone(), rank, worker.clone()];
        let job = resolve(&processes, &Target::Any, &[]).unwrap().unwrap();
        assert_eq!(job.ranks, [key(11)]);
        job.starter
    };
    assert_eq!(starter_of(SPAWNED), Some(key(10)));
    assert_eq!(starter_of("python3 train.py"), Some(key(10)));
    assert_eq!(starter_of("python3 other.py"), None);
}

#[test]
fn a_launcher_with_a_framework_that_only_waits_is_not_the_trainer() {
    let launcher = process(10, 1, "python3", "python3 /bin/accelerate launch train.py");
    let trainer = process(11, 10, "python3", "python3 train.py");
    let processes = [with_framework(launcher), with_framework(trainer)];
    assert_eq!(ranks_of(&processes), [key(11)]);
}

#[test]
fn a_trainer_that_starts_another_program_with_a_framework_is_meant_by_its_pid() {
    let trainer = |only_waits| Process {
        only_waits,
        ..with_framework(process(10, 1, "python3", "python3 train.py"))
    };
    let other = with_framework(process(11, 10, "python3", "python3 evaluate.py"));
    let by_pid = |pid, only_waits| {
        let processes = [trainer(only_waits), other.clone()];
        let found = resolve(&processes, &Target::Pid(Pid(pid)), &[]);
        found.unwrap().unwrap().ranks
    };
    assert_eq!(by_pid(10, Some(true)), [key(11)]);
    assert_eq!(by_pid(10, Some(false)), [key(10)]);
    assert_eq!(by_pid(11, Some(false)), [key(11)]);
    let processes = [trainer(Some(false)), other.clone()];
    assert!(matches!(
        resolve(&processes, &Target::Any, &[]),
        Err(NoTarget::Several(found)) if found.len() == 2
    ));
}

#[test]
fn a_notebook_that_runs_no_cell_is_not_meant_beside_a_training() {
    let kernel = |only_waits| Process {
        only_waits,
        ..with_framework(process(10, 1, "python3", "python3 -m ipykernel_launcher"))
    };
    let any = |processes: &[Process]| {
        let found = resolve(processes, &Target::Any, &[]);
        found.map(|found| found.unwrap().ranks)
    };
    let training = with_framework(process(11, 1, "python3", "python3 train.py"));
    let both = |only_waits| any(&[kernel(only_waits), training.clone()]);
    assert_eq!(both(Some(true)), Ok(vec![key(11)]));
    assert!(both(Some(false)).is_err() && both(None).is_err());
    assert_eq!(any(&[kernel(Some(true))]), Ok(vec![key(10)]));
}

/// A shell with two jobs below it, and with `timeout`, which has started pipetop to search for one of them.
fn two_below_a_shell() -> Vec<Process> {
    let job = |pid, command: &str| Process {
        framework: Some(true),
        ..process(pid, 5, "python3", command)
    };
    vec![
        process(5, 0, "bash", "bash run_both.sh"),
        job(10, "python3 one.py"),
        job(
            11,
            "python3 /home/me/other.py --name a-very-long-name-of-an-experiment",
        ),
        process(20, 5, "timeout", "timeout 9 pipetop nosuchword"),
    ]
}

#[test]
fn of_several_jobs_below_a_process_none_is_picked() {
    let found = resolve(&two_below_a_shell(), &Target::Pid(Pid(5)), &[]);
    let error = found.unwrap_err();
    assert_eq!(
        error.to_string(),
        "process 5 (bash) has several training jobs below it"
    );
    assert_eq!(error.hint(), "choose one by its PID: `pipetop PID`");
    let word = Target::Word("run_both".into());
    let Err(NoTarget::Several(jobs)) = resolve(&two_below_a_shell(), &word, &[]) else {
        panic!("a word must not pick one of two either");
    };
    assert_eq!(jobs.len(), 2);
}

#[test]
fn a_word_does_not_match_the_parents_of_pipetop_unless_they_train() {
    let find = |word: &str, ours: &[Pid]| {
        let found = resolve(&two_below_a_shell(), &Target::Word(word.into()), ours);
        found.map(|job| job.unwrap().ranks[0].pid)
    };
    let nothing = NoTarget::NoMatch("nosuchword".into());
    assert_eq!(find("nosuchword", &[Pid(20), Pid(5)]), Err(nothing));
    assert_eq!(find("one.py", &[Pid(10), Pid(5)]), Ok(Pid(10)));
}

#[test]
fn an_error_shows_the_beginning_of_a_long_word() {
    let error = NoTarget::NoMatch("x".repeat(100_000)).to_string();
    assert!(error.len() < 150 && error.ends_with("x...`"), "{error}");
}

#[test]
fn words_match_in_either_case() {
    let word = Target::Word("OTHER.py".into());
    let found = resolve(&two_below_a_shell(), &word, &[]).unwrap();
    assert_eq!(found.unwrap().ranks, [key(11)]);
}

#[test]
fn the_built_in_trainer_is_known_before_it_takes_its_name() {
    let by = |comm, command| process(1, 0, comm, command).is_builtin_trainer();
    assert!(by("pipetop", "pipetop builtin-trainer --workers 4"));
    assert!(by(BUILTIN_TRAINER, ""));
    assert!(
        !by("pipetop", "pipetop builtin-trainer"),
        "no flags: another program"
    );
    assert!(!by("pipetop", "pipetop --once 12"));
    assert!(!by("bash", "bash -c pipetop builtin-trainer --workers 4"));
}

/// Workers go on for a while after their trainer was killed.
#[test]
fn workers_without_a_trainer_are_no_jobs() {
    let mut orphan = with_framework(process(31, 1, "pt_data_worker", "python3 train.py"));
    orphan.pipes = Some(vec![]);
    let trainer = with_framework(process(10, 1, "python3", "python3 train.py"));
    assert_eq!(super::candidates::candidates(&[orphan.clone()]), []);
    let found = super::candidates::candidates(&[orphan, trainer]);
    let ranks = found.iter().flat_map(|job| &job.ranks);
    assert_eq!(ranks.map(|rank| rank.pid).collect::<Vec<_>>(), [Pid(10)]);
}
