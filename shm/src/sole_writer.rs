//! Memory that only this process can ever write.
//!
//! Rules of this module: the one writable mapping is made before the seal, the seal is added
//! before the descriptor can leave, and `fork` does not pass the mapping on. From then on the
//! kernel keeps everybody else from writing, so references into the bytes obey Rust's rules:
//! `&self` gives `&[u8]`, `&mut self` gives `&mut [u8]`.

#![allow(unsafe_code, reason = "hands out references into the mapping")]

use std::os::fd::{AsFd, BorrowedFd};
use std::slice;

use crate::error::ShmError;
use crate::mapping::Mapping;
use crate::memory_object::Memory;

/// Memory made here, sealed `F_SEAL_FUTURE_WRITE` before anybody else saw it, and mapped writable
/// by this process alone. Peers get a descriptor they can only map for reading.
///
/// A client writes frames straight into it; a service makes its output pools with it.
///
/// The peer reads whenever it likes. It may see a half-written frame if it does not wait to be
/// told; that is between the two of them and cannot disturb the writer.
#[derive(Debug)]
pub struct SoleWriter {
    mapping: Mapping,
    memory: Memory,
}

impl SoleWriter {
    /// Makes `len` zero bytes.
    ///
    /// # Errors
    /// [`ShmError::SealRefused`] on a kernel without `F_SEAL_FUTURE_WRITE` (before 5.1), and as
    /// [`Memory::create`].
    pub fn create(name: &str, len: usize) -> Result<SoleWriter, ShmError> {
        let mut memory = Memory::create(name, len)?;
        let mapping = Mapping::map(&memory)?;
        mapping.keep_from_children()?;
        memory.seal_future_write()?;
        Ok(SoleWriter { mapping, memory })
    }

    /// Length in bytes. Never zero.
    #[allow(clippy::len_without_is_empty, reason = "an empty memory cannot be made")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `base..base + len` is one live mapping, readable, initialised (zeroes by the
        // kernel, then what `bytes_mut` wrote), at most `isize::MAX` long (`MAX_LEN`). Nobody
        // writes while the borrow lives: this process would need `&mut self`; other processes have
        // no writable mapping (made before the seal, by us, not inherited: MADV_DONTFORK) and
        // cannot make one or `write` to the descriptor (F_SEAL_FUTURE_WRITE); holes cannot be
        // punched (same seal) and the file cannot shrink (F_SEAL_SHRINK).
        unsafe { slice::from_raw_parts(self.mapping.base(), self.mapping.len()) }
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the mapping was made writable, and `&mut self` keeps every other
        // reference of this process away. Peers may read at the same time: they are not part of
        // this program, and reading changes nothing here.
        unsafe { slice::from_raw_parts_mut(self.mapping.base(), self.mapping.len()) }
    }

    /// The object, for its descriptor.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl AsFd for SoleWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{Errno, pwrite};

    #[test]
    fn nobody_with_the_descriptor_can_write() {
        let mut ours = SoleWriter::create("sole", 4096).unwrap();
        ours.bytes_mut()[7] = 42;
        let theirs = Memory::from_fd(ours.memory().duplicate_fd().unwrap()).unwrap();
        assert!(matches!(
            Mapping::map(&theirs),
            Err(ShmError::System { call: "mmap", errno: Errno::PERM })
        ));
        assert_eq!(pwrite(theirs.as_fd(), b"x", 0), Err(Errno::PERM));

        let read = Mapping::map_read_only(&theirs).unwrap();
        let mut out = [0];
        read.region(7, 1).unwrap().copy_out(0, &mut out).unwrap();
        assert_eq!(out, [42]);
        assert_eq!(ours.bytes()[7], 42);
    }

    #[test]
    fn the_set_of_seals_is_closed() {
        let ours = SoleWriter::create("sole", 64).unwrap();
        let seals = ours.memory().seals();
        assert!(seals.seal && seals.future_write && seals.shrink && seals.grow && !seals.write);
    }

    #[test]
    fn a_forked_child_does_not_get_the_mapping() {
        let ours = SoleWriter::create("sole", 64).unwrap();
        let at = format!("{:x}-", ours.bytes().as_ptr() as usize);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let entry = smaps.split_once(&at).expect("the mapping is listed").1;
        let flags = entry.lines().find(|l| l.starts_with("VmFlags:")).unwrap();
        assert!(flags.split(' ').any(|flag| flag == "dc"), "not copied on fork: {flags}");
    }
}
