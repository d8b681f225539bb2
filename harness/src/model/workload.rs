//! What is run: a model, or the part of it that can be, with inputs that are the same for all.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burst_hal::OperandType;
use burst_hal::session::{LayoutOptions, fill_with_zero};
use burst_tflite::{Cut, Imported, Part, TensorInfo};

use crate::error::HarnessError;

/// Largest model file that is read, in bytes: descriptors and offsets are 32-bit.
pub const MAX_MODEL_BYTES: u64 = 2 << 30;

/// Bytes set aside for an output whose shape only an execution shows.
const UNKNOWN_OUTPUT_BYTES: u32 = 64 << 10;

/// A model to measure.
#[derive(Debug)]
pub struct Workload {
    /// The name it goes by.
    pub name: String,
    /// Where it was read from.
    pub file: Option<PathBuf>,
    /// The model, or its part.
    pub imported: Imported,
    /// How long it took to make that of the file.
    pub import_time: Duration,
    /// Where the part begins, when it is one.
    pub cut: Option<Cut>,
    /// Bytes of each input of the model; states begin with real zeros.
    pub inputs: Vec<Vec<u8>>,
}

impl Workload {
    /// Reads a model file.
    ///
    /// # Errors
    /// It cannot be read, or nothing of it can be run.
    pub fn read(path: &Path) -> Result<Workload, HarnessError> {
        let named = |error: &dyn std::fmt::Display| {
            HarnessError::peer(format!("cannot read the model {}: {error}", path.display()))
        };
        let meta = std::fs::metadata(path).map_err(|error| named(&error))?;
        if !meta.is_file() {
            return Err(named(&"it is not a file"));
        }
        if meta.len() > MAX_MODEL_BYTES {
            let excess = format!("it has {} bytes, over {MAX_MODEL_BYTES}", meta.len());
            return Err(named(&excess));
        }
        let bytes = std::fs::read(path).map_err(|error| named(&error))?;
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        let mut workload = Workload::of_bytes(&stem.to_string_lossy(), &bytes)?;
        workload.file = Some(path.to_owned());
        Ok(workload)
    }

    /// A model from the bytes of its file. Where the CPU device's operations cannot run all of it,
    /// the part behind the last operator that they cannot.
    ///
    /// # Errors
    /// The file is damaged, or nothing of it can be run.
    pub fn of_bytes(name: &str, bytes: &[u8]) -> Result<Workload, HarnessError> {
        let wrong = |error: &dyn std::fmt::Display| format!("cannot use the model {name}: {error}");
        let cut = burst_tflite::cut(bytes).map_err(|error| HarnessError::peer(wrong(&error)))?;
        let started = Instant::now();
        let imported = match &cut {
            None => burst_tflite::import(bytes),
            Some(cut) => {
                let names = |names: &'_ [String]| -> Vec<String> { names.to_vec() };
                let (from, to) = (names(&cut.from), names(&cut.to));
                let from: Vec<&str> = from.iter().map(String::as_str).collect();
                let to: Vec<&str> = to.iter().map(String::as_str).collect();
                burst_tflite::import_part(bytes, Part { from: &from, to: &to })
            }
        };
        let imported = imported.map_err(|error| HarnessError::peer(wrong(&error)))?;
        let import_time = started.elapsed();
        let mut inputs = Vec::with_capacity(imported.inputs.len());
        for (index, tensor) in imported.inputs.iter().enumerate() {
            let is_state = imported.states.iter().any(|state| state.input_index == index);
            let mut bytes = pattern(tensor, is_state).ok_or_else(|| {
                let shape =
                    format!("its input {} has the open shape {:?}", tensor.name, tensor.dims);
                HarnessError::peer(wrong(&shape))
            })?;
            if cut.is_some() && tensor.ty == OperandType::TensorFloat32 {
                // Within a model come activations and magnitudes, of which logarithms are taken.
                bytes.as_chunks_mut::<4>().0.iter_mut().for_each(without_sign);
            }
            inputs.push(bytes);
        }
        Ok(Workload { name: name.to_owned(), file: None, imported, import_time, cut, inputs })
    }

    /// Positions of the inputs that are no states.
    pub fn given_inputs(&self) -> impl Iterator<Item = usize> {
        let is_state = |index: &usize| self.imported.states.iter().any(|s| s.input_index == *index);
        (0..self.inputs.len()).filter(move |index| !is_state(index))
    }

    /// How many outputs are no states; they come first.
    #[must_use]
    pub fn given_outputs(&self) -> usize {
        self.imported.outputs.len() - self.imported.states.len()
    }

    /// How its tensors and states are laid out, whichever side allocates the memory.
    #[must_use]
    pub fn layout(&self) -> LayoutOptions {
        LayoutOptions {
            states: self.imported.state_bindings(),
            unknown_output_bytes: Some(UNKNOWN_OUTPUT_BYTES),
            ..LayoutOptions::default()
        }
    }

