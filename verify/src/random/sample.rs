//! Which random model is meant, and making it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use burst_hal::{
    ExtraParams, ModelBuilder, OperandLifeTime, Operation, OperationType, Subgraph, forms,
};

use super::grower::Grower;
use super::rng::Rng;
use super::style::Style;
use super::{Class, FAMILIES, Make, RandomModel, Shape, elementwise, shape, zero};

/// What a random model is made from: the same one for the same values, on every machine.
///
/// Its shapes need not be known from the model, and its values may be at the edges of their types, infinite,
/// or none at all; [`RandomModel::shape`] says what the table of operations knows of each operand.
///
/// ```
/// use burst_hal::OperationType;
/// use burst_verify::random::{Class, Sample};
///
/// let sample = Sample { only: Some(OperationType::Lstm), ..Sample::new(Class::Single, 7) };
/// let one = sample.model();
/// assert!(one.model.main.operations.iter().any(|one| one.ty == OperationType::Lstm));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How large it is.
    pub class: Class,
    /// Where its random numbers begin.
    pub seed: u64,
    /// An operation that it has to have.
    pub only: Option<OperationType>,
    /// The largest dimension of what comes from outside, where that is less than the class has.
    pub largest: u32,
}

/// Fewest lots of an operation in the draw of what comes next: some have one form, and many optional operands.
const MIN_LOTS: usize = 3;
/// Most lots of one.
const MAX_LOTS: usize = 48;

impl Sample {
    /// The model of this class and seed.
    #[must_use]
    pub fn new(class: Class, seed: u64) -> Self {
        Sample { class, seed, only: None, largest: u32::MAX }
    }

    /// Makes it.
    #[must_use]
    pub fn model(&self) -> RandomModel {
        let Sample { class, seed, only, largest } = *self;
        let mut rng = Rng::new(seed ^ ((class as u64) << 60));
        let style = Style::wild(class, largest, &mut rng);
        let mut builder = ModelBuilder::new();
        let mut grower = Grower::main(&mut builder, rng.fork(), style);
        if rng.chance(0.03) && only.is_none() {
            zero::chain(&mut grower);
        }
        let wanted = class.operations();
        if class == Class::Single {
            let (ty, make) = only.and_then(recipe).unwrap_or_else(|| drawn(&mut grower.rng));
            let adds_nothing_up = [elementwise::RECIPES, shape::RECIPES]
                .iter()
                .any(|family| family.iter().any(|(one, _)| *one == ty));
            grower.style.has_extremes = adds_nothing_up && rng.chance(0.1);
            make(&mut grower);
        } else {
            while grower.operations() < wanted {
                drawn(&mut grower.rng).1(&mut grower);
            }
            if let Some((_, make)) = only.and_then(recipe) {
                make(&mut grower);
            }
        }
        let (inputs, shapes) = grower.finish();
        builder.relaxed(rng.chance(0.1));
        // Constants are far below the limit of a model's bytes.
        let mut model = builder.build_unvalidated().unwrap_or_default();
        if rng.chance(0.3) {
            forget(&mut rng, &mut model.main, &shapes);
        }
        RandomModel { seed, model, inputs, shapes }
    }
}

/// How an operation is made.
pub(super) fn recipe(ty: OperationType) -> Option<(OperationType, Make)> {
    FAMILIES.into_iter().flatten().find(|(made, _)| *made == ty).copied()
}

/// One of all operations, those with many forms more often.
pub(super) fn drawn(rng: &mut Rng) -> (OperationType, Make) {
    static LOTS: OnceLock<Vec<(OperationType, Make)>> = OnceLock::new();
    let lots = LOTS.get_or_init(|| {
        let all = FAMILIES.into_iter().flatten();
        all.flat_map(|(ty, make)| {
            let lots = forms::signatures(*ty).len() * if is_window(*ty) { 2 } else { 1 };
            vec![(*ty, *make); lots.clamp(MIN_LOTS, MAX_LOTS)]
        })
        .collect()
    });
    rng.one_of(lots)
}

/// Whether it has each of its forms once more, with weights of scales per channel.
fn is_window(ty: OperationType) -> bool {
    use OperationType::{Conv2d, DepthwiseConv2d, GroupedConv2d, LshProjection, TransposeConv2d};
    matches!(ty, Conv2d | DepthwiseConv2d | GroupedConv2d | TransposeConv2d | LshProjection)
}

/// Takes away some of what the model says of its shapes: sizes or ranks that operations, or the request, will
/// tell.
fn forget(rng: &mut Rng, graph: &mut Subgraph, shapes: &BTreeMap<u32, Shape>) {
    let share = rng.one_of(&[0.1, 0.5, 1.0]);
    // Of a condition even the shape is asked for.
    let is_if = |operation: &&Operation| operation.ty == OperationType::If;
    let conditions: Vec<u32> = graph
        .operations
        .iter()
        .filter(is_if)
        .filter_map(|one| one.inputs.first().copied())
        .collect();
    for (index, operand) in (0..).zip(&mut graph.operands) {
        let may_be_open = matches!(
            operand.lifetime,
            OperandLifeTime::TemporaryVariable
                | OperandLifeTime::SubgraphInput
                | OperandLifeTime::SubgraphOutput
        );
        let is_plain = operand.ty.is_tensor() && operand.extra_params == ExtraParams::None;
        let may_be_open = may_be_open && !conditions.contains(&index);
        if !may_be_open || !is_plain || !shapes.contains_key(&index) || !rng.chance(share) {
            continue;
        }
        if rng.chance(0.3) {
            operand.dimensions.clear();
        } else {
            for size in &mut operand.dimensions {
                if rng.chance(0.6) {
                    *size = 0;
                }
            }
        }
    }
}
