//! For authors of drivers: which buffers a device has, what each of them is for, and whether it has a
//! value; and the checks of everything that a caller may do with them.
//!
//! The tracker knows nothing of where the bytes lie: `S` is what the driver keeps for a buffer, such as
//! a handle of its device's memory. A driver whose buffers are vectors:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_hal::validate::RequestRules;
//! use burst_hal::*;
//!
//! /// Copies one tensor to another.
//! struct Copier(BufferTracker<Vec<u8>>);
//! struct CopierModel(BufferTracker<Vec<u8>>, RequestRules);
//! struct CopierBuffer(BufferHandle<Vec<u8>>);
//!
//! impl Device for Copier {
//!     fn name(&self) -> &str { "copier" }
//!     fn version_string(&self) -> &str { "1" }
//!     fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
//!         Ok(vec![true; model.main.operations.len()])
//!     }
//!     fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
//!         Ok(Arc::new(CopierModel(self.0.clone(), RequestRules::new(model)?)))
//!     }
//!     fn allocate(&self, request: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
//!         // Roles are checked here. Buffers of unknown size are not made.
//!         let roles = BufferRoles::new(request)?;
//!         let size = roles.operand().bytes().ok_or(Failure::general("its size is not known"))?;
//!         let bytes = vec![0; size as usize];
//!         Ok(Arc::new(CopierBuffer(self.0.add(roles, bytes))))
//!     }
//! }
//!
//! impl Buffer for CopierBuffer {
//!     fn token(&self) -> u32 { self.0.token() }
//!     fn copy_to(&self, destination: &Pool) -> Result<(), Failure> {
//!         let bytes = {
//!             let state = self.0.lock();
//!             self.0.check_copy_to(&state, destination.len())?;
//!             state.storage.clone()
//!         };
//!         destination.write(0, &bytes).map_err(Failure::general) // it may take as long as it likes
//!     }
//!     fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), Failure> {
//!         self.0.lock().clear(); // whatever fails from here on leaves it without a value
//!         let dimensions = self.0.check_copy_from(source.len(), dimensions)?;
//!         let mut bytes = vec![0; source.len() as usize];
//!         source.read(0, &mut bytes).map_err(Failure::general)?;
//!         let mut state = self.0.lock();
//!         state.storage = bytes;
//!         state.set(dimensions);
//!         Ok(())
//!     }
//! }
//!
//! impl PreparedModel for CopierModel {
//!     fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
//!         // Unknown tokens, roles that were not asked for, buffers without a value: all refused here.
//!         let buffers = match self.0.find(self, request) {
//!             Ok(buffers) => buffers,
//!             Err(refused) => return ExecutionResult::of(refused.status),
//!         };
//!         let (from, to) = (buffers.of(&request.inputs[0]), buffers.of(&request.outputs[0]));
//!         let (Some(from), Some(to)) = (from, to) else {
//!             return ExecutionResult::of(ErrorStatus::GeneralFailure); // only buffers, to be short
//!         };
//!         let bytes = from.lock().storage.clone();
//!         let mut state = to.lock();
//!         state.storage = bytes;
//!         state.set(to.operand().dimensions.clone());
//!         ExecutionResult::of(ErrorStatus::None)
//!     }
//!     fn request_rules(&self) -> Option<&RequestRules> { Some(&self.1) }
//! }
//!
//! let mut builder = ModelBuilder::new();
//! let x = builder.input(OperandType::TensorFloat32, &[2]);
//! let y = builder.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
//! builder.output(y);
//! let device = Copier(BufferTracker::default());
//! let model = device.prepare_model(&builder.build()?, &PrepareOptions::default())?;
//! let role = BufferRole { model: 0, position: 0, frequency: 1.0 };
//! let models = vec![Arc::clone(&model)];
//! let as_input = BufferRequest { models: models.clone(), inputs: vec![role], ..Default::default() };
//! let as_output = BufferRequest { models, outputs: vec![role], ..Default::default() };
//! let from = device.allocate(&as_input, &Caller::default())?;
//! let to = device.allocate(&as_output, &Caller::default())?;
//!
//! let argument = |pool_index| RequestArgument {
//!     location: DataLocation { pool_index, offset: 0, length: 0 },
//!     ..RequestArgument::default()
//! };
//! let request = Request {
//!     inputs: vec![argument(0)],
//!     outputs: vec![argument(1)],
//!     pools: vec![RequestPool::Token(from.token()), RequestPool::Token(to.token())],
//! };
//! let execute = || model.execute_synchronously(&request, &ExecutionOptions::default()).status;
//! assert_eq!(execute(), ErrorStatus::GeneralFailure, "the input has no value yet");
//! let value: Pool = Arc::new(HeapMemory::new(vec![7; 8]));
//! from.copy_from(&value, &[])?;
//! assert_eq!(execute(), ErrorStatus::None);
//! let result = Arc::new(HeapMemory::new(vec![0; 8]));
//! to.copy_to(&(result.clone() as Pool))?;
//! assert_eq!(result.to_vec(), [7; 8]);
//! drop(from);
//! assert_eq!(execute(), ErrorStatus::InvalidArgument, "there is no such buffer any more");
//! # Ok::<(), Failure>(())
//! ```

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::validate::{
    BufferOperand, Direction, RequestRules, combine_dimensions, computed_dimensions,
    validate_buffer,
};
use crate::{
    BufferRequest, Dimensions, Failure, PreparedModel, Request, RequestArgument, RequestPool,
};

