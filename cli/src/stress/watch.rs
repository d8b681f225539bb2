//! One test, watched from outside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::outcome::Outcome;
use super::plan::{ANSWERS_BESIDE, Plan, Test, Victim};
use super::process::{Crash, News, Watched};
use super::tally::Tally;
use super::worker::{self, Role};
use crate::random::Random;
use crate::signals::Asked;

/// How long news are waited for before it is looked whether somebody hangs.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// The shortest and the longest time between two deaths on purpose.
const BETWEEN_DEATHS_MS: (usize, usize) = (50, 800);
/// A worker that has got on so often has used the service: the first time says only that it has begun.
const STEPS_MIN: u64 = 2;
/// How long after the end of a process it is waited for a signal that may have ended it.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(300);
/// The number of the service among the processes.
pub(super) const SERVICE: u64 = 0;
/// What a service refuses first of whoever takes all descriptors.
const BY_ACCOUNT: &str = "refused:descriptors_per_user";
/// How many the system has for it after that: more than honest clients need, and fewer than one user may have by the
/// service's own account.
const FEW: u64 = 200;

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
    /// Devices to use; none for all.
    pub(super) devices: Vec<String>,
}

/// A test that was watched to its end.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    pub(super) steps: u64,
    pub(super) killed: u64,
    pub(super) counts: Tally,
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
        None => Ok(watch.end()?.unwrap_or_else(Outcome::success)),
    });
    watch.hear_the_rest();
    // A terminal tells all of its processes to end: what is found then is no crash, and this process may hear of the
    // signal after it has seen their end.
    let is_good = found.as_ref().is_ok_and(Outcome::is_success);
    if !is_good && !asked.go_on_for(SIGNAL_PATIENCE) || !asked.go_on() {
        return Ok(None);
    }
    let Watch { steps, killed, counts, .. } = watch;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Some(Seen { outcome: found?, seconds, steps, killed, counts }))
}

/// News, and the number of the process that they are of.
pub(super) type Heard = (u64, News);

/// The processes of a test.
pub(super) struct Watch<'s> {
    pub(super) setting: &'s Setting,
    pub(super) asked: &'s Asked,
    plan: Plan,
    folder: tempfile::TempDir,
    pub(super) news: (Sender<Heard>, Receiver<Heard>),
    pub(super) processes: BTreeMap<u64, Process>,
    /// Numbers of processes that were used.
    used: u64,
    random: Random,
    next_death: Instant,
    steps: u64,
    killed: u64,
    counts: Tally,
    /// Grows when somebody has taken all there is, and when one gives back again.
    epoch: u64,
    /// Whether the service was left few descriptors.
    has_starved: bool,
}

