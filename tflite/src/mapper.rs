//! What the mapping of one operator works with: its tensors as operands.

use std::collections::HashMap;
use std::sync::Arc;

use burst_hal::{
    DataLocation, Dimensions, ExtraParams, Operand, OperandLifeTime, OperandType, OperationType,
};

use crate::ElementType;
use crate::batch_inputs;
use crate::error::Refusal;
use crate::file::{File, Operator, Tensor};
use crate::graph::{Graph, OperandIndex, Quant};
use crate::schema::Options;
use crate::verdict::Note;

/// A state tensor: the operand that brings it in, and the one that takes it out.
pub(crate) struct State {
    pub(crate) tensor: usize,
    pub(crate) before: OperandIndex,
    pub(crate) after: OperandIndex,
}

/// In which form the bytes of a buffer are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    AsStored,
    /// float16 as float32.
    Widened,
    /// int64 as int32.
    Narrowed,
}

/// Turns the tensors and operators of a file into operands and operations.
pub(crate) struct Mapper<'f, 'a> {
    file: &'f File<'a>,
    pub(crate) graph: Graph,
    /// The operand of each tensor that has one already.
    operands: Vec<Option<OperandIndex>>,
    /// Whether a tensor is an output of the graph.
    is_output: Vec<bool>,
    /// Where the bytes of a buffer are kept, for tensors that share one.
    kept: HashMap<(usize, Form), DataLocation>,
    pub(crate) states: Vec<State>,
    /// Remarks on the operator that is being mapped.
    pub(crate) notes: Vec<Note>,
}

