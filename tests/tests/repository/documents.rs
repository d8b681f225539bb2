//! The documents name what there is: promises their tests, pages their files, commands their
//! packages. A test or file that gets another name is found out here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burst_tests::documents::{Document, code, documents, files};
use burst_tests::repository;

/// Where a path without a folder may lie, as the documents themselves say.
const FOLDERS: &[&str] = &["", "tests/tests", "driver/src/ops"];

/// The files that a path of a document means: braces and stars stand for several.
fn meant(root: &Path, beside: &Path, written: &str) -> Vec<PathBuf> {
    let own = FOLDERS.iter().map(|folder| root.join(folder));
    let mut bases: Vec<PathBuf> = own.collect();
    bases.extend(root.join(beside).ancestors().skip(1).map(Path::to_path_buf));
    let exists = |written: &str| {
        let found = bases.iter().map(|base| base.join(written)).find(|path| path.exists());
        found.into_iter().collect()
    };
    if let Some((before, rest)) = written.split_once('{') {
        let (names, after) = rest.split_once('}').unwrap_or((rest, ""));
        let each = names.split(',').map(|name| exists(&format!("{before}{name}{after}")));
        let found: Vec<Vec<PathBuf>> = each.collect();
        return if found.iter().any(Vec::is_empty) { Vec::new() } else { found.concat() };
    }
    let Some((before, after)) = written.split_once('*') else { return exists(written) };
    let (folder, start) = before.rsplit_once('/').unwrap_or(("", before));
    let all = bases.iter().filter_map(|base| fs::read_dir(base.join(folder)).ok()).flatten();
    all.flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(start) && name.ends_with(after)
        })
        .map(|entry| entry.path())
        .collect()
}

/// How the list of a file's tests begins where no attribute marks them (`testing/src/lib.rs`).
const LIST: &str = "burst_testing::tests![";

/// Whether a test of this name stands in the file's list.
fn is_listed(source: &str, name: &str) -> bool {
    let list = source.split_once(LIST).and_then(|(_, rest)| rest.split("];").next());
    list.is_some_and(|list| {
        list.split_whitespace()
            .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
    })
}

/// The attributes above the function or module of this name; `None` where there is none.
fn attributes_of(source: &str, name: &str) -> Option<String> {
    if is_listed(source, name) {
        return Some("#[test]".to_owned());
    }
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let opens = |line: &str| {
        ["fn ", "mod "].iter().any(|keyword| {
            line.split_once(keyword).is_some_and(|(_, rest)| {
                rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<', ' ', ';']))
            })
        })
    };
    let at = lines.iter().position(|line| opens(line))?;
    let above = lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
    let attributes: Vec<&str> = above.copied().filter(|line| line.starts_with("#[")).collect();
    Some(attributes.concat())
}

/// What is wrong with a test that a promise names, such as `tests/tests/fork.rs::name`.
pub(super) fn fault_of_test(root: &Path, file: &str, name: Option<&str>) -> Option<String> {
    let found = meant(root, Path::new("docs/SPEC.md"), file);
    if found.is_empty() {
        return Some(format!("no file {file}"));
    }
    let sources: Vec<String> =
        found.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let Some(name) = name else {
        let tested = |source: &String| {
            ["#[test]", "mod tests", LIST].iter().any(|mark| source.contains(mark))
        };
        let folder = found.iter().any(|path| path.is_dir());
        return (!folder && !sources.iter().any(tested)).then(|| format!("{file} has no test"));
    };
    let last = name.rsplit("::").next().unwrap_or(name);
    let Some(attributes) = sources.iter().find_map(|source| attributes_of(source, last)) else {
        return Some(format!("{file} has no {last}"));
    };
    if attributes.contains("#[ignore") {
        return Some(format!("{file}::{last} is ignored"));
    }
    let words = last.split('_').count();
    let is_test = attributes.contains("#[test]");
    (words > 3 && !is_test).then(|| format!("{file}::{last} is no test"))
}

