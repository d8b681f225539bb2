//! What was found of each model. The fields are those of the JSON; times are in microseconds.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, agreement};
use super::measure::{Track, ratio};
use super::workload::Subject;
use crate::engine::verdict::Spread;
use crate::error::HarnessError;
use crate::machine::Machine;

/// A whole run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Rounds in which every path had its turn.
    pub rounds: u32,
    /// How both ends of a burst waited.
    pub wait: String,
    /// One per model.
    pub models: Vec<ModelReport>,
}

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
    /// p50 over that of the in-process path with as many threads, in the same round.
    pub ratio_to_in_process: Option<Spread>,
    /// Its outputs against those of the first path.
    pub outputs: Agreement,
    /// Quantiles and nanoseconds, for drawing.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

/// Quantiles of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
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
}

/// The names of the paths that this harness has lanes for.
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
    /// What the tracks of one model's lanes say. The first one's outputs are those the others are
    /// compared with.
    #[must_use]
    pub fn new(subject: &Subject, tracks: &[Track], profile: Option<Vec<OperationRow>>) -> Self {
        let find = |path: &str, threads| {
            let is_it = |t: &&Track| t.label.path == path && t.label.threads == threads;
            tracks.iter().find(is_it)
        };
        let outputs = tracks.first().map_or(&[][..], |first| &first.outputs);
        let path = |track: &Track| {
            let base = find(paths::IN_PROCESS, track.label.threads);
            let ratio = base.and_then(|base| ratio(track, base));
            PathReport::new(track, ratio, agreement(subject, outputs, &track.outputs))
        };
        let gain = |track: &Track| {
            let one = find(&track.label.path, 1).filter(|_| track.label.threads > 1)?;
            let ratio_to_one = ratio(track, one)?;
            let (path, threads) = (track.label.path.clone(), track.label.threads);
            Some(ThreadGain { path, threads, ratio_to_one })
        };
        ModelReport {
            model: subject.name.clone(),
            part: subject.part(),
            operations: subject.imported.model.main.operations.len(),
            input_bytes: subject.input_bytes(),
            output_bytes: subject.output_bytes(),
            paths: tracks.iter().filter_map(path).collect(),
            threads: tracks.iter().filter_map(gain).collect(),
            copies: Copies::new(tracks),
            profile,
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
    fn new(track: &Track, ratio: Option<Spread>, outputs: Agreement) -> Option<PathReport> {
        let latency = track.times.quantiles_us()?;
        let first = track.firsts.p50()? / 1e3;
        Some(PathReport {
            path: track.label.path.clone(),
            threads: track.label.threads,
            executions: track.times.len(),
            prepare_us: track.prepares.p50()? / 1e3,
            first_us: first,
            first_to_p50: first / latency.p50,
            latency_us: latency,
            transport_us: track.transport.quantiles_us(),
            ratio_to_in_process: ratio,
            outputs,
            curve: track.times.curve(),
        })
    }
}

impl Copies {
    fn new(tracks: &[Track]) -> Copies {
        let find = |path: &str| tracks.iter().find(|track| track.label.path == path);
        let us = |track: Option<&Track>| Some(track?.times.p50()? / 1e3);
        let copied = tracks.iter().find(|track| !track.copies.is_empty());
        let inputs_us = copied.and_then(|track| Some(track.copies.p50()? / 1e3));
        let client = find(paths::BURST_CLIENT_OUTPUTS);
        let service = client
            .and_then(|client| {
                let is_it = |t: &&Track| {
                    t.label.path == paths::BURST && t.label.threads == client.label.threads
                };
                tracks.iter().find(is_it)
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
pub fn operation_rows(operations: &[OperationTime]) -> Vec<OperationRow> {
    let total: f64 = operations.iter().map(|operation| operation.ns).sum();
    let mut rows: Vec<OperationRow> = Vec::new();
    for OperationTime { operation, kernel, ns, macs } in operations {
        let same = |row: &&mut OperationRow| row.operation == *operation && row.kernel == *kernel;
        let us = ns / 1e3;
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.count += 1;
                row.us += us;
                row.macs = row.macs.zip(*macs).map(|(sum, more)| sum + more);
            }
            None => rows.push(OperationRow {
                operation: operation.clone(),
                kernel: kernel.clone(),
                count: 1,
                us,
                share: 0.0,
                macs: *macs,
                gmacs_per_s: None,
            }),
        }
    }
    for row in &mut rows {
        row.share = if total > 0.0 { row.us * 1e3 / total } else { 0.0 };
        let rate = row.macs.map(|macs| crate::transport::sample::to_f64(macs) / (row.us * 1e3));
        row.gmacs_per_s = rate.filter(|rate| rate.is_finite());
    }
    rows.sort_by(|a, b| b.us.total_cmp(&a.us));
    rows
}

impl Report {
    /// One JSON object.
    ///
    /// # Errors
    /// Writing.
    pub fn write_json(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        serde_json::to_writer(&mut *out, self)?;
        Ok(writeln!(out)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, kernel: Option<&str>, ns: f64, macs: Option<u64>) -> OperationTime {
        OperationTime { operation: name.into(), kernel: kernel.map(Into::into), ns, macs }
    }

    #[test]
    fn operations_are_added_up_by_kind_and_kernel_the_most_costly_first() {
        let rows = operation_rows(&[
            operation("ADD", None, 1000.0, None),
            operation("CONV_2D", Some("fast"), 3000.0, Some(30_000)),
            operation("CONV_2D", Some("fast"), 5000.0, Some(50_000)),
            operation("CONV_2D", None, 1000.0, Some(100)),
        ]);
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
        assert_eq!(operation_rows(&[]), []);
    }
}
