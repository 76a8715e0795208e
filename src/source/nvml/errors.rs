//! NVML errors, with hints. Calls nothing itself.

use std::fmt;
use std::path::Path;

use nvml_wrapper::error::NvmlError;

use crate::sample::{Absent, Gap, NO_GPU, NO_PERMISSION};

/// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`: this driver does not know this form of the call.
const OTHER_FORM: u32 = 25;

/// Why a call gave nothing. The later the worse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Failed(String),
    NoPermission,
    NeedsReset,
    Lost,
}

impl Trouble {
    /// The GPU gives nothing at all.
    pub(super) fn gone(&self) -> bool {
        *self >= Self::NeedsReset
    }

    /// `None` where the GPU or the driver just does not have the figure.
    fn of(error: &NvmlError) -> Option<Self> {
        match error {
            NvmlError::NotSupported
            | NvmlError::NotFound
            | NvmlError::NoData
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound
            | NvmlError::Utf8Error(_)
            | NvmlError::UnexpectedVariant(OTHER_FORM) => None,
            NvmlError::GpuLost => Some(Self::Lost),
            NvmlError::ResetRequired => Some(Self::NeedsReset),
            NvmlError::NoPermission => Some(Self::NoPermission),
            other => Some(Self::Failed(other.to_string())),
        }
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

/// Gathers what several calls answered.
#[derive(Default)]
pub(super) struct Troubles {
    pub(super) worst: Option<Trouble>,
    /// Figures that were not given, with the reason.
    pub(super) absent: Vec<Absent>,
    mig: bool,
}

impl Troubles {
    /// Of a GPU that is divided by MIG, or of a whole one.
    pub(super) fn of(mig: bool) -> Self {
        Self {
            mig,
            ..Self::default()
        }
    }

    /// What was answered, or `None` with the reason noted under the figure's name.
    pub(super) fn ask<T>(&mut self, figure: &str, answer: Result<T, NvmlError>) -> Option<T> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        let reason = match &error {
            // Nothing newer than what was given before.
            NvmlError::NotFound | NvmlError::NoData => None,
            NvmlError::NotSupported if self.mig => Some("not available while MIG is on".to_owned()),
            NvmlError::NotSupported => Some("not supported by this GPU".to_owned()),
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
                Some("the driver is too old".to_owned())
            }
            NvmlError::UnexpectedVariant(OTHER_FORM) => {
                Some("unknown format from this driver".to_owned())
            }
            NvmlError::NoPermission => Some(NO_PERMISSION.to_owned()),
            other => Some(other.to_string()),
        };
        self.absent.extend(reason.map(|reason| Absent {
            figure: figure.to_owned(),
            reason,
        }));
        // `None` sorts before every trouble.
        self.worst = self.worst.take().max(Trouble::of(&error));
        None
    }

    /// The GPU gives nothing at all.
    pub(super) fn is_gone(&self) -> bool {
        self.worst.as_ref().is_some_and(Trouble::gone)
    }
}

/// Why the library cannot be used. `has_gpu` says whether the machine has a GPU of NVIDIA's, `None` where that is not known.
pub(super) fn unopened(error: &NvmlError, library: Option<&Path>, has_gpu: Option<bool>) -> Gap {
    let name = library.map_or_else(
        || "libnvidia-ml.so.1".to_owned(),
        |path| path.display().to_string(),
    );
    let text = error.to_string();
    // The same words with another name in front speak of a library that this one needs.
    let absent = text.contains(&format!("{name}: cannot open")) && text.contains("No such file");
    match error {
        // Then nothing is missing.
        NvmlError::LibloadingError(_) if absent && has_gpu == Some(false) => {
            gap(NO_GPU.to_owned(), "")
        }
        NvmlError::LibloadingError(_) if absent => gap(
            format!("{name} not found"),
            "install the NVIDIA driver, or start the container with access to it (`docker run --gpus all`)",
        ),
        NvmlError::LibloadingError(_) => gap(
            format!("cannot load {name}: {text}"),
            "use the 64-bit library of the installed NVIDIA driver",
        ),
        NvmlError::FailedToLoadSymbol(_) => gap(
            format!("{name} is not NVML"),
            "use libnvidia-ml.so.1 of the NVIDIA driver",
        ),
        NvmlError::LibRmVersionMismatch => gap(
            "NVIDIA driver/library version mismatch".to_owned(),
            "after a driver upgrade, reboot or reload the nvidia modules, and restart containers",
        ),
        NvmlError::DriverNotLoaded => gap(
            "the NVIDIA driver is not loaded".to_owned(),
            "run `sudo modprobe nvidia` and check `dmesg`; a container needs `--gpus all`",
        ),
        NvmlError::NoPermission => gap(
            "no permission to use the NVIDIA driver".to_owned(),
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
        "the NVIDIA driver lists no GPU".to_owned(),
        "check `nvidia-smi -L`; in a container, check which GPUs it may use",
    )
}

fn gap(reason: String, hint: &str) -> Gap {
    Gap {
        source: "nvml".to_owned(),
        reason,
        hint: hint.to_owned(),
    }
}
