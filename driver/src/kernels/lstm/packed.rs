//! A layer of cells with packed weights, and what its gates do with their sums.

use super::float::{Gate, Lstm, VARIANCE_EPSILON};
use crate::OpError;
use crate::budget::Budget;
use crate::kept::KeptValue;
use crate::kernels::functions::{logistic, tanh};
use crate::kernels::matmul_float::FloatPanels;
use crate::kernels::rnn::Activation;
use crate::kernels::simd::Isa;

/// A layer of cells. The sums of its gates stand side by side: input gate (unless coupled), forget
/// gate, output gate, cell gate.
#[derive(Debug)]
pub(crate) struct PackedLstm {
    pub(super) input: FloatPanels,
    pub(super) aux: Option<FloatPanels>,
    pub(super) recurrent: FloatPanels,
    /// What the sums begin with.
    pub(super) start: Vec<f32>,
    pub(super) units: usize,
    coupled: bool,
    /// Of input, forget and output gate, where they have peepholes.
    peepholes: [Option<Vec<f32>>; 3],
    /// Weights and biases of normalised sums, in the order of the sums.
    layer_norm: Option<[Vec<f32>; 2]>,
    pub(super) projection: Option<(FloatPanels, Vec<f32>)>,
    activation: Activation,
    cell_clip: f32,
    pub(super) projection_clip: f32,
}