/// What is wrong with the promises of a text, by line.
fn faults_of_promises(root: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut promises = false;
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").collect();
        if !line.starts_with('|') || line.starts_with("|---") {
            continue;
        }
        let last = cells.last().unwrap_or(&"").trim();
        let is_of_tests = ["test", "shown by"].contains(&last);
        if is_of_tests || ["| step ", "| gap "].iter().any(|head| line.starts_with(head)) {
            promises = is_of_tests;
            continue;
        }
        let tests = tests_of(last);
        if promises && tests.is_empty() {
            faults.push(format!("line {}: a promise without a test", number + 1));
        }
        // Beside the tests a row may name other files; those are looked at with all other paths.
        for (file, name) in tests {
            let fault = fault_of_test(root, &file, name.as_deref());
            faults.extend(fault.map(|fault| format!("line {}: {fault}", number + 1)));
        }
    }
    faults
}

/// Files and names of the tests in a cell; `::name` stands for another one of the same file.
pub(super) fn tests_of(cell: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    for span in cell.split('`').skip(1).step_by(2) {
        let (file, name) = match span.split_once("::") {
            Some((file, name)) => (file, Some(name.to_owned())),
            None => (span, None),
        };
        if file.is_empty() {
            let (file, _) = found.last().expect("a name behind a file").clone();
            found.push((file, name));
        } else if file.ends_with(".rs") || (file.ends_with('/') && name.is_none()) {
            found.push((file.to_owned(), name));
        }
    }
    found
}

#[test]
fn every_promise_names_tests_that_there_are() {
    let root = repository();
    for (document, least) in [("docs/SPEC.md", 100), ("docs/THREAT-MODEL.md", 50)] {
        let text = fs::read_to_string(root.join(document)).expect(document);
        let promised: usize = text.lines().map(|line| tests_of(line).len()).sum();
        assert!(promised > least, "the promises of {document} are read: {promised}");
        let faults = faults_of_promises(&root, &text);
        assert!(faults.is_empty(), "{document}: {faults:#?}");
    }
}

#[test]
fn a_promise_without_its_test_is_found_out() {
    let here = "tests/tests/repository/documents.rs";
    for (cell, want) in [
        (format!("`{here}::every_promise_names_tests_that_there_are`"), None),
        (format!("`{here}`, `::a_promise_without_its_test_is_found_out`"), None),
        (format!("`{here}::a_test_that_was_renamed`"), Some("has no a_test_that_was_renamed")),
        (format!("`{here}::tests_of`, `::faults_of_promises`"), None),
        ("`tests/src/lib.rs::not_a_test_at_all`".to_owned(), Some("has no not_a_test_at_all")),
        ("`cli/tests/command/reconnect.rs::wait_for_an_answer`".to_owned(), Some("is no test")),
        ("`tests/tests/nowhere.rs`".to_owned(), Some("no file tests/tests/nowhere.rs")),
        ("`tests/src/lib.rs`".to_owned(), Some("has no test")),
        ("`fmq/tests/queue/two_processes.rs::service`".to_owned(), Some("is ignored")),
        ("`fmq/tests/loom/*.rs`, `elementwise/{add,sub}.rs`".to_owned(), None),
        ("`elementwise/{add,nowhere}.rs`".to_owned(), Some("no file elementwise/")),
        ("by hand".to_owned(), Some("a promise without a test")),
    ] {
        let text = format!("| promise | test |\n|---|---|\n| It holds | {cell} |\n");
        let faults = faults_of_promises(&repository(), &text);
        match want {
            None => assert!(faults.is_empty(), "{cell}: {faults:?}"),
            Some(want) => assert!(faults.concat().contains(want), "{cell}: {faults:?}"),
        }
    }
}

