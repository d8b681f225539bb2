//! Graphs that somebody has as values and not as a file, such as a runtime that shows its nodes to a
//! delegate.
//!
//! They are written as the file that says the same, and read like any other: one reader, with one
//! set of checks and verdicts, for both.

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, UnionWIPOffset, WIPOffset};

use crate::builtin;
use crate::error::ImportError;
use crate::file::{IDENTIFIER, SCHEMA_VERSION};
use crate::import::{self, Imported, Part};

/// Constants begin at multiples of this in the file, as the converter of the original has it.
const CONSTANT_ALIGNMENT_BYTES: usize = 16;
/// Offsets 0 and 1 mean that a constant's bytes are elsewhere; no file is that short.
const FIRST_GUESS_BYTES: usize = 1 << 20;
/// What the one-byte field of an operator's code says of codes that do not fit.
const CODE_ELSEWHERE: i8 = 127;

/// A graph as values. Tensors are named by their positions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenGraph<'a> {
    /// Its values.
    pub tensors: Vec<GivenTensor<'a>>,
    /// Its operators, in the order in which they run.
    pub operators: Vec<GivenOperator<'a>>,
    /// Tensors that somebody else computes.
    pub inputs: Vec<usize>,
    /// Tensors that somebody else uses.
    pub outputs: Vec<usize>,
}

/// A value of a graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenTensor<'a> {
    /// What messages call it.
    pub name: &'a str,
    /// The code of its element type in a file: 0 is float32.
    pub type_code: i8,
    /// Sizes along the axes; none for a scalar.
    pub shape: Vec<i32>,
    /// The bytes of a constant.
    pub data: Option<&'a [u8]>,
    /// Real values of one step: one for the tensor, or one per index of an axis; none where it is not
    /// quantized.
    pub scales: Vec<f32>,
    /// Stored values that stand for real 0, one or as many as there are scales.
    pub zero_points: Vec<i64>,
    /// The axis that has a scale per index.
    pub quantized_axis: i32,
    /// Whether it keeps its value from one execution to the next.
    pub is_variable: bool,
}

/// An operator of a graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenOperator<'a> {
    /// Its code in the schema.
    pub code: i32,
    /// The name of a custom operator.
    pub custom_name: Option<&'a str>,
    /// What it reads; `None` for an input that is left out.
    pub inputs: Vec<Option<usize>>,
    /// What it writes.
    pub outputs: Vec<usize>,
    /// Tensors that only describe values inside of it.
    pub intermediates: Vec<usize>,
    /// Its options: the code of their table in the schema, and the fields that are not at their
    /// defaults.
    pub options: Option<(u8, Vec<GivenField>)>,
    /// Options of a custom operator, in its own form.
    pub custom_options: &'a [u8],
}

/// A field of a table of options.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenField {
    /// Its number in the schema.
    pub number: u16,
    /// Its value.
    pub value: GivenValue,
}

/// The value of an option, by how the schema stores it.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenValue {
    /// A truth value.
    Bool(bool),
    /// A one-byte code, such as that of an activation.
    Byte(i8),
    /// An integer.
    Int(i32),
    /// A number.
    Float(f32),
    /// A list of integers.
    Ints(Vec<i32>),
}

/// The file that says what a graph says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile(Vec<u8>);

/// A model of a graph that was given as values.
#[derive(Debug, Clone)]
pub struct GivenModel {
    /// The model. Its inputs and outputs are those of the graph, in order, then the states.
    pub imported: Imported,
    /// The tensor of each of [`Imported::states`].
    pub state_tensors: Vec<usize>,
}

