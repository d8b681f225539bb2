//! How the shared object is linked: its name, its version nodes, and that it stays loaded.
//!
//! Why and with which linker: docs/decisions/0033-symbol-versions.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The list of exported functions: `NODE NAME` in each line.
const EXPORTS: &str = "exports.txt";

/// The node of the public functions, which all other nodes inherit.
const PUBLIC: &str = "LIBNEURALNETWORKS";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={EXPORTS}");
    println!("cargo::rerun-if-changed=build.rs");
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return Ok(());
    }
    let script = PathBuf::from(variable("OUT_DIR")).join("libneuralnetworks.map");
    fs::write(&script, version_script(&fs::read_to_string(EXPORTS)?))?;
    link("-Wl,-soname,libneuralnetworks.so");
    // Threads of ours may run until the process ends: their code must not be unmapped before.
    link("-Wl,-z,nodelete");
    link(&format!("-Wl,--version-script={}", script.display()));
    // Tests are linked with it, too, and have none of the names.
    link("-Wl,--undefined-version");
    if let Some(folder) = own_linker() {
        link("-fuse-ld=lld");
        link(&format!("-B{}", folder.display()));
    }
    Ok(())
}

fn link(argument: &str) {
    // Not `rustc-cdylib-link-arg`, which Cargo hands on to the libraries of whoever uses this package: they
    // would get our name and export our functions.
    println!("cargo::rustc-link-arg={argument}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The nodes with their names, the public one first.
fn version_script(exports: &str) -> String {
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (node, name) in exports.lines().filter_map(|line| line.split_once(' ')) {
        nodes.entry(node).or_default().push(name);
    }
    let mut script = String::new();
    let public = nodes.remove(PUBLIC).unwrap_or_default();
    write_node(&mut script, PUBLIC, &public, "");
    for (node, names) in nodes {
        write_node(&mut script, node, &names, PUBLIC);
    }
    script
}

fn write_node(script: &mut String, node: &str, names: &[&str], inherited: &str) {
    let names: String = names.iter().map(|name| format!("    {name};\n")).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(script, "{node} {{\n  global:\n{names}}} {inherited};");
}

/// The folder with the linker that comes with the compiler, under the name by which a C compiler finds it.
fn own_linker() -> Option<PathBuf> {
    let rustc = env::var_os("RUSTC")?;
    let printed = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(printed.stdout).ok()?;
    let host = Path::new(root.trim()).join("lib/rustlib").join(variable("HOST"));
    Some(host.join("bin/gcc-ld")).filter(|folder| folder.join("ld.lld").is_file())
}