/// What a buffer is for: its value, and the arguments that it may be used as.
#[derive(Debug)]
pub struct BufferRoles {
    operand: BufferOperand,
    roles: Box<[Role]>,
}

/// An argument of a model.
struct Role {
    /// Compared by address, which no other model gets as long as this is here.
    model: Weak<dyn PreparedModel>,
    direction: Direction,
    position: u32,
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.direction, self.position)
    }
}

impl BufferRoles {
    /// Checks what a device is asked for.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for roles that are not legal; GENERAL_FAILURE where a model does not say what its
    /// arguments are ([`PreparedModel::request_rules`]).
    pub fn new(request: &BufferRequest) -> Result<Self, Failure> {
        let rules = |model: &Arc<dyn PreparedModel>| model.request_rules().is_some();
        if !request.models.iter().all(rules) {
            return Err(Failure::general("a model does not say what its arguments are"));
        }
        let models: Vec<&RequestRules> =
            request.models.iter().filter_map(|model| model.request_rules()).collect();
        let BufferRequest { dimensions, inputs, outputs, .. } = request;
        let operand = validate_buffer(dimensions, &models, inputs, outputs)?;
        let lists = [(Direction::Input, inputs), (Direction::Output, outputs)];
        let roles = lists.into_iter().flat_map(|(direction, roles)| {
            roles.iter().filter_map(move |role| {
                let model = request.models.get(usize::try_from(role.model).ok()?)?;
                Some(Role { model: Arc::downgrade(model), direction, position: role.position })
            })
        });
        Ok(BufferRoles { operand, roles: roles.collect() })
    }

    /// What its value is.
    #[must_use]
    pub fn operand(&self) -> &BufferOperand {
        &self.operand
    }

    /// Bytes that the list takes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of_val(&*self.roles)
    }

    fn contain(&self, model: &dyn PreparedModel, direction: Direction, position: u32) -> bool {
        let address = |model: *const dyn PreparedModel| model.cast::<()>();
        let wanted = address(std::ptr::from_ref(model));
        self.roles.iter().any(|role| {
            role.direction == direction
                && role.position == position
                && address(role.model.as_ptr()) == wanted
        })
    }
}

/// The buffers of a device, by token. Copies share them.
pub struct BufferTracker<S>(Arc<Mutex<Table<S>>>);

struct Table<S> {
    last: u32,
    buffers: HashMap<u32, Arc<TrackedBuffer<S>>>,
}

impl<S> Clone for BufferTracker<S> {
    fn clone(&self) -> Self {
        BufferTracker(Arc::clone(&self.0))
    }
}

impl<S> Default for BufferTracker<S> {
    fn default() -> Self {
        BufferTracker(Arc::new(Mutex::new(Table { last: 0, buffers: HashMap::new() })))
    }
}

impl<S> fmt::Debug for BufferTracker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferTracker({} buffers)", self.count())
    }
}

