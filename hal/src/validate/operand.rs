//! Rules for one operand by itself: type, dimensions, quantization, extra parameters, location.

use super::error::OperandFault as Fault;
use super::limits::MAX_RANK;
use super::saturate;
use crate::operand_type::length_of;
use crate::{
    DataLocation, ExtensionCode, ExtensionOperandType, ExtraParams, HalVersion, Model, Operand,
    OperandKind, OperandLifeTime, OperandType,
};

/// Checks what [`validate_model`](super::validate_model) has to leave to the device: dimensions and
/// stored bytes of an operand whose type, an extension's, the device knows.
///
/// # Errors
/// A scalar with dimensions, a constant with open ones, a size that 32 bits cannot count, a constant of
/// another length.
pub fn validate_extension_operand(
    operand: &Operand,
    ty: &ExtensionOperandType,
) -> Result<(), Fault> {
    let rank = operand.dimensions.len();
    match ty.is_tensor {
        true => check_tensor_dimensions(operand, HalVersion::LATEST, Some(ty.byte_size.into()))?,
        false if rank > 0 => return Err(Fault::ScalarWithDimensions { rank: saturate(rank) }),
        false => {}
    }
    let expected = ty.byte_length(&operand.dimensions);
    match expected.filter(|_| is_constant(operand)) {
        Some(expected) if expected != u64::from(operand.location.length) => {
            Err(Fault::ConstantLength { expected, found: operand.location.length })
        }
        _ => Ok(()),
    }
}

/// Checks what an operand says of itself: type, dimensions, scale and zero point. Where its value
/// comes from, and whether an extension's type exists, is not looked at.
///
/// # Errors
/// A type that the version lacks, a scalar with dimensions, a size that 32 bits cannot count, scale or
/// zero point that the type cannot have.
pub fn validate_operand_type(operand: &Operand, version: HalVersion) -> Result<(), Fault> {
    let since = operand.ty.since().ok_or(Fault::UnknownType { code: operand.ty.code() })?;
    if since > version {
        return Err(Fault::TypeTooNew { ty: operand.ty, version });
    }
    check_dimensions(operand, version)?;
    check_scale(operand)?;
    check_zero_point(operand)
}

/// Checks an operand against its type, its lifetime and the model's memory.
pub(super) fn check(model: &Model, operand: &Operand, version: HalVersion) -> Result<(), Fault> {
    check_type(model, operand.ty, version)?;
    check_dimensions(operand, version)?;
    check_scale(operand)?;
    check_zero_point(operand)?;
    check_extra_params(operand, version)?;
    check_location(model, operand)?;
    check_constant_length(operand)
}

fn is_constant(operand: &Operand) -> bool {
    matches!(operand.lifetime, OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference)
}

fn check_type(model: &Model, ty: OperandType, version: HalVersion) -> Result<(), Fault> {
    let since = ty.since().ok_or(Fault::UnknownType { code: ty.code() })?;
    if since > version {
        return Err(Fault::TypeTooNew { ty, version });
    }
    match ty {
        OperandType::Extension(code) => {
            let prefix = ExtensionCode::from_code(code).prefix;
            super::extension::is_declared(model, prefix)
                .then_some(())
                .ok_or(Fault::UndeclaredExtension { prefix })
        }
        _ => Ok(()),
    }
}

/// An extension's type may have any dimensions: only its device knows whether it is a tensor.
fn check_dimensions(operand: &Operand, version: HalVersion) -> Result<(), Fault> {
    let rank = operand.dimensions.len();
    match operand.ty.kind() {
        OperandKind::Tensor | OperandKind::Opaque
            if rank > MAX_RANK && operand.ty != OperandType::Oem =>
        {
            Err(Fault::RankTooLarge { rank: saturate(rank) })
        }
        OperandKind::Tensor => {
            let element = operand.ty.element_bytes().map(|bytes| bytes as u64);
            check_tensor_dimensions(operand, version, element)
        }
        OperandKind::Opaque if operand.ty != OperandType::Oem => Ok(()),
        _ if rank > 0 => Err(Fault::ScalarWithDimensions { rank: saturate(rank) }),
        _ => Ok(()),
    }
}

/// A constant may have no dimension of 0, which means "not known": its bytes are known already.
fn check_tensor_dimensions(
    operand: &Operand,
    version: HalVersion,
    element: Option<u64>,
) -> Result<(), Fault> {
    let dimensions = &operand.dimensions;
    if dimensions.is_empty() && (version < HalVersion::V1_2 || is_constant(operand)) {
        return Err(Fault::UnspecifiedRank);
    }
    if let Some(axis) = dimensions.iter().position(|size| *size == 0) {
        return match is_constant(operand) {
            true => Err(Fault::ZeroDimension { axis: saturate(axis) }),
            false => Ok(()),
        };
    }
    match element.and_then(|element| length_of(element, dimensions)) {
        Some(bytes) if u32::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Fault::SizeOverflow),
    }
}

