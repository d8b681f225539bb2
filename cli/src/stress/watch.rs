//! One test, watched from outside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::plan::{Plan, Test, Victim};
use super::process::{News, Watched, crash};
use super::worker::{self, Role};
use crate::random::Random;
use crate::signals::Asked;

/// How long news are waited for before it is looked whether somebody hangs.
const LOOK: Duration = Duration::from_millis(50);
/// The shortest and the longest time between two deaths on purpose.
const BETWEEN_DEATHS_MS: (usize, usize) = (50, 800);
/// A worker that has got on so often has used the service: the first time says only that it has begun.
const STEPS_MIN: u64 = 2;
/// How long after the end of a process it is waited for a signal that may have ended it.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(300);
/// The number of the service among the processes.
const SERVICE: u64 = 0;

/// How tests are to run.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    /// Of each test.
    pub(super) time: Duration,
    /// Nothing gets on for so long: a hang.
    pub(super) patience: Duration,
    /// This program.
    pub(super) program: PathBuf,
    /// Another service.
    pub(super) service: Option<PathBuf>,
}

/// What became of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "what", rename_all = "UPPERCASE")]
pub(super) enum Outcome {
    Success,
    /// A worker found something wrong.
    Failure(String),
    /// Somebody did not get on.
    Hang(String),
    /// A process died that nobody killed.
    Crash(String),
}

impl Outcome {
    pub(super) fn is_success(&self) -> bool {
        *self == Outcome::Success
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Outcome::Success => "SUCCESS",
            Outcome::Failure(_) => "FAILURE",
            Outcome::Hang(_) => "HANG",
            Outcome::Crash(_) => "CRASH",
        }
    }

    pub(super) fn what(&self) -> Option<&str> {
        match self {
            Outcome::Success => None,
            Outcome::Failure(what) | Outcome::Hang(what) | Outcome::Crash(what) => Some(what),
        }
    }
}

/// A test that was watched to its end.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    pub(super) steps: u64,
    pub(super) killed: u64,
}

/// Runs a test. Whatever becomes of it, its processes are gone afterwards. Gives nothing where a signal ended it
/// before its time.
///
/// # Errors
/// This machine has no room for the processes.
pub(super) fn watch(test: Test, setting: &Setting, asked: &Asked) -> Result<Option<Seen>> {
    if !asked.go_on() {
        return Ok(None);
    }
    let begun = Instant::now();
    let mut watch = Watch::start(test, setting, asked)?;
    let found = watch.run(begun + setting.time).and_then(|found| match found {
        Some(found) => Ok(found),
        None => Ok(watch.end()?.unwrap_or(Outcome::Success)),
    });
    // A terminal tells all of its processes to end: what is found then is no crash, and this process may hear of the
    // signal after it has seen their end.
    let is_good = found.as_ref().is_ok_and(Outcome::is_success);
    if !is_good && !asked.go_on_for(SIGNAL_PATIENCE) || !asked.go_on() {
        return Ok(None);
    }
    let Watch { steps, killed, .. } = watch;
    Ok(Some(Seen { outcome: found?, seconds: begun.elapsed().as_secs_f64(), steps, killed }))
}

/// News, and the number of the process that they are of.
type Heard = (u64, News);

/// The processes of a test.
struct Watch<'s> {
    setting: &'s Setting,
    asked: &'s Asked,
    plan: Plan,
    folder: tempfile::TempDir,
    news: (Sender<Heard>, Receiver<Heard>),
    processes: BTreeMap<u64, Process>,
    /// Numbers of processes that were used.
    used: u64,
    random: Random,
    next_death: Instant,
    steps: u64,
    killed: u64,
}

struct Process {
    watched: Watched,
    /// `None` for the service.
    role: Option<Role>,
    /// The last one is never killed.
    is_spared: bool,
    last_step: Instant,
    /// How often it got on since somebody was last killed.
    steps: u64,
    /// The last thing that it said was wrong.
    failure: Option<String>,
}

