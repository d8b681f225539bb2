//! Kernels for AVX-VNNI are made of instructions that machines without AVX-512 have.
//!
//! The same multiplication has two encodings: VEX, of AVX-VNNI, and EVEX, of AVX-512 VNNI. On a machine with both no
//! other test can see which one a kernel was compiled to. So this one disassembles the program that it is a part of.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::process::Command;

use burst_testing::{Missing, program};

burst_testing::tests![kernels_for_avx_vnni_have_no_instructions_of_avx_512(&objdump()?)];

/// What a kernel's functions have in their names.
const NAMES: [&str; 2] = ["matmul_quantized", "avx_vnni"];
/// The multiplication.
const PRODUCT: &str = "vpdpbusd";
/// First bytes of an instruction that is encoded as AVX's are, in three bytes, and as AVX-512's are.
const VEX: &str = "c4";
const EVEX: &str = "62";

/// A program that disassembles this one.
fn objdump() -> Result<PathBuf, Missing> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Missing::new("an x86-64 CPU"));
    }
    program("objdump")
}

fn said(objdump: &Path, options: &[&str]) -> String {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(objdump).args(options).arg(this).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where a line of the symbol table says that a kernel's function lies, and how long it is.
fn function(line: &str) -> Option<(u64, u64)> {
    let (place, rest) = line.split_once('\t')?;
    let (length, name) = rest.split_once(' ')?;
    let is_one = place.contains(".text") && NAMES.iter().all(|part| name.contains(part));
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    is_one.then(|| (number(place.split(' ').next().unwrap()), number(length)))
}

fn kernels_for_avx_vnni_have_no_instructions_of_avx_512(objdump: &Path) {
    let symbols = said(objdump, &["--syms"]);
    let mut products = 0;
    for (from, length) in symbols.lines().filter_map(function) {
        let start = format!("--start-address={from:#x}");
        let stop = format!("--stop-address={:#x}", from + length);
        for line in said(objdump, &["--disassemble", &start, &stop]).lines() {
            // An address, bytes, an instruction; the rest of a long one's bytes has a line without it.
            let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
            let [_, bytes, instruction] = columns[..] else { continue };
            assert!(!bytes.starts_with(EVEX), "{line}");
            if instruction.contains(PRODUCT) {
                assert!(bytes.starts_with(VEX), "{line}");
                products += 1;
            }
        }
    }
    // Rows of a tile times halves of a panel.
    assert!(products >= 12, "{products} multiplications");
}
