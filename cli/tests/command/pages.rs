//! Pages of the manual and completions of shells: made from the definitions, one for each command.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use burst_testing::program;

use crate::readme::help;
use crate::support::run;

burst_testing::tests![
    every_command_has_a_page_with_each_of_its_options(),
    pages_that_cannot_be_written_are_told(),
    the_manual_shows_the_pages_without_a_complaint(&program("man")?),
    every_shell_completes_every_command(),
    bash_completes_commands_options_values_and_files(&program("bash")?),
    zsh_reads_its_completions(&program("zsh")?),
    fish_reads_its_completions(&program("fish")?),
];

/// `burst-bench-model.1` of `bench model`.
pub(crate) fn page_of(command: &str) -> String {
    let name: Vec<&str> = ["burst"].into_iter().chain(command.split_whitespace()).collect();
    format!("{}.1", name.join("-"))
}

/// The long options that a help text explains, the common one for help left out.
fn options(help: &str) -> Vec<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words =
        lines.filter_map(|line| line.split([' ', ',', '[', '=']).find(|w| w.starts_with("--")));
    words.filter(|option| *option != "--help").collect()
}

fn pages() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    let output = run(&["man", pages.to_str().unwrap()]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    (folder, pages)
}

fn every_command_has_a_page_with_each_of_its_options() {
    let (_folder, pages) = pages();
    let help = help();
    assert!(help.len() > 10, "{:?}", help.keys());
    let mut seen = 0;
    for (command, help) in &help {
        let page = fs::read_to_string(pages.join(page_of(command)));
        let page = page.unwrap_or_else(|error| panic!("{}: {error}", page_of(command)));
        for option in options(help) {
            seen += 1;
            assert!(page.contains(&option.replace('-', "\\-")), "{command}: no {option}");
        }
        assert!(page.contains(".SH \"EXIT STATUS\""), "{command}");
        for word in
            ["BURST_SOCKET", "BURST_ADMIN", "BURST_PYTHON", "STATE_DIRECTORY", "XDG_STATE_HOME"]
        {
            assert!(page.contains(word), "{command}: {word}");
        }
        assert!(page.contains("141 where nobody reads"), "{command}");
        assert!(!page.contains("\\-\\-private"), "{command}: an option that is hidden");
    }
    assert!(seen > 100, "{seen} options");
    assert_eq!(fs::read_dir(&pages).unwrap().count(), help.len(), "a page of no command");
}

fn pages_that_cannot_be_written_are_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("pages");
    let output = run(&["man", below.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("burst: cannot write pages into ") && said.lines().count() == 1,
        "{said}"
    );
}

fn the_manual_shows_the_pages_without_a_complaint(man: &Path) {
    let (_folder, pages) = pages();
    let (stream, said) = shown(man, &pages.join("burst-stream.1"));
    assert!(stream.contains("--reconnect") && stream.contains("EXIT STATUS"), "{stream}");
    assert!(said.is_empty(), "{said}");
    let (main, said) = shown(man, &pages.join("burst.1"));
    assert!(main.contains("burst-verify(1)") && said.is_empty(), "{said}");
}

/// What `man` prints of a page, and what it complains of.
fn shown(man: &Path, page: &Path) -> (String, String) {
    let mut command = Command::new(man);
    command.args(["--warnings", "--local-file"]).arg(page);
    command.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").env_remove("MAN_KEEP_FORMATTING");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The completions for a shell.
pub(crate) fn completions(shell: &str) -> String {
    let output = run(&["completions", shell]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn every_shell_completes_every_command() {
    let help = help();
    for shell in ["bash", "zsh", "fish"] {
        let script = completions(shell);
        for word in help.keys().flat_map(|command| command.split_whitespace()) {
            assert!(script.contains(word), "{shell}: no {word}");
        }
        assert!(script.contains("lenient"), "{shell}: an option");
    }
    assert_eq!(run(&["completions", "csh"]).status.code(), Some(2));
}

/// What a bash with these completions offers for a line of words, the last of which is unfinished. Where the
/// completions have nothing, bash offers files, as they tell it to: then the answer is `files`.
pub(crate) fn offered_by_bash(
    bash: &Path,
    script: &Path,
    folder: &Path,
    words: &[&str],
) -> Vec<String> {
    const ASK: &str = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        _burst burst "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        if [ "${#COMPREPLY[@]}" -gt 0 ]; then
            printf '%s\n' "${COMPREPLY[@]}"
        elif [[ "$(complete -p burst)" = *"-o default"* ]]; then
            echo files
        fi
    "#;
    let mut command = Command::new(bash);
    command.args(["--norc", "-c", ASK, "bash"]).arg(script).args(words).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn bash_completes_commands_options_values_and_files(bash: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("burst.bash");
    fs::write(&script, completions("bash")).unwrap();
    fs::write(folder.path().join("mobilenet.tflite"), "").unwrap();
    let offered = |words: &[&str]| offered_by_bash(bash, &script, folder.path(), words);
    assert_eq!(offered(&["burst", "ver"]), ["verify"]);
    assert_eq!(offered(&["burst", "bench", "mo"]), ["model"]);
    assert_eq!(offered(&["burst", "stream", "--rec"]), ["--reconnect"]);
    assert_eq!(offered(&["burst", "stream", "--path", "in"]), ["in-process"]);
    assert_eq!(offered(&["burst", "stream", "--model", "mob"]), ["mobilenet.tflite"]);
    assert_eq!(offered(&["burst", "explain", "mob"]), ["files"]);
    assert_eq!(offered(&["burst", "completions", "fi"]), ["fish"]);
}

/// What a shell says of its completions, which it is to read and not to run.
fn read_by(shell: &Path, name: &str, option: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completions");
    fs::write(&script, completions(name)).unwrap();
    Command::new(shell).arg(option).arg(&script).output().unwrap()
}

fn zsh_reads_its_completions(zsh: &Path) {
    let output = read_by(zsh, "zsh", "-n");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

fn fish_reads_its_completions(fish: &Path) {
    let output = read_by(fish, "fish", "--no-execute");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