impl<'s> Watch<'s> {
    fn start(test: Test, setting: &'s Setting, asked: &'s Asked) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the service's socket")?;
        let mut watch = Watch {
            setting,
            asked,
            plan: test.plan(),
            folder,
            news: channel(),
            processes: BTreeMap::new(),
            used: SERVICE,
            random: Random::new(setting.seed, test as u64),
            next_death: Instant::now(),
            steps: 0,
            killed: 0,
        };
        watch.start_service()?;
        Ok(watch)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("burst.sock")
    }

    fn start_service(&mut self) -> Result<()> {
        let mut command = Command::new(&self.setting.program);
        match &self.setting.service {
            Some(program) => command.args(["stress", "--become-service"]).arg(program),
            None => {
                command.args(["serve", "--device", "all", "--setup-rate", "0"]);
                command.args(self.plan.limits)
            }
        };
        command.arg("--socket").arg(self.socket());
        self.begin("driver service", command, None, true)
    }

    fn start_worker(&mut self, role: Role, is_spared: bool) -> Result<()> {
        let mut command = Command::new(&self.setting.program);
        let seed = Random::new(self.setting.seed, self.used + 1).next();
        command.args(["stress", "--role", role.name(), "--seed", &seed.to_string(), "--socket"]);
        command.arg(self.socket());
        self.begin(role.name(), command, Some(role), is_spared)
    }

    fn begin(
        &mut self,
        name: &str,
        command: Command,
        role: Option<Role>,
        is_spared: bool,
    ) -> Result<()> {
        self.used += 1;
        let number = if role.is_none() { SERVICE } else { self.used };
        let name =
            if role.is_none() { name.to_owned() } else { format!("worker {name} ({number})") };
        let watched = Watched::start(&name, command, number, &self.news.0)?;
        let last_step = Instant::now();
        let process = Process { watched, role, is_spared, last_step, steps: 0, failure: None };
        self.processes.insert(number, process);
        Ok(())
    }

    /// Watches until then, or until something is found, or a signal asks for the end.
    fn run(&mut self, until: Instant) -> Result<Option<Outcome>> {
        if let Some(found) = self.wait_for_service()? {
            return Ok(Some(found));
        }
        if !self.asked.go_on() {
            return Ok(None);
        }
        let workers = self.plan.workers;
        for (at, role) in workers.iter().enumerate() {
            self.start_worker(*role, at + 1 == workers.len())?;
        }
        self.plan_death();
        while self.asked.go_on() && (Instant::now() < until || !self.has_shown_something()) {
            if let Some(found) = self.look()? {
                return Ok(Some(found));
            }
            let kills = self.plan.victim != Victim::Nobody
                && (Instant::now() < until || self.killed == 0)
                && self.has_been_on();
            if kills && Instant::now() >= self.next_death {
                self.let_die()?;
            }
        }
        Ok(None)
    }

    /// Whoever is not killed has got on, and again since the last death: a test that ends before shows nothing.
    fn has_shown_something(&self) -> bool {
        let has_killed = self.plan.victim == Victim::Nobody || self.killed > 0;
        has_killed && self.survivors().all(|worker| worker.steps >= STEPS_MIN)
    }

    /// Whether all that are not killed got on lately: on a machine so busy that they do not come to it between
    /// two deaths, the next one waits for them.
    fn has_been_on(&self) -> bool {
        let lately = self.setting.patience / 4;
        self.survivors().all(|worker| worker.steps > 0 || worker.last_step.elapsed() < lately)
    }

    /// Workers that nobody kills.
    fn survivors(&self) -> impl Iterator<Item = &Process> {
        let all = self.plan.victim != Victim::Workers;
        self.processes.values().filter(move |one| one.role.is_some() && (all || one.is_spared))
    }

    /// Until the service says that it listens.
    fn wait_for_service(&mut self) -> Result<Option<Outcome>> {
        let is_silent = |service: &Process| service.steps == 0;
        while self.asked.go_on() && self.processes.get(&SERVICE).is_some_and(is_silent) {
            if let Some(found) = self.look()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Hears what there is to hear, and sees who hangs.
    fn look(&mut self) -> Result<Option<Outcome>> {
        match self.news.1.recv_timeout(LOOK) {
            Ok((number, News::Line(line))) => self.heard(number, &line),
            Ok((number, News::End)) => {
                if let Some(found) = self.ended(number)? {
                    return Ok(Some(found));
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let patience = self.setting.patience;
        let hangs = |(number, process): (&u64, &Process)| {
            // A service has nothing to say once it listens.
            let speaks = process.role.is_some() || process.steps == 0;
            (speaks && process.last_step.elapsed() > patience).then_some(*number)
        };
        let Some(number) = self.processes.iter().find_map(hangs) else { return Ok(None) };
        let name = self.processes.get(&number).map_or("", |process| &process.watched.name);
        Ok(Some(Outcome::Hang(format!("{name} did not get on for {} s", patience.as_secs()))))
    }

    fn heard(&mut self, number: u64, line: &str) {
        // Of one that was killed meanwhile something may still come.
        let Some(process) = self.processes.get_mut(&number) else { return };
        process.last_step = Instant::now();
        match line.strip_prefix(worker::FAILURE) {
            Some(failure) => process.failure = Some(failure.trim().to_owned()),
            None => {
                process.steps += 1;
                self.steps += u64::from(process.role.is_some());
            }
        }
    }

    /// A process prints nothing more. Whoever was killed on purpose is no longer among them.
    fn ended(&mut self, number: u64) -> Result<Option<Outcome>> {
        let Some(process) = self.processes.get_mut(&number) else { return Ok(None) };
        if process.watched.was_killed() {
            return Ok(None);
        }
        if number != SERVICE {
            // What a worker says of its end may be the service's: that is looked at first.
            let failed = process.failure.is_some();
            if let Some(found) = self.service_crashed(failed) {
                return Ok(Some(found));
            }
        }
        let Some(process) = self.processes.get_mut(&number) else { return Ok(None) };
        let name = process.watched.name.clone();
        let Some(status) = process.watched.status() else {
            return Ok(Some(Outcome::Hang(format!("{name} closed its output and does not end"))));
        };
        if let Some(how) = crash(status) {
            return Ok(Some(Outcome::Crash(format!("{name} {how}"))));
        }
        let what = process.failure.clone().unwrap_or_else(|| format!("ended too early ({status})"));
        Ok(Some(Outcome::Failure(format!("{name}: {what}"))))
    }

    /// Whether the service died by itself. Where a worker failed it is given the time to have done so.
    fn service_crashed(&mut self, wait: bool) -> Option<Outcome> {
        let service = &mut self.processes.get_mut(&SERVICE)?.watched;
        let status = if wait { service.status() } else { service.status_within(Duration::ZERO) }?;
        let how = crash(status)?;
        Some(Outcome::Crash(format!("{} {how}", service.name)))
    }

    fn plan_death(&mut self) {
        let (least, most) = BETWEEN_DEATHS_MS;
        let pause = least + self.random.below(most - least);
        self.next_death = Instant::now() + Duration::from_millis(pause as u64);
    }

    /// Kills somebody on purpose, and starts it again.
    fn let_die(&mut self) -> Result<()> {
        self.plan_death();
        let may_die = |process: &Process| match self.plan.victim {
            Victim::Nobody => false,
            Victim::Workers => process.role.is_some() && !process.is_spared,
            Victim::Service => process.role.is_none(),
        };
        let victims: Vec<u64> = self
            .processes
            .iter()
            .filter(|(_, one)| may_die(one))
            .map(|(number, _)| *number)
            .collect();
        let Some(number) = victims.get(self.random.below(victims.len())).copied() else {
            return Ok(());
        };
        let Some(mut process) = self.processes.remove(&number) else { return Ok(()) };
        if process.watched.status_within(Duration::ZERO).is_some() {
            // It died by itself just now, which is heard of in a moment.
            self.processes.insert(number, process);
            return Ok(());
        }
        process.watched.kill();
        self.killed += 1;
        // A service that listens has said so once, and does not again.
        let workers = self.processes.values_mut().filter(|one| one.role.is_some());
        workers.for_each(|worker| worker.steps = 0);
        match process.role {
            Some(role) => self.start_worker(role, false),
            None => {
                // The news of its end are those of its number: heard before the next one has it.
                self.forget_news_of(SERVICE);
                self.start_service()
            }
        }
    }

    /// Hears everything up to the end of this process, which has ended.
    fn forget_news_of(&mut self, number: u64) {
        let until = Instant::now() + self.setting.patience;
        while Instant::now() < until && self.asked.go_on() {
            match self.news.1.recv_timeout(LOOK) {
                Ok((from, News::End)) if from == number => return,
                Ok((from, news)) if from != number => match news {
                    News::Line(line) => self.heard(from, &line),
                    // To be heard again, when this is over.
                    News::End => drop(self.news.0.send((from, News::End))),
                },
                _ => {}
            }
        }
    }

    /// Tells everybody to stop, workers first, and sees that they do. After a signal nobody is asked.
    fn end(&mut self) -> Result<Option<Outcome>> {
        if !self.asked.go_on() {
            return Ok(None);
        }
        let workers: Vec<u64> =
            self.processes.keys().copied().filter(|one| *one != SERVICE).collect();
        for number in &workers {
            if let Some(process) = self.processes.get_mut(number) {
                process.watched.tell_to_stop(false);
            }
        }
        for number in workers {
            if let Some(found) = self.stopped(number) {
                return Ok(Some(found));
            }
        }
        if let Some(found) = self.service_crashed(false) {
            return Ok(Some(found));
        }
        if let Some(service) = self.processes.get_mut(&SERVICE) {
            service.watched.tell_to_stop(true);
        }
        Ok(self.stopped(SERVICE))
    }

    /// Hears what a process said last that has ended.
    fn hear_out(&mut self, number: u64) {
        let until = Instant::now() + self.setting.patience;
        while Instant::now() < until && self.asked.go_on() {
            match self.news.1.recv_timeout(LOOK) {
                Ok((from, News::End)) if from == number => return,
                Ok((from, News::Line(line))) => self.heard(from, &line),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Waits for the end of a process that was told to stop; what is wrong with it.
    fn stopped(&mut self, number: u64) -> Option<Outcome> {
        let patience = self.setting.patience;
        let process = self.processes.get_mut(&number)?;
        let name = process.watched.name.clone();
        let status = process.watched.status_within_while(patience, &|| self.asked.go_on());
        let Some(status) = status else {
            let seconds = patience.as_secs();
            return Some(Outcome::Hang(format!(
                "{name} was told to stop and did not within {seconds} s"
            )));
        };
        if let Some(how) = crash(status) {
            return Some(Outcome::Crash(format!("{name} {how} when it was told to stop")));
        }
        if status.success() {
            return None;
        }
        if number != SERVICE
            && let Some(found) = self.service_crashed(true)
        {
            return Some(found);
        }
        self.hear_out(number);
        let failure = self.processes.get(&number).and_then(|process| process.failure.clone());
        let what = failure.unwrap_or_else(|| format!("ended with {status}"));
        Some(Outcome::Failure(format!("{name}: {what}")))
    }
}
