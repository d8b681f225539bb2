//! Values of the HAL in the form they have in control messages.

use bincode::{Decode, Encode};
use burst_hal::{
    CacheFiles, Capabilities, DataLocation, DeviceType, ErrorStatus, ExecutionInfo,
    ExecutionPreference, ExecutionResult, Extension, ExtensionOperandType, HalVersion, OperandType,
    OutputShape, PerformanceInfo, PrepareOptions, Priority, RequestArgument, TimePoint, Timing,
};

use super::bounded::{List, Text};
use super::record::Tail;
use crate::WireError;

/// Inputs, or outputs, that one request over the socket may have.
pub(super) const ARGUMENTS_MAX: usize = 1024;
/// Axes of one shape on the control socket: far more than any operation takes.
pub(super) const RANK_MAX: usize = 64;
/// Operand types a device can have figures for.
const PERFORMANCES_MAX: usize = 64;
/// Extensions of one device.
const EXTENSIONS_MAX: usize = 32;
/// Operand types of one extension.
const EXTENSION_TYPES_MAX: usize = 64;

/// One input or output of a request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WireArgument {
    /// Omitted.
    pub has_no_value: bool,
    /// Index in the request's list of pools.
    pub pool_index: u32,
    /// First byte.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
    /// Empty where the model's hold.
    pub dimensions: List<u32, RANK_MAX>,
}

impl From<&RequestArgument> for WireArgument {
    fn from(argument: &RequestArgument) -> Self {
        WireArgument {
            has_no_value: argument.has_no_value,
            pool_index: argument.location.pool_index,
            offset: argument.location.offset,
            length: argument.location.length,
            dimensions: argument.dimensions.iter().copied().collect(),
        }
    }
}

impl From<&WireArgument> for RequestArgument {
    fn from(argument: &WireArgument) -> Self {
        RequestArgument {
            has_no_value: argument.has_no_value,
            location: DataLocation {
                pool_index: argument.pool_index,
                offset: argument.offset,
                length: argument.length,
            },
            dimensions: argument.dimensions.0.as_slice().into(),
        }
    }
}

/// The shape of an output.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WireShape {
    /// Sizes along each axis.
    pub dimensions: List<u32, RANK_MAX>,
    /// Whether its memory was large enough.
    pub is_sufficient: bool,
}

/// The result of an execution over the socket.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Executed {
    /// Code of the status.
    pub status: i32,
    /// Shapes of the outputs.
    pub shapes: List<WireShape, ARGUMENTS_MAX>,
    /// Microseconds in the hardware.
    pub on_device_us: u64,
    /// Microseconds in the driver.
    pub in_driver_us: u64,
    /// Nanoseconds in the driver, from the call's arrival to just before the reply.
    pub in_driver_ns: Option<u64>,
}

impl Executed {
    /// What an execution gave, for the socket.
    #[must_use]
    pub fn new(result: &ExecutionResult, in_driver_ns: Option<u64>) -> Self {
        let shape = |shape: &OutputShape| WireShape {
            dimensions: shape.dimensions.iter().copied().collect(),
            is_sufficient: shape.is_sufficient,
        };
        Executed {
            status: result.status.code(),
            shapes: result.output_shapes.iter().map(shape).collect(),
            on_device_us: result.timing.time_on_device_us,
            in_driver_us: result.timing.time_in_driver_us,
            in_driver_ns,
        }
    }

    /// What the service says came of an execution. An unknown status is GENERAL_FAILURE; shapes
    /// and timing are dropped where the HAL has none.
    #[must_use]
    pub fn to_result(&self) -> ExecutionResult {
        let status = ErrorStatus::from_code(self.status).unwrap_or(ErrorStatus::GeneralFailure);
        let mut result = ExecutionResult::of(status);
        if matches!(status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
            let shape = |shape: &WireShape| OutputShape {
                dimensions: shape.dimensions.0.as_slice().into(),
                is_sufficient: shape.is_sufficient,
            };
            result.output_shapes = self.shapes.0.iter().map(shape).collect();
        }
        if status == ErrorStatus::None {
            result.timing = Timing {
                time_on_device_us: self.on_device_us,
                time_in_driver_us: self.in_driver_us,
            };
        }
        result
    }
}

