//! What `fuzz/run` starts: libFuzzer over the target that `FUZZ_TARGET` names.

#![no_main]

use std::sync::OnceLock;

use fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn chosen() -> &'static Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzz::target(&name).unwrap_or_else(|| {
        eprintln!("FUZZ_TARGET is {name:?}, which is no target; start this with fuzz/run");
        std::process::exit(2)
    })
}

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        fuzz::look_for_leaks();
        chosen()
    });
    (target.run)(data);
});
