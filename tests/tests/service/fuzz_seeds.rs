//! Every fuzz target with its kept seeds and a fixed number of their mutations: what `fuzz/run`
//! does with a search behind it, here without one, the same on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use burst_tests::repository;
use fuzz::{Mutator, TARGETS, Target};

/// Mutations per target, and for those whose runs are mostly system calls.
const MUTATIONS: usize = 20_000;
const SLOW_MUTATIONS: usize = 2_000;

fn folder(target: &Target) -> PathBuf {
    repository().join("fuzz/seeds").join(target.name)
}

/// The kept seeds by name; those named `found_*` are inputs that once were a finding.
fn kept(target: &Target) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder(target)).expect("every target has a folder of seeds");
    entries
        .map(|entry| {
            let entry = entry.expect("a readable folder");
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("a readable seed"))
        })
        .collect()
}

/// Runs a target's seeds, then mutations of them.
fn shake(name: &str, mutations: usize) {
    let target = fuzz::target(name).expect("a target of this name");
    let seeds = kept(target);
    let passed = seeds.values().filter(|seed| (target.run)(seed)).count();
    assert!(passed > 0, "no seed gets past the first checks");
    let seeds: Vec<Vec<u8>> = seeds.into_values().collect();
    let mut mutator = Mutator::new(0x9E37_79B9_7F4A_7C15);
    let mut passed = 0;
    for number in 0..mutations {
        let input = mutator.mutated(&seeds);
        // Shown only when the test fails: which input it was.
        let at_hand = AtHand { name, number, input: &input };
        passed += usize::from((target.run)(at_hand.input));
        std::mem::forget(at_hand);
    }
    assert!(passed > 0, "no mutation gets past the first checks");
}

/// Tells on a panic how the input came about, and keeps it as a file.
struct AtHand<'a> {
    name: &'a str,
    number: usize,
    input: &'a [u8],
}

impl Drop for AtHand<'_> {
    fn drop(&mut self) {
        let file = std::env::temp_dir().join(format!("fuzz-{}-{}", self.name, self.number));
        let kept = fs::write(&file, self.input);
        eprintln!(
            "mutation {} of {}: kept as {} ({kept:?}); run it with\n  cargo run -p fuzz -- replay {} {}",
            self.number,
            self.name,
            file.display(),
            self.name,
            file.display(),
        );
    }
}

#[test]
fn control_message() {
    shake("control_message", MUTATIONS);
}

#[test]
fn datums() {
    shake("datums", MUTATIONS);
}

#[test]
fn event_flag() {
    shake("event_flag", SLOW_MUTATIONS);
}

#[test]
fn hal_model() {
    shake("hal_model", MUTATIONS);
}

#[test]
fn memory_pool() {
    shake("memory_pool", SLOW_MUTATIONS);
}

#[test]
fn queue_descriptor() {
    shake("queue_descriptor", SLOW_MUTATIONS);
}

#[test]
fn queue_synchronized() {
    shake("queue_synchronized", SLOW_MUTATIONS);
}

#[test]
fn queue_unsynchronized() {
    shake("queue_unsynchronized", SLOW_MUTATIONS);
}

#[test]
fn request_packet() {
    shake("request_packet", MUTATIONS);
}

#[test]
fn result_packet() {
    shake("result_packet", MUTATIONS);
}

#[test]
fn socket() {
    shake("socket", SLOW_MUTATIONS);
}

#[test]
fn tflite() {
    shake("tflite", MUTATIONS);
}

#[test]
fn every_target_is_shaken_here_and_described() {
    let here = include_str!("fuzz_seeds.rs");
    let read_me = fs::read_to_string(repository().join("fuzz/README.md")).expect("fuzz/README.md");
    for target in TARGETS {
        assert!(here.contains(&format!("shake(\"{}\", ", target.name)), "{}", target.name);
        assert!(read_me.contains(&format!("| `{}` |", target.name)), "{}", target.name);
    }
}

/// A format of ours that changed makes old seeds worthless: then they have to be written again.
/// `.tflite` is not ours: there old files stay as good as new ones, so only names are compared.
#[test]
fn kept_seeds_are_those_that_the_generators_make() {
    for target in TARGETS {
        let mut kept = kept(target);
        kept.retain(|name, _| !name.starts_with("found_"));
        let mut made: BTreeMap<String, Vec<u8>> = (target.seeds)().into_iter().collect();
        if target.name == "tflite" {
            kept.values_mut().chain(made.values_mut()).for_each(Vec::clear);
        }
        let differ: Vec<&String> = made
            .keys()
            .chain(kept.keys())
            .filter(|name| made.get(*name) != kept.get(*name))
            .collect();
        assert!(
            differ.is_empty(),
            "{}: {differ:?} differ; write them with `cargo run -p fuzz -- seeds fuzz/seeds`",
            target.name
        );
    }
}
