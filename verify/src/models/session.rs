//! A prepared model with the memory of its inputs, outputs and states.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    Burst, DataLocation, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, Model,
    Operand, OperandType, Pool, PrepareOptions, PreparedModel, Request, RequestArgument,
    RequestPool, TimePoint, Timing,
};

use crate::arguments::MemoryMaker;
use crate::case::{Mode, Target};

/// Inputs and outputs begin at multiples of this: cache lines.
const ALIGNMENT: usize = 64;
/// Room for an output of which the model does not know the size, at first.
const UNKNOWN_BYTES: usize = 4096;
/// How often outputs turn out to need more room before it is given up. An execution tells the sizes
/// of all outputs that it came to, and one that it did not come to waits for the next.
const MAX_ATTEMPTS: usize = 8;
/// Most room for all inputs, or for all outputs: sizes can come from a file.
const MAX_POOL_BYTES: usize = 1 << 30;
/// Far above any execution; only turns a hang into an error.
const DEADLINE: Duration = Duration::from_secs(300);

/// A model, and which of its inputs and outputs are states.
#[derive(Debug, Clone)]
pub struct StatefulModel {
    /// The model.
    pub model: Model,
    /// Positions of each state among the inputs and among the outputs.
    pub states: Vec<(usize, usize)>,
}

impl StatefulModel {
    fn operands<'m>(&'m self, indexes: &'m [u32]) -> impl Iterator<Item = &'m Operand> {
        let operands = &self.model.main.operands;
        indexes.iter().filter_map(|index| operands.get(usize::try_from(*index).ok()?))
    }

    /// The operands of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Operand> {
        self.operands(&self.model.main.input_indexes)
    }

    /// The operands of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Operand> {
        self.operands(&self.model.main.output_indexes)
    }
}

/// An output of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTensor {
    /// Its type.
    pub ty: OperandType,
    /// Its shape, as the execution told it; the model's where it told none.
    pub dimensions: Dimensions,
    /// Its elements.
    pub bytes: Vec<u8>,
}

/// A model on a device, executed as often as one likes. States go from one execution to the next.
pub struct Session {
    executor: Executor,
    states: Vec<(usize, usize)>,
    inputs: Vec<Place>,
    outputs: Vec<Place>,
    input_pool: Pool,
    output_pool: Pool,
    result: ExecutionResult,
}

enum Executor {
    Sync(Arc<dyn PreparedModel>),
    Burst(Box<dyn Burst>),
}

/// Where a tensor lies in its pool.
#[derive(Debug, Clone)]
struct Place {
    ty: OperandType,
    dimensions: Dimensions,
    zero_point: i32,
    offset: usize,
    length: usize,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The device does not take the model.
    #[error("the device does not take the model: {0}")]
    Prepare(burst_hal::Failure),
    /// There is no burst.
    #[error("no burst on the prepared model: {0}")]
    Burst(burst_hal::Failure),
    /// There is no memory.
    #[error("no memory of {bytes} bytes: {cause}")]
    Memory {
        /// How much was asked for.
        bytes: usize,
        /// Why.
        cause: burst_hal::Failure,
    },
    /// Memory cannot be read or written.
    #[error("the request's memory: {0}")]
    Access(#[from] burst_hal::MemoryError),
    /// The shape of an input is not in the model.
    #[error("input {index} has the open shape {dimensions:?}")]
    OpenInput {
        /// Which.
        index: usize,
        /// What is known of it.
        dimensions: Dimensions,
    },
    /// An input has another size than the model says.
    #[error("input {index} has {found} bytes, the model takes {wanted}")]
    InputSize {
        /// Which.
        index: usize,
        /// What was given.
        found: usize,
        /// What it takes.
        wanted: usize,
    },
    /// Inputs or outputs need more room than they can get.
    #[error("the tensors need {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// How much.
        bytes: usize,
        /// How much there can be.
        limit: usize,
    },
    /// The execution failed.
    #[error("the execution ended with {0}")]
    Status(ErrorStatus),
}