impl GivenGraph<'_> {
    /// The file that says the same: constants are copied into it.
    #[must_use]
    pub fn write(&self) -> GivenFile {
        // Constants lie behind the tables, at offsets that stand in the tables. The length of the tables does
        // not depend on them, so that the second round knows them.
        let tables = self.write_tables(FIRST_GUESS_BYTES).len();
        let constants = tables.next_multiple_of(CONSTANT_ALIGNMENT_BYTES);
        let mut file = self.write_tables(constants);
        for data in self.tensors.iter().filter_map(|tensor| tensor.data) {
            file.resize(file.len().next_multiple_of(CONSTANT_ALIGNMENT_BYTES), 0);
            file.extend_from_slice(data);
        }
        GivenFile(file)
    }

    /// All of the file but the constants, the first of which begins at `constants`.
    fn write_tables(&self, constants: usize) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let b = &mut builder;
        let mut end = constants;
        // Buffer 0 is the empty one.
        let mut buffers = vec![table(b, |_| {})];
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            let buffer = match tensor.data {
                Some(data) => {
                    let offset = end.next_multiple_of(CONSTANT_ALIGNMENT_BYTES);
                    end = offset + data.len();
                    buffers.push(write_buffer(b, offset, data.len()));
                    u32::try_from(buffers.len() - 1).unwrap_or(u32::MAX)
                }
                None => 0,
            };
            tensors.push(write_tensor(b, tensor, buffer));
        }
        let mut codes = Vec::with_capacity(self.operators.len());
        let mut operators = Vec::with_capacity(self.operators.len());
        for (at, operator) in (0_u32..).zip(&self.operators) {
            codes.push(write_code(b, operator));
            operators.push(write_operator(b, operator, at));
        }
        let tensors = b.create_vector(&tensors);
        let inputs = b.create_vector(&indexes(&self.inputs));
        let outputs = b.create_vector(&indexes(&self.outputs));
        let operators = b.create_vector(&operators);
        let graph = table(b, |b| {
            b.push_slot_always(slot(0), tensors);
            b.push_slot_always(slot(1), inputs);
            b.push_slot_always(slot(2), outputs);
            b.push_slot_always(slot(3), operators);
        });
        let graphs = b.create_vector(&[graph]);
        let codes = b.create_vector(&codes);
        let buffers = b.create_vector(&buffers);
        let root = table(b, |b| {
            b.push_slot_always(slot(0), SCHEMA_VERSION);
            b.push_slot_always(slot(1), codes);
            b.push_slot_always(slot(2), graphs);
            b.push_slot_always(slot(4), buffers);
        });
        builder.finish(root, str::from_utf8(IDENTIFIER).ok());
        builder.finished_data().to_vec()
    }
}

impl GivenFile {
    /// Reads the whole model.
    ///
    /// # Errors
    /// As [`import`](crate::import()).
    pub fn import(&self) -> Result<GivenModel, ImportError> {
        let (imported, state_tensors) = import::import_with_states(&self.0, Part::default())?;
        Ok(GivenModel { imported, state_tensors })
    }
}

type Offset = WIPOffset<TableFinishedWIPOffset>;

/// Where a table's vtable has the field with this number.
fn slot(number: u16) -> u16 {
    4 + 2 * number
}

fn table(b: &mut FlatBufferBuilder<'_>, fill: impl FnOnce(&mut FlatBufferBuilder<'_>)) -> Offset {
    let start = b.start_table();
    fill(b);
    b.end_table(start)
}

/// Tensor indexes as the file has them; the reader refuses what is out of range.
fn indexes(tensors: &[usize]) -> Vec<i32> {
    tensors.iter().map(|&tensor| i32::try_from(tensor).unwrap_or(i32::MAX)).collect()
}

fn write_buffer(b: &mut FlatBufferBuilder<'_>, offset: usize, length: usize) -> Offset {
    if length == 0 {
        // A constant without elements is known by its buffer alone.
        return table(b, |_| {});
    }
    table(b, |b| {
        b.push_slot_always(slot(1), offset as u64);
        b.push_slot_always(slot(2), length as u64);
    })
}

