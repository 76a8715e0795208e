use super::*;

const TORCH: &str = "/usr/lib/python3/dist-packages/torch";
const LIB: &str = "/usr/lib/python3.11";

/// Returns frames from words `file:function`, innermost first. `T` and `L` stand for the folders of torch and of the
/// library.
fn places(frames: &[&str]) -> Vec<CodeLocation> {
    frames
        .iter()
        .map(|frame| {
            let (file, name) = frame.split_once(':').unwrap_or((frame, "f"));
            CodeLocation {
                name: name.to_owned(),
                file: match (file.strip_prefix("T/"), file.strip_prefix("L/")) {
                    (Some(rest), _) => format!("{TORCH}/{rest}"),
                    (_, Some(rest)) => format!("{LIB}/{rest}"),
                    _ => file.to_owned(),
                },
            }
        })
        .collect()
}

fn seen(frames: &[&str], iterator_type: Option<&str>) -> InLoader {
    in_loader(&places(frames).iter().collect::<Vec<_>>(), iterator_type)
}

fn phase(frames: &[&str], has_index: bool) -> WorkerPhase {
    worker_phase(&places(frames).iter().collect::<Vec<_>>(), has_index)
}

fn named(frames: &[&str]) -> Option<String> {
    activity(&places(frames).iter().collect::<Vec<_>>())
}

const MULTI: Option<&str> = Some("_MultiProcessingDataLoaderIter");
const SINGLE: Option<&str> = Some("_SingleProcessDataLoaderIter");

#[test]
fn a_poll_of_the_result_queue_is_waiting() {
    let stack = [
        "L/selectors.py:_PollLikeSelector.select",
        "L/multiprocessing/connection.py:wait",
        "L/multiprocessing/connection.py:Connection._poll",
        "L/multiprocessing/connection.py:_ConnectionBase.poll",
        "L/multiprocessing/queues.py:Queue.get",
        "T/utils/data/dataloader.py:_MultiProcessingDataLoaderIter._try_get_data",
        "T/utils/data/dataloader.py:_MultiProcessingDataLoaderIter._get_data",
        "T/utils/data/dataloader.py:_MultiProcessingDataLoaderIter._next_data",
        "T/utils/data/dataloader.py:_BaseDataLoaderIter.__next__",
        "/home/me/train.py:main",
    ];
    assert_eq!(seen(&stack, MULTI), InLoader::Waiting);
}

#[test]
fn only_the_select_of_an_event_loop_is_idle() {
    let idle = |frames: &[&str]| idles(&places(frames).iter().collect::<Vec<_>>());
    let kernel = [
        "L/selectors.py:EpollSelector.select",
        "L/asyncio/base_events.py:BaseEventLoop._run_once",
        "L/asyncio/base_events.py:BaseEventLoop.run_forever",
        "/site/ipykernel/kernelapp.py:IPKernelApp.start",
        "/site/ipykernel_launcher.py:<module>",
    ];
    assert_eq!(idle(&kernel), Some(CELLS));
    // The event loop of a program that is not a notebook, whatever it awaits.
    let program = [&kernel[..3], &["/home/me/train.py:<module>"]].concat();
    assert_eq!(idle(&program), Some(EVENTS));
    // The kernel runs a cell.
    let cell = [&["/tmp/ipykernel_7/1.py:train"], &kernel[1..]].concat();
    assert_eq!(idle(&cell), None);
    // A program that waits for its own sockets, or its child.
    let own = [
        "L/selectors.py:EpollSelector.select",
        "/home/me/serve.py:main",
    ];
    let child = [
        "L/selectors.py:_PollLikeSelector.select",
        "L/subprocess.py:Popen._communicate",
    ];
    for frames in [&own[..], &child, &kernel[..1]] {
        assert_eq!(idle(frames), None);
    }
}

