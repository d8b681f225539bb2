//! Types, dimensions, quantization and locations of single operands.

use super::*;
use crate::{ExtensionCode, ExtensionOperandType, ExtraParams, OperandLifeTime};

/// `plain` with one operand that nobody reads, and that is fine but for what the test changes.
fn with(spec: OutputSpec) -> (Model, usize) {
    let mut model = plain();
    model.main.operands.push(Operand {
        dimensions: spec.dimensions,
        scale: spec.scale,
        zero_point: spec.zero_point,
        extra_params: spec.extra_params,
        ..Operand::new(spec.ty, OperandLifeTime::NoValue)
    });
    let last = model.main.operands.len() - 1;
    (model, last)
}

/// What a version says to an operand of this kind.
fn check(spec: OutputSpec, version: HalVersion) -> Result<(), OperandFault> {
    let (mut model, index) = with(spec);
    model.extension_name_to_prefix.push(("com.example.ops".to_owned(), 7));
    match validate_model(&model, version) {
        Ok(()) => Ok(()),
        Err(ValidationError::Operand { graph: GraphId::Main, operand, fault }) => {
            assert_eq!(operand as usize, index);
            Err(fault)
        }
        Err(other) => panic!("{other}"),
    }
}

/// A legal operand of each type but SUBGRAPH, which needs one to refer to.
fn every_type() -> impl Iterator<Item = (OperandType, OutputSpec)> {
    let types = OperandType::ALL.iter().filter(|ty| **ty != OperandType::Subgraph);
    types.map(|ty| {
        let dimensions: &[u32] = if ty.is_tensor() { &[2] } else { &[] };
        let spec = OutputSpec::new(*ty, dimensions);
        let spec = match ty {
            OperandType::TensorQuant8SymmPerChannel => spec.per_channel(&[1.0, 2.0], 0),
            _ if ty.is_quantized() => spec.quantized(1.0, 0),
            _ => spec,
        };
        (*ty, spec)
    })
}

#[test]
fn types_belong_to_versions() {
    for (ty, spec) in every_type() {
        for version in VERSIONS {
            let want = match version >= ty.since().unwrap() {
                true => Ok(()),
                false => Err(OperandFault::TypeTooNew { ty, version }),
            };
            assert_eq!(check(spec.clone(), version), want, "{ty} {version}");
        }
    }
    for code in [16, 9_999, 10_002, 0xFFFF] {
        let spec = OutputSpec::new(OperandType::from_code(code), &[]);
        assert_eq!(check(spec, HalVersion::V1_3), Err(OperandFault::UnknownType { code }));
    }
}

#[test]
fn scalars_have_no_dimensions() {
    for ty in OperandType::ALL.iter().filter(|ty| !ty.is_tensor()) {
        let want = Err(OperandFault::ScalarWithDimensions { rank: 1 });
        assert_eq!(check(OutputSpec::new(*ty, &[1]), HalVersion::V1_3), want, "{ty}");
    }
}

#[test]
fn a_rank_may_be_unknown_since_1_2_and_never_in_a_constant() {
    let mut model = plain();
    for index in [X, T] {
        model.main.operands[index].dimensions.clear();
    }
    assert_eq!(validate_model(&model, HalVersion::V1_2), Ok(()));
    let want = Err(operand(X, OperandFault::UnspecifiedRank));
    assert_eq!(validate_model(&model, HalVersion::V1_1), want);
    run(&[(
        "constant",
        |m| m.main.operands[COPY].dimensions.clear(),
        operand(COPY, OperandFault::UnspecifiedRank),
    )]);
}

