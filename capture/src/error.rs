//! What can go wrong with a camera.

use std::io;

use crate::fourcc::FourCc;

/// Why there is no camera, or no frame of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// Nothing has this name.
    #[error("there is no such device")]
    NoDevice,
    /// The device file does not let this user in.
    #[error("no permission to use it; device files of cameras mostly belong to the group `video`")]
    NotPermitted,
    /// Another program streams from it.
    #[error("another program is using it")]
    Busy,
    /// It went away while it was used.
    #[error("it was unplugged")]
    Unplugged,
    /// The kernel knows no camera behind this file.
    #[error("it is no Video4Linux device")]
    NotVideo,
    /// A device of another kind: one for output, radio, or what a camera says beside its pictures.
    #[error("it gives no pictures (capabilities {capabilities:#010x})")]
    NoCapture {
        /// What it can do, as the kernel says it.
        capabilities: u32,
    },
    /// Its pictures come in several planes, through another interface than the one that is used here.
    #[error("it gives pictures in several planes only, which are not read")]
    SeveralPlanes,
    /// It has no buffers that could be mapped.
    #[error("it cannot stream (capabilities {capabilities:#010x})")]
    NoStreaming {
        /// What it can do, as the kernel says it.
        capabilities: u32,
    },
    /// None of its formats is read.
    #[error("none of its formats is read ({}); YUYV and MJPG are", listed(.found))]
    NoFormat {
        /// The formats that it has.
        found: Vec<FourCc>,
    },
    /// Lines of a picture that come in another order than from top to bottom.
    #[error("its pictures are interlaced (field order {field}), which is not read")]
    Interlaced {
        /// As the kernel counts field orders.
        field: u32,
    },
    /// Frames that are too large, or smaller than their own lines.
    #[error(
        "frames of {width} x {height} pixels with {stride} bytes a line and {bytes} in all are not read"
    )]
    FrameSize {
        /// Pixels in a line.
        width: u32,
        /// Lines.
        height: u32,
        /// Bytes from one line to the next.
        stride: u32,
        /// Bytes of a frame.
        bytes: u32,
    },
    /// The driver made fewer buffers than one, or such as cannot be mapped.
    #[error("its driver made {count} buffers, of which the last has {bytes} bytes")]
    Buffers {
        /// How many.
        count: u32,
        /// Bytes of the last one that was looked at.
        bytes: u32,
    },
    /// The driver gave a buffer back that it did not have.
    #[error("its driver gave buffer {index} back, which it did not have")]
    WrongBuffer {
        /// Which.
        index: u32,
    },
    /// No frame came for so long.
    #[error("it gave no whole frame for {seconds} s")]
    Silent {
        /// How long was waited.
        seconds: u64,
    },
    /// So many frames one after the other were damaged.
    #[error("the last {count} frames of it were all damaged")]
    OnlyDamaged {
        /// How many.
        count: u64,
    },
    /// A call that should not fail did.
    #[error("{call} failed: {reason}")]
    Call {
        /// Its name.
        call: &'static str,
        /// What the kernel said.
        reason: io::Error,
    },
}

impl CaptureError {
    /// What a failed call means, by what the kernel said.
    pub(crate) fn of(call: &'static str, reason: io::Error) -> Self {
        match reason.raw_os_error() {
            Some(libc::ENOENT) => CaptureError::NoDevice,
            Some(libc::EACCES | libc::EPERM) => CaptureError::NotPermitted,
            Some(libc::EBUSY) => CaptureError::Busy,
            Some(libc::ENODEV | libc::ENXIO) => CaptureError::Unplugged,
            _ => CaptureError::Call { call, reason },
        }
    }
}

fn listed(found: &[FourCc]) -> String {
    let names: Vec<String> = found.iter().map(ToString::to_string).collect();
    if names.is_empty() { "it names none".into() } else { names.join(", ") }
}
