//! NVML errors, with hints. Does not call NVML.

use std::fmt;
use std::path::Path;

use nvml_wrapper::error::NvmlError;

use crate::sample::{Absent, Gap, NO_GPU, NO_PERMISSION};

/// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`: this driver does not support this version of the call's structure.
const OTHER_FORM: u32 = 25;

/// Why a call returned nothing, in increasing order of severity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Failed(String),
    NoPermission,
    NeedsReset,
    Lost,
}

impl Trouble {
    /// Whether the GPU returns nothing at all.
    pub(super) fn is_lost(&self) -> bool {
        *self >= Self::NeedsReset
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(words) => write!(f, "driver: {words}"),
            Self::NoPermission => f.write_str(NO_PERMISSION),
            Self::NeedsReset => f.write_str("needs a reset"),
            Self::Lost => f.write_str("lost"),
        }
    }
}

/// Collects the errors of several calls.
#[derive(Default)]
pub(super) struct Troubles {
    pub(super) worst: Option<Trouble>,
    /// Figures that the driver did not return, with the reason.
    pub(super) absent: Vec<Absent>,
    mig: bool,
}

impl Troubles {
    /// Creates the collection for a GPU that is divided by MIG, or for a whole one.
    pub(super) fn of(mig: bool) -> Self {
        Self {
            mig,
            ..Self::default()
        }
    }

    /// Returns the value of `answer`, or `None` after recording the reason under the figure's name.
    pub(super) fn ask<T>(&mut self, figure: &str, answer: Result<T, NvmlError>) -> Option<T> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        let text = error.to_string();
        // A figure that the GPU or the driver simply does not have is no trouble.
        let (reason, trouble) = match error {
            // No samples newer than those already read.
            NvmlError::NotFound | NvmlError::NoData => return None,
            NvmlError::NotSupported if self.mig => ("not available while MIG is on", None),
            NvmlError::NotSupported => ("not supported by this GPU", None),
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
                ("the driver is too old", None)
            }
            NvmlError::UnexpectedVariant(OTHER_FORM) => ("unknown format from this driver", None),
            NvmlError::Utf8Error(_) => (&*text, None),
            NvmlError::NoPermission => (NO_PERMISSION, Some(Trouble::NoPermission)),
            NvmlError::GpuLost => (&*text, Some(Trouble::Lost)),
            NvmlError::ResetRequired => (&*text, Some(Trouble::NeedsReset)),
            _ => (&*text, Some(Trouble::Failed(text.clone()))),
        };
        self.absent.push(Absent {
            figure: figure.to_owned(),
            reason: reason.to_owned(),
        });
        // `None` sorts before every `Trouble`.
        self.worst = self.worst.take().max(trouble);
        None
    }

    /// Whether the GPU returns nothing at all.
    pub(super) fn is_lost(&self) -> bool {
        self.worst.as_ref().is_some_and(Trouble::is_lost)
    }
}

/// Returns why the library cannot be used. `has_gpu`: whether the machine has an NVIDIA GPU, `None` if that is not
/// known.
pub(super) fn open_error(error: &NvmlError, library: Option<&Path>, has_gpu: Option<bool>) -> Gap {
    let name = library.map_or_else(
        || "libnvidia-ml.so.1".to_owned(),
        |path| path.display().to_string(),
    );
    let text = error.to_string();
    // The same message with another name at its start is about a library that this one depends on.
    let absent = text.contains(&format!("{name}: cannot open")) && text.contains("No such file");
    match error {
        // No NVIDIA GPU, so the library is not missing.
        NvmlError::LibloadingError(_) if absent && has_gpu == Some(false) => gap(NO_GPU, ""),
        NvmlError::LibloadingError(_) if absent => gap(
            format!("{name} not found"),
            "install the NVIDIA driver, or start the container with access to it (`docker run --gpus all`)",
        ),
        NvmlError::LibloadingError(_) => {
            let why = text.trim_start_matches("a libloading error occurred: ");
            let why = why.trim_start_matches(&format!("{name}: "));
            gap(
                format!("cannot load {name}: {why}"),
                "use the 64-bit library of the installed NVIDIA driver",
            )
        }
        NvmlError::FailedToLoadSymbol(_) => gap(
            format!("{name} is not NVML"),
            "use libnvidia-ml.so.1 of the NVIDIA driver",
        ),
        NvmlError::LibRmVersionMismatch => gap(
            "NVIDIA driver/library version mismatch",
            "after a driver upgrade, reboot or reload the nvidia modules, and restart containers",
        ),
        NvmlError::DriverNotLoaded => gap(
            "the NVIDIA driver is not loaded",
            "run `sudo modprobe nvidia` and check `dmesg`; a container needs `--gpus all`",
        ),
        NvmlError::NoPermission => gap(
            "no permission to use the NVIDIA driver",
            "check the permissions of /dev/nvidia* and the device list of the container or job",
        ),
        _ => gap(
            format!("cannot initialise NVML: {text}"),
            "check `nvidia-smi` and `dmesg`",
        ),
    }
}

pub(super) fn no_gpu() -> Gap {
    gap(
        "the NVIDIA driver lists no GPU",
        "check `nvidia-smi -L`; in a container, check which GPUs it may use",
    )
}

fn gap(reason: impl Into<String>, hint: &str) -> Gap {
    Gap::new("nvml", reason, hint)
}
