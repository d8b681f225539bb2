//! A shared-memory object: its descriptor, its length and its seals.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pread, pwrite};

use crate::error::ShmError;
use crate::fd_kind::{FdKind, dma_buf_length, kind_of, seek_end};

/// Largest object that is made or mapped here, in bytes: far above any model's weights, far below
/// the point where adding two lengths could overflow.
pub const MAX_LEN: u64 = 1 << 40;

/// Which seals a memory carries. A seal is never taken off again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seals {
    /// Cannot become shorter: safe to map.
    pub shrink: bool,
    /// Cannot become longer.
    pub grow: bool,
    /// Nobody can write, now or later.
    pub write: bool,
    /// Nobody can map it writable from now on; mappings made before stay writable.
    pub future_write: bool,
    /// No more seals can be added.
    pub seal: bool,
}

impl From<SealFlags> for Seals {
    fn from(flags: SealFlags) -> Seals {
        Seals {
            shrink: flags.contains(SealFlags::SHRINK),
            grow: flags.contains(SealFlags::GROW),
            write: flags.contains(SealFlags::WRITE),
            future_write: flags.contains(SealFlags::FUTURE_WRITE),
            seal: flags.contains(SealFlags::SEAL),
        }
    }
}

/// A memory object: an owned descriptor and the length it had when it was opened.
///
/// Where [`Seals::shrink`] is set the object cannot be shorter than [`len`](Memory::len) any more.
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    len: u64,
    seals: Seals,
    kind: FdKind,
}

