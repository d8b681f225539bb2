//! Arguments as values for the steps. Memory of the application that no other process can reach is copied to a
//! pool of the frame, and back at the end.

use burst_hal::{Dimensions, Pool, ResultCode};

use super::arguments::{Argument, Bound};
use super::job::Job;
use super::value::{Bytes, Value, copy};
use crate::compiled::Port;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::memory::{RoledMemory, Store};

/// Arguments in memory of the application that devices of this process are given one by one: more than a request
/// may have pools are put into one.
const SINGLY_MAX: usize = 256;
/// Arguments start at a multiple of this, as applications are told to do it.
const ALIGNMENT: u64 = 64;

/// Values of all arguments.
pub(super) struct Staged {
    pub(super) inputs: Vec<Value>,
    pub(super) outputs: Vec<Value>,
    /// Where outputs go at the end: which output, and the application's memory.
    back: Vec<(usize, Pool)>,
    /// Whether inputs were copied in.
    has_copied_in: bool,
}

/// A pool that is being filled.
struct Part {
    ranges: Vec<(usize, Pool, u64)>,
    end: u64,
}

impl Staged {
    /// Copies in what has to be.
    ///
    /// # Errors
    /// A memory that cannot be reached, or has no value; more bytes than the HAL counts.
    pub(super) fn of(job: &Job, frame: &mut Frame) -> Result<Self> {
        let count = job.inputs.len() + job.outputs.len();
        let is_shared = job.compiled.has_remote_steps() || count > SINGLY_MAX;
        let (mut inputs, part) = values(&job.inputs, &job.compiled.inputs, is_shared, true)?;
        let has_copied_in = part.end > 0;
        if has_copied_in {
            let pool = frame.inputs(part.end)?;
            for (position, from, offset) in part.ranges {
                copy((&from, 0), (&pool, offset), from.len())?;
                inputs[position] = moved(&inputs[position], &pool, offset)?;
            }
        }
        let (mut outputs, part) = values(&job.outputs, &job.compiled.outputs, is_shared, false)?;
        let mut back = Vec::new();
        if part.end > 0 {
            let pool = frame.outputs(part.end)?;
            for (position, to, offset) in part.ranges {
                outputs[position] = moved(&outputs[position], &pool, offset)?;
                back.push((position, to));
            }
        }
        Ok(Staged { inputs, outputs, back, has_copied_in })
    }

    /// Whether something was copied in, or has to be copied back: then the arguments are not used where they lie.
    pub(super) fn has_copies(&self) -> bool {
        self.has_copied_in || !self.back.is_empty()
    }

    /// Copies outputs back, as far as they have values.
    ///
    /// # Errors
    /// A memory that cannot be reached.
    pub(super) fn copy_back(&self, ports: &[Port], dimensions: &[Dimensions]) -> Result<()> {
        for (position, to) in &self.back {
            let Value::Bytes(from) = &self.outputs[*position] else { continue };
            // An output without elements was not written.
            if dimensions[*position].contains(&0) {
                continue;
            }
            let written = ports[*position].bytes(&dimensions[*position]);
            let length = written.unwrap_or(u64::MAX).min(to.len());
            copy((&from.pool, from.offset.into()), (to, 0), length)?;
        }
        Ok(())
    }
}

/// The same value in another pool.
fn moved(value: &Value, pool: &Pool, offset: u64) -> Result<Value> {
    let Value::Bytes(bytes) = value else {
        return Err(Error::op_failed("a value that lies in no memory of the application"));
    };
    let offset = u32::try_from(offset).map_err(Error::op_failed)?;
    Ok(Value::Bytes(Bytes { pool: Pool::clone(pool), offset, ..bytes.clone() }))
}

/// Arguments where they lie, and what has to move to a common pool.
fn values(
    arguments: &[Bound],
    ports: &[Port],
    is_shared: bool,
    is_input: bool,
) -> Result<(Vec<Value>, Part)> {
    let mut part = Part { ranges: Vec::new(), end: 0 };
    let mut values = Vec::with_capacity(arguments.len());
    for (position, (bound, port)) in arguments.iter().zip(ports).enumerate() {
        let dimensions = match is_input {
            true => bound.input_dimensions()?,
            false => output_dimensions(bound, port)?,
        };
        let value = match &bound.argument {
            Argument::Omitted => Value::Omitted,
            Argument::Host(pool) => {
                if is_shared {
                    let offset = part.end.next_multiple_of(ALIGNMENT);
                    part.end = offset.saturating_add(pool.len());
                    part.ranges.push((position, Pool::clone(pool), offset));
                }
                let length = u32::try_from(pool.len()).map_err(Error::op_failed)?;
                Value::Bytes(Bytes { pool: Pool::clone(pool), offset: 0, length, dimensions })
            }
            Argument::Memory { memory, offset, length } => {
                match memory.roled().map(RoledMemory::store) {
                    Some(Store::Buffer(buffer)) => Value::Buffer(buffer.clone(), dimensions),
                    _ => {
                        let (pool, offset) = memory.place(*offset, *length)?;
                        let length = u32::try_from(*length).map_err(Error::op_failed)?;
                        Value::Bytes(Bytes { pool, offset, length, dimensions })
                    }
                }
            }
        };
        values.push(value);
    }
    Ok((values, part))
}

/// What is known of an output before: a memory that was made for roles has dimensions of its own.
fn output_dimensions(bound: &Bound, port: &Port) -> Result<Dimensions> {
    let Some(roled) = bound.roled() else { return Ok(bound.dimensions.clone()) };
    let bytes = match roled.store() {
        Store::Shared(_) => port.bytes(&bound.dimensions),
        Store::Buffer(_) => None,
    };
    roled
        .takes(&bound.dimensions, bytes)
        .map_err(|error| Error::new(ResultCode::OpFailed, error.cause().to_string()))
}