impl<S> BufferTracker<S> {
    /// How many there are whose handles live.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.0).buffers.len()
    }

    /// One more buffer, without a value. Requests find it by its token until the handle is dropped.
    pub fn add(&self, roles: BufferRoles, storage: S) -> BufferHandle<S> {
        let mut table = lock(&self.0);
        let token = table.next_token();
        let state = Mutex::new(BufferState { storage, value: None });
        let buffer = Arc::new(TrackedBuffer { token, roles, state });
        table.buffers.insert(token, Arc::clone(&buffer));
        BufferHandle { tracker: self.clone(), buffer }
    }

    /// The buffers that a request for this model names.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a token that no buffer has, an argument that its buffer was not asked for, a
    /// part of a buffer, dimensions that do not go with it, and for a buffer that the request writes and
    /// uses a second time; GENERAL_FAILURE for an input without a value.
    pub fn find(
        &self,
        model: &dyn PreparedModel,
        request: &Request,
    ) -> Result<RequestBuffers<S>, Failure> {
        if request.pools.iter().all(|pool| matches!(pool, RequestPool::Memory(_))) {
            return Ok(RequestBuffers(Vec::new()));
        }
        let buffers = RequestBuffers(self.named(request)?);
        let mut uses = Vec::new();
        let mut without_value = None;
        let arguments =
            [(Direction::Input, &request.inputs), (Direction::Output, &request.outputs)];
        for (direction, arguments) in arguments {
            for (position, argument) in (0..).zip(arguments) {
                let Some(buffer) = buffers.of(argument) else { continue };
                uses.push((buffer.token, direction == Direction::Output));
                let wrong = |cause: &dyn fmt::Display| {
                    Failure::invalid(format!("{direction} {position} of the request: {cause}"))
                };
                if !buffer.roles.contain(model, direction, position) {
                    return Err(wrong(&format_args!(
                        "buffer {} was not allocated for it",
                        buffer.token
                    )));
                }
                if !argument.location.is_whole_pool() {
                    return Err(wrong(&"a part of a driver's buffer"));
                }
                let value = buffer.lock().value.clone();
                let known = match (direction, &value) {
                    (Direction::Input, Some(value)) => value,
                    _ => &buffer.operand().dimensions,
                };
                combine_dimensions(known, &argument.dimensions).map_err(|fault| wrong(&fault))?;
                if direction == Direction::Input && value.is_none() {
                    without_value = Some(position);
                }
            }
        }
        uses.sort_unstable();
        if let Some(twice) = uses.windows(2).find(|two| two[0].0 == two[1].0 && two[1].1) {
            let token = twice[0].0;
            let cause = format!("the request writes buffer {token} and uses it a second time");
            return Err(Failure::invalid(cause));
        }
        match without_value {
            Some(position) => Err(no_value(&format!("input {position} of the request"))),
            None => Ok(buffers),
        }
    }

    /// The buffer of each pool that is one.
    fn named(&self, request: &Request) -> Result<Vec<Option<Arc<TrackedBuffer<S>>>>, Failure> {
        let table = lock(&self.0);
        let buffer = |pool: &RequestPool| match pool {
            RequestPool::Memory(_) => Ok(None),
            RequestPool::Token(token) => match table.buffers.get(token) {
                Some(buffer) => Ok(Some(Arc::clone(buffer))),
                None => Err(Failure::invalid(format!("there is no buffer with token {token}"))),
            },
        };
        request.pools.iter().map(buffer).collect()
    }
}