/// How a fenced execution ended. Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WireExecutionInfo {
    status: i32,
    launched: (u64, u64),
    fenced: (u64, u64),
}

impl From<&ExecutionInfo> for WireExecutionInfo {
    fn from(info: &ExecutionInfo) -> Self {
        let times = |timing: Timing| (timing.time_on_device_us, timing.time_in_driver_us);
        let (launched, fenced) = (times(info.timing_launched), times(info.timing_fenced));
        WireExecutionInfo { status: info.status.code(), launched, fenced }
    }
}

impl From<&WireExecutionInfo> for ExecutionInfo {
    /// An unknown status is GENERAL_FAILURE; times are dropped where the HAL has none.
    fn from(info: &WireExecutionInfo) -> Self {
        let status = ErrorStatus::from_code(info.status).unwrap_or(ErrorStatus::GeneralFailure);
        let times = |(time_on_device_us, time_in_driver_us)| match status {
            ErrorStatus::None => Timing { time_on_device_us, time_in_driver_us },
            _ => Timing::UNAVAILABLE,
        };
        let (timing_launched, timing_fenced) = (times(info.launched), times(info.fenced));
        ExecutionInfo { status, timing_launched, timing_fenced }
    }
}

/// How a model is to be prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WirePrepareOptions {
    preference: i32,
    priority: i32,
    deadline: Option<u64>,
}

impl From<&PrepareOptions> for WirePrepareOptions {
    fn from(options: &PrepareOptions) -> Self {
        WirePrepareOptions {
            preference: options.preference.code(),
            priority: options.priority.code(),
            deadline: options.deadline.map(|point| point.nanos),
        }
    }
}

impl WirePrepareOptions {
    /// The options, where every code is one.
    ///
    /// # Errors
    /// [`WireError::Value`] for a preference or priority that does not exist.
    pub fn decode(&self) -> Result<PrepareOptions, WireError> {
        let value = |what, code: i32| WireError::Value { what, value: i64::from(code) };
        Ok(PrepareOptions {
            preference: ExecutionPreference::from_code(self.preference)
                .ok_or(value("the execution preference", self.preference))?,
            priority: Priority::from_code(self.priority)
                .ok_or(value("the priority", self.priority))?,
            deadline: self.deadline.map(|nanos| TimePoint { nanos }),
        })
    }
}

/// How a model was prepared, whoever asked for it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct PreparedHow {
    preference: i32,
    priority: i32,
}

impl From<&PrepareOptions> for PreparedHow {
    fn from(options: &PrepareOptions) -> Self {
        PreparedHow { preference: options.preference.code(), priority: options.priority.code() }
    }
}

impl PreparedHow {
    /// The same without a deadline; a preference or priority of a later version is the default.
    #[must_use]
    pub fn options(&self) -> PrepareOptions {
        let default = PrepareOptions::default();
        PrepareOptions {
            preference: ExecutionPreference::from_code(self.preference)
                .unwrap_or(default.preference),
            priority: Priority::from_code(self.priority).unwrap_or(default.priority),
            deadline: None,
        }
    }
}

/// All constant facts about a device.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DeviceInfo {
    /// Its name.
    pub name: Text<64>,
    /// Changes whenever its behaviour does.
    pub version: Text<256>,
    device_type: i32,
    relaxed_scalar: Performance,
    relaxed_tensor: Performance,
    operands: List<(i32, Performance), PERFORMANCES_MAX>,
    if_performance: Performance,
    while_performance: Performance,
    extensions: List<WireExtension, EXTENSIONS_MAX>,
    model_cache_files: u32,
    data_cache_files: u32,
    /// The NDK's feature level of the version of the HAL that it has all of, where that is not [`SILENT`].
    feature_level: Tail<u32>,
}