#[test]
fn a_size_may_be_unknown_but_not_in_a_constant_and_not_huge() {
    let mut model = plain();
    model.main.operands[X].dimensions[0] = 0;
    assert_eq!(validate_model(&model, HalVersion::V1_0), Ok(()));
    run(&[
        (
            "zero in a constant",
            |m| {
                m.main.operands[COPY].dimensions = Dimensions::from_slice(&[3, 0]);
                m.main.operands[COPY].location.length = 0;
            },
            operand(COPY, OperandFault::ZeroDimension { axis: 1 }),
        ),
        (
            "one byte over 32 bits",
            |m| m.main.operands[T].dimensions = Dimensions::from_slice(&[1 << 15, 1 << 15]),
            operand(T, OperandFault::SizeOverflow),
        ),
        (
            "over 64 bits, to a small number where it wraps",
            |m| m.main.operands[T].dimensions = Dimensions::from_slice(&[1 << 31, 1 << 31, 4]),
            operand(T, OperandFault::SizeOverflow),
        ),
    ]);
}

#[test]
fn constants_are_as_long_as_their_dimensions_say() {
    run(&[
        (
            "too long",
            |m| m.main.operands[COPY].dimensions[0] = 2,
            operand(COPY, OperandFault::ConstantLength { expected: 8, found: 12 }),
        ),
        (
            "too short",
            |m| m.main.operands[POOLED].location.length = 11,
            operand(POOLED, OperandFault::ConstantLength { expected: 12, found: 11 }),
        ),
        (
            "scalar",
            |m| m.main.operands[NONE].location.length = 1,
            operand(NONE, OperandFault::ConstantLength { expected: 4, found: 1 }),
        ),
    ]);
}

#[test]
fn constants_lie_in_memory() {
    let out_of_range =
        |offset, length, size| OperandFault::ConstantOutOfRange { offset, length, size };
    run(&[
        (
            "behind the values",
            |m| m.main.operands[NONE].location.offset = 17,
            operand(NONE, out_of_range(17, 4, 20)),
        ),
        (
            "behind the pool",
            |m| m.main.operands[POOLED].location.offset = 5,
            operand(POOLED, out_of_range(5, 12, 16)),
        ),
        (
            "behind the pool, where 32 bits wrap",
            |m| m.main.operands[POOLED].location.offset = u32::MAX,
            operand(POOLED, out_of_range(u32::MAX, 12, 16)),
        ),
        (
            "values in another pool than 0",
            |m| m.main.operands[COPY].location.pool_index = 1,
            operand(COPY, OperandFault::UnexpectedLocation),
        ),
        (
            "a pool that is not there",
            |m| m.main.operands[POOLED].location.pool_index = 1,
            operand(POOLED, OperandFault::UnknownPool { pool: 1, pools: 1 }),
        ),
    ]);
}

#[test]
fn what_is_not_constant_has_no_location() {
    for index in [X, OMITTED, T, Y] {
        for location in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
            let mut model = plain();
            let (pool_index, offset, length) = location;
            model.main.operands[index].location = DataLocation { pool_index, offset, length };
            let want = Err(operand(index, OperandFault::UnexpectedLocation));
            assert_eq!(validate_model(&model, HalVersion::V1_3), want, "{index} {location:?}");
        }
    }
}

#[test]
fn scales_go_with_types() {
    let not_numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for (ty, spec) in every_type() {
        let (legal, illegal): (&[f32], &[f32]) = match ty {
            _ if ty.is_oem() => (&[0.0, 1.0, -1.0], &[]),
            _ if ty.is_quantized() => (&[0.5, 1.0], &[0.0, -1.0]),
            OperandType::TensorInt32 => (&[0.0, 1.0], &[-1.0]),
            _ => (&[0.0], &[1.0, -1.0]),
        };
        for scale in legal {
            let result = check(spec.clone().quantized(*scale, 0), HalVersion::V1_3);
            assert_eq!(result, Ok(()), "{ty} {scale}");
        }
        let unusual: &[f32] = if ty.is_oem() { &[] } else { &not_numbers };
        for scale in illegal.iter().chain(unusual) {
            let result = check(spec.clone().quantized(*scale, 0), HalVersion::V1_3);
            assert!(matches!(result, Err(OperandFault::Scale { .. })), "{ty} {scale}: {result:?}");
        }
    }
}

