//! The values of a graph's operands during an execution, as slices of numbers: for drivers that walk the graph.
//!
//! A driver keeps [`GraphValues`] with the constants in each prepared model. An execution works on a
//! clone, which shares them: it reads the inputs of the request, has each operation take
//! [views](TensorView) of its inputs and put its results, and writes the outputs.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::{
    Dimensions, ErrorStatus, ExecutionResult, Failure, Model, Operand, OperandLifeTime,
    OperandType, OutputShape, Pool, Request, RequestArgument, RequestPool, Subgraph,
};

/// Bytes that the inputs and results of one execution may have together. Shapes come from a peer, and
/// two tensors of a few bytes broadcast to one of gigabytes.
pub const MAX_MADE_BYTES: u64 = 1 << 30;

mod sealed {
    pub trait Sealed: bytemuck::Pod {}
}

/// A number that operands are made of.
pub trait Element: sealed::Sealed {
    /// Types of operands whose elements are stored so.
    const TYPES: &'static [OperandType];
}

macro_rules! elements {
    ($($element:ty: $($ty:ident)|+;)*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const TYPES: &'static [OperandType] = &[$(OperandType::$ty),+];
        }
    )*};
}

elements! {
    f32: Float32 | TensorFloat32;
    i32: Int32 | TensorInt32;
    u32: Uint32;
    i16: TensorQuant16Symm;
    u16: Float16 | TensorFloat16 | TensorQuant16Asymm;
    i8: TensorQuant8AsymmSigned | TensorQuant8Symm | TensorQuant8SymmPerChannel;
    u8: Bool | TensorBool8 | TensorQuant8Asymm;
}

/// Bytes that begin where any element may.
#[derive(Debug, Clone)]
struct Bytes {
    words: Arc<Vec<u64>>,
    len: usize,
}

impl Bytes {
    /// So many bytes, filled by `fill`.
    fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut words = vec![0_u64; len.div_ceil(size_of::<u64>())];
        fill(&mut cast_slice_mut(&mut words)[..len])?;
        Ok(Bytes { words: Arc::new(words), len })
    }

    fn as_slice(&self) -> &[u8] {
        &cast_slice(&self.words)[..self.len]
    }
}

/// The value of an operand, as far as it is known.
#[derive(Debug, Clone)]
struct Value {
    dimensions: Dimensions,
    bytes: Bytes,
}

/// The values of the operands of a model's main graph.
///
/// ```
/// use std::sync::Arc;
/// use burst_hal::*;
///
/// let mut builder = ModelBuilder::new();
/// let x = builder.input(OperandType::TensorFloat32, &[2, 2]);
/// let row = builder.constant_f32(&[2], &[10.0, 20.0]);
/// let none = builder.scalar_i32(0);
/// let y = builder.result_of(OperationType::Add, &[x, row, none], OutputSpec::f32(&[2, 2]));
/// builder.output(y);
/// let constants = GraphValues::new(&builder.build()?)?;
///
/// // One execution.
/// let pool: Pool = Arc::new(HeapMemory::new([1f32, 2.0, 3.0, 4.0].map(f32::to_ne_bytes).concat()));
/// let argument = RequestArgument {
///     location: DataLocation { pool_index: 0, offset: 0, length: 16 },
///     ..RequestArgument::default()
/// };
/// let pools = vec![RequestPool::Memory(Pool::clone(&pool))];
/// let request = Request { inputs: vec![argument.clone()], outputs: vec![argument], pools };
/// let mut values = constants.clone();
/// values.read_inputs(&request)?;
/// let (a, b) = (values.tensor::<f32>(x)?, values.tensor::<f32>(row)?);
/// assert_eq!((a.dimensions(), b.values()), (&[2, 2][..], &[10.0, 20.0][..]));
/// assert_eq!(values.scalar::<i32>(none)?, 0);
/// let (dimensions, pairs) = a.broadcast(&b)?;
/// values.put(y, &dimensions, pairs.map(|(a, b)| a + b))?;
/// assert_eq!(values.write_outputs(&request)?.status, ErrorStatus::None);
/// let mut bytes = [0; 16];
/// pool.read(0, &mut bytes)?;
/// assert_eq!(bytes.as_slice(), [11f32, 22.0, 13.0, 24.0].map(f32::to_ne_bytes).concat());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GraphValues {
    graph: Arc<Subgraph>,
    values: Vec<Option<Value>>,
    /// Bytes of inputs and results so far.
    made: u64,
}

