//! The table against the folders, and every kernel against its reference.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::super::simd::{Isa, Level};
use super::*;

fn kernels_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/kernels")
}

fn family(info: &KernelInfo) -> &'static str {
    info.name.split_once('/').expect("family/kernel").0
}

/// Folders without kernels of operations: what kernels stand on, and what they are compared with.
const NO_FAMILIES: [&str; 2] = ["simd", "peak"];

/// Folders of families.
fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(kernels_folder()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|folder| !NO_FAMILIES.contains(&folder.as_str()))
        .collect()
}

#[test]
fn every_folder_has_its_kernels_in_the_table_and_every_row_its_folder() {
    let families: BTreeSet<String> = KERNELS.iter().map(|info| family(info).to_owned()).collect();
    assert_eq!(families, folders());
}

#[test]
fn every_announcement_has_one_row_in_order() {
    let listed: Vec<&str> = KERNELS.iter().map(|info| info.name).collect();
    assert!(listed.is_sorted_by(|a, b| a < b), "not in order, or a kernel listed twice");
    let mut announced = Vec::new();
    for folder in folders() {
        let prefix = format!("= \"{folder}/");
        let in_braces = format!("name: \"{folder}/");
        for file in fs::read_dir(kernels_folder().join(&folder)).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let lines = text.lines().map(str::trim);
            let names = lines.filter(|line| line.contains(&prefix) || line.contains(&in_braces));
            announced.extend(names.map(|line| line.split('"').nth(1).unwrap().to_owned()));
        }
    }
    announced.sort();
    assert_eq!(listed, announced);
}

#[test]
fn a_body_for_an_instruction_set_stands_in_the_file_of_its_name() {
    for folder in folders() {
        let written_for = |levels: &[Level]| {
            let own = KERNELS.iter().filter(|info| family(info) == folder);
            own.flat_map(|info| info.written_for).any(|level| levels.contains(level))
        };
        for (file, levels) in [
            ("avx2.rs", &[Level::Avx2][..]),
            ("avx_vnni.rs", &[Level::AvxVnni]),
            ("avx512.rs", &[Level::Avx512, Level::Vnni]),
            ("neon.rs", &[Level::Neon, Level::DotProd, Level::I8mm]),
        ] {
            let is_there = kernels_folder().join(&folder).join(file).is_file();
            assert_eq!(is_there, written_for(levels), "{folder}/{file}");
        }
    }
}

#[test]
fn what_has_a_body_for_avx_512_has_one_for_avx2() {
    let lacking = KERNELS.iter().filter(|info| {
        info.written_for.contains(&Level::Avx512) && !info.written_for.contains(&Level::Avx2)
    });
    assert_eq!(lacking.map(|info| info.name).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_kernel_equals_its_reference_at_every_level() {
    for (info, compare) in COMPARISONS {
        let is_portable_only = info.compiled_for == [Level::Portable];
        assert_eq!(compare.is_none(), is_portable_only, "{}: comparison", info.name);
        assert!(info.written_for.iter().all(|level| info.compiled_for.contains(level)));
        assert!(!info.operations.is_empty() && !info.types.is_empty(), "{}", info.name);
        let Some(compare) = compare else { continue };
        for isa in Isa::each_here().filter(|isa| info.level(*isa).is_some()) {
            // Named in the output of a test that fails.
            println!("{} at {:?}", info.name, isa.level());
            compare(isa);
        }
    }
}

#[test]
fn a_kernel_runs_at_the_highest_level_that_is_allowed() {
    let all = Isa { avx2: true, avx_vnni: true, avx512: true, vnni: true, ..Isa::PORTABLE };
    assert_eq!(lut::TABLE.level(all), Some(Level::Portable));
    assert_eq!(argmax::POSITIONS.level(all), Some(Level::Avx512));
    assert_eq!(argmax::POSITIONS.level(Isa::PORTABLE), Some(Level::Portable));
    assert_eq!(matmul_quantized::QUADS.level(all), Some(Level::Vnni));
    let without_vnni = Isa { vnni: false, ..all };
    assert_eq!(matmul_quantized::QUADS.level(without_vnni), Some(Level::AvxVnni));
    let without_both = Isa { avx_vnni: false, ..without_vnni };
    assert_eq!(matmul_quantized::QUADS.level(without_both), None);
    assert_eq!(argmax::POSITIONS.level(without_both), Some(Level::Avx512));
    let arm = Isa { neon: true, dotprod: true, i8mm: true, ..Isa::PORTABLE };
    assert_eq!(
        argmax::POSITIONS.level(arm),
        Some(Level::Portable),
        "not one of another architecture"
    );
    assert_eq!(requantize::ROWS.level(arm), Some(Level::Neon));
    assert_eq!(matmul_quantized::QUADS.level(arm), Some(Level::I8mm));
    let without = Isa { i8mm: false, ..arm };
    assert_eq!(matmul_quantized::QUADS.level(without), Some(Level::DotProd));
    assert_eq!(matmul_quantized::QUADS.level(Isa { dotprod: false, ..without }), None);
}
