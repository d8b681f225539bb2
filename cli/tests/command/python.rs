//! The Python package: its own tests, in an environment that is made for them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::process::{Command, Stdio};

use burst_testing::Missing;

use crate::support::repository;

burst_testing::tests![
    the_readme_shows_the_program_that_the_tests_of_the_package_run(),
    the_python_package_passes_its_own_tests(environment()?),
];

/// That somebody wants to wait for the build of the package, and lets `pip` fetch what it needs.
struct Environment;

fn environment() -> Result<Environment, Missing> {
    let how = "BURST_PYTHON_PACKAGE=1 cargo test -p burst --test command -- python";
    match std::env::var_os("BURST_PYTHON_PACKAGE") {
        Some(_) => Ok(Environment),
        None => Err(Missing::new(format!("a Python package, which pip and minutes make: {how}"))),
    }
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap()
}

fn the_readme_shows_the_program_that_the_tests_of_the_package_run() {
    let of_package = read("python/README.md");
    let program = of_package.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(read("README.md").contains(program), "README.md shows another program than\n{program}");
    let line = "exec(_first_program(support.ROOT / \"python\" / \"README.md\")";
    assert!(read("python/tests/test_package.py").contains(line), "nobody runs it");
}

/// How many tests the package has.
fn written() -> usize {
    let files = std::fs::read_dir(repository().join("python/tests")).unwrap();
    let sources = files.map(|file| std::fs::read_to_string(file.unwrap().path()));
    sources
        .flatten()
        .map(|source| {
            source.matches("    def test_").count() + source.matches("    async def test_").count()
        })
        .sum()
}

fn the_python_package_passes_its_own_tests(_: Environment) {
    let mut command = Command::new(repository().join("python/test"));
    command.env("BURST_PROGRAM", env!("CARGO_BIN_EXE_burst")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains(&format!("\nRan {} tests in ", written())), "{said}");
    let has_shared = burst_testing::shared("models").is_ok();
    assert!(!has_shared || !said.contains("skipped"), "{said}");
    println!("{said}");
}
