//! One mutation per rule of model validation, each with the error it must give.

mod graph;
mod operand;
mod references;
mod request;
mod version;

use std::sync::Arc;

use super::*;
use crate::{
    DataLocation, Dimensions, HalVersion, HeapMemory, Model, ModelBuilder, Operand, OperandType,
    OperationType, OutputSpec, Subgraph,
};

// Operands of `plain`, in the order in which it makes them.
const X: usize = 0;
const COPY: usize = 1;
const POOLED: usize = 2;
const NONE: usize = 3;
const OMITTED: usize = 4;
const T: usize = 5;
const Y: usize = 6;

const VERSIONS: [HalVersion; 4] = HalVersion::ALL;

/// `y = (x + copy) * pooled`, with an omitted operand that nobody reads.
fn plain() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2, 3]);
    let copy = b.constant_f32(&[3], &[1.0, 2.0, 3.0]);
    let pool = b.pool(Arc::new(HeapMemory::new(vec![0; 16])));
    let location = DataLocation { pool_index: pool, offset: 4, length: 12 };
    let pooled = b.constant_in_pool(OutputSpec::f32(&[3]), location);
    let none = b.scalar_i32(0);
    let omitted = b.omitted(OperandType::TensorFloat32);
    let t = b.result_of(OperationType::Add, &[x, copy, none], OutputSpec::f32(&[2, 3]));
    let y = b.result_of(OperationType::Mul, &[t, pooled, none], OutputSpec::f32(&[2, 3]));
    b.output(y);
    let mut model = b.build().expect("the unchanged model is legal");
    // Before 1.2 even what is left out has a rank.
    model.main.operands[omitted as usize].dimensions.push(1);
    model
}

fn operand(operand: usize, fault: OperandFault) -> ValidationError {
    let operand = u32::try_from(operand).unwrap();
    ValidationError::Operand { graph: GraphId::Main, operand, fault }
}

fn operation(operation: u32, fault: OperationFault) -> ValidationError {
    ValidationError::Operation { graph: GraphId::Main, operation, fault }
}

fn interface(direction: Direction, position: u32, fault: InterfaceFault) -> ValidationError {
    ValidationError::Interface { graph: GraphId::Main, direction, position, fault }
}

type Mutation = fn(&mut Model);

/// Applies each mutation to a fresh `plain` and compares the error.
fn run(table: &[(&str, Mutation, ValidationError)]) {
    for (name, mutate, want) in table {
        let mut model = plain();
        mutate(&mut model);
        assert_eq!(validate_model(&model, HalVersion::V1_3), Err(*want), "{name}");
        let is_ours = matches!(
            want,
            ValidationError::Operand { fault: OperandFault::RankTooLarge { .. }, .. }
        );
        let status = match is_ours {
            true => crate::ErrorStatus::ResourceExhaustedPersistent,
            false => crate::ErrorStatus::InvalidArgument,
        };
        assert_eq!(want.status(), status, "{name}");
    }
}

#[test]
fn the_unchanged_model_is_legal_in_every_version() {
    for version in VERSIONS {
        assert_eq!(validate_model(&plain(), version), Ok(()), "{version}");
    }
}

fn too_many(limit: Limit) -> ValidationError {
    ValidationError::LimitExceeded { limit, found: limit.maximum() + 1 }
}

#[test]
fn counts_of_a_model_have_limits() {
    run(&[
        ("no operands", |m| m.main.operands.clear(), ValidationError::NoOperands),
        ("no operations", |m| m.main.operations.clear(), ValidationError::NoOperations),
        (
            "subgraphs",
            |m| m.referenced = vec![Subgraph::default(); MAX_SUBGRAPHS + 1],
            too_many(Limit::Subgraphs),
        ),
        (
            "pools",
            |m| m.pools = vec![m.pools[0].clone(); MAX_MODEL_POOLS + 1],
            too_many(Limit::ModelPools),
        ),
        (
            "operands of all graphs together",
            |m| {
                let operand = m.main.operands[OMITTED].clone();
                let operands = vec![operand; MAX_OPERANDS + 1 - m.main.operands.len()];
                m.referenced.push(Subgraph { operands, ..Subgraph::default() });
            },
            too_many(Limit::Operands),
        ),
        (
            "operations of all graphs together",
            |m| {
                let operation = m.main.operations[0].clone();
                let operations = vec![operation; MAX_OPERATIONS + 1 - m.main.operations.len()];
                m.referenced.push(Subgraph { operations, ..Subgraph::default() });
            },
            too_many(Limit::Operations),
        ),
    ]);
}

#[test]
fn lists_and_lengths_of_a_model_have_limits() {
    run(&[
        (
            "operands of one operation",
            |m| m.main.operations[0].inputs = vec![0; MAX_OPERATION_OPERANDS + 1],
            operation(
                0,
                OperationFault::TooManyOperands {
                    direction: Direction::Input,
                    count: MAX_OPERATION_OPERANDS as u64 + 1,
                },
            ),
        ),
        (
            "constants that all name the same bytes",
            |m| {
                m.main.operands[POOLED].location.length = 1 << 31;
                m.main.operands.push(m.main.operands[POOLED].clone());
                m.main.operands[COPY].location.length = 1;
            },
            // Both halves, the other constant's byte and the scalar's four.
            ValidationError::LimitExceeded {
                limit: Limit::ConstantBytes,
                found: MAX_CONSTANT_BYTES + 5,
            },
        ),
        (
            "rank",
            |m| m.main.operands[X].dimensions = Dimensions::from_elem(1, MAX_RANK + 1),
            operand(X, OperandFault::RankTooLarge { rank: 9 }),
        ),
    ]);
}