impl GraphValues {
    /// The constants of a legal model's main graph, copied out of their pools once.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a constant outside of its memory, which a legal model does not have;
    /// GENERAL_FAILURE for a pool that cannot be read.
    pub fn new(model: &Model) -> Result<Self, Failure> {
        let constant = |operand: &Operand| -> Result<Option<Value>, Failure> {
            let bytes = constant(model, operand)?;
            Ok(bytes.map(|bytes| Value { dimensions: operand.dimensions.clone(), bytes }))
        };
        let values = model.main.operands.iter().map(constant).collect::<Result<_, Failure>>()?;
        Ok(GraphValues { graph: Arc::new(model.main.clone()), values, made: 0 })
    }

    /// Copies the inputs of an execution. One that is left out has no value.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another number of inputs than the graph's, one that is no memory (a token of a
    /// buffer), or one whose length is not that of its dimensions; RESOURCE_EXHAUSTED_PERSISTENT above
    /// [`MAX_MADE_BYTES`]; GENERAL_FAILURE for a pool that cannot be read.
    pub fn read_inputs(&mut self, request: &Request) -> Result<(), Failure> {
        let graph = Arc::clone(&self.graph);
        same_count(&request.inputs, &graph.input_indexes, "inputs")?;
        for (argument, index) in request.inputs.iter().zip(&graph.input_indexes) {
            if argument.has_no_value {
                continue;
            }
            let operand = operand(&graph, *index)?;
            let dimensions = match argument.dimensions.is_empty() {
                true => &operand.dimensions,
                false => &argument.dimensions,
            };
            let (pool, range) = range(request, argument)?;
            let length = self.room_for(operand.ty, dimensions)?;
            if range.end - range.start != length as u64 {
                let (found, name) = (range.end - range.start, operand.ty.name());
                return Err(Failure::invalid(format!(
                    "operand {index}: {found} bytes for a {name} of {length}"
                )));
            }
            let read = |bytes: &mut [u8]| pool.read(range.start, bytes);
            let bytes = Bytes::filled(length, read).map_err(Failure::general)?;
            self.set(*index, Value { dimensions: dimensions.clone(), bytes })?;
        }
        Ok(())
    }

    /// The value of an operand.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the operand has no value (yet), or is not stored as `T`.
    pub fn tensor<T: Element>(&self, index: u32) -> Result<TensorView<T>, Failure> {
        let operand = operand(&self.graph, index)?;
        is_stored_as::<T>(index, operand)?;
        let value = self.values.get(index as usize).and_then(Option::as_ref);
        let Value { dimensions, bytes } =
            value.ok_or_else(|| Failure::invalid(format!("operand {index} has no value")))?;
        Ok(TensorView {
            dimensions: dimensions.clone(),
            scale: operand.scale,
            zero_point: operand.zero_point,
            bytes: bytes.clone(),
            element: PhantomData,
        })
    }

    /// The value of a scalar operand.
    ///
    /// # Errors
    /// As [`GraphValues::tensor`]; INVALID_ARGUMENT for an operand that has not one element.
    pub fn scalar<T: Element>(&self, index: u32) -> Result<T, Failure> {
        match self.tensor::<T>(index)?.values() {
            [value] => Ok(*value),
            values => {
                let count = values.len();
                Err(Failure::invalid(format!("operand {index} has {count} elements, wanted one")))
            }
        }
    }

    /// Sets a result: `values` in row-major order, as many as the dimensions say.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the model declares other dimensions for the operand; GENERAL_FAILURE for another
    /// number of values; RESOURCE_EXHAUSTED_PERSISTENT above [`MAX_MADE_BYTES`].
    pub fn put<T: Element>(
        &mut self,
        index: u32,
        dimensions: &[u32],
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), Failure> {
        let graph = Arc::clone(&self.graph);
        let operand = operand(&graph, index)?;
        is_stored_as::<T>(index, operand)?;
        if !agree(&operand.dimensions, dimensions) {
            let declared = &operand.dimensions;
            return Err(Failure::invalid(format!(
                "operand {index} turns out as {dimensions:?}, declared as {declared:?}"
            )));
        }
        let length = self.room_for(operand.ty, dimensions)?;
        let bytes = Bytes::filled(length, |bytes| {
            let places = cast_slice_mut::<u8, T>(bytes);
            let (count, mut values) = (places.len(), values.into_iter());
            let put =
                places.iter_mut().zip(&mut values).map(|(place, value)| *place = value).count();
            match put == count && values.next().is_none() {
                true => Ok(()),
                false => Err(Failure::general(format!("operand {index} has {count} elements"))),
            }
        })?;
        self.set(index, Value { dimensions: Dimensions::from_slice(dimensions), bytes })
    }

