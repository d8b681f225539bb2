//! Labels of classes, as texts and files have them.

use std::path::Path;

use crate::error::TaskError;

/// Longest label file that is read, in bytes.
pub const MAX_LABEL_BYTES: u64 = 16 << 20;

/// The labels of a text: one a line. Empty lines at its end are none.
#[must_use]
pub fn labels_of(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim().to_owned()).collect()
}

/// Reads a label file: line number (from 0) is the class index.
///
/// # Errors
/// The file cannot be read, is longer than [`MAX_LABEL_BYTES`], or has no label.
pub fn read_labels(path: &Path) -> Result<Vec<String>, TaskError> {
    let what = "the labels";
    let failed = |cause| TaskError::File { what, file: path.into(), cause };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > MAX_LABEL_BYTES {
        let (file, most) = (path.into(), MAX_LABEL_BYTES);
        return Err(TaskError::FileTooLong { what: "a label file", file, bytes, most });
    }
    let labels = labels_of(&std::fs::read_to_string(path).map_err(failed)?);
    if labels.iter().all(String::is_empty) {
        return Err(TaskError::NoLabels { file: path.into() });
    }
    Ok(labels)
}

/// How many labels there have to be for a model's classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelsNeeded {
    /// One for each class.
    Exactly(usize),
    /// One for each class, and perhaps for others that the model does not tell apart.
    AtLeast(usize),
    /// How many classes there are the model does not say.
    Any,
}

impl LabelsNeeded {
    /// Whether so many are right.
    ///
    /// # Errors
    /// [`TaskError::LabelCount`].
    pub fn check(self, labels: usize) -> Result<(), TaskError> {
        match self {
            LabelsNeeded::Exactly(classes) if classes != labels => {
                Err(TaskError::LabelCount { labels, classes })
            }
            LabelsNeeded::AtLeast(classes) if classes > labels => {
                Err(TaskError::LabelCount { labels, classes })
            }
            _ => Ok(()),
        }
    }
}

/// A class's label, or its number where it has none.
pub(crate) fn name(index: usize, label: &str) -> String {
    if label.is_empty() { format!("class {index}") } else { label.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_file_has_a_label_a_line() {
        assert_eq!(labels_of("a\n b \r\n\nc\n\n"), ["a", "b", "", "c"]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("l.txt");
        for text in ["", "\n\n", "  \n"] {
            std::fs::write(&file, text).unwrap();
            let error = read_labels(&file).unwrap_err().to_string();
            assert!(error.ends_with("l.txt: no labels in this file"), "{error}");
        }
        let error = read_labels(&folder.path().join("m.txt")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the labels ") && error.contains("m.txt"), "{error}");
    }

    #[test]
    fn counts_are_compared_with_classes() {
        assert!(LabelsNeeded::Exactly(3).check(3).is_ok());
        let error = LabelsNeeded::Exactly(3).check(4).unwrap_err().to_string();
        assert!(error.starts_with("4 labels, where the model has 3 classes"), "{error}");
        assert!(LabelsNeeded::AtLeast(3).check(4).is_ok());
        assert!(LabelsNeeded::AtLeast(3).check(2).is_err());
        assert!(LabelsNeeded::Any.check(0).is_ok());
    }
}
