//! What one execution at a time works with: pools for arguments and for values between steps, and a burst per
//! step. Made once and used again: a service maps a pool when it meets it first, and keeps it.

use std::sync::{Arc, Mutex, PoisonError};

use burst_client::ShmMemory;
use burst_hal::{Pool, TimePoint};

use crate::error::{Error, Result};
use crate::prepared::{OpenBurst, Prepared};
use crate::remote::NoBurst;

/// Frames of a compilation that are kept while nobody uses them. Each holds pools and bursts, which are
/// threads of a service; more than this many executions at once get theirs made anew.
const FRAMES_KEPT: usize = 4;
/// Pools grow by this much at least: an argument that grows a little does not cost a new one each time.
const POOL_STEP: u64 = 4096;

/// Resources of one execution at a time.
#[derive(Default)]
pub(crate) struct Frame {
    inputs: Option<Pool>,
    outputs: Option<Pool>,
    /// Values between steps, with the constants that interpreted steps read.
    temporaries: Option<Pool>,
    bursts: Vec<Option<BurstPlace>>,
    /// A service may yet write into the pools: they are for nobody else.
    is_spoilt: bool,
}

/// The burst of a step.
struct BurstPlace {
    /// The model that it is a burst of: one that was prepared again has others.
    of: Prepared,
    /// `None` where the device would not, or it has ended.
    burst: Option<OpenBurst>,
}

impl Frame {
    /// A pool of at least so many bytes for inputs.
    ///
    /// # Errors
    /// More than an offset can say, or than the system has.
    pub(crate) fn inputs(&mut self, bytes: u64) -> Result<Pool> {
        at_least(&mut self.inputs, bytes)
    }

    /// A pool of at least so many bytes for outputs.
    ///
    /// # Errors
    /// As for inputs.
    pub(crate) fn outputs(&mut self, bytes: u64) -> Result<Pool> {
        at_least(&mut self.outputs, bytes)
    }

    /// The pool for values between steps; `constants` lie in it from the beginning.
    ///
    /// # Errors
    /// As for inputs.
    pub(crate) fn temporaries(&mut self, bytes: u64, constants: &[(u32, Vec<u8>)]) -> Result<Pool> {
        let is_new = self.temporaries.is_none();
        let pool = at_least(&mut self.temporaries, bytes)?;
        if is_new {
            for (offset, bytes) in constants {
                pool.write(u64::from(*offset), bytes)?;
            }
        }
        Ok(pool)
    }

    /// The burst of a step, opened by the deadline of the execution that needs it first; `None` where the device
    /// has none to give.
    ///
    /// # Errors
    /// The device has not answered. It is asked again by the next execution.
    pub(crate) fn burst(
        &mut self,
        step: usize,
        prepared: &Prepared,
        by: Option<TimePoint>,
    ) -> Result<Option<&mut OpenBurst>> {
        if self.bursts.len() <= step {
            self.bursts.resize_with(step + 1, || None);
        }
        let place = &mut self.bursts[step];
        if !place.as_ref().is_some_and(|place| place.of.is_same(prepared)) {
            let burst = match prepared.open_burst(by) {
                Ok(burst) => Some(burst),
                Err(NoBurst::NotAnswered(error)) => return Err(error),
                Err(NoBurst::Refused(error)) => {
                    tracing::info!(step, %error, "no burst");
                    None
                }
            };
            *place = Some(BurstPlace { of: prepared.clone(), burst });
        }
        Ok(place.as_mut().and_then(|place| place.burst.as_mut()))
    }

    /// The burst of a step has ended.
    pub(crate) fn drop_burst(&mut self, step: usize) {
        if let Some(Some(place)) = self.bursts.get_mut(step) {
            place.burst = None;
        }
    }

    /// Somebody who was given up may yet write into the pools.
    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    /// For the next execution: a new one in place of one that was spoilt.
    pub(crate) fn renew(&mut self) {
        if self.is_spoilt {
            *self = Frame::default();
        }
    }
}

fn at_least(pool: &mut Option<Pool>, bytes: u64) -> Result<Pool> {
    if let Some(pool) = pool.as_ref().filter(|pool| pool.len() >= bytes) {
        return Ok(Pool::clone(pool));
    }
    let length = bytes.max(1).next_multiple_of(POOL_STEP);
    if length > u64::from(u32::MAX) {
        return Err(Error::op_failed(format!(
            "{bytes} bytes of arguments are more than the HAL counts"
        )));
    }
    let length = usize::try_from(length).map_err(Error::op_failed)?;
    let memory: Pool = Arc::new(ShmMemory::create(length)?);
    Ok(Pool::clone(pool.insert(memory)))
}

/// Frames that nobody uses.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Vec<Frame>>);

impl Frames {
    /// One that was used before, or a new one.
    pub(crate) fn take(&self) -> Frame {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// For the next execution.
    pub(crate) fn give_back(&self, mut frame: Frame) {
        frame.renew();
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = match frames.len() < FRAMES_KEPT {
            true => {
                frames.push(frame);
                None
            }
            false => Some(frame),
        };
        drop(frames);
        drop(spare); // after the lock: bursts take a while to end
    }
}
