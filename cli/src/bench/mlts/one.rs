//! One model from its file to its figures.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};
use burst_harness::engine::Times;
use burst_harness::litert::{Kernels, Python};
use burst_harness::model::Workload;
use burst_tasks::{TaskModel, TaskOptions};

use super::Args;
use super::accuracy::{Kept, Limits, compare};
use super::clients::{Clients, sweep};
use super::contest::{LiteRtPair, Other, Setup, Way};
use super::data::DataSet;
use super::fair::Fair;
use super::inputs::{Inputs, Unfit};
use super::latency::{Computes, Latency, measure, sustain};
use super::rate::highest;
use super::report::{Model, PathRow};
use super::tally::Comparison;
use super::verdict::Verdict;
use crate::signals::Asked;

/// What all models have in common.
pub(super) struct Bench<'b> {
    pub(super) args: &'b Args,
    pub(super) data: &'b DataSet,
    pub(super) python: Option<Rc<RefCell<Python>>>,
    pub(super) asked: &'b Asked,
}

/// Told of the model, how many inputs are done, and of how many.
pub(super) type Watch<'w> = dyn FnMut(u64, Option<u64>) + 'w;

impl Bench<'_> {
    /// Runs one model. What stops it stands in its report: others follow.
    pub(super) fn model(&self, file: &PathBuf, watch: &mut Watch<'_>) -> Model {
        let name = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy();
        let mut found = Model::named(&name);
        if let Err(error) = self.fill(file, &mut found, watch) {
            found.failed = Some(crate::failure::error_text(&error));
        }
        found
    }

    fn fill(&self, file: &PathBuf, found: &mut Model, watch: &mut Watch<'_>) -> Result<()> {
        let model = match TaskModel::read(file) {
            Ok(model) => model,
            Err(error) => return self.without_data(file, error.to_string(), found),
        };
        match Inputs::new(&model, self.data, &TaskOptions::default())? {
            Ok(inputs) => self.with_data(file, &model, inputs, found, watch),
            Err(Unfit(why)) => self.without_data(file, why, found),
        }
    }

    fn setup<'m>(&self, setup: Setup<'m>) -> Setup<'m> {
        Setup { wait: self.args.wait, threads: self.args.threads, ..setup }
    }

    fn ways(&self, setup: &Setup<'_>) -> Result<Vec<Way>> {
        self.args.path.iter().map(|route| Way::open(*route, setup)).collect()
    }

    /// LiteRT with both kinds of kernels; with neither where it cannot run the model, which is noted.
    fn others(&self, setup: &Setup<'_>, input: &str, found: &mut Model) -> Option<LiteRtPair> {
        let python = self.python.as_ref()?;
        let pair = || -> Result<LiteRtPair> {
            let fast = Other::load(python, Kernels::Default, setup, input)?;
            let wants_reference = self.args.reference_inputs != Some(0);
            let reference = wants_reference
                .then(|| Other::load(python, Kernels::Reference, setup, input))
                .transpose()?;
            Ok(LiteRtPair { fast, reference })
        };
        match pair() {
            Ok(pair) => Some(pair),
            Err(error) => {
                found.not_comparable = Some(crate::failure::error_text(&error));
                None
            }
        }
    }

    fn with_data(
        &self,
        file: &PathBuf,
        model: &TaskModel,
        mut inputs: Inputs<'_>,
        found: &mut Model,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let (imported, outputs) = (&model.imported, model.own_outputs());
        let setup = self.setup(Setup {
            file,
            imported,
            cut: None,
            outputs,
            ..Setup::plain(file, imported)
        });
        let mut ways = self.ways(&setup)?;
        let mut others = self.others(&setup, &inputs.name, found);
        let fair = Fair::of(file, outputs.first())?;
        let go_on = || self.asked.go_on();
        let mut limits = Limits {
            inputs: self.args.limit,
            referred: self.args.reference_inputs,
            go_on: &go_on,
            watch,
        };
        let compared = compare(model, &mut inputs, (&mut ways, others.as_mut()), fair, &mut limits);
        let (accuracy, kept) = compared?;
        if accuracy.inputs == 0 && self.asked.go_on() {
            bail!("nothing of the data could be read: {}", accuracy.damaged.join("; "));
        }
        found.verdict = Verdict::of(&accuracy);
        found.task = Some(accuracy.task);
        found.fair = (accuracy.referred > 0
            && accuracy.comparisons.iter().any(Comparison::has_scores))
        .then(|| fair.text());
        (found.inputs, found.referred) = (accuracy.inputs, accuracy.referred);
        (found.damaged, found.comparisons) = (accuracy.damaged, accuracy.comparisons);
        found.truth = accuracy.truth;
        found.paths = self.rows(&mut ways, others.as_ref(), &kept)?;
        drop(ways); // several clients at once have the machine to themselves
        found.clients = self.clients(&setup, &kept)?;
        Ok(())
    }

    fn clients(&self, setup: &Setup<'_>, kept: &Kept) -> Result<Vec<Clients>> {
        if self.args.clients.is_empty() || kept.driver.is_empty() || !self.asked.go_on() {
            return Ok(Vec::new());
        }
        sweep(&self.args.clients, setup, &kept.driver)
    }

    /// A model that is not run on the data: its times over made-up inputs, and why.
    fn without_data(&self, file: &PathBuf, why: String, found: &mut Model) -> Result<()> {
        found.left_out = Some(why);
        let workload = Workload::read(file)?;
        found.part = workload.part();
        if workload.given_inputs().collect::<Vec<_>>() != [0] {
            return Ok(()); // only models with one input are fed here
        }
        let outputs = &workload.imported.outputs[..workload.given_outputs()];
        let plain = Setup::plain(file, &workload.imported);
        let setup = self.setup(Setup { cut: workload.cut.as_ref(), outputs, ..plain });
        let mut ways = self.ways(&setup)?;
        let input = &workload.inputs[0];
        for way in &mut ways {
            let took = way.run(input, true)?;
            way.times.push(super::latency::nanos(took));
        }
        let name = workload.imported.inputs[0].name.clone();
        let others = self.others(&setup, &name, found);
        if let Some(others) = &others {
            others.fast.give(input, true)?;
        }
        let kept = Kept { driver: vec![input.clone()], whole: vec![input.clone()] };
        found.paths = self.rows(&mut ways, others.as_ref(), &kept)?;
        found.paths.iter_mut().for_each(|row| row.equal = None); // outputs were not compared
        Ok(())
    }

    /// Times of everybody, and what else is known of them.
    fn rows(
        &self,
        ways: &mut [Way],
        others: Option<&LiteRtPair>,
        kept: &Kept,
    ) -> Result<Vec<PathRow>> {
        let mut rows: Vec<PathRow> = ways.iter().map(PathRow::of_way).collect();
        let fast = others.map(|others| &others.fast);
        rows.extend(fast.map(PathRow::of_other));
        let go_on = || self.asked.go_on();
        if self.args.windows == 0 || kept.driver.is_empty() || !go_on() {
            return Ok(rows);
        }
        if let (Some(fast), Some(input)) = (fast, kept.whole.first()) {
            fast.give(input, true)?;
        }
        let mut all: Vec<Computes<'_>> = Vec::new();
        all.extend(ways.iter_mut().map(|way| Computes::Way(way, &kept.driver)));
        all.extend(fast.map(Computes::Other));
        let found = measure(all, self.args.windows, &go_on)?;
        for (row, latency) in rows.iter_mut().zip(found) {
            row.take(latency);
        }
        if let Some(limit) = self.args.rate_for_p99 {
            for (row, way) in rows.iter_mut().zip(ways.iter_mut()) {
                let most = row.per_second.unwrap_or(1.0);
                row.rate_for_p99 = Some(highest(way, &kept.driver, (limit, most), &go_on)?);
            }
        }
        let Some(seconds) = self.args.sustain else { return Ok(rows) };
        let length = Duration::from_secs(seconds);
        let mut all: Vec<Computes<'_>> = Vec::new();
        all.extend(ways.iter_mut().map(|way| Computes::Way(way, &kept.driver)));
        all.extend(fast.map(Computes::Other));
        for (row, who) in rows.iter_mut().zip(&mut all) {
            row.sustained = sustain(who, length, &go_on)?;
        }
        Ok(rows)
    }
}

