//! Golden outputs of real models: which bytes go in, what comes out, how close it must be.
//!
//! The format is described in `models/README.md` of the shared data.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A model of the manifest.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its file, from the shared folder on.
    pub file: String,
    /// Its goldens, from the shared folder on.
    pub goldens: Vec<String>,
    /// How close outputs must be.
    pub yardstick: Yardstick,
}

/// See [`Entry::yardstick`].
#[derive(Debug, Clone, Deserialize)]
pub struct Yardstick {
    /// The tolerance that holds for this model.
    pub tolerance: Tolerance,
}

/// How close outputs must be: floats within `abs + rel * |want|`, everything else equal.
#[derive(Debug, Clone, Deserialize)]
pub struct Tolerance {
    /// `float`, `quantised`, ...
    pub kind: String,
    /// Absolute part, for floats.
    #[serde(default)]
    pub abs: f64,
    /// Relative part, for floats.
    #[serde(default)]
    pub rel: f64,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    models: Vec<Entry>,
}

/// One golden: an input and what the reference made of it.
#[derive(Debug, Deserialize)]
struct File {
    input: Input,
    bin: String,
    outputs: Vec<Output>,
}

#[derive(Debug, Deserialize)]
struct Input {
    file: String,
    transform: String,
    size: Option<usize>,
    frames: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Output {
    dtype: String,
    offset: usize,
    bytes: usize,
}

#[derive(Debug, Deserialize)]
struct Pan {
    file: String,
    width: usize,
    crops: std::collections::HashMap<String, Vec<[usize; 2]>>,
}

/// One execution: the bytes of the input, and of the first output.
#[derive(Debug)]
pub struct Case {
    /// Golden and frame.
    pub name: String,
    /// The input tensor.
    pub input: Vec<u8>,
    /// The output tensor of the reference.
    pub want: Vec<u8>,
    /// Element type of the output.
    pub dtype: String,
}

/// The models of the manifest in `shared`.
#[must_use]
pub fn manifest(shared: &Path) -> Vec<Entry> {
    read::<Manifest>(&shared.join("models/MANIFEST.json")).models
}

/// All executions of one golden; a camera pan has many.
#[must_use]
pub fn cases(shared: &Path, golden: &str) -> Vec<Case> {
    let path = shared.join(golden);
    let file: File = read(&path);
    let bin: PathBuf = path.parent().expect("a golden lies in a folder").join(&file.bin);
    let want = fs::read(&bin).unwrap_or_else(|error| panic!("{}: {error}", bin.display()));
    let output = &file.outputs[0];
    let frames = frames(shared, &file.input);
    let per_frame = output.bytes / frames.len();
    frames
        .into_iter()
        .enumerate()
        .map(|(index, rgb)| {
            let at = output.offset + index * per_frame;
            Case {
                name: format!("{golden} frame {index}"),
                input: transform(&file.input.transform, &rgb),
                want: want[at..at + per_frame].to_vec(),
                dtype: output.dtype.clone(),
            }
        })
        .collect()
}

fn frames(shared: &Path, input: &Input) -> Vec<Vec<u8>> {
    let path = shared.join(&input.file);
    let (Some(size), Some(count)) = (input.size, input.frames) else {
        return vec![fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))];
    };
    let pan: Pan = read(&path);
    let picture = fs::read(shared.join(&pan.file)).expect("the panorama is there");
    let crops = &pan.crops[&size.to_string()];
    assert_eq!(crops.len(), count, "one crop per frame");
    let crop = |[x, y]: &[usize; 2]| {
        (*y..y + size)
            .flat_map(|row| {
                let start = (row * pan.width + x) * 3;
                picture[start..start + size * 3].iter().copied()
            })
            .collect()
    };
    crops.iter().map(crop).collect()
}

fn transform(kind: &str, rgb: &[u8]) -> Vec<u8> {
    match kind {
        "none (u8 as is)" => rgb.to_vec(),
        "f32 = (u8 - 127.5) / 127.5" => {
            rgb.iter().flat_map(|b| ((f32::from(*b) - 127.5) / 127.5).to_ne_bytes()).collect()
        }
        other => panic!("unknown transform {other}"),
    }
}

/// How far an output is from the reference.
///
/// # Errors
/// Index, got, want and the largest difference, when a value is farther than it may be.
pub fn judge(case: &Case, got: &[u8], tolerance: &Tolerance) -> Result<f64, String> {
    if got.len() != case.want.len() {
        return Err(format!("{} bytes instead of {}", got.len(), case.want.len()));
    }
    if case.dtype != "float32" {
        let differing = got.iter().zip(&case.want).filter(|(g, w)| g != w).count();
        return match got.iter().zip(&case.want).position(|(g, w)| g != w) {
            None => Ok(0.0),
            Some(at) => Err(format!(
                "{differing} of {} values differ, first at {at}: got {}, want {}",
                got.len(),
                got[at],
                case.want[at]
            )),
        };
    }
    let mut largest = 0f64;
    for (index, (got, want)) in floats(got).zip(floats(&case.want)).enumerate() {
        let difference = (got - want).abs();
        if difference.is_nan() || difference > tolerance.abs + tolerance.rel * want.abs() {
            return Err(format!("value {index}: got {got}, want {want}"));
        }
        largest = largest.max(difference);
    }
    Ok(largest)
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]).into())
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> T {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
