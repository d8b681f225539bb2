//! Compilations that are kept in files.

use std::path::Path;
use std::sync::Arc;

use burst_driver::{CacheKey, CpuDevice, DeviceOptions, Engine, Variant};
use burst_hal::OperationType;

use super::support::*;
use crate::partition::Plan;
use crate::{Compilation, Model, Registry, RuntimeDevice};

/// The CPU, with a key of its own.
fn caching() -> Arc<RuntimeDevice> {
    let device = CpuDevice::default().with_cache_key(CacheKey::new([7; 32]));
    RuntimeDevice::local(Arc::new(device)).unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn compile(
    model: &Arc<Model>,
    device: &Arc<RuntimeDevice>,
    folder: &Path,
    change: impl FnOnce(&Compilation),
) -> Arc<Compilation> {
    let compilation = Compilation::for_devices(model, std::slice::from_ref(device)).unwrap();
    compilation.set_caching(folder, [1; 32]).unwrap();
    change(&compilation);
    compilation.finish().unwrap();
    compilation
}

#[test]
fn a_compilation_is_kept_and_taken_and_made_again_where_its_files_are_spoilt() {
    let folder = tempfile::tempdir().unwrap();
    let (device, model) = (caching(), chain());
    let first = compile(&model, &device, folder.path(), |_| {});
    assert_eq!(run(&first, &CHAIN_IN).unwrap(), CHAIN_OUT);
    let kept = files(folder.path());
    assert!(!kept.is_empty());
    let before: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(before.iter().any(|bytes| !bytes.is_empty()));
    let second = compile(&model, &device, folder.path(), |_| {});
    assert_eq!(run(&second, &CHAIN_IN).unwrap(), CHAIN_OUT);
    let after: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(before, after, "it was taken, not made");

    for path in &kept {
        std::fs::write(path, b"spoilt").unwrap();
    }
    let third = compile(&model, &device, folder.path(), |_| {});
    assert_eq!(run(&third, &CHAIN_IN).unwrap(), CHAIN_OUT);
    assert_ne!(std::fs::read(&kept[0]).unwrap(), b"spoilt", "it was kept again");

    // Other options are another compilation.
    compile(&model, &device, folder.path(), |other| other.set_priority(110).unwrap());
    compile(&model, &device, folder.path(), |other| other.set_preference(0).unwrap());
    compile(&model, &device, folder.path(), |other| {
        other.set_caching(folder.path(), [2; 32]).unwrap();
    });
    assert_eq!(files(folder.path()).len(), kept.len() * 4);
}

#[test]
fn each_step_is_kept_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let inner = Arc::new(CpuDevice::default().with_cache_key(CacheKey::new([7; 32])));
    let (adder, keeps) = around(inner, "adder", &[OperationType::Add]);
    let (multiplier, forgets) = faulty("multiplier", &[OperationType::Mul]);
    let per_step = adder.cache_files_needed().model + adder.cache_files_needed().data;
    let devices = [adder, multiplier].map(|device| RuntimeDevice::local(device).unwrap());
    let registry = Registry::of(devices.into_iter().chain([reference()]).collect());
    let model = chain();
    for round in 1..3 {
        let compilation = Compilation::new(&model, &registry).unwrap();
        compilation.set_caching(folder.path(), [1; 32]).unwrap();
        compilation.finish().unwrap();
        assert!(matches!(&*compilation.plan().unwrap(), Plan::Compound(_)));
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
        assert_eq!(files(folder.path()).len(), 2 * per_step as usize, "one has two steps");
        assert_eq!((keeps.prepared(), forgets.prepared()), (2, round), "the other keeps nothing");
    }
}

#[test]
fn steps_of_both_branches_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let inner = Arc::new(CpuDevice::default().with_cache_key(CacheKey::new([7; 32])));
    let (adder, keeps) = around(inner, "adder", &[OperationType::Add, OperationType::Sub]);
    let (multiplier, _) = faulty("multiplier", &[OperationType::Mul]);
    let devices = [adder, multiplier].map(|device| RuntimeDevice::local(device).unwrap());
    let registry = Registry::of(devices.into_iter().chain([reference()]).collect());
    // The second operation of each branch is the adder's: one adds, the other subtracts.
    let (then, otherwise) = (OperationType::Add, OperationType::Sub);
    let model = branching([OperationType::Mul, then], [OperationType::Mul, otherwise]);
    for _ in 0..2 {
        let compilation = Compilation::new(&model, &registry).unwrap();
        compilation.set_caching(folder.path(), [1; 32]).unwrap();
        compilation.finish().unwrap();
        assert!(matches!(&*compilation.plan().unwrap(), Plan::Compound(_)));
        let added = branched(&compilation, true).unwrap();
        assert_eq!(added, CHAIN_IN.map(|x| x * x + x + x));
        assert_eq!(branched(&compilation, false).unwrap(), CHAIN_IN.map(|x| x * x - x + x));
        assert_eq!(keeps.prepared(), 3, "each step once, and then taken");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_no_error() {
    let (device, model) = (caching(), chain());
    for folder in ["/none/such", "/proc", "/dev/null"] {
        let compilation = compile(&model, &device, Path::new(folder), |_| {});
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT, "{folder}");
    }
}