/// What is wrong with the rows of a table of what the original suites ask: each names its tests, those of
/// files and those of the list `checks`, or says why it does not apply; and none of the list is left out.
fn faults_of_rows(root: &Path, text: &str, checks: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let is_row = line.starts_with("| ") && cells.len() == 3 && cells[2] != "test";
        if !is_row {
            continue;
        }
        let mut fault = |what: String| faults.push(format!("line {}: {what}", number + 1));
        let files = tests_of(cells[2]);
        let spans = cells[2].split('`').skip(1).step_by(2);
        let rows: Vec<&str> =
            spans.filter(|span| span.contains('/') && !span.contains('.')).collect();
        let reason = cells[2].strip_prefix("not applicable: ").unwrap_or_default();
        if files.is_empty() && rows.is_empty() && reason.is_empty() {
            fault(format!("{} has neither a test nor a reason", cells[0]));
        }
        for (file, name) in files {
            fault_of_test(root, &file, name.as_deref()).into_iter().for_each(&mut fault);
        }
        for row in rows {
            if !checks.contains(&row) {
                fault(format!("there is no check {row}"));
            }
            named.push(row);
        }
    }
    let forgotten = checks.iter().filter(|check| !named.contains(check));
    faults.extend(forgotten.map(|check| format!("no row names the check {check}")));
    faults
}

#[test]
fn every_row_of_the_original_suites_has_its_test() {
    let root = repository();
    let text = fs::read_to_string(root.join("docs/CONFORMANCE.md")).expect("docs/CONFORMANCE.md");
    let checks: Vec<&str> = burst_verify::functional::checks().map(|check| check.name).collect();
    let distinct: std::collections::BTreeSet<&str> = checks.iter().copied().collect();
    assert_eq!(distinct.len(), checks.len(), "two checks of one name");
    assert!(checks.len() > 80, "the checks are read: {}", checks.len());
    let faults = faults_of_rows(&root, &text, &checks);
    assert!(faults.is_empty(), "docs/CONFORMANCE.md: {faults:#?}");
}

#[test]
fn a_row_without_its_test_is_found_out() {
    let here = "tests/tests/repository/documents.rs";
    for (cell, want) in [
        ("`Suite/Row`".to_owned(), None),
        (format!("`Suite/Row`, `{here}::every_row_of_the_original_suites_has_its_test`"), None),
        ("`Suite/Row`, `Suite/Other`".to_owned(), Some("there is no check Suite/Other")),
        (format!("`{here}::a_test_that_was_renamed`"), Some("has no a_test_that_was_renamed")),
        ("by hand".to_owned(), Some("It has neither a test nor a reason")),
        ("not applicable: there is no null".to_owned(), Some("no row names the check Suite/Row")),
    ] {
        let text = format!("| row | asked | test |\n|---|---|---|\n| It | NONE | {cell} |\n");
        let faults = faults_of_rows(&repository(), &text, &["Suite/Row"]);
        match want {
            None => assert!(faults.is_empty(), "{cell}: {faults:?}"),
            Some(want) => assert!(faults.concat().contains(want), "{cell}: {faults:?}"),
        }
    }
}

/// Endings that make a word with a `/` in it a path.
const ENDINGS: &[&str] =
    &[".rs", ".md", ".toml", ".py", ".txt", ".json", ".bin", ".tflite", ".service", ".socket", "/"];

/// What a word in code says of a file of this repository, if it speaks of one. Parts in capitals
/// or angle brackets are the reader's to fill in.
fn path_in(word: &str) -> Option<String> {
    let word = word.trim_start_matches('+'); // an added line of a diff
    let word = word.split("::").next().unwrap_or_default().trim_end_matches([',', '.', ';']);
    let elsewhere = word.starts_with(['/', '$', '-', '<', '~']) || word.starts_with("../shared");
    let made = ["target/", "out/", "fuzz/artifacts", "fuzz/corpus-work", "venv/"];
    if elsewhere || made.iter().any(|folder| word.starts_with(folder)) || word.contains("://") {
        return None;
    }
    if !word.contains('/') || !ENDINGS.iter().any(|ending| word.ends_with(ending)) {
        return None;
    }
    let open = |part: &&str| {
        part.contains('<') || (part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase()))
    };
    let known: Vec<&str> = word.split('/').take_while(|part| !open(part)).collect();
    Some(known.join("/"))
}