/// The matrices of all gates as one, `units` rows each.
fn stacked<'a>(
    isa: Isa,
    gates: &[&Gate<'a>],
    matrix: impl Fn(&Gate<'a>) -> &'a [f32],
    units: usize,
    budget: &Budget<'_>,
) -> Result<FloatPanels, OpError> {
    let depth = gates.first().map_or(0, |gate| matrix(gate).len() / units.max(1));
    if gates.iter().any(|gate| matrix(gate).len() != units * depth) {
        return Err(OpError::Internal { what: "sizes of the gates of a layer" });
    }
    let row = |row: usize| &matrix(gates[row / units])[row % units * depth..][..depth];
    FloatPanels::of_rows(isa, row, (gates.len() * units, depth), budget)
}

/// Vectors of one number per unit that a gate has at most, and copies of them while they are packed.
const VECTORS_OF_GATE: usize = 8;

/// The packed matrices of a layer.
struct Matrices {
    input: FloatPanels,
    aux: Option<FloatPanels>,
    recurrent: FloatPanels,
    projection: Option<FloatPanels>,
}

impl Matrices {
    /// Packs those of these gates.
    fn new(
        isa: Isa,
        lstm: &Lstm<'_>,
        gates: &[&Gate<'_>],
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let units = lstm.forget_gate.bias.len();
        let has_aux = gates.iter().all(|gate| gate.aux.is_some());
        let projection = lstm.projection.map(|projection| {
            let outputs = projection.weights.len() / units.max(1);
            FloatPanels::new(isa, projection.weights, outputs, units, budget)
        });
        Ok(Matrices {
            input: stacked(isa, gates, |gate| gate.input, units, budget)?,
            aux: has_aux
                .then(|| stacked(isa, gates, |gate| gate.aux.unwrap_or_default(), units, budget))
                .transpose()?,
            recurrent: stacked(isa, gates, |gate| gate.recurrent, units, budget)?,
            projection: projection.transpose()?,
        })
    }

    /// Those that [`PackedLstm::matrices`] gave once.
    fn kept(
        lstm: &Lstm<'_>,
        gates: usize,
        sizes: LayerSizes,
        values: &[KeptValue],
    ) -> Result<Self, OpError> {
        let units = lstm.forget_gate.bias.len();
        let mut values = values.iter();
        let mut matrix = |rows: usize, depth: usize| {
            let value = values.next().ok_or(OTHER_LAYER)?;
            FloatPanels::kept(value, rows, depth)
        };
        let LayerSizes { inputs, aux_inputs, outputs } = sizes;
        let sums = gates * units;
        let matrices = Matrices {
            input: matrix(sums, inputs)?,
            aux: aux_inputs.map(|inputs| matrix(sums, inputs)).transpose()?,
            recurrent: matrix(sums, outputs)?,
            projection: lstm.projection.map(|_| matrix(outputs, units)).transpose()?,
        };
        match values.next() {
            None => Ok(matrices),
            Some(_) => Err(OTHER_LAYER),
        }
    }
}

const OTHER_LAYER: OpError = OpError::Internal { what: "what was kept of a recurrent layer" };

/// What goes into a layer and comes out of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerSizes {
    pub(crate) inputs: usize,
    pub(crate) aux_inputs: Option<usize>,
    pub(crate) outputs: usize,
}

impl PackedLstm {
    /// Packs the weights of a layer.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit; what the budget says.
    pub(crate) fn new(isa: Isa, lstm: &Lstm<'_>, budget: &Budget<'_>) -> Result<Self, OpError> {
        Self::with(lstm, budget, |gates| Matrices::new(isa, lstm, gates, budget))
    }

    /// The layer whose matrices were packed once, see [`PackedLstm::matrices`]: those of `lstm` are not
    /// looked at.
    ///
    /// # Errors
    /// [`OpError::Internal`] for matrices of another layer; what the budget says.
    pub(crate) fn restored(
        lstm: &Lstm<'_>,
        sizes: LayerSizes,
        matrices: &[KeptValue],
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        Self::with(lstm, budget, |gates| Matrices::kept(lstm, gates.len(), sizes, matrices))
    }

    /// The packed matrices as bytes, for [`PackedLstm::restored`].
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &[u8]> {
        let projection = self.projection.as_ref().map(|(weights, _)| weights);
        let matrices = [Some(&self.input), self.aux.as_ref(), Some(&self.recurrent), projection];
        matrices.into_iter().flatten().map(FloatPanels::bytes)
    }

    fn with(
        lstm: &Lstm<'_>,
        budget: &Budget<'_>,
        matrices: impl FnOnce(&[&Gate<'_>]) -> Result<Matrices, OpError>,
    ) -> Result<Self, OpError> {
        let units = lstm.forget_gate.bias.len();
        let own = lstm.input_gate.as_ref();
        let gates: Vec<&Gate<'_>> = own
            .into_iter()
            .chain([&lstm.forget_gate, &lstm.output_gate, &lstm.cell_gate])
            .collect();
        let vector_bytes = size_of_val(lstm.forget_gate.bias);
        budget.charge(vector_bytes.saturating_mul(gates.len() * VECTORS_OF_GATE))?;
        let vectors = |vector: fn(&Gate<'_>) -> Option<Vec<f32>>| {
            gates
                .iter()
                .map(|gate| vector(gate))
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat())
        };
        let biases = gates.iter().flat_map(|gate| gate.bias).copied().collect::<Vec<f32>>();
        let norm = vectors(|gate| gate.layer_norm.map(<[f32]>::to_vec));
        let start = if norm.is_some() { vec![0.0; biases.len()] } else { biases.clone() };
        let peephole = |gate: Option<&Gate<'_>>| gate?.peephole.map(<[f32]>::to_vec);
        let Matrices { input, aux, recurrent, projection } = matrices(&gates)?;
        let projection = projection.zip(lstm.projection).map(|(weights, projection)| {
            let outputs = weights.units();
            budget.charge(outputs * size_of::<f32>())?;
            let bias = projection.bias.map_or_else(|| vec![0.0; outputs], <[f32]>::to_vec);
            Ok::<_, OpError>((weights, bias))
        });
        Ok(PackedLstm {
            input,
            aux,
            recurrent,
            start,
            units,
            coupled: own.is_none(),
            peepholes: [
                peephole(own),
                peephole(Some(&lstm.forget_gate)),
                peephole(Some(&lstm.output_gate)),
            ],
            layer_norm: norm.map(|norm| [norm, biases]),
            projection: projection.transpose()?,
            activation: lstm.activation,
            cell_clip: lstm.cell_clip,
            projection_clip: lstm.projection_clip,
        })
    }

    /// Number of units.
    #[must_use]
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Number of outputs.
    #[must_use]
    pub(crate) fn outputs(&self) -> usize {
        self.recurrent.depth()
    }

    /// Size of the vectors that go in.
    #[must_use]
    pub(crate) fn inputs(&self) -> usize {
        self.input.depth()
    }

    /// Size of the auxiliary vectors, where there are weights for them.
    #[must_use]
    pub(crate) fn aux_inputs(&self) -> Option<usize> {
        self.aux.as_ref().map(FloatPanels::depth)
    }

    /// Numbers that the gates of one step of one sequence sum up to.
    #[must_use]
    pub(crate) fn sums(&self) -> usize {
        self.start.len()
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        let vectors = self.peepholes.iter().flatten().chain(self.layer_norm.iter().flatten());
        let bias = self.projection.iter().map(|(_, bias)| bias);
        let vectors =
            vectors.chain([&self.start]).chain(bias).map(|vector| size_of_val(vector.as_slice()));
        let projection = self.projection.as_ref().map(|(weights, _)| weights);
        let matrices = [Some(&self.input), self.aux.as_ref(), Some(&self.recurrent), projection];
        vectors.chain(matrices.into_iter().flatten().map(FloatPanels::held_bytes)).sum()
    }
}

// Loops rather than iterators with closures: those would not be compiled for the instructions of the
// function that the ones here end up in.

/// Computes the gates of one step of one sequence: the sums of the output gate become the hidden values,
/// those of the other gates are of no meaning afterwards.
#[inline(always)]
pub(crate) fn gates(layer: &PackedLstm, sums: &mut [f32], cell: &mut [f32]) {
    let units = cell.len();
    let own = if layer.coupled { 0 } else { units };
    let (open, rest) = sums.split_at_mut(own + units);
    let (output_gate, candidate) = rest.split_at_mut(units);
    let [input_peephole, forget_peephole, output_peephole] = &layer.peepholes;

    let (input_gate, forget_gate) = open.split_at_mut(own);
    add_peephole(input_gate, input_peephole, cell);
    add_peephole(forget_gate, forget_peephole, cell);
    if let Some([weights, bias]) = &layer.layer_norm {
        normalise(input_gate, weights, bias);
        normalise(forget_gate, &weights[own..], &bias[own..]);
        let at = own + 2 * units;
        normalise(candidate, &weights[at..], &bias[at..]);
    }
    for value in open.iter_mut() {
        *value = logistic(*value);
    }
    activate(layer.activation, candidate);
    let (input_gate, forget_gate) = open.split_at(own);
    update(cell, input_gate, forget_gate, candidate, layer.cell_clip);

    add_peephole(output_gate, output_peephole, cell);
    if let Some([weights, bias]) = &layer.layer_norm {
        let at = own + units;
        normalise(output_gate, &weights[at..], &bias[at..]);
    }
    candidate.copy_from_slice(cell);
    activate(layer.activation, candidate);
    for (output_gate, cell) in output_gate.iter_mut().zip(candidate) {
        *output_gate = logistic(*output_gate) * *cell;
    }
}

/// The next cells: what the forget gate keeps of them, and what the input gate adds of the candidate.
/// Without an input gate it is the complement of the forget gate.
#[inline(always)]
fn update(cell: &mut [f32], input_gate: &[f32], forget_gate: &[f32], candidate: &[f32], clip: f32) {
    if input_gate.is_empty() {
        for ((cell, forget_gate), candidate) in cell.iter_mut().zip(forget_gate).zip(candidate) {
            *cell = forget_gate * *cell + (1.0 - forget_gate) * candidate;
        }
    } else {
        for (((cell, forget_gate), input_gate), candidate) in
            cell.iter_mut().zip(forget_gate).zip(input_gate).zip(candidate)
        {
            *cell = forget_gate * *cell + input_gate * candidate;
        }
    }
    if clip > 0.0 {
        for cell in cell {
            let held = if *cell < -clip { -clip } else { *cell };
            *cell = if held > clip { clip } else { held };
        }
    }
}

/// Adds a gate's peephole: its weights for the cell's own value.
#[inline(always)]
fn add_peephole(sums: &mut [f32], weights: &Option<Vec<f32>>, cell: &[f32]) {
    if let Some(weights) = weights {
        for ((sum, weight), cell) in sums.iter_mut().zip(weights).zip(cell) {
            *sum += weight * cell;
        }
    }
}

/// Brings the sums of a gate to a mean of 0 and a variance of 1, then weighs them.
#[inline(always)]
fn normalise(sums: &mut [f32], weights: &[f32], bias: &[f32]) {
    if sums.is_empty() {
        return;
    }
    #[allow(clippy::cast_precision_loss, reason = "a layer has far fewer units than 2^24")]
    let count = sums.len() as f32;
    let mut mean = 0.0;
    for sum in sums.iter() {
        mean += sum;
    }
    mean /= count;
    let mut variance = 0.0;
    for sum in sums.iter() {
        variance += (sum - mean) * (sum - mean);
    }
    let scale = 1.0 / (variance / count + VARIANCE_EPSILON).sqrt();
    for ((sum, weight), bias) in sums.iter_mut().zip(weights).zip(bias) {
        *sum = (*sum - mean) * scale * weight + bias;
    }
}

/// As [`Activation::apply`].
#[inline(always)]
fn activate(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Tanh => {
            for value in values {
                *value = tanh(*value);
            }
        }
        Activation::Sigmoid => {
            for value in values {
                *value = logistic(*value);
            }
        }
        other => other.apply(values),
    }
}
