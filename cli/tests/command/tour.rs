//! The documents with commands and what they printed (`dist/tour`): the tour has every command, and what it calls there is.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeSet;

#[path = "../../examples/remake/console.rs"]
mod console;

use console::{Command, Part, parts, remade};

use crate::readme::help;
use crate::support::repository;

burst_testing::tests![
    the_tour_has_every_command_and_what_each_printed(),
    commands_of_the_tour_and_of_the_benchmarks_are_command_lines_of_burst(),
    a_block_is_remade_and_the_words_around_it_stay(),
    what_is_no_block_of_commands_is_told_with_its_line(),
];

/// The documents that are remade.
const DOCUMENTS: [&str; 2] = ["docs/TOUR.md", "docs/BENCHMARKS.md"];

fn text(document: &str) -> String {
    std::fs::read_to_string(repository().join(document)).unwrap()
}

/// The commands of a document, each with the lines that follow it in its block.
fn commands(text: &str) -> Vec<Command<'_>> {
    let parts = parts(text).unwrap();
    parts
        .into_iter()
        .filter_map(|part| match part {
            Part::Command(command) => Some(command),
            Part::Line(_) => None,
        })
        .collect()
}

/// The arguments of each call of `burst` in a command of a shell.
fn calls(command: &str) -> Vec<Vec<&str>> {
    let calls = command.split(['|', ';', '&']).map(|call| call.split('>').next().unwrap().trim());
    let calls = calls.filter_map(|call| call.strip_prefix("burst"));
    let calls = calls.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    calls.map(|rest| rest.split_whitespace().collect()).collect()
}

fn the_tour_has_every_command_and_what_each_printed() {
    let text = text("docs/TOUR.md");
    let commands = commands(&text);
    let called: BTreeSet<String> = commands
        .iter()
        .flat_map(|command| calls(command.text))
        .map(|words| {
            let names = words.iter().take_while(|word| help_has(word));
            names.take(2).copied().collect::<Vec<_>>().join(" ")
        })
        .collect();
    // `bench` by itself is none: it has commands of its own.
    let there: BTreeSet<String> = help().into_keys().filter(|name| name != "bench").collect();
    let missing: Vec<&String> = there.difference(&called).collect();
    assert!(missing.is_empty(), "not in the tour: {missing:?}");
    let lines: Vec<&str> = text.lines().collect();
    let printed = commands.iter().filter(|command| !lines[command.line].starts_with(['$', '`']));
    let printed = printed.count();
    assert!(printed > 15, "of {} commands {printed} have printed something", commands.len());
}

/// Whether a word may be the name of a command, and no argument of one.
fn help_has(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase()) && !["bash", "out"].contains(&word)
}

fn commands_of_the_tour_and_of_the_benchmarks_are_command_lines_of_burst() {
    for document in DOCUMENTS {
        let text = text(document);
        let commands = commands(&text);
        assert!(!commands.is_empty(), "{document} has no commands");
        for command in commands {
            for call in calls(command.text) {
                let checked = burst::check_arguments(&call);
                assert_eq!(checked, Ok(()), "{document}:{}: {}", command.line, command.text);
            }
        }
    }
    assert!(burst::check_arguments(&["stream", "--no-such-option"]).is_err());
    assert_eq!(
        calls("burst a > b; burst c --d | head; burst.bash; sh burst"),
        [vec!["a"], vec!["c", "--d"]]
    );
}

const DOCUMENT: &str =
    "words\n```console lines=2\n$ one\nold\n$ two\n```\nwords\n```sh\n$ stays\n```\n";

fn a_block_is_remade_and_the_words_around_it_stay() {
    let run = |command: Command<'_>| {
        let printed = if command.text == "one" { "1 \n2\n3\n4\n" } else { "" };
        Ok::<_, String>(printed.to_owned())
    };
    let new = remade(DOCUMENT, run).unwrap();
    let block = "```console lines=2\n$ one\n1\n2\n[2 more lines]\n$ two\n```";
    assert_eq!(new, format!("words\n{block}\nwords\n```sh\n$ stays\n```\n"));
    assert_eq!(remade(&new, run).unwrap(), new, "remade again it is the same");
    let stopped = remade(DOCUMENT, |command| Err::<String, _>(format!("not {}", command.text)));
    assert_eq!(stopped.unwrap_err(), "not one");
}

fn what_is_no_block_of_commands_is_told_with_its_line() {
    for (document, want) in [
        ("a\n```console\nprinted\n```", "line 3: a block of commands begins with one"),
        ("```console lines=0\n```", "line 1: lines=0: expected lines=N behind console"),
        ("```console\n$ one", "the last block has no end"),
    ] {
        assert_eq!(parts(document).unwrap_err(), want);
    }
}
