//! Whether an earlier version of the HAL can carry a model or a request.
//!
//! An operation is as new as its form ([`crate::forms`]) and as its operands: their types, lifetimes,
//! ranks and extra parameters.

use crate::{
    ExtraParams, HalVersion, Model, Operand, OperandLifeTime, Operation, Request, RequestPool,
    Subgraph, forms,
};

/// What a version can carry of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compliance {
    /// Operations of the main graph that the version lacks, ascending: a client can plan these for
    /// another device.
    pub noncompliant_operations: Vec<u32>,
    /// Whether anything beside the operations is too new: an operand that none of them uses,
    /// referenced subgraphs, extensions, the kind of a pool. At the newest version: an operation of a referenced subgraph
    /// that no version has in its form.
    pub has_other_reasons: bool,
}

impl Compliance {
    /// Whether the version can carry the whole model.
    #[must_use]
    pub fn is_compliant(&self) -> bool {
        self.noncompliant_operations.is_empty() && !self.has_other_reasons
    }
}

/// What a version can carry of a model that is legal at the newest one.
///
/// The flag for relaxed computation is no obstacle: a version that lacks it computes with full
/// precision, which satisfies the flag. Nor are trailing inputs that only repeat their defaults.
#[must_use]
pub fn compliant_with(model: &Model, version: HalVersion) -> Compliance {
    let graph = &model.main;
    let mut is_explained = vec![false; graph.operands.len()];
    let mut noncompliant_operations = Vec::new();
    for (index, operation) in (0..).zip(&graph.operations) {
        match inputs_kept(model, graph, operation, version) {
            Some(count) => mark(&operation.inputs[count..], &mut is_explained),
            None => {
                noncompliant_operations.push(index);
                mark(&operation.inputs, &mut is_explained);
                mark(&operation.outputs, &mut is_explained);
            }
        }
    }
    let mut others = graph.operands.iter().zip(&is_explained).filter(|(_, explained)| !**explained);
    let has_other_reasons = others.any(|(operand, _)| !operand_complies(operand, version))
        || (version < HalVersion::V1_3 && !model.referenced.is_empty())
        || (version < HalVersion::V1_2 && !model.extension_name_to_prefix.is_empty())
        || model.pools.iter().any(|pool| pool.kind().since() > version)
        || model.referenced.iter().any(|graph| has_unknown_form(model, graph));
    Compliance { noncompliant_operations, has_other_reasons }
}

/// Whether a version can carry a request: buffers of devices came as memory with 1.2, those that a driver
/// manages with 1.3. Dimensions that an earlier version cannot leave open are refused by request validation.
#[must_use]
pub fn request_complies(request: &Request, version: HalVersion) -> bool {
    request.pools.iter().all(|pool| match pool {
        RequestPool::Memory(memory) => memory.kind().since() <= version,
        RequestPool::Token(_) => version >= HalVersion::V1_3,
    })
}

/// How many of an operation's inputs a version carries; `None` where it cannot carry the operation.
pub(crate) fn inputs_kept(
    model: &Model,
    graph: &Subgraph,
    operation: &Operation,
    version: HalVersion,
) -> Option<usize> {
    let count = forms::inputs_for(model, graph, operation, version)?;
    let complies = |index: &u32| {
        let operand = usize::try_from(*index).ok().and_then(|index| graph.operands.get(index));
        operand.is_some_and(|operand| operand_complies(operand, version))
    };
    let mut kept = operation.inputs[..count].iter().chain(&operation.outputs);
    kept.all(complies).then_some(count)
}

/// Whether a graph has an operation that no version has in its form.
fn has_unknown_form(model: &Model, graph: &Subgraph) -> bool {
    graph.operations.iter().any(|operation| forms::since(model, graph, operation).is_none())
}

fn operand_complies(operand: &Operand, version: HalVersion) -> bool {
    let has_type = operand.ty.since().is_some_and(|since| since <= version);
    let has_lifetime = operand.lifetime != OperandLifeTime::Subgraph || version >= HalVersion::V1_3;
    let has_rank = !operand.ty.is_tensor() || !operand.dimensions.is_empty();
    let is_plain = operand.extra_params == ExtraParams::None;
    has_type && has_lifetime && (version >= HalVersion::V1_2 || (has_rank && is_plain))
}

