//! `cargo run --release -p benches -- attacks`: what an honest client notices of attacks on the service
//! that it uses. Each has a service of its own; the client is measured alone, and then beside the attack.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use burst_harness::HarnessError;
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table, dash, time};
use burst_tests::attacks::{ATTACKS, Attack, Honest, Report};
use serde::Serialize;

/// Which attacks, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only this attack; may be repeated. Default: all that this user can carry out.
    #[arg(long, value_name = "NAME", value_parser = attack_names())]
    only: Vec<String>,
    /// Frames of the honest client, alone and beside each attack.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    frames: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// How long the client is watched at most, should its frames not come.
const WATCH: Duration = Duration::from_secs(30);

fn attack_names() -> clap::builder::PossibleValuesParser {
    ATTACKS.iter().map(|attack| attack.name).collect::<Vec<_>>().into()
}

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    attacks: Vec<Beside>,
    /// Attacks that need root, where this process has not: to be two users.
    left_out: Vec<&'static str>,
}

/// The honest client beside one attack.
#[derive(Debug, Serialize)]
struct Beside {
    attack: &'static str,
    what: &'static str,
    /// Before the attack.
    alone: Report,
    /// From the moment on at which the attack is in force; nothing where it never was, or the service
    /// died of it.
    beside: Option<Report>,
    /// What went wrong.
    failure: Option<String>,
}

impl Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// A service or its honest client does not start; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let is_asked = |attack: &&Attack| {
            self.only.is_empty() || self.only.iter().any(|name| name == attack.name)
        };
        let machine = Machine::detect();
        let (mut attacks, mut left_out) = (Vec::new(), Vec::new());
        for attack in ATTACKS.iter().filter(is_asked) {
            if attack.is_possible() {
                eprintln!("{}: {}", attack.name, attack.what);
                attacks.push(self.one(attack).map_err(HarnessError::peer)?);
            } else {
                left_out.push(attack.name);
            }
        }
        let found = Found { machine, attacks, left_out };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        let is_well = found.attacks.iter().all(|beside| beside.failure.is_none());
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn one(&self, attack: &Attack) -> Result<Beside, String> {
        let mut service = attack.start_service()?;
        let mut honest = Honest::stream(service.socket())?;
        let alone = honest.report(self.frames, WATCH)?;
        let beside = attack.begin(&service).and_then(|attacker| {
            honest.report(0, Duration::ZERO)?; // those before the attack was in force
            let report = honest.report(self.frames, WATCH);
            drop(attacker);
            report
        });
        let failure = service.end().or_else(|| match &beside {
            Ok(report) => report.check(1, WATCH).err(),
            Err(error) => Some(error.clone()),
        });
        let Attack { name, what, .. } = *attack;
        Ok(Beside { attack: name, what, alone, beside: beside.ok(), failure })
    }
}

impl Found {
    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the start {load:.2}. Frames of the \
             built-in model, one every 2 ms, from the request to the answer."
        )?;
        let words = ["attack"].map(Column::text);
        let numbers = ["p50 alone", "beside", "p99 alone", "beside", "longest", "frames", "lost"];
        let mut table = Table::new([&words[..], &numbers.map(Column::number)].concat());
        for one in &self.attacks {
            table.add(one.row());
        }
        writeln!(out, "{}", table.text())?;
        for one in &self.attacks {
            writeln!(out, "{}: {}", one.attack, one.what)?;
            if let Some(failure) = &one.failure {
                writeln!(out, "    FAILED: {failure}")?;
            }
        }
        if !self.left_out.is_empty() {
            writeln!(out, "left out, as they need root: {}", self.left_out.join(", "))?;
        }
        Ok(())
    }
}

impl Beside {
    fn row(&self) -> Vec<String> {
        #[expect(clippy::cast_precision_loss, reason = "microseconds")]
        let us = |us: u64| time(us as f64 * 1e3);
        let beside = |number: fn(&Report) -> u64| self.beside.as_ref().map(number);
        // Of a client that had no answer there is no latency.
        let latency = |number: fn(&Report) -> u64| {
            self.beside.as_ref().filter(|report| report.frames > 0).map(number)
        };
        vec![
            self.attack.to_owned(),
            us(self.alone.p50_us),
            latency(|report| report.p50_us).map_or_else(dash, us),
            us(self.alone.p99_us),
            latency(|report| report.p99_us).map_or_else(dash, us),
            latency(|report| report.longest_us).map_or_else(dash, us),
            beside(|report| report.frames).map_or_else(dash, |frames| frames.to_string()),
            beside(|report| report.wrong + report.failed)
                .map_or_else(dash, |lost| lost.to_string()),
        ]
    }
}
