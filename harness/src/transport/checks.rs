//! Ratios that say most about the transport, from the rows of one run.

use std::path::Path;

use crate::bounds::{Bounds, Check};
use crate::error::HarnessError;
use crate::transport::case::{Case, FRAME_BYTES, MODEL_NS, Placement, REQUEST_SIZES, SERVICE_NS};
use crate::transport::names;
use crate::transport::row::Row;
use crate::wait::WaitKind;

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

    /// Of the cold row of a peer to its warm one.
    fn cold(&self, name: &str, warm: Option<&Row>) -> Option<f64> {
        let case = Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, 0);
        let name = Case { cold: true, ..case }.label(name);
        Rows::ratio(self.spin(&name, warm?.request_bytes), warm)
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

/// Reads bounds for them.
///
/// # Errors
/// As [`Bounds::read`].
pub fn bounds(path: &Path) -> Result<Bounds, HarnessError> {
    let ratios: Vec<String> = checks(&[]).into_iter().map(|check| check.what).collect();
    Bounds::read(path, &ratios)
}

fn spinning(rows: &Rows<'_>, checks: &mut Vec<Check>) {
    for bytes in REQUEST_SIZES {
        in_modes(&format!("{bytes} B round trip"), rows.spin(names::OURS, bytes), checks);
    }
    let peers = [names::ICEORYX_REQUEST, names::ICEORYX_PUBLISH, names::LIBFMQ, names::SHMEM_IPC];
    for name in peers {
        for bytes in REQUEST_SIZES {
            let value = Rows::ratio(rows.spin(name, bytes), rows.spin(names::OURS, bytes));
            checks.push(Check::new(format!("{name} : ours, {bytes} B, spin"), value));
        }
    }
    let burst = rows.any_size(names::BURST, WaitKind::Spin, Placement::PinnedApart);
    in_modes("whole burst", burst, checks);
    for bytes in REQUEST_SIZES {
        let value = Rows::cold(rows, names::OURS, rows.spin(names::OURS, bytes));
        checks.push(Check::new(format!("cold : warm, {bytes} B, spin"), value));
    }
    let value = Rows::cold(rows, names::BURST, burst);
    checks.push(Check::new("cold : warm, whole burst, spin", value));
    let ours = rows.spin(names::OURS, 64);
    checks.push(Check::new("p99 : p50, 64 B, spin", ours.map(|row| row.p99_ns / row.p50_ns)));
    // Counted as a difference of two runs; a thousandth is a stray call of start-up.
    let calls = ours.and_then(|row| row.syscalls_per_message);
    checks.push(Check::new("system calls per message, 64 B, spin", calls));
}

/// A row against the floor of two lines, near and far apart.
fn in_modes(what: &str, row: Option<&Row>, checks: &mut Vec<Check>) {
    let modes = row.and_then(|row| row.modes.as_ref());
    let modes = [
        ("near", modes.and_then(|m| m.near.as_ref())),
        ("far", modes.and_then(|m| m.far.as_ref())),
    ];
    for (name, mode) in modes {
        let value = mode.map(|mode| mode.ratio_to_floor.median);
        checks.push(Check::new(format!("{what} : two lines, {name}, spin"), value));
    }
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
    let [adaptive, spin] = [WaitKind::Adaptive, WaitKind::Spin].map(|wait| {
        let case = Case::ping_pong(wait, Placement::PinnedApart, 64);
        let name = Case { service_ns: MODEL_NS, ..case }.label(names::OURS);
        rows.get(&name, wait, Placement::PinnedApart, 64)
    });
    // Both have the service in them, and nothing else that a floor would take out.
    let of = |value: fn(&Row) -> f64| Some(value(adaptive?) / value(spin?));
    let p50 = of(|row| row.p50_ns);
    checks.push(Check::new("p50 over 150 us of service, default policy : spin", p50));
    let cpu = of(|row| row.more.client_cpu_ns);
    checks.push(Check::new("CPU of the client over 150 us of service, default policy : spin", cpu));
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
    use crate::transport::mode::{InMode, Modes};

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
            rounds_kept: 5,
            rounds_dropped: 0,
            modes: None,
            client_memory_kib: None,
            server_memory_kib: Some(2048),
            more: crate::transport::row::More::default(),
        }
    }

    fn find<'c>(checks: &'c [Check], start: &str) -> &'c Check {
        checks.iter().find(|check| check.what.starts_with(start)).expect("such a check")
    }

    /// Those of this repository, which have one for each ratio.
    fn own_bounds() -> Bounds {
        bounds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/transport.json")).unwrap()
    }

    #[test]
    fn checks_compare_the_rows_they_name() {
        let mut served = row(names::OURS, 64, 9.0);
        served.name += ", 200 us of service";
        served.wait = WaitKind::Adaptive;
        served.more.overhead_ratio = Some(0.5);
        let mut polled = row(names::OURS, 64, 1.0);
        polled.name += ", 150 us of service";
        (polled.p50_ns, polled.more.client_cpu_ns) = (150_000.0, 150_000.0);
        let mut waited = Row { wait: WaitKind::Adaptive, p50_ns: 153_000.0, ..polled.clone() };
        waited.more.client_cpu_ns = 30_000.0;
        let mut ours = row(names::OURS, 64, 1.0);
        let ratio_to_floor = ours.ratio_to_floor;
        let near = InMode { rounds: 5, p50_ns: 150.0, ratio_to_floor };
        ours.modes = Some(Modes { near: Some(near), far: None, between: 0 });
        let mut cold = row(names::OURS, 64, 1.2);
        cold.name += ", cold";
        let rows = [served, polled, waited, ours, cold, row(names::ICEORYX_REQUEST, 64, 6.0)];
        let mut checks = checks(&rows);
        assert!(checks.iter().all(|check| check.must.is_none() && check.verdict().is_empty()));
        own_bounds().hold(&mut checks);
        let check = find(&checks, "64 B round trip : two lines, near");
        assert_eq!((check.value, check.ok, check.verdict()), (Some(1.0), Some(true), "reached"));
        assert_eq!(find(&checks, "64 B round trip : two lines, far").value, None);
        let check = find(&checks, "cold : warm, 64 B");
        assert_eq!((check.value, check.verdict()), (Some(1.2), "reached"));
        let check = find(&checks, "iceoryx2-request-response : ours, 64 B");
        assert_eq!((check.value, check.verdict()), (Some(6.0), "ok"));
        let check = find(&checks, "p99");
        assert_eq!((check.value, check.verdict()), (Some(1.5), "ok"));
        assert_eq!(find(&checks, "system calls").verdict(), "reached");
        assert_eq!(find(&checks, "p50 over 150 us").value, Some(1.02));
        assert_eq!(find(&checks, "CPU of the client over 150 us").value, Some(0.2));
        let check = find(&checks, "overhead");
        assert_eq!((check.value, check.verdict()), (Some(0.5), "ok"));
    }

    #[test]
    fn a_missing_row_is_no_success() {
        let mut checks = checks(&[]);
        own_bounds().hold(&mut checks);
        for check in checks {
            assert_eq!((check.value, check.ok), (None, None), "{}", check.what);
            assert_eq!(check.verdict(), "not measured");
        }
    }
}
