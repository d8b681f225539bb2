//! Copies of a buffer's value, and into it.

use std::sync::Arc;

use burst_hal::{Buffer, Device, ErrorStatus, OutputSpec};

use super::subject::{
    BYTES, COUNT, Checked, DIMENSIONS, buffer, bytes, expect_value, floats, pool, prepare, relu,
    role, wanted,
};
use crate::functional::{Verdict, expect_failure, refused};

const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;
const GENERAL: ErrorStatus = ErrorStatus::GeneralFailure;
const VALUE: [f32; COUNT] = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0];
/// Lengths that are wrong for a value of [`BYTES`].
const WRONG: [usize; 4] = [BYTES / 2, BYTES - 1, BYTES + 1, BYTES * 2];

/// Goes on with a buffer of known size.
macro_rules! fixed {
    ($device:expr) => {{
        let model = floats($device)?;
        buffer!($device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]))
    }};
}

/// Goes on with a buffer whose size only its value says.
macro_rules! dynamic {
    ($device:expr) => {{
        let model = prepare($device, &relu(&OutputSpec::f32(&[2, 0]))?)?;
        buffer!($device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]))
    }};
}

fn fill(buffer: &Arc<dyn Buffer>) -> Result<(), String> {
    buffer.copy_from(&pool(&VALUE), &DIMENSIONS).map_err(refused("a legal copy"))
}

fn expect_no_value(what: &str, buffer: &Arc<dyn Buffer>) -> Result<(), String> {
    expect_failure(what, GENERAL, buffer.copy_to(&bytes(BYTES)))
}

fn from_wrong_sizes(buffer: &Arc<dyn Buffer>) -> Checked {
    for size in WRONG {
        fill(buffer)?;
        let what = format!("a value of {size} bytes");
        expect_failure(&what, INVALID, buffer.copy_from(&bytes(size), &DIMENSIONS))?;
        expect_no_value(&what, buffer)?;
    }
    fill(buffer)?;
    expect_value("after all", buffer, &VALUE)?;
    Ok(Verdict::Passed)
}

fn to_wrong_sizes(buffer: &Arc<dyn Buffer>) -> Checked {
    fill(buffer)?;
    for size in WRONG {
        let what = format!("a pool of {size} bytes");
        expect_failure(&what, INVALID, buffer.copy_to(&bytes(size)))?;
        expect_value(&what, buffer, &VALUE)?;
    }
    Ok(Verdict::Passed)
}

fn from_wrong_dimensions(buffer: &Arc<dyn Buffer>, wrong: &[&[u32]]) -> Checked {
    for dimensions in wrong {
        fill(buffer)?;
        let what = format!("a value of {dimensions:?}");
        expect_failure(&what, INVALID, buffer.copy_from(&pool(&VALUE), dimensions))?;
        expect_no_value(&what, buffer)?;
    }
    fill(buffer)?;
    expect_value("after all", buffer, &VALUE)?;
    Ok(Verdict::Passed)
}

pub(super) fn from_invalid_size(device: &dyn Device) -> Checked {
    from_wrong_sizes(&fixed!(device))
}

pub(super) fn from_invalid_size_dynamic(device: &dyn Device) -> Checked {
    from_wrong_sizes(&dynamic!(device))
}

pub(super) fn to_invalid_size(device: &dyn Device) -> Checked {
    to_wrong_sizes(&fixed!(device))
}

pub(super) fn to_invalid_size_dynamic(device: &dyn Device) -> Checked {
    to_wrong_sizes(&dynamic!(device))
}

pub(super) fn from_invalid_dimensions(device: &dyn Device) -> Checked {
    let buffer = fixed!(device);
    buffer.copy_from(&pool(&VALUE), &[]).map_err(refused("dimensions left out"))?;
    expect_value("dimensions left out", &buffer, &VALUE)?;
    let long = [1; 100];
    from_wrong_dimensions(&buffer, &[&[2], &[2, 4, 1], &[4, 2], &[1, 8], &long])
}

pub(super) fn from_invalid_dimensions_dynamic(device: &dyn Device) -> Checked {
    let buffer = dynamic!(device);
    from_wrong_dimensions(&buffer, &[&[], &[0, 4], &[2, 0], &[2, 4, 1], &[4, 2], &[2, 5]])
}

pub(super) fn to_uninitialized(device: &dyn Device) -> Checked {
    expect_no_value("a new buffer", &fixed!(device))?;
    Ok(Verdict::Passed)
}
