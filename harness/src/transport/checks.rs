//! What the transport must reach, from the rows of one run.

use serde::{Deserialize, Serialize};

use crate::transport::case::{Case, FRAME_BYTES, Placement, SERVICE_NS};
use crate::transport::names;
use crate::transport::row::Row;
use crate::wait::WaitKind;

/// One line of what must be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// A ratio, and where it is taken.
    pub what: String,
    /// What it is in this run; `None` where a row it needs was not measured.
    pub value: Option<f64>,
    /// What it must be at most, or at least.
    pub must: Bound,
    /// What it should be.
    pub reach: Bound,
    /// Whether `must` holds; `None` without a value.
    pub ok: Option<bool>,
}

/// A limit from above or below; in JSON a string such as `<= 1.25`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Bound {
    /// Whether a value keeps to it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::AtMost(limit) => write!(f, "<= {limit}"),
            Bound::AtLeast(limit) => write!(f, ">= {limit}"),
        }
    }
}

impl From<Bound> for String {
    fn from(bound: Bound) -> String {
        bound.to_string()
    }
}

/// Text that is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected <= or >= and a number")]
pub struct NotABound;

impl TryFrom<String> for Bound {
    type Error = NotABound;

    fn try_from(text: String) -> Result<Bound, NotABound> {
        let (sign, number) = text.split_once(' ').ok_or(NotABound)?;
        let number = number.parse().map_err(|_| NotABound)?;
        match sign {
            "<=" => Ok(Bound::AtMost(number)),
            ">=" => Ok(Bound::AtLeast(number)),
            _ => Err(NotABound),
        }
    }
}

impl Check {
    fn new(what: impl Into<String>, value: Option<f64>, must: Bound, reach: Bound) -> Check {
        let value = value.filter(|value| value.is_finite());
        let ok = value.map(|value| must.holds(value));
        Check { what: what.into(), value, must, reach, ok }
    }

    /// In a word.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.ok, self.value) {
            (Some(true), Some(value)) if self.reach.holds(value) => "reached",
            (Some(true), _) => "ok",
            (Some(false), _) => "MISSED",
            (None, _) => "not measured",
        }
    }
}

struct Rows<'r>(&'r [Row]);

impl<'r> Rows<'r> {
    /// The plain ping-pong of a peer: whatever else is measured with it is part of a row's name.
    fn get(
        &self,
        name: &str,
        wait: WaitKind,
        placement: Placement,
        bytes: usize,
    ) -> Option<&'r Row> {
        self.0.iter().find(|row| {
            row.name == name
                && (row.wait, row.placement) == (wait, placement)
                && row.request_bytes == bytes
        })
    }

    fn spin(&self, name: &str, bytes: usize) -> Option<&'r Row> {
        self.get(name, WaitKind::Spin, Placement::PinnedApart, bytes)
    }

    fn any_size(&self, name: &str, wait: WaitKind, placement: Placement) -> Option<&'r Row> {
        self.0.iter().find(|row| row.name == name && (row.wait, row.placement) == (wait, placement))
    }

    /// Of a row to the floor.
    fn floor(row: Option<&Row>) -> Option<f64> {
        Some(row?.ratio_to_floor.median)
    }

    /// Of one row to another, each measured against floors of its own seconds.
    fn ratio(a: Option<&Row>, b: Option<&Row>) -> Option<f64> {
        Some(a?.ratio_to_floor.median / b?.ratio_to_floor.median)
    }
}

/// Three bounds for three sizes: `must`, `reach`.
type BySize = [(usize, f64, f64); 3];

/// All checks, also those whose rows are missing.
#[must_use]
pub fn checks(rows: &[Row]) -> Vec<Check> {
    let rows = Rows(rows);
    let mut checks = Vec::new();
    spinning(&rows, &mut checks);
    sleeping(&rows, &mut checks);
    frames(&rows, &mut checks);
    checks
}

fn spinning(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    use Bound::{AtLeast, AtMost};
    let to_floor: BySize = [(64, 1.25, 0.9), (256, 1.35, 1.0), (1024, 1.9, 1.4)];
    for (bytes, must, reach) in to_floor {
        let value = Rows::floor(rows.spin(names::OURS, bytes));
        let what = format!("{bytes} B round trip : line floor, spin");
        checks.push(Check::new(what, value, AtMost(must), AtMost(reach)));
    }
    let peers: [(&str, BySize); 4] = [
        (names::ICEORYX_REQUEST, [(64, 4.0, 7.0), (256, 4.0, 6.0), (1024, 3.0, 4.5)]),
        (names::ICEORYX_PUBLISH, [(64, 2.8, 4.0), (256, 2.8, 3.5), (1024, 2.4, 3.3)]),
        (names::LIBFMQ, [(64, 1.6, 2.8), (256, 1.6, 2.4), (1024, 1.4, 2.2)]),
        (names::SHMEM_IPC, [(64, 1.05, 1.4), (256, 1.25, 1.7), (1024, 1.1, 1.4)]),
    ];
    for (name, sizes) in peers {
        for (bytes, must, reach) in sizes {
            let value = Rows::ratio(rows.spin(name, bytes), rows.spin(names::OURS, bytes));
            let what = format!("{name} : ours, {bytes} B, spin");
            checks.push(Check::new(what, value, AtLeast(must), AtLeast(reach)));
        }
    }
    let burst = rows.any_size(names::BURST, WaitKind::Spin, Placement::PinnedApart);
    let value = Rows::floor(burst);
    checks.push(Check::new("whole burst : line floor, spin", value, AtMost(2.2), AtMost(1.6)));
    let ours = rows.spin(names::OURS, 64);
    let value = ours.map(|row| row.p99_ns / row.p50_ns);
    checks.push(Check::new("p99 : p50, 64 B, spin", value, AtMost(1.8), AtMost(1.4)));
    // Counted as a difference of two runs; a thousandth is a stray call of start-up.
    let calls = ours.and_then(|row| row.syscalls_per_message);
    let what = "system calls per message, 64 B, spin";
    checks.push(Check::new(what, calls, AtMost(0.001), AtMost(0.001)));
}