fn write_tensor(b: &mut FlatBufferBuilder<'_>, tensor: &GivenTensor<'_>, buffer: u32) -> Offset {
    let shape = b.create_vector(&tensor.shape);
    let name = b.create_string(tensor.name);
    let quantization = (!tensor.scales.is_empty()).then(|| {
        let scales = b.create_vector(&tensor.scales);
        let zero_points = b.create_vector(&tensor.zero_points);
        table(b, |b| {
            b.push_slot_always(slot(2), scales);
            b.push_slot_always(slot(3), zero_points);
            b.push_slot(slot(6), tensor.quantized_axis, 0);
        })
    });
    table(b, |b| {
        b.push_slot_always(slot(0), shape);
        b.push_slot(slot(1), tensor.type_code, 0);
        b.push_slot(slot(2), buffer, 0);
        b.push_slot_always(slot(3), name);
        if let Some(quantization) = quantization {
            b.push_slot_always(slot(4), quantization);
        }
        b.push_slot(slot(5), tensor.is_variable, false);
    })
}

fn write_code(b: &mut FlatBufferBuilder<'_>, operator: &GivenOperator<'_>) -> Offset {
    let custom = operator.custom_name.map(|name| b.create_string(name));
    let code = if custom.is_some() { builtin::CUSTOM } else { operator.code };
    table(b, |b| {
        b.push_slot(slot(0), i8::try_from(code).unwrap_or(CODE_ELSEWHERE), 0);
        if let Some(custom) = custom {
            b.push_slot_always(slot(1), custom);
        }
        b.push_slot(slot(3), code, 0);
    })
}

fn write_operator(b: &mut FlatBufferBuilder<'_>, operator: &GivenOperator<'_>, at: u32) -> Offset {
    let inputs = operator.inputs.iter().map(|input| match input {
        Some(tensor) => i32::try_from(*tensor).unwrap_or(i32::MAX),
        None => -1,
    });
    let inputs = b.create_vector(&inputs.collect::<Vec<_>>());
    let outputs = b.create_vector(&indexes(&operator.outputs));
    let options = operator.options.as_ref().map(|(code, fields)| (*code, write_options(b, fields)));
    let custom = b.create_vector(operator.custom_options);
    let intermediates = b.create_vector(&indexes(&operator.intermediates));
    table(b, |b| {
        b.push_slot(slot(0), at, 0);
        b.push_slot_always(slot(1), inputs);
        b.push_slot_always(slot(2), outputs);
        if let Some((code, options)) = options {
            b.push_slot(slot(3), code, 0);
            b.push_slot_always(slot(4), options);
        }
        b.push_slot_always(slot(5), custom);
        b.push_slot_always(slot(8), intermediates);
    })
}

fn write_options(
    b: &mut FlatBufferBuilder<'_>,
    fields: &[GivenField],
) -> WIPOffset<UnionWIPOffset> {
    let mut lists = Vec::new();
    for field in fields {
        if let GivenValue::Ints(values) = &field.value {
            lists.push((field.number, b.create_vector(values)));
        }
    }
    let written = table(b, |b| {
        for field in fields {
            let at = slot(field.number);
            match field.value {
                GivenValue::Bool(value) => b.push_slot_always(at, value),
                GivenValue::Byte(value) => b.push_slot_always(at, value),
                GivenValue::Int(value) => b.push_slot_always(at, value),
                GivenValue::Float(value) => b.push_slot_always(at, value),
                GivenValue::Ints(_) => {}
            }
        }
        for (number, list) in lists {
            b.push_slot_always(slot(number), list);
        }
    });
    written.as_union_value()
}