impl Memory {
    /// Makes `len` zero bytes, sealed against shrinking and growing. `name` shows up in `/proc` only.
    ///
    /// # Errors
    /// [`ShmError::Length`] for zero or more than [`MAX_LEN`]; [`ShmError::System`] when the kernel
    /// refuses (no memory, no descriptor left).
    pub fn create(name: &str, len: usize) -> Result<Memory, ShmError> {
        let len = len as u64;
        if len == 0 || len > MAX_LEN {
            return Err(ShmError::Length { len, max: MAX_LEN });
        }
        let fd = memfd(name)?;
        ftruncate(&fd, len).map_err(ShmError::system("ftruncate"))?;
        add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW, "F_SEAL_SHRINK")?;
        let seals = read_seals(&fd);
        Ok(Memory { fd, len, seals, kind: FdKind::File })
    }

    /// Takes a descriptor that came from a peer.
    ///
    /// Adds `F_SEAL_SHRINK` where it is missing and can be added; an object that stays unsealed is
    /// accepted (see [`is_shrink_sealed`](Memory::is_shrink_sealed)) but can never be mapped.
    /// Of dma-bufs see [`is_dma_buf`](Memory::is_dma_buf).
    ///
    /// # Errors
    /// [`ShmError::Refused`] for pipes, directories, devices, huge pages and write-only
    /// descriptors; [`ShmError::Length`] for an empty or absurdly long file.
    pub fn from_fd(fd: OwnedFd) -> Result<Memory, ShmError> {
        let kind = kind_of(&fd)?;
        let mut seals = read_seals(&fd);
        // Look first: adding to an object that carries F_SEAL_SEAL fails even when the seal we
        // want is there already.
        if !seals.shrink && fcntl_add_seals(&fd, SealFlags::SHRINK).is_ok() {
            seals = read_seals(&fd);
        }
        // The length comes after the seal: before it the peer could still shrink the file.
        let stat = fstat(&fd).map_err(ShmError::system("fstat"))?;
        let len = match kind {
            FdKind::File => u64::try_from(stat.st_size).unwrap_or(0),
            FdKind::DmaBuf => dma_buf_length(stat.st_size, || seek_end(fd.as_fd()))?,
        };
        if len == 0 || len > MAX_LEN {
            return Err(ShmError::Length { len, max: MAX_LEN });
        }
        Ok(Memory { fd, len, seals, kind })
    }

    /// Length in bytes. Never zero.
    #[allow(clippy::len_without_is_empty, reason = "an empty memory cannot be made")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The seals as last read.
    pub fn seals(&self) -> Seals {
        self.seals
    }

    /// Whether the object can be mapped without fear of `SIGBUS`.
    pub fn is_shrink_sealed(&self) -> bool {
        self.seals.shrink
    }

    /// Whether it is a buffer of a device. Its length never changes, although no seal says so; its
    /// bytes are reached through a [`Pool`](crate::Pool) alone.
    pub fn is_dma_buf(&self) -> bool {
        self.kind == FdKind::DmaBuf
    }

    /// Another descriptor of the same object.
    ///
    /// # Errors
    /// [`ShmError::System`] when no descriptor is left.
    pub fn try_clone(&self) -> Result<Memory, ShmError> {
        let fd = self.duplicate_fd()?;
        Ok(Memory { fd, len: self.len, seals: self.seals, kind: self.kind })
    }

    /// A duplicate of the descriptor, closed on exec, for sending.
    ///
    /// # Errors
    /// [`ShmError::System`] when no descriptor is left.
    pub fn duplicate_fd(&self) -> Result<OwnedFd, ShmError> {
        fcntl_dupfd_cloexec(&self.fd, 3).map_err(ShmError::system("fcntl(F_DUPFD_CLOEXEC)"))
    }

    /// Whether two descriptors stand for one object. Two regions "in different descriptors" can
    /// overlap when they do.
    ///
    /// # Errors
    /// [`ShmError::System`] when `fstat` fails.
    pub fn is_same_object(&self, other: &Memory) -> Result<bool, ShmError> {
        let ours = fstat(&self.fd).map_err(ShmError::system("fstat"))?;
        let theirs = fstat(&other.fd).map_err(ShmError::system("fstat"))?;
        Ok(ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
    }

    /// Reads bytes by system call, whatever maps them.
    ///
    /// # Errors
    /// [`ShmError::Short`] where it ends before; [`ShmError::System`].
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ShmError> {
        let wanted = bytes.len();
        let mut got = 0;
        while got < wanted {
            match pread(self, &mut bytes[got..], offset + got as u64) {
                Ok(0) => return Err(short(offset, wanted, got)),
                Ok(n) => got += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ShmError::System { call: "pread", errno }),
            }
        }
        Ok(())
    }

    /// Writes bytes by system call. Memory that is new and written once gets its pages with the bytes, in half of
    /// the time that a mapping takes: that makes each page zero first, in an exception of its own.
    ///
    /// # Errors
    /// [`ShmError::System`], with `EPERM` where it is sealed, and behind the end of what cannot grow;
    /// [`ShmError::Short`] where no more goes in (a full disk, a quota).
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ShmError> {
        let wanted = bytes.len();
        let mut got = 0;
        while got < wanted {
            match pwrite(self, &bytes[got..], offset + got as u64) {
                Ok(0) => return Err(short(offset, wanted, got)),
                Ok(n) => got += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ShmError::System { call: "pwrite", errno }),
            }
        }
        Ok(())
    }

    /// From now on no process can make a writable mapping; those that exist stay writable. Also seals
    /// the set of seals.
    ///
    /// # Errors
    /// [`ShmError::SealRefused`] where the kernel (before 5.1) or the object does not allow it.
    pub fn seal_future_write(&mut self) -> Result<(), ShmError> {
        let all = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        add_seals(&self.fd, all, "F_SEAL_FUTURE_WRITE")?;
        self.seals = read_seals(&self.fd);
        Ok(())
    }

    /// From now on no process can write. Also seals the set of seals.
    ///
    /// # Errors
    /// [`ShmError::SealRefused`], with `EBUSY` while a writable mapping exists anywhere.
    pub fn seal_write(&mut self) -> Result<(), ShmError> {
        let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        add_seals(&self.fd, all, "F_SEAL_WRITE")?;
        self.seals = read_seals(&self.fd);
        Ok(())
    }

    /// Forbids further seals, so that no process can stop others from mapping the object writable.
    ///
    /// # Errors
    /// [`ShmError::SealRefused`] where it was sealed already.
    pub fn seal_seals(&mut self) -> Result<(), ShmError> {
        add_seals(&self.fd, SealFlags::SEAL, "F_SEAL_SEAL")?;
        self.seals = read_seals(&self.fd);
        Ok(())
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Memory> for OwnedFd {
    fn from(memory: Memory) -> OwnedFd {
        memory.fd
    }
}

fn short(offset: u64, wanted: usize, got: usize) -> ShmError {
    ShmError::Short { offset, wanted: wanted as u64, got: got as u64 }
}

/// A memfd that cannot become executable where the kernel knows the flag (6.3), else a plain one.
fn memfd(name: &str) -> Result<OwnedFd, ShmError> {
    let plain = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, plain | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, plain),
        other => other,
    }
    .map_err(ShmError::system("memfd_create"))
}

fn add_seals(fd: &OwnedFd, seals: SealFlags, seal: &'static str) -> Result<(), ShmError> {
    fcntl_add_seals(fd, seals).map_err(|errno| ShmError::SealRefused { seal, errno })
}

