//! Models: what may be said of operands and operations, and when.

use std::sync::Arc;

use burst_hal::{HeapMemory, OperandType, OperationType, ResultCode};

use super::support::*;
use crate::{Memory, Model, OperandTypeDesc};

use ResultCode::{BadData, BadState, NoError};

#[test]
fn each_operand_type_has_the_dimensions_and_the_scale_that_it_may_have() {
    let with = |ty: OperandType, dimensions: &[u32], scale, zero_point| OperandTypeDesc {
        code: ty.code(),
        dimensions: dimensions.to_vec(),
        scale,
        zero_point,
    };
    use OperandType::*;
    for (ty, want) in [
        (with(TensorFloat32, &[2, 3], 0.0, 0), NoError),
        (with(TensorFloat32, &[], 0.0, 0), NoError),
        (with(TensorFloat32, &[0], 0.0, 0), NoError),
        (with(TensorFloat32, &[2], 1.0, 0), BadData),
        (with(TensorFloat32, &[2], 0.0, 1), BadData),
        (with(Int32, &[], 0.0, 0), NoError),
        (with(Int32, &[1], 0.0, 0), BadData),
        (with(Int32, &[], 0.5, 0), BadData),
        (with(TensorInt32, &[2], 0.5, 0), NoError),
        (with(TensorInt32, &[2], 0.0, 0), NoError),
        (with(TensorInt32, &[2], -0.5, 0), BadData),
        (with(TensorInt32, &[2], 0.5, 3), BadData),
        (with(TensorQuant8Asymm, &[2], 0.5, 255), NoError),
        (with(TensorQuant8Asymm, &[2], 0.5, 256), BadData),
        (with(TensorQuant8Asymm, &[2], 0.0, 0), BadData),
        (with(TensorQuant8Asymm, &[2], f32::NAN, 0), BadData),
        (with(TensorQuant8AsymmSigned, &[2], 0.5, -128), NoError),
        (with(TensorQuant8Symm, &[2], 0.5, 1), BadData),
        (with(TensorFloat32, &[u32::MAX, u32::MAX], 0.0, 0), BadData),
        (with(Subgraph, &[], 0.0, 0), NoError),
        (with(Subgraph, &[1], 0.0, 0), BadData),
        (with(Oem, &[], 0.0, 0), NoError),
        (with(OperandType::from_code(16), &[], 0.0, 0), BadData),
        (with(OperandType::from_code(-1), &[], 0.0, 0), BadData),
        (with(OperandType::from_code(0x1_0000), &[], 0.0, 0), BadData),
    ] {
        assert_eq!(code(Model::new().add_operand(&ty)), want, "{ty:?}");
    }
}

#[test]
fn a_constant_has_the_length_of_its_type() {
    let model = Model::new();
    let tensor = signed(model.add_operand(&floats(&[2])).unwrap());
    let open = signed(model.add_operand(&floats(&[0])).unwrap());
    let scalar = signed(model.add_operand(&of(OperandType::Int32)).unwrap());
    let graph = signed(model.add_operand(&of(OperandType::Subgraph)).unwrap());
    let oem = signed(model.add_operand(&of(OperandType::Oem)).unwrap());
    for (what, index, value, want) in [
        ("two floats", tensor, Some(&[0; 8][..]), NoError),
        ("set again", tensor, Some(&[1; 8]), NoError),
        ("seven bytes", tensor, Some(&[0; 7]), BadData),
        ("none", tensor, Some(&[]), BadData),
        ("left out", tensor, None, NoError),
        ("of unknown size", open, Some(&[0; 4]), BadData),
        ("of unknown size, left out", open, None, NoError),
        ("a scalar", scalar, Some(&[0; 4]), NoError),
        ("a long scalar", scalar, Some(&[0; 8]), BadData),
        ("a graph", graph, Some(&[0; 4]), BadData),
        ("any length", oem, Some(&[0; 3]), NoError),
        ("no operand", 5, Some(&[0; 4]), BadData),
        ("a negative number", -1, Some(&[0; 4]), BadData),
    ] {
        assert_eq!(code(model.set_operand_value(index, value)), want, "{what}");
    }
    let memory = Memory::from_pool(Arc::new(HeapMemory::new(vec![0; 16])));
    for (what, offset, length, want) in [
        ("all in it", 8, 8, NoError),
        ("behind it", 9, 8, BadData),
        ("an end beyond all numbers", usize::MAX, 8, BadData),
        ("another length", 0, 4, BadData),
    ] {
        let found = model.set_operand_value_from_memory(tensor, &memory, offset, length);
        assert_eq!(code(found), want, "{what}");
    }
}