/// One of them.
pub(super) struct Process {
    pub(super) watched: Watched,
    /// `None` for the service.
    pub(super) role: Option<Role>,
    /// The last one is never killed.
    is_spared: bool,
    last_step: Instant,
    /// How often it got on since somebody was last killed.
    steps: u64,
    /// The last thing that it said was wrong.
    pub(super) failure: Option<String>,
    /// What it said last that it waits for, and has not got on since.
    waits: Option<String>,
    /// Whether it has taken all there is.
    is_full: bool,
    /// When it last got on.
    epoch: u64,
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
            counts: Tally::default(),
            epoch: 0,
            has_starved: false,
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
                let devices = self.setting.devices.join(",");
                let devices = if devices.is_empty() { "all" } else { &devices };
                command.args(["serve", "--device", devices, "--setup-rate", "0"]);
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
        let devices = self.setting.devices.join(",");
        if !devices.is_empty() {
            command.args(["--device", &devices]);
        }
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
        let process = Process {
            watched,
            role,
            is_spared,
            last_step,
            steps: 0,
            failure: None,
            waits: None,
            is_full: false,
            epoch: 0,
        };
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
        let half = until.checked_sub(self.setting.time / 2).unwrap_or(until);
        while self.asked.go_on() && (Instant::now() < until || !self.has_shown_all()) {
            if let Some(found) = self.look()? {
                return Ok(Some(found));
            }
            if let Some(found) = self.is_overdue(until) {
                return Ok(Some(found));
            }
            let kills = self.plan.victim != Victim::Nobody
                && (Instant::now() < until || self.killed == 0)
                && self.has_been_on();
            if kills
                && Instant::now() >= self.next_death
                && let Some(found) = self.let_die()?
            {
                return Ok(Some(found));
            }
            if Instant::now() >= half {
                self.starve()?;
            }
        }
        Ok(None)
    }

    /// Whoever is not killed has got on, and again since the last death, and all that has to happen did: a test that
    /// ends before shows nothing.
    fn has_shown_all(&self) -> bool {
        let has_killed = self.plan.victim == Victim::Nobody || self.killed > 0;
        has_killed
            && self.survivors().all(|worker| worker.steps >= STEPS_MIN)
            && self.missing().is_empty()
    }

    /// What has to happen and has not: each device has to have answered too.
    fn missing(&self) -> Vec<&str> {
        let ours = if self.setting.service.is_none() { self.plan.shows_of_ours } else { &[] };
        let names = self.plan.shows.iter().chain(ours).copied();
        names.filter(|name| self.counts.of(name) == 0).chain(self.counts.without()).collect()
    }

    /// A test that goes on since what has to happen does not, although everybody gets on.
    fn is_overdue(&self, until: Instant) -> Option<Outcome> {
        let patience = self.setting.patience;
        if Instant::now() < until + patience {
            return None;
        }
        let missing = self.missing();
        let what = if missing.is_empty() { "enough steps".to_owned() } else { missing.join(", ") };
        let seconds = (self.setting.time + patience).as_secs();
        Some(Outcome::failure(format!("within {seconds} s there was none of: {what}")))
    }

    /// Leaves a service few descriptors, where the test does and what has to be seen before was.
    fn starve(&mut self) -> Result<()> {
        let refused = self.counts.of(BY_ACCOUNT) > 0 || self.setting.service.is_some();
        if !self.plan.starves || self.has_starved || !refused {
            return Ok(());
        }
        self.has_starved = true;
        let Some(service) = self.processes.get(&SERVICE) else { return Ok(()) };
        service.watched.allow_descriptors(FEW)
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
        if let Some(found) = self.service_gone() {
            return Ok(Some(found));
        }
        let patience = self.setting.patience;
        let hangs = |process: &&Process| {
            // A service has nothing to say once it listens.
            let speaks = process.role.is_some() || process.steps == 0;
            speaks && process.last_step.elapsed() > patience
        };
        let Some(process) = self.processes.values().find(hangs) else { return Ok(None) };
        let waits = process.waits.as_ref().map(|waits| format!("; it waits: {waits}"));
        let what =
            format!("did not get on for {} s{}", patience.as_secs(), waits.unwrap_or_default());
        Ok(Some(Outcome::hang(&process.watched.name, &what)))
    }

    /// A service that is gone and that nobody killed, whether a client has seen that or not: what keeps its output
    /// open, and goes on in its place, is not what was started.
    fn service_gone(&mut self) -> Option<Outcome> {
        let service = &mut self.processes.get_mut(&SERVICE)?.watched;
        let status = service.status_now()?;
        Some(match Crash::of(status) {
            Some(crash) => Outcome::crash(&service.name, &crash, ""),
            None => Outcome::failure_of(&service.name, &format!("ended too early ({status})")),
        })
    }

    pub(super) fn heard(&mut self, number: u64, line: &str) {
        // Of one that was killed meanwhile something may still come.
        let Some(process) = self.processes.get_mut(&number) else { return };
        if let Some(waits) = line.strip_prefix(worker::WAITS) {
            process.waits = Some(waits.trim().to_owned());
            return;
        }
        process.last_step = Instant::now();
        process.waits = None;
        if let Some(failure) = line.strip_prefix(worker::FAILURE) {
            process.failure = Some(failure.trim().to_owned());
            return;
        }
        process.steps += 1;
        if process.role.is_none() {
            return;
        }
        self.steps += 1;
        match line {
            worker::FULL | worker::NO_LONGER_FULL => {
                process.is_full = line == worker::FULL;
                self.epoch += 1;
            }
            line => self.got_on(number, line.strip_prefix(worker::STEP).unwrap_or_default()),
        }
    }

    /// Counts what a worker says has happened.
    fn got_on(&mut self, number: u64, counts: &str) {
        self.counts.add_line(counts);
        let is_full = self.processes.values().any(|process| process.is_full);
        let Some(process) = self.processes.get_mut(&number) else { return };
        // All of it came while somebody had all there is, if that was so at the step before already.
        if process.role == Some(Role::Infer) && is_full && process.epoch == self.epoch {
            let mut new = Tally::default();
            new.add_line(counts);
            self.counts.add(ANSWERS_BESIDE, new.of("answers"));
        }
        process.epoch = self.epoch;
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
            return Ok(Some(Outcome::hang(&name, "closed its output and does not end")));
        };
        if let Some(crash) = Crash::of(status) {
            return Ok(Some(Outcome::crash(&name, &crash, "")));
        }
        let what = process.failure.clone().unwrap_or_else(|| format!("ended too early ({status})"));
        Ok(Some(Outcome::failure_of(&name, &what)))
    }

    /// Whether the service died by itself. Where a worker failed it is given the time to have done so.
    pub(super) fn service_crashed(&mut self, wait: bool) -> Option<Outcome> {
        let service = &mut self.processes.get_mut(&SERVICE)?.watched;
        let status = if wait { service.status() } else { service.status_now() }?;
        let crash = Crash::of(status)?;
        Some(Outcome::crash(&service.name, &crash, ""))
    }

    fn plan_death(&mut self) {
        let (least, most) = BETWEEN_DEATHS_MS;
        let pause = least + self.random.below(most - least);
        self.next_death = Instant::now() + Duration::from_millis(pause as u64);
    }

    /// Kills somebody on purpose, and starts it again; gives what is found where it was dead already.
    fn let_die(&mut self) -> Result<Option<Outcome>> {
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
            return Ok(None);
        };
        let Some(mut process) = self.processes.remove(&number) else { return Ok(None) };
        if process.watched.status_now().is_some() {
            // It died by itself just now, which is heard of in a moment.
            self.processes.insert(number, process);
            return Ok(None);
        }
        if let Some(crash) = process.watched.kill() {
            return Ok(Some(Outcome::crash(&process.watched.name, &crash, "")));
        }
        self.killed += 1;
        // What it had taken is given back.
        self.epoch += 1;
        // A service that listens has said so once, and does not again.
        let workers = self.processes.values_mut().filter(|one| one.role.is_some());
        workers.for_each(|worker| worker.steps = 0);
        match process.role {
            Some(role) => self.start_worker(role, false)?,
            None => {
                // The news of its end are those of its number: heard before the next one has it.
                self.forget_news_of(SERVICE);
                self.start_service()?;
            }
        }
        Ok(None)
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
}