#[test]
fn zero_points_go_with_types() {
    use OperandType as T;
    for (ty, spec) in every_type() {
        let (legal, illegal): (&[i32], &[i32]) = match ty {
            T::TensorQuant8Asymm => (&[0, 255], &[-1, 256]),
            T::TensorQuant8AsymmSigned => (&[-128, 127], &[-129, 128]),
            T::TensorQuant8Symm => (&[0], &[-129, -1, 1, 128]),
            T::TensorQuant16Asymm => (&[0, 65_535], &[-1, 65_536]),
            T::TensorQuant16Symm => (&[0], &[-32_769, -1, 1, 32_768]),
            T::Oem | T::TensorOemByte => (&[0, 1, -1], &[]),
            _ => (&[0], &[1, -1]),
        };
        let scale = spec.scale;
        for zero_point in legal {
            let result = check(spec.clone().quantized(scale, *zero_point), HalVersion::V1_3);
            assert_eq!(result, Ok(()), "{ty} {zero_point}");
        }
        for zero_point in illegal {
            let result = check(spec.clone().quantized(scale, *zero_point), HalVersion::V1_3);
            let want = Err(OperandFault::ZeroPoint { zero_point: *zero_point });
            assert_eq!(result, want, "{ty} {zero_point}");
        }
    }
}

#[test]
fn per_channel_scales_are_one_for_each_channel() {
    let spec = OutputSpec::new(OperandType::TensorQuant8SymmPerChannel, &[2, 4]);
    let unknown = OutputSpec::new(OperandType::TensorQuant8SymmPerChannel, &[0, 4]);
    let table = [
        ("legal", spec.clone().per_channel(&[1.0, 2.0], 0), Ok(())),
        ("missing", spec.clone(), Err(OperandFault::MissingChannelQuant)),
        (
            "dimension behind the last",
            spec.clone().per_channel(&[1.0, 2.0], 2),
            Err(OperandFault::ChannelDimension { channel_dim: 2, rank: 2 }),
        ),
        (
            "too few",
            spec.clone().per_channel(&[1.0, 2.0], 1),
            Err(OperandFault::ChannelCount { channels: 4, scales: 2 }),
        ),
        (
            "unknown size",
            unknown.per_channel(&[], 0),
            Err(OperandFault::ChannelCount { channels: 0, scales: 0 }),
        ),
        (
            "zero",
            spec.clone().per_channel(&[1.0, 0.0], 0),
            Err(OperandFault::ChannelScale { channel: 1, scale: 0.0 }),
        ),
        (
            "negative",
            spec.clone().per_channel(&[-1.0, 1.0], 0),
            Err(OperandFault::ChannelScale { channel: 0, scale: -1.0 }),
        ),
        (
            "infinite",
            spec.clone().per_channel(&[1.0, f32::INFINITY], 0),
            Err(OperandFault::ChannelScale { channel: 1, scale: f32::INFINITY }),
        ),
    ];
    for (name, spec, want) in table {
        assert_eq!(check(spec, HalVersion::V1_3), want, "{name}");
    }
    let result = check(spec.per_channel(&[f32::NAN, 1.0], 0), HalVersion::V1_3);
    assert!(matches!(result, Err(OperandFault::ChannelScale { channel: 0, .. })), "NaN");
}

#[test]
fn extra_params_go_with_types() {
    for (ty, spec) in every_type() {
        if ty == OperandType::TensorQuant8SymmPerChannel {
            continue;
        }
        let want = match ty.is_oem() {
            true => Ok(()),
            false => Err(OperandFault::UnexpectedExtraParams),
        };
        let channels = spec.clone().per_channel(&[1.0; 2], 0);
        assert_eq!(check(channels, HalVersion::V1_3), want, "{ty}");
        let extra_params = ExtraParams::Extension(Arc::from([1_u8, 2]));
        assert_eq!(check(OutputSpec { extra_params, ..spec }, HalVersion::V1_3), want, "{ty}");
    }
}

