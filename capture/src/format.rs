//! How a camera's pixels are stored, and what is taken of that.

use crate::error::CaptureError;
use crate::fourcc::FourCc;
use crate::kernel::abi::{self, PixFormat};

/// Most pixels of a side that are read: what a driver says decides what is allocated.
pub(crate) const MAX_SIDE: u32 = 16_384;
/// Most bytes of a frame: 5760 x 4320 pixels in YUYV.
pub(crate) const MAX_FRAME_BYTES: u32 = 64 << 20;

/// A format whose frames are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelFormat {
    /// Two pixels in four bytes: brightness, blue, brightness, red.
    Yuyv,
    /// Each frame a JPEG picture, mostly without its Huffman tables.
    Mjpeg,
}

impl PixelFormat {
    /// The format with this code, where it is read.
    #[must_use]
    pub fn of(code: FourCc) -> Option<Self> {
        match code.0 {
            abi::PIX_FMT_YUYV => Some(PixelFormat::Yuyv),
            abi::PIX_FMT_MJPEG | abi::PIX_FMT_JPEG => Some(PixelFormat::Mjpeg),
            _ => None,
        }
    }

    /// Its code.
    #[must_use]
    pub fn code(self) -> FourCc {
        FourCc(match self {
            PixelFormat::Yuyv => abi::PIX_FMT_YUYV,
            PixelFormat::Mjpeg => abi::PIX_FMT_MJPEG,
        })
    }
}

/// What the numbers of YUYV stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// BT.709 says how colours become numbers, not BT.601.
    pub is_bt709: bool,
    /// 0 is black and 255 white, not 16 and 235.
    pub is_full_range: bool,
}

/// What the camera agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Pixels in a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bytes from the beginning of a line to that of the next: of YUYV at least `2 * width`; lines may be padded.
    pub stride: u32,
    /// How they are stored.
    pub pixels: PixelFormat,
    /// What numbers of YUYV stand for.
    pub encoding: Encoding,
}

impl Format {
    /// What a driver answered; an error where it is nothing that can be read.
    pub(crate) fn new(pix: &PixFormat, pixels: PixelFormat) -> Result<Self, CaptureError> {
        let PixFormat { width, height, field, bytesperline, sizeimage, .. } = *pix;
        let line = width.saturating_mul(2);
        // Drivers of compressed formats leave it 0, and so do some others.
        let stride = if bytesperline == 0 { line } else { bytesperline };
        let is_sane = (1..=MAX_SIDE).contains(&width)
            && (1..=MAX_SIDE).contains(&height)
            && (1..=MAX_FRAME_BYTES).contains(&sizeimage)
            && (pixels == PixelFormat::Mjpeg
                || (stride >= line && needed_bytes(width, height, stride) <= u64::from(sizeimage)));
        if !is_sane {
            return Err(CaptureError::FrameSize { width, height, stride, bytes: sizeimage });
        }
        if !matches!(field, abi::FIELD_ANY | abi::FIELD_NONE | abi::FIELD_INTERLACED) {
            return Err(CaptureError::Interlaced { field });
        }
        let is_bt709 = match pix.ycbcr_enc {
            abi::YCBCR_ENC_DEFAULT => pix.colorspace == abi::COLORSPACE_REC709,
            encoding => encoding == abi::YCBCR_ENC_709,
        };
        let is_full_range = match pix.quantization {
            abi::QUANTIZATION_DEFAULT => pix.colorspace == abi::COLORSPACE_JPEG,
            range => range == abi::QUANTIZATION_FULL_RANGE,
        };
        let encoding = Encoding { is_bt709, is_full_range };
        Ok(Format { width, height, stride, pixels, encoding })
    }

    /// Fewest bytes that a whole frame has: of YUYV all lines, the last one without its padding.
    #[must_use]
    pub fn least_bytes(&self) -> u64 {
        match self.pixels {
            PixelFormat::Yuyv => needed_bytes(self.width, self.height, self.stride),
            PixelFormat::Mjpeg => 1,
        }
    }
}

fn needed_bytes(width: u32, height: u32, stride: u32) -> u64 {
    u64::from(stride) * u64::from(height.saturating_sub(1)) + 2 * u64::from(width)
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    fn answered(width: u32, height: u32, bytesperline: u32, sizeimage: u32) -> PixFormat {
        PixFormat { width, height, bytesperline, sizeimage, field: 1, ..PixFormat::new_zeroed() }
    }

    #[test]
    fn lines_may_be_padded_but_never_shorter_than_their_pixels() {
        let format = |stride, bytes| {
            Format::new(&answered(100, 10, stride, bytes), PixelFormat::Yuyv).map(|f| f.stride)
        };
        assert_eq!(format(256, 2560).ok(), Some(256));
        assert_eq!(format(256, 256 * 9 + 200).ok(), Some(256), "the last line without padding");
        assert_eq!(format(0, 2000).ok(), Some(200), "a driver that does not say");
        assert!(format(199, 2000).is_err());
        assert!(format(256, 2000).is_err(), "less than its lines");
    }

    #[test]
    fn what_nobody_can_hold_is_refused() {
        for (width, height, bytes) in
            [(0, 1, 1), (1, 0, 1), (MAX_SIDE + 1, 1, 1), (1, 1, 0), (1, 1, MAX_FRAME_BYTES + 1)]
        {
            let format = Format::new(&answered(width, height, 0, bytes), PixelFormat::Mjpeg);
            assert!(matches!(format, Err(CaptureError::FrameSize { .. })), "{width} {height}");
        }
        let alternating = PixFormat { field: 7, ..answered(4, 4, 8, 32) };
        let format = Format::new(&alternating, PixelFormat::Yuyv);
        assert!(matches!(format, Err(CaptureError::Interlaced { field: 7 })));
    }

    #[test]
    fn a_code_is_shown_as_its_letters() {
        assert_eq!(PixelFormat::Mjpeg.code().to_string(), "MJPG");
        assert_eq!(FourCc::new(*b"Y16 ").to_string(), "Y16?");
        assert_eq!(PixelFormat::of(FourCc::new(*b"JPEG")), Some(PixelFormat::Mjpeg));
        assert_eq!(PixelFormat::of(FourCc::new(*b"NV12")), None);
    }
}
