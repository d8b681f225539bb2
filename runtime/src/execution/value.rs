//! Where a value lies during an execution.

use std::fmt;
use std::sync::Arc;

use burst_hal::{Buffer, Dimensions, Pool};

use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Bytes that are copied at once: they stay in a core's cache.
const CHUNK: usize = 1 << 18;

/// A value, or the place for one.
#[derive(Clone)]
pub(super) enum Value {
    /// There is none.
    Omitted,
    /// In a pool.
    Bytes(Bytes),
    /// In a device, with its dimensions as far as known.
    Buffer(Arc<dyn Buffer>, Dimensions),
}

/// A range of a pool.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub(super) pool: Pool,
    pub(super) offset: u32,
    /// As many as there is room for, which may be more than the value has.
    pub(super) length: u32,
    /// As far as known.
    pub(super) dimensions: Dimensions,
}

impl Value {
    pub(super) fn dimensions(&self) -> Dimensions {
        match self {
            Value::Omitted => Dimensions::new(),
            Value::Bytes(bytes) => bytes.dimensions.clone(),
            Value::Buffer(_, dimensions) => dimensions.clone(),
        }
    }

    /// Whether a request for this model may name it.
    pub(super) fn may_go_to(&self, prepared: &Prepared) -> bool {
        match self {
            Value::Omitted | Value::Bytes(_) => true,
            Value::Buffer(buffer, _) => prepared.may_use(&**buffer),
        }
    }

    /// The same place, with what is known of the value now.
    pub(super) fn with_dimensions(self, dimensions: Dimensions) -> Value {
        match self {
            Value::Omitted => Value::Omitted,
            Value::Bytes(bytes) => Value::Bytes(Bytes { dimensions, ..bytes }),
            Value::Buffer(buffer, _) => Value::Buffer(buffer, dimensions),
        }
    }

    /// Whether the one byte of a condition says yes.
    ///
    /// # Errors
    /// A condition that lies nowhere where it can be read.
    pub(super) fn is_true(&self) -> Result<bool> {
        let Value::Bytes(bytes) = self else {
            return Err(Error::op_failed("a condition without a value that can be read"));
        };
        let mut byte = [0];
        bytes.pool.read(bytes.offset.into(), &mut byte)?;
        Ok(byte[0] != 0)
    }

    /// Copies a value to another place of the same length.
    ///
    /// # Errors
    /// One of them cannot be reached.
    pub(super) fn copy_to(&self, to: &Value, length: u64) -> Result<()> {
        match (self, to) {
            (Value::Bytes(from), Value::Bytes(to)) => {
                copy((&from.pool, from.offset.into()), (&to.pool, to.offset.into()), length)
            }
            (Value::Bytes(from), Value::Buffer(buffer, _)) => {
                let copy: Pool = Arc::new(burst_hal::HeapMemory::new(read(from, length)?));
                Ok(buffer.copy_from(&copy, &from.dimensions)?)
            }
            _ => Err(Error::op_failed("a value that does not lie in memory")),
        }
    }
}

fn read(from: &Bytes, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(Error::op_failed)?];
    from.pool.read(from.offset.into(), &mut bytes)?;
    Ok(bytes)
}

/// Copies bytes from one pool to another.
///
/// # Errors
/// One of them cannot be reached.
pub(super) fn copy(from: (&Pool, u64), to: (&Pool, u64), length: u64) -> Result<()> {
    let ((from, from_offset), (to, to_offset)) = (from, to);
    let mut chunk = vec![0; usize::try_from(length).unwrap_or(CHUNK).min(CHUNK)];
    let mut at = 0;
    while at < length {
        let count = usize::try_from(length - at).unwrap_or(CHUNK).min(chunk.len());
        from.read(from_offset + at, &mut chunk[..count])?;
        to.write(to_offset + at, &chunk[..count])?;
        at += count as u64;
    }
    Ok(())
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Omitted => f.write_str("Omitted"),
            Value::Bytes(bytes) => bytes.fmt(f),
            Value::Buffer(buffer, dimensions) => {
                write!(f, "Buffer({}, {dimensions:?})", buffer.token())
            }
        }
    }
}
