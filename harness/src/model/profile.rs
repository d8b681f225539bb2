//! Where the time of a model goes: each operation, and those of one kind together, beside what the machine can do at
//! best. The fields are those of the JSON.

use serde::{Deserialize, Serialize};

use crate::engine::to_f64;

/// Where the time of a model goes.
#[derive(Debug, Clone)]
pub struct Profile {
    /// By kind of operation and kernel.
    pub rows: Vec<OperationRow>,
    /// One by one.
    pub operations: Vec<OperationFigures>,
    /// What the machine can do at best.
    pub roofs: Roofs,
    /// An execution without a look at the clock between operations, by turns with those that were looked into.
    pub beside_us: f64,
}

impl Profile {
    /// What these operations took, beside these roofs.
    #[must_use]
    pub fn new(operations: &[OperationTime], roofs: Roofs, beside_us: f64) -> Profile {
        let rows = operation_rows(operations, &roofs);
        let operations = operation_figures(operations, &roofs);
        Profile { rows, operations, roofs, beside_us }
    }
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

impl Roofs {
    /// Products of floats, or of stored values of 8 bits.
    fn gmacs_per_s(&self, is_float: bool) -> f64 {
        if is_float { self.float_gmacs_per_s } else { self.byte_gmacs_per_s }
    }
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
    /// Its position in the model.
    pub index: usize,
    /// The shape of its first output, where it is known.
    pub output: Option<Vec<u32>>,
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

/// One operation of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationFigures {
    /// Its position in the model.
    pub index: usize,
    /// What it computes.
    pub operation: String,
    /// The kernel; `null` for the reference.
    pub kernel: Option<String>,
    /// The shape of its first output, `1x112x112x32`; `null` where only an execution shows it.
    pub output: Option<String>,
    /// Its time in one execution.
    pub us: f64,
    /// That over the time of all operations.
    pub share: f64,
    /// Multiplications that are added up in one execution, where they can be counted.
    pub macs: Option<u64>,
    /// 10^9 multiplications and additions of those per second: two for each.
    pub gops_per_s: Option<f64>,
    /// That over what the machine can do at best.
    pub of_peak: Option<f64>,
    /// Bytes of all that it reads and writes in one execution, where shapes are known.
    pub bytes: Option<u64>,
    /// 10^9 of those per second.
    pub gb_per_s: Option<f64>,
    /// That over what one thread reads of memory that no cache has; more than 1 where a cache has them.
    pub of_memory: Option<f64>,
}

/// Operations of one kind and kernel together, the most costly first.
#[must_use]
pub fn operation_rows(operations: &[OperationTime], roofs: &Roofs) -> Vec<OperationRow> {
    let total: f64 = operations.iter().map(|operation| operation.ns).sum();
    let mut rows: Vec<OperationRow> = Vec::new();
    // The least time that each row's products could take, in seconds.
    let mut least: Vec<f64> = Vec::new();
    for OperationTime { operation, kernel, ns, macs, bytes, is_float, .. } in operations {
        let same = |row: &OperationRow| row.operation == *operation && row.kernel == *kernel;
        let peak = roofs.gmacs_per_s(*is_float);
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

/// Every operation by itself, in the order given.
#[must_use]
pub fn operation_figures(operations: &[OperationTime], roofs: &Roofs) -> Vec<OperationFigures> {
    let total: f64 = operations.iter().map(|operation| operation.ns).sum();
    let figures = |one: &OperationTime| {
        // A thousand millions per second are one for each nanosecond.
        let rate = |count: Option<u64>| count.map(|count| to_f64(count) / one.ns);
        let rate = |count| rate(count).filter(|rate| rate.is_finite());
        let (gmacs_per_s, gb_per_s) = (rate(one.macs), rate(one.bytes));
        let output = one
            .output
            .as_ref()
            .map(|output| output.iter().map(u32::to_string).collect::<Vec<String>>().join("x"));
        OperationFigures {
            index: one.index,
            operation: one.operation.clone(),
            kernel: one.kernel.clone(),
            output,
            us: one.ns / 1e3,
            share: if total > 0.0 { one.ns / total } else { 0.0 },
            macs: one.macs,
            gops_per_s: gmacs_per_s.map(|rate| 2.0 * rate),
            of_peak: gmacs_per_s.map(|rate| rate / roofs.gmacs_per_s(one.is_float)),
            bytes: one.bytes,
            gb_per_s,
            of_memory: gb_per_s.map(|rate| rate / roofs.memory_gb_per_s),
        }
    };
    operations.iter().map(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, kernel: Option<&str>, ns: f64, macs: Option<u64>) -> OperationTime {
        let (operation, kernel) = (name.into(), kernel.map(Into::into));
        OperationTime {
            index: 7,
            output: Some(vec![1, 2, 2, 3]),
            operation,
            kernel,
            ns,
            macs,
            bytes: Some(100),
            is_float: is_float(macs),
        }
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

    #[test]
    fn every_operation_has_its_rates_beside_those_of_the_machine() {
        let operations = [
            operation("CONV_2D", Some("fast"), 3000.0, Some(30_000)),
            operation("CONV_2D", None, 1000.0, Some(100)),
            operation("ADD", None, 1000.0, None),
        ];
        let found = operation_figures(&operations, &ROOFS);
        let near = |value: Option<f64>, expected: f64| {
            assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}");
        };
        near(found[0].gops_per_s, 20.0); // 10 products a nanosecond, each multiplied and added up
        near(found[0].of_peak, 0.5); // of bytes
        near(found[1].of_peak, 0.1); // of floats
        assert_eq!((found[2].gops_per_s, found[2].of_peak), (None, None), "nothing is made up");
        near(found[2].gb_per_s, 0.1);
        near(found[2].of_memory, 0.01);
        assert_eq!(found.iter().map(|one| one.share).collect::<Vec<f64>>(), [0.6, 0.2, 0.2]);
        assert_eq!((found[0].index, found[0].output.as_deref()), (7, Some("1x2x2x3")));
        let never = [operation("CONV_2D", None, 0.0, Some(5))];
        let never = operation_figures(&never, &ROOFS);
        assert_eq!((never[0].gops_per_s, never[0].share), (None, 0.0), "no time, no rate");
    }
}
