//! The runtime during one call of it: what it shows, and what it is asked for.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use super::layout::{
    AFFINE, AffineQuantization, Context, Delegate, DelegateParams, IntArray, Node, OK,
    Quantization, Registration, Tensor, allocation,
};
use super::raw;
use crate::builtin;
use crate::error::DelegateError;
use crate::graph;
use crate::graph::{Allocation, Cut, Graph};

/// Codes of element types and allocations stay below these in every version; a wrong layout rarely does.
const TYPES_MAX: c_int = 64;
const ALLOCATIONS_MAX: c_int = 16;
/// Most axes that any kernel of the runtime has.
const AXES_MAX: c_int = 16;
/// Most partitions that are believed: as many as nodes.
const PARTITIONS_MAX: usize = 1 << 24;

/// A context of the runtime, during a call of the runtime.
pub(super) struct Host {
    context: *mut Context,
}

impl Host {
    /// A context whose layout is known.
    ///
    /// # Errors
    /// [`DelegateError::Layout`] where it is not.
    ///
    /// # Safety
    /// `context` is null, or a context of the runtime that is calling, and stays one as long as this lives.
    pub(super) unsafe fn new(context: *mut Context) -> Result<Self, DelegateError> {
        if context.is_null() {
            return Err(DelegateError::Absent { what: "context" });
        }
        let host = Host { context };
        let count = host.fields().tensors_size;
        if count > 0 && host.fields().tensors.is_null() {
            return Err(DelegateError::Layout { what: "a context has no tensors" });
        }
        Ok(host)
    }

    /// The context as it is now: calls of the runtime change it.
    fn fields(&self) -> Context {
        // SAFETY: `new`'s promise: it is a context, which is as long as ours at least.
        unsafe { self.context.read() }
    }

    /// Looks whether the structures are laid out as they are known here.
    ///
    /// # Errors
    /// [`DelegateError::Layout`], with the first that is not.
    pub(super) fn check_layout(&self) -> Result<(), DelegateError> {
        let wrong = |what| Err(DelegateError::Layout { what });
        let fields = self.fields();
        if fields.get_execution_plan.is_none()
            || fields.report_error.is_none()
            || fields.get_node_and_registration.is_none()
            || fields.replace_node_subsets.is_none()
            || fields.preview_delegate_partitioning.is_none()
        {
            return wrong("a context lacks functions");
        }
        for index in 0..fields.tensors_size {
            let tensor = self.tensor(index)?;
            let axes = match tensor.dims.is_null() {
                true => 0,
                // SAFETY: a list of sizes, by the layout that is being looked at.
                false => unsafe { raw::element(tensor.dims, 0) },
            };
            let is_sound = (0..TYPES_MAX).contains(&tensor.type_code)
                && (0..ALLOCATIONS_MAX).contains(&tensor.allocation_type)
                && (0..AXES_MAX).contains(&axes);
            if !is_sound {
                return wrong("a tensor is not 112 bytes behind the one before it");
            }
            if let (Some(get_tensor), Ok(number)) = (fields.get_tensor, c_int::try_from(index)) {
                // SAFETY: a function of the runtime with the arguments that it takes; the index is one of a tensor.
                let there = unsafe { get_tensor(self.context, number) };
                if there != fields.tensors.wrapping_add(index) {
                    return wrong("a tensor is not where its index says");
                }
            }
        }
        Ok(())
    }

    /// A tensor as it is now.
    ///
    /// # Errors
    /// There is none of this index.
    pub(super) fn tensor(&self, index: usize) -> Result<Tensor, DelegateError> {
        let fields = self.fields();
        if index >= fields.tensors_size {
            return Err(DelegateError::Absent { what: "tensor of this index" });
        }
        // SAFETY: the array has `tensors_size` elements.
        Ok(unsafe { raw::element(fields.tensors, index) })
    }