impl<S> Table<S> {
    /// A token that no buffer has. They only grow, so that one whose buffer is gone stays unknown.
    fn next_token(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.buffers.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// The buffers of a request's pools. They stay as long as this, also when their handles are dropped.
#[derive(Debug)]
pub struct RequestBuffers<S>(Vec<Option<Arc<TrackedBuffer<S>>>>);

impl<S> RequestBuffers<S> {
    /// Whether the request names none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The buffer that is this argument; `None` for one in memory, or that is left out.
    #[must_use]
    pub fn of(&self, argument: &RequestArgument) -> Option<&Arc<TrackedBuffer<S>>> {
        let index = usize::try_from(argument.location.pool_index).ok()?;
        self.0.get(index).filter(|_| !argument.has_no_value)?.as_ref()
    }
}

/// A buffer as its owner holds it. When this is dropped, its token stands for nothing any more;
/// executions under way keep the buffer itself.
#[derive(Debug)]
pub struct BufferHandle<S> {
    tracker: BufferTracker<S>,
    buffer: Arc<TrackedBuffer<S>>,
}

impl<S> Deref for BufferHandle<S> {
    type Target = Arc<TrackedBuffer<S>>;
    fn deref(&self) -> &Self::Target {
        &self.buffer
    }
}

impl<S> Drop for BufferHandle<S> {
    fn drop(&mut self) {
        let forgotten = lock(&self.tracker.0).buffers.remove(&self.buffer.token);
        drop(forgotten); // the lock is let go of by now
    }
}

/// One buffer.
pub struct TrackedBuffer<S> {
    token: u32,
    roles: BufferRoles,
    state: Mutex<BufferState<S>>,
}

impl<S> fmt::Debug for TrackedBuffer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedBuffer")
            .field("token", &self.token)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

/// What changes of a buffer.
#[derive(Debug)]
pub struct BufferState<S> {
    /// What the driver keeps.
    pub storage: S,
    value: Option<Dimensions>,
}

impl<S> BufferState<S> {
    /// The dimensions of its value; `None` where it has none.
    #[must_use]
    pub fn dimensions(&self) -> Option<&[u32]> {
        self.value.as_deref()
    }

    /// It has a value of these dimensions now.
    pub fn set(&mut self, dimensions: Dimensions) {
        self.value = Some(dimensions);
    }

    /// It has no value any more: something is about to write it, or has failed to.
    pub fn clear(&mut self) {
        self.value = None;
    }
}

impl<S> TrackedBuffer<S> {
    /// The number that stands for it in requests.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.token
    }

    /// What its value is; the dimensions are those that were known when it was allocated.
    #[must_use]
    pub fn operand(&self) -> &BufferOperand {
        &self.roles.operand
    }

    /// Its state. Nothing that waits for somebody else may happen under this lock.
    pub fn lock(&self) -> MutexGuard<'_, BufferState<S>> {
        lock(&self.state)
    }

    /// Whether its value may be copied to a pool of so many bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another size, GENERAL_FAILURE where it has no value. Of a buffer whose size is
    /// known from the beginning a wrong pool is told first: it would stay wrong with a value.
    pub fn check_copy_to(&self, state: &BufferState<S>, destination: u64) -> Result<(), Failure> {
        same_size(self.operand().bytes(), destination)?;
        let value = state.dimensions().ok_or_else(|| no_value("the buffer"))?;
        same_size(self.operand().ty.byte_length(value), destination)
    }

    /// Whether a value of these dimensions may be copied from a pool of so many bytes; gives the
    /// dimensions of the value. Where it may not, the buffer has no value any more.
    ///
    /// # Errors
    /// INVALID_ARGUMENT.
    pub fn check_copy_from(&self, source: u64, dimensions: &[u32]) -> Result<Dimensions, Failure> {
        let operand = self.operand();
        if !operand.ty.is_tensor() && operand.ty.element_bytes().is_some() && !dimensions.is_empty()
        {
            return Err(Failure::invalid("dimensions for a scalar"));
        }
        // Whoever says a shape says all of it; what the buffer knows fills no gaps.
        if dimensions.contains(&0) {
            return Err(Failure::invalid("a size of 0 in the dimensions of the value"));
        }
        let dimensions = combine_dimensions(&operand.dimensions, dimensions)
            .map_err(|fault| Failure::invalid(format!("the value for the buffer: {fault}")))?;
        if !operand.is_specified(&dimensions) {
            return Err(Failure::invalid("the dimensions of the value must be known"));
        }
        same_size(operand.ty.byte_length(&dimensions), source)?;
        Ok(dimensions)
    }

    /// Whether an execution may leave a value of these dimensions here. They are known, so a size of 0 means
    /// that there are no elements.
    ///
    /// # Errors
    /// GENERAL_FAILURE where it does not fit.
    pub fn check_computed(&self, dimensions: &[u32]) -> Result<(), Failure> {
        computed_dimensions(&self.operand().dimensions, dimensions).map_err(|fault| {
            Failure::general(format!("the result does not fit buffer {}: {fault}", self.token))
        })
    }
}

fn no_value(what: &str) -> Failure {
    Failure::general(format!("{what} has no value"))
}

/// A pool has to be as long as the value, where that is known.
fn same_size(value: Option<u64>, pool: u64) -> Result<(), Failure> {
    match value {
        Some(value) if value != pool => {
            Err(Failure::invalid(format!("a pool of {pool} bytes for a value of {value}")))
        }
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "buffer_tracker_tests.rs"]
mod tests;
