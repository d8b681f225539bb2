//! What a classifier's output says: the best classes, with labels and scores; of a sequence of steps
//! the best class of each.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::tensor::Tensor;
use crate::error::TaskError;
use crate::labels::name;
use crate::options::Choice;
use crate::runner::Outputs;

/// One class with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Class {
    /// Its number, from 0.
    pub index: usize,
    /// Its label; empty where it has none.
    pub label: String,
    /// How much speaks for it, as the model says it.
    pub score: f32,
}

impl Class {
    /// Its label, or its number where it has none.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

/// Consecutive steps that have the same best class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// The first of them.
    pub step: usize,
    /// The class; its score is the highest of these steps.
    #[serde(flatten)]
    pub class: Class,
}

/// Reads an output with one score per class, `[.., classes]`, or that per step, `[.., steps, classes]`.
#[derive(Debug)]
pub struct ClassDecoder {
    scores: Tensor,
    steps: usize,
    classes: usize,
    labels: Vec<String>,
    choice: Choice,
}

impl ClassDecoder {
    /// `None` for an output that is not one score per class.
    pub(super) fn new(output: &TensorInfo) -> Option<Self> {
        let (_, lead) = output.dims.split_last()?;
        if lead.iter().any(|dim| *dim != 1) {
            return None;
        }
        Self::of_steps(output)
    }

    /// `None` for an output that is not one score per class, or that per step: `[1, steps, classes]`.
    pub(super) fn of_steps(output: &TensorInfo) -> Option<Self> {
        let scores = Tensor::new(0, output)?;
        let is_score = output.ty != OperandType::TensorInt32;
        let (classes, lead) = output.dims.split_last()?;
        let steps = match *lead {
            [] => 1,
            [.., steps] if lead.iter().rev().skip(1).all(|dim| *dim == 1) => steps as usize,
            _ => return None,
        };
        let classes = *classes as usize;
        let (labels, choice) = (Vec::new(), Choice::default());
        (is_score && classes >= 2 && steps >= 1).then_some(ClassDecoder {
            scores,
            steps,
            classes,
            labels,
            choice,
        })
    }

    pub(super) fn choose(&mut self, labels: Vec<String>, choice: Choice) {
        (self.labels, self.choice) = (labels, choice);
    }

    /// Takes the scores of the last execution in.
    ///
    /// # Errors
    /// The output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        self.scores.read(outputs)
    }

    /// How many classes there are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How many steps an output has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Every score, step after step.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        &self.scores.values
    }

    fn last_step(&self) -> &[f32] {
        self.scores.values.chunks(self.classes).last().unwrap_or(&[])
    }

    /// The class with the highest score in the last step, whatever the options allow; of equal ones the first.
    #[must_use]
    pub fn best(&self) -> usize {
        best_of(self.last_step())
    }

    /// The `count` classes with the highest scores in the last step, best first, as far as the options allow them.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<Class> {
        let scores = self.last_step();
        let label = |index: usize| self.labels.get(index).map_or("", String::as_str);
        let taken = |index: &usize| self.choice.takes(label(*index), scores[*index]);
        let mut order: Vec<usize> = (0..scores.len()).filter(taken).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        order.truncate(count.min(self.choice.most()));
        order.into_iter().map(|index| self.class_scored(index, scores[index])).collect()
    }

    /// The best class of each step, equal neighbours as one.
    #[must_use]
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut all: Vec<Stretch> = Vec::new();
        for (step, scores) in self.scores.values.chunks(self.classes).enumerate() {
            let index = best_of(scores);
            match all.last_mut() {
                Some(last) if last.class.index == index => {
                    last.class.score = last.class.score.max(scores[index]);
                }
                _ => all.push(Stretch { step, class: self.class_scored(index, scores[index]) }),
            }
        }
        all
    }

    fn class_scored(&self, index: usize, score: f32) -> Class {
        let label = self.labels.get(index).cloned().unwrap_or_default();
        Class { index, label, score }
    }
}

fn best_of(scores: &[f32]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::given::Given;
    use super::*;
    use crate::options::TaskOptions;

    fn info(ty: OperandType, dims: &[u32]) -> TensorInfo {
        TensorInfo {
            name: "out".into(),
            ty,
            file_type: burst_tflite::ElementType::Int8,
            dims: dims.into(),
            scale: 0.5,
            zero_point: -1,
        }
    }

    fn decoder(out: &TensorInfo, labels: &[&str], bytes: &[i8]) -> ClassDecoder {
        let mut decoder = ClassDecoder::of_steps(out).unwrap();
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        decoder.choose(labels, Choice::default());
        decoder.read(&mut Given(vec![bytes.iter().map(|b| b.cast_unsigned()).collect()])).unwrap();
        decoder
    }

    #[test]
    fn scores_are_real_numbers_best_first() {
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 3]);
        let mut decoder = decoder(&out, &["a", "b", "c"], &[1, 3, 3]);
        assert_eq!(decoder.best(), 1);
        let top = decoder.top(2);
        assert_eq!(top[0], Class { index: 1, label: "b".into(), score: 2.0 });
        assert_eq!(top[1], Class { index: 2, label: "c".into(), score: 2.0 });
        // What the options do not allow is passed over, and counts for nobody else.
        let options = TaskOptions::default().with_denied(["b"]).with_score_threshold(1.5);
        let labels = ["a", "b", "c"].map(String::from);
        let choice = Choice::new(&options, None, ("m", &labels)).unwrap();
        decoder.choose(labels.to_vec(), choice);
        assert_eq!(decoder.top(9), [Class { index: 2, label: "c".into(), score: 2.0 }]);
    }

    #[test]
    fn an_output_of_another_length_is_refused() {
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 3]);
        let mut decoder = ClassDecoder::new(&out).unwrap();
        let error = decoder.read(&mut Given(vec![vec![0; 4]])).unwrap_err().to_string();
        assert_eq!(error, "output 0 has 4 bytes, 3 were expected");
    }

    #[test]
    fn steps_with_the_same_class_are_one_stretch() {
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 4, 2]);
        assert!(ClassDecoder::new(&out).is_none(), "more than one score per class");
        let decoder = decoder(&out, &["a", "b", "c"], &[3, 1, 5, 1, 1, 3, 7, 1]);
        let found: Vec<_> =
            decoder.stretches().into_iter().map(|s| (s.step, s.class.index)).collect();
        assert_eq!(found, [(0, 0), (2, 1), (3, 0)]);
        assert_eq!(decoder.stretches()[0].class.score, 3.0);
        assert_eq!(decoder.best(), 0, "of the last step");
    }

    #[test]
    fn outputs_of_other_shapes_are_no_classes() {
        for (ty, dims) in [
            (OperandType::TensorInt32, &[1u32, 3][..]),
            (OperandType::TensorFloat32, &[1, 10, 4]),
            (OperandType::TensorFloat32, &[]),
            (OperandType::TensorFloat32, &[1, 1]),
        ] {
            assert!(ClassDecoder::new(&info(ty, dims)).is_none(), "{ty} {dims:?}");
        }
    }

    #[test]
    fn a_class_without_a_label_has_a_number() {
        assert_eq!(Class { index: 7, label: String::new(), score: 0.0 }.name(), "class 7");
    }
}