    /// The graph as it is now. Constants are the model's bytes, which live as long as the runtime's model.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) fn graph(&self) -> Result<Graph<'_>, DelegateError> {
        let nodes = self.execution_plan()?;
        let nodes = nodes.into_iter().map(|number| self.node(number)).collect::<Result<_, _>>()?;
        let tensors = (0..self.fields().tensors_size)
            .map(|index| Ok(self.shown_tensor(&self.tensor(index)?)))
            .collect::<Result<_, DelegateError>>()?;
        Ok(Graph { tensors, nodes })
    }

    /// Numbers of the nodes that run, in their order.
    fn execution_plan(&self) -> Result<Vec<i32>, DelegateError> {
        let call = self.fields().get_execution_plan;
        let call = call.ok_or(DelegateError::Absent { what: "execution plan" })?;
        let mut plan: *const IntArray = null();
        // SAFETY: a function of the runtime with the arguments that it takes.
        check("GetExecutionPlan", unsafe { call(self.context, &raw mut plan) })?;
        // SAFETY: a list of the runtime, or null.
        Ok(unsafe { raw::ints(plan) })
    }

    fn node(&self, number: i32) -> Result<graph::Node, DelegateError> {
        let call = self.fields().get_node_and_registration;
        let call = call.ok_or(DelegateError::Absent { what: "nodes" })?;
        let (mut node, mut registration) = (null_mut::<Node>(), null_mut::<Registration>());
        // SAFETY: a function of the runtime with the arguments that it takes.
        let status = unsafe { call(self.context, number, &raw mut node, &raw mut registration) };
        check("GetNodeAndRegistration", status)?;
        if node.is_null() || registration.is_null() {
            return Err(DelegateError::Absent { what: "node of a number in its plan" });
        }
        // SAFETY: not null, so a node, of the size of ours at least.
        let node = unsafe { node.read() };
        // SAFETY: not null, so a registration; of an old runtime it is as long as the fields before `version` and
        // that one, so only those are read.
        let (code, custom_name, version) = unsafe { registration_of(registration) };
        // SAFETY: lists of a node, each null or a list.
        let lists =
            [node.inputs, node.outputs, node.intermediates].map(|list| unsafe { raw::ints(list) });
        let [inputs, outputs, intermediates] = lists;
        let custom_bytes = match (node.custom_initial_data.is_null(), &custom_name) {
            (false, Some(_)) => usize::try_from(node.custom_initial_data_size).unwrap_or(0),
            _ => 0,
        };
        // SAFETY: the options of a custom operator have as many bytes as the node says.
        let custom_options = unsafe { raw::bytes(node.custom_initial_data.cast(), custom_bytes) };
        let parameters = builtin::parameters(code)
            .filter(|_| !node.builtin_data.is_null() && custom_name.is_none())
            // SAFETY: the parameters of an operator of this code and version have these bytes at least.
            .map(|known| unsafe { raw::bytes(node.builtin_data.cast(), known.bytes(version)) });
        Ok(graph::Node {
            number,
            code,
            custom_name,
            version,
            inputs,
            outputs,
            intermediates,
            parameters,
            custom_options,
        })
    }

    fn shown_tensor(&self, tensor: &Tensor) -> graph::Tensor<'_> {
        let is_constant = tensor.allocation_type == allocation::MODEL && !tensor.data.is_null();
        let data = is_constant.then(|| {
            // SAFETY: a constant has as many bytes as its tensor says, which live as long as the model: longer than
            // this call, and so than `self`.
            unsafe { std::slice::from_raw_parts(tensor.data.cast::<u8>(), tensor.bytes) }
        });
        // SAFETY: null, or a list of sizes.
        let shape = (!tensor.dims.is_null()).then(|| unsafe { raw::ints(tensor.dims) });
        graph::Tensor {
            // SAFETY: null, or a name of the model.
            name: unsafe { raw::text(tensor.name) }.unwrap_or_default(),
            type_code: tensor.type_code,
            shape,
            bytes: tensor.bytes,
            allocation: match tensor.allocation_type {
                allocation::MODEL => Allocation::Constant,
                allocation::ARENA | allocation::ARENA_PERSISTENT | allocation::CUSTOM => {
                    Allocation::Planned
                }
                allocation::PREPARED => Allocation::Fixed,
                allocation::DYNAMIC => Allocation::Dynamic,
                _ => Allocation::Elsewhere,
            },
            is_variable: tensor.is_variable != 0,
            is_sparse: !tensor.sparsity.is_null(),
            quantization: quantization(tensor),
            data,
        }
    }

    /// The partitions into which these nodes would fall.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) fn preview(&self, nodes: &[i32]) -> Result<Vec<Cut>, DelegateError> {
        let call = self.fields().preview_delegate_partitioning;
        let call = call.ok_or(DelegateError::Absent { what: "partitions" })?;
        let list = raw::int_array(nodes);
        let (mut found, mut count) = (null_mut::<DelegateParams>(), 0);
        // SAFETY: a function of the runtime with the arguments that it takes; the list outlives the call.
        let status = unsafe { call(self.context, list.as_ptr(), &raw mut found, &raw mut count) };
        check("PreviewDelegatePartitioning", status)?;
        let count = usize::try_from(count).unwrap_or(0).min(PARTITIONS_MAX);
        if found.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: as many partitions as the runtime says, valid until the next call.
        let cut = |at| cut_of(&unsafe { raw::element(found, at) });
        Ok((0..count).map(cut).collect())
    }

    /// Has these nodes replaced by kernels.
    ///
    /// # Errors
    /// The runtime's.
    ///
    /// # Safety
    /// `delegate` is the delegate for which the runtime is calling.
    pub(super) unsafe fn replace(
        &self,
        registration: Registration,
        nodes: &[i32],
        delegate: *mut Delegate,
    ) -> Result<(), DelegateError> {
        let call = self.fields().replace_node_subsets;
        let call = call.ok_or(DelegateError::Absent { what: "way to replace nodes" })?;
        let list = raw::int_array(nodes);
        // SAFETY: a function of the runtime with the arguments that it takes; the list outlives the call.
        let status = unsafe { call(self.context, registration, list.as_ptr(), delegate) };
        check("ReplaceNodeSubsetsWithDelegateKernels", status)
    }
}

