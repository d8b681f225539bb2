//! What a run is held to with `--check FILE`, and what became of it; without the option nothing is judged.

use std::process::ExitCode;

use burst_harness::bounds::Check;
use burst_harness::report::{Column, Table};

/// Figures that are held to bounds, each with what it was measured of.
pub(crate) fn table<'c>(checks: impl Iterator<Item = (&'c str, &'c Check)>) -> Table {
    let columns = std::iter::once(Column::text("model")).chain(Check::columns());
    let mut table = Table::new(columns.collect());
    for (model, check) in checks.filter(|(_, check)| check.must.is_some()) {
        table.add(std::iter::once(model.to_owned().into()).chain(check.cells()));
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
