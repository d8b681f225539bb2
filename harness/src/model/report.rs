//! What was found of each model. The fields are those of the JSON; times are in microseconds.

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, agreement};
use super::measure::{Series, ratio, ratio_by_round};
use super::profile::{OperationFigures, OperationRow, Profile, Roofs};
use super::workload::Workload;
use crate::engine::{Quantiles, Spread, median};

/// What a run over models found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelsReport {
    /// How both ends of a burst waited.
    pub wait: String,
    /// One per model.
    pub models: Vec<ModelReport>,
    /// The most memory that this process, the client of every path, ever had resident, in KiB.
    #[serde(default)]
    pub client_memory_kib: Option<u64>,
}

/// A whole run over models.
pub type Report = crate::report::Report<ModelsReport>;

/// One model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelReport {
    /// Its name.
    pub model: String,
    /// What is missing, where only a part of the file's graph was run.
    pub part: Option<String>,
    /// Operations of the HAL's model.
    pub operations: usize,
    /// Bytes of all inputs, states included.
    pub input_bytes: u64,
    /// Bytes of all outputs whose shape is known before an execution, states included.
    pub output_bytes: u64,
    /// Making a model of the HAL of the file, which whoever prepares it does first, and once.
    #[serde(default)]
    pub import_us: f64,
    /// One per path and number of threads.
    pub paths: Vec<PathReport>,
    /// What more threads bring, per path.
    pub threads: Vec<ThreadGain>,
    /// What moving inputs and outputs costs.
    pub copies: Copies,
    /// Where the time goes, by kind of operation and kernel; `null` where it was not asked for.
    pub profile: Option<Vec<OperationRow>>,
    /// Every operation by itself, in the order in which they run; `null` likewise.
    #[serde(default)]
    pub profile_operations: Option<Vec<OperationFigures>>,
    /// What the machine can do at best; `null` without a profile.
    #[serde(default)]
    pub roofs: Option<Roofs>,
    /// An execution without a look at the clock between operations, in the same rounds as the profile, by turns with it;
    /// `null` without a profile.
    #[serde(default)]
    pub profile_beside_us: Option<f64>,
}

/// One way to run a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PathReport {
    /// Which way.
    pub path: String,
    /// Threads that compute.
    pub threads: u32,
    /// Executions that count, over all rounds.
    pub executions: usize,
    /// Preparing the model and setting up; the median of all rounds.
    pub prepare_us: f64,
    /// The first execution after that; the median of all rounds.
    pub first_us: f64,
    /// The first execution over the median one of the same round; the median of all rounds.
    pub first_to_p50: f64,
    /// All executions that count.
    pub latency_us: Quantiles,
    /// What they took beyond the time the driver measured; `null` in this process.
    pub transport_us: Option<Quantiles>,
    /// The median of each round, in order, of the rounds in which the path had a trial.
    #[serde(default)]
    pub rounds_p50_us: Vec<f64>,
    /// p50 over that of the in-process path with as many threads, in the same round.
    pub ratio_to_in_process: Option<Spread>,
    /// The most memory that the process which computes ever had resident, in KiB: the driver's, or in process this one,
    /// which has what is measured too. `null` where that cannot be read.
    #[serde(default)]
    pub memory_kib: Option<u64>,
    /// Its outputs against those of the first path.
    pub outputs: Agreement,
    /// Quantiles and nanoseconds, for drawing.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

/// More threads against one, on one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadGain {
    /// Which way.
    pub path: String,
    /// How many threads.
    pub threads: u32,
    /// p50 over that with one thread, in the same round.
    pub ratio_to_one: Spread,
}

/// What moving inputs and outputs costs. Each is `null` where it was not measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Copies {
    /// Copying the inputs out of a client's memory once, which every execution of a service does.
    pub inputs_us: Option<f64>,
    /// That over the p50 in this process, with one thread.
    pub inputs_share: Option<f64>,
    /// p50 over a burst where the client made the memory of the outputs: the service copies them
    /// out with care for what others may write there.
    pub outputs_of_client_us: Option<f64>,
    /// p50 over a burst where the service made that memory, which the client can only read.
    pub outputs_of_service_us: Option<f64>,
    /// The second over the first, in the same round.
    pub service_to_client: Option<Spread>,
}

