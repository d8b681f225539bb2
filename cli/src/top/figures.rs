//! Two looks beside each other: rates, times, shares, and what is wrong.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bursts::{BurstFigures, Change, sort};
use super::look::{Look, User, as_f64};
use super::models::{ModelChange, ModelFigures, figures as models};
use super::shares::Shares;
use super::times::rate;
use super::wanted::Wanted;

/// Memory of a user's account from which on there is little left.
const NEARLY_ALL: f64 = 0.9;

/// What was so between two looks.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) service_version: String,
    /// Between the looks; `null` for figures since the start.
    pub(super) seconds: Option<f64>,
    /// How many runs wait for their turn just now, and how many compute beside those that do not give way.
    pub(super) waiting_for_turn: u64,
    pub(super) computing_beside: u64,
    pub(super) users: Vec<UserFigures>,
    pub(super) sessions: Vec<SessionFigures>,
    pub(super) models: Vec<ModelFigures>,
    pub(super) bursts: Vec<BurstFigures>,
    pub(super) left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct UserFigures {
    pub(super) uid: u32,
    pub(super) name: Option<String>,
    pub(super) memory_bytes: u64,
    pub(super) memory_limit_bytes: u64,
    /// Nearly all of its memory is in use.
    pub(super) is_short_of_memory: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SessionFigures {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
    pub(super) uid: u32,
    /// What it calls itself.
    pub(super) program: String,
    /// Its command line, where this process may read it.
    pub(super) command: Option<String>,
    pub(super) connected_seconds: f64,
    pub(super) bursts: usize,
    pub(super) models: usize,
    /// What its models hold.
    pub(super) memory_bytes: u64,
    /// On bursts and over the socket.
    pub(super) requests_per_second: Option<f64>,
    /// Of all computing that was done for clients.
    pub(super) computing_share: f64,
    pub(super) is_over_share: bool,
}

impl Report {
    /// What changed between two looks, or since the start where there is only one; as much of it as is wanted.
    pub(super) fn of(before: Option<&Look>, now: &Look, wanted: &Wanted) -> Report {
        let seconds = before.map(|before| {
            (as_f64(now.time_ns.saturating_sub(before.time_ns)) / 1e9).max(f64::MIN_POSITIVE)
        });
        let changes: Vec<Change<'_>> =
            now.bursts.iter().map(|burst| Change::new(before, burst, seconds)).collect();
        let of_models: Vec<ModelChange<'_>> =
            now.models.iter().map(|model| ModelChange::new(before, model, seconds)).collect();
        let of_bursts = changes.iter().map(Change::work);
        let shares = Shares::of(of_bursts.chain(of_models.iter().map(ModelChange::work)));
        let pids: BTreeMap<u64, Option<u32>> =
            now.sessions.iter().map(|session| (session.client, session.pid)).collect();
        let pid = |client: u64| pids.get(&client).copied().flatten();
        let seen = |uid: u32, client: u64| {
            let by_client = |number| {
                number == client || pid(client).is_some_and(|pid| u64::from(pid) == number)
            };
            wanted.user.is_none_or(|user| user == uid) && wanted.client.is_none_or(by_client)
        };
        let on_device = |device: &str| wanted.device.as_ref().is_none_or(|name| name == device);
        let bursts = changes
            .iter()
            .filter(|one| seen(one.now.uid, one.now.client) && on_device(&one.now.device));
        let bursts = bursts.map(|one| {
            let pid = pid(one.now.client);
            BurstFigures::new(one, pid, &shares, &now.bounds_ns)
        });
        let mut bursts: Vec<BurstFigures> =
            bursts.filter(|burst| burst.is_wanted(wanted)).collect();
        sort(&mut bursts, wanted.sort);
        let shown = of_models
            .iter()
            .filter(|one| seen(one.now.uid, one.now.client) && on_device(&one.now.device));
        let shown = shown.map(|one| one.figures(&changes, pid(one.now.client), &shares, now));
        let users = now.users.iter().filter(|user| wanted.user.is_none_or(|uid| uid == user.uid));
        Report {
            service_version: now.version.clone(),
            seconds,
            waiting_for_turn: now.waiting_for_turn,
            computing_beside: now.computing_beside,
            users: users.map(UserFigures::new).collect(),
            sessions: sessions(now, (&changes, &of_models), &shares, seen),
            models: models(shown, wanted.sort),
            bursts,
            left_out: now.left_out,
        }
    }
}

fn sessions(
    now: &Look,
    (bursts, models): (&[Change<'_>], &[ModelChange<'_>]),
    shares: &Shares,
    seen: impl Fn(u32, u64) -> bool,
) -> Vec<SessionFigures> {
    let sessions = now.sessions.iter().filter(|session| seen(session.uid, session.client));
    sessions
        .map(|session| {
            let client = session.client;
            let on_bursts = || bursts.iter().filter(|one| one.now.client == client);
            let own_models = || models.iter().filter(|one| one.now.client == client);
            let burst_rates = on_bursts().map(|one| rate(&one.counts, one.seconds));
            let socket_rates = own_models().map(|one| rate(&one.counts, one.seconds));
            SessionFigures {
                client,
                pid: session.pid,
                uid: session.uid,
                program: session.program.clone(),
                command: session.pid.and_then(command),
                connected_seconds: as_f64(session.connected_ns) / 1e9,
                bursts: on_bursts().count(),
                models: own_models().count(),
                memory_bytes: own_models().map(|one| one.now.memory_bytes).sum(),
                requests_per_second: burst_rates.chain(socket_rates).sum(),
                computing_share: shares.of_client(client),
                is_over_share: shares.is_over(client),
            }
        })
        .collect()
}

/// Longest command line that is shown.
const COMMAND_MAX: usize = 200;

/// The command line of a process, where this one may read it.
fn command(pid: u32) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = text.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    // A process chooses its own: what would move a terminal's cursor is not shown.
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let line: String = words.join(" ").chars().take(COMMAND_MAX).map(shown).collect();
    (!line.is_empty()).then_some(line)
}

impl UserFigures {
    fn new(user: &User) -> UserFigures {
        let memory = user.accounts.iter().find(|account| account.resource == "memory_bytes");
        let (used, limit) = memory.map_or((0, 0), |memory| (memory.used, memory.limit));
        UserFigures {
            uid: user.uid,
            name: user_name(user.uid),
            memory_bytes: used,
            memory_limit_bytes: limit,
            is_short_of_memory: as_f64(used) > as_f64(limit) * NEARLY_ALL,
        }
    }
}

/// A user's name, by the file that most systems have them in.
fn user_name(uid: u32) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(&uid)).then(|| name.to_owned())
    })
}
