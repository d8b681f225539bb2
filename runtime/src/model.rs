//! A model under construction, and finished.

mod builder;
mod constants;
mod control_flow;
mod extensions;
mod finish;
mod run_order;
mod subgraphs;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burst_hal::validate::validate_model_of;
use burst_hal::{ExtensionCode, ExtensionOperandType, HalVersion, OperandType};

use self::builder::Builder;
use self::finish::Finished;
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::process::check_process;
use crate::registry::Registry;
use crate::supported::{check_list, supported_operations};

pub use self::builder::OperandTypeDesc;

/// A model: it is built, then [finished](Model::finish), and from then on only read.
pub struct Model {
    state: Mutex<State>,
    /// Where extensions are looked up; `None` for the devices of this machine.
    registry: Option<Registry>,
}

enum State {
    Building(Box<Builder>),
    Finished(Finished),
    /// It failed to be finished.
    Invalid,
}

impl Model {
    /// An empty model. Extensions are looked up in [`Registry::system`], when asked.
    #[must_use]
    pub fn new() -> Arc<Model> {
        Self::starting(State::Building(Box::default()), None)
    }

    /// An empty model whose extensions are those of other devices.
    #[must_use]
    pub fn with_registry(registry: &Registry) -> Arc<Model> {
        Self::starting(State::Building(Box::default()), Some(registry.clone()))
    }

    /// A finished model, for tools. Its operations keep their order and their inputs.
    ///
    /// # Errors
    /// BAD_DATA for a model that is not legal.
    pub fn from_hal(model: burst_hal::Model) -> Result<Arc<Model>> {
        check_process()?;
        validate_model_of(&model, HalVersion::LATEST)?;
        let count = u32::try_from(model.main.operations.len()).unwrap_or(u32::MAX);
        let finished = Finished { model: Arc::new(model), order: (0..count).collect() };
        Ok(Self::starting(State::Finished(finished), None))
    }

    fn starting(state: State, registry: Option<Registry>) -> Arc<Model> {
        Arc::new(Model { state: Mutex::new(state), registry })
    }

    /// Adds an operand: its index.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for a type that is none.
    pub fn add_operand(&self, ty: &OperandTypeDesc) -> Result<u32> {
        self.building(|builder| {
            let extension = self.extension_type(builder, OperandType::from_code(ty.code))?;
            builder.add_operand(ty, extension.as_ref())
        })
    }

    /// Makes an operand a constant with this value, which is copied; `None` leaves it out.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA where it does not fit.
    pub fn set_operand_value(&self, index: i32, value: Option<&[u8]>) -> Result<()> {
        self.building(|builder| {
            let extension = self.extension_type(builder, builder.operand_type(index)?)?;
            builder.set_value(index, value, extension.as_ref())
        })
    }

    /// Makes an operand a constant that lies in a memory.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA where it does not fit; UNMAPPABLE for a file that cannot be used.
    pub fn set_operand_value_from_memory(
        &self,
        index: i32,
        memory: &Arc<Memory>,
        offset: usize,
        length: usize,
    ) -> Result<()> {
        self.building(|builder| {
            let extension = self.extension_type(builder, builder.operand_type(index)?)?;
            builder.set_value_from_memory(index, memory, (offset, length), extension.as_ref())
        })
    }

    /// Makes an operand a reference to another model.
    ///
    /// # Errors
    /// BAD_STATE once finished, or where the other is not; BAD_DATA for an operand of another type.
    pub fn set_operand_value_from_model(&self, index: i32, value: &Arc<Model>) -> Result<()> {
        if std::ptr::eq(self, &**value) {
            return Err(Error::bad_state("a model that refers to itself is not finished"));
        }
        let value = value.hal()?; // locked one after the other: others may refer the other way
        self.building(|builder| builder.set_value_from_model(index, value))
    }

    /// Gives an operand one scale per index of a dimension.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA where they do not fit.
    pub fn set_symm_per_channel_quant_params(
        &self,
        index: i32,
        channel_dim: u32,
        scales: &[f32],
    ) -> Result<()> {
        self.building(|builder| builder.set_channel_scales(index, channel_dim, scales))
    }