/// Notes operands whose operation is counted already, or that it can do without.
fn mark(indexes: &[u32], is_explained: &mut [bool]) {
    for index in indexes {
        let position = usize::try_from(*index).unwrap_or(usize::MAX);
        if let Some(explained) = is_explained.get_mut(position) {
            *explained = true;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        HeapMemory, Memory, MemoryError, MemoryKind, ModelBuilder, OperandType, OperationType,
        OutputSpec, Pool,
    };

    fn failing(model: &Model, version: HalVersion) -> (Vec<u32>, bool) {
        let compliance = compliant_with(model, version);
        let expected = compliance.noncompliant_operations.is_empty();
        assert_eq!(compliance.is_compliant(), expected && !compliance.has_other_reasons);
        (compliance.noncompliant_operations, compliance.has_other_reasons)
    }

    #[test]
    fn operations_are_told_apart_by_type_and_by_operands() {
        let mut b = ModelBuilder::new();
        let spec = OutputSpec::f32(&[2]);
        let half = OutputSpec::new(OperandType::TensorFloat16, &[2]);
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let floor = b.result_of(OperationType::Floor, &[x], spec.clone());
        let (none, alpha) = (b.scalar_i32(0), b.scalar_f32(1.0));
        let sub = b.result_of(OperationType::Sub, &[floor, x, none], spec.clone());
        let cast = b.result_of(OperationType::Cast, &[sub], half.clone());
        let relu = b.result_of(OperationType::Relu, &[cast], half);
        let elu = b.result_of(OperationType::Elu, &[sub, alpha], spec);
        b.output(relu);
        b.output(elu);
        let model = b.build().unwrap();
        assert_eq!(failing(&model, HalVersion::V1_0), (vec![1, 2, 3, 4], false));
        assert_eq!(failing(&model, HalVersion::V1_1), (vec![2, 3, 4], false));
        assert_eq!(failing(&model, HalVersion::V1_2), (vec![4], false));
        assert_eq!(failing(&model, HalVersion::V1_3), (vec![], false));
    }

    #[test]
    fn inputs_that_repeat_their_defaults_do_not_count() {
        for (last_axis, new_axis) in [(-1, false), (0, true)] {
            let mut b = ModelBuilder::new();
            let x = b.input(OperandType::TensorFloat32, &[2, 3]);
            let (beta, axis) = (b.scalar_f32(1.0), b.scalar_i32(last_axis));
            let spec = OutputSpec::f32(&[2, 3]);
            let y = b.result_of(OperationType::Softmax, &[x, beta, axis], spec.clone());
            let layout = b.scalar_bool(false);
            let block = b.scalar_i32(1);
            let inputs = [y, block, layout];
            let z = b.result_of(OperationType::DepthToSpace, &inputs, spec);
            b.output(z);
            let model = b.build().unwrap();
            let wrong = if new_axis { vec![0] } else { vec![] };
            assert_eq!(failing(&model, HalVersion::V1_0), (wrong, false), "{last_axis}");
            assert_eq!(failing(&model, HalVersion::V1_2), (vec![], false), "{last_axis}");
        }
    }

    #[test]
    fn an_operation_in_no_form_of_its_own_suits_no_version() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let y = b.result_of(OperationType::Add, &[x, x], OutputSpec::f32(&[2]));
        b.output(y);
        let model = b.build().unwrap();
        for version in HalVersion::ALL {
            assert_eq!(failing(&model, version), (vec![0], false), "{version}");
        }
    }

    #[test]
    fn an_unknown_rank_needs_1_2() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[]);
        let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
        b.output(y);
        let model = b.build().unwrap();
        assert_eq!(failing(&model, HalVersion::V1_1), (vec![0], false));
        assert_eq!(failing(&model, HalVersion::V1_2), (vec![], false));
    }

    #[test]
    fn control_flow_needs_1_3() {
        let mut b = ModelBuilder::new();
        let spec = OutputSpec::f32(&[2]);
        let branch = b.referenced(|b| {
            let x = b.input(OperandType::TensorFloat32, &[2]);
            let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
            b.output(y);
        });
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let condition = b.input(OperandType::TensorBool8, &[1]);
        let (then, otherwise) = (b.subgraph(branch), b.subgraph(branch));
        let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec);
        b.output(y);
        let model = b.build().unwrap();
        assert_eq!(failing(&model, HalVersion::V1_2), (vec![0], true));
        assert_eq!(failing(&model, HalVersion::V1_3), (vec![], false));
    }

    #[test]
    fn what_no_operation_explains_is_another_reason() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
        b.output(y);
        b.relaxed(true);
        let mut model = b.build().unwrap();
        assert_eq!(failing(&model, HalVersion::V1_0), (vec![], false), "relaxed is no obstacle");
        model.extension_name_to_prefix.push(("a.b".to_owned(), 1));
        assert_eq!(failing(&model, HalVersion::V1_1), (vec![], true));
        assert_eq!(failing(&model, HalVersion::V1_2), (vec![], false));
        model.main.operands.push(Operand::new(OperandType::Bool, OperandLifeTime::NoValue));
        model.extension_name_to_prefix.clear();
        assert_eq!(failing(&model, HalVersion::V1_1), (vec![], true));
    }

    /// Memory of a camera, as far as its kind goes.
    #[derive(Debug)]
    pub(crate) struct OfDevice(pub(crate) HeapMemory);

    impl Memory for OfDevice {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
            self.0.read(offset, out)
        }
        fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
            self.0.write(offset, bytes)
        }
        fn kind(&self) -> MemoryKind {
            MemoryKind::DeviceBuffer
        }
    }

    #[test]
    fn buffers_of_devices_need_1_2() {
        let buffer: Pool = Arc::new(OfDevice(HeapMemory::new(vec![0; 8])));
        let pools = vec![RequestPool::Memory(Arc::clone(&buffer))];
        let request = Request { pools, ..Request::default() };
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
        b.output(y);
        let mut model = b.build().unwrap();
        model.pools.push(buffer);
        for version in HalVersion::ALL {
            let carries = version >= HalVersion::V1_2;
            assert_eq!(request_complies(&request, version), carries, "{version}");
            assert_eq!(failing(&model, version), (vec![], !carries), "{version}");
        }
    }

    #[test]
    fn buffers_of_the_driver_need_1_3() {
        let memory = RequestPool::Memory(Arc::new(HeapMemory::new(vec![0])));
        let mut request = Request { pools: vec![memory], ..Request::default() };
        assert!(request_complies(&request, HalVersion::V1_0));
        request.pools.push(RequestPool::Token(1));
        assert!(!request_complies(&request, HalVersion::V1_2));
        assert!(request_complies(&request, HalVersion::V1_3));
    }
}
