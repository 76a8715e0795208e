//! Figures that seldom change: the link, the video engines, memory errors, the power limit, persistence mode.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_PENDING,
    NVML_FI_DEV_REMAPPED_UNC, NVML_FI_DEV_RETIRED_DBE, NVML_FI_DEV_RETIRED_PENDING,
    NVML_FI_DEV_RETIRED_SBE,
};

use super::errors::Troubles;
use super::plausible::{percent, watts};
use super::raw::{self, Field};
use crate::sample::{GpuHealth, GpuSample, Link};
use crate::units::Moment;

/// Largest plausible count; a larger one is an error of the driver.
const MAX_COUNT: u64 = u32::MAX as u64 - 1;

pub(super) fn read(
    device: &Device<'_>,
    at: Moment,
    sample: &mut GpuSample,
    troubles: &mut Troubles,
) {
    let limit = troubles.ask("power_limit", device.enforced_power_limit());
    sample.power_limit_watts = limit.and_then(watts).filter(|limit| *limit > 0.0);
    let encoder = troubles.ask("encoder", device.encoder_utilization());
    let decoder = troubles.ask("decoder", device.decoder_utilization());
    let mut ecc = |kind| {
        let errors = device.total_ecc_errors(kind, EccCounter::Volatile);
        troubles
            .ask("ecc", errors)
            .filter(|errors| *errors < MAX_COUNT)
    };
    let (corrected, uncorrected) = (ecc(MemoryError::Corrected), ecc(MemoryError::Uncorrected));
    let rows = raw::fields(
        device,
        [
            (NVML_FI_DEV_RETIRED_SBE, 0),
            (NVML_FI_DEV_RETIRED_DBE, 0),
            (NVML_FI_DEV_RETIRED_PENDING, 0),
            (NVML_FI_DEV_REMAPPED_COR, 0),
            (NVML_FI_DEV_REMAPPED_UNC, 0),
            (NVML_FI_DEV_REMAPPED_PENDING, 0),
            (NVML_FI_DEV_REMAPPED_FAILURE, 0),
        ],
    );
    let count = |field: Field| Some(field.value).filter(|count| *count < MAX_COUNT);
    let mut rows = troubles.ask("fields", rows).map(|rows| {
        let figures = ["retired_pages"; 3].into_iter().chain(["remapped_rows"; 4]);
        let rows = rows.into_iter().zip(figures);
        rows.map(|(row, figure)| troubles.ask(figure, row).and_then(count))
            .collect::<Vec<_>>()
            .into_iter()
    });
    let mut next = || rows.as_mut()?.next()?;
    let (single, double, retirement) = (next(), next(), next());
    let (correctable, uncorrectable, pending, failed) = (next(), next(), next(), next());
    let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    let is_nonzero = |count: Option<u64>| count.map(|count| count > 0);
    sample.health = Some(GpuHealth {
        read_at: at,
        link: link(device, troubles),
        encoder_percent: encoder.and_then(|info| percent(f64::from(info.utilization))),
        decoder_percent: decoder.and_then(|info| percent(f64::from(info.utilization))),
        ecc_corrected: corrected,
        ecc_uncorrected: uncorrected,
        retired_pages: sum(single, double),
        retirement_pending: is_nonzero(retirement),
        remapped_rows: sum(correctable, uncorrectable),
        remapping_pending: is_nonzero(pending),
        remapping_failed: is_nonzero(failed),
        persistence: troubles.ask("persistence", device.is_in_persistent_mode()),
    });
}

fn link(device: &Device<'_>, troubles: &mut Troubles) -> Option<Link> {
    const MAX_GENERATION: u32 = 15;
    const MAX_WIDTH: u32 = 64;
    let generation = |number: &u32| (1..=MAX_GENERATION).contains(number);
    let width = |number: &u32| (1..=MAX_WIDTH).contains(number);
    let now = troubles.ask("pcie_link", device.current_pcie_link_gen());
    let lanes = troubles.ask("pcie_link", device.current_pcie_link_width());
    Some(Link {
        generation: now.filter(generation)?,
        width: lanes.filter(width)?,
        max_generation: device.max_pcie_link_gen().ok().filter(generation),
        max_width: device.max_pcie_link_width().ok().filter(width),
    })
}
