//! The copy of a batch to the GPU: the memory there, the pinned memory in between, and the time it takes.
//!
//! Does not depend on kernels.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError, PinnedHostSlice};

use super::DeviceOptions;

/// Bytes that the `touch` kernel reads at a time.
pub(super) const PIECE: usize = 16;
/// Bytes of a copy that only serves to take time: enough for the copy to take far longer than the call that starts it.
const FILLER_BYTES: usize = 16 << 20;

/// Memory and events for the transfer of a batch. Batches take turns, and no more are in flight than there are slots,
/// so a slot is never in use when it is taken.
#[derive(Debug)]
pub(super) struct BatchTransfer {
    /// `None` = the copy is made from the caller's memory.
    pub(super) staging: Option<PinnedHostSlice<u8>>,
    pub(super) batch: CudaSlice<u8>,
    /// Bytes of `batch` that are in use.
    pub(super) bytes: usize,
    pub(super) copy_start: CudaEvent,
    pub(super) copy_end: CudaEvent,
    pub(super) step_start: CudaEvent,
    pub(super) step_end: CudaEvent,
}

/// Extends copies to the requested time by copying unused bytes after each batch.
#[derive(Debug)]
pub(super) struct Filler {
    source: HostMemory,
    target: CudaSlice<u8>,
    /// Bytes to copy after each batch.
    bytes: usize,
}

/// Memory of the host, of the kind that batches are copied from.
#[derive(Debug)]
enum HostMemory {
    Pinned(PinnedHostSlice<u8>),
    Pageable(Vec<u8>),
}

impl BatchTransfer {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        options: &DeviceOptions,
    ) -> Result<Self, DriverError> {
        let bytes = options.batch_bytes.max(1).next_multiple_of(PIECE);
        let staging = if options.pin_memory {
            Some(pinned(stream.context(), bytes)?)
        } else {
            None
        };
        let event = || {
            let flags = CUevent_flags::CU_EVENT_BLOCKING_SYNC;
            stream.context().new_event(Some(flags))
        };
        Ok(Self {
            staging,
            batch: stream.alloc_zeros(bytes)?,
            bytes: 0,
            copy_start: event()?,
            copy_end: event()?,
            step_start: event()?,
            step_end: event()?,
        })
    }

    /// Queues the batch's copy; waits for it if it is made from the caller's memory.
    pub(super) fn upload(
        &mut self,
        batch: &[u8],
        filler: Option<&mut Filler>,
        stream: &Arc<CudaStream>,
    ) -> Result<(), DriverError> {
        let source = match &mut self.staging {
            Some(staging) => {
                let staging = &mut staging.as_mut_slice()?[..batch.len()];
                staging.copy_from_slice(batch);
                staging
            }
            None => batch,
        };
        self.copy_start.record(stream)?;
        if !source.is_empty() {
            stream.memcpy_htod(source, &mut self.batch)?;
        }
        if let Some(filler) = filler {
            filler.copy(stream)?;
        }
        self.copy_end.record(stream)?;
        match self.staging {
            Some(_) => Ok(()),
            None => self.copy_end.synchronize(),
        }
    }
}

impl Filler {
    pub(super) fn new(stream: &Arc<CudaStream>, pin_memory: bool) -> Result<Self, DriverError> {
        Ok(Self {
            source: if pin_memory {
                HostMemory::Pinned(pinned(stream.context(), FILLER_BYTES)?)
            } else {
                HostMemory::Pageable(vec![1; FILLER_BYTES])
            },
            target: stream.alloc_zeros(FILLER_BYTES)?,
            bytes: FILLER_BYTES,
        })
    }

    /// Sets the duration of the extra copy, given that [`FILLER_BYTES`] take `one`.
    pub(super) fn last(&mut self, time: Duration, one: Duration) {
        let bytes = (time.as_nanos() * FILLER_BYTES as u128).checked_div(one.as_nanos());
        self.bytes = bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn copy(&mut self, stream: &Arc<CudaStream>) -> Result<(), DriverError> {
        let source = match &self.source {
            HostMemory::Pinned(source) => source.as_slice()?,
            HostMemory::Pageable(source) => source,
        };
        let mut left = self.bytes;
        while left > 0 {
            let now = left.min(source.len());
            stream.memcpy_htod(&source[..now], &mut self.target)?;
            left -= now;
        }
        Ok(())
    }
}

/// Allocates memory that a copy engine reads directly, and that the CPU reads as fast as any other.
#[expect(
    unsafe_code,
    reason = "the driver gives memory that nothing was written to"
)]
fn pinned(context: &Arc<CudaContext>, bytes: usize) -> Result<PinnedHostSlice<u8>, DriverError> {
    // SAFETY: it is written here before anything reads it.
    let mut memory = unsafe { context.alloc_pinned_with_flags(bytes, 0)? };
    memory.as_mut_slice()?.fill(0);
    Ok(memory)
}
