//! Circles of modules: which modules of a crate need each other.
//!
//! A crate without circles can be read, tested and taken apart from the bottom up. What counts:
//!
//! - **An arrow.** A path in module A that names something of module B draws an arrow from A to B.
//!   All paths of the sources are read: `use` lines (groups, globs, renames, within functions),
//!   paths in expressions, types, patterns and attributes, and what looks like a path in the tokens
//!   of a macro's call or definition. Links of documentation are no paths.
//! - **Where it ends.** At the module that *defines* the item: re-exports, globs and renames are
//!   followed, so a re-export alone makes no circle, and going round by one hides none. What comes
//!   from another crate belongs to the module that the path reaches it by. A variant or an
//!   associated function is where its type is; a method call is no path.
//! - **At which level.** An arrow counts among the children of the nearest module that holds both
//!   ends: one from `a::x` to `b::y::z` is an arrow from `a` to `b`. So a folder of modules is one
//!   thing to those outside of it. Between a module and those below it nothing counts.
//! - **A circle** is arrows among the children of one module that lead back to where they began.
//! - **Left out** is what is compiled for tests only: a test may look at anything.

mod attributes;
mod circles;
mod references;
mod resolve;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

/// The circles of the crate whose root is this file (`lib.rs`, `main.rs`, a binary's file).
///
/// Each is described by its modules and, one line each, the paths that lead from one to the next.
/// Every arrow that is a part of a circle is in one of those listed.
///
/// # Panics
/// With the file's name, when a file of the crate is not there or is not Rust.
#[must_use]
pub fn circles_of_crate(root: &Path) -> Vec<String> {
    let tree = tree::Tree::read(root);
    circles::circles(&tree, &references::references(&tree))
}

/// The roots of the crates that a package makes, its integration tests left out.
///
/// # Panics
/// When the package has no manifest, or one that is not TOML.
#[must_use]
pub fn crate_roots(package: &Path) -> Vec<PathBuf> {
    let manifest = package.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)
        .unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let manifest: toml::Table = text.parse().expect("a manifest");
    let tables = |key: &str| match manifest.get(key) {
        Some(toml::Value::Array(tables)) => tables.clone(),
        Some(table) => vec![table.clone()],
        None => Vec::new(),
    };
    let named = ["lib", "bin", "example", "bench"].into_iter().flat_map(tables);
    let named = named.filter_map(|table| Some(package.join(table.get("path")?.as_str()?)));
    let usual = ["src/lib.rs", "src/main.rs", "build.rs"].map(|path| package.join(path));
    let mut roots: Vec<PathBuf> = named.chain(usual).filter(|path| path.exists()).collect();
    for folder in ["src/bin", "examples", "benches"] {
        for entry in fs::read_dir(package.join(folder)).into_iter().flatten().flatten() {
            let (file, within) = (entry.path(), entry.path().join("main.rs"));
            if file.extension().is_some_and(|ending| ending == "rs") {
                roots.push(file);
            } else if within.exists() {
                roots.push(within);
            }
        }
    }
    roots.sort();
    roots.dedup();
    roots
}