    /// Writes the outputs of an execution, or none where one of them is too short; either way the result
    /// says what shapes they have.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another number of outputs than the graph's, or one that is no memory;
    /// GENERAL_FAILURE for one that no operation has put, or a pool that cannot be written.
    pub fn write_outputs(&self, request: &Request) -> Result<ExecutionResult, Failure> {
        let indexes = &self.graph.output_indexes;
        same_count(&request.outputs, indexes, "outputs")?;
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let mut writes = Vec::with_capacity(indexes.len());
        for (argument, index) in request.outputs.iter().zip(indexes) {
            let value = self.values.get(*index as usize).and_then(Option::as_ref);
            let value = value
                .ok_or_else(|| Failure::general(format!("operand {index} was not computed")))?;
            let (dimensions, mut is_sufficient) = (value.dimensions.clone(), true);
            if !argument.has_no_value {
                let (pool, range) = range(request, argument)?;
                is_sufficient = value.bytes.len as u64 <= range.end - range.start;
                writes.push((pool, range.start, value.bytes.as_slice()));
            }
            result.output_shapes.push(OutputShape { dimensions, is_sufficient });
        }
        if !result.output_shapes.iter().all(|shape| shape.is_sufficient) {
            result.status = ErrorStatus::OutputInsufficientSize;
            return Ok(result);
        }
        for (pool, at, bytes) in writes.iter().filter(|(_, _, bytes)| !bytes.is_empty()) {
            pool.write(*at, bytes).map_err(Failure::general)?;
        }
        Ok(result)
    }

    /// Bytes of a value that is to be made, counted among those of this execution.
    fn room_for(&mut self, ty: OperandType, dimensions: &[u32]) -> Result<usize, Failure> {
        let length = ty.byte_length(dimensions);
        let made = length.and_then(|length| self.made.checked_add(length));
        let fits = made.filter(|made| *made <= MAX_MADE_BYTES);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let (Some(made), Some(length)) = (fits, length) else {
            let status = ErrorStatus::ResourceExhaustedPersistent;
            let cause = format!("values of more than {MAX_MADE_BYTES} bytes in one execution");
            return Err(Failure::new(status, cause));
        };
        self.made = made;
        Ok(length)
    }

    fn set(&mut self, index: u32, value: Value) -> Result<(), Failure> {
        let place = self.values.get_mut(index as usize).ok_or_else(|| no_operand(index))?;
        *place = Some(value);
        Ok(())
    }
}

/// The value of an operand: its shape, its quantization, and its elements in row-major order.
#[derive(Debug, Clone)]
pub struct TensorView<T> {
    dimensions: Dimensions,
    scale: f32,
    zero_point: i32,
    bytes: Bytes,
    element: PhantomData<T>,
}

impl<T: Element> TensorView<T> {
    /// Sizes along each axis; none for a scalar.
    #[must_use]
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// Real value of one step of a quantized type; 0 where there is none.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Stored value that stands for real 0.
    #[must_use]
    pub fn zero_point(&self) -> i32 {
        self.zero_point
    }

    /// The elements.
    #[must_use]
    pub fn values(&self) -> &[T] {
        cast_slice(self.bytes.as_slice())
    }

    /// The shape that two tensors broadcast to, and the pairs of elements that meet there, in row-major
    /// order. Sizes are compared from the last axis on, and go together where they are equal or one of
    /// them is 1; an axis that only one tensor has goes together with anything.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the shapes do not go together.
    pub fn broadcast<'a, U: Element>(
        &'a self,
        other: &'a TensorView<U>,
    ) -> Result<(Dimensions, impl Iterator<Item = (T, U)> + 'a), Failure> {
        let (a, b) = (&*self.dimensions, &*other.dimensions);
        let to = broadcast_shape(a, b)
            .ok_or_else(|| Failure::invalid(format!("shapes {a:?} and {b:?} do not broadcast")))?;
        let count = to.iter().map(|size| *size as usize).fold(1, usize::saturating_mul);
        let shape = to.clone();
        let pairs = (0..count).map(move |at| {
            (self.values()[place(at, &shape, a)], other.values()[place(at, &shape, b)])
        });
        Ok((to, pairs))
    }
}

