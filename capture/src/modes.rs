//! What a camera says that it can do.

use std::io;

use zerocopy::FromZeros;

use crate::device::Device;
use crate::error::CaptureError;
use crate::format::PixelFormat;
use crate::fourcc::FourCc;
use crate::kernel::abi::{
    BUF_TYPE_VIDEO_CAPTURE, DISCRETE, FormatDescription, Fraction, FrameInterval, FrameSize,
};
use crate::kernel::ioctl::{self, ENUM_FMT, ENUM_FRAMEINTERVALS, ENUM_FRAMESIZES};

/// Most formats, sizes of a format and rates of a size that are asked for: a driver that never ends its list would
/// keep us for ever.
const MAX_FORMATS: u32 = 64;
const MAX_SIZES: u32 = 128;
const MAX_RATES: u32 = 32;

/// A format that a camera has.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// Its code.
    pub code: FourCc,
    /// Which it is, where it is read.
    pub pixels: Option<PixelFormat>,
    /// The sizes of its frames.
    pub sizes: Vec<Sizes>,
}

/// Sizes of frames.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// One of them.
    One {
        /// Pixels in a line.
        width: u32,
        /// Lines.
        height: u32,
        /// Frames per second; empty where the camera does not name them one by one.
        rates: Vec<f64>,
    },
    /// All between two of them, in steps.
    Range {
        /// Width and height of the smallest.
        least: (u32, u32),
        /// Width and height of the largest.
        greatest: (u32, u32),
    },
}

impl Device {
    /// Its formats with their sizes and rates.
    ///
    /// # Errors
    /// What the driver says, but that a list is at its end or that it has none.
    pub fn modes(&self) -> Result<Vec<Mode>, CaptureError> {
        let mut modes = Vec::new();
        for code in self.codes()? {
            let (pixels, sizes) = (PixelFormat::of(code), self.sizes(code)?);
            modes.push(Mode { code, pixels, sizes });
        }
        Ok(modes)
    }

    /// The codes of its formats.
    pub(crate) fn codes(&self) -> Result<Vec<FourCc>, CaptureError> {
        let mut codes = Vec::new();
        for index in 0..MAX_FORMATS {
            let kind = BUF_TYPE_VIDEO_CAPTURE;
            let mut format = FormatDescription { index, kind, ..FormatDescription::new_zeroed() };
            if is_at_end(ioctl::call(self.fd(), &ENUM_FMT, &mut format), ENUM_FMT.name())? {
                break;
            }
            codes.push(FourCc(format.pixelformat));
        }
        Ok(codes)
    }

    fn sizes(&self, code: FourCc) -> Result<Vec<Sizes>, CaptureError> {
        let mut all = Vec::new();
        for index in 0..MAX_SIZES {
            let mut size = FrameSize { index, pixel_format: code.0, ..FrameSize::new_zeroed() };
            let called = ioctl::call(self.fd(), &ENUM_FRAMESIZES, &mut size);
            if is_at_end(called, ENUM_FRAMESIZES.name())? {
                break;
            }
            if size.kind != DISCRETE {
                let [width, most_width, _, height, most_height, _] = size.sizes;
                let (least, greatest) = ((width, height), (most_width, most_height));
                all.push(Sizes::Range { least, greatest });
                break; // a range is the only one
            }
            let [width, height, ..] = size.sizes;
            let rates = self.rates(code, (width, height))?;
            all.push(Sizes::One { width, height, rates });
        }
        Ok(all)
    }

    fn rates(&self, code: FourCc, (width, height): (u32, u32)) -> Result<Vec<f64>, CaptureError> {
        let mut rates = Vec::new();
        for index in 0..MAX_RATES {
            let mut interval = FrameInterval {
                index,
                pixel_format: code.0,
                width,
                height,
                ..FrameInterval::new_zeroed()
            };
            let called = ioctl::call(self.fd(), &ENUM_FRAMEINTERVALS, &mut interval);
            if is_at_end(called, ENUM_FRAMEINTERVALS.name())? || interval.kind != DISCRETE {
                break;
            }
            rates.extend(rate(interval.intervals[0]));
        }
        Ok(rates)
    }
}

/// Frames per second with this interval; `None` where it is none.
pub(crate) fn rate(interval: Fraction) -> Option<f64> {
    let Fraction { numerator, denominator } = interval;
    (numerator > 0 && denominator > 0).then(|| f64::from(denominator) / f64::from(numerator))
}

/// Whether a list is at its end. A driver without such a list says so by another error.
fn is_at_end(called: io::Result<()>, call: &'static str) -> Result<bool, CaptureError> {
    match called {
        Ok(()) => Ok(false),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOTTY) => Ok(true),
            _ => Err(CaptureError::of(call, error)),
        },
    }
}
