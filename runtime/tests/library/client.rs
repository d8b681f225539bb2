//! A client in C (`../client/`), compiled against the headers and linked with the library: a table of calls
//! and of the codes that they must answer, by groups. docs/NDK.md says which function is in which group.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use burst_testing::program;

use crate::library_folder;

burst_testing::tests![
    load(&program("cc")?),
    devices(&program("cc")?),
    operands(&program("cc")?),
    operations(&program("cc")?),
    extensions(&program("cc")?),
    compilations(&program("cc")?),
    memories(&program("cc")?),
    descriptions(&program("cc")?),
    device_memories(&program("cc")?),
    hardware_buffers(&program("cc")?),
    arguments(&program("cc")?),
    computing(&program("cc")?),
    results(&program("cc")?),
    failures(&program("cc")?),
    scalars(&program("cc")?),
    level_five(&program("cc")?),
    control_flow(&program("cc")?),
    bursts(&program("cc")?),
    events(&program("cc")?),
    fences(&program("cc")?),
    handles(&program("cc")?),
    order_of_freeing(&program("cc")?),
    forked(&program("cc")?),
    threads(&program("cc")?),
    growth(&program("cc")?),
    every_group_of_the_client_is_a_test(&program("cc")?),
    the_headers_stand_for_themselves_in_c_and_in_cpp(&program("cc")?),
    the_package_file_says_where_things_are(&program("pkg-config")?),
];

/// A test for each group of the client.
macro_rules! groups {
    ($($group:ident)*) => {
        pub(crate) const GROUPS: &[&str] = &[$(stringify!($group)),*];

        $(fn $group(cc: &Path) {
            run(cc, stringify!($group));
        })*
    };
}

groups! {
    load devices operands operations extensions compilations memories descriptions device_memories
    hardware_buffers arguments computing results failures scalars level_five control_flow bursts events
    fences handles order_of_freeing forked threads growth
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The client, compiled once for all tests.
pub(crate) fn client(cc: &Path) -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let folder = package().join("tests/client");
        let entries = fs::read_dir(&folder).expect("the sources").flatten();
        let sources = entries.map(|entry| entry.path());
        let sources = sources.filter(|path| path.extension().is_some_and(|ending| ending == "c"));
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-client");
        let library = library_folder();
        let mut command = Command::new(cc);
        command.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
        command.arg("-I").arg(package().join("include")).arg("-o").arg(&program).args(sources);
        command.arg("-L").arg(&library).arg("-lneuralnetworks");
        command.arg(format!("-Wl,-rpath,{}", library.display()));
        succeeded(&command.output().expect("cc starts"), "cc");
        program
    })
}

/// A run of the client on a machine without services, where the library has the devices of this process.
fn run(cc: &Path, group: &str) -> String {
    let mut command = Command::new(client(cc));
    alone(command.arg(group), group)
}

/// What a command says on a machine without services, which loads the library that the client was linked with: Cargo's
/// search path for its tests may have an older one in it, which `cargo build` left.
pub(crate) fn alone(command: &mut Command, what: &str) -> String {
    let empty = tempfile::tempdir().expect("a folder");
    command.env_remove("BURST_SOCKET").env_remove("LD_LIBRARY_PATH");
    command.env("XDG_RUNTIME_DIR", empty.path());
    succeeded(&command.output().expect("it starts"), what)
}

pub(crate) fn succeeded(output: &Output, what: &str) -> String {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{said}{complained}", output.status);
    said.into_owned()
}

fn every_group_of_the_client_is_a_test(cc: &Path) {
    let listed = run(cc, "--list");
    assert_eq!(listed.lines().collect::<Vec<_>>(), GROUPS);
}

/// Each header alone, as Android's sources name it, in both languages.
fn the_headers_stand_for_themselves_in_c_and_in_cpp(cc: &Path) {
    let names = [
        "NeuralNetworks.h",
        "NeuralNetworksExtensions.h",
        "android/NeuralNetworks.h",
        "android/hardware_buffer.h",
    ];
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        for name in names {
            let source = tempfile::Builder::new().suffix(".h").tempfile().expect("a file");
            fs::write(source.path(), format!("#include <{name}>\n")).expect("written");
            let mut command = Command::new(cc);
            command.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", standard]);
            command.arg("-I").arg(package().join("include"));
            command.args(["-x", language]).arg(source.path());
            let output = command.output().expect("cc starts");
            // A machine may have the one compiler without the other.
            let complained = String::from_utf8_lossy(&output.stderr);
            if !complained.contains("cc1plus") {
                succeeded(&output, name);
            }
        }
    }
}

fn the_package_file_says_where_things_are(pkg_config: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let template = fs::read_to_string(package().join("neuralnetworks.pc.in")).expect("a template");
    let file =
        template.replace("@PREFIX@", "/opt/nn").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    assert!(!file.lines().filter(|line| !line.starts_with('#')).any(|line| line.contains('@')));
    fs::write(folder.path().join("neuralnetworks.pc"), file).expect("written");
    let said = |option: &str| {
        let mut command = Command::new(pkg_config);
        command.env("PKG_CONFIG_PATH", folder.path()).args([option, "neuralnetworks"]);
        succeeded(&command.output().expect("it starts"), option).trim().to_owned()
    };
    assert_eq!(said("--cflags"), "-I/opt/nn/include/burst");
    assert_eq!(said("--libs"), "-L/opt/nn/lib -lneuralnetworks");
    assert_eq!(said("--modversion"), env!("CARGO_PKG_VERSION"));
}