/// The names of the paths that this harness has subjects for.
pub mod paths {
    /// A driver in this process.
    pub const IN_PROCESS: &str = "in-process";
    /// A driver process, over a burst.
    pub const BURST: &str = "burst";
    /// A driver process, over the control socket.
    pub const SYNC: &str = "sync";
    /// A burst whose outputs lie in memory that the client made.
    pub const BURST_CLIENT_OUTPUTS: &str = "burst-client-outputs";
}

impl ModelReport {
    /// What was measured of one model's subjects. The first one's outputs are those that the others are
    /// compared with.
    #[must_use]
    pub fn new(workload: &Workload, series: &[Series], profile: Option<Profile>) -> Self {
        let find = |path: &str, threads| {
            let is_it = |t: &&Series| t.label.path == path && t.label.threads == threads;
            series.iter().find(is_it)
        };
        let outputs = series.first().map_or(&[][..], |first| &first.outputs);
        let path = |one: &Series| {
            let base = find(paths::IN_PROCESS, one.label.threads);
            let ratio = base.and_then(|base| ratio(one, base));
            PathReport::new(one, ratio, agreement(workload, outputs, &one.outputs))
        };
        let gain = |own: &Series| {
            let one = find(&own.label.path, 1).filter(|_| own.label.threads > 1)?;
            let ratio_to_one = ratio(own, one)?;
            let (path, threads) = (own.label.path.clone(), own.label.threads);
            Some(ThreadGain { path, threads, ratio_to_one })
        };
        ModelReport {
            model: workload.name.clone(),
            part: workload.part(),
            operations: workload.imported.model.main.operations.len(),
            input_bytes: workload.input_bytes(),
            output_bytes: workload.output_bytes(),
            import_us: workload.import_time.as_secs_f64() * 1e6,
            paths: series.iter().filter_map(path).collect(),
            threads: series.iter().filter_map(gain).collect(),
            copies: Copies::new(series),
            roofs: profile.as_ref().map(|profile| profile.roofs),
            profile_beside_us: profile.as_ref().map(|profile| profile.beside_us),
            profile_operations: profile.as_ref().map(|profile| profile.operations.clone()),
            profile: profile.map(|profile| profile.rows),
        }
    }

    /// One of the paths.
    #[must_use]
    pub fn path(&self, path: &str, threads: u32) -> Option<&PathReport> {
        self.paths.iter().find(|one| one.path == path && one.threads == threads)
    }
}

impl PathReport {
    /// `None` where nothing was measured.
    fn new(one: &Series, ratio: Option<Spread>, outputs: Agreement) -> Option<PathReport> {
        let latency = one.times.quantiles_us()?;
        let us = |ns: &[Option<f64>]| Some(median(ns.iter().flatten().copied())? / 1e3);
        Some(PathReport {
            path: one.label.path.clone(),
            threads: one.label.threads,
            executions: one.times.len(),
            prepare_us: us(&one.prepares)?,
            first_us: us(&one.firsts)?,
            first_to_p50: ratio_by_round(&one.firsts, &one.p50s)?.median,
            latency_us: latency,
            transport_us: one.transport.quantiles_us(),
            rounds_p50_us: one.p50s.iter().flatten().map(|ns| ns / 1e3).collect(),
            ratio_to_in_process: ratio,
            memory_kib: one.memory_kib,
            outputs,
            curve: one.times.curve(),
        })
    }
}

impl Copies {
    fn new(series: &[Series]) -> Copies {
        let find = |path: &str| series.iter().find(|one| one.label.path == path);
        let us = |one: Option<&Series>| Some(one?.times.p50()? / 1e3);
        let copied = series.iter().find(|one| !one.copies.is_empty());
        let inputs_us = copied.and_then(|one| Some(one.copies.p50()? / 1e3));
        let client = find(paths::BURST_CLIENT_OUTPUTS);
        let service = client
            .and_then(|client| {
                let is_it = |t: &&Series| {
                    t.label.path == paths::BURST && t.label.threads == client.label.threads
                };
                series.iter().find(is_it)
            })
            .or_else(|| find(paths::BURST));
        Copies {
            inputs_us,
            inputs_share: inputs_us.zip(us(copied)).map(|(copy, whole)| copy / whole),
            outputs_of_client_us: us(client),
            outputs_of_service_us: us(service),
            service_to_client: service.zip(client).and_then(|(own, base)| ratio(own, base)),
        }
    }
}
