//! Rules for a buffer of a driver: its roles, and that one value can play all of them.

use std::collections::HashSet;

use super::error::{BufferFault as Fault, Direction, ValidationError};
use super::limits::{Limit, MAX_RANK};
use super::request::{ArgumentOperand, RequestRules};
use super::{saturate, within};
use crate::{BufferRole, Dimensions, ExtraParams, OperandType};

/// What the value of a buffer is: what all of its roles agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferOperand {
    /// Its type.
    pub ty: OperandType,
    /// Real value of one step of a quantized type.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
    /// Per-channel scales or extension bytes.
    pub extra_params: ExtraParams,
    /// Sizes along each axis, as far as the roles and the request together know them.
    pub dimensions: Dimensions,
}

impl BufferOperand {
    /// Bytes of its value, where every size is known and the type has a known length.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.is_specified(&self.dimensions).then(|| self.ty.byte_length(&self.dimensions))?
    }

    /// Whether a value of these dimensions has a known rank, and known sizes.
    #[must_use]
    pub fn is_specified(&self, dimensions: &[u32]) -> bool {
        (!self.ty.is_tensor() || !dimensions.is_empty()) && !dimensions.contains(&0)
    }
}

impl From<ArgumentOperand<'_>> for BufferOperand {
    fn from(operand: ArgumentOperand<'_>) -> Self {
        BufferOperand {
            ty: operand.ty,
            scale: operand.scale,
            zero_point: operand.zero_point,
            extra_params: operand.extra_params.clone(),
            dimensions: operand.dimensions.into(),
        }
    }
}

/// Checks what a buffer is asked for. `models` are the rules of the models that its roles name; two
/// that are the same one object belong to the same model.
///
/// # Errors
/// The first thing that is wrong; for its status see [`ValidationError::status`].
pub fn validate_buffer(
    dimensions: &[u32],
    models: &[&RequestRules],
    inputs: &[BufferRole],
    outputs: &[BufferRole],
) -> Result<BufferOperand, ValidationError> {
    within(models.len(), Limit::BufferModels)?;
    within(inputs.len().saturating_add(outputs.len()), Limit::BufferRoles)?;
    let mut seen = HashSet::new();
    let mut buffer: Option<BufferOperand> = None;
    let lists = [(Direction::Input, inputs), (Direction::Output, outputs)];
    for (direction, roles) in lists {
        for (position, role) in (0..).zip(roles) {
            let mut check = || -> Result<(), Fault> {
                let (rules, operand) = find(models, direction, role)?;
                if !seen.insert((std::ptr::from_ref(rules).addr(), direction, role.position)) {
                    return Err(Fault::Twice);
                }
                match &mut buffer {
                    None => buffer = Some(first(operand, dimensions)?),
                    Some(buffer) => join(buffer, operand)?,
                }
                Ok(())
            };
            check().map_err(|fault| ValidationError::Role { direction, role: position, fault })?;
        }
    }
    buffer.ok_or(ValidationError::NoRole)
}

/// The operand that a role stands for, with the rules of its model.
fn find<'r>(
    models: &[&'r RequestRules],
    direction: Direction,
    role: &BufferRole,
) -> Result<(&'r RequestRules, ArgumentOperand<'r>), Fault> {
    let BufferRole { model, position, frequency } = *role;
    let rules = usize::try_from(model).ok().and_then(|index| models.get(index));
    let rules = *rules.ok_or(Fault::UnknownModel { model, models: saturate(models.len()) })?;
    let index = usize::try_from(position).unwrap_or(usize::MAX);
    let positions = saturate(rules.count(direction));
    let unknown = Fault::UnknownPosition { position, positions };
    let operand = rules.operand(direction, index).ok_or(unknown)?;
    // What is no number is neither.
    if !(frequency > 0.0 && frequency <= 1.0) {
        return Err(Fault::Frequency { frequency });
    }
    Ok((rules, operand))
}

/// A buffer for its first role, with the dimensions that were asked for.
fn first(operand: ArgumentOperand<'_>, asked: &[u32]) -> Result<BufferOperand, Fault> {
    if !operand.ty.is_tensor() && operand.ty.element_bytes().is_some() && !asked.is_empty() {
        return Err(Fault::ScalarWithDimensions { rank: saturate(asked.len()) });
    }
    let dimensions = combine_dimensions(asked, operand.dimensions)?;
    if dimensions.len() > MAX_RANK {
        return Err(Fault::RankTooLarge { rank: saturate(dimensions.len()) });
    }
    Ok(BufferOperand { dimensions, ..operand.into() })
}