#[test]
fn scales_per_channel_and_bytes_of_extensions_are_for_operands_that_have_them() {
    let model = Model::new();
    let ty =
        OperandTypeDesc { dimensions: vec![3, 2], ..of(OperandType::TensorQuant8SymmPerChannel) };
    let filter = signed(model.add_operand(&ty).unwrap());
    let other = signed(model.add_operand(&floats(&[3])).unwrap());
    for (what, index, axis, scales, want) in [
        ("as many as there are", filter, 0, &[1.0, 2.0, 3.0][..], NoError),
        ("too few", filter, 0, &[1.0], BadData),
        ("none", filter, 0, &[], BadData),
        ("an axis too far", filter, 2, &[1.0, 1.0], BadData),
        ("a scale of 0", filter, 1, &[1.0, 0.0], BadData),
        ("no number", filter, 1, &[1.0, f32::NAN], BadData),
        ("another type", other, 0, &[1.0, 2.0, 3.0], BadData),
        ("no operand", 7, 0, &[1.0], BadData),
    ] {
        let found = model.set_symm_per_channel_quant_params(index, axis, scales);
        assert_eq!(code(found), want, "{what}");
    }
    assert_eq!(code(model.set_operand_extension_data(other, Some(&[1]))), BadData);
    assert_eq!(code(model.extension_operand_type("no.such", 1)), BadData);
}

#[test]
fn an_operation_has_operands_that_some_version_takes() {
    let net = Net::new();
    let x = net.floats(&[2]);
    let ints =
        net.0.add_operand(&OperandTypeDesc { dimensions: vec![2], ..of(OperandType::TensorInt32) });
    let (ints, none, y) = (ints.unwrap(), net.int(0), net.floats(&[2]));
    let add = OperationType::Add.code();
    for (what, ty, inputs, want) in [
        ("two floats", add, vec![x, x, none], NoError),
        ("floats and integers", add, vec![x, ints, none], BadData),
        ("too few", add, vec![x, x], BadData),
        ("no operands", add, vec![], BadData),
        ("an operand that is none", add, vec![x, 99, none], BadData),
        ("no operation", 102, vec![x, x, none], BadData),
        ("of an extension that the model has not asked for", 0x1_0000, vec![x, x, none], BadData),
        ("a negative number", -1, vec![x, x, none], BadData),
    ] {
        assert_eq!(code(net.0.add_operation(ty, &inputs, &[y])), want, "{what}");
    }
}

#[test]
fn inputs_and_outputs_are_operands_without_another_part_each_once() {
    let net = Net::new();
    let (x, none, y) = (net.floats(&[2]), net.int(0), net.floats(&[2]));
    net.run(OperationType::Add, &[x, x, none], y);
    for (what, inputs, outputs) in [
        ("a constant", vec![x, none], vec![y]),
        ("one twice", vec![x, x], vec![y]),
        ("input and output", vec![x], vec![x]),
        ("no operand", vec![x], vec![9]),
    ] {
        let found = net.0.identify_inputs_and_outputs(&inputs, &outputs);
        assert_eq!(code(found), BadData, "{what}");
    }
    // What was refused has changed nothing.
    assert_eq!(code(net.0.identify_inputs_and_outputs(&[x], &[y])), NoError);
    assert_eq!(code(net.0.identify_inputs_and_outputs(&[x], &[y])), BadData, "once more");
    assert_eq!(code(net.0.finish()), NoError);
}