/// The version of the HAL of a device whose service does not say: services before there was a way to say it
/// had no other devices.
const SILENT: HalVersion = HalVersion::V1_3;

#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
struct Performance {
    exec_time: f32,
    power_usage: f32,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct WireExtension {
    name: Text<256>,
    types: List<(u16, bool, u32), EXTENSION_TYPES_MAX>,
}

impl From<PerformanceInfo> for Performance {
    fn from(info: PerformanceInfo) -> Self {
        Performance { exec_time: info.exec_time, power_usage: info.power_usage }
    }
}

impl From<Performance> for PerformanceInfo {
    fn from(info: Performance) -> Self {
        PerformanceInfo { exec_time: info.exec_time, power_usage: info.power_usage }
    }
}

impl DeviceInfo {
    /// The facts, for a message.
    #[must_use]
    pub fn new(device: &dyn burst_hal::Device, capabilities: &Capabilities) -> Self {
        let cache = device.cache_files_needed();
        let performance = |(ty, info): &(OperandType, PerformanceInfo)| (ty.code(), (*info).into());
        let version = Some(device.hal_version()).filter(|version| *version != SILENT);
        DeviceInfo {
            name: Text::cut(device.name()),
            version: Text::cut(device.version_string()),
            device_type: device.device_type().code(),
            relaxed_scalar: capabilities.relaxed_float32_to_float16_scalar.into(),
            relaxed_tensor: capabilities.relaxed_float32_to_float16_tensor.into(),
            operands: capabilities.operand_performance.iter().map(performance).collect(),
            if_performance: capabilities.if_performance.into(),
            while_performance: capabilities.while_performance.into(),
            extensions: device.supported_extensions().iter().map(wire_extension).collect(),
            model_cache_files: cache.model,
            data_cache_files: cache.data,
            feature_level: Tail(version.map(HalVersion::feature_level)),
        }
    }

    /// What kind of hardware it is; one that does not exist is OTHER.
    #[must_use]
    pub fn device_type(&self) -> DeviceType {
        DeviceType::from_code(self.device_type).unwrap_or(DeviceType::Other)
    }

    /// The newest version of the HAL that it has all of and that is known here.
    #[must_use]
    pub fn hal_version(&self) -> HalVersion {
        let Tail(Some(level)) = self.feature_level else { return SILENT };
        let known = HalVersion::ALL.into_iter().rev();
        known.into_iter().find(|one| one.feature_level() <= level).unwrap_or(HalVersion::V1_0)
    }

    /// How well it does.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let operand =
            |(ty, info): &(i32, Performance)| (OperandType::from_code(*ty), (*info).into());
        Capabilities {
            relaxed_float32_to_float16_scalar: self.relaxed_scalar.into(),
            relaxed_float32_to_float16_tensor: self.relaxed_tensor.into(),
            operand_performance: self.operands.0.iter().map(operand).collect(),
            if_performance: self.if_performance.into(),
            while_performance: self.while_performance.into(),
        }
    }

    /// Extensions it knows.
    #[must_use]
    pub fn extensions(&self) -> Vec<Extension> {
        let operand_type = |(ty, is_tensor, byte_size): &(u16, bool, u32)| ExtensionOperandType {
            ty: *ty,
            is_tensor: *is_tensor,
            byte_size: *byte_size,
        };
        let extension = |wire: &WireExtension| Extension {
            name: wire.name.as_str().to_owned(),
            operand_types: wire.types.0.iter().map(operand_type).collect(),
        };
        self.extensions.0.iter().map(extension).collect()
    }

    /// Files it keeps a compilation in.
    #[must_use]
    pub fn cache_files(&self) -> CacheFiles {
        CacheFiles { model: self.model_cache_files, data: self.data_cache_files }
    }
}

fn wire_extension(extension: &Extension) -> WireExtension {
    WireExtension {
        name: Text::cut(&extension.name),
        types: extension
            .operand_types
            .iter()
            .map(|ty| (ty.ty, ty.is_tensor, ty.byte_size))
            .collect(),
    }
}
