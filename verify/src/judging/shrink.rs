//! A model that fails, made smaller as long as it does.

use super::judge::Judge;
use super::lane::Lane;
use super::one::Failed;
use super::surgery::part;
use crate::random::{RandomModel, Sample};

/// Models that are tried at most for one finding.
const MAX_TRIES: usize = 300;

/// A model that is small, and how it fails.
pub(super) struct Shrunk {
    pub(super) model: RandomModel,
    pub(super) failed: Failed,
}

/// Makes a failing model smaller: smaller dimensions first, then fewer operations. What the dropped ones
/// computed comes in as the judge has it.
pub(super) fn shrink(
    judge: Judge<'_>,
    lanes: &[Lane<'_>],
    sample: Sample,
    begin: Shrunk,
) -> Shrunk {
    let (mut tries, lane) = (MAX_TRIES, begin.failed.lane.clone());
    let mut fails = |model: &RandomModel| -> Option<Failed> {
        tries = tries.checked_sub(1)?;
        // Another failure would lead somewhere else.
        judge.judge_lanes(model, lanes).err().filter(|failed| failed.lane == lane)
    };
    let mut best = begin;
    for largest in [1, 2, 3, 4, 8, 32] {
        let model = Sample { largest, ..sample }.model();
        if let Some(failed) = fails(&model) {
            best = Shrunk { model, failed };
            break;
        }
    }
    // The operation alone that is said to be wrong is most often enough.
    if let Some(index) = best.failed.wrong.operation {
        keep(judge, &mut best, &mut fails, |other| other == index);
    }
    let mut size = best.model.model.main.operations.len().div_ceil(2);
    while size > 0 && best.model.model.main.operations.len() > 1 {
        let mut begin = 0;
        while begin < best.model.model.main.operations.len() {
            let dropped = begin..begin + size;
            if !keep(judge, &mut best, &mut fails, |other| !dropped.contains(&other)) {
                begin += size;
            }
        }
        size /= 2;
    }
    best
}

/// Keeps only some operations, if the model still fails then.
fn keep(
    judge: Judge<'_>,
    best: &mut Shrunk,
    fails: &mut impl FnMut(&RandomModel) -> Option<Failed>,
    is_kept: impl Fn(usize) -> bool,
) -> bool {
    let Ok(golden) = judge.golden(&best.model) else { return false };
    let Some(model) = part(&best.model, is_kept, &golden.values) else { return false };
    match fails(&model) {
        Some(failed) => {
            *best = Shrunk { model, failed };
            true
        }
        None => false,
    }
}
