//! What `dist/package` made, unpacked and used. The packages are a release build, which no `cargo test` makes:
//!
//! ```sh
//! dist/package && BURST_PACKAGES=target/package cargo test -p burst --test command package::
//! ```

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use burst_testing::{Missing, program};
use serde_json::Value;

use crate::pages::{offered_by_bash, page_of};
use crate::readme::help;
use crate::support::{self, repository};

burst_testing::tests![
    the_deb_has_the_program_units_completions_and_pages(&deb()?, &program("dpkg-deb")?),
    the_deb_depends_on_what_the_program_links(&deb()?, &program("dpkg-deb")?),
    the_main_job_runs_where_there_is_nothing_but_what_the_deb_depends_on(
        &deb()?,
        &program("dpkg-deb")?,
        &namespaces()?,
    ),
    systemd_finds_no_fault_in_the_units_of_the_deb(
        &deb()?,
        &program("dpkg-deb")?,
        &program("systemd-analyze")?,
    ),
    the_manual_finds_the_pages_of_the_deb(&deb()?, &program("dpkg-deb")?, &program("man")?),
    bash_completes_with_the_completions_of_the_deb(
        &deb()?,
        &program("dpkg-deb")?,
        &program("bash")?,
    ),
    the_archive_runs_where_it_was_unpacked(&packaged(".tar.gz")?, &program("tar")?),
    a_program_in_c_is_built_with_what_the_archive_has(
        &packaged(".tar.gz")?,
        &program("tar")?,
        &program("cc")?,
        &program("pkg-config")?,
    ),
];

/// The package with this ending.
fn packaged(ending: &str) -> Result<PathBuf, Missing> {
    let how = "BURST_PACKAGES: dist/package && BURST_PACKAGES=target/package cargo test -p burst \
               --test command package::";
    let folder = std::env::var_os("BURST_PACKAGES").ok_or_else(|| Missing::new(how))?;
    // Cargo runs tests in the folder of their package; the variable is meant from the repository's root.
    let folder = repository().join(folder);
    let files = fs::read_dir(&folder).map(|entries| entries.flatten().map(|entry| entry.path()));
    let named = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
    let found = files.ok().and_then(|mut files| files.find(named));
    found.ok_or_else(|| Missing::new(format!("a {ending} in {}, which {how}", folder.display())))
}

fn deb() -> Result<PathBuf, Missing> {
    packaged(".deb")
}

/// A program that makes a root of its own for another one.
fn namespaces() -> Result<PathBuf, Missing> {
    let unshare = program("unshare")?;
    let tried = Command::new(&unshare).args(NAMESPACES).arg("true").stderr(Stdio::null()).status();
    match tried.is_ok_and(|status| status.success()) {
        true => Ok(unshare),
        false => Err(Missing::new("user namespaces, which this system does not allow")),
    }
}

const NAMESPACES: [&str; 5] = ["--user", "--map-root-user", "--mount", "--pid", "--fork"];

/// Runs a program to its end, which has to be a good one.
fn done(program: &Path, args: &[&OsStr]) -> Output {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", program.display());
    output
}

fn unpacked(deb: &Path, dpkg_deb: &Path) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    done(dpkg_deb, &[OsStr::new("-x"), deb.as_os_str(), root.path().as_os_str()]);
    root
}

