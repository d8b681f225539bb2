//! Where the constants of a finished model lie: short ones with the model, long ones in memory of their own
//! that devices in other processes use without a copy, and those of the application where it put them.

use std::collections::BTreeMap;
use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::{DataLocation, Model, OperandLifeTime, Pool, ResultCode};
use burst_shm::ShmError;

use super::builder::Value;
use crate::error::{Error, Result};

/// Longer values go to memory of their own: the length up to which the C API copies at once.
const SHORT_BYTES: usize = 128;
/// Long values start at a multiple of this, for kernels that read them in place.
const LONG_ALIGNMENT: usize = 64;
/// Short values start at a multiple of this, the longest scalar.
const SHORT_ALIGNMENT: usize = 8;

/// Puts the values of constants where they belong, and says in the operands where that is.
///
/// # Errors
/// BAD_DATA for more bytes than 32 bits count; OUT_OF_MEMORY.
pub(super) fn lay(
    model: &mut Model,
    values: BTreeMap<u32, Value>,
) -> Result<Vec<(u32, Arc<Model>)>> {
    let (mut short, mut long, mut references) = (Vec::new(), Vec::new(), Vec::new());
    for (index, value) in values {
        let (lifetime, location) = match value {
            Value::Model(value) => {
                references.push((index, value));
                continue;
            }
            Value::Bytes(bytes) if bytes.len() > SHORT_BYTES => {
                long.push((index, bytes));
                continue;
            }
            Value::Bytes(bytes) => {
                short.resize(short.len().next_multiple_of(SHORT_ALIGNMENT), 0);
                let location = location(0, short.len(), bytes.len())?;
                short.extend_from_slice(&bytes);
                (OperandLifeTime::ConstantCopy, location)
            }
            Value::Pool { pool, offset, length } => {
                let pool_index = pool_index(&mut model.pools, pool);
                let location = DataLocation { pool_index, offset, length };
                (OperandLifeTime::ConstantReference, location)
            }
        };
        set(model, index, lifetime, location);
    }
    model.operand_values = short.into();
    lay_long(model, long)?;
    Ok(references)
}

/// Puts long values into one memory that nobody can write afterwards.
fn lay_long(model: &mut Model, values: Vec<(u32, Vec<u8>)>) -> Result<()> {
    let mut total = 0_usize;
    let mut starts = Vec::with_capacity(values.len());
    for (_, bytes) in &values {
        let start = total.checked_next_multiple_of(LONG_ALIGNMENT);
        let end = start.and_then(|start| start.checked_add(bytes.len()));
        let (start, end) = start.zip(end).ok_or_else(|| Error::bad_data("too many constants"))?;
        starts.push(start);
        total = end;
    }
    if values.is_empty() {
        return Ok(());
    }
    let out_of_memory = |error: ShmError| Error::new(ResultCode::OutOfMemory, error);
    let mut memory = burst_shm::Memory::create("burst-constants", total).map_err(out_of_memory)?;
    let pool_index = u32::try_from(model.pools.len()).unwrap_or(u32::MAX);
    for ((index, bytes), start) in values.into_iter().zip(starts) {
        memory.write(start as u64, &bytes).map_err(out_of_memory)?;
        let location = location(pool_index, start, bytes.len())?;
        set(model, index, OperandLifeTime::ConstantReference, location);
    }
    memory.seal_write().map_err(out_of_memory)?;
    let memory = ShmMemory::open(memory.into(), total as u64)?;
    model.pools.push(Arc::new(memory));
    Ok(())
}

/// The place of a pool in a list, which it gets where it has none.
pub(super) fn pool_index(pools: &mut Vec<Pool>, pool: Pool) -> u32 {
    let found = pools.iter().position(|known| Arc::ptr_eq(known, &pool));
    let index = found.unwrap_or_else(|| {
        pools.push(pool);
        pools.len() - 1
    });
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn location(pool_index: u32, offset: usize, length: usize) -> Result<DataLocation> {
    let [offset, length] = [offset, length].map(u32::try_from);
    let offset = offset.map_err(Error::bad_data)?;
    Ok(DataLocation { pool_index, offset, length: length.map_err(Error::bad_data)? })
}

fn set(model: &mut Model, index: u32, lifetime: OperandLifeTime, location: DataLocation) {
    let operand = usize::try_from(index).ok().and_then(|at| model.main.operands.get_mut(at));
    // A model's input that was made a constant afterwards keeps both: that is not legal.
    if let Some(operand) = operand {
        (operand.lifetime, operand.location) = (lifetime, location);
    }
}
