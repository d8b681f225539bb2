//! Finds the spectrum in an audio model: RFFT2D over rows of samples, then COMPLEX_ABS. NNAPI has
//! neither, so the client computes them between the model's two parts.

use crate::ElementType;
use crate::error::ImportError;
use crate::file::{File, Operator};

/// Longest transform that is read: half a minute of sound at 16 kHz.
const MAX_FFT_LENGTH: usize = 1 << 19;

/// A magnitude spectrum that a file computes with RFFT2D and COMPLEX_ABS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spectrum {
    /// Name of the float tensor that goes in: `rows` times `row_length` samples.
    pub samples: String,
    /// Name of the float tensor that comes out: `rows` times `fft_length / 2 + 1` magnitudes.
    pub magnitudes: String,
    /// How many spectra at once.
    pub rows: usize,
    /// Samples of one row; those beyond `fft_length` are left out, missing ones are zeros.
    pub row_length: usize,
    /// Length of the transform, a power of two.
    pub fft_length: usize,
}

/// The first spectrum of the file.
pub(crate) fn find(bytes: &[u8]) -> Result<Option<Spectrum>, ImportError> {
    let file = File::open(bytes)?;
    let found = file.operators.iter().find(|operator| operator.name() == "RFFT2D");
    Ok(found.and_then(|rfft| read(&file, rfft)))
}

fn read(file: &File<'_>, rfft: &Operator<'_>) -> Option<Spectrum> {
    let samples = file.tensors.get(rfft.inputs.first().copied().flatten()?)?;
    let length = file.tensors.get(rfft.inputs.get(1).copied().flatten()?)?;
    let fft_length = one_dimensional(length.data.filter(|_| length.ty == ElementType::Int32)?)?;
    let shape: Vec<usize> = samples.shape().map(usize::try_from).collect::<Result<_, _>>().ok()?;
    let [rows @ .., 1, row_length] = shape.as_slice() else { return None };
    let rows = rows.iter().try_fold(1, |all: usize, size| all.checked_mul(*size))?;
    let magnitudes = magnitudes(file, rfft)?;
    let expected = rows.checked_mul(fft_length / 2 + 1)?;
    let given = file.tensors.get(magnitudes)?;
    let elements = given
        .shape()
        .try_fold(1, |all: usize, size| all.checked_mul(usize::try_from(size).ok()?))?;
    let both = samples.ty == ElementType::Float32 && given.ty == ElementType::Float32;
    (both && elements == expected && *row_length > 0).then(|| Spectrum {
        samples: samples.name().to_owned(),
        magnitudes: given.name().to_owned(),
        rows,
        row_length: *row_length,
        fft_length,
    })
}

/// The length of a transform that is one-dimensional: one row high, a power of two wide.
fn one_dimensional(lengths: &[u8]) -> Option<usize> {
    let (&[height, width], []) = lengths.as_chunks::<4>() else { return None };
    let width = usize::try_from(i32::from_le_bytes(width)).ok()?;
    let usable = width.is_power_of_two() && (2..=MAX_FFT_LENGTH).contains(&width);
    (i32::from_le_bytes(height) == 1 && usable).then_some(width)
}

/// The tensor that COMPLEX_ABS makes of what this operator made, with nothing but RESHAPE between.
fn magnitudes(file: &File<'_>, rfft: &Operator<'_>) -> Option<usize> {
    let mut complex = *rfft.outputs.first()?;
    for operator in file.operators.iter().skip(rfft.index + 1) {
        if operator.inputs.first().copied().flatten() != Some(complex) {
            continue;
        }
        match operator.name().as_str() {
            "COMPLEX_ABS" => return operator.outputs.first().copied(),
            "RESHAPE" => complex = *operator.outputs.first()?,
            _ => return None,
        }
    }
    None
}