impl Session {
    /// Prepares the model. States are zero.
    ///
    /// # Errors
    /// The device refuses the model, or there is no memory.
    pub fn open(
        target: Target<'_>,
        model: &StatefulModel,
        mode: Mode,
    ) -> Result<Self, SessionError> {
        let inputs = model.inputs().enumerate().map(|(index, operand)| {
            let place = Place::of(operand, None);
            place.ok_or_else(|| SessionError::OpenInput {
                index,
                dimensions: operand.dimensions.clone(),
            })
        });
        let mut inputs: Vec<Place> = inputs.collect::<Result<_, _>>()?;
        let mut outputs: Vec<Place> =
            model.outputs().filter_map(|operand| Place::of(operand, Some(UNKNOWN_BYTES))).collect();
        let input_pool = make(target.memory, lay_out(&mut inputs))?;
        let output_pool = make(target.memory, lay_out(&mut outputs))?;
        let prepared = target
            .device
            .prepare_model(&model.model, &PrepareOptions::default())
            .map_err(SessionError::Prepare)?;
        let executor = match mode {
            Mode::Sync => Executor::Sync(prepared),
            Mode::Burst => Executor::Burst(prepared.open_burst().map_err(SessionError::Burst)?),
        };
        let states = model.states.clone();
        let result = ExecutionResult::of(ErrorStatus::None);
        let mut session =
            Session { executor, states, inputs, outputs, input_pool, output_pool, result };
        session.reset()?;
        Ok(session)
    }

    /// Puts every state back to zero.
    ///
    /// # Errors
    /// Their memory cannot be written.
    pub fn reset(&mut self) -> Result<(), SessionError> {
        for (input, _) in &self.states {
            let place = &self.inputs[*input];
            self.input_pool.write(at(place.offset), &place.zeros())?;
        }
        Ok(())
    }

    /// The states as they are now.
    ///
    /// # Errors
    /// Their memory cannot be read.
    pub fn states(&self) -> Result<Vec<OutputTensor>, SessionError> {
        let state = |(input, _): &(usize, usize)| {
            let place = &self.inputs[*input];
            let mut bytes = vec![0; place.length];
            self.input_pool.read(at(place.offset), &mut bytes)?;
            Ok(OutputTensor { ty: place.ty, dimensions: place.dimensions.clone(), bytes })
        };
        self.states.iter().map(state).collect()
    }

    /// Takes as many values as there are states.
    pub(super) fn set_states<'s>(
        &mut self,
        values: &mut impl Iterator<Item = &'s Vec<u8>>,
    ) -> Result<(), SessionError> {
        let inputs: Vec<usize> = self.states.iter().map(|(input, _)| *input).collect();
        inputs.into_iter().zip(values).try_for_each(|(input, value)| self.write(input, value))
    }

    /// Writes an input: all but the states before every execution.
    ///
    /// # Errors
    /// It has another size than the model says, or its memory cannot be written.
    pub fn write(&mut self, index: usize, bytes: &[u8]) -> Result<(), SessionError> {
        let wanted = self.inputs.get(index).map_or(0, |place| place.length);
        if wanted != bytes.len() {
            return Err(SessionError::InputSize { index, found: bytes.len(), wanted });
        }
        Ok(self.input_pool.write(at(self.inputs[index].offset), bytes)?)
    }

    /// Writes the inputs that are no states, and executes.
    ///
    /// # Errors
    /// As [`Session::write`] and [`Session::execute`].
    pub fn run(
        &mut self,
        inputs: &[Vec<u8>],
        memory: &dyn MemoryMaker,
    ) -> Result<Vec<OutputTensor>, SessionError> {
        for (index, input) in inputs.iter().enumerate() {
            self.write(index, input)?;
        }
        self.execute(memory)
    }

    /// Executes and returns every output, those of the states too, which are the inputs of the next
    /// execution.
    ///
    /// # Errors
    /// The execution failed, or outputs of unknown sizes need more room than they can get.
    pub fn execute(&mut self, memory: &dyn MemoryMaker) -> Result<Vec<OutputTensor>, SessionError> {
        for _ in 0..MAX_ATTEMPTS {
            self.run_once();
            let status = self.result.status;
            match status {
                ErrorStatus::None => return self.take_outputs(),
                ErrorStatus::OutputInsufficientSize if self.make_room(memory)? => {}
                _ => return Err(SessionError::Status(status)),
            }
        }
        Err(SessionError::Status(ErrorStatus::OutputInsufficientSize))
    }

    /// How long the last execution took, as the driver measured it.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.result.timing
    }

    fn run_once(&mut self) {
        let arguments = |pool: u32, places: &[Place]| -> Vec<RequestArgument> {
            places.iter().map(|place| place.argument(pool)).collect()
        };
        let request = Request {
            inputs: arguments(0, &self.inputs),
            outputs: arguments(1, &self.outputs),
            pools: vec![
                RequestPool::Memory(Arc::clone(&self.input_pool)),
                RequestPool::Memory(Arc::clone(&self.output_pool)),
            ],
        };
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: Some(TimePoint::after(DEADLINE)),
            loop_timeout: None,
        };
        match &mut self.executor {
            Executor::Sync(model) => {
                self.result = model.execute_synchronously(&request, &options);
            }
            Executor::Burst(burst) => burst.execute(&request, &options, &mut self.result),
        }
    }

    /// Makes as much room as the last execution asked for; `false` where it asked for none.
    fn make_room(&mut self, memory: &dyn MemoryMaker) -> Result<bool, SessionError> {
        let mut has_grown = false;
        for (place, shape) in self.outputs.iter_mut().zip(&self.result.output_shapes) {
            let needed = byte_length(place.ty, &shape.dimensions).unwrap_or(0);
            if needed > place.length {
                place.length = needed;
                has_grown = true;
            }
        }
        let bytes = lay_out(&mut self.outputs);
        if has_grown {
            self.output_pool = make(memory, bytes)?;
        }
        Ok(has_grown)
    }

    fn take_outputs(&mut self) -> Result<Vec<OutputTensor>, SessionError> {
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (index, place) in self.outputs.iter().enumerate() {
            let shape = self.result.output_shapes.get(index);
            let dimensions = shape.map_or(&place.dimensions, |shape| &shape.dimensions).clone();
            let length = byte_length(place.ty, &dimensions).unwrap_or(0).min(place.length);
            let mut bytes = vec![0; length];
            self.output_pool.read(at(place.offset), &mut bytes)?;
            outputs.push(OutputTensor { ty: place.ty, dimensions, bytes });
        }
        for (input, output) in self.states.clone() {
            let after = outputs.get(output).map(|tensor| tensor.bytes.as_slice());
            self.write(input, after.unwrap_or_default())?;
        }
        Ok(outputs)
    }
}

