//! A GPU through the CUDA driver: real copies, and kernels that keep it busy for the length of a step.
//!
//! Loads the driver's library at run time; no toolkit is needed. Does not depend on the simulated device.

mod driver;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use super::{BATCHES_IN_FLIGHT, Device, DeviceError, DeviceOptions, StepTimes, in_flight};
use crate::foreign;
use crate::units::nanoseconds;
use driver::failed;
use transfer::{BatchTransfer, Filler, PIECE};

const KERNELS: &str = include_str!("cuda/kernels.ptx");

/// Threads per block, and blocks per multiprocessor: enough to keep all multiprocessors busy, few enough that all
/// blocks run at the same time.
const THREADS: u32 = 256;
const BLOCKS: u32 = 2;
/// Longest step that the calibration measures; the overhead of a step does not depend on its length.
const MEASURED_STEP: Duration = Duration::from_millis(20);
const MEASUREMENTS: usize = 5;
/// A failed kernel is reported by any later call.
const STEP_FAILED: &str = "a step failed on the GPU";

#[derive(Debug)]
pub(super) struct Cuda {
    name: String,
    copying: Arc<CudaStream>,
    computing: Arc<CudaStream>,
    touch: CudaFunction,
    spin: CudaFunction,
    launch: LaunchConfig,
    /// Where kernels write their unused results.
    out: CudaSlice<u32>,
    slots: [BatchTransfer; BATCHES_IN_FLIGHT],
    filler: Option<Filler>,
    /// How long the multiplying kernel runs; together with the rest of a step's work this gives the requested length.
    spin_for: Duration,
    /// Number of batches that were copied, whose step was started, and whose step was waited for.
    copied: usize,
    started: usize,
    finished: usize,
}

/// Opens the GPU: loads its kernels and calibrates their length.
///
/// # Errors
/// Returns an error with the reason why it cannot be used.
pub(super) fn open(options: &DeviceOptions) -> Result<Cuda, DeviceError> {
    driver::probe()?;
    // cudarc panics if a driver lacks what it needs. `probe` has checked all that is known; this catches the rest.
    let opened = foreign::call(|| {
        let mut cuda = Cuda::new(options)?;
        cuda.calibrate(options)?;
        Ok(cuda)
    });
    opened.unwrap_or_else(|| Err(DeviceError("the CUDA driver cannot be used".to_owned())))
}

impl Cuda {
    fn new(options: &DeviceOptions) -> Result<Self, DeviceError> {
        let no_device = failed("cannot use the GPU");
        let context = CudaContext::new(0).map_err(&no_device)?;
        let name = context.name().map_err(&no_device)?;
        let multiprocessors = context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(&no_device)?;
        let computing = context.new_stream().map_err(&no_device)?;
        // Pageable copies run in the order of the steps, like `.to(device)` in a training loop.
        let copying = if options.pin_memory {
            context.new_stream().map_err(&no_device)?
        } else {
            computing.clone()
        };

        let no_kernels = failed("the GPU driver rejected the kernels");
        let module = context
            .load_module(Ptx::from_src(KERNELS))
            .map_err(&no_kernels)?;
        let touch = module.load_function("touch").map_err(&no_kernels)?;
        let spin = module.load_function("spin").map_err(&no_kernels)?;

        let no_memory = failed("cannot allocate memory for the batches");
        let out = computing.alloc_zeros(1).map_err(&no_memory)?;
        let slot = || BatchTransfer::new(&copying, options).map_err(&no_memory);
        Ok(Self {
            name,
            touch,
            spin,
            launch: LaunchConfig {
                grid_dim: (multiprocessors.unsigned_abs().max(1) * BLOCKS, 1, 1),
                block_dim: (THREADS, 1, 1),
                shared_mem_bytes: 0,
            },
            out,
            slots: [slot()?, slot()?],
            filler: None,
            spin_for: Duration::ZERO,
            copied: 0,
            started: 0,
            finished: 0,
            copying,
            computing,
        })
    }

    /// Makes copies and steps as long as requested: measures how long they take, and sets the extra work for the rest.
    fn calibrate(&mut self, options: &DeviceOptions) -> Result<(), DeviceError> {
        let batch = vec![1; options.batch_bytes]; // Not zeros, which the system would keep in one page.
        if let Some(wanted) = options.copy {
            let alone = self.measure(&batch)?.copy;
            let filler = Filler::new(&self.copying, options.pin_memory);
            self.filler = Some(filler.map_err(failed("cannot allocate memory for the copies"))?);
            let one = self.measure(&batch)?.copy.saturating_sub(alone);
            if let Some(filler) = &mut self.filler {
                filler.last(wanted.saturating_sub(alone), one);
            }
        }
        let asked = options.step.min(MEASURED_STEP);
        self.spin_for = asked;
        let busy = self.measure(&batch)?.busy;
        self.spin_for = options.step.saturating_add(asked).saturating_sub(busy);
        Ok(())
    }

