//! What was found, for people: in as few columns as a phone's terminal has.

use std::fmt::Write;

use super::Report;
use super::finding::Finding;

/// Where no terminal says how wide it is.
pub(super) const USUAL_COLUMNS: usize = 80;
/// Narrower terminals break lines themselves.
const FEWEST: usize = 40;
/// Wider lines are not read.
const MOST: usize = 100;
/// Before everything that stands under a check's first line.
const INDENT: &str = "         ";

pub(super) fn text(report: &Report, columns: usize) -> String {
    let columns = columns.clamp(FEWEST, MOST);
    let mut text = String::new();
    for check in &report.checks {
        one(&mut text, check, columns);
    }
    let Report { lacking, worse, unknown, checks } = report;
    let summary =
        format!("{} looked at: {lacking} lacking, {worse} worse, {unknown} unknown", checks.len());
    wrapped(&mut text, "", "", &summary, columns);
    text
}

fn one(text: &mut String, check: &Finding, columns: usize) {
    let name = check.name.replace('_', " ");
    let first = format!("{name}: {}", check.found);
    wrapped(text, &format!("{:<9}", check.verdict.word()), INDENT, &first, columns);
    wrapped(text, INDENT, INDENT, &check.effect, columns);
    if let Some(advice) = &check.advice {
        wrapped(text, &format!("{INDENT}-> "), &format!("{INDENT}   "), advice, columns);
    }
}

/// Words in lines; the first one begins with `first`, the others with `further`. A word that is longer than
/// a line is broken.
fn wrapped(text: &mut String, first: &str, further: &str, words: &str, columns: usize) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    let room = columns.saturating_sub(further.chars().count().max(first.chars().count())).max(1);
    for word in words.split_whitespace().flat_map(|word| pieces(word, room)) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > columns {
            let _ = writeln!(text, "{line}"); // a string takes all
            line = further.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// A word in pieces of so many characters at most.
fn pieces(word: &str, most: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(most).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::MadeUp;
    use super::*;

    #[test]
    fn sixty_columns_hold_everything_whatever_was_found() {
        for made_up in [MadeUp::new(), MadeUp::without_files().old_kernel()] {
            let report = made_up.look(Report::of);
            for columns in [60, 80] {
                let text = text(&report, columns);
                for line in text.lines() {
                    assert!(line.chars().count() <= columns, "{columns}: {line}");
                }
                // Every check begins a line with its verdict, and nothing of it is lost.
                let joined: String = text.split_whitespace().collect();
                for check in &report.checks {
                    let name = check.name.replace('_', " ");
                    let word = check.verdict.word();
                    let advice = check.advice.as_ref().map(|advice| format!("->{advice}"));
                    let advice = advice.unwrap_or_default();
                    let said = format!("{word} {name}: {} {}{advice}", check.found, check.effect);
                    let said: String = said.split_whitespace().collect();
                    assert!(joined.contains(&said), "{said}\n{text}");
                }
            }
        }
    }

    #[test]
    fn a_word_that_is_longer_than_a_line_is_broken() {
        let mut text = String::new();
        wrapped(&mut text, "a: ", "   ", "one 123456789abcdefghi12 two", 12);
        assert_eq!(text, "a: one\n   123456789\n   abcdefghi\n   12 two\n");
    }
}
