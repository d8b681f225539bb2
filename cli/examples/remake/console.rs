//! Commands in documents with what they printed: fenced blocks that are called `console`.
//!
//! A line that begins with `$ ` is a command; what follows, up to the next one or the end of the block, is what it
//! printed. `lines=N` behind `console` keeps the first N lines of each.

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'d> {
    /// A line that stays as it is.
    Line(&'d str),
    /// A command, without what it printed.
    Command(Command<'d>),
}

/// A command of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command<'d> {
    /// Number of its line, from 1.
    pub(crate) line: usize,
    /// What a shell would be told.
    pub(crate) text: &'d str,
    /// How many lines of its output are shown, where not all are.
    pub(crate) lines: Option<usize>,
}

const FENCE: &str = "```";
const OPENING: &str = "```console";

/// The parts of a document.
///
/// # Errors
/// What is wrong with a block, with its line.
pub(crate) fn parts(document: &str) -> Result<Vec<Part<'_>>, String> {
    let mut found = Vec::new();
    // Within a block: how many lines of each output are shown.
    let mut block: Option<Option<usize>> = None;
    let mut has_command = false;
    for (index, text) in document.lines().enumerate() {
        let line = index + 1;
        match (block, text.strip_prefix("$ ")) {
            (None, _) => {
                found.push(Part::Line(text));
                if let Some(options) = text.strip_prefix(OPENING) {
                    let lines = shown(options).map_err(|why| format!("line {line}: {why}"))?;
                    (block, has_command) = (Some(lines), false);
                }
            }
            (Some(_), _) if text == FENCE => {
                found.push(Part::Line(text));
                block = None;
            }
            (Some(lines), Some(text)) => {
                found.push(Part::Command(Command { line, text, lines }));
                has_command = true;
            }
            (Some(_), None) if !has_command => {
                return Err(format!("line {line}: a block of commands begins with one"));
            }
            (Some(_), None) => {} // what was printed the last time
        }
    }
    match block {
        None => Ok(found),
        Some(_) => Err("the last block has no end".to_owned()),
    }
}

/// The number of a block's `lines=N`.
fn shown(options: &str) -> Result<Option<usize>, String> {
    let options = options.trim();
    if options.is_empty() {
        return Ok(None);
    }
    let number = options.strip_prefix("lines=").and_then(|number| number.parse().ok());
    match number {
        Some(lines @ 1..) => Ok(Some(lines)),
        _ => Err(format!("{options}: expected lines=N behind console")),
    }
}

/// The document again, each command followed by what `run` says that it printed now.
///
/// # Errors
/// As [`parts`]; what stops a command.
pub(crate) fn remade<E: From<String>>(
    document: &str,
    mut run: impl FnMut(Command<'_>) -> Result<String, E>,
) -> Result<String, E> {
    let mut text = String::new();
    for part in parts(document)? {
        match part {
            Part::Line(line) => text += line,
            Part::Command(command) => {
                let printed = run(command)?;
                text += "$ ";
                text += command.text;
                text += &cut(&printed, command.lines);
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// The first lines, each on a line of its own, and how many more there were.
fn cut(printed: &str, most: Option<usize>) -> String {
    let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let most = most.unwrap_or(lines.len());
    let mut text: String = lines.iter().take(most).map(|line| format!("\n{line}")).collect();
    match lines.len().saturating_sub(most) {
        0 => {}
        1 => text += "\n[1 more line]",
        more => text += &format!("\n[{more} more lines]"),
    }
    text
}
