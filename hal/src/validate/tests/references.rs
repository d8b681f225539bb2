//! References between graphs, and the operands that make them.

use super::*;
use crate::OperandLifeTime;

/// A graph that reads its one input, and refers to these subgraphs without running them.
fn referring(b: &mut ModelBuilder, targets: &[u32]) {
    let x = b.input(OperandType::TensorFloat32, &[1]);
    for target in targets {
        b.subgraph(*target);
    }
    let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[1]));
    b.output(y);
}

/// What validation says to a model whose main graph and subgraphs refer to these subgraphs.
fn check(main: &[u32], subgraphs: &[Vec<u32>]) -> Result<(), ValidationError> {
    let mut b = ModelBuilder::new();
    for targets in subgraphs {
        b.referenced(|b| referring(b, targets));
    }
    referring(&mut b, main);
    b.build().map(drop)
}

#[test]
fn references_make_no_circles() {
    let cycle = |subgraph| Err(ValidationError::ReferenceCycle { subgraph });
    assert_eq!(check(&[0, 1], &[vec![2], vec![2], vec![]]), Ok(()), "two ways to one subgraph");
    assert_eq!(check(&[0], &[vec![0]]), cycle(0), "itself");
    assert_eq!(check(&[0], &[vec![1], vec![2], vec![0]]), cycle(0), "through two others");
    assert_eq!(check(&[0], &[vec![], vec![2], vec![1]]), cycle(1), "out of main's reach");
    let fault = OperandFault::UnknownSubgraph { subgraph: 1, subgraphs: 1 };
    assert_eq!(check(&[1], &[vec![]]), Err(operand(1, fault)), "behind the last");
}

/// Subgraphs of which each refers to the next one, `times` over.
fn chain(len: usize, times: usize) -> Vec<Vec<u32>> {
    let next = (1..).take(len - 1).map(|next| vec![next; times]);
    next.chain(std::iter::once(vec![])).collect()
}

#[test]
fn nesting_has_a_limit() {
    let below_main = MAX_NESTING - 1;
    assert_eq!(check(&[0], &chain(below_main, 1)), Ok(()));
    assert_eq!(check(&[0], &chain(below_main + 1, 1)), Err(too_many(Limit::Nesting)));
}

#[test]
fn many_ways_through_a_chain_are_not_followed_one_by_one() {
    // 300 ways from each subgraph to the next: without memory this test would never end.
    assert_eq!(check(&[0], &chain(MAX_NESTING - 1, 300)), Ok(()));
}

#[test]
fn nesting_is_measured_also_through_a_subgraph_followed_before() {
    let middle = u32::try_from(MAX_NESTING / 2).unwrap();
    assert_eq!(check(&[middle, 0], &chain(MAX_NESTING - 1, 1)), Ok(()));
    let too_deep = Err(too_many(Limit::Nesting));
    assert_eq!(check(&[middle, 0], &chain(MAX_NESTING, 1)), too_deep);
}

/// IF over two subgraphs: operands are condition, x, then, otherwise, y.
fn branching() -> Model {
    let mut b = ModelBuilder::new();
    let then = b.referenced(|b| referring(b, &[]));
    let otherwise = b.referenced(|b| referring(b, &[]));
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(OperandType::TensorFloat32, &[1]);
    let (then, otherwise) = (b.subgraph(then), b.subgraph(otherwise));
    let inputs = [condition, then, otherwise, x];
    let y = b.result_of(OperationType::If, &inputs, OutputSpec::f32(&[1]));
    b.output(y);
    b.build().expect("the unchanged model is legal")
}

#[test]
fn control_flow_needs_subgraphs() {
    let cases: [(OperationType, &[u32], u32); 5] = [
        (OperationType::If, &[0, 1, 3, 2], 1),
        (OperationType::If, &[0, 2, 1, 3], 2),
        (OperationType::If, &[0, 2], 2),
        (OperationType::While, &[0, 2, 3, 1], 0),
        (OperationType::While, &[2, 0, 3, 1], 1),
    ];
    for (ty, inputs, position) in cases {
        let mut model = branching();
        model.main.operations[0].ty = ty;
        model.main.operations[0].inputs = inputs.to_vec();
        let want = Err(operation(0, OperationFault::NotASubgraph { position }));
        assert_eq!(validate_model(&model, HalVersion::V1_3), want, "{ty} {inputs:?}");
    }
}

#[test]
fn a_subgraph_operand_has_nothing_but_the_index() {
    let then = 2;
    let check = |mutate: fn(&mut Operand)| {
        let mut model = branching();
        mutate(&mut model.main.operands[then]);
        validate_model(&model, HalVersion::V1_3)
    };
    let fault = |fault| Err(operand(then, fault));
    assert_eq!(check(|o| o.location.length = 1), fault(OperandFault::UnexpectedLocation));
    assert_eq!(check(|o| o.location.pool_index = 1), fault(OperandFault::UnexpectedLocation));
    assert_eq!(check(|o| o.scale = 1.0), fault(OperandFault::Scale { scale: 1.0 }));
    assert_eq!(check(|o| o.zero_point = 1), fault(OperandFault::ZeroPoint { zero_point: 1 }));
    let constant = check(|o| o.lifetime = OperandLifeTime::ConstantCopy);
    assert_eq!(constant, fault(OperandFault::SubgraphLifetime));
    let (ty, version) = (OperandType::Subgraph, HalVersion::V1_2);
    let too_new = fault(OperandFault::TypeTooNew { ty, version });
    assert_eq!(validate_model(&branching(), version), too_new);
}

#[test]
fn referenced_graphs_obey_the_same_rules() {
    let mut model = branching();
    model.referenced[1].operands[1].number_of_consumers = 7;
    let fault = OperandFault::Consumers { declared: 7, counted: 0 };
    let want = ValidationError::Operand { graph: GraphId::Referenced(1), operand: 1, fault };
    assert_eq!(validate_model(&model, HalVersion::V1_3), Err(want));
    assert_eq!(want.to_string(), "subgraph 1, operand 1: it says it has 7 consumers, and has 0");
    model.referenced[1] = Subgraph::default();
    assert_eq!(validate_model(&model, HalVersion::V1_3), Ok(()), "may be empty");
}
