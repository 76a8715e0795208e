//! What goes wrong with NVML, in plain words with what would help. Asks nothing itself.

use std::fmt;
use std::path::Path;

use nvml_wrapper::error::NvmlError;

use crate::sample::{Absent, Gap};

/// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`: this driver does not know this form of the call.
const OTHER_FORM: u32 = 25;

/// Why a GPU gives less than it should. The later the worse.
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
            Self::NoPermission => f.write_str("no permission"),
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
            NvmlError::NotSupported if self.mig => Some("not told while MIG is on".to_owned()),
            NvmlError::NotSupported => Some("this GPU does not tell it".to_owned()),
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
                Some("the driver is too old to tell it".to_owned())
            }
            NvmlError::UnexpectedVariant(OTHER_FORM) => {
                Some("this driver tells it in another form".to_owned())
            }
            NvmlError::NoPermission => Some("no permission".to_owned()),
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

/// Why the library cannot be used.
pub(super) fn unopened(error: &NvmlError, library: Option<&Path>) -> Gap {
    let name = library.map_or_else(
        || "libnvidia-ml.so.1".to_owned(),
        |path| path.display().to_string(),
    );
    let text = error.to_string();
    // The same words with another name in front speak of a library that this one needs.
    let absent = text.contains(&format!("{name}: cannot open")) && text.contains("No such file");
    match error {
        NvmlError::LibloadingError(_) if absent => gap(
            format!("{name} not found"),
            "no NVIDIA driver here, or a container started without it (`docker run --gpus all`)",
        ),
        NvmlError::LibloadingError(_) => gap(
            format!("cannot load {name}: {text}"),
            "it must be the 64-bit library of the installed NVIDIA driver",
        ),
        NvmlError::FailedToLoadSymbol(_) => gap(
            format!("{name} is not NVML"),
            "it must be libnvidia-ml.so.1 of the NVIDIA driver, not another library",
        ),
        NvmlError::LibRmVersionMismatch => gap(
            "NVIDIA driver and library have different versions".to_owned(),
            "the driver was upgraded: reboot, or reload the nvidia modules; restart a container",
        ),
        NvmlError::DriverNotLoaded => gap(
            "the NVIDIA driver is not loaded".to_owned(),
            "`sudo modprobe nvidia`, then see `dmesg`; a container needs `--gpus all`",
        ),
        NvmlError::NoPermission => gap(
            "no permission to use the NVIDIA driver".to_owned(),
            "look at the rights of /dev/nvidia*, and at the container's or job's device list",
        ),
        _ => gap(
            format!("NVML does not start: {text}"),
            "see whether `nvidia-smi` works, and `dmesg`",
        ),
    }
}

pub(super) fn no_gpu() -> Gap {
    gap(
        "the NVIDIA driver lists no GPU".to_owned(),
        "see `nvidia-smi -L`; in a container, which GPUs it was given",
    )
}

fn gap(reason: String, hint: &str) -> Gap {
    Gap {
        source: "nvml".to_owned(),
        reason,
        hint: hint.to_owned(),
    }
}
