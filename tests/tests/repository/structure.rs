//! The shape of the workspace: who may know whom, and where `unsafe` may stand.
//!
//! Reads manifests and sources, so that a dependency in the wrong direction fails a test and not a
//! review.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burst_tests::repository;

/// Level of each package that ships. Edges go from a higher level to a lower one, never sideways.
const LEVELS: &[(&str, u8)] = &[
    ("burst-shm", 1),
    ("burst-hal", 1),
    ("burst-sound", 1),
    ("burst-capture", 1),
    ("burst-pictures", 1),
    ("fmq", 2),
    ("burst-wire", 2),
    ("burst-launch", 2),
    ("burst-driver", 2),
    ("burst-tflite", 2),
    ("burst-verify", 2),
    ("burst-client", 3),
    ("burst-server", 3),
    ("burst-harness", 4),
    ("burst", 5),
    ("burst-delegate", 5),
    ("burst-capi", 5),
    ("neuralnetworks", 4),
    ("burst-tasks", 4),
];

/// The synthetic camera draws pictures and knows nothing of ours; anyone may use it.
const BESIDE: &[&str] = &[
    "burst-camera",
    "burst-testing",
    "burst-tests",
    "benches",
    "fuzz",
    "examples",
    "example-add",
    "example-extension",
];

/// Packages beside the product that nothing of it may use.
const BESIDE_ONLY: &[&str] =
    &["burst-tests", "benches", "fuzz", "examples", "example-add", "example-extension"];

/// Pairs that are forbidden although their levels would allow them.
const FORBIDDEN: &[(&str, &str)] = &[
    ("burst-client", "burst-driver"),
    ("burst-harness", "burst-driver"),
    ("burst-harness", "burst-server"),
    ("burst-server", "burst-driver"),
    ("burst-client", "burst-tflite"),
    ("burst-server", "burst-tflite"),
    ("neuralnetworks", "burst-server"),
    ("burst-driver", "burst-wire"),
    ("fmq", "burst-hal"),
];

/// The only places where `unsafe` may be written.
const UNSAFE_PLACES: &[&str] = &[
    "shm/src/",
    // `fork`, for tests of what a forked child may do: nothing that ships has it.
    "testing/src/forked.rs",
    "driver/src/kernels/simd/",
    // The lifetime of a job of threads that outlive it: docs/decisions/0008-threads.md.
    "driver/src/threads/scoped_job.rs",
    "runtime/src/c/",
    // `ioctl` and `poll` of cameras, and the copy out of their buffers.
    "capture/src/kernel/",
    // A camera for tests, in the place of functions of the C library: no part of what ships.
    "cli/examples/v4l2_stand_in/lib.rs",
    // The structures and functions of TFLite's external delegates.
    "delegate/src/abi/",
    // The functions of burst.h.
    "capi/src/exports.rs",
    "capi/src/exports/",
];

/// Where families of kernels have their folders, and the only files directly in such a folder where
/// `unsafe` may be written: docs/decisions/0012-unsafe-in-kernels.md.
const FAMILIES: &str = "driver/src/kernels/";
const UNSAFE_FILES_OF_A_FAMILY: &[&str] =
    &["avx2.rs", "avx512.rs", "avx_vnni.rs", "dispatch.rs", "neon.rs"];

/// Whether `unsafe` may be written in the file with this path.
fn may_hold_unsafe(path: &str) -> bool {
    let in_family = path.strip_prefix(FAMILIES).and_then(|rest| rest.split_once('/'));
    UNSAFE_PLACES.iter().any(|place| path.starts_with(place))
        || in_family.is_some_and(|(_, file)| UNSAFE_FILES_OF_A_FAMILY.contains(&file))
}

struct Package {
    name: String,
    folder: PathBuf,
    dependencies: Vec<String>,
    manifest: toml::Table,
}

