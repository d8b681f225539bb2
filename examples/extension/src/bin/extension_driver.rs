//! A driver service whose one device has the extension: `extension_driver SOCKET`.
use std::sync::Arc;

use burst_driver::DeviceOptions;
use burst_server::{Listener, serve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    let device = example_extension::device(DeviceOptions::default())?;
    Ok(serve(Arc::new(device), &Listener::bind(path)?)?)
}
