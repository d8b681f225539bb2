//! The requests that are made of a device.

#![allow(unsafe_code, reason = "one of the modules that call the kernel")]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use zerocopy::{FromBytes, IntoBytes};

use super::abi::{
    Buffer, Capability, Format, FormatDescription, FrameInterval, FrameSize, RequestBuffers,
    StreamParm,
};
use crate::error::CaptureError;

/// A request: its number, which says how many bytes the kernel reads and writes, and the type of those.
#[derive(Debug)]
pub(crate) struct Request<T> {
    number: u32,
    name: &'static str,
    payload: PhantomData<fn(T)>,
}

/// Whether the kernel writes the bytes, reads them, or both.
const WRITES: u32 = 2;
const READS: u32 = 1;
const BOTH: u32 = WRITES | READS;

impl<T> Request<T> {
    /// `_IOC(direction, 'V', number, size)`.
    const fn new(direction: u32, number: u8, name: &'static str) -> Self {
        let size = size_of::<T>();
        assert!(size < 1 << 14, "a request's number has 14 bits for the size");
        #[expect(clippy::cast_possible_truncation, reason = "14 bits")]
        let size = size as u32;
        let number = (direction << 30) | (size << 16) | ((b'V' as u32) << 8) | number as u32;
        Request { number, name, payload: PhantomData }
    }

    /// Its name in the kernel's documentation.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

pub(crate) const QUERYCAP: Request<Capability> = Request::new(WRITES, 0, "VIDIOC_QUERYCAP");
pub(crate) const ENUM_FMT: Request<FormatDescription> = Request::new(BOTH, 2, "VIDIOC_ENUM_FMT");
pub(crate) const S_FMT: Request<Format> = Request::new(BOTH, 5, "VIDIOC_S_FMT");
pub(crate) const REQBUFS: Request<RequestBuffers> = Request::new(BOTH, 8, "VIDIOC_REQBUFS");
pub(crate) const QUERYBUF: Request<Buffer> = Request::new(BOTH, 9, "VIDIOC_QUERYBUF");
pub(crate) const QBUF: Request<Buffer> = Request::new(BOTH, 15, "VIDIOC_QBUF");
pub(crate) const DQBUF: Request<Buffer> = Request::new(BOTH, 17, "VIDIOC_DQBUF");
pub(crate) const STREAMON: Request<i32> = Request::new(READS, 18, "VIDIOC_STREAMON");
pub(crate) const STREAMOFF: Request<i32> = Request::new(READS, 19, "VIDIOC_STREAMOFF");
pub(crate) const G_PARM: Request<StreamParm> = Request::new(BOTH, 21, "VIDIOC_G_PARM");
pub(crate) const S_PARM: Request<StreamParm> = Request::new(BOTH, 22, "VIDIOC_S_PARM");
pub(crate) const ENUM_FRAMESIZES: Request<FrameSize> =
    Request::new(BOTH, 74, "VIDIOC_ENUM_FRAMESIZES");
pub(crate) const ENUM_FRAMEINTERVALS: Request<FrameInterval> =
    Request::new(BOTH, 75, "VIDIOC_ENUM_FRAMEINTERVALS");

/// Makes a request; again where a signal interrupts it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn call<T: FromBytes + IntoBytes>(
    device: BorrowedFd<'_>,
    request: &Request<T>,
    payload: &mut T,
) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open for as long as it is borrowed. `payload` is valid for reads and writes of
        // `size_of::<T>()` bytes, which is the size in the request's number (`Request::new` computes it from
        // the same `T`, and all requests are those of the table above): the kernel copies that many bytes in and out. Any bytes are a `T`
        // (`FromBytes`), and all of them are initialised (`IntoBytes`: no padding). No request of the table has the
        // kernel follow an address in it: buffers are the driver's own (`V4L2_MEMORY_MMAP`), in one plane.
        let result = unsafe {
            libc::ioctl(
                device.as_raw_fd(),
                request.number as libc::Ioctl,
                std::ptr::from_mut(payload),
            )
        };
        if result >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// As [`call`], with what the failure means.
pub(crate) fn demand<T: FromBytes + IntoBytes>(
    device: BorrowedFd<'_>,
    request: &Request<T>,
    payload: &mut T,
) -> Result<(), CaptureError> {
    call(device, request, payload).map_err(|reason| CaptureError::of(request.name(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as a C compiler has them for `linux/videodev2.h` on x86-64.
    #[test]
    fn requests_have_the_numbers_of_the_kernel() {
        assert_eq!(QUERYCAP.number, 0x8068_5600);
        assert_eq!(ENUM_FMT.number, 0xC040_5602);
        assert_eq!(S_FMT.number, 0xC0D0_5605);
        assert_eq!(REQBUFS.number, 0xC014_5608);
        assert_eq!(QUERYBUF.number, 0xC058_5609);
        assert_eq!(QBUF.number, 0xC058_560F);
        assert_eq!(DQBUF.number, 0xC058_5611);
        assert_eq!(STREAMON.number, 0x4004_5612);
        assert_eq!(STREAMOFF.number, 0x4004_5613);
        assert_eq!(G_PARM.number, 0xC0CC_5615);
        assert_eq!(S_PARM.number, 0xC0CC_5616);
        assert_eq!(ENUM_FRAMESIZES.number, 0xC02C_564A);
        assert_eq!(ENUM_FRAMEINTERVALS.number, 0xC034_564B);
    }

    #[test]
    fn what_is_no_camera_says_so() {
        let file = std::fs::File::open("/dev/null").expect("there");
        let mut capability = <Capability as zerocopy::FromZeros>::new_zeroed();
        let error = call(std::os::fd::AsFd::as_fd(&file), &QUERYCAP, &mut capability);
        assert_eq!(error.expect_err("no camera").raw_os_error(), Some(libc::ENOTTY));
    }
}
