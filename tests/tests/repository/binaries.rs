//! The binaries that tests run in: those that `tests/README.md` lists and no other, and no file or
//! function in them that would silently never run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use burst_tests::documents::files;
use burst_tests::repository;

/// The attribute of an ordinary test, put together so that this file does not contain it where it
/// looks for it.
const MARK: &str = concat!("#[", "test]");

/// A binary of integration tests.
struct Binary {
    package: String,
    name: String,
    /// Its crate root: `tests/NAME.rs` or `tests/NAME/main.rs`.
    root: PathBuf,
    /// Whether it has its own `main`, with lists of tests.
    is_listed: bool,
}

fn manifest(folder: &Path) -> toml::Table {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    text.parse().expect("a table")
}

/// Folder and manifest of each package of the workspace.
fn packages(root: &Path) -> Vec<(PathBuf, toml::Table)> {
    let workspace = manifest(root);
    let members = workspace["workspace"]["members"].as_array().expect("members");
    let folders = members.iter().map(|member| root.join(member.as_str().expect("a path")));
    folders.map(|folder| (folder.clone(), manifest(&folder))).collect()
}

fn name_of(package: &toml::Table) -> String {
    package["package"]["name"].as_str().expect("a name").to_owned()
}

/// The binaries that cargo finds in a package's folder `tests`.
fn binaries_of(folder: &Path, package: &toml::Table) -> Vec<Binary> {
    let Ok(entries) = fs::read_dir(folder.join("tests")) else { return Vec::new() };
    let sections = package.get("test").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let is_listed = |name: &str| {
        let mut own = sections.iter().filter(|section| section["name"].as_str() == Some(name));
        own.any(|section| section.get("harness").and_then(toml::Value::as_bool) == Some(false))
    };
    let roots = entries.flatten().map(|entry| entry.path()).filter_map(|path| {
        if path.is_dir() {
            return Some(path.join("main.rs")).filter(|root| root.is_file());
        }
        Some(path).filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
    });
    roots
        .map(|root| {
            let named =
                if root.ends_with("main.rs") { root.parent().expect("a folder") } else { &root };
            let name = named.file_stem().expect("a name").to_string_lossy().into_owned();
            Binary { package: name_of(package), is_listed: is_listed(&name), name, root }
        })
        .collect()
}

fn binaries() -> Vec<Binary> {
    let root = repository();
    packages(&root).iter().flat_map(|(folder, package)| binaries_of(folder, package)).collect()
}

/// The files of a binary: its root, and all beside a `main.rs`.
fn sources(binary: &Binary) -> Vec<PathBuf> {
    if binary.root.ends_with("main.rs") {
        return files(binary.root.parent().expect("a folder"), "rs");
    }
    vec![binary.root.clone()]
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first three cells of each row of the table: package, binary, how its tests are found.
fn rows(text: &str) -> BTreeSet<[String; 3]> {
    let lines = text.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(cells.len() == 6 && !cells[4].is_empty(), "no reason in: {line}");
            [cells[1], cells[2], cells[3]].map(|cell| cell.trim_matches('`').to_owned())
        })
        .collect()
}

#[test]
fn the_table_of_test_binaries_is_that_of_the_manifests() {
    let listed = rows(&read(&repository().join("tests/README.md")));
    let found: BTreeSet<[String; 3]> = binaries()
        .into_iter()
        .map(|binary| {
            let tests = if binary.is_listed { "listed" } else { "marked" };
            [binary.package, binary.name, tests.to_owned()]
        })
        .collect();
    assert!(found.len() > 10, "the binaries are found: {}", found.len());
    let new: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(new.is_empty(), "not in the table of tests/README.md: {new:?}");
    assert!(gone.is_empty(), "in the table of tests/README.md alone: {gone:?}");
}

