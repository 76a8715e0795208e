//! Code shared by several test programs: sessions in a pseudo-terminal, stand-in jobs, fake machines, situations to draw.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

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

/// Returns the program under test, which Cargo builds beside the test programs.
///
/// # Panics
/// Panics if the test program is not in a `deps` folder of Cargo.
pub fn pipetop() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program
        .ancestors()
        .nth(2)
        .expect("target/PROFILE/deps/NAME");
    folder.join("pipetop")
}

/// Copies a program to where every user may run it.
///
/// # Errors
/// Returns an error if the folder cannot be made or the program cannot be copied.
pub fn for_everyone(program: &Path) -> io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o755))
        .tempdir()?;
    let copy = folder.path().join("program");
    copy_program(program, &copy)?;
    Ok((folder, copy))
}

/// Copies a program with `install`, in another process. If this process wrote the copy, a child that another test
/// starts at that moment would inherit the open descriptor, and a file that is open for writing cannot be run.
fn copy_program(program: &Path, to: &Path) -> io::Result<()> {
    let mut install = Command::new("install");
    let made = install.arg("-m755").arg(program).arg(to).status()?;
    if made.success() {
        return Ok(());
    }
    let text = format!("cannot copy {}", program.display());
    Err(io::Error::other(text))
}

/// Returns a command that starts the program under test with the signals that it would have in a shell. Under `nohup`
/// or in the background of a shell, the test itself may ignore some signals, and its children would inherit that.
pub fn with_all_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT").arg(pipetop());
    command
}
