//! Cameras of this machine through Video4Linux2: which there are, what they can do, and their frames as
//! the camera gives them, each with the time at which it was taken.
//!
//! A [`Device`] is an open `/dev/videoN`; a [`Camera`] is one that streams through memory that the driver shares
//! (`V4L2_MEMORY_MMAP`). Frames leave it as copies, in YUYV or as JPEG ([`PixelFormat`]): turning them into
//! colours is somebody else's work.
//!
//! Everything here goes through functions of the C library, not around it: so tests can put a camera in the
//! place of the kernel's (`LD_PRELOAD`), on machines that have none.
//!
//! `unsafe` stands in `kernel/` alone: one call of `ioctl`, one of `poll`, one copy out of a mapping.
//!
//! Source of every number and rule: *Video for Linux API*, part I of the kernel's *Linux Media Infrastructure
//! userspace API*.

mod camera;
mod clock;
mod counts;
mod device;
mod error;
mod format;
mod fourcc;
mod kernel;
mod modes;

pub use camera::{Camera, Wish};
pub use clock::Distrust;
pub use counts::Counts;
pub use device::{Device, MAX_DEVICES, candidates};
pub use error::CaptureError;
pub use format::{Encoding, Format, PixelFormat};
pub use fourcc::FourCc;
pub use modes::{Mode, Sizes};