/// What a client did that looks at no answer; then the model is not finished.
#[test]
fn finish_finds_whatever_an_earlier_call_refused() {
    let of_net = |spoil: fn(&Net, u32, u32, u32)| {
        let net = Net::new();
        let (x, none, y) = (net.floats(&[2]), net.int(0), net.floats(&[2]));
        spoil(&net, x, none, y);
        drop(net.0.identify_inputs_and_outputs(&[x], &[y]));
        code(net.0.finish())
    };
    assert_eq!(of_net(|net, x, none, y| net.run(OperationType::Add, &[x, x, none], y)), NoError);
    for (what, spoil) in [
        ("nothing writes the output", (|_, _, _, _| {}) as fn(&Net, u32, u32, u32)),
        ("a constant without a value", |net, x, none, y| {
            let weights = net.floats(&[2]);
            drop(net.0.set_operand_value(signed(weights), Some(&[0; 7])));
            drop(net.0.add_operation(0, &[x, weights, none], &[y]));
        }),
        ("an operation of other types", |net, x, none, y| {
            let ints = net.0.add_operand(&OperandTypeDesc {
                dimensions: vec![2],
                ..of(OperandType::TensorInt32)
            });
            drop(net.0.add_operation(0, &[x, ints.unwrap(), none], &[y]));
        }),
        ("two operations in a circle", |net, x, none, y| {
            let between = net.floats(&[2]);
            net.run(OperationType::Add, &[y, x, none], between);
            net.run(OperationType::Add, &[between, x, none], y);
        }),
        ("an output written twice", |net, x, none, y| {
            net.run(OperationType::Add, &[x, x, none], y);
            net.run(OperationType::Mul, &[x, x, none], y);
        }),
        ("an input that is written", |net, x, none, y| {
            net.run(OperationType::Add, &[x, x, none], y);
            net.run(OperationType::Mul, &[y, y, none], x);
        }),
        ("an operand that nothing writes", |net, x, none, y| {
            net.run(OperationType::Add, &[x, x, none], y);
            net.floats(&[2]);
        }),
        ("channels without scales", |net, x, none, y| {
            net.run(OperationType::Add, &[x, x, none], y);
            let ty = OperandTypeDesc {
                dimensions: vec![1],
                ..of(OperandType::TensorQuant8SymmPerChannel)
            };
            let filter = net.0.add_operand(&ty).unwrap();
            net.0.set_operand_value(signed(filter), Some(&[1])).unwrap();
        }),
        ("a graph that is not set", |net, x, none, y| {
            net.run(OperationType::Add, &[x, x, none], y);
            net.0.add_operand(&of(OperandType::Subgraph)).unwrap();
        }),
    ] {
        assert_eq!(of_net(spoil), BadData, "{what}");
    }
    assert_eq!(code(Model::new().finish()), BadData, "an empty model");
}

#[test]
fn an_lstm_with_quantized_operands_is_refused() {
    let net = Net::new();
    let byte = |dimensions: &[u32]| OperandTypeDesc {
        dimensions: dimensions.to_vec(),
        scale: 0.5,
        ..of(OperandType::TensorQuant8AsymmSigned)
    };
    let add = |dimensions: &[u32]| net.0.add_operand(&byte(dimensions)).unwrap();
    let (x, y) = (add(&[1, 2, 4]), add(&[1, 2, 4]));
    let mut inputs = vec![x];
    inputs.extend((0..23).map(|_| add(&[4, 4])));
    inputs.extend([net.int(4)]);
    let lstm = OperationType::UnidirectionalSequenceLstm.code();
    assert_eq!(code(net.0.add_operation(lstm, &inputs, &[y])), BadData);
    net.0.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    assert_eq!(code(net.0.finish()), BadData);
}

#[test]
fn after_finish_nothing_changes_and_an_invalid_model_serves_for_nothing() {
    type Change = fn(&Model) -> ResultCode;
    let changes: [(&str, Change); 8] = [
        ("operand", |model| code(model.add_operand(&floats(&[1])))),
        ("value", |model| code(model.set_operand_value(0, None))),
        ("scales", |model| code(model.set_symm_per_channel_quant_params(0, 0, &[1.0]))),
        ("bytes", |model| code(model.set_operand_extension_data(0, None))),
        ("operation", |model| code(model.add_operation(0, &[0], &[0]))),
        ("lists", |model| code(model.identify_inputs_and_outputs(&[0], &[0]))),
        ("relaxed", |model| code(model.relax_computation_float32_to_float16(true))),
        ("finish", |model| code(model.finish())),
    ];
    let invalid = Model::new();
    assert_eq!(code(invalid.finish()), BadData);
    for model in [chain(), invalid.clone()] {
        for (what, change) in changes {
            assert_eq!(change(&model), BadState, "{what} of {model:?}");
        }
    }
    let building = Model::new();
    for model in [&building, &invalid] {
        assert_eq!(code(model.hal()), BadState);
        assert_eq!(code(model.supported_operations(&[reference()])), BadState);
        let user = Model::new();
        user.add_operand(&of(OperandType::Subgraph)).unwrap();
        assert_eq!(code(user.set_operand_value_from_model(0, model)), BadState);
    }
    assert_eq!(code(building.set_operand_value_from_model(0, &building)), BadState, "itself");
    let user = Model::new();
    user.add_operand(&of(OperandType::Int32)).unwrap();
    assert_eq!(code(user.set_operand_value_from_model(0, &chain())), BadData, "no reference");
}