#[cfg(test)]
mod tests {
    use burst_hal::{OperandType, OperationType};

    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// An image of two channels, a filter of one unit, and an SVDF without meaning but for its state.
    fn convolution<'a>(filter: &'a [u8], bias: &'a [u8]) -> GivenGraph<'a> {
        let tensor = |name, shape: &[i32], data| GivenTensor {
            name,
            shape: shape.to_vec(),
            data,
            ..GivenTensor::default()
        };
        let field = |number, value| GivenField { number, value };
        GivenGraph {
            tensors: vec![
                tensor("image", &[1, 2, 2, 2], None),
                tensor("filter", &[1, 1, 1, 2], Some(filter)),
                tensor("bias", &[1], Some(bias)),
                tensor("made", &[1, 2, 2, 1], None),
            ],
            operators: vec![GivenOperator {
                code: 3,
                inputs: vec![Some(0), Some(1), Some(2)],
                outputs: vec![3],
                options: Some((
                    1,
                    vec![
                        field(0, GivenValue::Byte(1)),
                        field(1, GivenValue::Int(1)),
                        field(2, GivenValue::Int(1)),
                    ],
                )),
                ..GivenOperator::default()
            }],
            inputs: vec![0],
            outputs: vec![3],
        }
    }

    #[test]
    fn a_graph_as_values_is_read_as_the_file_that_says_the_same() {
        let (filter, bias) = (bytes(&[2.0, 3.0]), bytes(&[0.5]));
        let model = convolution(&filter, &bias).write().import().unwrap();
        let graph = &model.imported.model.main;
        assert_eq!(graph.operations.len(), 1);
        assert_eq!(graph.operations[0].ty, OperationType::Conv2d);
        let values = &model.imported.model.operand_values;
        for (at, want) in [(1, &filter), (2, &bias)] {
            let operand = &graph.operands[graph.operations[0].inputs[at] as usize];
            let start = operand.location.offset as usize;
            assert_eq!(&values[start..start + want.len()], want.as_slice(), "constant {at}");
        }
        assert_eq!(model.imported.inputs[0].name, "image");
        assert_eq!(model.imported.outputs[0].dims.as_slice(), [1, 2, 2, 1]);
        assert!(model.state_tensors.is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_graph_is_found_by_the_reader() {
        let (filter, bias) = (bytes(&[2.0, 3.0]), bytes(&[0.5]));
        let good = convolution(&filter, &bias);
        let mut outside = good.clone();
        outside.operators[0].outputs = vec![9];
        let error = outside.write().import().unwrap_err();
        assert!(matches!(error, ImportError::IndexOutOfRange { index: 9, .. }), "{error}");
        let mut short = good.clone();
        short.tensors[1].data = Some(&bias);
        let error = short.write().import().unwrap_err();
        assert!(matches!(error, ImportError::ConstantSize { found: 4, needed: 8, .. }), "{error}");
        let mut strange = good.clone();
        strange.operators[0].options = None;
        let error = strange.write().import().unwrap_err();
        assert!(matches!(error, ImportError::Refused { index: 0, .. }), "{error}");
    }

    #[test]
    fn states_are_told_by_their_tensors() {
        let (feature, time) = (bytes(&[1.0; 4]), bytes(&[1.0; 4]));
        let tensor = |name, shape: &[i32], data| GivenTensor {
            name,
            shape: shape.to_vec(),
            data,
            ..GivenTensor::default()
        };
        let graph = GivenGraph {
            tensors: vec![
                tensor("sound", &[1, 2], None),
                tensor("feature", &[2, 2], Some(&feature)),
                tensor("time", &[2, 2], Some(&time)),
                GivenTensor { is_variable: true, ..tensor("state", &[1, 4], None) },
                tensor("made", &[1, 2], None),
            ],
            operators: vec![GivenOperator {
                code: 27,
                inputs: vec![Some(0), Some(1), Some(2), None, Some(3)],
                outputs: vec![4],
                options: Some((6, vec![GivenField { number: 0, value: GivenValue::Int(1) }])),
                ..GivenOperator::default()
            }],
            inputs: vec![0],
            outputs: vec![4],
        };
        let model = graph.write().import().unwrap();
        assert_eq!(model.state_tensors, [3]);
        assert_eq!(model.imported.states.len(), 1);
        let state = model.imported.states[0];
        assert_eq!((state.input_index, state.output_index), (1, 1));
        assert_eq!(model.imported.inputs[1].ty, OperandType::TensorFloat32);
    }
}