/// HAL 1.0 and 1.1 have no field for them: a model that says it is one of these cannot have any.
#[test]
fn extra_params_of_oem_types_came_with_1_2() {
    for ty in [OperandType::Oem, OperandType::TensorOemByte] {
        let dimensions: &[u32] = if ty.is_tensor() { &[2] } else { &[] };
        let extra_params = ExtraParams::Extension(Arc::from([1_u8, 2]));
        let spec = OutputSpec { extra_params, ..OutputSpec::new(ty, dimensions) };
        for version in VERSIONS {
            let want = match version >= HalVersion::V1_2 {
                true => Ok(()),
                false => Err(OperandFault::UnexpectedExtraParams),
            };
            assert_eq!(check(spec.clone(), version), want, "{ty} {version}");
        }
    }
}

#[test]
fn extension_types_need_a_declared_prefix_and_have_no_scale() {
    let ty = OperandType::from_code(0x7_0003);
    let spec = OutputSpec::new(ty, &[1, 2]);
    let with_bytes =
        OutputSpec { extra_params: ExtraParams::Extension(Arc::from([1_u8])), ..spec.clone() };
    let undeclared = OutputSpec { ty: OperandType::from_code(0x8_0003), ..spec.clone() };
    let too_new = OperandFault::TypeTooNew { ty, version: HalVersion::V1_1 };
    let table = [
        (spec.clone(), HalVersion::V1_2, Ok(())),
        (with_bytes, HalVersion::V1_3, Ok(())),
        (spec.clone(), HalVersion::V1_1, Err(too_new)),
        (spec.clone().quantized(1.0, 0), HalVersion::V1_3, Err(OperandFault::Scale { scale: 1.0 })),
        (
            spec.clone().quantized(0.0, 1),
            HalVersion::V1_3,
            Err(OperandFault::ZeroPoint { zero_point: 1 }),
        ),
        (spec.per_channel(&[1.0], 0), HalVersion::V1_3, Err(OperandFault::UnexpectedExtraParams)),
        (undeclared, HalVersion::V1_3, Err(OperandFault::UndeclaredExtension { prefix: 8 })),
    ];
    for (spec, version, want) in table {
        assert_eq!(check(spec.clone(), version), want, "{spec:?}");
    }
}

#[test]
fn an_extension_may_have_any_prefix_but_0() {
    for prefix in [1, 0x7FFF, 0x8000, 0xFFFF] {
        let code = ExtensionCode { prefix, number: 3 };
        let (mut model, index) = with(OutputSpec::new(code.operand_type(), &[1]));
        model.main.operations[1].ty = code.operation_type();
        let undeclared = OperandFault::UndeclaredExtension { prefix };
        assert_eq!(validate_model(&model, HalVersion::V1_3), Err(operand(index, undeclared)));
        model.extension_name_to_prefix.push(("com.example.ops".to_owned(), prefix));
        assert_eq!(validate_model(&model, HalVersion::V1_3), Ok(()), "{prefix:#x}");
    }
}

#[test]
fn extension_names_are_in_reverse_domain_form() {
    for name in ["com.example.fancy_ops2", "a.b", "."] {
        assert!(validate_extension_name(name), "{name}");
    }
    let long = format!("com.{}", "x".repeat(MAX_EXTENSION_NAME_BYTES));
    for name in ["", "example", "Com.example", "com.exa-mple", "com.ex ample", "com.ä", &long] {
        assert!(!validate_extension_name(name), "{name}");
    }
}

