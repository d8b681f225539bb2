//! An open device.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zerocopy::FromZeros;

use crate::error::CaptureError;
use crate::kernel::abi::{self, Capability};
use crate::kernel::ioctl::{self, demand};

/// As many devices of a kind as the kernel has at most.
pub const MAX_DEVICES: u32 = 256;

/// Names that cameras have: `/dev/video0` and so on. Most of them are not there.
pub fn candidates() -> impl Iterator<Item = PathBuf> {
    (0..MAX_DEVICES).map(|number| PathBuf::from(format!("/dev/video{number}")))
}

/// An open device that gives pictures and can stream them.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: String,
    driver: String,
    bus: String,
}

impl Device {
    /// Opens a device and sees whether it is a camera.
    ///
    /// # Errors
    /// [`CaptureError::NoDevice`], [`CaptureError::NotPermitted`], [`CaptureError::Busy`] as opening it says; [`CaptureError::NotVideo`],
    /// [`CaptureError::NoCapture`], [`CaptureError::SeveralPlanes`] and [`CaptureError::NoStreaming`] where it is something else.
    pub fn open(path: &Path) -> Result<Device, CaptureError> {
        // Nothing waits inside a request: `poll` does, which knows when to give up.
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|reason| CaptureError::of("open", reason))?;
        let mut capability = Capability::new_zeroed();
        ioctl::call(file.as_fd(), &ioctl::QUERYCAP, &mut capability).map_err(
            |reason| match reason.raw_os_error() {
                Some(libc::ENOTTY | libc::EINVAL) => CaptureError::NotVideo,
                _ => CaptureError::of(ioctl::QUERYCAP.name(), reason),
            },
        )?;
        check(&capability)?;
        Ok(Device {
            file,
            name: abi::text(&capability.card),
            driver: abi::text(&capability.driver),
            bus: abi::text(&capability.bus_info),
        })
    }

    /// What it calls itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Where it is plugged in.
    #[must_use]
    pub fn bus(&self) -> &str {
        &self.bus
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Makes a request of it.
    pub(crate) fn demand<T: zerocopy::FromBytes + zerocopy::IntoBytes>(
        &self,
        request: &ioctl::Request<T>,
        payload: &mut T,
    ) -> Result<(), CaptureError> {
        demand(self.fd(), request, payload)
    }
}

fn check(capability: &Capability) -> Result<(), CaptureError> {
    // Of several files of one device each says here what it is itself.
    let capabilities = match capability.capabilities & abi::CAP_DEVICE_CAPS {
        0 => capability.capabilities,
        _ => capability.device_caps,
    };
    if capabilities & abi::CAP_VIDEO_CAPTURE == 0 {
        return Err(match capabilities & abi::CAP_VIDEO_CAPTURE_MPLANE {
            0 => CaptureError::NoCapture { capabilities },
            _ => CaptureError::SeveralPlanes,
        });
    }
    match capabilities & abi::CAP_STREAMING {
        0 => Err(CaptureError::NoStreaming { capabilities }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_what_its_own_file_says() {
        let of = |capabilities, device_caps| {
            check(&Capability { capabilities, device_caps, ..Capability::new_zeroed() })
        };
        let camera = abi::CAP_VIDEO_CAPTURE | abi::CAP_STREAMING;
        assert!(of(camera, 0).is_ok());
        assert!(of(camera | abi::CAP_DEVICE_CAPS, camera).is_ok());
        let beside = of(camera | abi::CAP_DEVICE_CAPS, 0x0480_0000);
        assert!(matches!(beside, Err(CaptureError::NoCapture { capabilities: 0x0480_0000 })));
        assert!(matches!(of(abi::CAP_VIDEO_CAPTURE, 0), Err(CaptureError::NoStreaming { .. })));
        assert!(matches!(of(0x0400_1000, 0), Err(CaptureError::SeveralPlanes)));
    }

    #[test]
    fn what_is_not_there_and_what_is_no_camera_are_told_apart() {
        let open = |path: &str| Device::open(Path::new(path)).map(|device| device.name);
        assert!(matches!(open("/dev/video-nonexistent"), Err(CaptureError::NoDevice)));
        assert!(matches!(open("/dev/null"), Err(CaptureError::NotVideo)));
        assert!(matches!(open("/dev"), Err(CaptureError::Call { call: "open", .. })));
    }
}
