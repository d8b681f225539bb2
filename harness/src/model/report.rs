//! What was found of each model. The fields are those of the JSON; times are in microseconds.

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, agreement};
use super::measure::{Series, ratio};
use super::workload::Workload;
use crate::engine::{Quantiles, Spread, to_f64};

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
    /// One per path and number of threads.
    pub paths: Vec<PathReport>,
    /// What more threads bring, per path.
    pub threads: Vec<ThreadGain>,
    /// What moving inputs and outputs costs.
    pub copies: Copies,
    /// Where the time goes, operation by operation; `null` where it was not asked for.
    pub profile: Option<Vec<OperationRow>>,
    /// What the machine can do at best; `null` without a profile.
    #[serde(default)]
    pub roofs: Option<Roofs>,
    /// An execution without a look at the clock between operations, in the same rounds as the profile, by turns with it;
    /// `null` without a profile.
    #[serde(default)]
    pub profile_beside_us: Option<f64>,
}

/// Where the time of a model goes.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its operations.
    pub rows: Vec<OperationRow>,
    /// What the machine can do at best.
    pub roofs: Roofs,
    /// An execution without a look at the clock between operations, by turns with those that were looked into.
    pub beside_us: f64,
}

/// What the threads that compute can do at best, measured in the same run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Roofs {
    /// 10^9 products of floats that are added up per second.
    pub float_gmacs_per_s: f64,
    /// The same of stored values of 8 bits.
    pub byte_gmacs_per_s: f64,
    /// 10^9 bytes per second that one thread reads of memory that no cache has.
    pub memory_gb_per_s: f64,
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
    /// The first execution over the median one.
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

/// All operations of one kind that one kernel computes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationRow {
    /// What they compute.
    pub operation: String,
    /// The kernel; `null` for the reference.
    pub kernel: Option<String>,
    /// How many there are.
    pub count: usize,
    /// Time of all of them in one execution.
    pub us: f64,
    /// That over the time of all operations.
    pub share: f64,
    /// Multiplications that are added up in one execution, where they can be counted.
    pub macs: Option<u64>,
    /// 10^9 of those per second.
    pub gmacs_per_s: Option<f64>,
    /// That over what the machine can do at best.
    #[serde(default)]
    pub of_peak: Option<f64>,
    /// Bytes of all that they read and write in one execution, where shapes are known.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// One operation of a model, with the time it took in one execution.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationTime {
    /// What it computes.
    pub operation: String,
    /// The kernel that does; `None` for the reference.
    pub kernel: Option<String>,
    /// Nanoseconds.
    pub ns: f64,
    /// Multiplications that are added up.
    pub macs: Option<u64>,
    /// Bytes of all that it reads and writes.
    pub bytes: Option<u64>,
    /// Whether it computes with floats.
    pub is_float: bool,
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
            paths: series.iter().filter_map(path).collect(),
            threads: series.iter().filter_map(gain).collect(),
            copies: Copies::new(series),
            roofs: profile.as_ref().map(|profile| profile.roofs),
            profile_beside_us: profile.as_ref().map(|profile| profile.beside_us),
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
        let first = one.firsts.p50()? / 1e3;
        Some(PathReport {
            path: one.label.path.clone(),
            threads: one.label.threads,
            executions: one.times.len(),
            prepare_us: one.prepares.p50()? / 1e3,
            first_us: first,
            first_to_p50: first / latency.p50,
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

/// Operations of one kind and kernel together, the most costly first.
#[must_use]
pub fn operation_rows(operations: &[OperationTime], roofs: &Roofs) -> Vec<OperationRow> {
    let total: f64 = operations.iter().map(|operation| operation.ns).sum();
    let mut rows: Vec<OperationRow> = Vec::new();
    // The least time that each row's products could take, in seconds.
    let mut least: Vec<f64> = Vec::new();
    for OperationTime { operation, kernel, ns, macs, bytes, is_float } in operations {
        let same = |row: &OperationRow| row.operation == *operation && row.kernel == *kernel;
        let peak = if *is_float { roofs.float_gmacs_per_s } else { roofs.byte_gmacs_per_s };
        let own = macs.map_or(0.0, to_f64) / (peak * 1e9);
        let us = ns / 1e3;
        let sum = |one: Option<u64>, more: &Option<u64>| one?.checked_add((*more)?);
        match rows.iter().position(same) {
            Some(at) => {
                let row = &mut rows[at];
                least[at] += own;
                row.bytes = sum(row.bytes, bytes);
                row.count += 1;
                row.us += us;
                row.macs = sum(row.macs, macs);
            }
            None => {
                least.push(own);
                rows.push(OperationRow {
                    operation: operation.clone(),
                    kernel: kernel.clone(),
                    count: 1,
                    us,
                    share: 0.0,
                    macs: *macs,
                    gmacs_per_s: None,
                    of_peak: None,
                    bytes: *bytes,
                });
            }
        }
    }
    for (row, least) in rows.iter_mut().zip(least) {
        row.share = if total > 0.0 { row.us * 1e3 / total } else { 0.0 };
        let rate = row.macs.map(|macs| to_f64(macs) / (row.us * 1e3));
        row.gmacs_per_s = rate.filter(|rate| rate.is_finite());
        row.of_peak = row.gmacs_per_s.map(|_| least * 1e6 / row.us);
    }
    rows.sort_by(|a, b| b.us.total_cmp(&a.us));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, kernel: Option<&str>, ns: f64, macs: Option<u64>) -> OperationTime {
        let (operation, kernel) = (name.into(), kernel.map(Into::into));
        OperationTime { operation, kernel, ns, macs, bytes: Some(100), is_float: is_float(macs) }
    }

    /// The one with 100 products is of floats.
    fn is_float(macs: Option<u64>) -> bool {
        macs == Some(100)
    }

    const ROOFS: Roofs =
        Roofs { float_gmacs_per_s: 1.0, byte_gmacs_per_s: 20.0, memory_gb_per_s: 10.0 };

    #[test]
    fn operations_are_added_up_by_kind_and_kernel_the_most_costly_first() {
        let operations = [
            operation("ADD", None, 1000.0, None),
            operation("CONV_2D", Some("fast"), 3000.0, Some(30_000)),
            operation("CONV_2D", Some("fast"), 5000.0, Some(50_000)),
            operation("CONV_2D", None, 1000.0, Some(100)),
        ];
        let rows = operation_rows(&operations, &ROOFS);
        let seen: Vec<_> =
            rows.iter().map(|r| (r.operation.as_str(), r.count, r.macs, r.gmacs_per_s)).collect();
        let expected = [
            ("CONV_2D", 2, Some(80_000), Some(10.0)),
            ("ADD", 1, None, None),
            ("CONV_2D", 1, Some(100), Some(0.1)),
        ];
        assert_eq!(seen, expected);
        let shares: Vec<f64> = rows.iter().map(|row| row.share).collect();
        assert_eq!(shares, [0.8, 0.1, 0.1]);
        let percent = |row: &OperationRow| row.of_peak.map(|part| format!("{:.1}", 100.0 * part));
        let of_peak: Vec<Option<String>> = rows.iter().map(percent).collect();
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(of_peak, [of("50.0"), None, of("10.0")], "of bytes, and of floats");
        assert_eq!(rows[0].bytes, Some(200));
        assert_eq!(operation_rows(&[], &ROOFS), []);
    }
}
