//! A file of an application: asked what it is, read and written at positions of our choice.
//!
//! It may lie on a file system that answers when its owner likes. So the caller steps aside for every call
//! that may wait: meanwhile others compute.

use std::fs::File;

use burst_hal::Caller;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, ftruncate};
use rustix::io::{Errno, pread, pwrite};

use crate::cache_error::{CacheError, Kind};

/// Bytes that are read or written between two checks whether the work is still wanted: they stay in a
/// core's own cache until they are hashed.
pub(super) const PIECE: usize = 64 << 10;

/// One file of a compilation.
pub(super) struct CacheFile<'a> {
    kind: Kind,
    file: &'a File,
    caller: Option<&'a Caller>,
}

impl<'a> CacheFile<'a> {
    pub(super) fn new(kind: Kind, file: &'a File, caller: Option<&'a Caller>) -> Self {
        CacheFile { kind, file, caller }
    }

    /// Which of the files it is.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Refuses what cannot be written from the start: a descriptor that only appends writes elsewhere.
    pub(super) fn check_writable(&self) -> Result<(), CacheError> {
        let mode = self.mode()?;
        let (kind, writing) = (self.kind, true);
        if mode & OFlags::RWMODE == OFlags::RDONLY || mode.contains(OFlags::APPEND) {
            return Err(CacheError::Access { kind, writing });
        }
        self.length().map(drop)
    }

    /// Refuses what cannot be read.
    pub(super) fn check_readable(&self) -> Result<(), CacheError> {
        let (kind, writing) = (self.kind, false);
        if self.mode()? & OFlags::RWMODE == OFlags::WRONLY {
            return Err(CacheError::Access { kind, writing });
        }
        Ok(())
    }

    fn mode(&self) -> Result<OFlags, CacheError> {
        let mode = self.system("fcntl(F_GETFL)", || fcntl_getfl(self.file))?;
        let (kind, writing) = (self.kind, false);
        // Such a descriptor only names a file.
        if mode.contains(OFlags::PATH) {
            return Err(CacheError::Access { kind, writing });
        }
        Ok(mode)
    }

    /// Bytes that it has just now.
    pub(super) fn length(&self) -> Result<u64, CacheError> {
        let stat = self.system("fstat", || fstat(self.file))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(CacheError::NotAFile { kind: self.kind });
        }
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Throws away all that is in it.
    pub(super) fn empty(&self) -> Result<(), CacheError> {
        self.system("ftruncate", || ftruncate(self.file, 0))
    }

    /// Fills `bytes` with what lies from `offset` on. Says how many there were.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CacheError> {
        let mut got = 0;
        while got < bytes.len() {
            let rest = &mut bytes[got..];
            match self.system("pread", || pread(self.file, &mut *rest, offset + got as u64))? {
                0 => break,
                count => got += count,
            }
        }
        Ok(got)
    }

    /// Writes all of `bytes` from `offset` on.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), CacheError> {
        let mut put = 0;
        while put < bytes.len() {
            match self.system("pwrite", || pwrite(self.file, &bytes[put..], offset + put as u64))? {
                0 => {
                    let (kind, call, errno) = (self.kind, "pwrite", Errno::NOSPC);
                    return Err(CacheError::System { kind, call, errno });
                }
                count => put += count,
            }
        }
        Ok(())
    }

    /// Makes a system call, without the caller's turn.
    fn system<T>(
        &self,
        call: &'static str,
        mut make: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, CacheError> {
        let mut made = Err(Errno::INTR);
        while matches!(made, Err(Errno::INTR)) {
            match self.caller {
                Some(caller) => caller.step_aside(&mut || made = make()),
                None => made = make(),
            }
        }
        made.map_err(|errno| CacheError::System { kind: self.kind, call, errno })
    }
}
