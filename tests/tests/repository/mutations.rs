//! The faults of the mutation check (`verify/mutations/`) still fit the sources that they are put into.

use std::collections::BTreeMap;
use std::fs;

use burst_tests::repository;

/// What faults are about, three of each.
const AREAS: [&str; 7] = [
    "arena placement",
    "cache",
    "control flow",
    "folding",
    "kernels",
    "shape inference",
    "thread splitting",
];

/// A change of a file: lines, and what becomes of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk<'p> {
    file: &'p str,
    before: Vec<&'p str>,
    after: Vec<&'p str>,
}

/// The changes of a patch.
fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut file = "";
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name;
        } else if line.starts_with("@@ ") {
            hunks.push(Hunk { file, ..Hunk::default() });
        } else if let Some(hunk) = hunks.last_mut() {
            let (kind, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            if kind != "+" {
                hunk.before.push(text);
            }
            if kind != "-" {
                hunk.after.push(text);
            }
        }
    }
    hunks
}

/// What is wrong with a change of this text.
fn misfit(hunk: &Hunk<'_>, text: &str) -> Option<&'static str> {
    let lines: Vec<&str> = text.lines().collect();
    let places = lines.windows(hunk.before.len().max(1)).filter(|lines| *lines == hunk.before);
    match places.count() {
        _ if hunk.before == hunk.after => Some("it changes nothing"),
        0 => Some("the lines are not there any more"),
        1 => None,
        _ => Some("the lines are there more than once"),
    }
}

/// What follows this word in the patch's header.
fn header<'p>(patch: &'p str, word: &str) -> Option<&'p str> {
    patch.lines().find_map(|line| line.strip_prefix(word)).map(str::trim)
}

#[test]
fn every_fault_of_the_mutation_check_fits_the_sources() {
    let root = repository();
    let mut areas: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root.join("verify/mutations")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let patch = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let area = header(&patch, "Area:").unwrap_or_default();
        *areas.entry(area.to_owned()).or_default() += 1;
        if header(&patch, "Fault:").is_none_or(str::is_empty) {
            wrong.push(format!("{name}: says not what the fault is"));
        }
        let hunks = hunks(&patch);
        assert!(!hunks.is_empty(), "{name}");
        for hunk in hunks {
            let text = fs::read_to_string(root.join(hunk.file)).unwrap_or_default();
            let what = misfit(&hunk, &text);
            wrong.extend(what.map(|what| format!("{name}, {}: {what}", hunk.file)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let expected: BTreeMap<String, usize> =
        AREAS.iter().map(|area| ((*area).to_owned(), 3)).collect();
    assert_eq!(areas, expected);
}

#[test]
fn a_fault_whose_lines_have_changed_does_not_fit() {
    let patch = "Area: x\n--- a/f.rs\n+++ b/f.rs\n@@ -1,3 +1,3 @@ fn f\n a\n-b\n+c\n d\n";
    let hunks = hunks(patch);
    let expected = Hunk { file: "f.rs", before: vec!["a", "b", "d"], after: vec!["a", "c", "d"] };
    assert_eq!(hunks, [expected]);
    assert_eq!(misfit(&hunks[0], "x\na\nb\nd\n"), None);
    assert!(misfit(&hunks[0], "a\nc\nd\n").is_some());
    assert!(misfit(&hunks[0], "a\nb\nd\na\nb\nd\n").is_some());
    assert!(misfit(&hunks[0], "").is_some());
}