    /// Bytes that an execution copies in.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.len() as u64).sum()
    }

    /// Bytes of the outputs whose shape is known before an execution.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        let known = |tensor: &TensorInfo| tensor.ty.byte_length(&tensor.dims);
        self.imported.outputs.iter().filter_map(known).sum()
    }

    /// What is missing of the file's graph, for people.
    #[must_use]
    pub fn part(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        let from = cut.from.join(", ");
        Some(match cut.operators_before {
            1 => format!("without its first operator: from {from} on"),
            many => format!("without its first {many} operators: from {from} on"),
        })
    }
}

/// Bytes that look like a smooth picture or a tone with some roughness, in the tensor's type;
/// real zeros for a state. `None` for a shape that is not known.
fn pattern(tensor: &TensorInfo, is_state: bool) -> Option<Vec<u8>> {
    let bytes = usize::try_from(tensor.ty.byte_length(&tensor.dims)?).ok()?;
    if bytes == 0 {
        return None;
    }
    if is_state {
        let mut state = vec![0; bytes];
        fill_with_zero(&mut state, tensor.ty, tensor.zero_point);
        return Some(state);
    }
    let channels = match tensor.dims.as_slice() {
        [_, _, _, channels] => *channels as usize,
        _ => 1,
    };
    let fill = |width: usize, value: &dyn Fn(f32) -> [u8; 4]| {
        (0..bytes / width).flat_map(|i| value(wave(i, channels)).into_iter().take(width)).collect()
    };
    Some(match tensor.ty {
        OperandType::TensorFloat32 => fill(4, &|v| v.to_ne_bytes()),
        OperandType::TensorQuant8Asymm => fill(1, &|v| [unsigned(v), 0, 0, 0]),
        OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => {
            fill(1, &|v| [unsigned(v) ^ 0x80, 0, 0, 0])
        }
        _ => vec![0; bytes], // indexes, flags, halves: zero is legal in each
    })
}

fn without_sign(value: &mut [u8; 4]) {
    *value = f32::from_ne_bytes(*value).abs().to_ne_bytes();
}

/// Between -1 and 1; neighbours are alike, and so are the channels of a pixel.
fn wave(element: usize, channels: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "elements of an input, far below 2^24")]
    let at = |position: usize| position as f32;
    let (pixel, channel) = (at(element / channels.max(1)), at(element % channels.max(1)));
    0.6 * (pixel * 0.013 + channel).sin() + 0.25 * (pixel * 0.31).sin() + 0.1 * (pixel * 1.7).sin()
}

fn unsigned(value: f32) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 255"
    )]
    let byte = (128.0 + 127.0 * value).clamp(0.0, 255.0) as u8;
    byte
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;

    fn tensor(ty: OperandType, dims: &[u32]) -> TensorInfo {
        TensorInfo {
            name: String::new(),
            ty,
            file_type: ElementType::Float32,
            dims: dims.into(),
            scale: 1.0,
            zero_point: -3,
        }
    }

    #[test]
    fn inputs_vary_in_every_type_and_states_do_not() {
        for (ty, width) in [
            (OperandType::TensorFloat32, 4),
            (OperandType::TensorQuant8Asymm, 1),
            (OperandType::TensorQuant8AsymmSigned, 1),
        ] {
            let tensor = tensor(ty, &[1, 8, 8, 3]);
            let bytes = pattern(&tensor, false).unwrap();
            assert_eq!(bytes.len(), 192 * width, "{ty}");
            assert!(bytes.chunks(width).any(|value| value != &bytes[..width]), "{ty}");
            let zero = if width == 1 { 0xFD } else { 0 };
            assert_eq!(pattern(&tensor, true), Some(vec![zero; 192 * width]), "{ty}");
        }
        let indexes = tensor(OperandType::TensorInt32, &[4]);
        assert_eq!(pattern(&indexes, false), Some(vec![0; 16]));
        assert_eq!(pattern(&tensor(OperandType::TensorFloat32, &[0, 3]), false), None);
    }

    #[test]
    fn states_of_16_bits_begin_at_their_zero_point() {
        let mut state = tensor(OperandType::TensorQuant16Asymm, &[3]);
        state.zero_point = 0x1234;
        let zero = 0x1234_u16.to_ne_bytes();
        assert_eq!(pattern(&state, true), Some(zero.repeat(3)));
    }

    #[test]
    fn values_stay_within_one() {
        assert!((0..100_000).all(|i| wave(i, 3).abs() <= 1.0));
        assert_eq!((unsigned(-1.1), unsigned(0.0), unsigned(1.1)), (0, 128, 255));
    }
}
