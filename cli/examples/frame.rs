//! Connect to a driver service, load a model, run one frame. The README shows this file.
//!
//! `cargo run --release --example frame -- SOCKET MODEL.tflite` while `burst serve` runs.

use std::time::Duration;

use burst_client::{Client, Deadline, StreamOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(socket), Some(file)) = (args.next(), args.next()) else {
        return Err("expected: SOCKET MODEL.tflite".into());
    };
    // Once: connect, choose a device, prepare the model, share memory for its inputs and outputs.
    let model = burst_tflite::import(&std::fs::read(file)?)?.model;
    let device = Client::connect(socket)?.device("cpu")?;
    let mut stream = device.stream(&model, &StreamOptions::default())?;

    // Per frame: write the input where the driver reads it, run, read the output.
    stream.input(0).fill(128);
    stream.run(Deadline::after(Duration::from_secs(1)))?;
    println!("{} values from process {}", stream.output(0)?.len(), stream.driver_pid());
    Ok(())
}
