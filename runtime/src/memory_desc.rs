//! What a memory is wanted for, so that a device may provide it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burst_client::ShmMemory;
use burst_hal::validate::{BufferOperand, Direction, validate_buffer};
use burst_hal::{Buffer, BufferRequest, BufferRole, Dimensions, HalVersion, Pool};

use crate::compilation::Compilation;
use crate::compiled::StepRole;
use crate::error::{Error, Result};
use crate::memory::{Memory, Role, RoledMemory, Store};
use crate::process::check_process;

/// The roles of a memory that is to be made.
#[derive(Debug, Default)]
pub struct MemoryDesc {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    roles: Vec<Wanted>,
    dimensions: Dimensions,
    is_finished: bool,
}

/// One role, and how often it will be played.
#[derive(Debug, Clone)]
struct Wanted {
    compilation: Arc<Compilation>,
    direction: Direction,
    position: u32,
    frequency: f32,
}

impl MemoryDesc {
    /// No roles yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The memory will be used for this input.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for whatever does not fit the compilation or the other roles.
    pub fn add_input_role(
        &self,
        compilation: &Arc<Compilation>,
        index: u32,
        frequency: f32,
    ) -> Result<()> {
        self.add(compilation, Direction::Input, index, frequency)
    }

    /// The memory will be used for this output.
    ///
    /// # Errors
    /// As [`MemoryDesc::add_input_role`].
    pub fn add_output_role(
        &self,
        compilation: &Arc<Compilation>,
        index: u32,
        frequency: f32,
    ) -> Result<()> {
        self.add(compilation, Direction::Output, index, frequency)
    }

    fn add(
        &self,
        compilation: &Arc<Compilation>,
        direction: Direction,
        position: u32,
        frequency: f32,
    ) -> Result<()> {
        let mut state = self.building()?;
        let compilation = Arc::clone(compilation);
        let wanted = Wanted { compilation, direction, position, frequency };
        let roles: Vec<Wanted> = state.roles.iter().cloned().chain([wanted]).collect();
        operand_of(&roles, &state.dimensions)?;
        state.roles = roles;
        Ok(())
    }

    /// Dimensions, as far as the caller knows more than the models.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA where they do not fit the roles, or those of an earlier call.
    pub fn set_dimensions(&self, dimensions: &[u32]) -> Result<()> {
        let mut state = self.building()?;
        let combined = burst_hal::validate::combine_dimensions(&state.dimensions, dimensions);
        let combined = combined.map_err(Error::bad_data)?;
        if !state.roles.is_empty() {
            operand_of(&state.roles, &combined)?;
        }
        state.dimensions = combined;
        Ok(())
    }

    /// No more roles.
    ///
    /// # Errors
    /// BAD_STATE the second time; BAD_DATA without a role.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.building()?;
        operand_of(&state.roles, &state.dimensions)?;
        state.is_finished = true;
        Ok(())
    }

    fn building(&self) -> Result<MutexGuard<'_, State>> {
        check_process()?;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.is_finished {
            true => Err(Error::bad_state("the description is finished")),
            false => Ok(state),
        }
    }
}

/// What the value of a memory with these roles is.
fn operand_of(roles: &[Wanted], dimensions: &[u32]) -> Result<BufferOperand> {
    let mut rules = Vec::new();
    for role in roles {
        let compiled = role.compilation.compiled();
        rules.push(compiled.map_err(|error| Error::bad_data(error.cause().to_string()))?);
    }
    let models: Vec<_> = rules.iter().map(|compiled| &compiled.rules).collect();
    let of = |direction| {
        let numbered = (0..).zip(roles).filter(move |(_, role)| role.direction == direction);
        numbered.map(|(model, role)| BufferRole {
            model,
            position: role.position,
            frequency: role.frequency,
        })
    };
    let inputs: Vec<BufferRole> = of(Direction::Input).collect();
    let outputs: Vec<BufferRole> = of(Direction::Output).collect();
    Ok(validate_buffer(dimensions, &models, &inputs, &outputs)?)
}

impl Memory {
    /// A memory for these roles: a buffer of a device where one device has them all, else shared memory.
    ///
    /// # Errors
    /// BAD_STATE for a description that is not finished; OP_FAILED where nothing can be allocated.
    pub fn from_desc(desc: &MemoryDesc) -> Result<Arc<Memory>> {
        check_process()?;
        let state = desc.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_finished {
            return Err(Error::bad_state("the description is not finished"));
        }
        let operand = operand_of(&state.roles, &state.dimensions)?;
        let store = match buffer_for(&state.roles, &state.dimensions)? {
            Some(buffer) => Store::Buffer(buffer),
            None => Store::Shared(shared_for(&operand)?),
        };
        let role = |wanted: &Wanted| Role {
            compilation: wanted.compilation.number(),
            direction: wanted.direction,
            position: wanted.position,
        };
        let roles = state.roles.iter().map(role).collect();
        Ok(Memory::from_roles(RoledMemory::new(roles, operand, store)))
    }
}

/// A buffer of the one device whose steps play all of these roles; `None` where there is none, or it makes
/// none.
fn buffer_for(roles: &[Wanted], dimensions: &Dimensions) -> Result<Option<Arc<dyn Buffer>>> {
    let mut request = BufferRequest { dimensions: dimensions.clone(), ..BufferRequest::default() };
    let mut device = None;
    for wanted in roles {
        let compiled = wanted.compilation.compiled()?;
        let Some(steps) = compiled.step_roles(wanted.direction, wanted.position) else {
            return Ok(None); // a part of it is interpreted here
        };
        for StepRole { step, direction, position } in steps {
            let first = device.get_or_insert_with(|| Arc::clone(step.device()));
            let is_same = Arc::ptr_eq(first, step.device());
            if !is_same || step.device().hal_version() < HalVersion::V1_3 {
                return Ok(None);
            }
            let model = model_index(&mut request, step.prepared().as_model());
            let role = BufferRole { model, position, frequency: wanted.frequency };
            match direction {
                Direction::Input => request.inputs.push(role),
                Direction::Output => request.outputs.push(role),
            }
        }
    }
    let Some(device) = device else { return Ok(None) };
    match device.allocate(&request) {
        Ok(buffer) => Ok(Some(buffer)),
        Err(error) => {
            tracing::debug!(device = device.name(), %error, "no buffer; shared memory instead");
            Ok(None)
        }
    }
}

/// The place of a model in a request, which it gets where it has none.
fn model_index(request: &mut BufferRequest, model: Arc<dyn burst_hal::PreparedModel>) -> u32 {
    let address = |model: &Arc<dyn burst_hal::PreparedModel>| Arc::as_ptr(model).cast::<()>();
    let found = request.models.iter().position(|known| address(known) == address(&model));
    let index = found.unwrap_or_else(|| {
        request.models.push(model);
        request.models.len() - 1
    });
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Shared memory of the value's length.
fn shared_for(operand: &BufferOperand) -> Result<Pool> {
    let bytes = operand.bytes().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| {
        Error::op_failed(
            "no device makes a buffer for these roles, and the value's size is not known",
        )
    })?;
    Ok(Arc::new(ShmMemory::create(bytes)?))
}