impl Place {
    /// `None` for an operand of unknown size for which there is no `otherwise`.
    fn of(operand: &Operand, otherwise: Option<usize>) -> Option<Self> {
        let length = byte_length(operand.ty, &operand.dimensions).or(otherwise)?;
        Some(Place {
            ty: operand.ty,
            dimensions: operand.dimensions.clone(),
            zero_point: operand.zero_point,
            offset: 0,
            length,
        })
    }

    /// Elements that stand for real 0. Other types than these have no zero point.
    fn zeros(&self) -> Vec<u8> {
        let [low, high, ..] = self.zero_point.to_le_bytes();
        match self.ty {
            OperandType::TensorQuant16Asymm => [low, high].repeat(self.length / 2),
            OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
                vec![low; self.length]
            }
            _ => vec![0; self.length],
        }
    }

    fn argument(&self, pool_index: u32) -> RequestArgument {
        // Pools beyond 4 GiB cannot be had, so that these never saturate.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        RequestArgument {
            has_no_value: false,
            location: DataLocation {
                pool_index,
                offset: number(self.offset),
                length: number(self.length),
            },
            dimensions: Dimensions::new(),
        }
    }
}

/// Bytes of a tensor, where its whole shape is known.
fn byte_length(ty: OperandType, dimensions: &Dimensions) -> Option<usize> {
    if (dimensions.is_empty() && ty.is_tensor()) || dimensions.contains(&0) {
        return None;
    }
    ty.byte_length(dimensions).and_then(|length| usize::try_from(length).ok())
}

/// Puts tensors one behind the other; how many bytes they take.
fn lay_out(places: &mut [Place]) -> usize {
    let mut end = 0usize;
    for place in places {
        place.offset = end;
        let next = end.saturating_add(place.length).checked_next_multiple_of(ALIGNMENT);
        end = next.unwrap_or(usize::MAX);
    }
    end.max(ALIGNMENT)
}

fn make(memory: &dyn MemoryMaker, bytes: usize) -> Result<Pool, SessionError> {
    if bytes > MAX_POOL_BYTES {
        return Err(SessionError::TooLarge { bytes, limit: MAX_POOL_BYTES });
    }
    memory.make(bytes).map_err(|cause| SessionError::Memory { bytes, cause })
}

fn at(offset: usize) -> u64 {
    offset as u64
}
