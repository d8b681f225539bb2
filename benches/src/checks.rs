//! What a run is held to with `--check FILE`, and what became of it; without the option nothing is judged.

use std::process::ExitCode;

use burst_harness::bounds::{Bound, Check};
use burst_harness::report::{Cell, Column, Table, dash};

/// Figures that are held to bounds, each with what it was measured of.
pub(crate) fn table<'c>(checks: impl Iterator<Item = (&'c str, &'c Check)>) -> Table {
    let words = [Column::text("model"), Column::text("what")];
    let numbers = ["value", "must", "reach"].map(Column::number);
    let mut table = Table::new([&words[..], &numbers, &[Column::text("")]].concat());
    let written = |bound: Option<Bound>| bound.map_or_else(dash, |bound| bound.to_string());
    for (model, check) in checks.filter(|(_, check)| check.must.is_some()) {
        table.add([
            Cell::from(model.to_owned()),
            check.what.clone().into(),
            check.value.map_or_else(dash, |value| format!("{value:.3}")).into(),
            written(check.must).into(),
            written(check.reach).into(),
            Cell::judged(check.verdict(), check.ok),
        ]);
    }
    table
}

/// Whether one does not keep to its bound.
pub(crate) fn has_missed<'c>(mut checks: impl Iterator<Item = &'c Check>) -> bool {
    checks.any(|check| check.ok == Some(false))
}

/// 1 where one does not keep to its bound.
pub(crate) fn exit_code<'c>(checks: impl Iterator<Item = &'c Check>) -> ExitCode {
    ExitCode::from(u8::from(has_missed(checks)))
}