/// The CPU in this process, with its key in this folder.
fn cpu_with_state(state: &Path) -> Arc<RuntimeDevice> {
    let engine = Arc::new(Engine::new(DeviceOptions::default()));
    RuntimeDevice::cpu_with(&engine, &Variant::CPU, Some(state.to_owned())).unwrap()
}

/// `x * weights + shift`, each with a factor: models that differ in nothing but constants.
fn scaled(factor: f32) -> Arc<Model> {
    let net = Net::new();
    let (x, none) = (net.floats(&[4]), net.int(0));
    let weights: Vec<f32> = [1.0, 2.0, 3.0, 4.0].iter().map(|one| one * factor).collect();
    let (weights, shift) = (net.constant(&[4], &weights), net.constant(&[4], &[factor; 4]));
    let (product, y) = (net.floats(&[4]), net.floats(&[4]));
    net.run(OperationType::Mul, &[x, weights, none], product);
    net.run(OperationType::Add, &[product, shift, none], y);
    net.finish(&[x], &[y])
}

/// Gives the files a time long past; whoever writes them later gives them another.
fn make_old(files: &[std::path::PathBuf]) {
    for path in files {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
}

fn are_old(files: &[std::path::PathBuf]) -> bool {
    let modified = |path: &std::path::PathBuf| path.metadata().unwrap().modified().unwrap();
    files.iter().all(|path| modified(path) == std::time::UNIX_EPOCH)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_cpu_in_this_process_keeps_compilations_for_who_asks_and_takes_them_again() {
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = scaled(0.1);
    let plain = Compilation::for_devices(&model, &[cpu_with_state(state.path())]).unwrap();
    plain.finish().unwrap();
    assert!(files(state.path()).is_empty(), "nobody has asked for a key");
    let want = bits(&run(&plain, &CHAIN_IN).unwrap());
    let first = compile(&model, &cpu_with_state(state.path()), folder.path(), |_| {});
    assert_eq!(bits(&run(&first, &CHAIN_IN).unwrap()), want);
    let (kept, keys) = (files(folder.path()), files(state.path()));
    assert_eq!((kept.len(), keys.len()), (2, 1));
    // Another program of this user, later.
    make_old(&kept);
    let second = compile(&model, &cpu_with_state(state.path()), folder.path(), |_| {});
    assert_eq!(bits(&run(&second, &CHAIN_IN).unwrap()), want);
    assert!(are_old(&kept), "it was taken, and not written again");
    // Without that key they are somebody else's.
    std::fs::remove_file(&keys[0]).unwrap();
    let third = compile(&model, &cpu_with_state(state.path()), folder.path(), |_| {});
    assert_eq!(bits(&run(&third, &CHAIN_IN).unwrap()), want);
    assert!(!are_old(&kept), "they were made again");
}

#[test]
fn without_a_place_for_a_key_nothing_is_kept_and_all_works() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Engine::new(DeviceOptions::default()));
    for state in [None, Some("/dev/null".into())] {
        let device = RuntimeDevice::cpu_with(&engine, &Variant::CPU, state).unwrap();
        let compilation = compile(&chain(), &device, folder.path(), |_| {});
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn files_that_are_spoilt_cut_swapped_or_of_others_never_give_a_wrong_model() {
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let device = cpu_with_state(state.path());
    let (model, other) = (scaled(0.1), scaled(0.7));
    let plain = Compilation::for_devices(&model, std::slice::from_ref(&device)).unwrap();
    plain.finish().unwrap();
    let want = bits(&run(&plain, &CHAIN_IN).unwrap());
    let check = |what: &str| {
        let compilation = compile(&model, &device, folder.path(), |_| {});
        assert_eq!(bits(&run(&compilation, &CHAIN_IN).unwrap()), want, "{what}");
    };
    check("the first time");
    let kept = files(folder.path());
    let sound: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let put = |contents: &[Vec<u8>]| {
        for (path, bytes) in kept.iter().zip(contents) {
            std::fs::write(path, bytes).unwrap();
        }
        make_old(&kept);
    };
    // A model that differs in constants alone, under the same token and so the same names.
    compile(&other, &device, folder.path(), |_| {});
    assert_eq!(files(folder.path()), kept, "the token is the application's");
    std::fs::remove_file(&kept[0]).unwrap();
    std::fs::remove_file(&kept[1]).unwrap();
    let spoilt = compile(&other, &device, folder.path(), |_| {});
    assert_ne!(bits(&run(&spoilt, &CHAIN_IN).unwrap()), want);
    let foreign: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for mixed in [[&foreign[0], &sound[1]], [&sound[0], &foreign[1]], [&sound[1], &sound[0]]] {
        put(&mixed.map(Vec::clone));
        check("files of two compilations");
        assert!(!are_old(&kept), "they were made again");
    }
    for (file, bytes) in sound.iter().enumerate() {
        let step = (bytes.len() / 97).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut contents = sound.clone();
            contents[file][at] ^= 0x10;
            put(&contents);
            check(&format!("byte {at} of file {file}"));
            assert!(!are_old(&kept), "byte {at} of file {file}: they were made again");
            contents[file].truncate(at);
            put(&contents);
            check(&format!("file {file} cut at {at}"));
        }
        let mut longer = sound.clone();
        longer[file].extend([0; 16]);
        put(&longer);
        check(&format!("file {file} and more"));
    }
    put(&sound);
    check("as they were");
    assert!(are_old(&kept), "these are taken");
}
