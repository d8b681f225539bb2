//! The `burst` command: see the library of this package.

fn main() -> std::process::ExitCode {
    burst::main()
}