#[test]
fn files_that_documents_name_are_there() {
    let root = repository();
    let (mut seen, mut faults) = (0, Vec::new());
    for Document { path, text } in documents(&root) {
        for code in code(&text) {
            for written in code.text.split_whitespace().filter_map(path_in) {
                seen += 1;
                if meant(&root, &path, &written).is_empty() {
                    faults.push(format!("{}:{}: {written}", path.display(), code.line));
                }
            }
        }
    }
    assert!(seen > 200 && faults.is_empty(), "of {seen} files are not there: {faults:#?}");
}

#[test]
fn paths_are_told_from_other_words() {
    for (word, want) in [
        ("driver/src/ops/<family>/", Some("driver/src/ops")),
        ("fuzz/seeds/TARGET/found_WHAT_IT_WAS", None),
        ("models/shapes.tflite,", Some("models/shapes.tflite")),
        ("burst-client/src/burst.rs::tests", Some("burst-client/src/burst.rs")),
        ("/run/burst/admin.sock", None),
        ("../shared/models/manifest.json", None),
        ("speed/", Some("speed/")),
        ("+///", None),
        ("+models/shapes.tflite", Some("models/shapes.tflite")),
        ("x.bin", None),
    ] {
        assert_eq!(path_in(word).as_deref(), want, "{word}");
    }
}

#[test]
fn links_lead_to_files_and_headings() {
    let root = repository();
    let mut faults = Vec::new();
    for Document { path, text } in documents(&root) {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = root.join(&path).parent().expect("a folder").join(file);
            let target = if file.is_empty() { root.join(&path) } else { target };
            let there = target.exists() && (heading.is_empty() || headings(&target, heading));
            if !link.starts_with("http") && !there {
                faults.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "links that lead nowhere: {faults:#?}");
}

/// Whether a document has a heading with this anchor.
fn headings(document: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(document).unwrap_or_default();
    text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let kept = line.trim_start_matches(['#', ' ']).to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-") == anchor
    })
}

/// Whether a line refers to a document that is not in the repository: notes of those who planned it,
/// by name or by the number of a decision, or a text beside the repository. (Data there is fine.)
fn names_a_document_elsewhere(line: &str) -> bool {
    let numbered = line.split(concat!("decision", " ")).skip(1).any(|rest| {
        let mut chars = rest.chars();
        let letter = chars.next().is_some_and(|c| c.is_ascii_uppercase());
        letter && chars.next().is_some_and(|c| c.is_ascii_digit())
    });
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let notes = line.split(|c| !is_word(c)).any(|word| word == concat!("DES", "IGN"));
    let text = line.split(concat!("../", "shared/")).skip(1).any(|rest| {
        let path = rest.split(|c: char| !is_word(c) && !matches!(c, '.' | '/' | '-')).next();
        path.is_some_and(|path| path.contains(".md"))
    });
    numbered || notes || text
}

