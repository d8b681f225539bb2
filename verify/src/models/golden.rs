//! One golden: an input, and what the reference kernels made of it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::element::Element;
use super::files::{read, read_json};
use super::input::{Input, InputSpec};
use crate::golden_error::GoldenError;

/// Most axes that an output can have.
const MAX_RANK: usize = 8;

/// An input of a model and the reference's outputs for it.
#[derive(Debug)]
pub struct Golden {
    /// Its name: that of its file without the ending.
    pub name: String,
    pub(crate) input: Input,
    /// One per output of the model.
    pub(crate) outputs: Vec<Expected>,
    /// Values inside the model, for those of which a device can run only a part.
    pub(crate) boundary: Vec<BoundaryTensor>,
    /// The best class per pixel of the first output.
    pub(crate) classes: Option<ClassMap>,
}

/// What one output should be.
#[derive(Debug)]
pub(crate) struct Expected {
    selection: Selection,
    /// Shape of the output in one execution.
    shape: Vec<usize>,
    element: Element,
    bytes: Vec<u8>,
    executions: usize,
}

/// A tensor at the edge of a part.
#[derive(Debug, Clone)]
pub(crate) struct BoundaryTensor {
    pub(crate) name: String,
    pub(crate) element: Element,
    pub(crate) bytes: Vec<u8>,
}

/// A class per position of an output.
#[derive(Debug)]
pub(crate) struct ClassMap {
    pub(crate) classes: Vec<u8>,
    /// Smallest share of positions that must agree.
    pub(crate) agreement: f64,
}

#[derive(Deserialize)]
struct File {
    input: InputSpec,
    bin: PathBuf,
    outputs: Vec<OutputSpec>,
    boundary: Option<BoundarySpec>,
    argmax: Option<ArgmaxSpec>,
}

#[derive(Deserialize)]
struct OutputSpec {
    dtype: Element,
    shape: Vec<usize>,
    stored: Option<String>,
    stored_dtype: Option<Element>,
    stored_shape: Option<Vec<usize>>,
    offset: usize,
    bytes: usize,
}

#[derive(Deserialize)]
struct BoundarySpec {
    bin: PathBuf,
    tensors: Vec<TensorSpec>,
}

#[derive(Deserialize)]
struct TensorSpec {
    name: String,
    dtype: Element,
    offset: usize,
    bytes: usize,
}

#[derive(Deserialize)]
struct ArgmaxSpec {
    bin: PathBuf,
    xnnpack_pixel_agreement: f64,
}

impl Golden {
    /// Reads a golden of a model that takes `input_bytes`; all of its files, so that what is wrong
    /// with any of them shows before anything runs.
    pub(crate) fn open(
        root: &Path,
        relative: &Path,
        input_bytes: usize,
    ) -> Result<Self, GoldenError> {
        let path = root.join(relative);
        let file: File = read_json(&path)?;
        let input = Input::open(root, &path, &file.input, input_bytes)?;
        let values = Values::read(path.with_file_name(&file.bin))?;
        let outputs = file.outputs.iter().enumerate();
        let outputs = outputs
            .map(|(index, spec)| Expected::read(&path, &values, index, spec, input.executions()))
            .collect::<Result<_, _>>()?;
        let boundary = match &file.boundary {
            None => Vec::new(),
            Some(spec) => read_boundary(Values::read(path.with_file_name(&spec.bin))?, spec)?,
        };
        let classes = file.argmax.map(|spec| -> Result<ClassMap, GoldenError> {
            let classes = read(&path.with_file_name(&spec.bin))?;
            Ok(ClassMap { classes, agreement: spec.xnnpack_pixel_agreement })
        });
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Golden { name, input, outputs, boundary, classes: classes.transpose()? })
    }

    /// How many executions it takes.
    #[must_use]
    pub fn executions(&self) -> usize {
        self.input.executions()
    }

    /// Keeps only the first executions, for a quick look.
    pub fn truncate(&mut self, executions: usize) {
        self.input.truncate(executions);
    }
}

/// A file of tensors one behind the other.
struct Values {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Values {
    fn read(path: PathBuf) -> Result<Self, GoldenError> {
        Ok(Values { bytes: read(&path)?, path })
    }

    fn range(
        &self,
        offset: usize,
        length: usize,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, GoldenError> {
        let end = offset.saturating_add(length);
        let found = self.bytes.get(offset..end).map(<[u8]>::to_vec);
        found.ok_or_else(|| GoldenError::Short {
            path: self.path.clone(),
            found: self.bytes.len(),
            what: what(),
            needed: end,
        })
    }
}

fn read_boundary(values: Values, spec: &BoundarySpec) -> Result<Vec<BoundaryTensor>, GoldenError> {
    let tensor = |tensor: &TensorSpec| {
        let what = || format!("tensor {}", tensor.name);
        Ok(BoundaryTensor {
            name: tensor.name.clone(),
            element: tensor.dtype,
            bytes: values.range(tensor.offset, tensor.bytes, what)?,
        })
    };
    spec.tensors.iter().map(tensor).collect()
}

impl Expected {
    fn read(
        golden: &Path,
        values: &Values,
        index: usize,
        spec: &OutputSpec,
        executions: usize,
    ) -> Result<Self, GoldenError> {
        let unknown = |found: &str| GoldenError::Unknown {
            path: golden.to_owned(),
            what: "selection of an output",
            found: found.to_owned(),
        };
        let selection = match spec.stored.as_deref() {
            None => Selection::default(),
            Some(text) => Selection::parse(text).ok_or_else(|| unknown(text))?,
        };
        let mismatch = |what, found, wanted| {
            let path = golden.to_owned();
            Err(GoldenError::Mismatch { path, what, found, wanted })
        };
        let element = spec.stored_dtype.unwrap_or(spec.dtype);
        let stored = spec.stored_shape.as_ref().unwrap_or(&spec.shape);
        let needed = count(stored).saturating_mul(element.bytes());
        if needed != spec.bytes {
            return mismatch("bytes of an output", spec.bytes, needed);
        }
        let shape = per_execution(&spec.shape, executions);
        let Some(shape) = shape.filter(|shape| shape.len() <= MAX_RANK) else {
            let first = spec.shape.first().copied().unwrap_or(0);
            return mismatch("first size of an output", first, executions);
        };
        let found = selection.count(&shape).saturating_mul(executions);
        if found != count(stored) {
            return mismatch("stored values of an output", count(stored), found);
        }
        let what = || format!("output {index}");
        let bytes = values.range(spec.offset, spec.bytes, what)?;
        Ok(Expected { selection, shape, element, bytes, executions })
    }