#[test]
fn extensions_are_listed_once_each() {
    let extensions = |list: &[(&str, u16)]| {
        let mut model = plain();
        let list = list.iter().map(|(name, prefix)| ((*name).to_owned(), *prefix));
        model.extension_name_to_prefix = list.collect();
        validate_model(&model, HalVersion::V1_3)
    };
    assert_eq!(extensions(&[("a.b", 1), ("a.c", u16::MAX)]), Ok(()));
    assert_eq!(extensions(&[("ab", 1)]), Err(ValidationError::ExtensionName { index: 0 }));
    assert_eq!(extensions(&[("a.b", 0)]), Err(ValidationError::ExtensionPrefixZero { index: 0 }));
    let twice = Err(ValidationError::ExtensionTwice { index: 1 });
    assert_eq!(extensions(&[("a.b", 1), ("a.b", 2)]), twice, "same name");
    assert_eq!(extensions(&[("a.b", 1), ("a.c", 1)]), twice, "same prefix");
    let list = [("a.b", 1); MAX_EXTENSIONS + 1];
    assert_eq!(extensions(&list), Err(too_many(Limit::Extensions)));
}

#[test]
fn a_device_that_knows_an_extensions_type_checks_dimensions_and_stored_bytes() {
    type Row<'a> = (&'a [u32], Option<u32>, bool, Result<(), OperandFault>);
    let check = |dimensions: &[u32], constant: Option<u32>, is_tensor| {
        let mut operand =
            Operand::new(OperandType::from_code(0x7_0003), OperandLifeTime::SubgraphInput);
        operand.dimensions = Dimensions::from_slice(dimensions);
        if let Some(length) = constant {
            operand.lifetime = OperandLifeTime::ConstantCopy;
            operand.location.length = length;
        }
        let ty = ExtensionOperandType { ty: 3, is_tensor, byte_size: 6 };
        validate_extension_operand(&operand, &ty)
    };
    let table: [Row<'_>; 10] = [
        (&[2, 3], Some(36), true, Ok(())),
        (&[2, 0], None, true, Ok(())),
        (&[], None, true, Ok(())),
        (&[], Some(6), false, Ok(())),
        (&[2, 3], Some(35), true, Err(OperandFault::ConstantLength { expected: 36, found: 35 })),
        (&[], Some(5), false, Err(OperandFault::ConstantLength { expected: 6, found: 5 })),
        (&[], Some(6), true, Err(OperandFault::UnspecifiedRank)),
        (&[2, 0], Some(0), true, Err(OperandFault::ZeroDimension { axis: 1 })),
        (&[1], None, false, Err(OperandFault::ScalarWithDimensions { rank: 1 })),
        (&[1 << 31], None, true, Err(OperandFault::SizeOverflow)),
    ];
    for (dimensions, constant, is_tensor, want) in table {
        assert_eq!(check(dimensions, constant, is_tensor), want, "{dimensions:?} {constant:?}");
    }
}

#[test]
fn what_an_operand_says_of_itself_is_checked_without_a_model() {
    let plain = |ty| Operand::new(ty, OperandLifeTime::TemporaryVariable);
    let scalar = plain(OperandType::Int32);
    validate_operand_type(&scalar, HalVersion::V1_0).unwrap();
    let wide = Operand { dimensions: [2].into_iter().collect(), ..scalar.clone() };
    let fault = validate_operand_type(&wide, HalVersion::V1_3).unwrap_err();
    assert_eq!(fault, OperandFault::ScalarWithDimensions { rank: 1 });
    let scaled = Operand { scale: 0.5, ..scalar };
    let fault = validate_operand_type(&scaled, HalVersion::V1_3).unwrap_err();
    assert_eq!(fault, OperandFault::Scale { scale: 0.5 });
    let none = plain(OperandType::from_code(99));
    let fault = validate_operand_type(&none, HalVersion::V1_3).unwrap_err();
    assert_eq!(fault, OperandFault::UnknownType { code: 99 });
    let late = plain(OperandType::Bool);
    assert!(validate_operand_type(&late, HalVersion::V1_1).is_err());
    // Its value, an index of a subgraph, is nobody's business yet.
    validate_operand_type(&plain(OperandType::Subgraph), HalVersion::V1_3).unwrap();
}
