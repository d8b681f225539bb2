//! One pass over the data: everybody computes the same inputs, and the answers are compared.

use anyhow::Result;
use burst_tasks::TaskModel;
use serde::Serialize;

use super::alike::best;
use super::answers::{Answer, Reader, Says, Task};
use super::contest::{LiteRtPair, Way};
use super::fair::Fair;
use super::inputs::{Inputs, Item};
use super::tally::{Comparison, Tally};

/// Our side in comparisons.
pub(super) const BURST: &str = "burst";
/// LiteRT with the kernels that it takes by itself.
pub(super) const LITERT: &str = "litert";
/// LiteRT with its reference kernels.
pub(super) const REFERENCE: &str = "litert-reference";

/// Inputs that are kept for measuring times, at most so many, of at most so many bytes together.
const KEPT_MAX: usize = 16;
const KEPT_BYTES_MAX: usize = 64 << 20;

/// What the pass found.
#[derive(Debug)]
pub(super) struct Accuracy {
    pub(super) task: Task,
    pub(super) inputs: u64,
    /// How many of them were compared with the reference kernels.
    pub(super) referred: u64,
    pub(super) damaged: Vec<String>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) truth: Option<Truth>,
    pub(super) duel: Duel,
}

/// How often the best class was what the file is known to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Truth {
    pub(super) of: u64,
    pub(super) burst: u64,
    pub(super) litert: Option<u64>,
}

/// Decisions on which one side was right and the other was not; right is what the reference kernels say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Duel {
    pub(super) burst_alone: u64,
    pub(super) litert_alone: u64,
}

/// Inputs for measuring times: as the driver takes them, and as the whole model does.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) driver: Vec<Vec<u8>>,
    pub(super) whole: Vec<Vec<u8>>,
}

impl Kept {
    fn keep(&mut self, driver: &[u8], whole: &[u8]) {
        let has_room = self.driver.len() < KEPT_MAX
            && (self.driver.len() + 1) * (driver.len() + whole.len()) <= KEPT_BYTES_MAX;
        if has_room || self.driver.is_empty() {
            self.driver.push(driver.to_vec());
            self.whole.push(whole.to_vec());
        }
    }
}

/// How far the pass goes.
pub(super) struct Limits<'l> {
    /// At most so many inputs.
    pub(super) inputs: Option<u64>,
    /// At most so many of them are given to the reference kernels.
    pub(super) referred: Option<u64>,
    /// Whether to go on.
    pub(super) go_on: &'l dyn Fn() -> bool,
    /// Told of each input: how many were done, of how many.
    pub(super) watch: &'l mut dyn FnMut(u64, Option<u64>),
}

struct Pass<'p> {
    ways: &'p mut [Way],
    others: Option<&'p mut LiteRtPair>,
    reader: Reader,
    fair: Fair,
    referred: u64,
    truth: Truth,
    duel: Duel,
    to_reference: Tally,
    to_litert: Tally,
    litert_to_reference: Tally,
}

/// Lets everybody compute the inputs.
pub(super) fn compare(
    model: &TaskModel,
    inputs: &mut Inputs<'_>,
    (ways, others): (&mut [Way], Option<&mut LiteRtPair>),
    fair: Fair,
    limits: &mut Limits<'_>,
) -> Result<(Accuracy, Kept)> {
    let reader = Reader::new(model, inputs.fitter())?;
    let task = reader.task();
    let mut pass = Pass {
        ways,
        others,
        reader,
        fair,
        referred: 0,
        truth: Truth::default(),
        duel: Duel::default(),
        to_reference: Tally::default(),
        to_litert: Tally::default(),
        litert_to_reference: Tally::default(),
    };
    let total = match (inputs.count(), limits.inputs) {
        (Some(count), Some(limit)) => Some(count.min(limit)),
        (count, limit) => count.or(limit),
    };
    // Whoever carries states has to see a sequence from its beginning on.
    let spread_over = total.filter(|_| model.imported.states.is_empty());
    let (mut done, mut kept) = (0, Kept::default());
    while (limits.go_on)() && limits.inputs.is_none_or(|limit| done < limit) {
        let Some(item) = inputs.next()? else { break };
        let is_referred = is_referred(done, spread_over, limits.referred, pass.referred);
        pass.one(&item, &inputs.driver, inputs.whole(), is_referred)?;
        kept.keep(&inputs.driver, inputs.whole());
        done += 1;
        (limits.watch)(done, total);
    }
    let comparisons = [
        pass.to_reference.comparison(BURST, REFERENCE),
        pass.litert_to_reference.comparison(LITERT, REFERENCE),
        pass.to_litert.comparison(BURST, LITERT),
    ];
    let accuracy = Accuracy {
        task,
        inputs: done,
        referred: pass.referred,
        damaged: std::mem::take(&mut inputs.damaged),
        comparisons: comparisons.into_iter().flatten().collect(),
        truth: (pass.truth.of > 0).then_some(pass.truth),
        duel: pass.duel,
    };
    Ok((accuracy, kept))
}

/// Whether an input is one of those that the slow reference kernels get: spread evenly, where it is known over how many,
/// else the first ones.
fn is_referred(number: u64, total: Option<u64>, limit: Option<u64>, so_far: u64) -> bool {
    match (total, limit) {
        (_, None) => true,
        (Some(total), Some(limit)) if limit < total => {
            u128::from(number) * u128::from(limit) % u128::from(total) < u128::from(limit)
        }
        (_, Some(limit)) => so_far < limit,
    }
}

