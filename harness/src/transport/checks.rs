//! Ratios that say most about the transport, from the rows of one run; and bounds to hold them to, from a file such as
//! `benches/transport.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::HarnessError;
use crate::transport::case::{Case, FRAME_BYTES, Placement, REQUEST_SIZES, SERVICE_NS};
use crate::transport::names;
use crate::transport::row::Row;
use crate::wait::WaitKind;

/// One ratio, and where a run is held to bounds, these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// A ratio, and where it is taken.
    pub what: String,
    /// What it is in this run; `None` where a row it needs was not measured.
    pub value: Option<f64>,
    /// What it must be at most, or at least; `None` without bounds.
    pub must: Option<Bound>,
    /// What it should be.
    pub reach: Option<Bound>,
    /// Whether `must` holds; `None` without a value, or without bounds.
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
    fn new(what: impl Into<String>, value: Option<f64>) -> Check {
        let value = value.filter(|value| value.is_finite());
        Check { what: what.into(), value, must: None, reach: None, ok: None }
    }

    /// In a word; none without bounds.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.ok, self.reach, self.value) {
            (Some(true), Some(reach), Some(value)) if reach.holds(value) => "reached",
            (Some(true), ..) => "ok",
            (Some(false), ..) => "MISSED",
            (None, Some(_), _) => "not measured",
            (None, None, _) => "",
        }
    }
}

/// Bounds for ratios, by what they are called.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds(BTreeMap<String, BoundPair>);

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundPair {
    must: Bound,
    reach: Bound,
}

impl Bounds {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no such file, or has a bound for a ratio that there is not.
    pub fn read(path: &Path) -> Result<Bounds, HarnessError> {
        let wrong = |error: &dyn std::fmt::Display| {
            HarnessError::peer(format!("cannot use the bounds in {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let bounds: BTreeMap<String, BoundPair> =
            serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let known = checks(&[]);
        let stranger = bounds.keys().find(|name| !known.iter().any(|check| check.what == **name));
        match stranger {
            Some(name) => Err(wrong(&format!("no ratio is called {name}"))),
            None => Ok(Bounds(bounds)),
        }
    }

    /// Holds ratios to them.
    pub fn hold(&self, checks: &mut [Check]) {
        for check in checks {
            let Some(BoundPair { must, reach }) = self.0.get(&check.what) else { continue };
            (check.must, check.reach) = (Some(*must), Some(*reach));
            check.ok = check.value.map(|value| must.holds(value));
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

/// All ratios, also those whose rows are missing.
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
    for bytes in REQUEST_SIZES {
        let value = Rows::floor(rows.spin(names::OURS, bytes));
        checks.push(Check::new(format!("{bytes} B round trip : line floor, spin"), value));
    }
    let peers = [names::ICEORYX_REQUEST, names::ICEORYX_PUBLISH, names::LIBFMQ, names::SHMEM_IPC];
    for name in peers {
        for bytes in REQUEST_SIZES {
            let value = Rows::ratio(rows.spin(name, bytes), rows.spin(names::OURS, bytes));
            checks.push(Check::new(format!("{name} : ours, {bytes} B, spin"), value));
        }
    }
    let burst = rows.any_size(names::BURST, WaitKind::Spin, Placement::PinnedApart);
    checks.push(Check::new("whole burst : line floor, spin", Rows::floor(burst)));
    let ours = rows.spin(names::OURS, 64);
    checks.push(Check::new("p99 : p50, 64 B, spin", ours.map(|row| row.p99_ns / row.p50_ns)));
    // Counted as a difference of two runs; a thousandth is a stray call of start-up.
    let calls = ours.and_then(|row| row.syscalls_per_message);
    checks.push(Check::new("system calls per message, 64 B, spin", calls));
}

fn sleeping(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    let ours = rows.get(names::OURS, WaitKind::Sleep, Placement::SameCore, 64);
    checks.push(Check::new("64 B, sleep, same core : futex floor", Rows::floor(ours)));
    for name in [names::ICEORYX_REQUEST, names::ICEORYX_PUBLISH] {
        let peer = rows.get(name, WaitKind::Sleep, Placement::SameCore, 64);
        let what = format!("{name} with event : ours, 64 B, sleep, same core");
        checks.push(Check::new(what, Rows::ratio(peer, ours)));
    }
    let ours = rows.get(names::OURS, WaitKind::Adaptive, Placement::PinnedApart, 64);
    checks.push(Check::new("64 B, default policy, two cores : futex floor", Rows::floor(ours)));
    let served = Case::ping_pong(WaitKind::Adaptive, Placement::PinnedApart, 64);
    let served = Case { service_ns: SERVICE_NS, ..served }.label(names::OURS);
    let served = rows.get(&served, WaitKind::Adaptive, Placement::PinnedApart, 64);
    let value = served.and_then(|row| row.more.overhead_ratio);
    let what = "overhead over 200 us of service, default policy : futex floor's";
    checks.push(Check::new(what, value));
}

fn frames(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    for bytes in FRAME_BYTES {
        let value = Rows::floor(rows.spin(names::FRAME, bytes));
        let what = format!("frame of {bytes} B handed over : plain shared-memory copy");
        checks.push(Check::new(what, value));
    }
    let [small, large] = FRAME_BYTES.map(|bytes| rows.spin(names::FRAME_IN_POOL, bytes));
    let value = Rows::ratio(large, small);
    checks.push(Check::new("frame in the pool, 602112 B : 150528 B", value));
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

    /// Those of this repository, which have one for each ratio.
    fn bounds() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/transport.json")
    }

    #[test]
    fn a_bound_for_a_ratio_that_there_is_not_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bounds.json");
        for (text, part) in [
            (r#"{"speed": {"must": "<= 1", "reach": "<= 1"}}"#, "no ratio is called speed"),
            (r#"{"p99 : p50, 64 B, spin": {"must": "about 1", "reach": "<= 1"}}"#, "<= or >="),
            ("[", "bounds.json"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = Bounds::read(&file).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn checks_compare_the_rows_they_name() {
        let mut served = row(names::OURS, 64, 9.0);
        served.name += ", 200 us of service";
        served.wait = WaitKind::Adaptive;
        served.more.overhead_ratio = Some(0.5);
        let rows = [served, row(names::OURS, 64, 1.0), row(names::ICEORYX_REQUEST, 64, 6.0)];
        let mut checks = checks(&rows);
        assert!(checks.iter().all(|check| check.must.is_none() && check.verdict().is_empty()));
        Bounds::read(&bounds()).unwrap().hold(&mut checks);
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
        let mut checks = checks(&[]);
        Bounds::read(&bounds()).unwrap().hold(&mut checks);
        for check in checks {
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
