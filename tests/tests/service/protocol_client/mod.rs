//! A client of the service written from `docs/PROTOCOL.md` alone: `std`, `rustix` for sockets, memory
//! and futexes, `burst_shm` for mapping. What it cannot say or understand, the page lacks.
//!
//! It needs one thing beside this folder: the program `burst_peer`, which offers the CPU driver with
//! `serve-cpu PATH`.
#![allow(unreachable_pub, reason = "a module of tests, whose parts see each other")]
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

mod bytes;
mod client;
mod connection;
mod conversation;
mod model;
mod packet;
mod queue;

use std::path::Path;

/// What would make this no proof.
#[test]
fn its_sources_name_no_crate_that_speaks_the_protocol() {
    // From the root of the workspace, wherever this folder lies in it.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = root.join(Path::new(file!()).parent().unwrap());
    // Written with a space, so that this file does not contain what it looks for.
    let others = ["burst _wire", "burst _client", "burst _server", "burst _hal", "burst _driver"];
    let more =
        ["burst _harness", "burst _tflite", "burst _tests", "burst _support", "fm q", "binc ode"];
    let words: Vec<String> = others.iter().chain(&more).map(|word| word.replace(' ', "")).collect();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        files += 1;
        for word in &words {
            assert!(!source.contains(word.as_str()), "{} names {word}", path.display());
        }
    }
    assert_eq!(files, 8);
}
