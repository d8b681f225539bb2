//! Runs a model so often whenever a line comes, and says how long a run took: the half of `python/bench` in Rust.
//! SOCKET MODEL.tflite RUNS

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline, StreamOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [socket, file, runs] = args.as_slice() else {
        return Err("expected: SOCKET MODEL.tflite RUNS".into());
    };
    let runs: u32 = runs.parse()?;
    let model = burst_tflite::import(&std::fs::read(file)?)?.model;
    let device = Client::connect(socket)?.device("cpu")?;
    let mut stream = device.stream(&model, &StreamOptions::default())?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        line?;
        let begin = Instant::now();
        for _ in 0..runs {
            stream.run(Deadline::after(Duration::from_secs(60)))?;
        }
        writeln!(out, "{}", begin.elapsed().as_nanos() / u128::from(runs))?;
        out.flush()?;
    }
    Ok(())
}