    /// Gives an operand of an extension's type bytes that the extension defines; `None` for none.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for another operand, or no bytes.
    pub fn set_operand_extension_data(&self, index: i32, data: Option<&[u8]>) -> Result<()> {
        self.building(|builder| builder.set_extension_data(index, data))
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for an operation that no version of the HAL has in this form.
    pub fn add_operation(&self, ty: i32, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        self.building(|builder| builder.add_operation(ty, inputs, outputs))
    }

    /// Says which operands are the model's inputs and outputs.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for operands that cannot be, or are it already.
    pub fn identify_inputs_and_outputs(&self, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        self.building(|builder| builder.identify(inputs, outputs))
    }

    /// Whether float32 may be computed as float16.
    ///
    /// # Errors
    /// BAD_STATE once finished.
    pub fn relax_computation_float32_to_float16(&self, allow: bool) -> Result<()> {
        self.building(|builder| {
            builder.relaxed = allow;
            Ok(())
        })
    }

    /// The code that stands for an operand type of an extension in this model.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for an extension that no device knows.
    pub fn extension_operand_type(&self, extension: &str, code: u16) -> Result<i32> {
        let prefix = self.extension_prefix(extension)?;
        Ok(ExtensionCode { prefix, number: code }.operand_type().code())
    }

    /// The code that stands for an operation of an extension in this model.
    ///
    /// # Errors
    /// BAD_STATE once finished; BAD_DATA for an extension that no device knows.
    pub fn extension_operation_type(&self, extension: &str, code: u16) -> Result<i32> {
        let prefix = self.extension_prefix(extension)?;
        Ok(ExtensionCode { prefix, number: code }.operation_type().code())
    }

    fn extension_prefix(&self, extension: &str) -> Result<u16> {
        self.building(|builder| {
            let devices = self.registry().devices();
            match devices.iter().any(|device| device.supports_extension(extension)) {
                true => builder.extensions.prefix_of(extension),
                false => Err(Error::bad_data(format!("no device knows the extension {extension}"))),
            }
        })
    }

    /// What an extension says of its type; `None` for a type of the base range.
    fn extension_type(
        &self,
        builder: &Builder,
        ty: OperandType,
    ) -> Result<Option<ExtensionOperandType>> {
        let Some(code) = ExtensionCode::of_operand(ty) else { return Ok(None) };
        let found = builder.extensions.name_of(code.prefix).and_then(|name| {
            extensions::operand_type(self.registry().devices(), name, code.number)
        });
        let unknown = || Error::bad_data(format!("no extension of this model has the type {ty}"));
        found.map(Some).ok_or_else(unknown)
    }

    fn registry(&self) -> &Registry {
        self.registry.as_ref().unwrap_or_else(|| Registry::system())
    }

    /// Checks all of it. From now on it does not change.
    ///
    /// # Errors
    /// BAD_STATE the second time; BAD_DATA for a model that is not legal, which is invalid from then on:
    /// a graph with a cycle, a value that nobody writes, or that has no type or length that its users know.
    pub fn finish(&self) -> Result<()> {
        check_process()?;
        let mut state = self.lock();
        if !matches!(*state, State::Building(_)) {
            return Err(not_building(&state));
        }
        let State::Building(builder) = std::mem::replace(&mut *state, State::Invalid) else {
            return Err(not_building(&state));
        };
        *state = State::Finished(finish::finish(*builder)?);
        Ok(())
    }

    /// For each operation, in the order in which they were added, whether one of the devices runs it.
    ///
    /// # Errors
    /// BAD_STATE before it is finished, or where it is invalid; BAD_DATA for no device, or one twice.
    pub fn supported_operations(&self, devices: &[Arc<RuntimeDevice>]) -> Result<Vec<bool>> {
        let Finished { model, order } = self.finished()?;
        check_list(devices)?;
        let mut supported = vec![false; order.len()];
        for device in devices {
            let answers = supported_operations(device, &model)?;
            for (added, answer) in order.iter().zip(answers) {
                if let Some(any) = usize::try_from(*added).ok().and_then(|at| supported.get_mut(at))
                {
                    *any |= answer;
                }
            }
        }
        Ok(supported)
    }

    /// The finished model as the HAL has it: in run order, without inputs that only repeat their defaults.
    ///
    /// # Errors
    /// BAD_STATE before it is finished, or where it is invalid.
    pub fn hal(&self) -> Result<Arc<burst_hal::Model>> {
        Ok(self.finished()?.model)
    }

    fn finished(&self) -> Result<Finished> {
        check_process()?;
        match &*self.lock() {
            State::Finished(finished) => Ok(finished.clone()),
            State::Building(_) => Err(Error::bad_state("the model is not finished")),
            State::Invalid => Err(Error::bad_state("the model is invalid")),
        }
    }

    /// Does something to a model that is not finished.
    fn building<T>(&self, change: impl FnOnce(&mut Builder) -> Result<T>) -> Result<T> {
        check_process()?;
        let mut state = self.lock();
        match &mut *state {
            State::Building(builder) => change(builder),
            state => Err(not_building(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_building(state: &State) -> Error {
    Error::bad_state(match state {
        State::Invalid => "the model is invalid",
        _ => "the model is finished",
    })
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.lock() {
            State::Building(_) => "Model(building)",
            State::Finished(_) => "Model(finished)",
            State::Invalid => "Model(invalid)",
        })
    }
}