/// Makes a buffer one that has this role, too.
// Scales are compared as they are: roles of one buffer hold the same bytes for the same value.
#[allow(clippy::float_cmp, reason = "the same scale, not one that is near")]
fn join(buffer: &mut BufferOperand, operand: ArgumentOperand<'_>) -> Result<(), Fault> {
    if buffer.ty != operand.ty {
        return Err(Fault::Type { expected: buffer.ty, found: operand.ty });
    }
    if buffer.scale != operand.scale {
        return Err(Fault::Scale { expected: buffer.scale, found: operand.scale });
    }
    if buffer.zero_point != operand.zero_point {
        let (expected, found) = (buffer.zero_point, operand.zero_point);
        return Err(Fault::ZeroPoint { expected, found });
    }
    if buffer.extra_params != *operand.extra_params {
        return Err(Fault::ExtraParams);
    }
    buffer.dimensions = combine_dimensions(&buffer.dimensions, operand.dimensions)?;
    Ok(())
}

/// What two descriptions of the same shape know together. An empty one knows nothing, and neither does a
/// size of 0.
///
/// # Errors
/// [`Fault::Rank`] or [`Fault::Dimension`] where they contradict each other.
pub fn combine_dimensions(one: &[u32], other: &[u32]) -> Result<Dimensions, Fault> {
    if one.is_empty() || other.is_empty() {
        return Ok(if one.is_empty() { other.into() } else { one.into() });
    }
    if one.len() != other.len() {
        return Err(Fault::Rank { expected: saturate(one.len()), found: saturate(other.len()) });
    }
    (0..)
        .zip(one.iter().zip(other))
        .map(|(axis, (expected, found))| match (*expected, *found) {
            (0, size) | (size, 0) => Ok(size),
            (size, same) if size == same => Ok(size),
            (expected, found) => Err(Fault::Dimension { axis, expected, found }),
        })
        .collect()
}

