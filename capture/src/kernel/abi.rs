//! The kernel's structures, as a process with 64-bit pointers sees them (`linux/videodev2.h`). Unions are the one
//! member that is used, filled up to their size. On a machine with other pointers the sizes, and with them the numbers of the requests,
//! are others: the kernel refuses them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(crate) const BUF_TYPE_VIDEO_CAPTURE: u32 = 1;
pub(crate) const MEMORY_MMAP: u32 = 1;

pub(crate) const CAP_VIDEO_CAPTURE: u32 = 0x0000_0001;
pub(crate) const CAP_VIDEO_CAPTURE_MPLANE: u32 = 0x0000_1000;
pub(crate) const CAP_STREAMING: u32 = 0x0400_0000;
pub(crate) const CAP_DEVICE_CAPS: u32 = 0x8000_0000;
/// In `CaptureParm`: the rate can be asked for.
pub(crate) const CAP_TIMEPERFRAME: u32 = 0x0000_1000;

pub(crate) const PIX_FMT_YUYV: u32 = u32::from_le_bytes(*b"YUYV");
pub(crate) const PIX_FMT_MJPEG: u32 = u32::from_le_bytes(*b"MJPG");
pub(crate) const PIX_FMT_JPEG: u32 = u32::from_le_bytes(*b"JPEG");

pub(crate) const FIELD_ANY: u32 = 0;
pub(crate) const FIELD_NONE: u32 = 1;
pub(crate) const FIELD_INTERLACED: u32 = 4;

pub(crate) const COLORSPACE_REC709: u32 = 3;
pub(crate) const COLORSPACE_JPEG: u32 = 7;
pub(crate) const YCBCR_ENC_DEFAULT: u32 = 0;
pub(crate) const YCBCR_ENC_709: u32 = 2;
pub(crate) const QUANTIZATION_DEFAULT: u32 = 0;
pub(crate) const QUANTIZATION_FULL_RANGE: u32 = 1;

pub(crate) const BUF_FLAG_ERROR: u32 = 0x0000_0040;
pub(crate) const BUF_FLAG_TIMESTAMP_MASK: u32 = 0x0000_E000;
pub(crate) const BUF_FLAG_TIMESTAMP_MONOTONIC: u32 = 0x0000_2000;

/// `FrameSize` or `FrameInterval` is one size or interval, not a range.
pub(crate) const DISCRETE: u32 = 1;

macro_rules! kernel_struct {
    ($(#[$doc:meta])* $name:ident = $bytes:literal { $($field:ident: $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub(crate) struct $name { $(pub(crate) $field: $ty),* }
        const _: () = assert!(size_of::<$name>() == $bytes);
    };
}

kernel_struct! {
    /// `struct v4l2_capability`.
    Capability = 104 {
        driver: [u8; 16],
        card: [u8; 32],
        bus_info: [u8; 32],
        version: u32,
        capabilities: u32,
        device_caps: u32,
        reserved: [u32; 3],
    }
}

kernel_struct! {
    /// `struct v4l2_fmtdesc`.
    FormatDescription = 64 {
        index: u32,
        kind: u32,
        flags: u32,
        description: [u8; 32],
        pixelformat: u32,
        mbus_code: u32,
        reserved: [u32; 3],
    }
}

kernel_struct! {
    /// `struct v4l2_pix_format`.
    PixFormat = 48 {
        width: u32,
        height: u32,
        pixelformat: u32,
        field: u32,
        bytesperline: u32,
        sizeimage: u32,
        colorspace: u32,
        private: u32,
        flags: u32,
        ycbcr_enc: u32,
        quantization: u32,
        xfer_func: u32,
    }
}

kernel_struct! {
    /// `struct v4l2_format` of pictures in one plane.
    Format = 208 { kind: u32, padding: u32, pix: PixFormat, rest: [u8; 152] }
}

kernel_struct! {
    /// `struct v4l2_fract`: seconds.
    Fraction = 8 { numerator: u32, denominator: u32 }
}

kernel_struct! {
    /// `struct v4l2_captureparm`.
    CaptureParm = 40 {
        capability: u32,
        capturemode: u32,
        timeperframe: Fraction,
        extendedmode: u32,
        readbuffers: u32,
        reserved: [u32; 4],
    }
}

kernel_struct! {
    /// `struct v4l2_streamparm` of a device that captures.
    StreamParm = 204 { kind: u32, capture: CaptureParm, rest: [u8; 160] }
}

kernel_struct! {
    /// `struct v4l2_requestbuffers`.
    RequestBuffers = 20 {
        count: u32,
        kind: u32,
        memory: u32,
        capabilities: u32,
        flags: u8,
        reserved: [u8; 3],
    }
}

kernel_struct! {
    /// `struct v4l2_buffer` in one plane, in memory of the driver.
    Buffer = 88 {
        index: u32,
        kind: u32,
        bytesused: u32,
        flags: u32,
        field: u32,
        padding: u32,
        seconds: i64,
        microseconds: i64,
        timecode: [u32; 4],
        sequence: u32,
        memory: u32,
        offset: u32,
        offset_rest: u32,
        length: u32,
        reserved2: u32,
        request_fd: i32,
        padding_behind: u32,
    }
}

kernel_struct! {
    /// `struct v4l2_frmsizeenum`; of a range the members are least and greatest with steps between.
    FrameSize = 44 {
        index: u32,
        pixel_format: u32,
        kind: u32,
        sizes: [u32; 6],
        reserved: [u32; 2],
    }
}

kernel_struct! {
    /// `struct v4l2_frmivalenum`; of a range the shortest interval comes first, then the longest, then the step.
    FrameInterval = 52 {
        index: u32,
        pixel_format: u32,
        width: u32,
        height: u32,
        kind: u32,
        intervals: [Fraction; 3],
        reserved: [u32; 2],
    }
}

/// Text that ends at its first 0, as far as it is text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// Offsets as a C compiler has them for `linux/videodev2.h` on x86-64.
    #[test]
    fn members_lie_where_the_kernel_has_them() {
        assert_eq!(offset_of!(Buffer, seconds), 24);
        assert_eq!(offset_of!(Buffer, sequence), 56);
        assert_eq!(offset_of!(Buffer, memory), 60);
        assert_eq!(offset_of!(Buffer, offset), 64);
        assert_eq!(offset_of!(Buffer, length), 72);
        assert_eq!(offset_of!(Buffer, request_fd), 80);
        assert_eq!(offset_of!(Format, pix), 8);
        assert_eq!(offset_of!(StreamParm, capture), 4);
        assert_eq!(offset_of!(CaptureParm, timeperframe), 8);
        assert_eq!(offset_of!(FormatDescription, pixelformat), 44);
        assert_eq!(offset_of!(Capability, device_caps), 88);
        assert_eq!(offset_of!(FrameSize, sizes), 12);
        assert_eq!(offset_of!(FrameInterval, intervals), 20);
        assert_eq!(offset_of!(PixFormat, ycbcr_enc), 36);
        assert_eq!(offset_of!(PixFormat, quantization), 40);
    }

    #[test]
    fn text_ends_at_its_first_zero() {
        assert_eq!(text(b"uvcvideo\0\xFFjunk"), "uvcvideo");
        assert_eq!(text(b"four"), "four");
        assert_eq!(text(b"a\x1b[2Jb\0"), "a[2Jb", "nothing that moves a terminal's cursor");
    }
}