#[test]
fn operations_are_sorted_and_defaults_left_off_and_answers_keep_the_order_of_adding() {
    let net = Net::new();
    let (x, none) = (net.floats(&[4]), net.int(0));
    let (between, y) = (net.floats(&[4]), net.floats(&[4]));
    // The second to run is added first.
    net.run(OperationType::Mul, &[between, x, none], y);
    net.run(OperationType::Add, &[x, x, none], between);
    let model = net.finish(&[x], &[y]);
    let types: Vec<_> = model.hal().unwrap().main.operations.iter().map(|one| one.ty).collect();
    assert_eq!(types, [OperationType::Add, OperationType::Mul]);
    let two = two();
    let [adder, multiplier, _] = two.registry.devices() else { panic!() };
    let asked = |devices: &[_]| model.supported_operations(devices).unwrap();
    assert_eq!(asked(std::slice::from_ref(adder)), [false, true]);
    assert_eq!(asked(std::slice::from_ref(multiplier)), [true, false]);
    assert_eq!(asked(&[adder.clone(), multiplier.clone()]), [true, true]);
    assert_eq!(code(model.supported_operations(&[])), BadData);
    assert_eq!(code(model.supported_operations(&[adder.clone(), adder.clone()])), BadData);

    let net = Net::new();
    let x = net.floats(&[2, 4]);
    let beta = net.0.add_operand(&of(OperandType::Float32)).unwrap();
    net.0.set_operand_value(signed(beta), Some(&1.0_f32.to_le_bytes())).unwrap();
    let (axis, y) = (net.int(-1), net.floats(&[2, 4]));
    net.run(OperationType::Softmax, &[x, beta, axis], y);
    let model = net.finish(&[x], &[y]).hal().unwrap();
    assert_eq!(model.main.operations[0].inputs, [x, beta], "the last axis is the default");
}

#[test]
fn long_constants_lie_in_sealed_memory_and_short_ones_with_the_model() {
    let net = Net::new();
    let x = net.floats(&[64]);
    let weights: Vec<f32> = (0..64_u8).map(f32::from).collect();
    let (long, none, y) = (net.constant(&[64], &weights), net.int(0), net.floats(&[64]));
    net.run(OperationType::Add, &[x, long, none], y);
    let model = net.finish(&[x], &[y]).hal().unwrap();
    let sealed = model.pools[0].as_bytes().expect("nobody can write it any more");
    assert_eq!(values(sealed), weights);
    assert_eq!(model.operand_values.len(), 4, "the scalar");
    assert_eq!(model.main.operands[long as usize].location.pool_index, 0);
}