/// The shape that two shapes broadcast to.
fn broadcast_shape(a: &[u32], b: &[u32]) -> Option<Dimensions> {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let mut shape = Dimensions::from_slice(long);
    for (size, other) in shape.iter_mut().rev().zip(short.iter().rev()) {
        // 0 goes together with 1 only, and gives 0.
        *size = match (*size, *other) {
            (1, other) => other,
            (size, other) if other == 1 || other == size => size,
            _ => return None,
        };
    }
    Some(shape)
}

/// Where the element at `at` of a tensor of shape `to` comes from, in one of shape `from` that broadcasts to it.
fn place(mut at: usize, to: &[u32], from: &[u32]) -> usize {
    let (mut place, mut step) = (0, 1);
    for (size, own) in to.iter().rev().zip(from.iter().rev()) {
        let (size, own) = (*size as usize, *own as usize);
        if own > 1 {
            place += at % size * step;
        }
        (at, step) = (at / size, step * own);
    }
    place
}

/// The bytes of a constant; `None` for what is no constant.
fn constant(model: &Model, operand: &Operand) -> Result<Option<Bytes>, Failure> {
    let location = operand.location;
    let outside = || Failure::invalid("a constant outside of its memory");
    let length = location.length as usize;
    let bytes = match operand.lifetime {
        OperandLifeTime::ConstantCopy => Bytes::filled(length, |bytes| {
            let stored = model.operand_values.get(location.offset as usize..);
            let stored = stored.and_then(|stored| stored.get(..length)).ok_or_else(outside)?;
            bytes.copy_from_slice(stored);
            Ok::<_, Failure>(())
        })?,
        OperandLifeTime::ConstantReference => {
            let pool = model.pools.get(location.pool_index as usize).ok_or_else(outside)?;
            location.range_in(pool.len()).ok_or_else(outside)?;
            let read = |bytes: &mut [u8]| pool.read(location.offset.into(), bytes);
            Bytes::filled(length, read).map_err(Failure::general)?
        }
        _ => return Ok(None),
    };
    match operand.ty.byte_length(&operand.dimensions).is_none_or(|wanted| wanted == length as u64) {
        true => Ok(Some(bytes)),
        false => Err(Failure::invalid("a constant of another length than its dimensions")),
    }
}

/// Whether dimensions are what a model declares, as far as it does.
fn agree(declared: &[u32], found: &[u32]) -> bool {
    let mut sizes = declared.iter().zip(found);
    declared.is_empty()
        || (declared.len() == found.len() && sizes.all(|(size, found)| *size == 0 || size == found))
}

fn is_stored_as<T: Element>(index: u32, operand: &Operand) -> Result<(), Failure> {
    match T::TYPES.contains(&operand.ty) {
        true => Ok(()),
        false => {
            let (name, asked) = (operand.ty.name(), std::any::type_name::<T>());
            Err(Failure::invalid(format!("operand {index} is {name}, not stored as {asked}")))
        }
    }
}

/// The pool and the bytes of an argument.
fn range<'a>(
    request: &'a Request,
    argument: &RequestArgument,
) -> Result<(&'a Pool, Range<u64>), Failure> {
    let location = argument.location;
    match request.pools.get(location.pool_index as usize) {
        Some(RequestPool::Memory(pool)) => {
            let range = location.range_in(pool.len());
            Ok((pool, range.ok_or_else(|| Failure::invalid("an argument outside of its pool"))?))
        }
        _ => Err(Failure::invalid("an argument that lies in no memory")),
    }
}

fn same_count(arguments: &[RequestArgument], of: &[u32], what: &str) -> Result<(), Failure> {
    match arguments.len() == of.len() {
        true => Ok(()),
        false => {
            let (found, expected) = (arguments.len(), of.len());
            Err(Failure::invalid(format!("{found} {what}, where the graph has {expected}")))
        }
    }
}

fn operand(graph: &Subgraph, index: u32) -> Result<&Operand, Failure> {
    graph.operands.get(index as usize).ok_or_else(|| no_operand(index))
}

fn no_operand(index: u32) -> Failure {
    Failure::invalid(format!("the graph has no operand {index}"))
}

#[cfg(test)]
#[path = "graph_values_tests.rs"]
mod tests;
