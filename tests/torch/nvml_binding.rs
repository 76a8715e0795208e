//! NVIDIA's own Python binding reads the fake driver as scripted. This checks structures, versions, sizes and error
//! numbers against an independent source.
//!
//! Runs with the first interpreter that has `nvidia-ml-py`, whether it has torch or not.

use std::process::Command;

use fake_nvml::FakeNvml;
use serde_json::{Value, json};
use support::machine::{has, interpreters, skip, torches};
use tempfile::TempDir;

const READ: &str = include_str!("nvml_binding/read.py");

#[test]
fn the_binding_of_nvidia_reads_what_the_script_says() {
    let torches = torches().iter().map(|python| python.path.as_str());
    let mut listed = torches.chain(interpreters().iter().map(String::as_str));
    let Some(python) = listed.find(|python| has(python, "pynvml")) else {
        return skip("no interpreter has nvidia-ml-py");
    };
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(
        directory.path(),
        "sys count=2 driver=575.57\n\
         dev 0 name=NVIDIA_H100 uuid=GPU-5ac7 minor=3 util=63 mem_util=21 total=80G reserved=1G used=40G\n\
         dev 0 power=512.5 limit=700 energy=12345.5 temp=61 sm=1755 memclk=2619 throttle=36\n\
         dev 0 pcie_gen=4 pcie_max_width=8 pcie_tx=1500000 pcie_rx=2500000 enc=3 dec=7 persistence=0\n\
         dev 0 ecc_corrected=5 ecc_uncorrected=1 remapped=2:1:1:0 instant=533.25 mem_temp=77\n\
         dev 0 field.138.4294967295=777 field.138.0=97 procs=4242:30G:55:10,4243:-\n\
         dev 0 gpm=1 gpm.2=41.5 gpm.10=17 gpm.20=1024 xid=79\n\
         dev 1 mig=1\n\
         dev 1.0 uuid=MIG-77 gi=5 ci=1 total=20G used=3G",
    );
    let output = Command::new(python)
        .args(["-c", READ])
        .env("LD_LIBRARY_PATH", directory.path())
        .env_remove("FAKE_NVML")
        .output()
        .expect("the interpreter starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{python}: {complaint}");
    assert!(fake.library().exists());
    let found: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let not_supported = json!({ "error": 3 });
    let gib = |count: u64| count << 30;
    let expected = json!({
        "count": 2,
        "driver": "575.57",
        "name": "NVIDIA H100",
        "uuid": "GPU-5ac7",
        "minor": 3,
        "util": [63, 21],
        "memory": [gib(80), gib(1), gib(40)],
        "power": 512_500,
        "limit": 700_000,
        "energy": 12_345_500,
        "temperature": 61,
        "clocks": [1755, 2619],
        "throttle": 36,
        "link": [4, 8],
        "pcie": [1500, 2500],
        "video": [3, 7],
        "persistence": 0,
        "ecc": [5, 1],
        "remapped": [2, 1, 1, 0],
        "fields": [533_250, 77, 777, 97, 1, not_supported],
        "samples": [1, 72, 63],
        "processes": [[4242, gib(30)], [4243, null]],
        "shares": [[4242, 55, 10]],
        "gpm_supported": [1, 0],
        "gpm": [41.5, 17.0, 1024.0, not_supported],
        "xid": { "number": 79, "type": 8, "again": { "error": 10 } },
        "divided": [1, not_supported],
        "instance": {
            "uuid": "MIG-77",
            "gi": 5,
            "ci": 1,
            "total": gib(20),
            "used": gib(3),
            "util": not_supported,
            "next": { "error": 6 },
        },
    });
    assert_eq!(found, expected);
}