    /// Returns the shortest of several times: disturbances of the host while it queues work only make them longer. The
    /// first is not counted, as the GPU wakes up in it.
    fn measure(&mut self, batch: &[u8]) -> Result<StepTimes, DeviceError> {
        let mut shortest = StepTimes {
            copy: Duration::MAX,
            busy: Duration::MAX,
        };
        for round in 0..=MEASUREMENTS {
            self.copy(batch)?;
            self.step()?;
            let times = self.finish()?;
            if round > 0 {
                shortest.copy = shortest.copy.min(times.copy);
                shortest.busy = shortest.busy.min(times.busy);
            }
        }
        Ok(shortest)
    }
}

impl Device for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError> {
        in_flight(self.copied - self.finished)?;
        let no_copy = failed("cannot copy a batch to the GPU");
        if self.started > self.finished && self.slots[0].staging.is_none() {
            // The driver would wait for this step as well, but by busy waiting.
            let last = &self.slots[(self.started - 1) % BATCHES_IN_FLIGHT];
            last.step_end.synchronize().map_err(&no_copy)?;
        }
        let slot = &mut self.slots[self.copied % BATCHES_IN_FLIGHT];
        if batch.len() > slot.batch.len() {
            let (bytes, room) = (batch.len(), slot.batch.len());
            let error = format!("a batch of {bytes} bytes does not fit into {room}");
            return Err(DeviceError(error));
        }
        slot.bytes = batch.len();
        slot.upload(batch, self.filler.as_mut(), &self.copying)
            .map_err(&no_copy)?;
        self.copied += 1;
        Ok(())
    }

    fn step(&mut self) -> Result<(), DeviceError> {
        if self.started == self.copied {
            return Err(DeviceError::no_batch());
        }
        self.compute().map_err(failed(STEP_FAILED))?;
        self.started += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<StepTimes, DeviceError> {
        if self.finished == self.started {
            return Err(DeviceError::no_step());
        }
        let slot = &self.slots[self.finished % BATCHES_IN_FLIGHT];
        // These events put the caller to sleep until they have happened.
        let copy = slot.copy_start.elapsed_ms(&slot.copy_end);
        let busy = slot.step_start.elapsed_ms(&slot.step_end);
        let no_step = failed(STEP_FAILED);
        let times = StepTimes {
            copy: duration(copy.map_err(&no_step)?)?,
            busy: duration(busy.map_err(&no_step)?)?,
        };
        self.finished += 1;
        Ok(times)
    }
}

impl Cuda {
    #[expect(
        unsafe_code,
        reason = "a kernel's arguments are not checked by anybody"
    )]
    fn compute(&mut self) -> Result<(), DriverError> {
        let slot = &self.slots[self.started % BATCHES_IN_FLIGHT];
        // Waits here and not after recording the start, or the wait would count as computing.
        self.computing.wait(&slot.copy_end)?;
        slot.step_start.record(&self.computing)?;
        let pieces = slot.bytes.div_ceil(PIECE) as u64;
        // SAFETY: `touch` reads that many pieces of the batch, whose memory is a whole number of them, and
        // writes one word of `out`.
        unsafe {
            self.computing
                .launch_builder(&self.touch)
                .arg(&slot.batch)
                .arg(&pieces)
                .arg(&mut self.out)
                .launch(self.launch)?;
        }
        let nanoseconds = nanoseconds(self.spin_for);
        if nanoseconds > 0 {
            // SAFETY: `spin` writes one word of `out`.
            unsafe {
                self.computing
                    .launch_builder(&self.spin)
                    .arg(&nanoseconds)
                    .arg(&mut self.out)
                    .launch(self.launch)?;
            }
        }
        slot.step_end.record(&self.computing)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Pinned memory must not be freed during a copy.
        for slot in &self.slots {
            let _ = slot.copy_end.synchronize();
        }
    }
}

/// Converts a time that the driver measured.
fn duration(milliseconds: f32) -> Result<Duration, DeviceError> {
    let seconds = f64::from(milliseconds) / 1000.0;
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        DeviceError(format!(
            "the GPU driver reported a time of {milliseconds} ms"
        ))
    })
}
