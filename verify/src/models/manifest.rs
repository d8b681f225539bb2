//! The manifest of a folder of models: what they take and give, and how close is close enough.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::element::Element;
use super::files::read_json;
use super::golden::Golden;
use crate::golden_error::GoldenError;

/// A folder with models, inputs and the outputs of reference kernels.
#[derive(Debug)]
pub struct Folder {
    /// The models, in the manifest's order.
    pub models: Vec<ModelEntry>,
}

/// A model of the manifest.
#[derive(Debug)]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// How close its outputs must be.
    pub tolerance: Tolerance,
    /// Whether its values can be equal to the reference; where not, fair is enough.
    pub strict_reachable: bool,
    /// Its goldens.
    pub goldens: Vec<Golden>,
}

impl Folder {
    /// Reads the manifest and every golden in it.
    ///
    /// # Errors
    /// There is no manifest, or a file that it names is missing, cut short or not understood.
    pub fn open(root: &Path) -> Result<Self, GoldenError> {
        let path = root.join("models/MANIFEST.json");
        if !path.is_file() {
            return Err(GoldenError::NoManifest { path: root.to_owned() });
        }
        let manifest: Manifest<Entry> = read_json(&path)?;
        let models = manifest.models.into_iter().map(|model| model.read(root, &path));
        Ok(Folder { models: models.collect::<Result<_, _>>()? })
    }

    /// Keeps only the models with these names, in the manifest's order.
    ///
    /// # Errors
    /// [`GoldenError::NoSuchModel`] for a name that the manifest does not have.
    pub fn keep(&mut self, names: &[impl AsRef<str>], root: &Path) -> Result<(), GoldenError> {
        for name in names.iter().map(AsRef::as_ref) {
            if !self.models.iter().any(|model| model.name == name) {
                let path = root.join("models/MANIFEST.json");
                return Err(GoldenError::NoSuchModel { path, name: name.to_owned() });
            }
        }
        self.models.retain(|model| names.iter().any(|name| name.as_ref() == model.name));
        Ok(())
    }

    /// How many goldens there are.
    #[must_use]
    pub fn golden_count(&self) -> usize {
        self.models.iter().map(|model| model.goldens.len()).sum()
    }
}

/// What a manifest says of each model by name; it need not say more.
///
/// # Errors
/// The file cannot be read, or is not understood.
pub fn tolerances(manifest: &Path) -> Result<BTreeMap<String, Tolerance>, GoldenError> {
    let manifest: Manifest<Judged> = read_json(manifest)?;
    Ok(manifest.models.into_iter().map(|model| (model.name, model.yardstick.tolerance)).collect())
}

#[derive(Deserialize)]
struct Manifest<Model> {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Judged {
    name: String,
    yardstick: Yardstick,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    file: PathBuf,
    inputs: Vec<TensorSpec>,
    goldens: Vec<PathBuf>,
    yardstick: Yardstick,
    strict_reachable: bool,
}

impl Entry {
    fn read(self, root: &Path, manifest: &Path) -> Result<ModelEntry, GoldenError> {
        let [input] = self.inputs.as_slice() else {
            return Err(GoldenError::Mismatch {
                path: manifest.to_owned(),
                what: "inputs of a model with goldens",
                found: self.inputs.len(),
                wanted: 1,
            });
        };
        let bytes = input.bytes();
        let goldens = self.goldens.iter().map(|golden| Golden::open(root, golden, bytes));
        Ok(ModelEntry {
            file: root.join(&self.file),
            tolerance: self.yardstick.tolerance,
            strict_reachable: self.strict_reachable,
            goldens: goldens.collect::<Result<_, _>>()?,
            name: self.name,
        })
    }
}

#[derive(Deserialize)]
struct Yardstick {
    tolerance: Tolerance,
}

#[derive(Deserialize)]
struct TensorSpec {
    dtype: Element,
    shape: Vec<usize>,
}

impl TensorSpec {
    fn bytes(&self) -> usize {
        let count = self.shape.iter().fold(1usize, |count, size| count.saturating_mul(*size));
        count.saturating_mul(self.dtype.bytes())
    }
}

/// How close outputs must be to the reference.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind")]
pub enum Tolerance {
    /// Strict: every value within `abs + rel * |reference|`.
    #[serde(rename = "float")]
    Float {
        /// Absolute part.
        abs: f64,
        /// Relative part.
        rel: f64,
    },
    /// Strict: every value equal.
    #[serde(rename = "quantised")]
    Quantized {
        /// What is fair.
        fair: Fair,
    },
    /// Classes per pixel. Strict: every value equal.
    #[serde(rename = "class map")]
    ClassMap {
        /// What is fair.
        fair: FairClasses,
    },
    /// Boxes, classes, scores, count. Strict: every value equal, boxes within 1e-5. Fair: every
    /// reference detection with a score of at least 0.45 is found again: same class, overlap (IoU)
    /// at least 0.8, score within 0.1.
    #[serde(rename = "detections")]
    Detections,
}

/// As close to the reference as other fast kernels are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Fair {
    /// Largest difference of a value. The best class stays the best where the reference has it ahead
    /// by more than twice this.
    pub max_abs: f64,
    /// Smallest share of values that are equal.
    pub min_equal_fraction: f64,
}

/// As [`Fair`], for numbers without a distance.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct FairClasses {
    /// Smallest share of values that are equal.
    pub min_equal_fraction: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_read_by_kind() {
        let read = |text| serde_json::from_str::<Tolerance>(text);
        let float = read(r#"{"kind": "float", "abs": 0.5, "rel": 0.25}"#).unwrap();
        assert_eq!(float, Tolerance::Float { abs: 0.5, rel: 0.25 });
        let map = r#"{"kind": "class map", "fair": {"min_equal_fraction": 0.5}, "rule": "-"}"#;
        let fair = FairClasses { min_equal_fraction: 0.5 };
        assert_eq!(read(map).unwrap(), Tolerance::ClassMap { fair });
        assert!(read(r#"{"kind": "other"}"#).unwrap_err().to_string().contains("other"));
    }
}