impl<'f, 'a> Mapper<'f, 'a> {
    pub(crate) fn new(file: &'f File<'a>, outputs: &[usize]) -> Self {
        let mut is_output = vec![false; file.tensors.len()];
        for &tensor in outputs {
            if let Some(flag) = is_output.get_mut(tensor) {
                *flag = true;
            }
        }
        Mapper {
            file,
            graph: Graph::default(),
            operands: vec![None; file.tensors.len()],
            is_output,
            kept: HashMap::new(),
            states: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The tensor with this index; indexes were checked when the file was opened.
    pub(crate) fn tensor(&self, index: usize) -> Result<Tensor<'a>, Refusal> {
        self.file.tensors.get(index).copied().ok_or(Refusal::Missing { what: "a tensor" })
    }

    /// Makes a tensor an input of the graph.
    pub(crate) fn graph_input(&mut self, index: usize) -> Result<OperandIndex, Refusal> {
        let tensor = self.tensor(index)?;
        let mut operand = describe(&tensor)?;
        operand.lifetime = OperandLifeTime::SubgraphInput;
        // What the caller gives has the sizes that the file names, also where they may vary.
        operand.dimensions = sizes(tensor.shape());
        self.bind(index, operand)
    }

    fn bind(&mut self, tensor: usize, operand: Operand) -> Result<OperandIndex, Refusal> {
        let index = self.graph.add(operand)?;
        self.rebind(tensor, index);
        Ok(index)
    }

    /// From now on this operand is the tensor's value.
    pub(crate) fn rebind(&mut self, tensor: usize, operand: OperandIndex) {
        if let Some(slot) = self.operands.get_mut(tensor) {
            *slot = Some(operand);
        }
    }

    /// The operand of a tensor, if it has one already.
    pub(crate) fn bound(&self, tensor: usize) -> Option<OperandIndex> {
        self.operands.get(tensor).copied().flatten()
    }

    /// Whether a tensor is an output of the graph.
    pub(crate) fn is_graph_output(&self, tensor: usize) -> bool {
        self.is_output.get(tensor).copied().unwrap_or(false)
    }

    /// The operand of a tensor that is read; constants are made on their first use.
    pub(crate) fn value(&mut self, index: usize) -> Result<OperandIndex, Refusal> {
        if let Some(known) = self.bound(index) {
            return Ok(known);
        }
        let tensor = self.tensor(index)?;
        let mut operand = describe(&tensor)?;
        let Some(data) = tensor.data else {
            // Its operator was refused: the type alone is known.
            return self.bind(index, operand);
        };
        if tensor.is_sparse() {
            return Err(Refusal::Sparse { tensor: index });
        }
        operand.lifetime = OperandLifeTime::ConstantCopy;
        operand.location = match tensor.ty {
            ElementType::Int64 => {
                let narrow = narrow_ints(&tensor)?;
                self.keep_form(tensor.buffer, Form::Narrowed, || {
                    narrow.iter().flat_map(|value| value.to_le_bytes()).collect()
                })?
            }
            _ => self.keep_once(tensor.buffer, data)?,
        };
        operand.dimensions = constant_sizes(&tensor);
        self.bind(index, operand)
    }

    /// Keeps the bytes of a buffer, once however many tensors share it: otherwise a small file
    /// could ask for any amount of memory.
    fn keep_once(&mut self, buffer: usize, data: &[u8]) -> Result<DataLocation, Refusal> {
        self.keep_form(buffer, Form::AsStored, || data.to_vec())
    }

    /// As for other bytes, for a buffer that is kept with wider elements.
    pub(crate) fn keep_widened(
        &mut self,
        buffer: usize,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<DataLocation, Refusal> {
        self.keep_form(buffer, Form::Widened, bytes)
    }

    fn keep_form(
        &mut self,
        buffer: usize,
        form: Form,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<DataLocation, Refusal> {
        if let Some(&known) = self.kept.get(&(buffer, form)) {
            return Ok(known);
        }
        let location = self.graph.keep(&bytes())?;
        self.kept.insert((buffer, form), location);
        Ok(location)
    }

    /// A constant int32 tensor as an operand with this scale, as a quantized bias needs it.
    ///
    /// Not bound to the tensor: two layers may share a bias and differ in scale.
    pub(crate) fn scaled_ints(
        &mut self,
        index: usize,
        scale: f32,
    ) -> Result<OperandIndex, Refusal> {
        let tensor = self.tensor(index)?;
        match tensor.data {
            Some(data) if tensor.ty == ElementType::Int32 && !tensor.is_sparse() => {
                let location = self.keep_once(tensor.buffer, data)?;
                let quant = Quant { scale, zero_point: 0 };
                let shape = constant_sizes(&tensor);
                self.graph.constant(
                    OperandType::TensorInt32,
                    shape,
                    quant,
                    ExtraParams::None,
                    location,
                )
            }
            _ => self.value(index),
        }
    }

    /// The operand that an operator writes, described as the file describes the tensor.
    pub(crate) fn output(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
    ) -> Result<OperandIndex, Refusal> {
        let found = operator.outputs.len();
        let &tensor = operator.outputs.get(at).ok_or(Refusal::Count { what: "outputs", found })?;
        self.written(tensor, None)
    }

    /// The operand of a tensor that is written, with another type where NNAPI has another.
    pub(crate) fn written(
        &mut self,
        index: usize,
        ty: Option<OperandType>,
    ) -> Result<OperandIndex, Refusal> {
        if let Some(known) = self.bound(index) {
            return Ok(known);
        }
        let tensor = self.tensor(index)?;
        let mut operand = match ty {
            Some(ty) => Operand::new(ty, OperandLifeTime::TemporaryVariable),
            None => describe(&tensor)?,
        };
        if self.is_graph_output(index) {
            operand.lifetime = OperandLifeTime::SubgraphOutput;
        }
        operand.dimensions = known_sizes(&tensor);
        self.bind(index, operand)
    }

    /// The tensor at position `at` of an operator's inputs, where it is given.
    pub(crate) fn input_tensor(&self, operator: &Operator<'_>, at: usize) -> Option<usize> {
        operator.inputs.get(at).copied().flatten()
    }

    /// The operand at position `at` of an operator's inputs.
    pub(crate) fn input(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
        what: &'static str,
    ) -> Result<OperandIndex, Refusal> {
        let tensor = self.input_tensor(operator, at).ok_or(Refusal::Missing { what })?;
        self.value(tensor)
    }

    /// The operand at position `at` of an operator's inputs, or a left-out one.
    pub(crate) fn optional_input(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
        ty: OperandType,
    ) -> Result<OperandIndex, Refusal> {
        match self.input_tensor(operator, at) {
            Some(tensor) => self.value(tensor),
            None => self.graph.absent(ty),
        }
    }

    /// The integers of a constant input.
    pub(crate) fn ints(
        &self,
        operator: &Operator<'_>,
        at: usize,
        what: &'static str,
    ) -> Result<Vec<i32>, Refusal> {
        let index = self.input_tensor(operator, at).ok_or(Refusal::Missing { what })?;
        let tensor = self.tensor(index)?;
        if tensor.data.is_none() {
            return Err(Refusal::NotConstant { what });
        }
        narrow_ints(&tensor)
    }

    /// The one integer of a constant input.
    pub(crate) fn only_int(
        &self,
        operator: &Operator<'_>,
        at: usize,
        what: &'static str,
    ) -> Result<i32, Refusal> {
        match self.ints(operator, at, what)?.as_slice() {
            [one] => Ok(*one),
            _ => Err(Refusal::Shape { what }),
        }
    }

    /// Turns a variable tensor into an input and an output of the graph.
    pub(crate) fn state(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
    ) -> Result<(OperandIndex, OperandIndex), Refusal> {
        let what = "the state";
        let index = self.input_tensor(operator, at).ok_or(Refusal::Missing { what })?;
        let tensor = self.tensor(index)?;
        if !tensor.is_state() || self.bound(index).is_some() {
            return Err(Refusal::NotState { tensor: index });
        }
        let mut operand = describe(&tensor)?;
        operand.dimensions = sizes(tensor.shape());
        operand.lifetime = OperandLifeTime::SubgraphInput;
        let before = self.graph.add(operand.clone())?;
        operand.lifetime = OperandLifeTime::SubgraphOutput;
        let after = self.graph.add(operand)?;
        self.rebind(index, before);
        self.states.push(State { tensor: index, before, after });
        Ok((before, after))
    }

    /// Emits an operation with one output that has the type of its first input, and, where NNAPI
    /// fixes them, this scale and zero point.
    pub(crate) fn emit(
        &mut self,
        ty: OperationType,
        inputs: Vec<OperandIndex>,
        output: OperandIndex,
        needed: Option<Quant>,
    ) -> Result<(), Refusal> {
        let main = inputs.first().map_or(OperandType::TensorFloat32, |&i| self.graph.operand(i).ty);
        let made = self.graph.operand(output);
        if made.ty != main {
            let what = "the output";
            return Err(Refusal::OperandType { what, found: made.ty, needed: main });
        }
        match needed {
            Some(needed) if main.is_quantized() && Quant::of(made) != needed => {
                Err(Refusal::FixedScale {
                    operation: ty,
                    scale: needed.scale,
                    zero_point: needed.zero_point,
                })
            }
            _ => {
                self.learn_batch(ty, &inputs, output);
                self.graph.operation(ty, inputs, vec![output])
            }
        }
    }

    /// Files with an open batch leave it open everywhere; what keeps it has that of its input.
    fn learn_batch(&mut self, ty: OperationType, inputs: &[OperandIndex], output: OperandIndex) {
        let rank = self.graph.operand(output).dimensions.len();
        let deciding = inputs.iter().take(batch_inputs::batch_inputs(ty));
        let mut largest = 0;
        for &input in deciding {
            let dimensions = &self.graph.operand(input).dimensions;
            match dimensions.first() {
                // Of lower rank: it broadcasts along the batch.
                Some(_) if dimensions.len() < rank => {}
                Some(&known) if known > 0 => largest = largest.max(known),
                _ => return,
            }
        }
        self.graph.learn_batch(output, largest);
    }

    /// As [`Mapper::emit`], for operations whose output has the first input's scale.
    pub(crate) fn emit_keeping_scale(
        &mut self,
        ty: OperationType,
        inputs: Vec<OperandIndex>,
        output: OperandIndex,
    ) -> Result<(), Refusal> {
        let needed = inputs.first().map(|&first| Quant::of(self.graph.operand(first)));
        self.emit(ty, inputs, output, needed)
    }

    /// From one quantized type or scale to another, by way of real numbers.
    pub(crate) fn requantize(
        &mut self,
        from: OperandIndex,
        to: OperandIndex,
    ) -> Result<(), Refusal> {
        let dimensions = self.graph.operand(to).dimensions.clone();
        let same_scale = self.graph.operand(from).scale == self.graph.operand(to).scale;
        self.notes.push(if same_scale { Note::ZeroPointMoved } else { Note::Requantized });
        let real = self.graph.temporary(OperandType::TensorFloat32, dimensions, Quant::NONE)?;
        self.graph.operation(OperationType::Dequantize, vec![from], vec![real])?;
        self.graph.operation(OperationType::Quantize, vec![real], vec![to])
    }
}

/// The options of an operator as the table that its mapping needs.
pub(crate) fn options<'a, O: Options<'a>>(operator: &Operator<'a>) -> Result<O, Refusal> {
    let found = operator.table.options_type();
    operator.table.options().ok_or(Refusal::OptionsKind { found })
}

/// How many elements a shape has; saturating, since a file can say anything.
pub(crate) fn element_count(dimensions: &[u32]) -> u64 {
    dimensions.iter().fold(1, |count: u64, &size| count.saturating_mul(size.into()))
}

/// Sizes as NNAPI keeps them. The file was checked for negative ones.
pub(crate) fn sizes(shape: impl Iterator<Item = i32>) -> Dimensions {
    shape.map(|size| u32::try_from(size).unwrap_or(0)).collect()
}

/// The shape of a constant: a scalar becomes a tensor of one element, since NNAPI's have axes.
pub(crate) fn constant_sizes(tensor: &Tensor<'_>) -> Dimensions {
    let found = sizes(tensor.shape());
    if found.is_empty() { Dimensions::from_slice(&[1]) } else { found }
}

/// What the file knows of a computed shape: nothing along axes that depend on the input.
fn known_sizes(tensor: &Tensor<'_>) -> Dimensions {
    let mut known = sizes(tensor.shape());
    for (size, signed) in known.iter_mut().zip(tensor.shape_signature()) {
        if signed < 0 {
            *size = 0;
        }
    }
    known
}

/// The integers of an int32 or int64 constant.
fn narrow_ints(tensor: &Tensor<'_>) -> Result<Vec<i32>, Refusal> {
    let data = tensor.data.unwrap_or_default();
    match tensor.ty {
        ElementType::Int32 => {
            let (chunks, _) = data.as_chunks::<4>();
            Ok(chunks.iter().map(|chunk| i32::from_le_bytes(*chunk)).collect())
        }
        ElementType::Int64 => {
            let (chunks, _) = data.as_chunks::<8>();
            let narrow = |chunk: &[u8; 8]| {
                let value = i64::from_le_bytes(*chunk);
                i32::try_from(value).map_err(|_| Refusal::Range { what: "a constant", value })
            };
            chunks.iter().map(narrow).collect()
        }
        ty => Err(Refusal::ElementType { tensor: tensor.index, ty }),
    }
}

/// The operand that stands for a tensor, without shape, lifetime and bytes.
fn describe(tensor: &Tensor<'_>) -> Result<Operand, Refusal> {
    let plain = |ty| Operand::new(ty, OperandLifeTime::TemporaryVariable);
    Ok(match tensor.ty {
        ElementType::Float32 => plain(OperandType::TensorFloat32),
        ElementType::Float16 => plain(OperandType::TensorFloat16),
        ElementType::Int32 => plain(OperandType::TensorInt32),
        ElementType::Bool => plain(OperandType::TensorBool8),
        ElementType::Int64 if tensor.data.is_some() => plain(OperandType::TensorInt32),
        ElementType::Uint8 => quantized(tensor, OperandType::TensorQuant8Asymm)?,
        ElementType::Int8 => quantized(tensor, OperandType::TensorQuant8AsymmSigned)?,
        ElementType::Int16 => quantized(tensor, OperandType::TensorQuant16Symm)?,
        ty => return Err(Refusal::ElementType { tensor: tensor.index, ty }),
    })
}

fn quantized(tensor: &Tensor<'_>, ty: OperandType) -> Result<Operand, Refusal> {
    let wrong =
        |problem| Err(Refusal::Quantization { tensor: tensor.index, ty: tensor.ty, problem });
    let Some(found) = tensor.quantization() else { return wrong("has no scale") };
    if found.details_type() != 0 {
        return wrong("is quantized in a way of its own");
    }
    if found.scale().iter().any(|scale| !(scale.is_finite() && scale > 0.0)) {
        return wrong("has a scale that is not a positive number");
    }
    let mut operand = Operand::new(ty, OperandLifeTime::TemporaryVariable);
    match found.scale().len() {
        0 => return wrong("has no scale"),
        1 => {
            operand.scale = found.scale().get(0).unwrap_or_default();
            let zero_point = found.zero_point().get(0).unwrap_or_default();
            let (low, high) = ty.zero_point_range();
            match i32::try_from(zero_point) {
                Ok(inside) if (low..=high).contains(&inside) => operand.zero_point = inside,
                _ => return wrong("has a zero point outside its type"),
            }
        }
        count => {
            let axis = usize::try_from(found.quantized_dimension()).ok();
            let size = axis.and_then(|axis| tensor.shape().nth(axis));
            if size.and_then(|size| usize::try_from(size).ok()) != Some(count) {
                return wrong("has not one scale per index of its quantized axis");
            }
            if tensor.ty != ElementType::Int8 || tensor.data.is_none() {
                return wrong("has a scale per channel, which only int8 constants can have");
            }
            if found.zero_point().iter().any(|zero_point| zero_point != 0) {
                return wrong("has a scale per channel and zero points other than 0");
            }
            operand.ty = OperandType::TensorQuant8SymmPerChannel;
            operand.extra_params = ExtraParams::ChannelQuant {
                scales: Arc::from_iter(found.scale().iter()),
                channel_dim: found.quantized_dimension().unsigned_abs(),
            };
        }
    }
    Ok(operand)
}
