//! Working memory that kernels borrow and give back, so that nothing is allocated per execution.

/// One buffer per element type, each as large as the largest use so far.
///
/// A borrowed buffer begins with whatever its last user left in it.
#[derive(Debug, Default)]
pub struct Scratch {
    f32: Vec<f32>,
    i32: Vec<i32>,
    u8: Vec<u8>,
    i8: Vec<i8>,
}

fn at_least<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}

impl Scratch {
    /// `len` floats.
    pub fn f32(&mut self, len: usize) -> &mut [f32] {
        at_least(&mut self.f32, len)
    }

    /// `len` 32-bit integers.
    pub fn i32(&mut self, len: usize) -> &mut [i32] {
        at_least(&mut self.i32, len)
    }

    /// `floats` floats and `integers` 32-bit integers at once.
    pub fn f32_and_i32(&mut self, floats: usize, integers: usize) -> (&mut [f32], &mut [i32]) {
        (at_least(&mut self.f32, floats), at_least(&mut self.i32, integers))
    }

    /// `len` unsigned bytes and `sums` 32-bit integers at once.
    pub fn u8_and_i32(&mut self, len: usize, sums: usize) -> (&mut [u8], &mut [i32]) {
        (at_least(&mut self.u8, len), at_least(&mut self.i32, sums))
    }

    /// `len` unsigned bytes.
    pub fn u8(&mut self, len: usize) -> &mut [u8] {
        at_least(&mut self.u8, len)
    }

    /// `len` signed bytes.
    pub fn i8(&mut self, len: usize) -> &mut [i8] {
        at_least(&mut self.i8, len)
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        (self.f32.capacity() + self.i32.capacity()) * 4 + self.u8.capacity() + self.i8.capacity()
    }
}
