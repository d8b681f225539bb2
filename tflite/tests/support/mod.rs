//! Writes small `.tflite` files, right and wrong ones.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::borrow::Cow;

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// Element types by their code in the file.
pub(crate) const FLOAT32: i8 = 0;
pub(crate) const FLOAT16: i8 = 1;
pub(crate) const INT32: i8 = 2;
pub(crate) const UINT8: i8 = 3;
pub(crate) const INT64: i8 = 4;
pub(crate) const INT16: i8 = 7;
pub(crate) const COMPLEX64: i8 = 8;
pub(crate) const INT8: i8 = 9;

/// A tensor to be written.
#[derive(Clone, Default)]
pub(crate) struct Tensor {
    pub(crate) name: Cow<'static, str>,
    pub(crate) ty: i8,
    pub(crate) shape: Vec<i32>,
    pub(crate) signature: Option<Vec<i32>>,
    pub(crate) data: Option<Vec<u8>>,
    /// Its buffer, where it is not its own.
    pub(crate) buffer: Option<u32>,
    pub(crate) scales: Vec<f32>,
    pub(crate) zero_points: Vec<i64>,
    pub(crate) axis: i32,
    pub(crate) variable: bool,
}

impl Tensor {
    pub(crate) fn new(name: impl Into<Cow<'static, str>>, ty: i8, shape: &[i32]) -> Self {
        Tensor { name: name.into(), ty, shape: shape.to_vec(), ..Tensor::default() }
    }

    pub(crate) fn quant(mut self, scale: f32, zero_point: i64) -> Self {
        self.scales = vec![scale];
        self.zero_points = vec![zero_point];
        self
    }

    pub(crate) fn channels(mut self, scales: &[f32], axis: i32) -> Self {
        self.scales = scales.to_vec();
        self.zero_points = vec![0; scales.len()];
        self.axis = axis;
        self
    }