/// A file that cannot be sealed (any file on disk) answers with an error: it has no seals.
fn read_seals(fd: &OwnedFd) -> Seals {
    fcntl_get_seals(fd).map(Seals::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;
    use rustix::pipe::pipe;
    use std::io::Write;

    #[test]
    fn a_new_memory_is_sealed_against_both_changes_of_length() {
        let memory = Memory::create("test", 100).unwrap();
        assert_eq!(memory.len(), 100);
        let seals = memory.seals();
        assert!(seals.shrink && seals.grow && !seals.seal && !seals.write && !seals.future_write);
        assert_eq!(ftruncate(&memory.fd, 10), Err(Errno::PERM));
        assert_eq!(ftruncate(&memory.fd, 1000), Err(Errno::PERM));
    }

    #[test]
    fn bytes_are_written_within_it_and_never_once_it_is_sealed() {
        let mut memory = Memory::create("written", 10_000).unwrap();
        memory.write(4_000, &[7; 6_000]).unwrap();
        let mut bytes = [1; 3];
        memory.read(3_998, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 7]);
        // A page may be written to its end, which is behind the memory's.
        let refused = Err(ShmError::System { call: "pwrite", errno: Errno::PERM });
        assert_eq!(memory.write(10_000, &[7; 5_000]), refused, "it cannot grow");
        assert_eq!(memory.len(), fstat(&memory.fd).unwrap().st_size.cast_unsigned());
        assert!(matches!(memory.read(9_999, &mut bytes), Err(ShmError::Short { got: 1, .. })));
        memory.seal_write().unwrap();
        assert_eq!(memory.write(0, &[1]), refused);
    }

    #[test]
    fn empty_and_absurd_lengths_are_refused() {
        for len in [0, usize::MAX, (1 << 40) + 1] {
            let error = Memory::create("test", len).unwrap_err();
            assert_eq!(error, ShmError::Length { len: len as u64, max: MAX_LEN }, "{len}");
        }
    }

    #[test]
    fn a_foreign_memfd_gets_the_shrink_seal() {
        let fd = memfd_create("foreign", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 4096).unwrap();
        let memory = Memory::from_fd(fd).unwrap();
        assert!(memory.is_shrink_sealed());
        assert_eq!(ftruncate(&memory.fd, 1), Err(Errno::PERM));
    }

    #[test]
    fn a_memfd_with_its_seals_sealed_is_taken_as_it_is() {
        let fd = memfd_create("plain", MemfdFlags::CLOEXEC).unwrap(); // carries F_SEAL_SEAL
        ftruncate(&fd, 4096).unwrap();
        let memory = Memory::from_fd(fd).unwrap();
        assert!(!memory.is_shrink_sealed() && memory.seals().seal);

        let mut sealed = Memory::create("sealed", 4096).unwrap();
        sealed.seal_seals().unwrap();
        let again = Memory::from_fd(sealed.into()).unwrap();
        assert!(again.is_shrink_sealed());
    }

    #[test]
    fn pipes_directories_and_path_descriptors_are_refused() {
        let (read, write) = pipe().unwrap();
        let directory = OwnedFd::from(std::fs::File::open("/").unwrap());
        for fd in [read, write, directory] {
            let error = Memory::from_fd(fd).unwrap_err();
            assert_eq!(error, ShmError::Refused(Refusal::NotAFile));
        }
    }

    #[test]
    fn a_write_only_file_is_refused() {
        let path = std::env::temp_dir().join(format!("burst-shm-wo-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"data").unwrap();
        let error = Memory::from_fd(OwnedFd::from(file)).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error, ShmError::Refused(Refusal::NotReadable));
    }

    #[test]
    fn an_empty_file_is_refused() {
        let fd = memfd_create("empty", MemfdFlags::CLOEXEC).unwrap();
        let error = Memory::from_fd(fd).unwrap_err();
        assert_eq!(error, ShmError::Length { len: 0, max: MAX_LEN });
    }

    #[test]
    fn huge_page_memfds_are_refused_where_the_kernel_makes_them() {
        let Ok(fd) = memfd_create("huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB) else {
            return; // this kernel has no huge pages: nothing to refuse
        };
        assert_eq!(Memory::from_fd(fd).unwrap_err(), ShmError::Refused(Refusal::HugePages));
    }

    #[test]
    fn two_descriptors_of_one_object_are_recognised() {
        let one = Memory::create("one", 64).unwrap();
        let other = Memory::create("other", 64).unwrap();
        let clone = one.try_clone().unwrap();
        assert!(one.is_same_object(&clone).unwrap());
        assert!(!one.is_same_object(&other).unwrap());
    }
}
