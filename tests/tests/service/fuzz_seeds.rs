//! Every fuzz target with its kept seeds and a fixed number of their mutations: what `fuzz/run`
//! does with a search behind it, here without one, the same on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_hal::Device as _;
use burst_tests::repository;
use burst_verify::fuzzing::{judge_device, model_of};
use fuzz::{Mutator, TARGETS, Target};

/// Mutations per target, and for those whose runs are mostly system calls, or whole executions.
const MUTATIONS: usize = 20_000;
const SLOW_MUTATIONS: usize = 2_000;
/// What no single input may take: a thousand times what the slowest one takes. An input that takes
/// longer hangs, and fails its test by name.
const HANG: Duration = Duration::from_secs(60);

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
fn shake(name: &'static str, mutations: usize) {
    let target = fuzz::target(name).expect("a target of this name");
    let seeds: Vec<Vec<u8>> = kept(target).into_values().collect();
    let mut mutator = Mutator::new(0x9E37_79B9_7F4A_7C15);
    let mutated = seeds.clone();
    let passed = passed(name, seeds.into_iter(), target.run, HANG);
    assert!(passed > 0, "no seed gets past the first checks");
    let inputs = (0..mutations).map(move |_| mutator.mutated(&mutated));
    let passed = self::passed(name, inputs, target.run, HANG);
    assert!(passed > 0, "no mutation gets past the first checks");
}

/// How many inputs get past the target's first checks.
///
/// # Panics
/// An input panics or takes longer than `hang`: with its number, and kept as a file.
fn passed(
    name: &'static str,
    inputs: impl Iterator<Item = Vec<u8>> + Send + 'static,
    run: fn(&[u8]) -> bool,
    hang: Duration,
) -> usize {
    let (progress, steps) = channel();
    let at_hand = Arc::new(Mutex::new((0, Vec::new())));
    let current = Arc::clone(&at_hand);
    // On a thread of its own, which is left behind where an input does not come to its end.
    let running = std::thread::spawn(move || {
        let mut passed = 0;
        for (number, input) in inputs.enumerate() {
            *current.lock().expect("not while it runs") = (number, input.clone());
            passed += usize::from(run(&input));
            progress.send(()).expect("it is waited for");
        }
        passed
    });
    let verdict = loop {
        match steps.recv_timeout(hang) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => break Err("hangs"),
            Err(RecvTimeoutError::Disconnected) => break running.join().map_err(|_| "panics"),
        }
    };
    verdict.unwrap_or_else(|what| {
        let (number, input) = &*at_hand.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = std::env::temp_dir().join(format!("fuzz-{name}-{number}"));
        let kept = fs::write(&file, input);
        panic!(
            "input {number} of {name} {what}: kept as {} ({kept:?}); run it with\n  cargo run -p \
             fuzz -- replay {name} {}",
            file.display(),
            file.display(),
        )
    })
}

#[test]
#[should_panic(expected = "input 1 of a_made_up_target hangs")]
fn an_input_that_hangs_fails_by_its_number() {
    let run = |input: &[u8]| {
        if input == b"hang" {
            std::thread::sleep(Duration::from_secs(3600));
        }
        true
    };
    let inputs = [b"fine".to_vec(), b"hang".to_vec()].into_iter();
    passed("a_made_up_target", inputs, run, Duration::from_secs(2));
}

#[test]
fn c_api() {
    shake("c_api", SLOW_MUTATIONS);
}

#[test]
fn cache_files() {
    shake("cache_files", SLOW_MUTATIONS);
}

#[test]
fn calls() {
    shake("calls", SLOW_MUTATIONS);
}

#[test]
fn changed_model() {
    shake("changed_model", SLOW_MUTATIONS);
}

#[test]
fn compilation() {
    shake("compilation", MUTATIONS);
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
fn device() {
    shake("device", SLOW_MUTATIONS);
}

/// Of the inputs that choose a model of the generator most are prepared and executed to their end, in bounded time
/// each; all of its classes and nearly all operations are among them.
#[test]
fn models_of_the_generator_go_the_whole_way() {
    const MODELS: usize = 400;
    let device = burst_driver::CpuDevice::default();
    let mut mutator = Mutator::new(0x0DD5_EED5);
    let (mut prepared, mut ran, mut executions) = (0, 0, 0);
    let mut operations = std::collections::BTreeSet::new();
    let (mut longest, mut largest) = (Duration::ZERO, 0);
    for _ in 0..MODELS {
        // A whole one, with any choices behind it.
        let mut input = vec![192, 1, 1];
        input.extend((0..96).map(|_| u8::try_from(mutator.below(256)).expect("a byte")));
        let begun = std::time::Instant::now();
        let seen = judge_device(&device, &input).unwrap_or_else(|what| panic!("{what}: {input:?}"));
        longest = longest.max(begun.elapsed());
        assert!(seen.is_legal, "{input:?}");
        prepared += usize::from(seen.is_prepared);
        ran += usize::from(seen.succeeded > 0);
        executions += seen.executions;
        largest = largest.max(seen.operations.len());
        operations.extend(seen.operations);
    }
    println!(
        "{MODELS} models of {} operations, the largest of {largest}: {prepared} prepared, {ran} \
         ran, {executions} executions, the longest {longest:?}",
        operations.len()
    );
    assert!(largest >= 40 && operations.len() > 95, "{largest}, {}", operations.len());
    assert!(prepared * 10 > MODELS * 9 && ran * 2 > MODELS, "{prepared} prepared, {ran} ran");
    assert!(longest < HANG, "{longest:?}");
}

/// What the input `found_scales_of_unknown_shapes` once was: operands whose shapes nobody knows before the first
/// execution, said to be supported, with which a kernel could not be prepared.
#[test]
fn scales_of_unknown_shapes_are_prepared_as_announced() {
    let target = fuzz::target("device").expect("a target of this name");
    let found = &kept(target)["found_scales_of_unknown_shapes"];
    let model = model_of(found);
    let operand = |index: &u32| &model.main.operands[*index as usize];
    let is_open = |one: &burst_hal::Operand| one.ty.is_tensor() && one.dimensions.is_empty();
    let reads_open = model
        .main
        .operations
        .iter()
        .any(|operation| operation.inputs.iter().map(operand).any(is_open));
    assert!(reads_open, "an operation reads what has no shape yet");
    let device = burst_driver::CpuDevice::default();
    let supported = device.supported_operations(&model).expect("a legal model");
    assert!(!supported.is_empty() && !supported.contains(&false), "{supported:?}");
    let prepared = device.prepare_model(&model, &burst_hal::PrepareOptions::default());
    assert!(prepared.is_ok(), "{:?}", prepared.err());
}

#[test]
fn event_flag() {
    shake("event_flag", SLOW_MUTATIONS);
}

#[test]
fn extension() {
    shake("extension", SLOW_MUTATIONS);
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
fn tflite_device() {
    shake("tflite_device", SLOW_MUTATIONS);
}

#[test]
fn trace() {
    shake("trace", SLOW_MUTATIONS);
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
        if target.name.starts_with("tflite") {
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
