//! Labels of classes as texts have them.

/// The labels of a text: one a line. Empty lines at its end are none.
pub(crate) fn labels_of(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim().to_owned()).collect()
}
