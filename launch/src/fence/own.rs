//! A fence of our own: a pipe.

use std::os::fd::OwnedFd;

use burst_hal::Fence;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::LaunchError;

/// The driver's end of a fence. Dropped, or closed by the end of the process, it fails the fence.
///
/// It is a pipe, so that the kernel tells of the driver's death by itself: an eventfd cannot, and a
/// `sync_file` only drivers of the kernel can make.
#[derive(Debug)]
pub struct FenceSignal {
    write: OwnedFd,
    /// So that there is a reader: writing to a pipe without one would signal the process.
    _read: Fence,
}

impl FenceSignal {
    /// A fence, and the end that signals it.
    ///
    /// # Errors
    /// [`LaunchError::System`] where the process has no descriptor left.
    pub fn new() -> Result<(FenceSignal, Fence), LaunchError> {
        // Not blocking: whoever fills the pipe makes nobody wait.
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (read, write) = pipe_with(flags).map_err(LaunchError::system("pipe2"))?;
        let fence = Fence::from(read);
        Ok((FenceSignal { write, _read: fence.clone() }, fence))
    }

    /// What the fence stands for is done.
    pub fn done(self) {
        // It fails only where the pipe is full, and then it can be read already.
        let _ = rustix::io::write(&self.write, &[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckedFence, FenceKind, FenceState};

    #[test]
    fn a_fence_is_done_by_a_byte_and_failed_by_the_end_of_its_driver() {
        let (signal, fence) = FenceSignal::new().unwrap();
        let [seen] = &CheckedFence::check_all(vec![fence]).unwrap()[..] else { panic!() };
        assert_eq!((seen.kind(), seen.state()), (FenceKind::Pipe, FenceState::Pending));
        signal.done();
        // However often it is looked at.
        assert_eq!([seen.state(), seen.state()], [FenceState::Done; 2]);
        let (signal, fence) = FenceSignal::new().unwrap();
        let [seen] = &CheckedFence::check_all(vec![fence.clone()]).unwrap()[..] else { panic!() };
        drop(signal);
        assert_eq!(seen.state(), FenceState::Failed);
        let refused = CheckedFence::check_all(vec![fence]).unwrap_err();
        assert_eq!(refused, crate::LaunchError::FailedFence { index: 0 });
    }
}