impl Pass<'_> {
    fn one(&mut self, item: &Item, driver: &[u8], whole: &[u8], is_referred: bool) -> Result<()> {
        let own = self.own(driver, item.begins)?;
        let own = self.reader.read(own)?;
        let fast = self.other(whole, item.begins)?;
        self.count_truth(item, &own, fast.as_ref());
        let Some(fast) = fast else { return Ok(()) };
        let reference = if is_referred { self.reference(whole, item.begins)? } else { None };
        let Some(reference) = reference else {
            self.to_litert.add(&own, &fast, &[]);
            return Ok(());
        };
        self.referred += 1;
        let standings = self.fair.standings(&reference, &fast);
        self.to_reference.add(&own, &reference, &standings.reference);
        self.to_litert.add(&own, &fast, &standings.fast);
        self.litert_to_reference.add(&fast, &reference, &standings.reference);
        self.duel.add(&own, &fast, &reference);
        Ok(())
    }

    /// The outputs over the first way; those over every other one are held against them.
    fn own(&mut self, input: &[u8], begins: bool) -> Result<Vec<Vec<u8>>> {
        let mut first: Option<Vec<Vec<u8>>> = None;
        for way in self.ways.iter_mut() {
            let took = way.run(input, begins)?;
            way.times.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            let outputs = way.outputs()?;
            way.equal += u64::from(first.as_ref().is_none_or(|first| *first == outputs));
            first.get_or_insert(outputs);
        }
        Ok(first.unwrap_or_default())
    }

    fn other(&mut self, input: &[u8], begins: bool) -> Result<Option<Answer>> {
        let Some(others) = &mut self.others else { return Ok(None) };
        others.fast.give(input, begins)?;
        let times = others.fast.run(1)?;
        others.fast.times.extend(times);
        Ok(Some(self.reader.read(others.fast.outputs()?)?))
    }

    fn reference(&mut self, input: &[u8], begins: bool) -> Result<Option<Answer>> {
        let reference = self.others.as_mut().and_then(|others| others.reference.as_mut());
        let Some(reference) = reference else { return Ok(None) };
        reference.give(input, begins)?;
        reference.run(1)?;
        Ok(Some(self.reader.read(reference.outputs()?)?))
    }

    fn count_truth(&mut self, item: &Item, own: &Answer, fast: Option<&Answer>) {
        let named = item.truth.as_deref();
        let Some(truth) = named.and_then(|named| self.reader.class(named)) else { return };
        let Some(mine) = last_best(own) else { return };
        self.truth.of += 1;
        self.truth.burst += u64::from(mine == truth);
        if let Some(theirs) = fast.and_then(last_best) {
            *self.truth.litert.get_or_insert(0) += u64::from(theirs == truth);
        }
    }
}

impl Duel {
    fn add(&mut self, own: &Answer, fast: &Answer, reference: &Answer) {
        let steps = [own, fast, reference].map(all_best);
        for ((own, fast), reference) in steps[0].iter().zip(&steps[1]).zip(&steps[2]) {
            self.burst_alone += u64::from(own == reference && fast != reference);
            self.litert_alone += u64::from(fast == reference && own != reference);
        }
    }
}

/// The best class of each step.
fn all_best(answer: &Answer) -> Vec<usize> {
    match &answer.says {
        Says::Classes { scores, classes } => scores.chunks(*classes).map(best).collect(),
        _ => Vec::new(),
    }
}

/// The best class of the last step.
fn last_best(answer: &Answer) -> Option<usize> {
    all_best(answer).pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_for_the_reference_kernels_are_spread_over_all() {
        let chosen = |total, limit| -> Vec<u64> {
            let mut so_far = 0;
            let mut chosen = Vec::new();
            for number in 0..10 {
                if is_referred(number, total, limit, so_far) {
                    so_far += 1;
                    chosen.push(number);
                }
            }
            chosen
        };
        assert_eq!(chosen(Some(10), None).len(), 10);
        assert_eq!(chosen(Some(10), Some(2)), [0, 5]);
        assert_eq!(chosen(Some(10), Some(3)), [0, 4, 7]);
        assert!(chosen(Some(10), Some(0)).is_empty());
        assert_eq!(chosen(Some(10), Some(50)).len(), 10);
        assert_eq!(chosen(None, Some(3)), [0, 1, 2]);
    }

    #[test]
    fn a_duel_counts_decisions_on_which_one_side_alone_is_right() {
        let answer = |scores: &[f32]| Answer {
            outputs: Vec::new(),
            values: Vec::new(),
            says: Says::Classes { scores: scores.to_vec(), classes: 2 },
        };
        let reference = answer(&[1.0, 0.0, 0.0, 1.0]);
        let mut duel = Duel::default();
        duel.add(&reference, &answer(&[0.0, 1.0, 0.0, 1.0]), &reference);
        assert_eq!(duel, Duel { burst_alone: 1, litert_alone: 0 });
        duel.add(&answer(&[0.0, 1.0, 1.0, 0.0]), &reference, &reference);
        assert_eq!(duel, Duel { burst_alone: 1, litert_alone: 2 });
        assert_eq!(last_best(&reference), Some(1));
    }
}
