//! A buffer of the driver, mapped.

#![allow(unsafe_code, reason = "one of the modules that call the kernel")]

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// A buffer of the driver, in this process's memory.
#[derive(Debug)]
pub(crate) struct Mapping(MmapRaw);

impl Mapping {
    /// Maps the buffer that the driver says lies at `offset`, of so many bytes.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn new(device: &File, offset: u64, bytes: usize) -> io::Result<Self> {
        Ok(Mapping(MmapOptions::new().offset(offset).len(bytes).map_raw(device)?))
    }

    /// Bytes of the buffer.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Copies the first `bytes` bytes, or all where there are fewer. To be called while the buffer is not with the driver: it
    /// may write into it until it has given it back, and again from when it has got it.
    pub(crate) fn copy_out(&self, bytes: usize, into: &mut Vec<u8>) {
        let bytes = bytes.min(self.bytes());
        into.resize(bytes, 0);
        // SAFETY: the mapping has at least `bytes` bytes from its beginning on, mapped for reading for as long as `self` lives;
        // a driver maps all of a buffer's pages or none, and keeps them while they are mapped, also where its
        // device is unplugged. `into` has room for `bytes` bytes, and lies in memory of our own, which the mapping is not a part of.
        // Bytes have no invalid values. The driver does not write into a buffer between giving it back
        // (VIDIOC_DQBUF) and getting it again (VIDIOC_QBUF), and no other process has it.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), into.as_mut_ptr(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn as_much_comes_out_as_there_is() {
        let path =
            std::env::temp_dir().join(format!("burst-capture-mapping-{}", std::process::id()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.as_mut().expect("a file");
        std::fs::remove_file(&path).expect("its name is no longer needed");
        file.write_all(&[7; 4096]).expect("room");
        let mapping = Mapping::new(file, 0, 4096).expect("mapped");
        let mut bytes = Vec::new();
        mapping.copy_out(10, &mut bytes);
        assert_eq!(bytes, [7; 10]);
        mapping.copy_out(usize::MAX, &mut bytes);
        assert_eq!(bytes.len(), 4096);
    }
}