#[test]
fn a_loader_in_the_dataset_of_another_is_within_it() {
    let outer = |frames: &[&str]| outer_loader(&places(frames).iter().collect::<Vec<_>>());
    let stack = [
        "T/utils/data/dataloader.py:_MultiProcessingDataLoaderIter._try_get_data",
        "T/utils/data/dataloader.py:_MultiProcessingDataLoaderIter._next_data",
        "T/utils/data/dataloader.py:_BaseDataLoaderIter.__next__",
        "/home/me/train.py:Chunks.__iter__",
        "T/utils/data/_utils/fetch.py:_IterableDatasetFetcher.fetch",
        "T/utils/data/dataloader.py:_SingleProcessDataLoaderIter._next_data",
        "T/utils/data/dataloader.py:_BaseDataLoaderIter.__next__",
        "/home/me/train.py:main",
    ];
    assert_eq!(outer(&stack), Some(6));
    assert_eq!(outer(&stack[..3]), None);
    assert_eq!(outer(&stack[3..]), None);
    let thrice = [&stack[..], &stack[3..]].concat();
    assert_eq!(outer(&thrice), Some(11));
}

/// torchdata's iterator is a subclass of PyTorch's: some functions on the stack are torchdata's, others are PyTorch's.
#[test]
fn the_loader_of_torchdata_is_one_of_pytorch() {
    let stack = [
        "L/multiprocessing/queues.py:Queue.get",
        "P/torchdata/stateful_dataloader/stateful_dataloader.py:_StatefulMultiProcessingDataLoaderIter._try_get_data",
        "P/torchdata/stateful_dataloader/stateful_dataloader.py:_StatefulMultiProcessingDataLoaderIter._next_data",
        "P/torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__",
        "P/torchdata/stateful_dataloader/stateful_dataloader.py:_StatefulBaseDataLoaderIter.__next__",
        "/home/me/train.py:main",
    ];
    let multi = Some("_StatefulMultiProcessingDataLoaderIter");
    let found = places(&stack);
    let found: Vec<_> = found.iter().collect();
    assert_eq!(in_loader(&found[1..], multi), InLoader::Waiting);
    assert_eq!(in_loader(&found, multi), InLoader::Receiving);
    assert_eq!(outer_loader(&found), None);
    assert!(super::super::iterator::is_iterator(
        "_StatefulMultiProcessingDataLoaderIter"
    ));
    let worker = places(&[
        "L/multiprocessing/queues.py:Queue.get",
        "P/torchdata/stateful_dataloader/worker.py:_worker_loop",
    ]);
    let worker: Vec<_> = worker.iter().collect();
    assert_eq!(worker_phase(&worker, false), WorkerPhase::Idle);
}

#[test]
fn a_pinned_loader_waits_on_a_condition() {
    let stack = [
        "L/threading.py:wait",
        "L/queue.py:get",
        "T/utils/data/dataloader.py:_get_data",
        "T/utils/data/dataloader.py:_next_data",
        "T/utils/data/dataloader.py:__next__",
    ];
    assert_eq!(seen(&stack, MULTI), InLoader::Waiting);
}

#[test]
fn unpickling_and_mapping_a_batch_is_receiving() {
    let tail = [
        "T/utils/data/dataloader.py:_try_get_data",
        "T/utils/data/dataloader.py:_next_data",
        "T/utils/data/dataloader.py:__next__",
    ];
    let heads: [&[&str]; 4] = [
        &["L/multiprocessing/queues.py:get"],
        &[
            "L/socket.py:recv",
            "T/multiprocessing/reductions.py:rebuild_storage_fd",
            "L/multiprocessing/queues.py:get",
        ],
        &[
            "L/multiprocessing/connection.py:_recv",
            "L/multiprocessing/queues.py:get",
        ],
        &[
            "L/multiprocessing/resource_sharer.py:detach",
            "L/multiprocessing/queues.py:get",
        ],
    ];
    for head in heads {
        assert_eq!(
            seen(&[head, &tail].concat(), MULTI),
            InLoader::Receiving,
            "{head:?}"
        );
    }
    let sends_index = [
        "T/utils/data/dataloader.py:_try_put_index",
        "T/utils/data/dataloader.py:_process_data",
        tail[1],
        tail[2],
    ];
    assert_eq!(seen(&sends_index, MULTI), InLoader::Receiving);
}

