//! Says which build of the driver this is: files that one build has written are of no use to another, which
//! may plan and compute otherwise.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What decides how models are planned and computed, seen from this folder.
const SOURCES: [&str; 5] = ["src", "build.rs", "../hal/src", "../Cargo.toml", "../Cargo.lock"];
/// What the compiler was asked for.
const ASKED: [&str; 4] =
    ["TARGET", "OPT_LEVEL", "CARGO_CFG_TARGET_FEATURE", "CARGO_ENCODED_RUSTFLAGS"];

fn main() {
    let mut digest = Digest::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(Path::new(source), &mut digest);
    }
    for name in ASKED {
        println!("cargo::rerun-if-env-changed={name}");
        digest.add(env::var(name).unwrap_or_default().as_bytes());
    }
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("-vV").output();
    digest.add(&version.map(|output| output.stdout).unwrap_or_default());
    println!("cargo::rustc-env=BURST_DRIVER_BUILD={:032x}", digest.0);
}

/// Adds a file, or all files of a folder by name.
fn add(path: &Path, digest: &mut Digest) {
    digest.add(path.to_string_lossy().as_bytes());
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        inside.sort();
        inside.iter().for_each(|path| add(path, digest));
    } else {
        // What is not there, such as the list of versions in a package by itself, is as good as empty.
        digest.add(&fs::read(path).unwrap_or_default());
    }
}

/// FNV-1a of 128 bits: builds are to be told apart, not protected from each other.
struct Digest(u128);

impl Digest {
    fn new() -> Self {
        Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(1 << 88 | 0x13b);
        }
    }
}
