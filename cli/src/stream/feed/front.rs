//! The part of an audio model before the driver's: its own operators up to the spectrum, on the
//! CPU device of this process, and the spectrum itself.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_driver::Variant;
use burst_hal::{Caller, ErrorStatus, OperandType, PrepareOptions};
use burst_sound::Magnitudes;
use burst_tflite::{Spectrum, TensorInfo};

use crate::model_file;
use crate::stream::path::{InProcess, Path};
use crate::threads::Threads;

/// Only turns a hang into an error: the part computes for less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Front {
    path: InProcess,
    spectrum: Spectrum,
    magnitudes: Magnitudes,
    row: Vec<f32>,
    lines: Vec<f32>,
}

impl Front {
    /// Prepares the part; `input` is the driver's first input, which it computes.
    pub(super) fn new(front: model_file::Front, input: &TensorInfo) -> Result<Self> {
        let model_file::Front { imported, spectrum } = front;
        if imported.inputs.len() != 1 {
            bail!("the part before the spectrum has {} inputs, not one", imported.inputs.len());
        }
        let magnitudes = Magnitudes::new(spectrum.fft_length)?;
        let lines = spectrum.rows.checked_mul(magnitudes.count());
        let elements = elements(&input.dims);
        if input.ty != OperandType::TensorFloat32 || lines != Some(elements) {
            bail!("the driver's part begins with {:?} of {}", input.dims, input.ty);
        }
        let row = vec![0.0; spectrum.row_length];
        let lines = vec![0.0; magnitudes.count()];
        let device = Threads { count: 1 }.device(Variant::CPU.name)?;
        let (prepare, caller) = (PrepareOptions::default(), Caller::default());
        Ok(Front {
            path: InProcess::on(&device, &imported, prepare, caller)?,
            spectrum,
            magnitudes,
            row,
            lines,
        })
    }

    /// From samples to the magnitudes that the driver's part takes.
    pub(super) fn write(&mut self, samples: &[f32], input: &mut [u8]) -> Result<()> {
        put_floats(samples, self.path.input());
        let (status, _) = self.path.execute(PATIENCE)?;
        if status != ErrorStatus::None {
            bail!("the part before the spectrum failed: {status}");
        }
        let framed = self.path.output(0)?;
        let rows = framed.chunks_exact(self.spectrum.row_length * 4);
        let out = input.chunks_exact_mut(self.lines.len() * 4);
        if rows.len() != out.len() {
            bail!("{} rows of samples for {} spectra", rows.len(), out.len());
        }
        for (row, out) in rows.zip(out) {
            take_floats(row, &mut self.row);
            self.magnitudes.of(&self.row, &mut self.lines);
            put_floats(&self.lines, out);
        }
        Ok(())
    }
}

/// How many elements a shape has.
pub(super) fn elements(dims: &[u32]) -> usize {
    dims.iter().fold(1, |all: usize, size| all.saturating_mul(*size as usize))
}

pub(super) fn put_floats(values: &[f32], out: &mut [u8]) {
    for (out, value) in out.chunks_exact_mut(4).zip(values) {
        out.copy_from_slice(&value.to_ne_bytes());
    }
}

fn take_floats(bytes: &[u8], out: &mut [f32]) {
    for (out, b) in out.iter_mut().zip(bytes.chunks_exact(4)) {
        *out = f32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    }
}

/// The input of the part, which is the model's own.
pub(super) fn own_input(front: &model_file::Front) -> Result<&TensorInfo> {
    front.imported.inputs.first().context("the model has no input")
}