impl PathRow {
    fn new(path: &str, prepare: Duration, times: &[u64]) -> PathRow {
        let us = |ns: u64| Duration::from_nanos(ns).as_secs_f64() * 1e6;
        let prepare_us = prepare.as_secs_f64() * 1e6;
        let first_us = times.first().map(|ns| us(*ns));
        let over_data = Times::new(times.to_vec());
        PathRow {
            path: path.to_owned(),
            equal: None,
            prepare_us,
            first_us,
            cold_us: first_us.map(|first| first + prepare_us),
            over_data_us: over_data.quantiles_us(),
            latency_us: None,
            per_second: None,
            executions: 0,
            windows_p50_us: Vec::new(),
            is_stable: false,
            outliers: super::latency::Outliers::default(),
            sustained: None,
            rate_for_p99: None,
            memory_kib: None,
            curve: over_data.curve(),
        }
    }

    fn of_way(way: &Way) -> PathRow {
        let row = PathRow::new(way.route.name(), way.prepare, &way.times);
        PathRow { equal: Some(way.equal), memory_kib: way.memory_kib(), ..row }
    }

    fn of_other(other: &Other) -> PathRow {
        let row = PathRow::new(burst_harness::litert::PATH, other.prepare, &other.times);
        PathRow { memory_kib: other.memory_kib(), ..row }
    }

    fn take(&mut self, latency: Option<Latency>) {
        let Some(latency) = latency else { return };
        self.latency_us = Some(latency.latency_us);
        self.per_second = Some(latency.per_second);
        self.executions = latency.executions;
        self.windows_p50_us = latency.windows_p50_us;
        self.is_stable = latency.is_stable;
        self.outliers = latency.outliers;
        self.curve = latency.curve;
    }
}