    pub(crate) fn bytes(mut self, data: Vec<u8>) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn floats(self, data: &[f32]) -> Self {
        self.bytes(data.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    pub(crate) fn ints(self, data: &[i32]) -> Self {
        self.bytes(data.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    pub(crate) fn longs(self, data: &[i64]) -> Self {
        self.bytes(data.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    pub(crate) fn state(mut self) -> Self {
        self.variable = true;
        self
    }
}

/// One field of an options table.
#[derive(Clone)]
pub(crate) enum Field {
    Byte(u16, i8),
    Int(u16, i32),
    Float(u16, f32),
    Bool(u16, bool),
    Ints(u16, Vec<i32>),
}

/// An operator to be written.
#[derive(Clone, Default)]
pub(crate) struct Operator {
    pub(crate) code: i32,
    pub(crate) custom: Option<&'static str>,
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    pub(crate) options: Option<(u8, Vec<Field>)>,
    pub(crate) custom_options: Vec<u8>,
    pub(crate) intermediates: Vec<i32>,
}

impl Operator {
    pub(crate) fn new(code: i32, inputs: &[i32], outputs: &[i32]) -> Self {
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        Operator { code, inputs, outputs, ..Operator::default() }
    }

    pub(crate) fn options(mut self, kind: u8, fields: Vec<Field>) -> Self {
        self.options = Some((kind, fields));
        self
    }
}

/// A file to be written. Buffer 0 is the empty one; tensor `i` with bytes has its own.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) version: u32,
    pub(crate) subgraphs: usize,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) operators: Vec<Operator>,
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    /// Which operator code the first operator names, where not its own.
    pub(crate) first_code_index: Option<u32>,
    /// Puts the bytes of all constants behind the flatbuffer.
    pub(crate) external: bool,
    /// Is added to where external bytes are said to be.
    pub(crate) external_shift: u64,
    /// The bytes of the buffer that is called metadata.
    pub(crate) metadata: Option<Vec<u8>>,
}

impl File {
    pub(crate) fn new(
        tensors: Vec<Tensor>,
        operators: Vec<Operator>,
        ends: (&[i32], &[i32]),
    ) -> Self {
        File {
            version: 3,
            subgraphs: 1,
            tensors,
            operators,
            inputs: ends.0.to_vec(),
            outputs: ends.1.to_vec(),
            first_code_index: None,
            external: false,
            external_shift: 0,
            metadata: None,
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        if !self.external {
            return self.write_with(0).0;
        }
        // Sizes do not depend on the offsets, so the second round knows where the end is.
        let length = self.write_with(1 << 40).0.len().next_multiple_of(16);
        let (mut file, behind) = self.write_with(length as u64);
        file.resize(length, 0);
        file.extend(behind);
        file
    }

    fn write_with(&self, end: u64) -> (Vec<u8>, Vec<u8>) {
        let mut fbb = FlatBufferBuilder::new();
        let b = &mut fbb;
        let mut behind = Vec::new();
        let mut buffers = vec![table(b, |_| {})];
        let mut tensors = Vec::new();
        for tensor in &self.tensors {
            let buffer = match (&tensor.data, tensor.buffer) {
                (_, Some(given)) => given,
                (Some(data), None) => {
                    buffers.push(self.write_buffer(b, data, end, &mut behind));
                    u32::try_from(buffers.len() - 1).expect("it fits")
                }
                (None, None) => 0,
            };
            tensors.push(write_tensor(b, tensor, buffer));
        }
        let named = self.metadata.as_ref().map(|metadata| {
            let data = b.create_vector(metadata);
            buffers.push(table(b, |b| b.push_slot_always(slot(0), data)));
            let name = b.create_string("TFLITE_METADATA");
            let index = u32::try_from(buffers.len() - 1).expect("it fits");
            let named = table(b, |b| {
                b.push_slot_always(slot(0), name);
                b.push_slot(slot(1), index, 0);
            });
            b.create_vector(&[named])
        });
        let codes: Vec<_> = self.operators.iter().map(|operator| write_code(b, operator)).collect();
        let mut operators = Vec::new();
        for (at, operator) in (0..).zip(&self.operators) {
            let code = self.first_code_index.filter(|_| at == 0).unwrap_or(at);
            operators.push(write_operator(b, operator, code));
        }
        let tensors = b.create_vector(&tensors);
        let inputs = b.create_vector(&self.inputs);
        let outputs = b.create_vector(&self.outputs);
        let operators = b.create_vector(&operators);
        let graph = table(b, |b| {
            b.push_slot_always(slot(0), tensors);
            b.push_slot_always(slot(1), inputs);
            b.push_slot_always(slot(2), outputs);
            b.push_slot_always(slot(3), operators);
        });
        let graphs = b.create_vector(&vec![graph; self.subgraphs]);
        let codes = b.create_vector(&codes);
        let buffers = b.create_vector(&buffers);
        let root = table(b, |b| {
            b.push_slot(slot(0), self.version, 0);
            b.push_slot_always(slot(1), codes);
            b.push_slot_always(slot(2), graphs);
            b.push_slot_always(slot(4), buffers);
            if let Some(named) = named {
                b.push_slot_always(slot(6), named);
            }
        });
        fbb.finish(root, Some("TFL3"));
        (fbb.finished_data().to_vec(), behind)
    }

    fn write_buffer(
        &self,
        b: &mut FlatBufferBuilder<'_>,
        data: &[u8],
        end: u64,
        behind: &mut Vec<u8>,
    ) -> Offset {
        if !self.external {
            let data = b.create_vector(data);
            return table(b, |b| b.push_slot_always(slot(0), data));
        }
        let offset = (end + behind.len() as u64).wrapping_add(self.external_shift);
        behind.extend(data);
        behind.resize(behind.len().next_multiple_of(16), 0);
        table(b, |b| {
            b.push_slot(slot(1), offset, 0);
            b.push_slot(slot(2), data.len() as u64, 0);
        })
    }
}

type Offset = WIPOffset<flatbuffers::TableFinishedWIPOffset>;

fn slot(id: u16) -> u16 {
    4 + 2 * id
}

fn table(b: &mut FlatBufferBuilder<'_>, fill: impl FnOnce(&mut FlatBufferBuilder<'_>)) -> Offset {
    let start = b.start_table();
    fill(b);
    b.end_table(start)
}

fn write_tensor(b: &mut FlatBufferBuilder<'_>, tensor: &Tensor, buffer: u32) -> Offset {
    let shape = b.create_vector(&tensor.shape);
    let signature = tensor.signature.as_ref().map(|sizes| b.create_vector(sizes));
    let name = b.create_string(&tensor.name);
    let scales = b.create_vector(&tensor.scales);
    let zero_points = b.create_vector(&tensor.zero_points);
    let quantization = table(b, |b| {
        b.push_slot_always(slot(2), scales);
        b.push_slot_always(slot(3), zero_points);
        b.push_slot(slot(6), tensor.axis, 0);
    });
    table(b, |b| {
        b.push_slot_always(slot(0), shape);
        b.push_slot(slot(1), tensor.ty, 0);
        b.push_slot(slot(2), buffer, 0);
        b.push_slot_always(slot(3), name);
        if !tensor.scales.is_empty() {
            b.push_slot_always(slot(4), quantization);
        }
        b.push_slot(slot(5), tensor.variable, false);
        if let Some(signature) = signature {
            b.push_slot_always(slot(7), signature);
        }
    })
}

fn write_code(b: &mut FlatBufferBuilder<'_>, operator: &Operator) -> Offset {
    let custom = operator.custom.map(|name| b.create_string(name));
    let code = if custom.is_some() { 32 } else { operator.code };
    table(b, |b| {
        b.push_slot(slot(0), i8::try_from(code).unwrap_or(127), 0);
        if let Some(custom) = custom {
            b.push_slot_always(slot(1), custom);
        }
        b.push_slot(slot(3), code, 0);
    })
}

fn write_operator(b: &mut FlatBufferBuilder<'_>, operator: &Operator, code: u32) -> Offset {
    let inputs = b.create_vector(&operator.inputs);
    let outputs = b.create_vector(&operator.outputs);
    let options = operator.options.as_ref().map(|(kind, fields)| (*kind, write_options(b, fields)));
    let custom = b.create_vector(&operator.custom_options);
    let intermediates = b.create_vector(&operator.intermediates);
    table(b, |b| {
        b.push_slot(slot(0), code, 0);
        b.push_slot_always(slot(1), inputs);
        b.push_slot_always(slot(2), outputs);
        if let Some((kind, options)) = options {
            b.push_slot(slot(3), kind, 0);
            b.push_slot_always(slot(4), options);
        }
        b.push_slot_always(slot(5), custom);
        b.push_slot_always(slot(8), intermediates);
    })
}

fn write_options(b: &mut FlatBufferBuilder<'_>, fields: &[Field]) -> WIPOffset<UnionWIPOffset> {
    let mut lists = Vec::new();
    for field in fields {
        if let Field::Ints(id, values) = field {
            lists.push((*id, b.create_vector(values)));
        }
    }
    table(b, |b| {
        for field in fields {
            match field {
                Field::Byte(id, value) => b.push_slot_always(slot(*id), *value),
                Field::Int(id, value) => b.push_slot_always(slot(*id), *value),
                Field::Float(id, value) => b.push_slot_always(slot(*id), *value),
                Field::Bool(id, value) => b.push_slot_always(slot(*id), *value),
                Field::Ints(..) => {}
            }
        }
        for (id, list) in lists {
            b.push_slot_always(slot(id), list);
        }
    })
    .as_union_value()
}

/// A small model of each kind of thing that a file can hold: float16 weights, a convolution, a
/// reshape with an int64 shape, a layer with a scale per channel.
pub(crate) fn sample() -> File {
    let tensors = vec![
        Tensor::new("image", UINT8, &[1, 4, 4, 2]).quant(0.5, 128),
        Tensor::new("filter", UINT8, &[3, 3, 3, 2]).quant(0.25, 100).bytes(vec![7; 54]),
        Tensor::new("bias", INT32, &[3]).quant(0.125, 0).ints(&[1, -2, 3]),
        Tensor::new("features", UINT8, &[1, 2, 2, 3]).quant(0.3, 0),
        Tensor::new("shape", INT64, &[2]).longs(&[1, -1]),
        Tensor::new("flat", UINT8, &[1, 12]).quant(0.3, 0),
        Tensor::new("real", FLOAT32, &[1, 12]),
        Tensor::new("half", FLOAT16, &[2, 12]).bytes([0x00, 0x3c].repeat(24)),
        Tensor::new("weights", FLOAT32, &[2, 12]),
        Tensor::new("scores", FLOAT32, &[1, 2]),
        Tensor::new("result", FLOAT32, &[1, 2]),
    ];
    let conv = vec![Field::Byte(0, 1), Field::Int(1, 1), Field::Int(2, 1), Field::Byte(3, 3)];
    let operators = vec![
        Operator::new(3, &[0, 1, 2], &[3]).options(1, conv),
        Operator::new(22, &[3, 4], &[5]).options(17, vec![Field::Ints(0, vec![1, -1])]),
        Operator::new(6, &[5], &[6]),
        Operator::new(6, &[7], &[8]),
        Operator::new(9, &[6, 8, -1], &[9]).options(8, vec![]),
        Operator::new(25, &[9], &[10]).options(9, vec![Field::Float(0, 1.0)]),
    ];
    File::new(tensors, operators, (&[0], &[10]))
}

/// Panics unless the model is one that every driver must accept in form.
pub(crate) fn assert_valid(model: &burst_hal::Model, what: &str) {
    use burst_hal::{HalVersion, OperandLifeTime, validate::validate_model};
    if let Err(error) = validate_model(model, HalVersion::V1_3) {
        panic!("{what}: {error}");
    }
    let constants = model.main.operands.iter();
    for constant in constants.filter(|o| o.lifetime == OperandLifeTime::ConstantCopy) {
        assert_eq!(constant.location.offset % 64, 0, "{what}: {constant:?}");
    }
}
