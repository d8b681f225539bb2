//! The documents of the repository, and the code in them, for tests that hold them to be true.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are none of ours.
const LEFT_OUT: &[&str] = &["target", ".git", "artifacts", "corpus-work"];

/// A document: where it lies, from the root of the repository, and what it says.
pub struct Document {
    /// Its path, such as `docs/SPEC.md`.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// Code in a document: what stands between two backticks, or a line of a fenced block.
#[derive(Debug, PartialEq, Eq)]
pub struct Code<'a> {
    /// Number of its line, from 1.
    pub line: usize,
    /// The code itself.
    pub text: &'a str,
}

/// Every Markdown file below `root`.
pub fn documents(root: &Path) -> Vec<Document> {
    files(root, "md")
        .into_iter()
        .map(|file| Document {
            text: fs::read_to_string(&file).expect("a readable document"),
            path: file.strip_prefix(root).expect("below the root").to_path_buf(),
        })
        .collect()
}

/// Every file below `root` that ends so, in the order of their names.
pub fn files(root: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// All code of a text.
pub fn code(text: &str) -> Vec<Code<'_>> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            found.push(Code { line: line_number, text: line.trim() });
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.map(|text| Code { line: line_number, text }));
        }
    }
    found
}
