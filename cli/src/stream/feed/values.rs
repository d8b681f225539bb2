//! A long sequence of numbers, a window of which goes into the model, then the next: samples of sound,
//! log-mel frames made of them, or values of a file.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_tasks::{Sound, SoundFitter, TaskError, Windows};

use super::{Feed, Label};
use crate::out::{self, counted};
use crate::source;

/// Largest file of values that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is fed, and how.
pub(crate) struct Feeding<'a> {
    /// The file.
    pub(crate) source: &'a str,
    /// Samples per second of the models' waveforms; `None`: as the model's file says.
    pub(crate) rate: Option<u32>,
    /// From one window to the next; `None`: one behind the other.
    pub(crate) hop: Option<Duration>,
    /// Whether a damaged file is taken as far as it goes.
    pub(crate) lenient: bool,
}

pub(crate) struct Values {
    name: String,
    windows: Windows,
    /// Where the current window begins.
    at: usize,
    started: bool,
    /// How long the sound is that this is; `None` for values that are none, whose last window has to be full.
    sound: Option<Duration>,
    /// Bytes of a last window that is not full, which have not been told of yet.
    rest: u64,
    fitter: SoundFitter,
}

impl Values {
    /// Sound from a WAV file, in the form that the model takes.
    pub(crate) fn sound(feeding: &Feeding<'_>, fitter: SoundFitter) -> Result<Self> {
        let cannot = || format!("cannot read {}", feeding.source);
        source::check_is_file(Path::new(feeding.source)).with_context(cannot)?;
        let (sound, damage) = Sound::read_as_far_as_it_goes(feeding.source)?;
        match damage {
            Some(error) if feeding.lenient => out::say(format_args!("left out: {error}")),
            Some(error) => return Err(error.into()),
            None => {}
        }
        let duration = Some(sound.duration());
        let windows = fitter
            .windows(sound, feeding.rate, feeding.hop)
            .map_err(|error| match error {
                TaskError::Hop { .. } => anyhow::anyhow!("--hop: {error}"),
                error => error.into(),
            })
            .with_context(|| feeding.source.to_owned())?;
        let name = feeding.source.to_owned();
        Ok(Values { name, windows, at: 0, started: false, sound: duration, rest: 0, fitter })
    }

    /// Values of the model's input as a file of 32-bit floats has them.
    pub(crate) fn file(source: &str, fitter: SoundFitter) -> Result<Self> {
        let window = fitter.window();
        let (values, rest) = read_floats(Path::new(source))?;
        if values.len() < window && rest > 0 {
            let bytes = counted((values.len() * size_of::<f32>() + rest) as u64, "byte");
            bail!("{source}: {bytes}, which are not 32-bit floats");
        }
        if values.len() < window || window == 0 {
            bail!(
                "{source}: {}; the model takes {window} at a time, {:?}",
                counted(values.len() as u64, "value"),
                fitter.input().dims
            );
        }
        let rest = (values.len() % window * size_of::<f32>() + rest) as u64;
        let windows = Windows { values, window, hop: window, per_second: 1.0 };
        let name = source.to_owned();
        Ok(Values { name, windows, at: 0, started: false, sound: None, rest, fitter })
    }
}

/// The floats of a file, and how many bytes behind them are none.
fn read_floats(path: &Path) -> Result<(Vec<f32>, usize)> {
    let what = || format!("cannot read the values {}", path.display());
    source::check_is_file(path).with_context(what)?;
    let length = std::fs::metadata(path).with_context(what)?.len();
    if length > MAX_FILE_BYTES {
        bail!("{}: {length} bytes, at most {MAX_FILE_BYTES} are read", path.display());
    }
    let bytes = std::fs::read(path).with_context(what)?;
    let (chunks, rest) = bytes.as_chunks::<4>();
    Ok((chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect(), rest.len()))
}

impl Feed for Values {
    fn advance(&mut self) -> Result<bool> {
        let Windows { values, window, hop, .. } = &self.windows;
        let next = if self.started { self.at + hop } else { 0 };
        // The end of sound is filled up with silence.
        let needed = if self.sound.is_some() { 1 } else { *window };
        if values.len() < next.saturating_add(needed) {
            return match std::mem::take(&mut self.rest) {
                0 => Ok(false),
                rest => {
                    let (name, rest, number) =
                        (&self.name, counted(rest, "byte"), next / window + 1);
                    bail!("{name} is cut off: it ends {rest} into frame {number}")
                }
            };
        }
        (self.at, self.started) = (next, true);
        Ok(true)
    }

    fn write(&mut self, input: &mut [u8]) -> Result<()> {
        let Windows { values, window, .. } = &self.windows;
        let there = &values[self.at..values.len().min(self.at + window)];
        Ok(self.fitter.write(there, input)?)
    }

    fn label(&self) -> Label<'_> {
        let at = self.sound.map(|_| self.windows.at(self.at));
        Label { name: &self.name, truth: None, at }
    }

    fn span(&self) -> Option<Duration> {
        self.sound.map(|_| self.windows.span())
    }

    fn sound(&self) -> Option<Duration> {
        self.sound
    }
}

#[cfg(test)]
mod tests {
    use burst_driver::CpuDevice;
    use burst_hal::{Model, OperandType};
    use burst_tasks::TaskModel;
    use burst_tflite::{ElementType, Imported, TensorInfo};

    use super::*;

    /// What fits values into `[1, 3]` floats.
    fn fitter() -> SoundFitter {
        let (ty, file_type) = (OperandType::TensorFloat32, ElementType::Float32);
        let (name, dims) = ("in".into(), [1, 3][..].into());
        let input = TensorInfo { name, ty, file_type, dims, scale: 0.0, zero_point: 0 };
        let imported = Imported {
            model: Model::default(),
            inputs: vec![input],
            outputs: Vec::new(),
            states: Vec::new(),
            verdicts: Vec::new(),
        };
        let model = TaskModel::of("m", imported);
        SoundFitter::new(&model, &CpuDevice::default()).unwrap()
    }

    #[test]
    fn a_file_goes_in_window_by_window_and_its_rest_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v.f32");
        let bytes: Vec<u8> = (0..7_u8).flat_map(|v| f32::from(v).to_le_bytes()).collect();
        std::fs::write(&file, &bytes).unwrap();
        let path = file.to_str().unwrap();
        let mut values = Values::file(path, fitter()).unwrap();
        let mut seen = Vec::new();
        let mut into = [0; 12];
        let ended = loop {
            match values.advance() {
                Ok(true) => {}
                ended => break ended,
            }
            values.write(&mut into).unwrap();
            let floats = into.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b));
            seen.push(floats.collect::<Vec<f32>>());
        };
        let told = ended.unwrap_err().to_string();
        assert!(told.ends_with("v.f32 is cut off: it ends 4 bytes into frame 3"), "{told}");
        assert!(!values.advance().unwrap(), "then it is over");
        let want: [Vec<f32>; 2] = [vec![0.0, 1.0, 2.0], vec![3.0, 4.0, 5.0]];
        assert_eq!(seen, want);
        std::fs::write(&file, &bytes[..6]).unwrap();
        assert!(Values::file(path, fitter()).is_err(), "not one window either");
        std::fs::write(&file, &bytes[..8]).unwrap();
        assert!(Values::file(path, fitter()).is_err(), "not one window");
    }
}
