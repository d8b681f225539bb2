//! Working memory that kernels borrow and give back, so that nothing is allocated per execution.

use burst_hal::MemoryCharge;

use crate::OpError;

/// One buffer per element type, each as large as the largest use so far, charged to the account that
/// pays for the execution.
///
/// A borrowed buffer begins with whatever its last user left in it.
#[derive(Debug, Default)]
pub struct Scratch {
    f32: Vec<f32>,
    i32: Vec<i32>,
    u8: Vec<u8>,
    i8: Vec<i8>,
    parts: Vec<u8>,
    charge: MemoryCharge,
}

fn at_least<'b, T: Copy + Default>(
    buffer: &'b mut Vec<T>,
    len: usize,
    charge: &mut MemoryCharge,
) -> Result<&'b mut [T], OpError> {
    if buffer.len() < len {
        replace(buffer, len, charge)?;
    }
    Ok(&mut buffer[..len])
}

/// Makes a buffer a longer one. What it held is gone, so that the two are never there together.
#[cold]
fn replace<T: Copy + Default>(
    buffer: &mut Vec<T>,
    len: usize,
    charge: &mut MemoryCharge,
) -> Result<(), OpError> {
    let too_large = OpError::Range { what: "size of working memory" };
    let bytes = |len: usize| len.saturating_mul(size_of::<T>()) as u64;
    let more = bytes(len).saturating_sub(bytes(buffer.capacity()));
    charge.grow(more).map_err(OpError::refused)?;
    *buffer = Vec::new();
    if buffer.try_reserve_exact(len).is_err() {
        charge.shrink(bytes(len));
        return Err(too_large);
    }
    buffer.resize(len, T::default());
    Ok(())
}

/// Each fails with [`OpError::Refused`] when the account does not suffice, and with
/// [`OpError::Range`] when the system has no such memory.
#[allow(clippy::missing_errors_doc, reason = "the errors of all are above")]
impl Scratch {
    /// Working memory that is charged to the account of this charge.
    pub(crate) fn paid_by(charge: MemoryCharge) -> Self {
        Scratch { charge, ..Scratch::default() }
    }

    /// `len` floats.
    pub fn f32(&mut self, len: usize) -> Result<&mut [f32], OpError> {
        at_least(&mut self.f32, len, &mut self.charge)
    }

    /// `len` 32-bit integers.
    pub fn i32(&mut self, len: usize) -> Result<&mut [i32], OpError> {
        at_least(&mut self.i32, len, &mut self.charge)
    }

    /// `floats` floats and `integers` 32-bit integers at once.
    pub fn f32_and_i32(
        &mut self,
        floats: usize,
        integers: usize,
    ) -> Result<(&mut [f32], &mut [i32]), OpError> {
        let Scratch { f32, i32, charge, .. } = self;
        Ok((at_least(f32, floats, charge)?, at_least(i32, integers, charge)?))
    }

    /// `len` unsigned bytes and `sums` 32-bit integers at once.
    pub fn u8_and_i32(
        &mut self,
        len: usize,
        sums: usize,
    ) -> Result<(&mut [u8], &mut [i32]), OpError> {
        let Scratch { u8, i32, charge, .. } = self;
        Ok((at_least(u8, len, charge)?, at_least(i32, sums, charge)?))
    }

    /// `len` unsigned bytes.
    pub fn u8(&mut self, len: usize) -> Result<&mut [u8], OpError> {
        at_least(&mut self.u8, len, &mut self.charge)
    }

    /// `len` signed bytes.
    pub fn i8(&mut self, len: usize) -> Result<&mut [i8], OpError> {
        at_least(&mut self.i8, len, &mut self.charge)
    }

    /// `len` bytes that are taken out, so that others may be borrowed meanwhile, until [`Scratch::return_parts`].
    pub(crate) fn take_parts(&mut self, len: usize) -> Result<Vec<u8>, OpError> {
        at_least(&mut self.parts, len, &mut self.charge)?;
        Ok(std::mem::take(&mut self.parts))
    }

    /// Ends what [`Scratch::take_parts`] began.
    pub(crate) fn return_parts(&mut self, parts: Vec<u8>) {
        self.parts = parts;
    }

    /// An empty charge to the same account, for memory that a kernel holds while it runs.
    pub(crate) fn same_account(&self) -> MemoryCharge {
        self.charge.same_account()
    }

    /// Lets all memory go where it is more than this.
    pub(crate) fn keep_at_most(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            *self = Scratch::paid_by(self.charge.same_account());
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        (self.f32.capacity() + self.i32.capacity()) * 4
            + (self.u8.capacity() + self.i8.capacity() + self.parts.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_what_is_charged() {
        let mut scratch = Scratch::default();
        for (floats, bytes) in [(10, 3), (1000, 0), (20, 4000), (1001, 4000)] {
            assert_eq!(scratch.f32(floats).unwrap().len(), floats);
            assert_eq!(scratch.u8_and_i32(bytes, 5).unwrap().0.len(), bytes);
            let parts = scratch.take_parts(bytes).unwrap();
            assert!(parts.len() >= bytes);
            scratch.return_parts(parts);
            assert_eq!(scratch.charge.bytes(), scratch.held_bytes() as u64);
        }
        let held = scratch.held_bytes();
        scratch.keep_at_most(held);
        assert_eq!(scratch.held_bytes(), held);
        scratch.keep_at_most(held - 1);
        assert_eq!((scratch.held_bytes(), scratch.charge.bytes()), (0, 0));
    }
}
