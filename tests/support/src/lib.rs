//! What several test programs share: sessions in a pseudo-terminal, stand-in jobs, fake machines, situations to draw.

use std::path::PathBuf;

pub mod fake_root;
pub mod fuzz;
pub mod keys;
pub mod long_job;
pub mod machine;
pub mod measured;
pub mod noise;
pub mod readings;
pub mod run_folder;
pub mod scene;
pub mod session;
pub mod soak;
pub mod stand_in;
pub mod traces;
pub mod waiting;

/// The program under test, which Cargo builds beside the test programs.
///
/// # Panics
/// Where the test program does not lie in a `deps` folder of Cargo's.
pub fn pipetop() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program
        .ancestors()
        .nth(2)
        .expect("target/PROFILE/deps/NAME");
    folder.join("pipetop")
}