#[test]
fn a_loader_without_workers_loads_in_the_main_thread() {
    let stack = [
        "/home/me/train.py:decode",
        "T/utils/data/_utils/fetch.py:fetch",
        "T/utils/data/dataloader.py:_next_data",
        "T/utils/data/dataloader.py:__next__",
    ];
    assert_eq!(seen(&stack, SINGLE), InLoader::Loading);
    assert_eq!(named(&stack).as_deref(), Some("decode (train.py)"));
}

#[test]
fn making_and_ending_workers_is_starting() {
    let making = [
        "L/multiprocessing/process.py:start",
        "T/utils/data/dataloader.py:__init__",
        "T/utils/data/dataloader.py:_get_iterator",
        "T/utils/data/dataloader.py:__iter__",
    ];
    assert_eq!(seen(&making, MULTI), InLoader::Starting);
    let ending = [
        "L/multiprocessing/process.py:join",
        "T/utils/data/dataloader.py:_shutdown_workers",
        "T/utils/data/dataloader.py:_next_data",
    ];
    assert_eq!(seen(&ending, MULTI), InLoader::Starting);
    let resuming = [
        "L/multiprocessing/queues.py:get",
        "T/utils/data/dataloader.py:_reset",
        "T/utils/data/dataloader.py:__iter__",
    ];
    assert_eq!(seen(&resuming, MULTI), InLoader::Waiting);
    let picks = [
        "T/utils/data/sampler.py:WeightedRandomSampler.__iter__",
        "T/utils/data/dataloader.py:_next_index",
        "T/utils/data/dataloader.py:_try_put_index",
        resuming[1],
        resuming[2],
    ];
    assert_eq!(seen(&picks, MULTI), InLoader::Loading);
    let without_workers = ["T/utils/data/dataloader.py:__init__", making[2], making[3]];
    assert_eq!(seen(&without_workers, SINGLE), InLoader::Loading);
}

#[test]
fn building_or_asking_a_loader_is_not_using_it() {
    assert_eq!(
        seen(&["T/utils/data/dataloader.py:__init__"], Some("DataLoader")),
        InLoader::Outside
    );
    assert_eq!(
        seen(&["T/utils/data/dataloader.py:__len__"], Some("DataLoader")),
        InLoader::Outside
    );
    assert_eq!(
        seen(&["/home/me/dataloader.py:__next__"], None),
        InLoader::Outside
    );
    assert_eq!(seen(&[], None), InLoader::Outside);
}

#[test]
fn a_worker_is_idle_in_get_and_busy_with_a_batch() {
    let work = "T/utils/data/_utils/worker.py:_worker_loop";
    let (get, put) = (
        "L/multiprocessing/queues.py:Queue.get",
        "L/multiprocessing/queues.py:Queue.put",
    );
    assert_eq!(
        phase(&["L/selectors.py:select", get, work], false),
        WorkerPhase::Idle
    );
    assert_eq!(
        phase(&["T/utils/data/_utils/worker.py:is_alive", work], false),
        WorkerPhase::Idle
    );
    assert_eq!(
        phase(&["T/utils/data/_utils/fetch.py:fetch", work], true),
        WorkerPhase::Busy
    );
    assert_eq!(
        phase(&["L/threading.py:notify", put, work], true),
        WorkerPhase::Handover
    );
    assert_eq!(
        phase(&["/home/me/train.py:init_fn", work], false),
        WorkerPhase::Preparing
    );
    assert_eq!(
        phase(&["L/multiprocessing/spawn.py:spawn_main"], false),
        WorkerPhase::Starting
    );
    let bootstrap = "L/multiprocessing/process.py:BaseProcess._bootstrap";
    let run = "L/multiprocessing/process.py:BaseProcess.run";
    let import = "<frozen importlib._bootstrap>:_find_and_load";
    let spawned = "L/multiprocessing/spawn.py:spawn_main";
    assert_eq!(
        phase(&["numpy.py:<module>", import, "train.py:<module>"], false),
        WorkerPhase::Starting
    );
    // A worker that does not belong to PyTorch's loader, spawned, or forked by a program that runs in an import.
    for outer in [spawned, import] {
        assert_eq!(
            phase(&["/home/me/train.py:work", run, bootstrap, outer], false),
            WorkerPhase::Busy
        );
    }
    let (own, pool) = (
        "paddle/io/dataloader/worker.py:_worker_loop",
        "L/multiprocessing/pool.py:worker",
    );
    for target in [own, pool] {
        let of = |inner: &[&str]| phase(&[inner, &[target, run, bootstrap]].concat(), false);
        assert_eq!(
            of(&["L/multiprocessing/connection.py:recv_bytes", get]),
            WorkerPhase::Idle
        );
        assert_eq!(of(&[put]), WorkerPhase::Handover);
        assert_eq!(of(&[get, "/home/me/train.py:load"]), WorkerPhase::Busy);
        assert_eq!(of(&[]), WorkerPhase::Busy);
    }
    // A wait on a queue of the dataset itself counts as the dataset's work.
    assert_eq!(
        phase(
            &[
                get,
                "/home/me/train.py:read",
                "T/utils/data/_utils/fetch.py:fetch",
                work
            ],
            true
        ),
        WorkerPhase::Busy
    );
}