/// A field of the package's control file.
fn field(deb: &Path, dpkg_deb: &Path, name: &str) -> String {
    let output = done(dpkg_deb, &[OsStr::new("-f"), deb.as_os_str(), OsStr::new(name)]);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn the_deb_has_the_program_units_completions_and_pages(deb: &Path, dpkg_deb: &Path) {
    let root = unpacked(deb, dpkg_deb);
    let at = |path: &str| root.path().join("usr").join(path);
    for path in [
        "share/bash-completion/completions/burst",
        "share/zsh/vendor-completions/_burst",
        "share/fish/vendor_completions.d/burst.fish",
        "share/doc/burst/copyright",
        "share/doc/burst/changelog.gz",
        "lib/sysusers.d/burst.conf",
        "lib/libburst_capi.so",
        "lib/pkgconfig/burst.pc",
        "include/burst.h",
    ] {
        assert!(fs::metadata(at(path)).is_ok_and(|file| file.len() > 0), "{path}");
    }
    for command in help().keys() {
        let page = format!("share/man/man1/{}.gz", page_of(command));
        assert!(at(&page).is_file(), "{page}");
    }
    for unit in ["burst.service", "burst.socket"] {
        let ours = fs::read(repository().join("dist").join(unit)).unwrap();
        assert_eq!(fs::read(at("lib/systemd/system").join(unit)).unwrap(), ours, "{unit}");
    }
    assert!(!has_symbols(&fs::read(at("bin/burst")).unwrap()), "stripped");
    assert!(has_symbols(&fs::read(env!("CARGO_BIN_EXE_burst")).unwrap()), "not stripped");
    let group = fs::read_to_string(at("lib/sysusers.d/burst.conf")).unwrap();
    let socket = fs::read_to_string(at("lib/systemd/system/burst.socket")).unwrap();
    assert!(group.contains("\ng burst ") && socket.contains("SocketGroup=burst"));
    assert_eq!(field(deb, dpkg_deb, "Version"), env!("CARGO_PKG_VERSION"));
}

/// Whether an ELF file of 64 bits has a section with symbols.
fn has_symbols(elf: &[u8]) -> bool {
    const SYMBOL_TABLE: u64 = 2;
    let number = |at: usize, bytes: usize| -> u64 {
        elf[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let (table, entry, count) = (number(0x28, 8), number(0x3A, 2), number(0x3C, 2));
    let mut sections = (0..count).map(|index| usize::try_from(table + index * entry).unwrap());
    sections.any(|section| number(section + 4, 4) == SYMBOL_TABLE)
}

/// The packages that it depends on.
fn depends(deb: &Path, dpkg_deb: &Path) -> Vec<String> {
    let text = field(deb, dpkg_deb, "Depends");
    text.split(", ").map(|one| one.split(' ').next().unwrap().to_owned()).collect()
}

fn the_deb_depends_on_what_the_program_links(deb: &Path, dpkg_deb: &Path) {
    let packages = depends(deb, dpkg_deb);
    assert!(packages.iter().any(|name| name.starts_with("libc6")), "{packages:?}");
    assert!(packages.len() <= 3, "the C library and that of exceptions: {packages:?}");
}

/// Puts the shared objects of an installed package into `root`, whose `/lib` and `/lib64` are those of `/usr`.
fn add_libraries(root: &Path, package: &str) {
    let listed = done(Path::new("dpkg-query"), &[OsStr::new("-L"), OsStr::new(package)]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_library = |path: &&str| Path::new(path).is_file() && path.contains(".so");
    let libraries: Vec<&str> = listed.lines().filter(is_library).collect();
    assert!(!libraries.is_empty(), "{package} has no library");
    for library in libraries {
        let below = library.strip_prefix("/usr").unwrap_or(library);
        let to = root.join("usr").join(below.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(library, to).unwrap();
    }
}

fn the_main_job_runs_where_there_is_nothing_but_what_the_deb_depends_on(
    deb: &Path,
    dpkg_deb: &Path,
    unshare: &Path,
) {
    let root = unpacked(deb, dpkg_deb);
    for package in depends(deb, dpkg_deb) {
        add_libraries(root.path(), &package);
    }
    for name in ["lib", "lib64"] {
        std::os::unix::fs::symlink(format!("usr/{name}"), root.path().join(name)).unwrap();
    }
    for folder in ["proc", "dev"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("dev/null"), "").unwrap();
    // What a kernel gives every process: /proc, and a place for what nobody reads.
    const ENTER: &str = r#"
        mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" &&
        exec chroot "$1" /usr/bin/burst stream --frames 50 --json
    "#;
    let mut command = Command::new(unshare);
    command.args(NAMESPACES).args(["sh", "-c", ENTER, "sh"]).arg(root.path());
    let output = command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    assert_answers(&output);
}

/// The main job did its work in another process.
fn assert_answers(output: &Output) {
    assert!(output.status.success(), "{output:?}");
    let report: Value = support::json(output);
    assert_eq!((&report["frames"], &report["errors"]), (&50.into(), &0.into()), "{report}");
    assert_ne!(report["driver_pid"], report["client_pid"]);
}

fn systemd_finds_no_fault_in_the_units_of_the_deb(deb: &Path, dpkg_deb: &Path, analyze: &Path) {
    let root = unpacked(deb, dpkg_deb);
    let installed = root.path().join("usr/bin/burst");
    let units = root.path().join("usr/lib/systemd/system");
    let service = units.join("burst.service");
    let text = fs::read_to_string(&service).unwrap();
    fs::write(&service, text.replace("/usr/bin/burst", installed.to_str().unwrap())).unwrap();
    let mut command = Command::new(analyze);
    let output = command.arg("verify").arg(&service).arg(units.join("burst.socket")).output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    let about_ours: Vec<&str> = said.lines().filter(|line| line.contains("burst.")).collect();
    assert!(about_ours.is_empty(), "{about_ours:#?}");
}

fn the_manual_finds_the_pages_of_the_deb(deb: &Path, dpkg_deb: &Path, man: &Path) {
    let root = unpacked(deb, dpkg_deb);
    let pages = root.path().join("usr/share/man");
    let output = done(man, &[OsStr::new("-M"), pages.as_os_str(), OsStr::new("burst-stream")]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("--reconnect"), "{text}");
}

fn bash_completes_with_the_completions_of_the_deb(deb: &Path, dpkg_deb: &Path, bash: &Path) {
    let root = unpacked(deb, dpkg_deb);
    let script = root.path().join("usr/share/bash-completion/completions/burst");
    let offered = |words: &[&str]| offered_by_bash(bash, &script, root.path(), words);
    assert_eq!(offered(&["burst", "cal"]), ["calibrate"]);
    assert_eq!(offered(&["burst", "stream", "--model", "us"]), ["usr"]);
}

/// The one folder that is in an archive.
fn in_the_archive(archive: &Path, tar: &Path, folder: &Path) -> PathBuf {
    let into = [OsStr::new("-C"), folder.as_os_str()];
    done(tar, &[OsStr::new("-xzf"), archive.as_os_str(), into[0], into[1]]);
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

fn a_program_in_c_is_built_with_what_the_archive_has(
    archive: &Path,
    tar: &Path,
    cc: &Path,
    pkg_config: &Path,
) {
    let folder = tempfile::tempdir().unwrap();
    let only = in_the_archive(archive, tar, folder.path());
    let mut asked = Command::new(pkg_config);
    asked.env("PKG_CONFIG_PATH", only.join("lib/pkgconfig")).args(["--cflags", "--libs", "burst"]);
    let said = asked.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let flags = String::from_utf8(said.stdout).unwrap();
    let built = folder.path().join("frame");
    let source = only.join("share/doc/burst/examples/frame.c");
    let mut args = vec![source.as_os_str(), OsStr::new("-o"), built.as_os_str()];
    args.extend(flags.split_whitespace().map(OsStr::new));
    done(cc, &args);
    let service = support::Service::start();
    let mut program = Command::new(built);
    program.env("LD_LIBRARY_PATH", only.join("lib"));
    program.arg(service.path()).arg(repository().join("models/shapes.tflite"));
    let said = program.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert!(String::from_utf8(said.stdout).unwrap().starts_with("class "));
}

fn the_archive_runs_where_it_was_unpacked(archive: &Path, tar: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let only = in_the_archive(archive, tar, folder.path());
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    assert_eq!(only.file_name().unwrap(), name, "one folder, named as the archive");
    let args = ["stream", "--frames", "50", "--json"].map(OsStr::new);
    assert_answers(&done(&only.join("bin/burst"), &args));
    assert!(only.join("share/man/man1/burst.1.gz").is_file());
    let unit = fs::read_to_string(only.join("lib/systemd/system/burst.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/local/bin/burst serve"));
}
