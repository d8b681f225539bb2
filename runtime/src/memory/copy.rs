//! One memory's bytes to another.

use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::{Dimensions, Pool};

use super::{Memory, RoledMemory, Store};
use crate::error::{Error, Result};

/// Bytes that are copied at once.
const CHUNK: u64 = 1 << 20;

/// Where a copy comes from, or goes to.
enum End {
    Pool(Pool),
    Buffer(Arc<dyn burst_hal::Buffer>),
}

/// Copies all of one memory to another one. Whatever stands in the way, one that was made for roles has no value
/// then.
pub(super) fn copy(from: &Memory, to: &Memory) -> Result<()> {
    let copied = copy_value(from, to);
    if let (Err(_), Some(roled)) = (&copied, to.roled()) {
        roled.is_lost();
    }
    copied
}

fn copy_value(from: &Memory, to: &Memory) -> Result<()> {
    to.check_writable()?;
    let source = from.roled().map(RoledMemory::value_dimensions).transpose();
    let source = source.map_err(|error| Error::bad_data(error.cause().to_string()))?;
    let bytes = length(from, source.as_ref());
    let Some(roled) = to.roled() else {
        if bytes.is_some_and(|bytes| bytes != to.size() as u64) {
            let (is, wants) = (bytes.unwrap_or_default(), to.size());
            return Err(Error::bad_data(format!("{is} bytes to a memory of {wants} bytes")));
        }
        return between(end(from)?, end(to)?, bytes, &[]);
    };
    if let Some(from) = from.roled() {
        agree(from, roled)?;
    }
    let dimensions = roled.takes(source.as_deref().unwrap_or_default(), bytes)?;
    between(end(from)?, end(to)?, bytes, &dimensions)?;
    roled.is_written(dimensions);
    Ok(())
}

/// Bytes of the value in a memory, where they are known.
fn length(memory: &Memory, dimensions: Option<&Dimensions>) -> Option<u64> {
    match (memory.roled(), dimensions) {
        (Some(roled), Some(dimensions)) if roled.operand().is_specified(dimensions) => {
            roled.operand().ty.byte_length(dimensions)
        }
        (Some(_), _) => None,
        (None, _) => Some(memory.size() as u64),
    }
}

/// Refuses memories whose bytes mean different things.
#[allow(clippy::float_cmp, reason = "the same scale, not one that is near")]
fn agree(from: &RoledMemory, to: &RoledMemory) -> Result<()> {
    let (from, to) = (from.operand(), to.operand());
    let is_same = from.ty == to.ty
        && from.scale == to.scale
        && from.zero_point == to.zero_point
        && from.extra_params == to.extra_params;
    match is_same {
        true => Ok(()),
        false => Err(Error::bad_data(format!("a value of {} where {} is wanted", from.ty, to.ty))),
    }
}

fn end(memory: &Memory) -> Result<End> {
    match memory.roled().map(RoledMemory::store) {
        Some(Store::Buffer(buffer)) => Ok(End::Buffer(Arc::clone(buffer))),
        _ => Ok(End::Pool(memory.whole()?)),
    }
}

fn between(from: End, to: End, bytes: Option<u64>, dimensions: &[u32]) -> Result<()> {
    match (from, to) {
        (End::Pool(from), End::Pool(to)) => pools(&from, &to),
        (End::Buffer(from), End::Pool(to)) => Ok(from.copy_to(&to)?),
        (End::Pool(from), End::Buffer(to)) => Ok(to.copy_from(&from, dimensions)?),
        (End::Buffer(from), End::Buffer(to)) => {
            let length = bytes.and_then(|bytes| usize::try_from(bytes).ok());
            let length = length.ok_or_else(|| Error::op_failed("a value of unknown size"))?;
            let between: Pool = Arc::new(ShmMemory::create(length)?);
            from.copy_to(&between)?;
            Ok(to.copy_from(&between, dimensions)?)
        }
    }
}

/// Pools of the same length.
fn pools(from: &Pool, to: &Pool) -> Result<()> {
    let length = from.len().min(to.len());
    let mut chunk = vec![0; usize::try_from(CHUNK.min(length)).unwrap_or_default()];
    let mut at = 0;
    while at < length {
        let count = usize::try_from(CHUNK.min(length - at)).unwrap_or(chunk.len());
        from.read(at, &mut chunk[..count])?;
        to.write(at, &chunk[..count])?;
        at += count as u64;
    }
    Ok(())
}