fn sleeping(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    use Bound::{AtLeast, AtMost};
    let ours = rows.get(names::OURS, WaitKind::Sleep, Placement::SameCore, 64);
    let value = Rows::floor(ours);
    let what = "64 B, sleep, same core : futex floor";
    checks.push(Check::new(what, value, AtMost(1.05), AtMost(0.95)));
    for name in [names::ICEORYX_REQUEST, names::ICEORYX_PUBLISH] {
        let peer = rows.get(name, WaitKind::Sleep, Placement::SameCore, 64);
        let what = format!("{name} with event : ours, 64 B, sleep, same core");
        checks.push(Check::new(what, Rows::ratio(peer, ours), AtLeast(2.4), AtLeast(2.8)));
    }
    let ours = rows.get(names::OURS, WaitKind::Adaptive, Placement::PinnedApart, 64);
    let what = "64 B, default policy, two cores : futex floor";
    checks.push(Check::new(what, Rows::floor(ours), AtMost(0.01), AtMost(0.002)));
    let served = Case::ping_pong(WaitKind::Adaptive, Placement::PinnedApart, 64);
    let served = Case { service_ns: SERVICE_NS, ..served }.label(names::OURS);
    let served = rows.get(&served, WaitKind::Adaptive, Placement::PinnedApart, 64);
    let value = served.and_then(|row| row.more.overhead_ratio);
    let what = "overhead over 200 us of service, default policy : futex floor's";
    checks.push(Check::new(what, value, AtMost(0.6), AtMost(0.45)));
}

fn frames(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    use Bound::AtMost;
    for bytes in FRAME_BYTES {
        let value = Rows::floor(rows.spin(names::FRAME, bytes));
        let what = format!("frame of {bytes} B handed over : plain shared-memory copy");
        checks.push(Check::new(what, value, AtMost(1.1), AtMost(1.0)));
    }
    let [small, large] = FRAME_BYTES.map(|bytes| rows.spin(names::FRAME_IN_POOL, bytes));
    let value = Rows::ratio(large, small);
    let what = "frame in the pool, 602112 B : 150528 B";
    checks.push(Check::new(what, value, AtMost(1.1), AtMost(1.1)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Spread;

    fn row(name: &str, request_bytes: usize, ratio: f64) -> Row {
        Row {
            name: name.to_owned(),
            request_bytes,
            wait: WaitKind::Spin,
            placement: Placement::PinnedApart,
            p50_ns: 100.0,
            p90_ns: 110.0,
            p99_ns: 150.0,
            p999_ns: 200.0,
            max_ns: 1e6,
            ratio_to_floor: Spread { median: ratio, min: ratio, max: ratio },
            round_trips_per_s: 1e7,
            cpu_ns_per_round_trip: 200.0,
            syscalls_per_message: Some(0.0),
            ratio_on_shared_cores: None,
            rounds_ratio_to_floor: Vec::new(),
            more: crate::transport::row::More::default(),
        }
    }

    fn find<'c>(checks: &'c [Check], start: &str) -> &'c Check {
        checks.iter().find(|check| check.what.starts_with(start)).expect("such a check")
    }

    #[test]
    fn checks_compare_the_rows_they_name() {
        let mut served = row(names::OURS, 64, 9.0);
        served.name += ", 200 us of service";
        served.wait = WaitKind::Adaptive;
        served.more.overhead_ratio = Some(0.5);
        let rows = [served, row(names::OURS, 64, 1.0), row(names::ICEORYX_REQUEST, 64, 6.0)];
        let checks = checks(&rows);
        let check = find(&checks, "64 B round trip");
        assert_eq!((check.value, check.ok, check.verdict()), (Some(1.0), Some(true), "ok"));
        let check = find(&checks, "iceoryx2-request-response : ours, 64 B");
        assert_eq!((check.value, check.verdict()), (Some(6.0), "ok"));
        let check = find(&checks, "p99");
        assert_eq!((check.value, check.verdict()), (Some(1.5), "ok"));
        assert_eq!(find(&checks, "system calls").verdict(), "reached");
        let check = find(&checks, "overhead");
        assert_eq!((check.value, check.verdict()), (Some(0.5), "ok"));
    }

    #[test]
    fn a_missing_row_is_no_success() {
        for check in checks(&[]) {
            assert_eq!((check.value, check.ok), (None, None), "{}", check.what);
            assert_eq!(check.verdict(), "not measured");
        }
    }

    #[test]
    fn a_bound_reads_in_json_as_it_is_written() {
        for (bound, text) in
            [(Bound::AtMost(1.25), "\"<= 1.25\""), (Bound::AtLeast(4.0), "\">= 4\"")]
        {
            assert_eq!(serde_json::to_string(&bound).unwrap(), text);
            assert_eq!(serde_json::from_str::<Bound>(text).unwrap(), bound);
        }
        assert!(serde_json::from_str::<Bound>("\"about 4\"").is_err());
    }
}