/// Whether the dimensions that an execution has computed are those that somebody expects: an empty list
/// expects nothing, and neither does a size of 0. A computed size of 0 is what it says: no elements.
///
/// # Errors
/// [`Fault::Rank`] or [`Fault::Dimension`] where they contradict each other.
pub fn computed_dimensions(expected: &[u32], computed: &[u32]) -> Result<(), Fault> {
    if expected.is_empty() {
        return Ok(());
    }
    if expected.len() != computed.len() {
        let (expected, found) = (saturate(expected.len()), saturate(computed.len()));
        return Err(Fault::Rank { expected, found });
    }
    (0..).zip(expected.iter().zip(computed)).try_for_each(|(axis, (expected, found))| {
        match *expected == 0 || expected == found {
            true => Ok(()),
            false => Err(Fault::Dimension { axis, expected: *expected, found: *found }),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, ModelBuilder, OperationType, OutputSpec};

    /// A RELU of `[2, 3]`, one of unknown size, one of bytes, and a sum with a scalar beside.
    fn model(dimensions: &[u32], ty: OperandType, scale: f32, zero_point: i32) -> RequestRules {
        let mut builder = ModelBuilder::new();
        let input = builder.input(OperandType::TensorFloat32, dimensions);
        let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(dimensions));
        builder.output(output);
        let mut model: Model = builder.build().expect("a legal model");
        for operand in &mut model.main.operands {
            (operand.ty, operand.scale, operand.zero_point) = (ty, scale, zero_point);
        }
        RequestRules::new(&model).expect("the model has its own inputs")
    }

    fn floats(dimensions: &[u32]) -> RequestRules {
        model(dimensions, OperandType::TensorFloat32, 0.0, 0)
    }

    fn role(model: u32, position: u32) -> BufferRole {
        BufferRole { model, position, frequency: 1.0 }
    }

    fn fault(result: Result<BufferOperand, ValidationError>) -> Fault {
        match result {
            Err(ValidationError::Role { fault, .. }) => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn roles_that_agree_make_one_buffer_with_what_all_of_them_know() {
        let models = [&floats(&[2, 0]), &floats(&[0, 3]), &floats(&[])];
        let roles = [role(0, 0), role(1, 0)];
        let buffer = validate_buffer(&[], &models, &roles, &[role(2, 0)]).expect("they agree");
        assert_eq!(buffer.dimensions.as_slice(), [2, 3]);
        assert_eq!(buffer.bytes(), Some(24));
        let open = validate_buffer(&[], &models, &[role(0, 0)], &[]).expect("legal");
        assert_eq!((open.dimensions.as_slice(), open.bytes()), (&[2, 0][..], None));
        let closed = validate_buffer(&[0, 9], &models, &[role(0, 0)], &[]).expect("legal");
        assert_eq!(closed.bytes(), Some(72));
    }

    #[test]
    fn each_way_to_be_wrong_is_named() {
        let (one, open) = (floats(&[2, 3]), floats(&[0, 0]));
        let models = [&one, &open, &one];
        let of = |inputs: &[BufferRole], outputs: &[BufferRole]| {
            validate_buffer(&[], &models, inputs, outputs)
        };
        assert_eq!(of(&[], &[]), Err(ValidationError::NoRole));
        assert_eq!(fault(of(&[role(3, 0)], &[])), Fault::UnknownModel { model: 3, models: 3 });
        let unknown = Fault::UnknownPosition { position: 1, positions: 1 };
        assert_eq!(fault(of(&[], &[role(0, 1)])), unknown);
        for frequency in [0.0, -0.5, 1.5, f32::NAN, f32::INFINITY] {
            let role = BufferRole { frequency, ..role(0, 0) };
            assert!(matches!(fault(of(&[role], &[])), Fault::Frequency { .. }), "{frequency}");
        }
        assert_eq!(fault(of(&[role(0, 0), role(0, 0)], &[])), Fault::Twice);
        assert_eq!(fault(of(&[role(0, 0), role(2, 0)], &[])), Fault::Twice, "the same model");
        of(&[role(0, 0)], &[role(0, 0)]).expect("an input and an output are two roles");
        let asked =
            |dimensions: &[u32]| fault(validate_buffer(dimensions, &models, &[role(0, 0)], &[]));
        assert_eq!(asked(&[2, 3, 1]), Fault::Rank { expected: 3, found: 2 });
        assert_eq!(asked(&[2, 4]), Fault::Dimension { axis: 1, expected: 4, found: 3 });
        assert_eq!(asked(&[1; 9]), Fault::Rank { expected: 9, found: 2 });
        let any = floats(&[]);
        let error = validate_buffer(&[1; 9], &[&any], &[role(0, 0)], &[]).unwrap_err();
        assert_eq!(error.status(), crate::ErrorStatus::ResourceExhaustedPersistent);
        assert_eq!(fault(Err(error)), Fault::RankTooLarge { rank: 9 });
    }

    #[test]
    fn a_computed_size_of_0_is_no_unknown_one() {
        for (expected, computed, fits) in [
            (&[][..], &[2, 0][..], true),
            (&[0, 3], &[7, 3], true),
            (&[0, 3], &[0, 3], true),
            (&[5], &[0], false),
            (&[5], &[4], false),
            (&[2, 2], &[4], false),
            (&[0], &[], false),
        ] {
            let said = computed_dimensions(expected, computed);
            assert_eq!(said.is_ok(), fits, "{expected:?} {computed:?}");
        }
    }

    #[test]
    fn roles_of_different_meaning_do_not_share_a_buffer() {
        let byte =
            |scale, zero_point| model(&[2, 3], OperandType::TensorQuant8Asymm, scale, zero_point);
        let first = byte(0.5, 3);
        for (other, want) in [
            (floats(&[2, 3]), "TENSOR_FLOAT32, where the first role has TENSOR_QUANT8_ASYMM"),
            (byte(0.25, 3), "scale 0.25, where the first role has 0.5"),
            (byte(0.5, 4), "zero point 4, where the first role has 3"),
            (model(&[2, 4], OperandType::TensorQuant8Asymm, 0.5, 3), "dimension 1 is 4"),
            (model(&[6], OperandType::TensorQuant8Asymm, 0.5, 3), "1 dimensions in a buffer of 2"),
        ] {
            let models = [&first, &other];
            let refused = validate_buffer(&[], &models, &[role(0, 0)], &[role(1, 0)]).unwrap_err();
            let said = refused.to_string();
            assert!(said.starts_with("output role 0 of the buffer: "), "{said}");
            assert!(said.contains(want), "{said}");
        }
        let scalar = model(&[], OperandType::Float32, 0.0, 0);
        let refused = validate_buffer(&[1], &[&scalar], &[role(0, 0)], &[]);
        assert_eq!(fault(refused), Fault::ScalarWithDimensions { rank: 1 });
        let scalar = validate_buffer(&[], &[&scalar], &[role(0, 0)], &[]).expect("legal");
        assert_eq!(scalar.bytes(), Some(4));
    }

    #[test]
    fn too_many_roles_or_models_are_refused_before_they_are_looked_at() {
        let rules = floats(&[1]);
        let roles = vec![role(0, 0); super::super::MAX_BUFFER_ROLES];
        let refused = validate_buffer(&[], &[&rules], &roles, &[role(0, 0)]).unwrap_err();
        assert!(matches!(
            refused,
            ValidationError::LimitExceeded { limit: Limit::BufferRoles, found: 1025 }
        ));
        let models = vec![&rules; super::super::MAX_BUFFER_MODELS + 1];
        let refused = validate_buffer(&[], &models, &[role(0, 0)], &[]).unwrap_err();
        assert!(matches!(
            refused,
            ValidationError::LimitExceeded { limit: Limit::BufferModels, found: 65 }
        ));
    }
}
