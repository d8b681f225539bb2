//! Operations, their order, and the lists of a graph.

use super::*;
use crate::OperandLifeTime as L;

#[test]
fn operation_types_belong_to_versions() {
    let control_flow = [OperationType::If, OperationType::While];
    let all = OperationType::ALL.iter().chain(&[OperationType::OemOperation]);
    for ty in all.filter(|ty| !control_flow.contains(ty)) {
        let mut model = plain();
        model.main.operations[1].ty = *ty;
        for version in VERSIONS {
            let want = match version >= ty.since().unwrap() {
                true => Ok(()),
                false => Err(operation(1, OperationFault::TypeTooNew { ty: *ty, version })),
            };
            assert_eq!(validate_model(&model, version), want, "{ty} {version}");
        }
    }
    for code in [102, 9_999, 10_001, 0xFFFF] {
        let mut model = plain();
        model.main.operations[1].ty = OperationType::from_code(code);
        let want = Err(operation(1, OperationFault::UnknownType { code }));
        assert_eq!(validate_model(&model, HalVersion::V1_3), want, "{code}");
    }
}

#[test]
fn an_extension_operation_needs_a_declared_prefix() {
    let ty = OperationType::from_code(0x2_0000);
    let mut model = plain();
    model.main.operations[1].ty = ty;
    let undeclared = OperationFault::UndeclaredExtension { prefix: 2 };
    assert_eq!(validate_model(&model, HalVersion::V1_3), Err(operation(1, undeclared)));
    model.extension_name_to_prefix.push(("a.b".to_owned(), 2));
    assert_eq!(validate_model(&model, HalVersion::V1_3), Ok(()));
    let too_new = OperationFault::TypeTooNew { ty, version: HalVersion::V1_1 };
    assert_eq!(validate_model(&model, HalVersion::V1_1), Err(operation(1, too_new)));
}

#[test]
fn operations_use_operands_that_exist() {
    let unknown = |operand| OperationFault::UnknownOperand { operand, operands: 7 };
    run(&[
        ("input", |m| m.main.operations[0].inputs[1] = 7, operation(0, unknown(7))),
        ("output", |m| m.main.operations[1].outputs[0] = 7, operation(1, unknown(7))),
        ("last", |m| m.main.operations[1].inputs[0] = u32::MAX, operation(1, unknown(u32::MAX))),
    ]);
}

#[test]
fn operations_stand_in_an_order_that_works() {
    let read_early = |operand| OperationFault::ReadBeforeWrite { operand };
    run(&[
        ("reader first", |m| m.main.operations.swap(0, 1), operation(0, read_early(5))),
        (
            "a circle of data",
            |m| {
                m.main.operations[0].inputs[0] = 6;
                m.main.operands[X].number_of_consumers = 0;
                m.main.operands[Y].number_of_consumers = 1;
            },
            operation(0, read_early(6)),
        ),
        (
            "reads its own result",
            |m| m.main.operations[1].inputs[0] = 6,
            operation(1, read_early(6)),
        ),
        ("writer removed", |m| drop(m.main.operations.remove(0)), operation(0, read_early(5))),
        (
            "last operation removed",
            |m| drop(m.main.operations.pop()),
            operand(Y, OperandFault::NotWritten),
        ),
    ]);
}

#[test]
fn every_result_has_one_writer() {
    run(&[
        (
            "two writers",
            |m| {
                let again = m.main.operations[0].clone();
                m.main.operations.push(again);
            },
            operation(2, OperationFault::WrittenTwice { operand: 5 }),
        ),
        (
            "one writer, twice",
            |m| m.main.operations[1].outputs.push(6),
            operation(1, OperationFault::WrittenTwice { operand: 6 }),
        ),
        (
            "output no longer written, since its writer writes a new operand",
            |m| {
                m.main.operands.push(m.main.operands[T].clone());
                m.main.operations[1].outputs[0] = 7;
            },
            operand(Y, OperandFault::NotWritten),
        ),
        (
            "temporary no longer written, and no longer read",
            |m| {
                m.main.operations.remove(0);
                m.main.operations[0].inputs[0] = 0;
            },
            operand(T, OperandFault::NotWritten),
        ),
    ]);
}

#[test]
fn only_results_are_written() {
    let read_only =
        |operand, lifetime| operation(1, OperationFault::WritesReadOnly { operand, lifetime });
    run(&[
        ("input", |m| m.main.operations[1].outputs[0] = 0, read_only(0, L::SubgraphInput)),
        ("constant", |m| m.main.operations[1].outputs[0] = 1, read_only(1, L::ConstantCopy)),
        ("pooled", |m| m.main.operations[1].outputs[0] = 2, read_only(2, L::ConstantReference)),
        ("omitted", |m| m.main.operations[1].outputs[0] = 4, read_only(4, L::NoValue)),
    ]);
}

