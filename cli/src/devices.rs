//! `burst devices`: what a service has to offer.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use burst_client::Client;
use burst_hal::Device;
use comfy_table::Table;
use serde::Serialize;

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
    /// Files that it keeps a compilation in, of each kind.
    model_cache_files: u32,
    data_cache_files: u32,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let socket = args.socket.clone().unwrap_or_else(burst_client::default_socket_path);
    let client = Client::connect(&socket)?;
    let mut devices = Vec::new();
    for device in client.devices()? {
        let cache = device.cache_files_needed();
        devices.push(Row {
            name: device.name().to_owned(),
            version: device.version_string().to_owned(),
            r#type: device.device_type().name(),
            status: device.status().name(),
            model_cache_files: cache.model,
            data_cache_files: cache.data,
        });
    }
    let report = Report { socket: socket.display().to_string(), devices };
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        table.set_header(["device", "version", "type", "status", "cache files"]);
        for row in &report.devices {
            let cache = match (row.model_cache_files, row.data_cache_files) {
                (0, 0) => "none".to_owned(),
                (model, data) => format!("{model} + {data}"),
            };
            table.add_row([&row.name, &row.version, row.r#type, row.status, &cache]);
        }
        writeln!(out, "{table}")?;
    }
    Ok(ExitCode::SUCCESS)
}