fn check(call: &'static str, status: c_int) -> Result<(), DelegateError> {
    match status {
        OK => Ok(()),
        status => Err(DelegateError::Runtime { call, status }),
    }
}

/// The code of an operator, its name where it is a custom one, and its version.
///
/// # Safety
/// `registration` points to one of the runtime's, which has these fields in every version.
unsafe fn registration_of(registration: *const Registration) -> (i32, Option<String>, i32) {
    // SAFETY: the caller's promise; a place, not a value.
    let code = unsafe { &raw const (*registration).builtin_code };
    // SAFETY: as above.
    let name = unsafe { &raw const (*registration).custom_name };
    // SAFETY: as above.
    let version = unsafe { &raw const (*registration).version };
    // SAFETY: the field is there and initialised.
    let name = unsafe { name.read() };
    // SAFETY: null, or a name.
    let name = unsafe { raw::text(name) };
    // SAFETY: the field is there and initialised.
    let code = unsafe { code.read() };
    // SAFETY: the field is there and initialised.
    (code, name, unsafe { version.read() })
}

/// A partition as values.
pub(super) fn cut_of(params: &DelegateParams) -> Cut {
    // SAFETY: lists of a partition, each null or a list.
    let nodes = unsafe { raw::ints(params.nodes_to_replace) };
    // SAFETY: as above.
    let outputs = unsafe { raw::ints(params.output_tensors) };
    Cut { nodes, outputs }
}

fn quantization(tensor: &Tensor) -> graph::Quantization {
    let Quantization { kind, params } = tensor.quantization;
    match (kind, params.is_null()) {
        (0, _) | (AFFINE, true) if tensor.params.scale == 0.0 => graph::Quantization::None,
        (0, _) | (AFFINE, true) => graph::Quantization::Affine {
            scales: vec![tensor.params.scale],
            zero_points: vec![tensor.params.zero_point.into()],
            axis: 0,
        },
        (AFFINE, false) => {
            // SAFETY: the parameters of this kind, by the layout.
            let affine = unsafe { params.cast::<AffineQuantization>().read() };
            // SAFETY: null, or a list of as many integers as it says.
            let zero_points = unsafe { raw::ints(affine.zero_point) };
            graph::Quantization::Affine {
                // SAFETY: null, or a list of as many floats as it says.
                scales: unsafe { raw::numbers(affine.scale) },
                zero_points: zero_points.into_iter().map(i64::from).collect(),
                axis: affine.quantized_dimension,
            }
        }
        _ => graph::Quantization::Unknown,
    }
}
