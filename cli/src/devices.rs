//! `burst devices`: what a service has to offer.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use burst_client::Client;
use burst_hal::{Device, OperandType, PerformanceInfo};
use burst_harness::report::{Column, Table};
use serde::Serialize;

use crate::{json, out, service};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Socket of the service. Default: $BURST_SOCKET, else burst.sock in the user's runtime folder.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    socket: String,
    devices: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    version: String,
    r#type: &'static str,
    status: &'static str,
    /// Time and power relative to plain reference kernels, by operand type and for the rest that has figures.
    performance: BTreeMap<&'static str, Performance>,
    /// Names of extensions.
    extensions: Vec<String>,
    /// Files that it keeps a compilation in, of each kind.
    model_cache_files: u32,
    data_cache_files: u32,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Performance {
    time: f32,
    power: f32,
}

impl From<PerformanceInfo> for Performance {
    fn from(info: PerformanceInfo) -> Self {
        Performance { time: info.exec_time, power: info.power_usage }
    }
}

impl Row {
    fn of(device: &dyn Device) -> Result<Self> {
        let capabilities = device.capabilities()?;
        let by_type = capabilities.operand_performance.iter();
        let mut performance: BTreeMap<&'static str, Performance> =
            by_type.map(|(ty, info)| (ty.name(), (*info).into())).collect();
        let scalar = capabilities.relaxed_float32_to_float16_scalar;
        let tensor = capabilities.relaxed_float32_to_float16_tensor;
        performance.extend([
            ("FLOAT32 relaxed", scalar.into()),
            ("TENSOR_FLOAT32 relaxed", tensor.into()),
            ("IF", capabilities.if_performance.into()),
            ("WHILE", capabilities.while_performance.into()),
        ]);
        let (extensions, cache) = (device.supported_extensions(), device.cache_files_needed());
        Ok(Row {
            name: device.name().to_owned(),
            version: device.version_string().to_owned(),
            r#type: device.device_type().name(),
            status: device.status().name(),
            performance,
            extensions: extensions.into_iter().map(|extension| extension.name).collect(),
            model_cache_files: cache.model,
            data_cache_files: cache.data,
        })
    }

    /// The time for tensors of this type, as far as the device tells.
    fn time(&self, ty: OperandType) -> String {
        let told = self.performance.get(ty.name()).filter(|info| info.time < f32::MAX);
        told.map_or_else(|| "-".to_owned(), |info| format!("{:.3}", info.time))
    }

    /// How many files it keeps a compilation in, of each kind.
    fn cache_files(&self) -> String {
        match (self.model_cache_files, self.data_cache_files) {
            (0, 0) => "none".to_owned(),
            (model, data) => format!("{model} + {data}"),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let socket = args.socket.clone().unwrap_or_else(burst_client::default_socket_path);
    let client = Client::connect(&socket).map_err(|error| service::at(&socket, error))?;
    let mut devices = Vec::new();
    for device in client.devices()? {
        devices.push(Row::of(&device)?);
    }
    let report = Report { socket: socket.display().to_string(), devices };
    let mut to = out::stdout();
    if args.json {
        writeln!(to, "{}", json::object(&json::DEVICES, &report)?)?;
    } else {
        let times = [
            ("float32", OperandType::TensorFloat32),
            ("float16", OperandType::TensorFloat16),
            ("quant8", OperandType::TensorQuant8Asymm),
        ];
        let words = ["device", "version", "type", "status", "cache files"].map(Column::text);
        let numbers = times.map(|(name, _)| Column::number(name));
        let mut table = Table::new([&words[..], &numbers].concat());
        for row in &report.devices {
            let Row { name, version, r#type, status, .. } = row;
            let said = [name, version, *r#type, *status].map(str::to_owned);
            let said = said.into_iter().chain([row.cache_files()]);
            table.add(said.chain(times.map(|(_, ty)| row.time(ty))));
        }
        writeln!(to, "{}", table.fitted(out::columns()))?;
        writeln!(to, "Times are relative to plain reference kernels: smaller is better.")?;
    }
    Ok(ExitCode::SUCCESS)
}