#[test]
fn the_innermost_specific_function_is_named() {
    let cases: [(&[&str], Option<&str>); 9] = [
        (
            &["L/multiprocessing/spawn.py:spawn_main", "<string>:<module>"],
            None,
        ),
        (
            &[
                "/venv/lib/python3.11/site-packages/PIL/Image.py:Image.resize",
                "/home/me/train.py:decode",
            ],
            Some("Image.resize (PIL)"),
        ),
        (
            &["L/json/decoder.py:JSONDecoder.raw_decode"],
            Some("JSONDecoder.raw_decode (json)"),
        ),
        (
            &["L/random.py:Random.shuffle"],
            Some("Random.shuffle (random)"),
        ),
        (
            &[
                "T/nn/modules/module.py:Module._call_impl",
                "/home/me/net.py:Net.forward",
            ],
            Some("Net.forward (net.py)"),
        ),
        (
            &[
                "T/utils/data/_utils/fetch.py:<listcomp>",
                "T/utils/data/_utils/fetch.py:fetch",
            ],
            None,
        ),
        (
            &["T/utils/data/_utils/collate.py:collate_tensor_fn"],
            Some("collate (torch)"),
        ),
        (
            &["/home/me/train.py:main.<locals>.Images.__getitem__"],
            Some("Images.__getitem__ (train.py)"),
        ),
        (
            &[
                "<frozen importlib._bootstrap>:_find_and_load",
                "/home/me/train.py:<module>",
            ],
            Some("<module> (train.py)"),
        ),
    ];
    for (frames, expected) in cases {
        assert_eq!(named(frames).as_deref(), expected, "{frames:?}");
    }
}

#[test]
fn names_contain_no_control_characters() {
    let long = format!("/home/me/\u{1b}[2J{}.py:f\u{7}", "x".repeat(200));
    let name = named(&[&long]).unwrap_or_default();
    assert!(!name.chars().any(char::is_control), "{name:?}");
    assert!(name.len() < 2 * MAX_NAME + 8);
}

#[test]
fn a_wait_for_another_thread_is_named_by_who_waits() {
    let waits = [
        "L/concurrent/futures/_base.py:wait",
        "/site-packages/zarr/core/sync.py:sync",
        "/home/me/train.py:Volumes.__getitem__",
    ];
    assert_eq!(named(&waits).as_deref(), Some("sync (zarr)"));
    let runs = [
        "L/selectors.py:select",
        "L/asyncio/base_events.py:_run_once",
        waits[2],
    ];
    assert_eq!(
        named(&runs).as_deref(),
        Some("Volumes.__getitem__ (train.py)")
    );
}
