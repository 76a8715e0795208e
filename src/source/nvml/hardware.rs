//! Whether this machine has an NVIDIA GPU at all, with or without a driver: from its list of PCI devices. Does not
//! depend on NVML.

use std::fs;
use std::path::Path;

/// PCI vendor ID of NVIDIA.
const NVIDIA: &str = "0x10de";
/// First byte of the PCI class of display controllers and processing accelerators.
const CLASSES: [&str; 2] = ["0x03", "0x12"];

/// Returns `None` if the list cannot be read or is empty, as in some containers and virtual machines.
pub(super) fn has_nvidia_gpu(sys_root: &Path) -> Option<bool> {
    let devices = fs::read_dir(sys_root.join("bus/pci/devices")).ok()?;
    let mut gpus = devices.flatten().map(|device| {
        let field = |name| fs::read_to_string(device.path().join(name)).unwrap_or_default();
        let class = field("class");
        field("vendor").trim_end() == NVIDIA && CLASSES.iter().any(|first| class.starts_with(first))
    });
    // `None` for an empty list.
    let first = gpus.next()?;
    Some(first || gpus.any(|is_gpu| is_gpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_found_by_vendor_and_class() {
        let sys = tempfile::tempdir().unwrap();
        let devices = sys.path().join("bus/pci/devices");
        assert_eq!(has_nvidia_gpu(sys.path()), None);
        fs::create_dir_all(&devices).unwrap();
        assert_eq!(has_nvidia_gpu(sys.path()), None);
        let add = |place: &str, vendor: &str, class: &str| {
            let device = devices.join(place);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(device.join("class"), format!("{class}\n")).unwrap();
        };
        add("0000:00:01.0", "0x1af4", "0x010000");
        assert_eq!(has_nvidia_gpu(sys.path()), Some(false));
        // A sound device by NVIDIA, and a GPU by another vendor.
        add("0000:00:02.0", "0x10de", "0x040300");
        add("0000:00:03.0", "0x1002", "0x030000");
        assert_eq!(has_nvidia_gpu(sys.path()), Some(false));
        add("0000:00:04.0", "0x10de", "0x030200");
        assert_eq!(has_nvidia_gpu(sys.path()), Some(true));
    }
}
