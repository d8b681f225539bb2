//! A program outside of the workspace: the README's way from a camera to a label.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burst_testing::Missing;

use crate::support::{Process, Service, repository};

burst_testing::tests![
    the_readme_shows_the_fifteen_lines_and_what_they_need(),
    the_fifteen_lines_say_what_the_camera_shows_from_a_crate_of_their_own(build_of_its_own()?),
];

const CRATE: &str = "examples/camera-to-label";

/// That somebody wants to wait for another build of everything that the crate needs.
struct BuildOfItsOwn;

fn build_of_its_own() -> Result<BuildOfItsOwn, Missing> {
    let how = "BURST_OUTSIDE=1 cargo test -p burst --test command -- outside";
    match std::env::var_os("BURST_OUTSIDE") {
        Some(_) => Ok(BuildOfItsOwn),
        None => Err(Missing::new(format!("a build of its own, which takes minutes: {how}"))),
    }
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap()
}

fn the_readme_shows_the_fifteen_lines_and_what_they_need() {
    let readme = read("README.md");
    let source = read(&format!("{CRATE}/src/main.rs"));
    assert!(source.lines().count() <= 15, "{} lines", source.lines().count());
    assert!(readme.contains(source.trim_end()), "README.md shows another program");
    let manifest = read(&format!("{CRATE}/Cargo.toml"));
    let needs = manifest.split_once("[dependencies]\n").unwrap().1.split_once("\n\n").unwrap().0;
    assert!(readme.contains(needs), "README.md shows other dependencies than\n{needs}");
}

/// The crate in a folder of its own, with the versions that the workspace has.
fn copy(to: &Path) {
    let root = repository();
    std::fs::create_dir_all(to.join("src")).unwrap();
    let manifest = read(&format!("{CRATE}/Cargo.toml"));
    let manifest = manifest.replace("../..", root.to_str().unwrap());
    std::fs::write(to.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root.join(CRATE).join("src/main.rs"), to.join("src/main.rs")).unwrap();
    std::fs::copy(root.join("Cargo.lock"), to.join("Cargo.lock")).unwrap();
}

/// Where the build is kept from one run of this test to the next.
fn target() -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_burst"));
    command.ancestors().nth(2).unwrap().join("outside")
}

fn the_fifteen_lines_say_what_the_camera_shows_from_a_crate_of_their_own(_: BuildOfItsOwn) {
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    let target = target();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet", "--manifest-path"])
        .arg(folder.path().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let service = Service::start();
    let mut program = Command::new(target.join("debug/camera-to-label"));
    program.current_dir(repository()).env("BURST_SOCKET", service.path());
    program.stdin(Stdio::null()).stderr(Stdio::inherit());
    let mut program = Process::start(program);
    for _ in 0..20 {
        let line = program.line();
        let (label, score) = line.trim_end().rsplit_once(' ').unwrap_or_default();
        assert!(burst_camera::LABELS.contains(&label), "{line:?}");
        assert!((0.5..=1.0).contains(&score.parse::<f32>().unwrap()), "{line:?}");
    }
}