/// What would never run: tests that the wrong harness looks for, and files that no `main.rs` names.
fn faults(
    root: &Path,
    text_of_root: &str,
    is_listed: bool,
    sources: &[(PathBuf, String)],
) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in sources {
        let marked = text.lines().any(|line| line.trim() == MARK);
        let lists = text.lines().any(|line| line.starts_with("burst_testing::tests!["));
        if is_listed && marked {
            faults.push(format!("{} has a marked test in a listed binary", path.display()));
        }
        if !is_listed && lists {
            faults.push(format!("{} has a list in a binary without one", path.display()));
        }
        let is_beside = path.parent() == root.parent() && root.ends_with("main.rs") && path != root;
        let name = path.file_stem().expect("a name").to_string_lossy();
        if is_beside && !text_of_root.lines().any(|line| line == format!("mod {name};")) {
            faults.push(format!("{} is in no binary", path.display()));
        }
    }
    faults
}

#[test]
fn no_test_is_left_out_of_its_binary() {
    let mut wrong = Vec::new();
    for binary in binaries() {
        let sources: Vec<_> =
            sources(&binary).into_iter().map(|path| (path.clone(), read(&path))).collect();
        wrong.extend(faults(&binary.root, &read(&binary.root), binary.is_listed, &sources));
    }
    assert!(wrong.is_empty(), "tests that would never run: {wrong:#?}");
}

#[test]
fn tests_that_would_never_run_are_found_out() {
    let root = Path::new("tests/all/main.rs");
    let marked = format!("{MARK}\nfn a_test() {{}}\n");
    let listed = "burst_testing::tests![a_test()];\nfn a_test() {}\n";
    for (is_listed, file, text, want) in [
        (false, "tests/all/ours.rs", &*marked, None),
        (true, "tests/all/ours.rs", listed, None),
        (true, "tests/all/ours.rs", &marked, Some("a marked test in a listed binary")),
        (false, "tests/all/ours.rs", listed, Some("a list in a binary without one")),
        (false, "tests/all/stray.rs", "", Some("is in no binary")),
        (true, "tests/all/support/stray.rs", "", None),
    ] {
        let sources = [(PathBuf::from(file), text.to_owned())];
        let found = faults(root, "//! All.\n\nmod ours;\nmod support;\n", is_listed, &sources);
        match want {
            None => assert!(found.is_empty(), "{file}: {found:?}"),
            Some(want) => assert!(found.len() == 1 && found[0].contains(want), "{file}: {found:?}"),
        }
    }
}

/// Libraries and programs without unit tests say so in their manifest, so that nobody links an empty
/// binary; then they must have none.
#[test]
fn what_is_not_tested_has_no_unit_tests() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (folder, package) in packages(&repository()) {
        let is_off =
            |target: &toml::Value| target.get("test").and_then(toml::Value::as_bool) == Some(false);
        let programs = package.get("bin").and_then(toml::Value::as_array);
        let programs = programs.into_iter().flatten().filter(|program| is_off(program));
        let mut off: Vec<PathBuf> = programs
            .map(|program| match program.get("path") {
                Some(path) => folder.join(path.as_str().expect("a path")),
                None => {
                    folder.join(format!("src/bin/{}.rs", program["name"].as_str().expect("a name")))
                }
            })
            .collect();
        if package.get("lib").is_some_and(is_off) {
            off.extend(files(&folder.join("src"), "rs"));
        }
        seen += off.len();
        wrong.extend(off.into_iter().filter(|path| read(path).contains(MARK)));
    }
    assert!(seen > 5 && wrong.is_empty(), "of {seen} files these have tests: {wrong:#?}");
}

/// The crate for lists of tests knows nothing of ours, and nothing that ships knows it.
#[test]
fn lists_of_tests_are_a_development_dependency() {
    const NAME: &str = "burst-testing";
    let beside = ["burst-tests", "benches", "examples", "fuzz"];
    let root = repository();
    let ours: BTreeSet<String> =
        packages(&root).iter().map(|(_, package)| name_of(package)).collect();
    for (_, package) in packages(&root) {
        let name = name_of(&package);
        let of = |table: &str| package.get(table).and_then(toml::Value::as_table);
        let has = |table: &str, name: &str| of(table).is_some_and(|table| table.contains_key(name));
        if name == NAME {
            for one in &ours {
                assert!(
                    !has("dependencies", one) && !has("dev-dependencies", one),
                    "{NAME} -> {one}"
                );
            }
        } else if !beside.contains(&name.as_str()) {
            assert!(!has("dependencies", NAME), "{name} ships with {NAME}");
        }
    }
}