fn packages() -> Vec<Package> {
    let root = repository();
    let workspace: toml::Table = parse(&root.join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().expect("members");
    members
        .iter()
        .map(|member| {
            let folder = root.join(member.as_str().expect("a member is a path"));
            let manifest = parse(&folder.join("Cargo.toml"));
            let name = manifest["package"]["name"].as_str().expect("a name").to_owned();
            let mut dependencies = Vec::new();
            collect_dependencies(&manifest, &mut dependencies);
            Package { name, folder, dependencies, manifest }
        })
        .collect()
}

/// Names under `dependencies`, `dev-dependencies` and `build-dependencies`, for every target.
fn collect_dependencies(table: &toml::Table, into: &mut Vec<String>) {
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            into.extend(inner.keys().cloned());
        } else if key == "target" || table.contains_key("target") || key.starts_with("cfg(") {
            collect_dependencies(inner, into);
        }
    }
}

fn parse(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn dependencies_only_go_down() {
    let levels: BTreeMap<&str, u8> = LEVELS.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in packages() {
        if BESIDE.contains(&package.name.as_str()) {
            continue;
        }
        let own = *levels
            .get(package.name.as_str())
            .unwrap_or_else(|| panic!("{} has no level; give it one here", package.name));
        for dependency in &package.dependencies {
            if let Some(level) = levels.get(dependency.as_str())
                && *level >= own
            {
                wrong.push(format!("{} -> {dependency}", package.name));
            }
            if FORBIDDEN.contains(&(package.name.as_str(), dependency.as_str())) {
                wrong.push(format!("{} must not know {dependency}", package.name));
            }
            if BESIDE_ONLY.contains(&dependency.as_str()) {
                wrong
                    .push(format!("{} -> {dependency}, which is beside the product", package.name));
            }
        }
    }
    assert!(wrong.is_empty(), "dependencies in the wrong direction: {wrong:#?}");
}

/// Folders by line of the picture in `docs/ARCHITECTURE.md`, such as `level 2` or `beside`.
fn picture(text: &str) -> BTreeMap<String, Vec<String>> {
    let lines =
        text.lines().filter(|line| line.starts_with("level ") || line.starts_with("beside"));
    lines
        .map(|line| {
            let (name, rest) = line.split_at(line.find("   ").expect("a name, then folders"));
            let folders = rest.split_whitespace().filter_map(|word| word.strip_suffix('/'));
            (name.to_owned(), folders.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn the_picture_and_the_table_of_crates_are_those_of_the_workspace() {
    let text = fs::read_to_string(repository().join("docs/ARCHITECTURE.md")).expect("readable");
    let levels: BTreeMap<&str, u8> = LEVELS.iter().copied().collect();
    let mut drawn = picture(&text);
    for package in packages() {
        let folder = package.folder.strip_prefix(repository()).expect("within the repository");
        let folder = folder.to_string_lossy().into_owned();
        let level = levels.get(package.name.as_str());
        let line = level.map_or("beside".to_owned(), |level| format!("level {level}"));
        let folders = drawn.get_mut(&line).unwrap_or_else(|| panic!("no line {line}"));
        let before = folders.len();
        folders.retain(|drawn| *drawn != folder);
        assert_eq!(before, folders.len() + 1, "{folder}/ stands once in the line {line}");
        let row = format!("| `{folder}/` | `{}` |", package.name);
        assert!(text.contains(&row), "docs/ARCHITECTURE.md has no row {row}");
    }
    let left: Vec<&String> = drawn.values().flatten().collect();
    assert!(left.is_empty(), "folders in the picture that are no packages of this line: {left:?}");
}

#[test]
fn bincode_is_known_to_wire_alone() {
    let users: Vec<String> = packages()
        .into_iter()
        .filter(|package| package.dependencies.iter().any(|name| name == "bincode"))
        .map(|package| package.name)
        .collect();
    assert_eq!(users, ["burst-wire"]);
}

#[test]
fn every_package_takes_versions_and_lints_from_the_workspace() {
    for package in packages() {
        let lints = package.manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(lints.and_then(toml::Value::as_bool), Some(true), "{}: lints", package.name);
        let tables = ["dependencies", "dev-dependencies"];
        for (name, spec) in
            tables.iter().filter_map(|table| package.manifest.get(*table)?.as_table()).flatten()
        {
            let inherited = spec.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            assert!(inherited, "{}: {name} has a version of its own", package.name);
        }
    }
}

#[test]
fn unsafe_stands_only_where_the_design_puts_it() {
    let root = repository();
    let mut wrong = Vec::new();
    for package in packages() {
        for file in sources(&package.folder) {
            let path = file.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
            if may_hold_unsafe(&path) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("readable source");
            for (number, line) in text.lines().enumerate() {
                if has_unsafe(line) {
                    wrong.push(format!("{path}:{}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "unsafe outside of {UNSAFE_PLACES:?}: {wrong:#?}");
}

#[test]
fn python_stands_outside_of_the_workspace_and_has_no_unsafe() {
    let root = repository();
    let folder = root.join("python");
    assert!(packages().iter().all(|package| package.folder != folder), "a member");
    let manifest = parse(&folder.join("Cargo.toml"));
    assert!(manifest.contains_key("workspace"), "its own, so that nobody else needs Python");
    assert_eq!(manifest["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
    let files = sources(&folder.join("src"));
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("readable source");
        let found = text.lines().find(|line| has_unsafe(line));
        assert_eq!(found, None, "{}", file.display());
    }
    // What it stands on has levels like everybody's; it is no part of what those know.
    let dependencies = manifest["dependencies"].as_table().expect("dependencies");
    for name in ["burst-driver", "burst-server", "burst-wire", "fmq"] {
        assert!(!dependencies.contains_key(name), "{name} is not the client's business");
    }
}

#[test]
fn the_files_of_kernels_that_may_hold_unsafe_are_told_by_name() {
    for (path, want) in [
        ("driver/src/kernels/matmul_float/avx512.rs", true),
        ("driver/src/kernels/matmul_quantized/avx2.rs", true),
        ("driver/src/kernels/matmul_quantized/avx_vnni.rs", true),
        ("driver/src/kernels/matmul_quantized/neon.rs", true),
        ("driver/src/kernels/resize/dispatch.rs", true),
        ("driver/src/kernels/simd/isa.rs", true),
        ("driver/src/kernels/resize/portable.rs", false),
        ("driver/src/kernels/resize/mod.rs", false),
        ("driver/src/kernels/resize/lines/dispatch.rs", false),
        ("driver/src/kernels/dispatch.rs", false),
        ("driver/src/kernels/resize/avx512_lines.rs", false),
        ("driver/src/ops/conv/dispatch.rs", false),
        ("server/src/kernels/resize/dispatch.rs", false),
    ] {
        assert_eq!(may_hold_unsafe(path), want, "{path}");
    }
}

const KEYWORD: &str = "unsafe";

/// Whether a line of code uses the keyword, or allows the lint that forbids it.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    if ["allow", "expect"].iter().any(|level| code.contains(&format!("{level}({KEYWORD}_code"))) {
        return true;
    }
    let opens = |rest: &str| {
        let rest = rest.trim_start();
        rest.starts_with('{')
            || rest.is_empty()
            || ["fn ", "impl ", "impl<", "extern ", "trait ", "("]
                .iter()
                .any(|w| rest.starts_with(w))
    };
    code.match_indices(KEYWORD).any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let free = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '"'));
        free && opens(&code[at + word.len()..])
    })
}

#[test]
fn the_search_for_unsafe_sees_what_it_should() {
    // `@` stands for the keyword, so that this file does not contain what it looks for.
    for (line, want) in [
        ("    @ { f() }", true),
        ("@ impl Send for X {}", true),
        ("pub @ fn f() {}", true),
        ("#[@(no_mangle)]", true),
        ("    let x = @", true),
        ("#![allow(@_code, reason = \"x\")]", true),
        ("#![deny(@_code)]", false),
        ("// @ { }", false),
        ("@_places()", false),
        ("if code.contains(\"@\") {", false),
    ] {
        let line = line.replace('@', KEYWORD);
        assert_eq!(has_unsafe(&line), want, "{line}");
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found
}
