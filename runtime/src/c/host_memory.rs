//! Buffers of executions, which lie in the caller's own memory, as pools.

#![allow(unsafe_code, reason = "copies from and to buffers that C callers own")]

use std::ptr::{NonNull, copy_nonoverlapping};
use std::sync::Arc;

use burst_hal::{Memory, MemoryError, Pool, ResultCode};

use super::arguments::{Bytes, OutBytes};
use crate::{Argument, Error, Result};

/// A caller's buffer. It is only copied from and to; nothing refers to its bytes.
///
/// Callers promise of a buffer of an execution that it lives until the execution has completed, that
/// nobody writes an input, and that nobody touches an output, until then. A pool of a buffer is held by its
/// execution, which reads and writes its buffers while it computes and at no other time.
#[derive(Debug)]
struct HostMemory {
    at: NonNull<u8>,
    len: usize,
    is_writable: bool,
}

// SAFETY: an address and a length. What lies there may be used by any thread (the promise above names none).
unsafe impl Send for HostMemory {}
// SAFETY: as above; copies of the same bytes at the same time are reads of an input, or are ordered by the
// execution, which writes each byte of an output by one thread.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Where bytes of the buffer lie.
    fn range(&self, offset: u64, len: usize) -> std::result::Result<NonNull<u8>, MemoryError> {
        let outside = MemoryError::OutOfRange { offset, len: len as u64, size: self.len as u64 };
        let start = usize::try_from(offset).map_err(|_| outside)?;
        if start > self.len || len > self.len - start {
            return Err(outside);
        }
        // SAFETY: `start` is at most the buffer's length, which `host` keeps below `isize::MAX`.
        Ok(unsafe { self.at.add(start) })
    }
}

impl Memory for HostMemory {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::result::Result<(), MemoryError> {
        let from = self.range(offset, out.len())?;
        // SAFETY: `range` has checked that so many bytes lie in the buffer, which lives and is readable
        // until its execution has completed; `out` is memory of ours, and nobody lends us the buffer's.
        unsafe { copy_nonoverlapping(from.as_ptr(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> std::result::Result<(), MemoryError> {
        if !self.is_writable {
            return Err(MemoryError::ReadOnly);
        }
        let to = self.range(offset, bytes.len())?;
        // SAFETY: as in `read`; an output's buffer is writable, and touched by nobody else until its
        // execution has completed.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn is_mapped(&self) -> bool {
        true
    }
}

/// An input in the caller's memory; null without length leaves it out.
///
/// # Errors
/// UNEXPECTED_NULL for null with a length; BAD_DATA for a buffer without length, or beyond 32 bits.
pub(super) fn input(buffer: Bytes, length: usize) -> Result<Argument> {
    host(buffer.address().cast_mut().cast(), length, false)
}

/// An output in the caller's memory; null without length leaves it out.
///
/// # Errors
/// As [`input`].
pub(super) fn output(buffer: &OutBytes, length: usize) -> Result<Argument> {
    host(buffer.address().cast(), length, true)
}

fn host(at: *mut u8, len: usize, is_writable: bool) -> Result<Argument> {
    let Some(at) = NonNull::new(at) else {
        return match len {
            0 => Ok(Argument::Omitted),
            _ => Err(Error::new(ResultCode::UnexpectedNull, "buffer is null, and has a length")),
        };
    };
    // 32 bits are what a request can say; on a machine with less than that, what a buffer can have.
    if len == 0 || u32::try_from(len).is_err() || isize::try_from(len).is_err() {
        return Err(Error::new(ResultCode::BadData, format!("a buffer of {len} bytes")));
    }
    let pool: Pool = Arc::new(HostMemory { at, len, is_writable });
    Ok(Argument::Host(pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bytes: &mut [u8], is_writable: bool) -> Pool {
        match host(bytes.as_mut_ptr(), bytes.len(), is_writable) {
            Ok(Argument::Host(pool)) => pool,
            _ => panic!("a buffer"),
        }
    }

    #[test]
    fn a_buffer_is_copied_within_its_bounds_and_an_input_is_not_written() {
        let mut bytes = [1, 2, 3, 4];
        let output = pool(&mut bytes, true);
        output.write(1, &[8, 9]).unwrap();
        let mut two = [0; 2];
        output.read(2, &mut two).unwrap();
        assert_eq!(two, [9, 4]);
        for (offset, len) in [(3, 2), (5, 0), (u64::MAX, 1)] {
            assert!(output.write(offset, &vec![0; len]).is_err(), "{offset}+{len}");
            assert!(output.read(offset, &mut vec![0; len]).is_err(), "{offset}+{len}");
        }
        assert_eq!(bytes, [1, 8, 9, 4]);
        let input = pool(&mut bytes, false);
        assert_eq!(input.write(0, &[1]), Err(MemoryError::ReadOnly));
    }

    #[test]
    fn null_without_length_leaves_out_and_everything_else_without_both_is_refused() {
        let code = |at, len| host(at, len, false).map_err(|error| error.code);
        assert!(matches!(code(std::ptr::null_mut(), 0), Ok(Argument::Omitted)));
        assert!(matches!(code(std::ptr::null_mut(), 1), Err(ResultCode::UnexpectedNull)));
        let mut byte = 0_u8;
        assert!(matches!(code(&mut byte, 0), Err(ResultCode::BadData)));
        #[cfg(target_pointer_width = "64")]
        assert!(matches!(code(&mut byte, 1 << 32), Err(ResultCode::BadData)));
    }
}
