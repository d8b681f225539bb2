//! `burst top`: who uses a service just now, what each of its bursts does, and which of them is in trouble.
//!
//! It looks at the admin socket again and again; figures are what changed from one look to the next.
//!
//! | file | what |
//! |---|---|
//! | `admin.rs` | asking the admin socket |
//! | `look.rs` | what it answers |
//! | `wanted.rs` | what somebody wants to see |
//! | `figures.rs` | two looks beside each other: clients, users, and all of the below |
//! | `bursts.rs` | what each burst did, and what is wrong with it |
//! | `models.rs` | what each model holds and did |
//! | `times.rs` | rates and times of requests |
//! | `shares.rs` | who computed how much |
//! | `text.rs` | that for people |
//! | `keys.rs` | the terminal while they watch |

mod admin;
mod bursts;
mod figures;
#[cfg(test)]
mod figures_tests;
mod keys;
mod look;
mod models;
mod shares;
mod text;
mod times;
mod wanted;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::{json, out, signals};
use figures::Report;
use keys::Keys;
use look::Look;
use wanted::{SortBy, Trouble, Wanted};

/// Where the admin socket of `dist/burst.service` is.
const USUAL_ADMIN: &str = "/run/burst/admin.sock";
/// Time between two looks, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;
/// Erases the terminal and begins at its top.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Admin socket of the service (`serve --admin`). Default: $BURST_ADMIN, else /run/burst/admin.sock.
    #[arg(long, value_name = "PATH")]
    admin: Option<PathBuf>,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Look twice, say what was so in between, and end.
    #[arg(long)]
    once: bool,
    /// Figures since each burst and model began, from one look.
    #[arg(long, requires = "once")]
    since_start: bool,
    /// What comes first.
    #[arg(long, value_enum, default_value_t = SortBy::Busy)]
    sort: SortBy,
    /// Only what this user has.
    #[arg(long, value_name = "UID", value_parser = user)]
    user: Option<u32>,
    /// Only what this client has, by its number or its process.
    #[arg(long, value_name = "NUMBER")]
    client: Option<u64>,
    /// Only what runs on this device.
    #[arg(long)]
    device: Option<String>,
    /// Only bursts in trouble, or in this one.
    #[arg(long, value_enum, value_name = "TROUBLE", num_args = 0..=1, default_missing_value = "any")]
    trouble: Option<Trouble>,
    /// Print one JSON object instead of text.
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

fn user(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected the number of a user, as `id -u NAME` says it".to_owned())
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if INTERVALS.contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds from 0.1 to 3600".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let admin = args.admin.clone().or_else(|| std::env::var_os("BURST_ADMIN").map(PathBuf::from));
    let admin = admin.unwrap_or_else(|| USUAL_ADMIN.into());
    let wanted = Wanted {
        user: args.user,
        client: args.client,
        device: args.device.clone(),
        trouble: args.trouble,
        sort: args.sort,
    };
    let keys = Keys::default();
    let terminal = keys.clone();
    signals::end_at_once(args.json.then_some(&json::TOP), move || {
        // Not in the middle of a table, which is written as one.
        drop(std::io::stdout().lock());
        terminal.restore();
    })?;
    // Not before signals are waited for: whatever ends this restores the terminal.
    let _restores = (!args.once).then(|| keys.begin());
    let mut before = if args.since_start { None } else { Some(look(&admin)?) };
    if let (Some(first), false) = (&before, args.once) {
        // Who watches does not sit before an empty screen until there is something to compare.
        show(args, &Report::of(None, first, &wanted))?;
    }
    loop {
        if before.is_some() && keys.want_end_within(Duration::from_secs_f64(args.interval)) {
            return Ok(ExitCode::SUCCESS);
        }
        let now = look(&admin)?;
        let report = Report::of(before.as_ref(), &now, &wanted);
        show(args, &report)?;
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        before = Some(now);
    }
}

fn look(admin: &std::path::Path) -> Result<Look> {
    let answer = admin::get(admin, "/sessions")?;
    let look: Look = serde_json::from_str(&answer).map_err(|error| {
        anyhow::anyhow!("{} does not speak of sessions: {error}", admin.display())
    })?;
    if look.schema != look::SCHEMA {
        bail!("{} speaks of sessions in another way ({})", admin.display(), look.schema);
    }
    Ok(look)
}

fn show(args: &Args, report: &Report) -> Result<()> {
    let _whole = std::io::stdout().lock();
    let mut to = out::stdout();
    if args.json {
        writeln!(to, "{}", json::object(&json::TOP, report)?)?;
        return Ok(());
    }
    let columns = out::columns().map_or(text::USUAL_COLUMNS, usize::from);
    let text = text::text(report, columns);
    match out::lines().filter(|_| !args.once && std::io::stdout().is_terminal()) {
        Some(lines) => write!(to, "{CLEAR}{}", text::cut(&text, lines.into()))?,
        None => write!(to, "{text}")?,
    }
    Ok(to.flush()?)
}
