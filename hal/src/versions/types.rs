//! Models and requests of HAL 1.0, 1.1 and 1.2.

use super::convert::request_to;
use super::loss::Converted;
use super::slice::model_to;
use crate::{
    Compliance, Failure, HalVersion, Model, OperandValues, Pool, Request, RequestArgument,
    RequestPool, Subgraph,
};

/// A model of HAL 1.0.
#[derive(Debug, Clone, Default)]
pub struct ModelV1_0 {
    /// Operands, operations, inputs and outputs.
    pub main: Subgraph,
    /// Bytes of the constants that travel with the model.
    pub operand_values: OperandValues,
    /// Memory with the other constants.
    pub pools: Vec<Pool>,
}

/// A model of HAL 1.1.
#[derive(Debug, Clone, Default)]
pub struct ModelV1_1 {
    /// What 1.0 has.
    pub base: ModelV1_0,
    /// Whether float32 may be computed with the range and precision of float16.
    pub relax_computation_float32_to_float16: bool,
}

/// A model of HAL 1.2.
#[derive(Debug, Clone, Default)]
pub struct ModelV1_2 {
    /// What 1.1 has.
    pub base: ModelV1_1,
    /// Extension names and the prefixes that stand for them in type codes.
    pub extension_name_to_prefix: Vec<(String, u16)>,
}

/// A request of HAL 1.0, 1.1 and 1.2.
#[derive(Debug, Clone, Default)]
pub struct RequestV1_0 {
    /// One per input of the model.
    pub inputs: Vec<RequestArgument>,
    /// One per output of the model.
    pub outputs: Vec<RequestArgument>,
    /// Memory that the arguments' locations refer to.
    pub pools: Vec<Pool>,
}

impl ModelV1_0 {
    /// The model as HAL 1.0 says it.
    ///
    /// # Errors
    /// What 1.0 cannot carry.
    pub fn of(model: &Model) -> Result<Converted<Self>, Compliance> {
        Ok(model_to(model, HalVersion::V1_0)?.map(ModelV1_0::taken_from))
    }

    pub(super) fn taken_from(model: Model) -> Self {
        ModelV1_0 { main: model.main, operand_values: model.operand_values, pools: model.pools }
    }
}

impl ModelV1_1 {
    /// The model as HAL 1.1 says it.
    ///
    /// # Errors
    /// What 1.1 cannot carry.
    pub fn of(model: &Model) -> Result<Converted<Self>, Compliance> {
        Ok(model_to(model, HalVersion::V1_1)?.map(ModelV1_1::taken_from))
    }

    pub(super) fn taken_from(model: Model) -> Self {
        let relaxed = model.relax_computation_float32_to_float16;
        let base = ModelV1_0::taken_from(model);
        ModelV1_1 { base, relax_computation_float32_to_float16: relaxed }
    }
}

impl ModelV1_2 {
    /// The model as HAL 1.2 says it.
    ///
    /// # Errors
    /// What 1.2 cannot carry.
    pub fn of(model: &Model) -> Result<Converted<Self>, Compliance> {
        Ok(model_to(model, HalVersion::V1_2)?.map(ModelV1_2::taken_from))
    }

    pub(super) fn taken_from(mut model: Model) -> Self {
        let extension_name_to_prefix = std::mem::take(&mut model.extension_name_to_prefix);
        ModelV1_2 { base: ModelV1_1::taken_from(model), extension_name_to_prefix }
    }
}

impl From<ModelV1_0> for Model {
    fn from(old: ModelV1_0) -> Self {
        let ModelV1_0 { main, operand_values, pools } = old;
        Model { main, operand_values, pools, ..Model::default() }
    }
}

impl From<ModelV1_1> for Model {
    fn from(old: ModelV1_1) -> Self {
        let relaxed = old.relax_computation_float32_to_float16;
        Model { relax_computation_float32_to_float16: relaxed, ..Model::from(old.base) }
    }
}

impl From<ModelV1_2> for Model {
    fn from(old: ModelV1_2) -> Self {
        let extension_name_to_prefix = old.extension_name_to_prefix;
        Model { extension_name_to_prefix, ..Model::from(old.base) }
    }
}

impl RequestV1_0 {
    /// The request as versions before 1.3 say it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for buffers of the driver.
    pub fn of(request: &Request) -> Result<Self, Failure> {
        let Request { inputs, outputs, pools } = request_to(request, HalVersion::V1_2)?;
        let memory = |pool: &RequestPool| match pool {
            RequestPool::Memory(pool) => Some(Pool::clone(pool)),
            RequestPool::Token(_) => None, // refused above
        };
        Ok(RequestV1_0 {
            inputs: inputs.clone(),
            outputs: outputs.clone(),
            pools: pools.iter().filter_map(memory).collect(),
        })
    }
}

impl From<RequestV1_0> for Request {
    fn from(old: RequestV1_0) -> Self {
        let pools = old.pools.into_iter().map(RequestPool::Memory).collect();
        Request { inputs: old.inputs, outputs: old.outputs, pools }
    }
}