#[test]
fn nothing_refers_to_a_document_that_is_not_here() {
    let root = repository();
    let mut sources: Vec<PathBuf> =
        ["rs", "md", "toml", "sh"].iter().flat_map(|ending| files(&root, ending)).collect();
    sources.push(root.join(".ci/run"));
    let (mut lines, mut faults) = (0, Vec::new());
    for path in &sources {
        let text = fs::read_to_string(path).expect("a text");
        for (number, line) in text.lines().enumerate() {
            lines += 1;
            if names_a_document_elsewhere(line) {
                let path = path.strip_prefix(&root).expect("below the root").display();
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(lines > 50_000 && faults.is_empty(), "of {lines} lines: {faults:#?}");
}

#[test]
fn a_reference_to_a_document_elsewhere_is_told_from_other_words() {
    for (line, want) in [
        (concat!("// As DES", "IGN says: edges only go down."), true),
        (concat!("/// Mapped as its kind allows (decision", " M1)."), true),
        (concat!("The numbers are those of `../", "shared/spec/fmq.md` 8.1."), true),
        ("REDESIGNED, and DESIGNS, are other words", false),
        ("a decision M", false),
        ("`docs/decisions/0005-waiting-and-waking.md`", false),
        ("needs `../shared/models`, see README.md", false),
    ] {
        assert_eq!(names_a_document_elsewhere(line), want, "{line}");
    }
}

#[test]
fn long_names_in_documents_stand_in_the_sources() {
    let root = repository();
    let sources: Vec<PathBuf> = files(&root, "rs");
    let all: String = sources.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let mut faults = Vec::new();
    for Document { path, text } in documents(&root) {
        for code in code(&text) {
            let name = code.text.rsplit("::").next().unwrap_or_default();
            let plain =
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if plain && name.split('_').count() > 4 && !is_named(&all, name) {
                faults.push(format!("{}:{}: {name}", path.display(), code.line));
            }
        }
    }
    assert!(faults.is_empty(), "names that are not there: {faults:#?}");
}

fn is_named(sources: &str, name: &str) -> bool {
    // A function, a test that is listed, or a field that JSON has.
    let forms = [format!("fn {name}("), format!("(\"{name}\", "), format!("pub {name}: ")];
    forms.iter().any(|form| sources.contains(form))
}

/// Folder of each package of the workspace.
fn packages(root: &Path) -> BTreeMap<String, PathBuf> {
    let parse = |path: &Path| -> toml::Table {
        fs::read_to_string(path).expect("a manifest").parse().expect("a table")
    };
    let workspace = parse(&root.join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().expect("members");
    let folders = members.iter().map(|member| root.join(member.as_str().expect("a path")));
    folders
        .map(|folder| {
            let manifest = parse(&folder.join("Cargo.toml"));
            (manifest["package"]["name"].as_str().expect("a name").to_owned(), folder)
        })
        .collect()
}

/// What is wrong with a line that calls cargo: a package, test, bench or example that is not there.
fn fault_of_cargo(packages: &BTreeMap<String, PathBuf>, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    let start = words.iter().position(|word| *word == "cargo")?;
    let words: Vec<&str> =
        words[start..].iter().copied().take_while(|word| !matches!(*word, "--" | "#")).collect();
    let after = |flag: &str| {
        words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1).copied())
    };
    let package = after("-p")?;
    let Some(folder) = packages.get(package) else {
        return (package.chars().any(char::is_lowercase)).then(|| format!("no package {package}"));
    };
    let roots = [
        ("--test", "tests"),
        ("--bench", "benches"),
        ("--example", "examples"),
        ("--bin", "src/bin"),
    ];
    roots.iter().find_map(|(flag, root)| {
        let name = after(flag)?;
        let file = format!("{root}/{name}.rs");
        let files = [file.clone(), format!("{root}/{name}/main.rs")];
        let is_there = |file: &String| !meant(folder, Path::new("Cargo.toml"), file).is_empty();
        (!files.iter().any(is_there)).then(|| format!("no {file}"))
    })
}

#[test]
fn what_documents_give_to_cargo_is_there() {
    let root = repository();
    let packages = packages(&root);
    let (mut seen, mut faults) = (0, Vec::new());
    for Document { path, text } in documents(&root) {
        for code in code(&text).iter().filter(|code| code.text.contains("cargo ")) {
            seen += 1;
            let fault = fault_of_cargo(&packages, code.text);
            let line = format!("{}:{}", path.display(), code.line);
            faults.extend(fault.map(|fault| format!("{line}: {fault}: {}", code.text)));
        }
    }
    assert!(seen > 10 && faults.is_empty(), "{seen} commands: {faults:#?}");
}

#[test]
fn a_command_with_a_package_or_test_that_is_not_there_is_found_out() {
    let packages = packages(&repository());
    for (line, want) in [
        ("RUSTFLAGS=\"--cfg loom\" cargo test -p fmq --release --test loom", None),
        ("cargo bench -p benches --bench ring", None),
        ("cargo test -p CRATE", None),
        ("cargo test -p nobody", Some("no package nobody")),
        ("cargo test -p fmq --test nothing -- --nocapture", Some("no tests/nothing.rs")),
        ("cargo run -p examples --bin nothing", Some("no src/bin/nothing.rs")),
    ] {
        assert_eq!(fault_of_cargo(&packages, line).as_deref(), want, "{line}");
    }
}
