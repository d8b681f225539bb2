//! One model on all lanes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::judge::{Golden, Judge, Tally, Wrong};
use super::lane::{Came, Lane};
use super::tensors::Tensor;
use crate::random::RandomModel;
use crate::run::message;

/// What came of a model, where nothing was wrong.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) tally: Tally,
    /// Lanes that executed it.
    pub(super) lanes: u64,
    /// Lanes that could not be asked to.
    pub(super) inapplicable: u64,
    /// Lanes whose floats were other bits than those of the first, and as close to the judge's.
    pub(super) rounded_otherwise: u64,
    /// The operation that the device does not run.
    pub(super) unsupported: Option<usize>,
}

/// A lane that computed something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) lane: String,
    pub(super) wrong: Wrong,
}

impl Judge<'_> {
    /// Judges a model on all lanes.
    pub(super) fn judge_lanes(
        &self,
        one: &RandomModel,
        lanes: &[Lane<'_>],
    ) -> Result<Passed, Failed> {
        let failed = |lane: &str, wrong: Wrong| Failed { lane: lane.to_owned(), wrong };
        let golden = caught(|| self.golden(one).map_err(Wrong::from));
        let golden = golden.map_err(|wrong| failed("the judge", wrong))?;
        let mut passed = Passed::default();
        let mut first: Option<Vec<Tensor>> = None;
        for lane in lanes {
            let came = caught(|| lane.run(one).map_err(Wrong::from));
            let outputs = match came.map_err(|wrong| failed(&lane.name, wrong))? {
                Came::Outputs(outputs) => outputs,
                Came::Inapplicable => {
                    passed.inapplicable += 1;
                    continue;
                }
                Came::Unsupported(index) => {
                    passed.unsupported = Some(index);
                    return Ok(passed);
                }
            };
            passed.lanes += 1;
            let judged = || self.judge_lane(one, &golden, lane, &outputs);
            match &first {
                None => {
                    let tally = caught(judged);
                    passed.tally = tally.map_err(|wrong| failed(&lane.name, wrong))?;
                    first = Some(outputs);
                }
                Some(first) if *first == outputs => {}
                Some(_) if lane.may_round_otherwise => {
                    caught(judged).map_err(|wrong| failed(&lane.name, wrong))?;
                    passed.rounded_otherwise += 1;
                }
                Some(first) => {
                    let what = difference(one, first, &outputs);
                    return Err(failed(&lane.name, what));
                }
            }
        }
        Ok(passed)
    }

    fn judge_lane(
        &self,
        one: &RandomModel,
        golden: &Golden,
        lane: &Lane<'_>,
        outputs: &[Tensor],
    ) -> Result<Tally, Wrong> {
        let mut run = |other: &RandomModel| match lane.run(other)? {
            Came::Outputs(outputs) => Ok(outputs),
            Came::Unsupported(index) => Err(format!("operation {index} is not supported any more")),
            Came::Inapplicable => Err("it cannot be asked for this way".to_owned()),
        };
        self.judge(one, golden, outputs, &mut run)
    }
}

/// Where two lanes differ.
fn difference(one: &RandomModel, first: &[Tensor], other: &[Tensor]) -> Wrong {
    let graph = &one.model.main;
    let at = first.iter().zip(other).position(|(first, other)| first != other).unwrap_or(0);
    let (Some(operand), Some(want), Some(got)) =
        (graph.output_indexes.get(at), first.get(at), other.get(at))
    else {
        return Wrong::from(format!("{} outputs, not {}", other.len(), first.len()));
    };
    let writer = graph.operations.iter().position(|one| one.outputs.contains(operand));
    let name = writer.map_or("an input", |index| graph.operations[index].ty.name());
    let what = if want.dims == got.dims {
        let byte = want.bytes.iter().zip(&got.bytes).position(|(one, other)| one != other);
        format!("output {at}, of {name}: other bits than on the first lane, from byte {byte:?} on")
    } else {
        format!("output {at}, of {name}: the shape {:?}, not {:?}", got.dims, want.dims)
    };
    Wrong { operation: writer, what }
}

/// A device in this process may panic.
fn caught<T>(run: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic)).into()))
}