#[test]
fn a_model_that_refers_to_others_has_each_of_them_once_with_its_constants() {
    let branch = |value: f32| {
        let net = Net::new();
        let x = net.floats(&[2]);
        let (one, none, y) = (net.constant(&[2], &[value; 2]), net.int(0), net.floats(&[2]));
        net.run(OperationType::Add, &[x, one, none], y);
        net.finish(&[x], &[y])
    };
    let (first, second) = (branch(1.0), branch(10.0));
    let net = Net::new();
    let condition =
        net.0.add_operand(&OperandTypeDesc { dimensions: vec![1], ..of(OperandType::TensorBool8) });
    let condition = condition.unwrap();
    let x = net.floats(&[2]);
    let graph = |model: &Arc<Model>| {
        let index = net.0.add_operand(&of(OperandType::Subgraph)).unwrap();
        net.0.set_operand_value_from_model(signed(index), model).unwrap();
        index
    };
    let (then, otherwise, again) = (graph(&first), graph(&second), graph(&first));
    let (y, z) = (net.floats(&[2]), net.floats(&[2]));
    net.run(OperationType::If, &[condition, then, otherwise, x], y);
    net.run(OperationType::If, &[condition, again, again, y], z);
    let model = net.finish(&[condition, x], &[z]);
    drop((first, second));
    assert_eq!(model.hal().unwrap().referenced.len(), 2);
    let compilation = compiled(&model, &crate::Registry::of(vec![reference()]));
    for (holds, want) in [(1, [2.0, 3.0]), (0, [11.0, 12.0])] {
        let execution = crate::Execution::new(&compilation).unwrap();
        let byte = crate::Argument::Host(Arc::new(HeapMemory::new(vec![holds])));
        execution.set_input(0, None, byte).unwrap();
        execution.set_input(1, None, host(&[0.0, 1.0])).unwrap();
        let output = heap(8);
        execution.set_output(0, None, crate::Argument::Host(output.clone())).unwrap();
        execution.compute().unwrap();
        assert_eq!(values(&output.to_vec()), want, "{holds}: a branch, then one more");
    }
}

#[test]
fn the_graphs_of_branches_and_loops_take_and_give_what_the_operation_does() {
    let branch = |from: &[u32], to: &[u32]| {
        let net = Net::new();
        let (x, y) = (net.floats(from), net.floats(to));
        net.run(OperationType::Relu, &[x], y);
        net.finish(&[x], &[y])
    };
    let bools = || OperandTypeDesc { dimensions: vec![1], ..of(OperandType::TensorBool8) };
    let condition = |ty: OperandTypeDesc| {
        let net = Net::new();
        let x = net.floats(&[2]);
        let answer = net.0.add_operand(&ty).unwrap();
        let operation = if ty == bools() { OperationType::Less } else { OperationType::Add };
        let inputs = if ty == bools() { vec![x, x] } else { vec![x, x, net.int(0)] };
        net.run(operation, &inputs, answer);
        net.finish(&[x], &[answer])
    };
    let of_graphs =
        |ty: OperationType, graphs: [&Arc<crate::Model>; 2], gives: &OperandTypeDesc| {
            let net = Net::new();
            let x = net.floats(&[2]);
            let graphs = graphs.map(|model| {
                let index = net.0.add_operand(&of(OperandType::Subgraph)).unwrap();
                net.0.set_operand_value_from_model(signed(index), model).unwrap();
                index
            });
            let y = net.0.add_operand(gives).unwrap();
            let mut inputs = vec![graphs[0], graphs[1], x];
            let mut list = vec![x];
            if ty == OperationType::If {
                let condition = net.0.add_operand(&bools()).unwrap();
                inputs.insert(0, condition);
                list.push(condition);
            }
            net.0.add_operation(ty.code(), &inputs, &[y]).unwrap();
            net.0.identify_inputs_and_outputs(&list, &[y]).unwrap();
            code(net.0.finish())
        };
    let right = branch(&[2], &[2]);
    for (what, ty, first, second, want) in [
        ("two branches", OperationType::If, right.clone(), branch(&[2], &[2]), NoError),
        ("open branches", OperationType::If, right.clone(), branch(&[0], &[0]), NoError),
        ("another input", OperationType::If, branch(&[3], &[2]), right.clone(), BadData),
        ("another output", OperationType::If, right.clone(), branch(&[2], &[3]), BadData),
        ("another rank", OperationType::If, right.clone(), branch(&[2], &[2, 1]), BadData),
        ("a loop", OperationType::While, condition(bools()), right.clone(), NoError),
        ("no condition", OperationType::While, condition(floats(&[2])), right.clone(), BadData),
        (
            "a state that grows",
            OperationType::While,
            condition(bools()),
            branch(&[2], &[3]),
            BadData,
        ),
    ] {
        assert_eq!(of_graphs(ty, [&first, &second], &floats(&[2])), want, "{what}");
    }
    // What a loop gives is what its body gives.
    let rounds = condition(bools());
    for (gives, want) in [
        (floats(&[0]), NoError),
        (floats(&[3]), BadData),
        (OperandTypeDesc { dimensions: vec![2], ..of(OperandType::TensorInt32) }, BadData),
    ] {
        assert_eq!(of_graphs(OperationType::While, [&rounds, &right], &gives), want, "{gives:?}");
    }
}
