//! The end of a test: everybody is told to stop, and has to.

use std::time::Instant;

use anyhow::Result;

use super::outcome::Outcome;
use super::process::{Crash, News};
use super::watch::{LOOK, SERVICE, Watch};

impl Watch<'_> {
    /// Tells everybody to stop, workers first, and sees that they do. After a signal nobody is asked.
    pub(super) fn end(&mut self) -> Result<Option<Outcome>> {
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

    /// Counts what everybody said up to the end and nobody has heard yet.
    pub(super) fn hear_the_rest(&mut self) {
        while let Ok((number, news)) = self.news.1.try_recv() {
            if let News::Line(line) = news {
                self.heard(number, &line);
            }
        }
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
            let what = format!("was told to stop and did not within {seconds} s");
            return Some(Outcome::hang(&name, &what));
        };
        if let Some(crash) = Crash::of(status) {
            return Some(Outcome::crash(&name, &crash, " when it was told to stop"));
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
        Some(Outcome::failure_of(&name, &what))
    }
}