#[test]
fn a_changed_lifetime_shows_in_writers_or_lists() {
    let listed = |direction, operand, lifetime| {
        interface(direction, 0, InterfaceFault::Lifetime { operand, lifetime })
    };
    run(&[
        (
            "input to temporary",
            |m| m.main.operands[X].lifetime = L::TemporaryVariable,
            operation(0, OperationFault::ReadBeforeWrite { operand: 0 }),
        ),
        (
            "input to omitted",
            |m| m.main.operands[X].lifetime = L::NoValue,
            listed(Direction::Input, 0, L::NoValue),
        ),
        (
            "temporary to input",
            |m| m.main.operands[T].lifetime = L::SubgraphInput,
            operation(0, OperationFault::WritesReadOnly { operand: 5, lifetime: L::SubgraphInput }),
        ),
        (
            "temporary to output",
            |m| m.main.operands[T].lifetime = L::SubgraphOutput,
            operand(T, OperandFault::NotListed { direction: Direction::Output }),
        ),
        (
            "output to temporary",
            |m| m.main.operands[Y].lifetime = L::TemporaryVariable,
            listed(Direction::Output, 6, L::TemporaryVariable),
        ),
        (
            "omitted to input",
            |m| m.main.operands[OMITTED].lifetime = L::SubgraphInput,
            operand(OMITTED, OperandFault::NotListed { direction: Direction::Input }),
        ),
        (
            "omitted to a constant, without bytes",
            |m| m.main.operands[OMITTED].lifetime = L::ConstantCopy,
            operand(OMITTED, OperandFault::ConstantLength { expected: 4, found: 0 }),
        ),
        (
            "omitted to a subgraph",
            |m| m.main.operands[OMITTED].lifetime = L::Subgraph,
            operand(OMITTED, OperandFault::SubgraphLifetime),
        ),
        (
            "type changed to a subgraph",
            |m| {
                m.main.operands[OMITTED].ty = OperandType::Subgraph;
                m.main.operands[OMITTED].dimensions.clear();
            },
            operand(OMITTED, OperandFault::SubgraphLifetime),
        ),
    ]);
}

#[test]
fn interfaces_name_their_operands_once_each() {
    let unknown = |operand| InterfaceFault::UnknownOperand { operand, operands: 7 };
    run(&[
        (
            "input behind the last",
            |m| m.main.input_indexes.push(7),
            interface(Direction::Input, 1, unknown(7)),
        ),
        (
            "input twice",
            |m| m.main.input_indexes.push(0),
            interface(Direction::Input, 1, InterfaceFault::Twice { operand: 0 }),
        ),
        (
            "input not named",
            |m| m.main.input_indexes.clear(),
            operand(X, OperandFault::NotListed { direction: Direction::Input }),
        ),
        (
            "output behind the last",
            |m| m.main.output_indexes[0] = u32::MAX,
            interface(Direction::Output, 0, unknown(u32::MAX)),
        ),
        (
            "output twice",
            |m| m.main.output_indexes.push(6),
            interface(Direction::Output, 1, InterfaceFault::Twice { operand: 6 }),
        ),
        (
            "output not named",
            |m| m.main.output_indexes.clear(),
            operand(Y, OperandFault::NotListed { direction: Direction::Output }),
        ),
    ]);
}

#[test]
fn consumers_are_counted() {
    for index in [X, COPY, POOLED, NONE, OMITTED, T, Y] {
        for change in [1, -1] {
            let mut model = plain();
            let counted = model.main.operands[index].number_of_consumers;
            let Some(declared) = counted.checked_add_signed(change) else { continue };
            model.main.operands[index].number_of_consumers = declared;
            let want = Err(operand(index, OperandFault::Consumers { declared, counted }));
            assert_eq!(validate_model(&model, HalVersion::V1_3), want, "{index} {change}");
        }
    }
}

#[test]
fn an_operand_read_twice_by_one_operation_has_two_consumers() {
    let mut model = plain();
    model.main.operations[0].inputs[1] = 0;
    model.main.operands[COPY].number_of_consumers = 0;
    let want = Err(operand(X, OperandFault::Consumers { declared: 1, counted: 2 }));
    assert_eq!(validate_model(&model, HalVersion::V1_3), want);
    model.main.operands[X].number_of_consumers = 2;
    assert_eq!(validate_model(&model, HalVersion::V1_3), Ok(()));
}
