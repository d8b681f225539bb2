//! The client in C once more, on a CPU that valgrind emulates: it sees what is read that was never written, or
//! not there any more, and what nobody points at when the process ends.

use std::path::Path;
use std::process::Command;

use burst_testing::program;

use crate::client::{GROUPS, alone, client, succeeded};

burst_testing::tests![
    every_group_runs_without_an_error_and_leaks_nothing(&program("cc")?, &program("valgrind")?),
    what_is_read_after_it_was_freed_is_found_and_what_is_lost(
        &program("cc")?,
        &program("valgrind")?
    ),
];

/// What valgrind ends with where it has found something; the client never does.
const FOUND: i32 = 99;

/// Groups that must be the first in their process to call the library, and whether leaks are looked for: a child
/// of fork has none of the threads that alone pointed at what they had in use.
const ALONE: [(&str, bool); 2] = [("load", true), ("forked", false)];

/// A program under valgrind, on a machine without services.
fn watched(valgrind: &Path, for_leaks: bool) -> Command {
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/valgrind.supp");
    let mut command = Command::new(valgrind);
    command.args(["--quiet", if for_leaks { "--leak-check=full" } else { "--leak-check=no" }]);
    // What tables of the process still point at when it ends is no leak.
    command.args(["--show-leak-kinds=definite,indirect,possible"]);
    command.args(["--errors-for-leak-kinds=definite,indirect,possible"]);
    command.arg(format!("--error-exitcode={FOUND}"));
    command.arg(format!("--suppressions={}", known.display()));
    command
}

fn every_group_runs_without_an_error_and_leaks_nothing(cc: &Path, valgrind: &Path) {
    // Valgrind keeps for a while what was freed, so a process grows in it that does not by itself.
    let is_alone =
        |group: &&str| *group == "growth" || ALONE.iter().any(|(alone, _)| alone == group);
    let together: Vec<&str> = GROUPS.iter().copied().filter(|group| !is_alone(group)).collect();
    let first = ALONE.map(|(group, for_leaks)| (vec![group], for_leaks));
    for (groups, for_leaks) in first.into_iter().chain([(together, true)]) {
        let mut command = watched(valgrind, for_leaks);
        alone(command.arg(client(cc)).args(&groups), &groups.join(" "));
    }
}

/// That the options above find anything at all.
fn what_is_read_after_it_was_freed_is_found_and_what_is_lost(cc: &Path, valgrind: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, code) in [
        ("freed", "char* p = malloc(8); free(p); volatile char read = *p; return read == 1;"),
        ("lost", "for (int i = 0; i < 8; i++) malloc(8); return 0;"),
    ] {
        let (source, program) = (folder.path().join("program.c"), folder.path().join(name));
        let text = format!("#include <stdlib.h>\nint main(void) {{ {code} }}\n");
        std::fs::write(&source, text).expect("written");
        let mut command = Command::new(cc);
        command.args(["-g", "-O0", "-w", "-fno-builtin", "-o"]).arg(&program).arg(&source);
        succeeded(&command.output().expect("cc starts"), "cc");
        let output = watched(valgrind, true).arg(&program).output().expect("valgrind starts");
        assert_eq!(output.status.code(), Some(FOUND), "{name}: {output:?}");
    }
}