    /// The stored values for one execution.
    pub(crate) fn of(&self, execution: usize) -> Vec<f64> {
        let each = self.bytes.len() / self.executions.max(1);
        let start = execution.saturating_mul(each);
        let bytes = self.bytes.get(start..start.saturating_add(each)).unwrap_or_default();
        self.element.decode(bytes)
    }

    /// Those of an output's values that are stored; `None` for an output of another size.
    pub(crate) fn select(&self, values: Vec<f64>) -> Option<Vec<f64>> {
        (values.len() == count(&self.shape)).then(|| self.selection.pick(&self.shape, values))
    }

    /// Values of an output in one execution.
    pub(crate) fn count(&self) -> usize {
        count(&self.shape)
    }
}

fn count(shape: &[usize]) -> usize {
    shape.iter().fold(1, |count: usize, size| count.saturating_mul(*size))
}

/// The shape in one execution: goldens of several have them along a first axis.
fn per_execution(shape: &[usize], executions: usize) -> Option<Vec<usize>> {
    match shape {
        shape if executions == 1 => Some(shape.to_vec()),
        [first, rest @ ..] if *first == executions => Some(rest.to_vec()),
        _ => None,
    }
}

/// Which values of an output a golden keeps: along each axis one in so many. Without steps: all.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    steps: Vec<usize>,
}

impl Selection {
    /// From words such as `every 8th row and column of the output: out[:, ::8, ::8, :]`.
    fn parse(text: &str) -> Option<Self> {
        if text == "class index narrowed to u8" {
            return Some(Selection::default());
        }
        let (_, rest) = text.split_once("out[")?;
        let (inner, rest) = rest.split_once(']')?;
        let step = |axis: &str| match axis.trim() {
            ":" => Some(1),
            axis => axis.strip_prefix("::")?.parse().ok().filter(|step| *step > 0),
        };
        let steps: Vec<usize> = inner.split(',').map(step).collect::<Option<_>>()?;
        (rest.is_empty() && steps.len() <= MAX_RANK).then_some(Selection { steps })
    }

    fn step(&self, axis: usize) -> usize {
        self.steps.get(axis).copied().unwrap_or(1)
    }

    /// How many values of such an output are kept.
    fn count(&self, shape: &[usize]) -> usize {
        let kept = shape.iter().enumerate().map(|(axis, size)| size.div_ceil(self.step(axis)));
        kept.fold(1, usize::saturating_mul)
    }

    fn pick(&self, shape: &[usize], values: Vec<f64>) -> Vec<f64> {
        if self.steps.is_empty() {
            return values;
        }
        let kept = values.iter().enumerate().filter(|(index, _)| self.keeps(shape, *index));
        kept.map(|(_, value)| *value).collect()
    }

    fn keeps(&self, shape: &[usize], index: usize) -> bool {
        let mut rest = index;
        shape.iter().enumerate().rev().all(|(axis, size)| {
            let at = rest % size.max(&1);
            rest /= size.max(&1);
            at.is_multiple_of(self.step(axis))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_read_from_their_words() {
        let found = Selection::parse("every 8th row and column: out[:, ::8, ::4, :]").unwrap();
        assert_eq!(found.steps, [1, 8, 4, 1]);
        assert_eq!(Selection::parse("class index narrowed to u8"), Some(Selection::default()));
        for wrong in ["", "out[::0]", "out[:2]", "out[:", "out[:] and more", "the middle"] {
            assert_eq!(Selection::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_step_th_value_is_kept() {
        let selection = Selection { steps: vec![2, 3] };
        let values = (0..20).map(f64::from).collect();
        // Rows 0 and 2, columns 0 and 3, of four rows with five columns.
        assert_eq!(selection.pick(&[4, 5], values), [0.0, 3.0, 10.0, 13.0]);
        assert_eq!(selection.count(&[4, 5]), 4);
        assert_eq!(selection.count(&[1, 1]), 1);
    }

    #[test]
    fn several_executions_lie_along_a_first_axis() {
        assert_eq!(per_execution(&[1, 10], 1), Some(vec![1, 10]));
        assert_eq!(per_execution(&[60, 1, 10], 60), Some(vec![1, 10]));
        assert_eq!(per_execution(&[59, 1, 10], 60), None);
        assert_eq!(per_execution(&[], 2), None);
    }
}