/// The comparisons are written so that a NaN fails each of them.
fn check_scale(operand: &Operand) -> Result<(), Fault> {
    let scale = operand.scale;
    let is_legal = match operand.ty {
        ty if ty.is_oem() => true,
        ty if ty.is_quantized() => scale > 0.0 && scale.is_finite(),
        OperandType::TensorInt32 => scale >= 0.0 && scale.is_finite(),
        _ => scale == 0.0,
    };
    is_legal.then_some(()).ok_or(Fault::Scale { scale })
}

fn check_zero_point(operand: &Operand) -> Result<(), Fault> {
    let zero_point = operand.zero_point;
    let (min, max) = operand.ty.zero_point_range();
    let is_legal = operand.ty.is_oem() || (min..=max).contains(&zero_point);
    is_legal.then_some(()).ok_or(Fault::ZeroPoint { zero_point })
}

/// An OEM type may have any, from the version on that has room for them at all.
fn check_extra_params(operand: &Operand, version: HalVersion) -> Result<(), Fault> {
    match (operand.ty, &operand.extra_params) {
        (ty, _) if ty.is_oem() && version >= HalVersion::V1_2 => Ok(()),
        (
            OperandType::TensorQuant8SymmPerChannel,
            ExtraParams::ChannelQuant { scales, channel_dim },
        ) => check_channel_quant(operand, scales, *channel_dim),
        (OperandType::TensorQuant8SymmPerChannel, _) => Err(Fault::MissingChannelQuant),
        (_, ExtraParams::None) | (OperandType::Extension(_), ExtraParams::Extension(_)) => Ok(()),
        _ => Err(Fault::UnexpectedExtraParams),
    }
}

fn check_channel_quant(operand: &Operand, scales: &[f32], channel_dim: u32) -> Result<(), Fault> {
    let rank = saturate(operand.dimensions.len());
    let channels = usize::try_from(channel_dim)
        .ok()
        .and_then(|axis| operand.dimensions.get(axis).copied())
        .ok_or(Fault::ChannelDimension { channel_dim, rank })?;
    let count = saturate(scales.len());
    if channels == 0 || channels != count {
        return Err(Fault::ChannelCount { channels, scales: count });
    }
    for (channel, scale) in (0..).zip(scales) {
        if !(*scale > 0.0 && scale.is_finite()) {
            return Err(Fault::ChannelScale { channel, scale: *scale });
        }
    }
    Ok(())
}

fn check_location(model: &Model, operand: &Operand) -> Result<(), Fault> {
    let is_subgraph = operand.ty == OperandType::Subgraph;
    if is_subgraph != (operand.lifetime == OperandLifeTime::Subgraph) {
        return Err(Fault::SubgraphLifetime);
    }
    let location = operand.location;
    match operand.lifetime {
        OperandLifeTime::ConstantCopy if location.pool_index != 0 => Err(Fault::UnexpectedLocation),
        OperandLifeTime::ConstantCopy => check_range(location, model.operand_values.len() as u64),
        OperandLifeTime::ConstantReference => check_reference(model, location),
        OperandLifeTime::Subgraph => check_subgraph(model, location),
        OperandLifeTime::TemporaryVariable
        | OperandLifeTime::SubgraphInput
        | OperandLifeTime::SubgraphOutput
        | OperandLifeTime::NoValue => {
            (location == DataLocation::default()).then_some(()).ok_or(Fault::UnexpectedLocation)
        }
    }
}

fn check_range(location: DataLocation, size: u64) -> Result<(), Fault> {
    let DataLocation { offset, length, .. } = location;
    let end = u64::from(offset) + u64::from(length); // two 32-bit numbers: cannot overflow
    (end <= size).then_some(()).ok_or(Fault::ConstantOutOfRange { offset, length, size })
}

fn check_reference(model: &Model, location: DataLocation) -> Result<(), Fault> {
    let pool =
        usize::try_from(location.pool_index).ok().and_then(|index| model.pools.get(index)).ok_or(
            Fault::UnknownPool { pool: location.pool_index, pools: saturate(model.pools.len()) },
        )?;
    check_range(location, pool.len())
}

fn check_subgraph(model: &Model, location: DataLocation) -> Result<(), Fault> {
    if location.pool_index != 0 || location.length != 0 {
        return Err(Fault::UnexpectedLocation);
    }
    let subgraphs = saturate(model.referenced.len());
    (location.offset < subgraphs)
        .then_some(())
        .ok_or(Fault::UnknownSubgraph { subgraph: location.offset, subgraphs })
}

/// OEM and extension types: only their devices know how long a value is.
fn check_constant_length(operand: &Operand) -> Result<(), Fault> {
    if !is_constant(operand) || operand.ty.is_oem() {
        return Ok(());
    }
    let found = operand.location.length;
    match operand.ty.byte_length(&operand.dimensions) {
        Some(expected) if expected != u64::from(found) => {
            Err(Fault::ConstantLength { expected, found })
        }
        _ => Ok(()),
    }
}
