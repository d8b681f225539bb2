//! What was found, as the fields of the JSON have it.

use burst_harness::engine::Quantiles;
use burst_harness::litert::Package;
use burst_harness::machine::Machine;
use serde::Serialize;

use super::accuracy::Truth;
use super::answers::Task;
use super::clients::Clients;
use super::data::Crops;
use super::latency::{Outliers, Sustained};
use super::rate::Rate;
use super::tally::Comparison;
use super::verdict::Verdict;

/// Everything.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    /// How both ends of a burst waited.
    pub(super) wait: &'static str,
    pub(super) threads: u32,
    /// `null` where no Python with LiteRT was named.
    pub(super) litert: Option<Package>,
    pub(super) data: Data,
    pub(super) models: Vec<Model>,
    pub(super) seconds: f64,
}

/// The data set.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    pub(super) pictures: usize,
    pub(super) sounds: usize,
    /// Files that are neither.
    pub(super) others: usize,
    pub(super) crops: Option<Crops>,
}

/// One model.
#[derive(Debug, Serialize)]
pub(super) struct Model {
    pub(super) model: String,
    /// `null` where it was not run on the data.
    pub(super) task: Option<Task>,
    /// What is missing of the file's graph, where a part alone is run.
    pub(super) part: Option<String>,
    /// Why it was not run on the data.
    pub(super) left_out: Option<String>,
    /// Why there is nothing of LiteRT, where one was named.
    pub(super) not_comparable: Option<String>,
    /// What ended its run before all was done.
    pub(super) failed: Option<String>,
    /// Inputs that were computed.
    pub(super) inputs: u64,
    /// How many of them were compared with the reference kernels.
    pub(super) referred: u64,
    /// What could not be read, and why.
    pub(super) damaged: Vec<String>,
    /// What of a score's difference is fair.
    pub(super) fair: Option<String>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) truth: Option<Truth>,
    pub(super) verdict: Option<Verdict>,
    pub(super) paths: Vec<PathRow>,
    /// Several clients of one service at once.
    pub(super) clients: Vec<Clients>,
}

/// Who computes: a path to a driver, or LiteRT.
#[derive(Debug, Serialize)]
pub(super) struct PathRow {
    pub(super) path: String,
    /// Of a path to a driver: inputs whose outputs were those of the first path.
    pub(super) equal: Option<u64>,
    /// From the start of a driver's process to the prepared model; of LiteRT loading it.
    pub(super) prepare_us: f64,
    /// The first execution.
    pub(super) first_us: Option<f64>,
    /// Both together.
    pub(super) cold_us: Option<f64>,
    /// Executions over the data, each input once.
    pub(super) over_data_us: Option<Quantiles>,
    /// Executions in windows until these agreed.
    pub(super) latency_us: Option<Quantiles>,
    pub(super) per_second: Option<f64>,
    pub(super) executions: usize,
    pub(super) windows_p50_us: Vec<f64>,
    pub(super) is_stable: bool,
    pub(super) outliers: Outliers,
    pub(super) sustained: Option<Sustained>,
    /// The highest rate of requests that keeps p99 low enough.
    pub(super) rate_for_p99: Option<Rate>,
    /// The most memory that the process which computes ever had; of `in-process` with all that this command has.
    pub(super) memory_kib: Option<u64>,
    #[serde(skip)]
    pub(super) curve: Vec<(f64, f64)>,
}

impl Model {
    /// Of which nothing is known yet.
    pub(super) fn named(model: &str) -> Model {
        Model {
            model: model.to_owned(),
            task: None,
            part: None,
            left_out: None,
            not_comparable: None,
            failed: None,
            inputs: 0,
            referred: 0,
            damaged: Vec::new(),
            fair: None,
            comparisons: Vec::new(),
            truth: None,
            verdict: None,
            paths: Vec::new(),
            clients: Vec::new(),
        }
    }

    /// Whether something of it is not as it should be.
    pub(super) fn is_wrong(&self) -> bool {
        let differs = |path: &PathRow| path.equal.is_some_and(|equal| equal < self.inputs);
        self.failed.is_some()
            || self.paths.iter().any(differs)
            || self.verdict.as_ref().is_some_and(|verdict| !verdict.not_worse)
    }
}
