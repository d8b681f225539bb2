//! How the shared object is linked: under its name, and so that it stays loaded. Threads of ours may run until
//! the process ends: their code must not be unmapped before.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libburst_delegate.so");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
